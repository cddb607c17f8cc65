"""Arborescences: out-trees that broadcast, in-trees that reduce, and pairs of both with a common root.

The cheapest ones are minimum arborescences of the projected digraph, whatever the routing model (DualColl, Theorems 4.1 and
5.1, sections 6.1 and 6.2). One root-independent contraction each way serves all roots: a projection and O(n²), and O(n) for
each root.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.workload import Pattern
from dualcoll.kernels.arborescence import contract, expand, expand_all, expand_costs
from dualcoll.kernels.arborescence_growth import grow_arborescence
from dualcoll.kernels.dense_growth import grow_dense
from dualcoll.kernels.route_search import RouteGraph, reversed_graph, route_graph
from dualcoll.packing.oracles.shared_prices import shared_prices
from dualcoll.packing.problem import Column, Offer, RoutedTree, Steering
from dualcoll.plans.model import Phase
from dualcoll.routing.routers import Projection, Router
from dualcoll.routing.single_path import SinglePathRouter

__all__ = ["ArborescenceOracle"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Contraction = tuple[int, Ints, Ints, Ints]


class ArborescenceOracle:
    """Demands of one group, each an out-tree, an in-tree or a pair.

    Args:
        router: logical edges between the group's ranks, who can all reach each other as far as the patterns need it.
        participants: node indices (n,).
        patterns: of each demand (J,). roots: int64 (J,), numbers of participants; of a pair it is not read.
    """

    def __init__(
        self, router: Router, participants: tuple[int, ...], patterns: tuple[Pattern, ...], roots: Ints
    ) -> None:
        self._router = router
        self._nodes = np.array(participants, np.int64)
        self._patterns = patterns
        self._roots = roots
        # where routes are the plan's to choose, trees grow over routes; else on the weights of fixed ones
        self._graphs: dict[Phase, RouteGraph] = {}
        if isinstance(router, SinglePathRouter):
            g = router.graph
            forward = route_graph(g.ptr, g.head, g.link, g.tail, g.starts, g.ends)
            self._graphs = {Phase.BROADCAST: forward, Phase.REDUCE: reversed_graph(forward)}
        self.batches: Sequence[Ints] = [np.array([j]) for j in range(len(patterns))]

    def price(self, link_prices: Floats) -> Offer:
        """Minimum arborescences for all demands."""
        return _Arborescences(self._router.project(link_prices), self._nodes, self._patterns, self._roots)

    def spread(self, batch: int, link_prices: Floats, steering: Steering) -> list[Column]:
        """Trees grown from the root while what they use gets dearer."""
        pattern, n = self._patterns[batch], self._nodes.size
        root = int(steering.random.integers(n)) if pattern is Pattern.ALLREDUCE else int(self._roots[batch])
        grow = self._grown_over_routes if self._graphs else self._grown_on_weights
        return grow(batch, root, link_prices, steering)

    def _grown_over_routes(self, demand: int, root: int, link_prices: Floats, steering: Steering) -> list[Column]:
        price, room = link_prices.copy(), steering.room.copy()
        edges, routes, lengths, phases = [], [], [], []
        others = np.flatnonzero(np.arange(self._nodes.size) != root)
        for phase in _PHASES[self._patterns[demand]]:
            shape = steering.shape
            up, ptr, links, _ = grow_arborescence(
                self._graphs[phase],
                root,
                price,
                steering.bump,
                room,
                steering.penalty,
                shape.flatness,
                shape.max_depth,
            )
            if (up == -2).any():
                return []
            # a tree that reduces grew on turned arcs, from the root to the leaves
            reverse = phase is Phase.REDUCE
            edges.append(np.column_stack((others, up[others]) if reverse else (up[others], others)))
            routes.append(_turned(ptr, links) if reverse else links)
            lengths.append(np.diff(ptr)[others])
            phases.append(np.full(others.size, phase, np.int8))
        links = np.concatenate(routes)
        tree = RoutedTree(
            root=int(self._nodes[root]),
            edges=self._nodes[np.concatenate(edges)],
            phase=np.concatenate(phases),
            route_ptr=np.concatenate([[0], np.cumsum(np.concatenate(lengths))]),
            route_links=links,
        )
        return [Column.of(demand, float(link_prices[links].sum()), tree)]

    def _grown_on_weights(self, demand: int, root: int, link_prices: Floats, steering: Steering) -> list[Column]:
        projection = self._router.project(link_prices)
        first, last = shared_prices(self._router.graph, link_prices)
        halves = []
        for phase in _PHASES[self._patterns[demand]]:
            reverse = phase is Phase.REDUCE
            weight = np.ascontiguousarray(projection.weight.T) if reverse else projection.weight
            shape = steering.shape
            shared = last if reverse else first
            up = grow_dense(weight, shared, root, steering.bump, shape.flatness, shape.max_depth)
            if (up == -2).any():
                return []
            halves.append((phase, up))
        return [_column(demand, projection, self._nodes, root, halves)]


def _turned(ptr: Ints, links: Ints) -> Ints:
    """Each route backwards."""
    position = np.arange(links.size)
    route = np.repeat(np.arange(ptr.size - 1), np.diff(ptr))
    return np.asarray(links[ptr[route] + ptr[route + 1] - 1 - position])


_PHASES = {
    Pattern.ALLREDUCE: (Phase.REDUCE, Phase.BROADCAST),
    Pattern.BROADCAST: (Phase.BROADCAST,),
    Pattern.REDUCE: (Phase.REDUCE,),
}


class _Arborescences:
    """What one projection leads to."""

    def __init__(self, projection: Projection, nodes: Ints, patterns: tuple[Pattern, ...], roots: Ints) -> None:
        self._projection = projection
        self._nodes = nodes
        self._patterns = patterns
        self._weight = _bridged(projection.weight)
        pairs = Pattern.ALLREDUCE in patterns
        reverse = np.ascontiguousarray(self._weight.T)
        self._contractions: dict[Phase, Contraction] = {}
        out, into = np.zeros(nodes.size), np.zeros(nodes.size)
        if pairs or Pattern.BROADCAST in patterns:
            self._contractions[Phase.BROADCAST] = contract(self._weight)
            out = expand_costs(self._weight, *self._contractions[Phase.BROADCAST])
        if pairs or Pattern.REDUCE in patterns:
            self._contractions[Phase.REDUCE] = contract(reverse)
            into = expand_costs(reverse, *self._contractions[Phase.REDUCE])
        kind = np.array([str(pattern) for pattern in patterns])
        both = out + into
        self._roots = np.where(kind == Pattern.ALLREDUCE, int(np.argmin(both)), roots)
        of_kind = [(Pattern.ALLREDUCE, both), (Pattern.BROADCAST, out), (Pattern.REDUCE, into)]
        self.costs: Floats = np.select(
            [kind == pattern for pattern, _ in of_kind], [c[self._roots] for _, c in of_kind]
        )

    def loads(self, amounts: Floats) -> Floats:
        """Loads of the links, in bulk."""
        n = self._nodes.size
        counts = {phase: np.zeros((n, n)) for phase in self._contractions}
        for phase, contraction in self._contractions.items():
            mine = np.array([phase in _PHASES[pattern] for pattern in self._patterns])
            expand_all(n, *contraction, self._roots, np.where(mine, amounts, 0.0), counts[phase])
        return self._projection.loads(
            np.sum([c.T if phase is Phase.REDUCE else c for phase, c in counts.items()], axis=0)
        )

    def columns(self, demands: Ints) -> list[Column]:
        """Trees with routes."""
        return [self._column(int(j)) for j in demands]

    def _column(self, demand: int) -> Column:
        root = int(self._roots[demand])
        phases = _PHASES[self._patterns[demand]]
        halves = [(phase, _parents(self._nodes.size, root, self._contractions[phase])) for phase in phases]
        return _column(demand, self._projection, self._nodes, root, halves, float(self.costs[demand]))


def _column(
    demand: int,
    projection: Projection,
    nodes: Ints,
    root: int,
    halves: list[tuple[Phase, Ints]],
    cost: float | None = None,
) -> Column:
    """The column of one or two trees, each given by everybody's parent, int64 (n,)."""
    others = np.flatnonzero(np.arange(nodes.size) != root)
    edges = [
        np.column_stack((others, up[others]) if phase is Phase.REDUCE else (up[others], others)) for phase, up in halves
    ]
    logical = np.concatenate(edges)
    phases = np.repeat(np.array([phase for phase, _ in halves], np.int8), nodes.size - 1)
    ptr, links, share = projection.routes(logical)
    if cost is None:
        cost = float(projection.weight[logical[:, 0], logical[:, 1]].sum())
    return Column.of(demand, cost, RoutedTree(int(nodes[root]), nodes[logical], phases, ptr, links, share))


def _bridged(weight: Floats) -> Floats:
    """The weights with a dear arc where there is none: contraction wants a strongly connected graph.

    An arborescence that can do without such arcs does.
    """
    weight = weight.copy()
    np.fill_diagonal(weight, 0.0)
    finite = np.isfinite(weight)
    if not finite.all():
        weight[~finite] = (weight.shape[0] + 1) * (float(weight[finite].max()) or 1.0)
    np.fill_diagonal(weight, np.inf)
    return weight


def _parents(n: int, root: int, contraction: Contraction) -> Ints:
    up = np.empty(n, np.int64)
    expand(n, *contraction, root, np.empty(2 * n, np.bool_), up)
    return up
