from __future__ import annotations

from collections.abc import Callable, Iterator

import networkx as nx
import numpy as np
import pytest

from dualcoll._api import plan
from dualcoll.collectives.workload import Group, Objective, Workload
from dualcoll.diagnosis.timing import latency_bound, timing, tree_depth
from dualcoll.plans.model import Phase, Plan, Tree
from dualcoll.testing import random_fabric
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology
from tests.packing.exact import FABRIC_KINDS, random_case
from tests.packing.fabrics import fabric
from tests.packing.problems import one_group

COLLECTIVES = ("allreduce", "allgather", "reducescatter", "broadcast", "reduce", "gather", "scatter", "alltoall")


def _ways(tree: Tree, weigh: Callable[[int], float]) -> Iterator[float]:
    """The longest way between the root and a rank in each phase, by networkx, edges weighed by number."""
    for phase in Phase:
        graph: nx.Graph[int] = nx.Graph()
        for k in np.flatnonzero(tree.phase == phase).tolist():
            graph.add_edge(*tree.edges[k].tolist(), weight=weigh(k))
        if graph:
            yield float(max(nx.single_source_dijkstra_path_length(graph, tree.root).values()))


def _slowest(topology: Topology, tree: Tree, edge: int) -> float:
    """The latency of the slowest way over the links of an edge; of a single path there is one."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    for e in tree.route(edge).tolist():
        link = topology.links[e]
        before = graph.get_edge_data(link.tail, link.head, {"weight": 0.0})["weight"]
        graph.add_edge(link.tail, link.head, weight=max(before, link.latency))
    tail, head = tree.edges[edge].tolist()
    return float(max(nx.path_weight(graph, way, "weight") for way in nx.all_simple_paths(graph, tail, head)))


def _fill(topology: Topology, tree: Tree) -> float:
    return sum(_ways(tree, lambda edge: _slowest(topology, tree, edge)))


def _assert_times(made: Plan) -> None:
    found = timing(made)
    depths = [max(_ways(tree, lambda _: 1.0)) for tree in made.trees]
    assert found.fill == pytest.approx(max(_fill(made.topology, tree) for tree in made.trees))
    assert found.depth == max(depths)
    assert [tree_depth(tree, len(made.topology.nodes)) for tree in made.trees] == depths


def _uneven(topology: Topology, seed: int) -> Topology:
    """The same fabric with latencies of its own for every link."""
    graph = topology.to_networkx()
    random = np.random.default_rng(seed)
    for *_, data in graph.edges(data=True):
        data["latency"] = float(random.integers(1, 100)) * 1e-7
    return Topology.from_networkx(graph)


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(("kind", "seed"), [("switched", 3), ("one-way", 2), ("boxes", 1)])
def test_fill_and_depth_are_the_longest_ways_of_any_tree(kind: str, seed: int, collective: str) -> None:
    """Up to the root, down from it, both, or along a path, in latencies and in logical edges."""
    _assert_times(plan(_uneven(random_case(kind, seed), seed), collective))


@pytest.mark.parametrize("routing", ["spray", "spray-cables", "ecmp"])
@pytest.mark.parametrize("collective", ["allreduce", "allgather", "alltoall"])
def test_of_sprayed_packets_the_slowest_counts(collective: str, routing: str) -> None:
    """Every way over the links of a logical edge is listed by networkx."""
    _assert_times(plan(_uneven(catalog("torus:3x3"), 1), collective, routing=routing))
    _assert_times(plan(_uneven(random_fabric(5, 5, 4, symmetric=False), 1), collective, routing=routing))


def test_times_of_a_line() -> None:
    """Four ranks in a line, rooted in its middle: 2 hops up, 2 down; the bound is the 3 hops from end to end."""
    made = plan(catalog("line:4,bandwidth=1GB/s,latency=2us"), size="1GB")
    found = timing(made)
    assert found.steady == pytest.approx(1.0)
    assert found.fill == pytest.approx(8e-6)
    assert found.total == pytest.approx(1.0 + 8e-6)
    assert found.latency_bound == pytest.approx(6e-6)
    assert found.depth == 2
    assert not found.small


@pytest.mark.parametrize(("size", "small"), [(4_000, True), (7_900, True), (8_100, False), ("1MB", False)])
def test_a_message_is_small_once_latency_takes_half_its_time(size: int | str, small: bool) -> None:
    """8 us of latency against size over 1 GB/s."""
    made = plan(catalog("line:4,bandwidth=1GB/s,latency=2us"), size=size)
    assert timing(made).small is small


def test_steady_is_the_slowest_group_that_has_a_rate() -> None:
    """Two pairs over one cable each and a third over both: in total the third gets nothing, and is not waited for."""
    topology = fabric("g0-g1:2, g2-g3:4, g1-g2:1")
    pairs = [(0, 1), (2, 3), (0, 3)]
    names = [[topology.index[f"g{i}"] for i in pair] for pair in pairs]
    groups = tuple(Group(f"pair {k}", "allreduce", tuple(pair), 10**9) for k, pair in enumerate(names))
    total = plan(topology, Workload(groups, Objective.TOTAL), forward="all")
    assert [rate / 1e9 for rate in total.group_rates()] == pytest.approx([2.0, 4.0, 0.0])
    assert timing(total).steady == pytest.approx(0.5)
    slowest = plan(topology, Workload(groups), forward="all")
    assert slowest.group_rates() == pytest.approx((1e9,) * 3)
    assert timing(slowest).steady == pytest.approx(1.0)


def test_latency_bound_lets_everything_forward_and_takes_the_worst_pair() -> None:
    """The quick way over an idle GPU counts; the slowest of all ordered pairs decides."""
    topology = fabric("g0-x0:1, x0-g1:1, g0>s0:9, s0>g1:9, g1>g2:1, g2-s0:1", latency=1e-6)
    # g0 -> g1 takes 2, g1 -> g2 takes 1, g2 -> g0 takes s0, g1, x0 on the way: 4
    assert latency_bound(topology, one_group(topology.ranks)) == pytest.approx(4e-6)
    assert latency_bound(topology, one_group(topology.ranks[:2])) == pytest.approx(2e-6)


@pytest.mark.parametrize(
    ("collective", "root", "hops"),
    [("broadcast", "g0", 3), ("broadcast", "g1", 2), ("scatter", "g0", 3), ("reduce", "g0", 1), ("gather", "g1", 2)],
)
def test_latency_bound_of_a_root_counts_the_ways_that_its_data_takes(collective: str, root: str, hops: int) -> None:
    """On a one-way ring of four the way out is not the way back."""
    topology = fabric("g0>g1:1, g1>g2:1, g2>g3:1, g3>g0:1, g1>g0:1, g2>g0:1", latency=1e-6)
    work = one_group(topology.ranks, collective, root=topology.index[root])
    assert latency_bound(topology, work) == pytest.approx(hops * 1e-6)


def test_latency_bound_counts_pairs_that_exchange_data() -> None:
    """Two groups far apart: nobody waits for the other group's ranks, nor for cells of no bytes."""
    topology = fabric("g0-g1:1, g1-g2:1, g2-g3:1", latency=1e-6)
    pairs = Workload((Group("a", "allreduce", (0, 1), 8), Group("b", "allgather", (2, 3), 8)))
    assert latency_bound(topology, pairs) == pytest.approx(1e-6)
    cells = [0] * 16
    cells[0 * 4 + 2] = 7
    some = Workload((Group("all", "alltoallv", (0, 1, 2, 3), 7, parts=tuple(cells)),))
    assert latency_bound(topology, some) == pytest.approx(2e-6)


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("kind", FABRIC_KINDS)
def test_no_plan_fills_faster_than_the_latency_bound(kind: str, collective: str) -> None:
    """Every pair that exchanges data is passed by some tree."""
    found = timing(plan(random_case(kind, 2), collective))
    assert found.fill >= found.latency_bound * (1 - 1e-12)
