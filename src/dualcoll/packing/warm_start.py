"""What a plan for a similar fabric is worth here: its prices, and its trees, mended where their links are gone.

A logical edge whose route is broken gives way to the cheapest one that joins the same two parts of its tree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.packing.column_generation import Start
from dualcoll.packing.oracles.routes import trace_routes
from dualcoll.packing.problem import Column, PackingProblem, RoutedTree, SpreadingOracle
from dualcoll.plans.document import link_keys
from dualcoll.plans.model import Phase, Plan, Tree
from dualcoll.routing.policy_graph import policy_graph
from dualcoll.topology.model import Topology

__all__ = ["start_from"]

Ints = NDArray[np.int64]

JITTER = 0.02  # relative; of equally cheap parents, not always the same
SMALL = 1e-6  # of a flat price on every link: a shorter route where the prices do not care


def start_from(previous: Plan, topology: Topology, participants: tuple[int, ...], problem: PackingProblem) -> Start:
    """Carry a plan over; nodes go by name, parallel links by order.

    Args:
        previous: made for another fabric, or another size of message.
        topology, participants, problem: what is to be planned now.

    Raises:
        InputError: the plan is for other ranks.
    """
    names = [topology.nodes[i].name for i in participants]
    before = [previous.topology.nodes[i].name for i in previous.participants]
    if sorted(names) != sorted(before):
        odd = sorted(set(names) ^ set(before))
        raise InputError(
            f"the previous plan is for other ranks: {', '.join(odd[:5])}" + (", …" if len(odd) > 5 else ""),
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
    mender = _Mender(topology, participants, previous, problem, prices)
    columns = [mender.mended(tree, link_of, rank_of) for tree in previous.trees]
    return Start(prices=(prices,), columns=tuple(column for column in columns if column is not None))


class _Mender:
    """Replaces broken edges by cheapest ones at the previous prices."""

    def __init__(
        self,
        topology: Topology,
        participants: tuple[int, ...],
        previous: Plan,
        problem: PackingProblem,
        prices: NDArray[np.float64],
    ) -> None:
        self._links = problem.fabric.links
        graph = policy_graph(topology, participants, previous.forwarding)
        flat = 1.0 / problem.capacity / np.sum(problem.weight)
        link_prices = problem.fabric.link_prices((prices + SMALL * flat)[problem.fold])
        distance, self._arrival = graph.distances(link_prices)
        self._graph = graph
        self._cost = distance[:, graph.ends]
        self._random = np.random.default_rng(0)

    def mended(self, tree: Tree, link_of: Ints, rank_of: Ints) -> Column | None:
        """The tree on this fabric; None where a part cannot be joined again."""
        links = link_of[tree.route_links]
        gone = np.add.reduceat(links < 0, tree.route_ptr[:-1]) > 0
        edges = rank_of[tree.edges]
        root = int(rank_of[tree.root])
        routes = np.split(links, tree.route_ptr[1:-1])
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
