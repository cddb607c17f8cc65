from __future__ import annotations

import numpy as np
import pytest

from dualcoll.kernels.water_filling import fill
from dualcoll.sharing.max_min import Loads


@pytest.mark.parametrize("seed", range(20))
def test_every_user_is_held_by_a_full_row_where_nobody_has_more(seed: int) -> None:
    """On thousands of users: no row carries too much, and each user's row is full and shared with nobody faster."""
    rng = np.random.default_rng(seed)
    users, rows, entries = 2000, 300, 12_000
    part = rng.choice([1, 0.5, 1 / 3, 1e-3], entries)
    loads = Loads.of(rng.integers(rows, size=entries), rng.integers(users, size=entries), part, rows, users)
    capacity = 10.0 ** (9 + 3 * rng.random(rows)) if seed % 2 else np.full(rows, 5e10)
    rate, step, row, level = fill(loads.ptr, loads.user, loads.load, capacity, users)
    idle = np.setdiff1d(np.arange(users), loads.user)
    assert np.isinf(rate[idle]).all()
    assert (step[idle] == -1).all()
    busy = np.unique(loads.user)
    used = loads.total(np.where(np.isinf(rate), 0, rate))
    assert (used <= capacity * (1 + 1e-12)).all()
    assert used[row] == pytest.approx(capacity[row], rel=1e-12)
    fastest = np.zeros(rows)
    np.maximum.at(fastest, loads.row_of(), rate[loads.user])
    assert (rate[busy] == level[step[busy]]).all()
    assert (fastest[row] == level).all()
    assert (np.diff(level) >= 0).all()


def test_a_row_without_capacity_gives_nothing() -> None:
    """Zero is a rate, and its users leave their part of other rows to others."""
    loads = Loads.of([0, 1, 1], [0, 0, 1], [1, 1, 1], 2, 2)
    rate, *_ = fill(loads.ptr, loads.user, loads.load, np.array([0.0, 6.0]), 2)
    assert rate.tolist() == [0, 6]
