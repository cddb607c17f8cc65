"""Trees that share channels."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dualcoll import plan as make_plan
from dualcoll.errors import InputError
from dualcoll.lowering.chunk_counts import equal_chunks
from dualcoll.lowering.shared_channels import share_channels
from dualcoll.progress import Gap
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.validate import validate
from dualcoll.simulation import simulate
from dualcoll.topology.catalog import catalog
from tests.lowering.msccl.round_trip import read_again


@pytest.fixture(scope="module")
def gathering() -> Schedule:
    """A schedule with more trees than channels that one would give them."""
    plan = make_plan(catalog("torus:3x3"), "allgather", size=2**24, stop=Gap(0.05))
    return equal_chunks(plan, 90)[0]


@pytest.mark.parametrize("channels", [1, 4, 8])
def test_same_sends_on_fewer_channels(gathering: Schedule, channels: int) -> None:
    """The sends are the same, the channels no more than asked for, the schedule is still right, and so is its program."""
    shared = share_channels(gathering, channels)
    assert np.unique(shared.channel).size == channels

    def sends(of: Schedule) -> Counter[tuple[int, ...]]:
        rows = np.stack([of.src, of.dst, of.chunk, of.op, of.route], axis=1)
        return Counter(map(tuple, rows.tolist()))

    assert sends(shared) == sends(gathering)
    validate(shared, depth=None)
    read_again(shared)


def test_sends_take_turns_as_they_would_start(gathering: Schedule) -> None:
    """Sends are renumbered by the time at which they start where nobody shares, so sharing costs little."""
    shared = share_channels(gathering, 8)
    assert simulate(shared).finish < 1.2 * simulate(gathering).finish


def test_enough_channels_change_nothing(gathering: Schedule) -> None:
    """A schedule with no more channels comes back as it is; fewer than one are refused."""
    assert share_channels(gathering, int(gathering.channel.max()) + 1) is gathering
    with pytest.raises(InputError) as caught:
        share_channels(gathering, 0)
    assert str(caught.value) == "channels: 0 channels; use 1 or more"
