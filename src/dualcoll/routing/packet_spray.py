"""Packet spraying: at every node the packets divide equally over the next hops (DualColl paper, sections 5.1 to 5.3).

The next hops toward a destination are fixed by the fabric, so the shares are; prices only say what they cost. The expected cost
``D_v(c) = mean over next hops z of (y_cz + D_v(z))`` is evaluated from the destination outwards, loads from the sources
inwards: O(n (N + E)) each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.next_hops import NextHops, divisors, sprayed_costs, sprayed_loads, sprayed_routes
from dualcoll.routing.policy_graph import PolicyGraph
from dualcoll.routing.shortest import shortest_routes
from dualcoll.topology.model import Topology

__all__ = ["SprayRouter", "spray_router"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SprayRouter:
    """Fixed shares on all shortest routes.

    Attributes:
        graph: the routes.
        hops: the next hops toward each participant. divisor: int32 (M,), one over the share of each.
    """

    graph: PolicyGraph
    hops: NextHops
    divisor: NDArray[np.int32]

    def project(self, link_prices: Floats) -> _Projection:
        """What the shares cost under prices float64 (E,)."""
        graph = self.graph
        price = link_prices[graph.link]
        weight = sprayed_costs(self.hops, self.divisor, graph.head, price, graph.starts, graph.ends)
        np.fill_diagonal(weight, np.inf)
        return _Projection(weight, self, link_prices.size)


@dataclass(frozen=True, slots=True)
class _Projection:
    weight: Floats
    router: SprayRouter
    links: int

    def loads(self, counts: Floats) -> Floats:
        graph, hops, divisor = self.router.graph, self.router.hops, self.router.divisor
        on_arc = sprayed_loads(hops, divisor, graph.head, graph.starts, counts)
        return np.bincount(graph.link, on_arc, self.links).astype(np.float64)

    def routes(self, edges: Ints) -> tuple[Ints, Ints, Floats]:
        graph, hops, divisor = self.router.graph, self.router.hops, self.router.divisor
        return sprayed_routes(hops, divisor, graph.head, graph.link, self.links, graph.starts, edges)


def spray_router(topology: Topology, graph: PolicyGraph, *, over_cables: bool) -> SprayRouter:
    """Spray over the shortest routes of a graph.

    Args:
        over_cables: equal shares over all cables to next hops, instead of over next hops and then over their cables.
    """
    graph, hops = shortest_routes(topology, graph)
    # told apart by their heads, parallel cables are one next hop; by themselves, each is its own
    apart = np.arange(graph.head.size) if over_cables else graph.head
    return SprayRouter(graph, hops, divisors(hops, apart))
