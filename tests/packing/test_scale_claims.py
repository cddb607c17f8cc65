"""What is claimed of fabrics of 16 to 128 ranks, held against second methods and against each other."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra, minimum_spanning_tree

from dualcoll._api import check, plan
from dualcoll.packing.class_prices import class_prices
from dualcoll.packing.collective import Columns
from dualcoll.packing.column_generation import column_generation
from dualcoll.progress import Gap, Meter, Outcome, Seconds
from dualcoll.testing import degrade
from dualcoll.topology.arrays import reversal
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Forwarding, Kind, Link, Node, Topology, duplex
from dualcoll.topology.symmetry import link_classes
from tests.packing.exact import column_optimum, flow_optimum
from tests.packing.fabrics import GB
from tests.packing.problems import allreduce_problem

DEGRADED = (  # fabric, how many degraded copies
    ("rail:2x8", 14),
    ("rail:4x4", 14),
    ("rail:4x8", 10),
    ("dgx-h100:boxes=4,network=leaf-spine", 12),
    ("dgx-h100:boxes=3,network=fat-tree", 12),
    ("dgx-h100:boxes=4,network=dragonfly", 12),
    ("dgx-a100:boxes=2,network=dual-plane", 12),
    ("dgx-b200:boxes=4,network=single-switch", 8),
    ("fat-tree:k=4", 14),
    ("dragonfly:p=2,groups=5", 10),
    ("torus:4x4", 14),
    ("dgx-1v:boxes=2", 12),
    ("ndv2:boxes=3", 6),
    ("p4d:boxes=2", 10),
    ("mi250:boxes=2", 10),
    ("mi300x:boxes=2", 10),
    ("p5:boxes=2", 6),
    ("torus:8x8", 3),
    ("fat-tree:k=6", 3),
    ("dgx-h100:boxes=8", 3),
    ("dgx-h100:boxes=16", 3),
    ("fat-tree:k=8", 1),
    ("p4d:boxes=16", 1),
)
FABRICS = tuple((spec, seed) for spec, copies in DEGRADED for seed in range(copies))


def _degraded(spec: str, seed: int) -> Topology:
    """Network cables slowed down; of GPUs joined directly, which have none, every cable may be."""
    topology = catalog(spec)
    if any(node.kind is Kind.SWITCH for node in topology.nodes) or topology.shared:
        return degrade(topology, seed, 0.3)
    partner = reversal(topology)
    assert partner is not None
    rng = np.random.default_rng(seed)
    factor = np.where(rng.random(partner.size) < 0.3, rng.uniform(0.2, 1.0, partner.size), 1.0)
    factor = factor[np.minimum(np.arange(partner.size), partner)]
    links = (replace(link, capacity=link.capacity * x) for link, x in zip(topology.links, factor.tolist(), strict=True))
    return replace(topology, links=tuple(links))


def test_there_are_two_hundred_degraded_fabrics() -> None:
    """As many as are promised, all different."""
    assert len(set(FABRICS)) == 200


@pytest.mark.parametrize(("spec", "seed"), FABRICS)
def test_degraded_fabrics_are_planned_to_the_optimum_and_proved_exactly(spec: str, seed: int) -> None:
    """Exact arithmetic, in code of its own, proves value and bound, and with them that the optimum lies between."""
    made = plan(_degraded(spec, seed), stop=Gap(1e-6) | Seconds(20))
    proof = check(made)
    assert 16 <= len(made.participants) <= 128
    assert made.value <= proof.rate <= proof.bound <= made.bound
    assert made.gap <= 1e-6


def _scipy_optimum(topology: Topology) -> tuple[float, float]:
    """Value and bound in bytes/s by cutting planes on scipy's shortest paths, spanning trees and LP.

    For symmetric fabrics of GPUs and switches. That GPUs forward nothing plays no part: a way over a terminal is never an
    edge of a minimum spanning tree.
    """
    partner = reversal(topology)
    assert partner is not None
    cables = [e for e in range(partner.size) if e < partner[e]]
    capacity = np.array([topology.links[e].capacity for e in cables]) / GB
    ends = [(topology.links[e].tail, topology.links[e].head) for e in cables]
    best, prices, table = np.inf, 1.0 / capacity, np.zeros((0, capacity.size))
    value, stable = 0.0, prices / (prices @ capacity)
    for _ in range(2000):
        loads = _least_tree(len(topology.nodes), ends, prices, topology.ranks)
        bound = float(capacity @ prices / (loads @ prices))
        if bound < best:
            best, stable = bound, prices / (prices @ capacity)
        if value >= best * (1 - 1e-7):
            break
        table = np.vstack([table, loads])
        solution: Any = linprog(capacity, A_ub=-table, b_ub=-np.ones(len(table)), method="highs")
        value = float(solution.fun)
        prices = 0.5 * solution.x / value + 0.5 * stable + 1e-9 / capacity
    return value * GB, best * GB


def _least_tree(nodes: int, ends: list[tuple[int, int]], prices: np.ndarray, ranks: tuple[int, ...]) -> np.ndarray:
    """How often each cable is used by a minimum spanning tree of the ranks' distances, float64 (K,)."""
    wire: dict[tuple[int, int], int] = {}
    for k, (a, b) in enumerate(ends):  # of parallel cables the cheapest
        pair = min(a, b), max(a, b)
        if pair not in wire or prices[k] < prices[wire[pair]]:
            wire[pair] = k
    a, b = np.array(list(wire)).T
    graph = coo_array(
        (prices[list(wire.values())], (a, b)), shape=(nodes, nodes)
    ).tocsr()  # dense ones lose tiny prices
    distance, before = dijkstra(graph, directed=False, indices=list(ranks), return_predecessors=True)
    tree = minimum_spanning_tree(coo_array(distance[:, list(ranks)]).tocsr()).tocoo()
    loads = np.zeros(len(ends))
    for i, j in zip(tree.row.tolist(), tree.col.tolist(), strict=True):
        x = ranks[j]
        while x != ranks[i]:
            y = int(before[i, x])
            loads[wire[min(x, y), max(x, y)]] += 1
            x = y
    return loads


SECOND = ("rail:2x8", "rail:4x4", "fat-tree:k=4", "torus:4x4", "torus:3x6", "mi300x:boxes=2", "dgx-a100:boxes=2")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("spec", SECOND)
def test_the_optimum_of_larger_fabrics_is_that_of_scipy(spec: str, seed: int) -> None:
    """Cutting planes with nothing of the planner's in them end at the same number."""
    topology = _degraded(spec, seed)
    value, bound = _scipy_optimum(topology)
    made = plan(topology)
    assert value == pytest.approx(bound, rel=1e-6)
    assert made.value <= bound * (1 + 1e-9)
    assert made.bound >= value * (1 - 1e-6)
    assert made.value == pytest.approx(value, rel=1e-6)


METHODS = (
    "dgx-1v",
    "dgx-2",
    "dgx-a100:boxes=2",
    "dgx-h100:boxes=2",
    "dgx-b200:boxes=2,network=dual-plane",
    "gb200-nvl72",
    "mi250",
    "mi250:boxes=2",
    "mi300x",
    "mi300x:boxes=2",
    "ndv2:boxes=2",
    "ndv4:boxes=2",
    "ndv5:boxes=4",
    "p4d:boxes=2",
    "p5:boxes=2",
    "dgx-h100:boxes=4,network=leaf-spine",
    "dgx-h100:boxes=4,network=fat-tree",
    "dgx-h100:boxes=4,network=dragonfly",
    "fat-tree:4",
    "dragonfly:2,groups=5",
    "torus:4x4",
    "torus:8x8",
    "mesh:3x3",
    "hypercube:4",
    "ring:16",
    "line:8",
    "full:8",
    "star:16",
    "dgx-h100:boxes=16",
    "fat-tree:k=8",
)


@pytest.mark.parametrize(
    ("spec", "degraded"),
    [*((spec, False) for spec in METHODS), ("dgx-h100:boxes=16", True), ("fat-tree:k=6", True), ("mi250", True)],
)
def test_all_methods_agree_within_their_gaps(spec: str, degraded: bool) -> None:
    """Column generation, the paper's algorithm, pairs and simple trees: no value is above any bound."""
    topology = _degraded(spec, 0) if degraded else catalog(spec)
    made = plan(topology, stop=Gap(1e-6) | Seconds(20))
    paper = plan(topology, stop=Gap(0.05) | Seconds(0.1), method="garg-konemann")
    assert made.gap <= 1e-6
    assert paper.outcome == "time" or paper.gap <= 0.05
    values, bounds = [made.value, paper.value], [made.bound, paper.bound]
    for columns in (Columns.PAIR, Columns.SIMPLE):
        problem = allreduce_problem(topology, topology.ranks, columns=columns)
        packing, _, _ = column_generation(problem, Meter(Gap(1e-6) | Seconds(20)))
        assert packing.value >= made.value * (1 - 1e-6)
        values.append(packing.value)
        bounds.append(packing.bound)
    assert max(values) <= min(bounds) * (1 + 1e-9)


class _Interrupting(Meter):
    """Ctrl-C during the step whose number is given."""

    def __init__(self, step: int) -> None:
        super().__init__(Gap(0.0))
        self._left = step

    def outcome(self, iterations: int, value: float, bound: float) -> Outcome | None:
        self._left -= 1
        if self._left == 0:
            self.interrupt()
        return super().outcome(iterations, value, bound)


STAGES: dict[str, tuple[Topology, dict[str, Any]]] = {
    "spread": (degrade(catalog("dgx-h100:boxes=4"), 1), {}),
    "spread, few trees": (degrade(catalog("dgx-h100:boxes=4"), 1), {"max_trees": 4}),
    "spread, shallow": (degrade(catalog("dgx-h100:boxes=4"), 1), {"max_depth": 3}),
    "priced": (degrade(catalog("rail:2x8"), 1, symmetric=False), {}),
    "priced, shallow": (degrade(catalog("rail:2x8"), 1, symmetric=False), {"max_depth": 4}),
    "shared": (catalog("p4d:boxes=2"), {"pareto": True}),
}


@pytest.mark.parametrize("name", STAGES)
def test_an_interrupt_at_any_stage_leaves_a_proved_plan(name: str) -> None:
    """During the first steps one by one, then further apart up to the end, LP included."""
    topology, limits = STAGES[name]
    step = 1
    outcomes: set[Outcome] = set()
    while step < 600 and not {Outcome.OPTIMAL, Outcome.LIMITED} & outcomes:
        made = plan(topology, meter=_Interrupting(step), **limits)
        check(made)
        assert 0 < made.value <= made.bound
        assert len(made.trees) <= limits.get("max_trees", 10_000)
        if "max_trees" not in limits:  # few trees are said to be limited even then
            outcomes.add(made.outcome)
        step += 1 if step < 5 else step // 2
    assert outcomes <= {Outcome.INTERRUPTED, Outcome.OPTIMAL, Outcome.LIMITED}


@pytest.mark.parametrize("seconds", [1e-9, 0.003, 0.01, 0.03])
@pytest.mark.parametrize("name", STAGES)
def test_a_time_limit_at_any_stage_leaves_a_proved_plan(name: str, seconds: float) -> None:
    """Over at once, in the start, in the LP."""
    topology, limits = STAGES[name]
    made = plan(topology, stop=Seconds(seconds) | Gap(0.0), **limits)
    check(made)
    assert 0 < made.value <= made.bound
    assert made.outcome in (Outcome.TIME, Outcome.OPTIMAL, Outcome.LIMITED)


def _cubic(graph: nx.Graph[int], *, switches: bool) -> Topology:
    """Unit cables along the graph's edges between GPUs, or between switches with a GPU each."""
    n = len(graph)
    nodes = [Node(f"g{i}", Kind.GPU, box=f"b{i}") for i in range(n)]
    cables = [(a, b) for a, b in graph.edges]
    if switches:
        nodes += [Node(f"s{i}", Kind.SWITCH) for i in range(n)]
        cables = [(a + n, b + n) for a, b in cables] + [(i, i + n) for i in range(n)]
    links = itertools.chain.from_iterable(duplex(Link(a, b, GB)) for a, b in cables)
    return Topology(tuple(nodes), tuple(links))


def _bridged() -> nx.Graph[int]:
    """Two copies of K4 with an edge subdivided, the two new vertices joined: cubic, with a bridge."""
    half = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 4), (3, 4)]
    return nx.Graph([*half, *((a + 5, b + 5) for a, b in half), (4, 9)])


def _ladder() -> nx.Graph[int]:
    """Cubic on eight vertices, with triangles at some of them only."""
    return nx.Graph([(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 5), (3, 6), (4, 5), (4, 7), (5, 6), (6, 7), (0, 7)])


def _frucht() -> nx.Graph[int]:
    """Cubic on twelve vertices, without any symmetry (Frucht 1949)."""
    graph: nx.Graph[int] = nx.LCF_graph(12, [-5, -2, -4, 2, 5, -2, 2, 5, -2, -5, 4, 2], 1)
    return graph


CUBIC = {"frucht": _frucht, "bridged": _bridged, "ladder": _ladder}


@pytest.mark.parametrize("switches", [False, True], ids=["direct", "switches"])
@pytest.mark.parametrize("name", CUBIC)
def test_classes_coarser_than_orbits_leave_the_bound_true(name: str, switches: bool) -> None:
    """Regular graphs that look the same everywhere to colour refinement and are not: one class, a true bound, the optimum."""
    graph = CUBIC[name]()
    assert set(dict(graph.degree).values()) == {3}
    orbits = _vertex_orbits(graph)
    assert orbits > 1
    topology = _cubic(graph, switches=switches)
    problem = allreduce_problem(topology, topology.ranks)
    (classes,) = problem.classes
    assert classes.max() + 1 == (3 if switches else 1)
    optimum = _scipy_optimum(topology)[0]
    _, bound, _ = class_prices(problem, classes)
    assert bound >= optimum * (1 - 1e-9)
    made = plan(topology)
    proof = check(made)
    assert proof.rate <= proof.bound
    assert made.value == pytest.approx(optimum, rel=1e-6)
    assert made.bound == pytest.approx(optimum, rel=1e-6)
    assert made.value <= bound * (1 + 1e-9)


def _vertex_orbits(graph: nx.Graph[int]) -> int:
    """How many orbits the graph's automorphisms have on its vertices."""
    images = nx.utils.UnionFind(graph)
    for mapping in itertools.islice(nx.isomorphism.GraphMatcher(graph, graph).isomorphisms_iter(), 500):
        for vertex, image in mapping.items():
            images.union(vertex, image)
    return len(list(images.to_sets()))


def test_class_prices_of_a_bridged_graph_are_far_from_its_optimum() -> None:
    """Equal prices say 15/9 where the bridge allows 1, so the case is a real one."""
    topology = _cubic(_bridged(), switches=False)
    problem = allreduce_problem(topology, topology.ranks)
    assert class_prices(problem, problem.classes[0])[1] == pytest.approx(15 / 9 * GB)
    assert plan(topology).value == pytest.approx(GB)


@pytest.mark.parametrize("forwarding", Forwarding)
def test_regular_graphs_by_routes_and_flows(forwarding: Forwarding) -> None:
    """The eight-vertex one, GPUs forwarding or not, against two methods that enumerate routes."""
    topology = _cubic(_ladder(), switches=False)
    made = plan(topology, forward=str(forwarding))
    check(made)
    assert made.value == pytest.approx(column_optimum(topology, topology.ranks, forwarding), rel=1e-6)
    if forwarding is Forwarding.SWITCHES:
        assert made.value == pytest.approx(flow_optimum(topology, topology.ranks), rel=1e-6)


def test_equal_capacities_are_one_class_whatever_the_wiring() -> None:
    """Colour refinement cannot tell a hexagon from two triangles: both are one class."""
    ring = [(i, (i + 1) % 6) for i in range(6)]
    triangles = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]
    for cables in (ring, triangles):
        nodes = tuple(Node(f"g{i}", Kind.GPU, box=f"b{i}") for i in range(6))
        links = tuple(Link(a, b, GB) for pair in cables for a, b in (pair, pair[::-1]))
        assert link_classes(Topology(nodes, links), np.ones(6, np.int64), by_capacity=True).max() == 0
