"""Simple trees: one spanning tree carries both phases, each edge routed both ways over the same cables.

Optimal for AllReduce where every cable has equal capacity in both directions (DualColl, Theorem 2.1 and Lemma 3.6). The
cheapest one is a minimum spanning tree of the participants under the prices of both directions (Theorem 4.1). Where every
forwarder is unconditional it is read off the Voronoi cells in O(E log E); elsewhere off projected distances in O(n E log V).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.dense_growth import grow_dense
from dualcoll.kernels.growth import grow_tree
from dualcoll.kernels.spanning_tree import prim, voronoi_spanning_tree
from dualcoll.kernels.trees import tree_centre
from dualcoll.packing.oracles.joined import OneColumn
from dualcoll.packing.oracles.shared_prices import shared_prices
from dualcoll.packing.problem import Column, Offer, RoutedTree, Steering
from dualcoll.plans.model import Phase
from dualcoll.routing.routers import Router
from dualcoll.topology.model import Forwarding, Topology, Transit, transit

__all__ = ["ProjectedTreeOracle", "VoronoiTreeOracle"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class VoronoiTreeOracle:
    """Mehlhorn's minimum spanning tree on the participants and the unconditional forwarders.

    Args:
        topology: symmetric, without conditional forwarders between participants.
        partner: int64 (E,), the reverse of each link.
        participants: node indices (n,), n at least 2.
        forwarding: the policy; nodes that forward nothing and take no part are left out.
    """

    def __init__(
        self, topology: Topology, partner: Ints, participants: tuple[int, ...], forwarding: Forwarding
    ) -> None:
        vertex = {node: i for i, node in enumerate(participants)}
        for i, node in enumerate(topology.nodes):
            if transit(node.kind, forwarding) is Transit.ANY:
                vertex.setdefault(i, len(vertex))
        cables = [
            (vertex[link.tail], vertex[link.head], e)
            for e, link in enumerate(topology.links)
            if e < partner[e] and link.tail in vertex and link.head in vertex
        ]
        table = np.array(cables, dtype=np.int64).reshape(-1, 3)
        self._a, self._b = np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])
        self._forward = np.ascontiguousarray(table[:, 2])
        self._partner = partner
        self._nodes = np.array(participants, np.int64)
        self._terminals = len(participants)
        self.batches: Sequence[Ints] = (np.zeros(1, np.int64),)
        tail, head = np.concatenate([self._a, self._b]), np.concatenate([self._b, self._a])
        order = np.lexsort([head, tail])  # terminals before switches
        self._ptr = np.zeros(len(vertex) + 1, np.int64)
        np.cumsum(np.bincount(tail, minlength=len(vertex)), out=self._ptr[1:])
        self._head = head[order]
        self._cable = np.tile(np.arange(self._a.size), 2)[order]
        position = np.empty_like(order)
        position[order] = np.arange(order.size)
        self._reverse = position[(order + self._a.size) % order.size]
        to_terminals = np.bincount(tail[head < self._terminals], minlength=len(vertex))
        self._switch_ptr = self._ptr[:-1] + to_terminals
        # the link of each arc
        self._link = np.concatenate([self._forward, partner[self._forward]])[order]

    def price(self, link_prices: Floats) -> Offer:
        """A minimum spanning tree under the prices of both directions of every cable."""
        both = link_prices[self._forward] + link_prices[self._partner[self._forward]]
        cost, edges, ptr, path = voronoi_spanning_tree(
            self._ptr, self._head, self._cable, self._a, self._b, both, self._terminals
        )
        forward = self._forward[path >> 1]
        links = np.where(path & 1, self._partner[forward], forward)
        return OneColumn(simple_column(cost, self._nodes, edges, ptr, links, self._partner), link_prices.size)

    def spread(self, batch: int, link_prices: Floats, steering: Steering) -> list[Column]:
        """A spanning tree near the minimum that spreads its loads."""
        both = link_prices[self._forward] + link_prices[self._partner[self._forward]]
        before = both.copy()
        edges, ptr, arcs = grow_tree(
            self._ptr,
            self._head,
            self._cable,
            self._reverse,
            self._switch_ptr,
            self._terminals,
            int(steering.random.integers(self._terminals)),
            both,
            steering.bump,
            steering.room[self._forward],
            steering.penalty,
            steering.shape.flatness,
            steering.shape.max_depth,
        )
        if edges.shape[0] < self._terminals - 1:
            return []
        cost = float(before[self._cable[arcs]].sum())
        return [simple_column(cost, self._nodes, edges, ptr, self._link[arcs], self._partner)]


class ProjectedTreeOracle:
    """Prim's algorithm on the projected graph of cheapest allowed routes, for fabrics with conditional forwarders."""

    def __init__(self, router: Router, participants: tuple[int, ...], partner: Ints) -> None:
        self._router = router
        self._nodes = np.array(participants, np.int64)
        self._partner = partner
        self.batches: Sequence[Ints] = (np.zeros(1, np.int64),)

    def price(self, link_prices: Floats) -> Offer:
        """A minimum spanning tree under the prices of both directions of every cable."""
        projection = self._router.project(link_prices + link_prices[self._partner])
        weight = projection.weight
        cost, edges = prim(np.minimum(weight, weight.T))  # equal but for rounding
        ptr, links, _ = projection.routes(edges)
        return OneColumn(simple_column(cost, self._nodes, edges, ptr, links, self._partner), link_prices.size)

    def spread(self, batch: int, link_prices: Floats, steering: Steering) -> list[Column]:
        """A spanning tree near the minimum, grown while ranks with neighbours get dearer."""
        both = link_prices + link_prices[self._partner]
        projection = self._router.project(both)
        n, shape = self._nodes.size, steering.shape
        root = int(steering.random.integers(n))
        shared = shared_prices(self._router.graph, both)[0]
        up = grow_dense(projection.weight, shared, root, steering.bump, shape.flatness, shape.max_depth)
        if (up == -2).any():
            return []
        others = np.flatnonzero(np.arange(n) != root)
        edges = np.column_stack([up[others], others])
        ptr, links, _ = projection.routes(edges)
        return [simple_column(float(both[links].sum()), self._nodes, edges, ptr, links, self._partner)]


def simple_column(cost: float, nodes: Ints, edges: Ints, route_ptr: Ints, route_links: Ints, partner: Ints) -> Column:
    """Root an undirected routed tree at its centre and let it reduce and broadcast over the same cables."""
    n = edges.shape[0] + 1
    root, parent = tree_centre(edges, n)
    lengths = np.diff(route_ptr)
    upward = parent[edges[:, 0]] == edges[:, 1]
    up = np.where(upward[:, None], edges, edges[:, ::-1])
    # the walk of an edge, reversed: mirrored within its own span of the CSR
    position = np.arange(route_links.size)
    span = np.repeat(np.arange(n - 1), lengths)
    mirror = route_ptr[span] + route_ptr[span + 1] - 1 - position
    reverse = partner[route_links[mirror]]
    rising = np.where(upward[span], route_links, reverse)
    falling = np.where(upward[span], reverse, route_links)
    tree = RoutedTree(
        root=int(nodes[root]),
        edges=nodes[np.concatenate([up, up[:, ::-1]])],
        phase=np.repeat(np.array([Phase.REDUCE, Phase.BROADCAST], np.int8), n - 1),
        route_ptr=np.concatenate([route_ptr, route_ptr[1:] + route_links.size]),
        route_links=np.concatenate([rising, falling]),
    )
    return Column.of(0, cost, tree)
