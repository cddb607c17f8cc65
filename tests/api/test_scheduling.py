"""Numbers of chunks by simulated time."""

from __future__ import annotations

import pytest

from dualcoll._api import plan, schedule
from dualcoll.errors import InputError
from dualcoll.progress import Gap
from dualcoll.schedules.validate import validate
from dualcoll.simulation import simulate
from dualcoll.topology.catalog import catalog


def test_auto_is_not_slower_than_any_number_asked_for() -> None:
    """One box, a message between small and large."""
    made = plan(catalog("dgx-1v"), size="8M", stop=Gap(0.01))
    best = schedule(made)
    validate(best, depth=None)
    fastest = simulate(best).finish
    assert fastest <= min(simulate(schedule(made, chunks=chunks)).finish for chunks in (8, 64)) * (1 + 1e-9)


def test_a_large_message_comes_near_the_certified_rate() -> None:
    """Two boxes on rails at 1 GiB: at least nine tenths of what is proved possible."""
    made = plan(catalog("dgx-h100:boxes=2,network=rail"), size="1G", stop=Gap(0.01))
    assert simulate(schedule(made)).algbw >= 0.9 * made.bound


@pytest.mark.parametrize("chunks", ["many", "0", 0])
def test_numbers_that_are_none_are_refused(chunks: str | int) -> None:
    """Words, and fewer than one."""
    made = plan(catalog("ring:3"), stop=Gap(0.1))
    with pytest.raises(InputError):
        schedule(made, chunks=chunks)
