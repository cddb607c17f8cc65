"""What a plan for a similar fabric is worth here: its prices, and its trees, mended where a route is no longer one.

A logical edge whose route is broken or not allowed gives way to the cheapest one that joins the same two parts of its tree.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.packing.column_generation import Start
from dualcoll.packing.oracles.routes import trace_routes
from dualcoll.packing.problem import Column, PackingProblem, RoutedTree, SpreadingOracle
from dualcoll.plans.document import link_keys
from dualcoll.plans.model import Phase, Plan, Tree
from dualcoll.routing.policy_graph import PolicyGraph, policy_graph
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["start_from"]

Ints = NDArray[np.int64]

JITTER = 0.02  # relative; of equally cheap parents, not always the same
SMALL = 1e-6  # of a flat price on every link: a shorter route where the prices do not care


def start_from(
    previous: Plan, topology: Topology, participants: tuple[int, ...], forwarding: Forwarding, problem: PackingProblem
) -> Start:
    """Carry a plan over; nodes go by name, parallel links by order.

    Args:
        previous: made for another fabric, another size of message or another policy. Nothing in it is taken on trust.
        topology, participants, forwarding, problem: what is to be planned now.

    Raises:
        InputError: the plan is for other ranks.
    """
    names = [topology.nodes[i].name for i in participants]
    before = [previous.topology.nodes[i].name for i in previous.participants]
    if set(names) != set(before):
        lacks, extra = set(names) - set(before), set(before) - set(names)
        odd = "; ".join(
            f"it {verb} {', '.join(sorted(ranks)[:5])}" + (", …" if len(ranks) > 5 else "")
            for verb, ranks in (("lacks", lacks), ("also has", extra))
            if ranks
        )
        raise InputError(
            f"the previous plan is for other ranks: {odd}",
            hint="start from a plan of the same ranks, or from none",
        )
    here = {key: e for e, key in enumerate(link_keys(topology))}
    link_of = np.array([here.get(key, -1) for key in link_keys(previous.topology)], np.int64)
    number = {name: k for k, name in enumerate(names)}
    rank_of = np.full(len(previous.topology.nodes), -1, np.int64)
    rank_of[list(previous.participants)] = [number[name] for name in before]
    rows = np.zeros(problem.fold.size)
    kept = link_of >= 0
    rows[link_of[kept]] = previous.link_prices[kept]
    if len(previous.topology.shared) == len(topology.shared):
        rows[problem.fabric.links :] = previous.shared_prices
    prices = np.bincount(problem.fold, rows, minlength=problem.capacity.size) / problem.weight
    if problem.classes and isinstance(problem.oracle, SpreadingOracle):
        return Start(prices=(prices,))  # a spread packing is made faster than trees are mended
    mender = _Mender(policy_graph(topology, participants, forwarding), problem, prices)
    columns = [mender.mended(tree, link_of, rank_of) for tree in previous.trees]
    whole = [(column, tree.rate) for column, tree in zip(columns, previous.trees, strict=True) if column is not None]
    return Start((prices,), tuple(column for column, _ in whole), tuple(rate for _, rate in whole))


class _Mender:
    """Replaces broken edges by cheapest ones at the previous prices."""

    def __init__(self, graph: PolicyGraph, problem: PackingProblem, prices: NDArray[np.float64]) -> None:
        self._links = problem.fabric.links
        flat = 1.0 / problem.capacity / np.sum(problem.weight)
        link_prices = problem.fabric.link_prices((prices + SMALL * flat)[problem.fold])
        distance, self._arrival = graph.distances(link_prices)
        self._graph = graph
        self._cost = distance[:, graph.ends]
        self._random = np.random.default_rng(0)
        self._after: dict[tuple[int, int], list[int]] = defaultdict(list)
        for tail, link, head in zip(graph.tail.tolist(), graph.link.tolist(), graph.head.tolist(), strict=True):
            self._after[tail, link].append(head)
        self._known: dict[tuple[int, int, tuple[int, ...]], bool] = {}

    def mended(self, tree: Tree, link_of: Ints, rank_of: Ints) -> Column | None:
        """The tree on this fabric; None where it is no tree, or where a part cannot be joined again."""
        edges = rank_of[tree.edges]
        root = int(rank_of[tree.root])
        if not _spans(edges, tree.phase, root, self._graph.starts.size):
            return None
        routes = np.split(link_of[tree.route_links], tree.route_ptr[1:-1])
        gone = np.array(
            [
                not self._allowed(tail, head, tuple(route.tolist()))
                for (tail, head), route in zip(edges.tolist(), routes, strict=True)
            ]
        )
        if gone.any():
            cost = self._cost * (1.0 + JITTER * self._random.random(self._cost.shape))
            for phase in Phase:
                if not self._rejoin(
                    edges, np.flatnonzero(gone & (tree.phase == phase)), tree.phase == phase, phase, cost
                ):
                    return None
            ptr, new = trace_routes(self._graph, self._arrival, edges[gone])
            for k, route in zip(np.flatnonzero(gone), np.split(new, ptr[1:-1]), strict=True):
                routes[k] = route
        ptr = np.concatenate([[0], np.cumsum([route.size for route in routes])]).astype(np.int64)
        links = np.concatenate(routes)
        loads = np.bincount(links, minlength=self._links).astype(np.float64)
        return Column(0.0, loads, RoutedTree(root, edges, tree.phase, ptr, links))  # nobody asked for its cost

    def _allowed(self, tail: int, head: int, route: tuple[int, ...]) -> bool:
        """Whether the route, link numbers with -1 for one that is gone, leads from rank to rank as the policy wants it."""
        key = tail, head, route
        if key not in self._known:
            places = {int(self._graph.starts[tail])}
            for link in route:
                places = {after for place in places for after in self._after.get((place, link), ())}
            self._known[key] = int(self._graph.ends[head]) in places
        return self._known[key]

    def _rejoin(
        self, edges: Ints, broken: Ints, mine: NDArray[np.bool_], phase: Phase, cost: NDArray[np.float64]
    ) -> bool:
        """Give the child of every broken edge the cheapest parent outside of its own part; ``edges`` is changed."""
        child_at, parent_at = (0, 1) if phase is Phase.REDUCE else (1, 0)
        both = cost + cost.T  # the same parent for both phases where both are broken
        for k in broken:
            child = edges[k, child_at]
            below = _part(edges[mine], child_at, int(child), cost.shape[0])
            price = np.where(below, np.inf, both[child])
            parent = int(np.argmin(price))
            if not np.isfinite(price[parent]):
                return False
            edges[k, parent_at] = parent
        return True


def _spans(edges: Ints, phases: NDArray[np.int8], root: int, n: int) -> bool:
    """Whether each phase is a tree of all n vertices towards the root."""
    if root < 0 or edges.min(initial=0) < 0:
        return False
    for phase in Phase:
        child_at = 0 if phase is Phase.REDUCE else 1
        mine = edges[phases == phase]
        if mine.shape[0] != n - 1 or (mine[:, child_at] == root).any():
            return False
        if not _part(mine, child_at, root, n).all():
            return False
    return True


def _part(edges: Ints, child_at: int, top: int, n: int) -> NDArray[np.bool_]:
    """Which vertices hang below ``top``, itself included, bool (n,)."""
    parent = np.full(n, -1, np.int64)
    parent[edges[:, child_at]] = edges[:, 1 - child_at]
    inside = np.zeros(n, bool)
    inside[top] = True
    while True:
        more = inside[parent] & (parent >= 0) & ~inside
        if not more.any():
            return inside
        inside |= more
