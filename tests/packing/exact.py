"""Second methods for optima, sharing no code with what they check: routes by enumeration, no trees, scipy.

* :func:`workload_optimum`: by Edmonds' theorem, capacities of logical arcs pack arborescences of total rate λ out of a root
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

from dualcoll.collectives.workload import Demand, Group, Objective, Pattern, Workload
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
    "workload_optimum",
]

GB = 1e9
Floats = NDArray[np.float64]
Route = tuple[int, ...]  # link indices in travelling order
Shares = dict[tuple[int, int], dict[int, float]]  # by node indices: part of the traffic on each link

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
    """Optimum of an AllReduce in bytes/s."""
    group = Group("all", "allreduce", tuple(participants), 2**20)
    return workload_optimum(topology, Workload((group,)), forwarding)


def workload_optimum(
    topology: Topology,
    workload: Workload,
    forwarding: Forwarding = Forwarding.SWITCHES,
    *,
    relay: bool = True,
    shares: Shares | None = None,
) -> float:
    """Optimum in bytes/s: each demand's arcs carry a flow of its rate from its root to every rank (from every rank to its
    root, from its root to its target), and all arcs together are routed within the capacities.

    Args:
        shares: per pair of nodes the part of its traffic on each link, where the network decides; else any allowed routes.
    """
    lp = _FlowProgram(topology)
    goals: dict[int, int] = {}
    for number, group in enumerate(workload.groups):
        if shares is None:
            ways = routes(topology, group.ranks, forwarding)
        else:
            number_of = {node: i for i, node in enumerate(group.ranks)}
            ways = {(number_of[u], number_of[v]): [] for u, v in shares if u in number_of and v in number_of}
        lp.begin_group(len(group.ranks), sorted(ways))
        for demand in (demand for demand in workload.demands() if demand.group == number):
            total = workload.objective is Objective.TOTAL
            goal = goals.setdefault(number if total else 0, -1)
            if goal < 0:
                goal = goals[number if total else 0] = lp.columns(1)[0]
            lp.serve(demand, group, goal, float(demand.part / (group.size if total else workload.size)), relay=relay)
        for arc in sorted(ways):
            if shares is None:
                lp.route(arc, [{e: float(way.count(e)) for e in way} for way in ways[arc]])
            else:
                lp.route(arc, [shares[group.ranks[arc[0]], group.ranks[arc[1]]]])
    return lp.maximum(list(goals.values()))


class _FlowProgram:
    """The LP, grown demand by demand."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.equal, self.below = _Rows(), _Rows()
        self.size = 0
        self.uses: dict[int, list[tuple[int, float]]] = defaultdict(list)

    def columns(self, count: int) -> list[int]:
        self.size += count
        return list(range(self.size - count, self.size))

    def begin_group(self, ranks: int, arcs: list[tuple[int, int]]) -> None:
        self.ranks, self.arcs = range(ranks), arcs
        self.granted: dict[tuple[int, int], list[int]] = defaultdict(list)

    def serve(self, demand: Demand, group: Group, goal: int, part: float, *, relay: bool) -> None:
        """Columns for the rates of a demand, which sum to ``part`` times the goal's."""
        at = {node: i for i, node in enumerate(group.ranks)}
        rates = []
        if demand.pattern is Pattern.SEND:
            assert demand.root is not None
            assert demand.target is not None
            rates = self.columns(1)
            ends = at[demand.root], at[demand.target]
            arcs = [arc for arc in self.arcs if relay or arc == ends]
            self._flow(rates[0], *ends, dict(zip(arcs, self._grant(arcs), strict=True)), own=True)
        else:
            for root in self.ranks if demand.root is None else [at[demand.root]]:
                rates += self.columns(1)
                for outward in (True, False):
                    if demand.pattern is (Pattern.REDUCE if outward else Pattern.BROADCAST):
                        continue
                    grant = dict(zip(self.arcs, self._grant(self.arcs), strict=True))
                    for other in self.ranks:
                        if other != root:
                            source, sink = (root, other) if outward else (other, root)
                            self._flow(rates[-1], source, sink, grant, own=False)
        self.equal.add([(rate, 1.0) for rate in rates] + [(goal, -part)])

    def _grant(self, arcs: list[tuple[int, int]]) -> list[int]:
        granted = self.columns(len(arcs))
        for arc, column in zip(arcs, granted, strict=True):
            self.granted[arc].append(column)
        return granted

    def _flow(self, rate: int, source: int, sink: int, grant: dict[tuple[int, int], int], *, own: bool) -> None:
        """A flow of the rate within the grant; ``own`` if it is all that the grant is for."""
        flow = grant if own else dict(zip(grant, self.columns(len(grant)), strict=True))
        for x in self.ranks:
            if x != sink:
                terms = [(flow[arc], 1.0) for arc in flow if arc[0] == x]
                terms += [(flow[arc], -1.0) for arc in flow if arc[1] == x]
                terms += [(rate, -1.0)] if x == source else []
                if terms:
                    self.equal.add(terms)
        if not own:
            for arc, column in flow.items():
                self.below.add([(column, 1.0), (grant[arc], -1.0)])

    def route(self, arc: tuple[int, int], options: list[dict[int, float]]) -> None:
        """What the arc is granted goes over the options, each a load of links per unit."""
        routed = self.columns(len(options))
        for column, way in zip(routed, options, strict=True):
            for e, load in way.items():
                self.uses[e].append((column, load))
        if self.granted[arc]:
            self.equal.add([(column, 1.0) for column in self.granted[arc]] + [(column, -1.0) for column in routed])

    def maximum(self, goals: list[int]) -> float:
        for e, link in enumerate(self.topology.links):
            self.below.add(self.uses[e], link.capacity / GB)
        for shared in self.topology.shared:
            self.below.add([use for e in shared.links for use in self.uses[e]], shared.capacity / GB)
        solution = _maximise(
            self.below.matrix(self.size),
            np.array(self.below.right),
            goals,
            A_eq=self.equal.matrix(self.size),
            b_eq=np.array(self.equal.right),
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
