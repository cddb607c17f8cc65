"""Second methods for the AllReduce optimum, sharing no code with what they check: routes by enumeration, no trees, scipy.

* :func:`flow_optimum`: by Edmonds' theorem, capacities of logical arcs pack arborescences of total rate λ out of a root exactly
  if every rank can receive a flow of λ from it; so one LP over flows, without any tree, gives the optimum.
* :func:`column_optimum`: column generation on networkx's spanning trees and arborescences.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array

from dualcoll.testing import random_fabric
from dualcoll.topology.model import Forwarding, Kind, Topology
from tests.kernels.graphs import least_arborescence

__all__ = [
    "FABRIC_KINDS",
    "allowed",
    "cheapest_distances",
    "column_optimum",
    "flow_optimum",
    "random_case",
    "random_optimum",
    "routes",
    "routes_between",
]

GB = 1e9
Floats = NDArray[np.float64]
Route = tuple[int, ...]  # link indices in travelling order

CONDITIONAL = (Kind.NIC, Kind.CPU, Kind.PCI)


def allowed(topology: Topology, nodes: Sequence[int], forwarding: Forwarding) -> bool:
    """The policy in words: a route is a stretch in its first node's box, then unconditional forwarders, then a stretch in
    its last node's box, any of them possibly empty; a GPU or host forwards only if all may."""
    kinds = [topology.nodes[x].kind for x in nodes]
    boxes = [topology.nodes[x].box for x in nodes]
    if forwarding is Forwarding.SWITCHES and any(kind in (Kind.GPU, Kind.HOST) for kind in kinds[1:-1]):
        return False
    last = len(nodes) - 1
    for leave in range(last):
        if leave and boxes[leave] != boxes[0]:
            break
        if leave and boxes[0] is None:
            break
        for enter in range(last, leave, -1):
            if enter < last and (boxes[enter] is None or boxes[enter] != boxes[last]):
                break
            if not any(kind in CONDITIONAL for kind in kinds[leave + 1 : enter]):
                return True
    return False


def routes_between(topology: Topology, tail: int, head: int, forwarding: Forwarding) -> list[Route]:
    """Every allowed route without repeated nodes, over every choice of parallel cables."""
    out: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for e, link in enumerate(topology.links):
        out[link.tail][link.head].append(e)
    graph = nx.DiGraph([(link.tail, link.head) for link in topology.links])
    silent = (Kind.GPU, Kind.HOST) if forwarding is Forwarding.SWITCHES else ()
    graph.remove_nodes_from([x for x in graph if x not in (tail, head) and topology.nodes[x].kind in silent])
    found: list[Route] = []
    if tail in graph and head in graph:
        for nodes in nx.all_simple_paths(graph, tail, head):
            if allowed(topology, nodes, forwarding):
                found += itertools.product(*(out[a][b] for a, b in itertools.pairwise(nodes)))
    return found


def routes(
    topology: Topology, participants: Sequence[int], forwarding: Forwarding = Forwarding.SWITCHES
) -> dict[tuple[int, int], list[Route]]:
    """All routes of each ordered pair of participant numbers that has any."""
    pairs = itertools.permutations(range(len(participants)), 2)
    found = {(i, j): routes_between(topology, participants[i], participants[j], forwarding) for i, j in pairs}
    return {pair: ways for pair, ways in found.items() if ways}


def cheapest_distances(ways: dict[tuple[int, int], list[Route]], prices: Floats) -> dict[tuple[int, int], float]:
    """Cost of the cheapest route of each pair."""
    return {pair: min(float(prices[list(way)].sum()) for way in options) for pair, options in ways.items()}


class _Rows:
    """Sparse rows of an LP and their right-hand sides."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, float]] = []
        self.right: list[float] = []

    def add(self, terms: Iterable[tuple[int, float]], right: float = 0.0) -> None:
        self.entries += [(len(self.right), column, value) for column, value in terms]
        self.right.append(right)

    def matrix(self, columns: int) -> Any:
        row, column, value = zip(*self.entries, strict=True)
        return coo_array((value, (row, column)), shape=(len(self.right), columns))


def flow_optimum(
    topology: Topology, participants: Sequence[int], forwarding: Forwarding = Forwarding.SWITCHES
) -> float:
    """Optimum in bytes/s: Σ_r λ_r such that root r's broadcast arcs carry a flow of λ_r to every rank, its reduce arcs one
    from every rank, and all arcs together are routed within the capacities."""
    ways = routes(topology, participants, forwarding)
    arcs = sorted(ways)
    ranks = range(len(participants))
    columns = len(participants)  # λ_r come first
    equal, below = _Rows(), _Rows()
    granted: dict[tuple[int, int], list[int]] = defaultdict(list)
    for root, outward in itertools.product(ranks, (True, False)):
        grant = {arc: columns + k for k, arc in enumerate(arcs)}
        columns += len(arcs)
        for arc in arcs:
            granted[arc].append(grant[arc])
        for other in ranks:
            if other == root:
                continue
            flow = {arc: columns + k for k, arc in enumerate(arcs)}
            columns += len(arcs)
            source = root if outward else other
            sink = other if outward else root
            for x in ranks:
                if x == sink:
                    continue
                terms = [(flow[arc], 1.0) for arc in arcs if arc[0] == x]
                terms += [(flow[arc], -1.0) for arc in arcs if arc[1] == x]
                equal.add([*terms, (root, -1.0)] if x == source else terms)
            for arc in arcs:
                below.add([(flow[arc], 1.0), (grant[arc], -1.0)])
    uses: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for arc in arcs:
        routed = []
        for way in ways[arc]:
            for e in way:
                uses[e].append((columns, 1.0))
            routed.append((columns, -1.0))
            columns += 1
        equal.add([(column, 1.0) for column in granted[arc]] + routed)
    for e, link in enumerate(topology.links):
        below.add(uses[e], link.capacity / GB)
    for shared in topology.shared:
        below.add([use for e in shared.links for use in uses[e]], shared.capacity / GB)
    solution = _maximise(
        below.matrix(columns),
        np.array(below.right),
        range(len(participants)),
        A_eq=equal.matrix(columns),
        b_eq=np.array(equal.right),
    )
    return -float(solution.fun) * GB


def _maximise(matrix: Any, right: Floats, counted: Iterable[int], **more: Any) -> Any:
    """Maximise the sum of the counted variables, none negative, subject to ``matrix @ x <= right``."""
    cost = np.zeros(matrix.shape[1])
    cost[list(counted)] = -1.0
    solution: Any = linprog(cost, A_ub=matrix, b_ub=right, method="highs", **more)
    assert solution.status == 0, solution.message
    return solution


def column_optimum(
    topology: Topology,
    participants: Sequence[int],
    forwarding: Forwarding = Forwarding.SWITCHES,
    *,
    simple: bool = False,
) -> float:
    """Optimum in bytes/s by column generation: simple trees, or pairs of arborescences with a common root."""
    ways = routes(topology, participants, forwarding)
    capacity = np.array([link.capacity for link in topology.links] + [row.capacity for row in topology.shared]) / GB
    table: list[Floats] = []
    prices = 1.0 / capacity
    value = 0.0
    for _ in range(500):
        column, cost = _cheapest(topology, ways, prices, len(participants), simple)
        if table and cost > 1.0 - 1e-9:
            return value * GB
        table.append(column)
        solution = _maximise(np.array(table).T, capacity, range(len(table)))
        value = -float(solution.fun)
        prices = np.maximum(-solution.ineqlin.marginals, 0.0)
    raise AssertionError("column generation did not end")


def _cheapest(
    topology: Topology, ways: dict[tuple[int, int], list[Route]], prices: Floats, n: int, simple: bool
) -> tuple[Floats, float]:
    links = len(topology.links)
    price = prices[:links].copy()
    for row, extra in zip(topology.shared, prices[links:], strict=True):
        price[list(row.links)] += extra
    best = {pair: min(options, key=lambda way: price[list(way)].sum()) for pair, options in ways.items()}
    cost = {pair: float(price[list(way)].sum()) for pair, way in best.items()}
    arcs = _spanning_arcs(cost, n) if simple else min(_pairs(cost, n), key=lambda pair: sum(cost[arc] for arc in pair))
    load = np.zeros(links)
    for arc in arcs:
        np.add.at(load, list(best[arc]), 1.0)
    rows = np.concatenate([load, [load[list(row.links)].sum() for row in topology.shared]])
    return rows, float(price @ load)


def _spanning_arcs(cost: dict[tuple[int, int], float], n: int) -> list[tuple[int, int]]:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from((i, j, cost[i, j] + cost[j, i]) for i, j in cost if i < j)
    tree = nx.minimum_spanning_tree(graph)
    return [arc for i, j in tree.edges for arc in ((i, j), (j, i))]


def _pairs(cost: dict[tuple[int, int], float], n: int) -> Iterable[list[tuple[int, int]]]:
    reverse = {(j, i): price for (i, j), price in cost.items()}
    for root in range(n):
        yield least_arborescence(cost, root) + [(i, j) for j, i in least_arborescence(reverse, root)]


FABRIC_KINDS = {
    "switched": {"symmetric": True},
    "one-way": {"symmetric": False},
    "boxes": {"symmetric": True, "conditional": True},
    "one-way boxes": {"symmetric": False, "conditional": True},
    "shared": {"symmetric": True, "shared": True},
    "one-way shared": {"symmetric": False, "shared": True},
    "shared boxes": {"symmetric": True, "conditional": True, "shared": True},
}


def random_case(kind: str, seed: int) -> Topology:
    """A random fabric of 3 to 5 ranks."""
    return random_fabric(seed, 3 + seed % 3, 1 + seed % 4, **FABRIC_KINDS[kind])


@cache
def random_optimum(kind: str, seed: int) -> float:
    """The optimum of a random case by flows."""
    topology = random_case(kind, seed)
    return flow_optimum(topology, topology.ranks)
