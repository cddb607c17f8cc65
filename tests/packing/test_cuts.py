"""Cuts of every collective: the least of all node sets, bounds on every plan, and optima where forwarders are Eulerian."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from dualcoll._api import check, plan
from dualcoll.collectives.catalogue import ROOTED
from dualcoll.collectives.workload import Group, Objective, Workload
from dualcoll.diagnosis.cut_words import cut_text
from dualcoll.packing.collective import packing_problem
from dualcoll.packing.column_generation import column_generation
from dualcoll.packing.cuts import cut_prices, least_cut
from dualcoll.plans.model import Cut
from dualcoll.progress import Gap, Meter
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Kind, Link, Node, Topology
from tests.packing.exact import FABRIC_KINDS, random_case
from tests.packing.fabrics import GB, fabric
from tests.packing.problems import one_group

__all__ = ["leaving"]

COLLECTIVES = ("allreduce", "allgather", "reducescatter", "broadcast", "reduce", "gather", "scatter", "alltoall")


def leaving(topology: Topology, side: set[int]) -> Fraction:
    """What can leave a node set, by the words of docs/model.md §6."""
    out = {e for e, link in enumerate(topology.links) if link.tail in side and link.head not in side}
    total = Fraction(0)
    for row in topology.shared:
        under = out.intersection(row.links)
        if Fraction(row.capacity) < sum(Fraction(topology.links[e].capacity) for e in under):
            total += Fraction(row.capacity)
            out -= under
    return total + sum(Fraction(topology.links[e].capacity) for e in out)


def _rate(topology: Topology, workload: Workload, side: Sequence[int]) -> Fraction | None:
    """The rate that the side allows, if anything crosses it."""
    inside = frozenset(side)
    parts = [d.part for d in workload.demands() if d.crosses(inside, workload.groups[d.group].ranks)]
    return workload.size * leaving(topology, set(side)) / sum(parts) if parts else None


def _by_enumeration(topology: Topology, workload: Workload) -> Fraction:
    nodes = range(len(topology.nodes))
    sides = (side for size in nodes for side in itertools.combinations(nodes, size))
    return min(rate for side in sides if (rate := _rate(topology, workload, side)) is not None)


def _found(topology: Topology, workload: Workload) -> Cut:
    """The cut, whose side allows no more than it says, and no less but for rounding."""
    cut = least_cut(topology, fabric_arrays(topology), workload)
    assert cut is not None
    rate = _rate(topology, workload, cut.side)
    assert rate is not None
    assert rate <= Fraction(cut.rate) <= rate * (1 + Fraction(1, 2**50))
    return cut


def _uneven(topology: Topology, collective: str, seed: int) -> Workload:
    """A collective over all ranks but perhaps one, its parts uneven where it has any."""
    ranks = topology.ranks[:-1] if seed % 2 and len(topology.ranks) > 3 else topology.ranks
    random = np.random.default_rng(seed)
    root = ranks[seed % len(ranks)] if collective in ROOTED else None
    count = len(ranks) ** 2 if collective == "alltoallv" else len(ranks)
    parts = tuple(random.integers(0 if collective == "alltoallv" else 1, 5, count).tolist())
    if collective in ("allreduce", "broadcast", "reduce", "alltoall"):
        parts = ()
    return Workload((Group("all", collective, ranks, 60 * len(ranks), root, parts),))


@pytest.mark.parametrize("collective", [*COLLECTIVES, "alltoallv"])
@pytest.mark.parametrize("kind", ["switched", "one-way"])
@pytest.mark.parametrize("seed", range(4))
def test_the_least_cut_is_the_least_of_all_node_sets(seed: int, kind: str, collective: str) -> None:
    """Every collective, with uneven parts, against all subsets."""
    topology = random_case(kind, seed)
    workload = _uneven(topology, collective, seed)
    assert _found(topology, workload).rate == pytest.approx(float(_by_enumeration(topology, workload)), rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_least_cut_of_a_mix_is_the_least_of_all_node_sets(seed: int) -> None:
    """Three collectives of different sizes on overlapping groups."""
    topology = random_case("one-way", seed)
    ranks = topology.ranks
    workload = Workload(
        (
            Group("a", "allgather", ranks, 30),
            Group("b", "allreduce", ranks[:2], 50),
            Group("c", "scatter", ranks[1:], 20, ranks[-1]),
        )
    )
    assert _found(topology, workload).rate == pytest.approx(float(_by_enumeration(topology, workload)), rel=1e-9)


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("kind", FABRIC_KINDS)
def test_no_plan_is_above_its_cut(kind: str, collective: str) -> None:
    """The end-point optimum is below it, with every GPU forwarding too, and its own prices prove that."""
    topology = random_case(kind, 4)
    for forward in ("switches", "all"):
        made = plan(topology, collective, forward=forward)
        cut = _found(topology, made.workload)
        assert made.in_network == cut
        assert made.value <= made.bound <= cut.rate * (1 + 2e-9)
        problem = packing_problem(topology, made.workload, made.forwarding)
        assert problem.price(cut_prices(problem, cut) + 1e-9 / problem.capacity.max()).bound <= cut.rate * (1 + 1e-6)


def test_prices_of_a_cut_stand_on_what_limits_it() -> None:
    """Two links out of the side share less than they have, a third does not: the shared capacity is priced instead."""
    topology = fabric("g0>s0:5, g0>s1:6, s0>g1:5, s1>g1:6, g0>g1:2, g1>g0:9", shared="0 1: 4")
    workload = one_group(topology.ranks, "broadcast")
    cut = _found(topology, workload)
    assert (cut.rate, cut.side) == (6 * GB, (0,))
    problem = packing_problem(topology, workload)
    assert np.flatnonzero(cut_prices(problem, cut)).tolist() == [4, 6]


def _eulerian(seed: int) -> Topology:
    """Ranks joined at random by links one way, over switches that as much enters as leaves."""
    random = np.random.default_rng(seed)
    ranks, switches = 2 + seed % 4, 1 + seed % 3
    amount = np.zeros((ranks + switches, ranks + switches), np.int64)
    amount[np.arange(ranks), (np.arange(ranks) + 1) % ranks] = random.integers(1, 4, ranks)  # everybody is reached
    for _ in range(2 + 2 * switches):
        # a walk over switches between two ranks lets out of each as much as in
        width = int(random.integers(1, 4))
        over = random.permutation(np.arange(ranks, ranks + switches))[: 1 + int(random.integers(switches))].tolist()
        stops = [int(random.integers(ranks)), *over, int(random.integers(ranks))]
        for a, b in itertools.pairwise(stops):
            amount[a, b] += width
    np.fill_diagonal(amount, 0)
    nodes = [Node(f"g{i}", Kind.GPU) for i in range(ranks)] + [Node(f"s{i}", Kind.SWITCH) for i in range(switches)]
    links = [Link(int(a), int(b), float(amount[a, b]) * GB) for a, b in np.argwhere(amount)]
    return Topology(tuple(nodes), tuple(links))


@pytest.mark.parametrize("block", range(20))
def test_the_cut_is_the_optimum_where_forwarders_are_eulerian(block: int) -> None:
    """200 one-way fabrics: no plan is better than the cut, and one is as good (Edmonds, with the switches split off)."""
    for seed in range(10 * block, 10 * block + 10):
        topology = _eulerian(seed)
        through = np.zeros(len(topology.nodes))
        for link in topology.links:
            through[[link.tail, link.head]] += -link.capacity, link.capacity
        assert not through[topology.ranks[-1] + 1 :].any()
        for collective in ("allgather", "broadcast") if seed % 4 == 0 else ("allgather",):
            workload = one_group(topology.ranks, collective)
            packing, _, _ = column_generation(packing_problem(topology, workload), Meter(Gap(1e-9)))
            assert packing.value == pytest.approx(_found(topology, workload).rate, rel=1e-8)


@pytest.mark.parametrize(
    ("topology", "collective", "cut", "truth", "words"),
    [
        (
            fabric("g0-s0:10, g1-s0:10, g2-s0:10, g3-s0:5/10"),
            "allgather",
            40 / 3,
            35 / 3,
            "3 shards must enter rank g0 over the link s0 -> g0 of 10 GB/s: at most 13.3333 GB/s, "
            "not tight: prices prove 11.6667 GB/s",
        ),
        (
            fabric("g0>s0:1, s0>g1:1, s0>g2:1"),
            "broadcast",
            1.0,
            0.5,
            "the message must leave rank g0 over the link g0 -> s0 of 1 GB/s: at most 1 GB/s, "
            "not tight: prices prove 500 MB/s",
        ),
    ],
    ids=["a slow uplink", "a switch that cannot copy"],
)
def test_cuts_that_are_not_tight(topology: Topology, collective: str, cut: float, truth: float, words: str) -> None:
    """35/12 a root against 10/3, and 1/2 against 1: an end point's plan cannot do what a switch that copies can."""
    made = plan(topology, collective)
    check(made)
    assert _found(topology, made.workload).rate == pytest.approx(cut * GB)
    assert made.value == pytest.approx(truth * GB, rel=1e-8)
    assert made.bound == pytest.approx(made.value, rel=1e-8)
    assert cut_text(made) == words


def test_a_total_has_no_cut_and_nothing_has_none() -> None:
    """A group may get nothing, so no single cut limits the sum; nothing crosses where all stays."""
    topology = fabric("g0-g1:1, g1-g2:2")
    groups = (Group("a", "allreduce", (0, 1), 8), Group("b", "allreduce", (1, 2), 8))
    assert least_cut(topology, fabric_arrays(topology), Workload(groups, Objective.TOTAL)) is None
    assert _found(topology, Workload(groups)).rate == pytest.approx(GB)
    nothing = Workload((Group("all", "alltoallv", (0, 1), 8, parts=(8, 0, 0, 8)),))
    assert least_cut(topology, fabric_arrays(topology), nothing) is None


def test_an_inward_cut_counts_as_much_as_an_outward_one() -> None:
    """A rank that sends at 10 but hears at 2 limits everything to 2; the side is everybody else."""
    topology = fabric("g0-s0:10, g1-s0:10, g2-s0:10/2")
    cut = _found(topology, one_group(topology.ranks))
    assert cut.rate == pytest.approx(2 * GB)
    assert {topology.nodes[i].name for i in cut.side} == {"g0", "g1", "s0"}


@pytest.mark.parametrize(
    ("spec", "collective", "rate"),
    [
        ("dgx-h100", "allreduce", 450.0),
        ("dgx-h100:boxes=2", "allreduce", 400.0),
        ("dgx-h100:boxes=2", "allgather", 500 * 16 / 15),
        ("dgx-h100:boxes=16", "reducescatter", 400 * 16 / 15),
        ("line:6", "alltoall", 50 * 6 / 9),
        ("torus:6x6", "alltoall", 50 * 12 * 36 / 18**2),
        ("dgx-h100:boxes=8,network=leaf-spine,oversubscription=2", "alltoall", 50 * 4 * 64 / (8 * 56)),
    ],
)
def test_known_cuts(spec: str, collective: str, rate: float) -> None:
    """What leaves a GPU, a box, half of a line, of a torus, or a leaf with half of the uplinks."""
    topology = catalog(spec)
    assert _found(topology, one_group(topology.ranks, collective)).rate == pytest.approx(rate * GB)


def test_the_cut_of_many_groups_counts_what_all_of_them_send() -> None:
    """Eight groups of stride 8 over four boxes: 8 shards a group of 4 leave every box at once, over 8 rails."""
    topology = catalog("dgx-h100:boxes=4")
    ranks = topology.ranks
    groups = tuple(Group(f"rail {i}", "allgather", ranks[i::8], 1 << 20) for i in range(8))
    assert _found(topology, Workload(groups)).rate == pytest.approx(50 * 4 / 3 * GB)


def test_spraying_has_the_same_cuts() -> None:
    """They hold for whatever routes there are, and the sprayed plan stays below."""
    topology = catalog("fat-tree:k=4")
    made = plan(topology, "allgather", routing="spray")
    assert made.routing == Routing(RoutingKind.SPRAY)
    assert made.in_network == _found(topology, made.workload)
    assert made.value <= made.in_network.rate
