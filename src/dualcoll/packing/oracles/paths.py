"""Paths: one rank's data for another, directly or over ranks of the group that relay it.

The cheapest path under prices is a shortest path, so the problem is a concurrent flow (AllToAll, AllToAllv, Gather, Scatter).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.dense_paths import add_hops, dense_paths, hops
from dualcoll.kernels.path_growth import grow_paths, relay_graph
from dualcoll.kernels.route_search import RouteGraph, route_graph
from dualcoll.packing.problem import Column, Offer, RoutedTree, Steering
from dualcoll.plans.model import Phase
from dualcoll.routing.routers import Projection, Router
from dualcoll.routing.single_path import SinglePathRouter

__all__ = ["PathOracle"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AT_ONCE = 16  # paths that are found at the same prices
GENTLE = 0.2  # part of the steering: many paths of one batch use the same few links


class PathOracle:
    """Demands of one group, each from a source to a target.

    Args:
        router: logical edges between the group's ranks. participants: node indices (n,).
        sources, targets: int64 (J,), numbers of participants, who can reach each other.
        part: float64 (J,), how much each demand is, in any unit. links: E.
        relay: whether participants pass on.
    """

    def __init__(
        self,
        router: Router,
        participants: tuple[int, ...],
        sources: Ints,
        targets: Ints,
        part: Floats,
        links: int,
        *,
        relay: bool,
    ) -> None:
        self._router = router
        self._nodes = np.array(participants, np.int64)
        self._targets = targets
        self._part = part
        self._relay = relay
        self._senders, self._row = np.unique(sources, return_inverse=True)
        self._graph: RouteGraph | None = None
        if isinstance(router, SinglePathRouter):
            g = router.graph
            graph = route_graph(g.ptr, g.head, g.link, g.tail, g.starts, g.ends)
            self._graph = relay_graph(graph, links) if relay else graph
        # together what has one source, or where there is one source only, one by one
        together = self._row if self._senders.size > 1 else np.arange(targets.size)
        order = np.argsort(together, kind="stable")
        self.batches: Sequence[Ints] = np.split(order, np.flatnonzero(np.diff(together[order])) + 1)

    def price(self, link_prices: Floats) -> Offer:
        """Shortest paths for all demands."""
        return self._offer(link_prices, self._senders, self._row)

    def spread(self, batch: int, link_prices: Floats, steering: Steering) -> list[Column]:
        """Where routes are the plan's to choose, paths in turn while what they use gets dearer; else the cheapest."""
        mine = self.batches[batch]
        if self._graph is not None:
            return self._grown(self._graph, steering.random.permutation(mine), link_prices, steering)
        row = np.zeros(self._targets.size, np.int64)
        offer = self._offer(link_prices, self._senders[self._row[mine[:1]]], row)
        return offer.columns(mine)

    def _grown(self, graph: RouteGraph, mine: Ints, link_prices: Floats, steering: Steering) -> list[Column]:
        amounts = self._part[mine] / self._part[mine].mean()
        ptr, edges, route_ptr, links = grow_paths(
            graph,
            int(self._senders[self._row[mine[0]]]),
            self._targets[mine],
            amounts,
            AT_ONCE,
            link_prices.copy(),
            steering.bump**GENTLE,
            steering.room.astype(np.float64),
            steering.penalty,
        )
        found = []
        for k, demand in enumerate(mine.tolist()):
            tree = _path(self._nodes, k, ptr, edges, route_ptr, links, None)
            found.append(Column.of(demand, float(link_prices[tree.route_links].sum()), tree))
        return found

    def _offer(self, link_prices: Floats, senders: Ints, row: Ints) -> _Paths:
        return _Paths(self._router.project(link_prices), self._nodes, senders, row, self._targets, relay=self._relay)


class _Paths:
    """What one projection leads to."""

    def __init__(
        self, projection: Projection, nodes: Ints, senders: Ints, row: Ints, targets: Ints, *, relay: bool
    ) -> None:
        self._projection = projection
        self._nodes = nodes
        self._row = row
        self._targets = targets
        n = nodes.size
        if relay:
            distance, self._before = np.empty((senders.size, n)), np.empty((senders.size, n), np.int64)
            dense_paths(projection.weight, senders, distance, self._before)
        else:
            distance = projection.weight[senders]
            self._before = np.repeat(senders[:, None], n, axis=1)
            self._before[np.arange(senders.size), senders] = -1
        self.costs: Floats = distance[row, targets]

    def loads(self, amounts: Floats) -> Floats:
        """Loads of the links, in bulk."""
        counts = np.zeros((self._nodes.size, self._nodes.size))
        add_hops(self._before, self._row, self._targets, amounts, counts)
        return self._projection.loads(counts)

    def columns(self, demands: Ints) -> list[Column]:
        """Paths with routes."""
        ptr, edges = hops(self._before, self._row[demands], self._targets[demands])
        route_ptr, links, share = self._projection.routes(edges)
        found = []
        for k, demand in enumerate(demands.tolist()):
            tree = _path(self._nodes, k, ptr, edges, route_ptr, links, share)
            found.append(Column.of(demand, float(self.costs[demand]), tree))
        return found


def _path(
    nodes: Ints, k: int, ptr: Ints, edges: Ints, route_ptr: Ints, links: Ints, share: Floats | None
) -> RoutedTree:
    """The k-th of many paths, given by CSR of hops and CSR of their routes."""
    first, last = ptr[k], ptr[k + 1]
    begin, end = route_ptr[first], route_ptr[last]
    return RoutedTree(
        root=int(nodes[edges[first, 0]]),
        edges=nodes[edges[first:last]],
        phase=np.full(last - first, Phase.SEND, np.int8),
        route_ptr=route_ptr[first : last + 1] - begin,
        route_links=links[begin:end],
        route_share=None if share is None else share[begin:end],
    )
