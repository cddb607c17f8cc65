"""One face for all routing models: what a logical edge costs, which links it uses, and what many edges load together.

Everything above routing sees only this. Logical edges run between participants, by number; E links, n participants.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualcoll.routing.ecmp import ecmp_router
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.routing.packet_spray import spray_router
from dualcoll.routing.policy_graph import PolicyGraph, hop_graph, policy_graph
from dualcoll.routing.single_path import SinglePathRouter
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["Projection", "Router", "make_router"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Projection(Protocol):
    """All logical edges under certain link prices."""

    @property
    def weight(self) -> Floats:
        """Cost of each logical edge u -> v, float64 (n, n); inf where there is none and on the diagonal."""
        ...

    def loads(self, counts: Floats) -> Floats:
        """Loads of the links, float64 (E,), when each logical edge is used ``counts`` float64 (n, n) times.

        Counts are 0 where there is no edge.
        """
        ...

    def routes(self, edges: Ints) -> tuple[Ints, Ints, Floats | None]:
        """The links of some logical edges int64 (A, 2), which exist.

        Returns:
            CSR ptr int64 (A+1,), links int64 (H,), each once per edge, and the share of the edge's traffic on each,
            float64 (H,). Where the shares are None each link carries all of it, and links stand in travelling order.
        """
        ...


class Router(Protocol):
    """A routing model on one fabric for certain participants."""

    @property
    def graph(self) -> PolicyGraph:
        """The routes that the model may use."""
        ...

    def project(self, link_prices: Floats) -> Projection:
        """All logical edges under prices float64 (E,), not negative."""
        ...


def make_router(topology: Topology, participants: tuple[int, ...], forwarding: Forwarding, routing: Routing) -> Router:
    """The router of a routing model between participants (node indices)."""
    if routing.kind is RoutingKind.SPRAY_HOPS:
        return spray_router(topology, hop_graph(topology, participants), over_cables=False)
    graph = policy_graph(topology, participants, forwarding)
    if routing.kind is RoutingKind.SINGLE:
        return SinglePathRouter(graph)
    if routing.kind is RoutingKind.ECMP:
        return ecmp_router(topology, participants, graph, routing.seed)
    return spray_router(topology, graph, over_cables=routing.kind is RoutingKind.SPRAY_CABLES)
