from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from dualcoll.lp.packing_master import MasterSolution, PackingMaster

SEEDS = range(40)


def _columns(seed: int) -> np.ndarray:
    """A sparse matrix of loads (M, T); every column loads some row."""
    rng = np.random.default_rng(seed)
    rows, count = int(rng.integers(1, 12)), int(rng.integers(1, 25))
    loads = rng.integers(1, 4, (rows, count)) * (rng.random((rows, count)) < 0.4).astype(float)
    loads[rng.integers(rows, size=count), np.arange(count)] += 1.0
    return np.asarray(loads * 10.0 ** rng.uniform(-3, 3, (rows, 1)))


def _add(master: PackingMaster, loads: np.ndarray) -> None:
    for column in loads.T:
        rows = np.flatnonzero(column)
        master.add(rows, column[rows])


def _assert_optimal(solution: MasterSolution, loads: np.ndarray) -> None:
    """Primal and dual are feasible and meet: rates fit in every row, every column is covered by the duals."""
    assert solution.solved
    assert (solution.rates >= 0).all()
    assert (solution.duals >= 0).all()
    assert (loads @ solution.rates).max() <= 1 + 1e-8
    assert (solution.duals @ loads).min() >= 1 - 1e-8
    assert solution.rates.sum() == pytest.approx(solution.duals.sum(), rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_optimum_is_that_of_scipy_and_proved_by_duality(seed: int) -> None:
    """One solve over all columns."""
    loads = _columns(seed)
    master = PackingMaster(len(loads))
    _add(master, loads)
    solution = master.solve(float("inf"))
    _assert_optimal(solution, loads)
    reference: Any = linprog(-np.ones(loads.shape[1]), A_ub=loads, b_ub=np.ones(len(loads)))
    assert solution.rates.sum() == pytest.approx(-reference.fun, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_may_come_later(seed: int) -> None:
    """A solve after each few columns is optimal for those so far, and at the end for all; the value never falls."""
    loads = _columns(seed)
    master = PackingMaster(len(loads))
    value = 0.0
    for start in range(0, loads.shape[1], 4):
        _add(master, loads[:, start : start + 4])
        solution = master.solve(10.0)
        _assert_optimal(solution, loads[:, : start + 4])
        assert solution.rates.sum() >= value * (1 - 1e-9)
        value = solution.rates.sum()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_solution_is_basic(seed: int) -> None:
    """No more positive rates than rows."""
    loads = _columns(seed)
    master = PackingMaster(len(loads))
    _add(master, loads)
    assert np.count_nonzero(master.solve(1.0).rates) <= len(loads)


def test_no_time_left_is_said() -> None:
    """A large program with hardly any time is not called solved; what comes back can still be used."""
    rng = np.random.default_rng(0)
    loads = rng.random((400, 800)) * (rng.random((400, 800)) < 0.3)
    loads[0] += 0.1
    master = PackingMaster(400)
    _add(master, loads)
    solution = master.solve(0.0)
    assert not solution.solved
    assert solution.rates.shape == (800,)
    assert solution.duals.shape == (400,)
    assert np.isfinite(solution.rates).all()
    _assert_optimal(master.solve(float("inf")), loads)
