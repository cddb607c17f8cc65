"""Paths: one rank's data for another, directly or over ranks of the group that relay it.

The cheapest path under prices is a shortest path, so the problem is a concurrent flow (AllToAll, AllToAllv, Gather, Scatter).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.dense_paths import add_hops, dense_paths, hops
from dualcoll.packing.problem import Column, Offer, RoutedTree, Steering
from dualcoll.plans.model import Phase
from dualcoll.routing.routers import Projection, Router

__all__ = ["PathOracle"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class PathOracle:
    """Demands of one group, each from a source to a target.

    Args:
        router: logical edges between the group's ranks. participants: node indices (n,).
        sources, targets: int64 (J,), numbers of participants, who can reach each other.
        relay: whether participants pass on.
    """

    def __init__(
        self, router: Router, participants: tuple[int, ...], sources: Ints, targets: Ints, *, relay: bool
    ) -> None:
        self._router = router
        self._nodes = np.array(participants, np.int64)
        self._targets = targets
        self._relay = relay
        self._senders, self._row = np.unique(sources, return_inverse=True)
        # together what has one source, or where there is one source only, one by one
        together = self._row if self._senders.size > 1 else np.arange(targets.size)
        order = np.argsort(together, kind="stable")
        self.batches: Sequence[Ints] = np.split(order, np.flatnonzero(np.diff(together[order])) + 1)

    def price(self, link_prices: Floats) -> Offer:
        """Shortest paths for all demands."""
        return self._offer(link_prices, self._senders, self._row)

    def spread(self, batch: int, link_prices: Floats, steering: Steering) -> list[Column]:
        """The cheapest; loads are spread from batch to batch only."""
        mine = self.batches[batch]
        row = np.zeros(self._targets.size, np.int64)
        offer = self._offer(link_prices, self._senders[self._row[mine[:1]]], row)
        return offer.columns(mine)

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
            first, last = ptr[k], ptr[k + 1]
            begin, end = route_ptr[first], route_ptr[last]
            tree = RoutedTree(
                root=int(self._nodes[edges[first, 0]]),
                edges=self._nodes[edges[first:last]],
                phase=np.full(last - first, Phase.SEND, np.int8),
                route_ptr=route_ptr[first : last + 1] - begin,
                route_links=links[begin:end],
                route_share=None if share is None else share[begin:end],
            )
            found.append(Column.of(demand, float(self.costs[demand]), tree))
        return found
