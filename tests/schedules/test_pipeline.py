"""From plans to schedules: contracts kept on sets and on data, shares to the byte, windows that only add order."""

from __future__ import annotations

import numpy as np
import pytest

from dualcoll._api import plan
from dualcoll.collectives.catalogue import COLLECTIVES
from dualcoll.collectives.workload import Group, Workload
from dualcoll.errors import InputError
from dualcoll.execution.in_process import execute
from dualcoll.progress import Gap
from dualcoll.schedules.pipeline import ALIGNMENT, pipelined, resized
from dualcoll.schedules.validate import validate
from dualcoll.topology.catalog import catalog
from tests.packing.fabrics import fabric

ODD = "g0-s0:3, g1-s0:2, g2-s0:5, g3-s1:4, g4-s1:4, s0-s1:6, g5-g6:9, g6-s1:2, g5-s0:1"


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("collective", [name for name in COLLECTIVES if name != "alltoallv"])
def test_every_collective_keeps_its_contract(collective: str, window: int | None) -> None:
    """Seven ranks on an odd fabric, sizes that divide by nothing."""
    made = plan(fabric(ODD), collective, size=4 * 10_007, stop=Gap(0.01))
    drawn = pipelined(made, chunks=40, window=window)
    validate(drawn, depth=None)
    execute(pipelined(made, chunks=20, window=window, size=7 * 16 * 1024))  # chunks of whole elements
    assert abs(drawn.size - made.size) <= 7  # an AllToAll whose shards differ by a byte gives some rank a few more


@pytest.mark.parametrize("routing", ["spray", "ecmp"])
def test_routes_of_the_network_are_kept(routing: str) -> None:
    """Sprayed shares and hashed paths are valid routes of the schedule."""
    made = plan(catalog("fat-tree:k=4"), "allreduce", size="1M", routing=routing, stop=Gap(0.05))
    validate(pipelined(made, chunks=64))


def test_groups_and_mixes_run_at_once() -> None:
    """Two collectives on overlapping ranks in one schedule."""
    topology = fabric(ODD)
    ranks = topology.ranks
    groups = (Group("a", "allreduce", ranks[:4], 4096), Group("b", "allgather", ranks[2:], 5 * 256))
    drawn = pipelined(plan(topology, Workload(groups), stop=Gap(0.01)), chunks=30, window=4)
    validate(drawn, depth=None)
    assert drawn.contract.collective == "mix"


def test_pieces_are_aligned_and_never_smaller_than_that() -> None:
    """All but the last piece of a tree are multiples of the alignment; a tree with few bytes is one piece."""
    made = plan(catalog("dgx-1v"), "allreduce", size=100_003, stop=Gap(0.01))
    drawn = pipelined(made, chunks=10_000)
    odd = np.flatnonzero(drawn.chunk_size % ALIGNMENT)
    assert odd.size <= len(made.trees)
    assert drawn.chunk_size.sum() == 100_003
    tiny = pipelined(made, chunks=64, size=3)
    assert tiny.chunks == len(made.trees)
    validate(tiny)


def test_a_window_only_adds_dependencies() -> None:
    """The same sends, each after at least what it was after, and a window as large as the data adds nothing."""
    made = plan(catalog("dgx-h100:boxes=2"), "allreduce", size="1M", stop=Gap(0.01))
    free, paced, wide = (pipelined(made, chunks=200, window=window) for window in (None, 20, 10_000))
    np.testing.assert_array_equal(free.src, paced.src)
    assert all(set(free.depends_of(s)) <= set(paced.depends_of(s)) for s in range(free.sends))
    assert paced.depends.size > free.depends.size == wide.depends.size


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"chunks": 0}, "0 chunks; use 1 to 4194304"),
        ({"window": 0}, "a window of 0 pieces; use 1 or more"),
        ({"size": 0}, "size 0 is less than a byte"),
    ],
)
def test_what_cannot_be_is_refused(asked: dict[str, int], message: str) -> None:
    """Whole messages."""
    made = plan(catalog("ring:3"), stop=Gap(0.1))
    with pytest.raises(InputError) as caught:
        pipelined(made, **asked)
    assert str(caught.value) == message


def test_messages_of_several_sizes_have_no_single_size() -> None:
    """Nor has an AllToAllv, whose matrix says it."""
    groups = (Group("a", "allreduce", (0, 1), 10), Group("b", "allreduce", (1, 2), 20))
    with pytest.raises(InputError, match="differ in size"):
        resized(Workload(groups), 5)
    matrix = Group("m", "alltoallv", (0, 1), 3, None, (0, 3, 2, 0))
    with pytest.raises(InputError, match="says its size"):
        resized(Workload((matrix,)), 5)


def test_pieces_of_each_tree_may_be_given() -> None:
    """Every tree is cut into as many pieces as asked; a number for each tree is wanted, of 1 or more."""
    made = plan(catalog("dgx-1v"), "allreduce", size="1M", stop=Gap(0.01))
    wanted = [1 + t % 3 for t in range(len(made.trees))]
    drawn = pipelined(made, chunks=wanted)
    assert [np.unique(drawn.chunk[drawn.channel == t]).size for t in range(len(wanted))] == wanted
    validate(drawn)
    with pytest.raises(InputError) as caught:
        pipelined(made, chunks=wanted[1:])
    assert str(caught.value) == f"{len(wanted) - 1} numbers of chunks for {len(wanted)} trees"
    with pytest.raises(InputError) as caught:
        pipelined(made, chunks=[0, *wanted[1:]])
    assert str(caught.value) == "0 chunks; use 1 to 4194304"
