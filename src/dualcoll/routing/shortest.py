"""The shortest allowed routes by hops, which a network follows whatever the prices: spraying and ecmp choose among them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.next_hops import NextHops, next_hops
from dualcoll.routing.policy_graph import PolicyGraph
from dualcoll.topology.model import Topology

__all__ = ["shortest_routes"]

Ints = NDArray[np.int64]


def shortest_routes(topology: Topology, graph: PolicyGraph) -> tuple[PolicyGraph, NextHops]:
    """The graph with the arcs out of each state by the next node's name, parallel cables in link order; next hops in it."""
    head_of = np.array([link.head for link in topology.links], np.int64)
    by_name = sorted(range(len(topology.nodes)), key=lambda x: topology.nodes[x].name)
    place = np.empty(len(by_name), np.int64)
    place[by_name] = np.arange(place.size)
    order = np.lexsort((graph.link, place[head_of[graph.link]], graph.tail))
    graph = replace(graph, head=graph.head[order], link=graph.link[order])
    into = np.argsort(graph.head, kind="stable")
    into_ptr = np.searchsorted(graph.head[into], np.arange(graph.ptr.size))
    return graph, next_hops(graph.ptr, graph.head, into_ptr, graph.tail[into], graph.ends)
