"""Scheduler-routed: every logical edge takes a cheapest allowed path at the prices of the moment.

One Dijkstra from every participant, O(n E log V); loads are pushed up the shortest-path trees, O(n V).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.loads import forest_loads
from dualcoll.kernels.trees import trace
from dualcoll.routing.policy_graph import PolicyGraph

__all__ = ["SinglePathRouter"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SinglePathRouter:
    """Cheapest paths of a graph of allowed routes."""

    graph: PolicyGraph

    def project(self, link_prices: Floats) -> _Projection:
        """Cheapest paths between all participants under prices float64 (E,), not negative."""
        distance, arrival = self.graph.distances(link_prices)
        weight = np.ascontiguousarray(distance[:, self.graph.ends])
        np.fill_diagonal(weight, np.inf)
        return _Projection(weight, self.graph, arrival, link_prices.size)


@dataclass(frozen=True, slots=True)
class _Projection:
    weight: Floats
    graph: PolicyGraph
    arrival: Ints
    links: int

    def loads(self, counts: Floats) -> Floats:
        graph = self.graph
        return forest_loads(self.arrival, graph.tail, graph.link, graph.ends, counts, self.links)

    def routes(self, edges: Ints) -> tuple[Ints, Ints, None]:
        graph = self.graph
        return *trace(self.arrival, graph.tail, graph.link, graph.starts, graph.ends, edges), None
