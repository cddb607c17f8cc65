from __future__ import annotations

from dataclasses import replace

import pytest

from dualcoll._api import plan
from dualcoll.collectives.workload import Group, Objective, Workload
from dualcoll.diagnosis.cut_words import cut_text
from dualcoll.progress import Gap
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology
from tests.packing.fabrics import fabric
from tests.packing.test_known_values import a100_boxes

SLOW_DOWN = fabric("g0-s0:10, g1-s0:10, g2-s0:10/2")
SLOW_UP = fabric("g0-s0:10, g1-s0:10, g2-s0:2/10")
PAIR = fabric("g0-s0:10, g1-s0:10/2")
LEFT, RIGHT = "over the link s0 -> g2 of 2 GB/s", "over the link g2 -> s0 of 2 GB/s"


@pytest.mark.parametrize(
    ("topology", "collective", "text"),
    [
        (SLOW_DOWN, "allreduce", f"the sum of the 2 other ranks must enter rank g2 {LEFT}: at most 2 GB/s, tight"),
        (SLOW_DOWN, "allgather", f"2 shards must enter rank g2 {LEFT}: at most 3 GB/s, tight"),
        (SLOW_DOWN, "reducescatter", f"the partial sum of 1 shard must enter rank g2 {LEFT}: at most 6 GB/s, tight"),
        (SLOW_DOWN, "broadcast", f"the message must enter rank g2 {LEFT}: at most 2 GB/s, tight"),
        (SLOW_DOWN, "scatter", f"1 shard must enter rank g2 {LEFT}: at most 6 GB/s, tight"),
        (SLOW_DOWN, "alltoall", f"what 2 other ranks send it must enter rank g2 {LEFT}: at most 3 GB/s, tight"),
        (SLOW_UP, "allreduce", f"its data must leave rank g2 {RIGHT}: at most 2 GB/s, tight"),
        (SLOW_UP, "allgather", f"1 shard must leave rank g2 {RIGHT}: at most 6 GB/s, tight"),
        (SLOW_UP, "reducescatter", f"partial sums of 2 shards must leave rank g2 {RIGHT}: at most 3 GB/s, tight"),
        (SLOW_UP, "reduce", f"its data must leave rank g2 {RIGHT}: at most 2 GB/s, tight"),
        (SLOW_UP, "gather", f"1 shard must leave rank g2 {RIGHT}: at most 6 GB/s, tight"),
        (SLOW_UP, "alltoall", f"what it sends to 2 others must leave rank g2 {RIGHT}: at most 3 GB/s, tight"),
        (
            PAIR,
            "allreduce",
            "the data of the other rank must enter rank g1 over the link s0 -> g1 of 2 GB/s: at most 2 GB/s, tight",
        ),
        (
            PAIR,
            "alltoall",
            "what 1 other rank sends it must enter rank g1 over the link s0 -> g1 of 2 GB/s: at most 4 GB/s, tight",
        ),
    ],
)
def test_the_cut_in_words(topology: Topology, collective: str, text: str) -> None:
    """What crosses, in each collective's own words, in both directions, one or many."""
    assert cut_text(plan(topology, collective)) == text


@pytest.mark.parametrize(
    ("topology", "collective", "text"),
    [
        (
            a100_boxes(4),
            "allgather",
            "24 shards must enter box b0 through 8 NICs of 25 GB/s: at most 266.667 GB/s, tight",
        ),
        (
            a100_boxes(2),
            "allreduce",
            "the sum of its 8 ranks must leave box b0 through 8 NICs of 25 GB/s: at most 200 GB/s, "
            "not tight: prices prove 173.333 GB/s",
        ),
        (
            catalog("dgx-h100:boxes=4"),
            "alltoall",
            "what its 8 ranks send to 24 others must leave box b0 over 8 GPU -> leaf links of 50 GB/s: "
            "at most 66.6667 GB/s, tight",
        ),
        (
            catalog("dgx-h100:boxes=2"),
            "allgather",
            "15 shards must enter rank b0.g0 over 2 links of 50 GB/s to 450 GB/s, 500 GB/s together: "
            "at most 533.333 GB/s, tight",
        ),
        (
            catalog("line:4,bandwidth=1GB/s"),
            "alltoall",
            "what its 2 ranks send to 2 others must leave ranks g0 and g1 over the link g1 -> g2 of 1 GB/s: "
            "at most 1 GB/s, tight",
        ),
        (
            catalog("torus:4x4"),
            "alltoall",
            "what its 8 ranks send to 8 others must leave 8 ranks over 8 GPU -> GPU links of 50 GB/s: "
            "at most 100 GB/s, tight",
        ),
        (
            fabric("g0-s0:10, g1-s0:10, g2-s0:10, g3-s0:10", shared="0 1: 4"),
            "gather",
            "3 shards must enter rank g0 over the link s0 -> g0 of 10 GB/s, held to 4 GB/s by a shared capacity: "
            "at most 5.33333 GB/s, not tight: prices prove 4 GB/s",
        ),
        (
            fabric("g0-s0:10, g0-s0:10, g1-s0:10, g2-s0:10, g3-s0:10", shared="0 1: 4"),
            "scatter",
            "3 shards must leave rank g0 over 2 GPU -> s links of 10 GB/s, 4 GB/s together: "
            "at most 5.33333 GB/s, tight",
        ),
        (
            fabric("g0-s0:9, g1-s0:9, g2-s1:9, g3-s1:9, g4-s1:9, s0-s1:4", boxes="a: g0 g1; b: g2 g3; c: g4"),
            "broadcast",
            "the message must leave box a over the link s0 -> s1 of 4 GB/s: at most 4 GB/s, tight",
        ),
    ],
)
def test_boxes_and_links_in_words(topology: Topology, collective: str, text: str) -> None:
    """Whole boxes, ranks one by one, and many of them; NICs, links alike, links unlike, links that share."""
    assert cut_text(plan(topology, collective, stop=Gap(1e-7))) == text


def test_boxes_and_ranks_of_a_side_are_named_together() -> None:
    """Half of the ranks: a box of two, a lone rank, and two boxes beyond."""
    cables = "g0-s0:9, g1-s0:9, g2-s0:9, g3-s1:9, g4-s1:9, g5-s1:9, g6-s1:9, s0-s1:2"
    topology = fabric(cables, boxes="a: g0 g1; b: g2; c: g3 g4; d: g5 g6")
    text = cut_text(plan(topology, "allreduce"))
    assert text == (
        "the sum of its 3 ranks must leave box a and rank g2 over the link s0 -> s1 of 2 GB/s: at most 2 GB/s, tight"
    )


def test_several_groups_are_counted_in_bytes() -> None:
    """Three groups over one cable, of which two cross it, then one."""
    topology = fabric("g0-s0:9, g1-s0:9, g2-s1:9, g3-s1:9, s0-s1:2", boxes="a: g0 g1; b: g2 g3")
    g0, g1, g2, g3 = (topology.index[f"g{i}"] for i in range(4))
    groups = (
        Group("x", "allgather", (g0, g2), 2**30),
        Group("y", "broadcast", (g1, g3), 2**29, g1),
        Group("z", "allreduce", (g2, g3), 2**20),
    )
    cable = "over the link s0 -> s1 of 2 GB/s"
    assert cut_text(plan(topology, Workload(groups))) == (
        f"1 GiB of 2 groups must leave box a {cable}: at most 2 GB/s, tight"
    )
    assert cut_text(plan(topology, Workload(groups[1:]))) == (
        f"512 MiB of 1 group must leave rank g1 {cable}: at most 2 GB/s, tight"
    )
    total = Workload(groups, Objective.TOTAL)
    assert cut_text(plan(topology, total)) is None


def test_a_demand_matrix_is_counted_in_bytes() -> None:
    """What a row sends across the cable, or all that a column hears."""
    topology = fabric("g0-s0:10, g1-s0:10, g2-s0:10")
    cells = (0, 2**20, 2**21, 0, 0, 2**20, 0, 0, 2**22)
    work = Workload((Group("all", "alltoallv", topology.ranks[:1] + topology.ranks[1:], 3 * 2**20, parts=cells),))
    text = cut_text(plan(topology, work))
    assert text is not None
    assert text.startswith("3 MiB must leave rank g0 over the link g0 -> s0 of 10 GB/s: at most ")


def test_a_cut_below_the_bound_says_so() -> None:
    """A plan that was given worse prices than its cut has."""
    made = plan(SLOW_UP, "allgather")
    worse = replace(made, bound=2 * made.bound)
    assert str(cut_text(worse)).endswith("at most 6 GB/s, less than the 12 GB/s that prices prove")
