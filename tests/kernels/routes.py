"""Random graphs with routes between participants, and plain Dijkstra on them."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from dualcoll.kernels.route_search import RouteGraph, reversed_graph, route_graph
from tests.kernels.graphs import Floats, Ints

__all__ = ["RouteCase", "route_case", "route_graph_of"]


def route_graph_of(participants: int, tail: Ints, head: Ints, forwarders: set[int]) -> RouteGraph:
    """Routes over links between nodes, participants first; those among the forwarders let others' routes pass."""
    states: dict[tuple[int, str], int] = {}
    arcs = []
    for e, (a, b) in enumerate(zip(tail.tolist(), head.tolist(), strict=True)):
        tails = [(a, "start")] if a < participants else []
        heads = [(b, "end")] if b < participants else []
        tails += [(a, "middle")] if a >= participants or a in forwarders else []
        heads += [(b, "middle")] if b >= participants or b in forwarders else []
        arcs += [(t, h, e) for t in tails for h in heads]
    for i in range(participants):
        states[i, "start"] = len(states)
        states[i, "end"] = len(states)
    table = np.array(
        [(*(states.setdefault(s, len(states)) for s in arc[:2]), arc[2]) for arc in arcs], np.int64
    ).reshape(-1, 3)
    table = table[np.argsort(table[:, 0], kind="stable")]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(table[:, 0], minlength=len(states)))]).astype(np.int64)
    starts, ends = np.arange(0, 2 * participants, 2), np.arange(1, 2 * participants, 2)
    origin, target, link = (np.ascontiguousarray(table[:, k]) for k in range(3))
    return route_graph(ptr, target, link, origin, starts, ends)


@dataclass(frozen=True, slots=True)
class RouteCase:
    graph: RouteGraph
    price: Floats

    @property
    def n(self) -> int:
        return int(self.graph.starts.size)

    def walk(self, sources: dict[int, float], price: Floats) -> dict[int, float]:
        """Plain Dijkstra over states from several at once, whose first arcs count so many times."""
        graph = self.graph
        found: dict[int, float] = {}
        queue = [(0.0, x) for x in sources]
        while queue:
            reach, x = heapq.heappop(queue)
            if x in found:
                continue
            found[x] = reach
            for a in range(graph.ptr[x], graph.ptr[x + 1]):
                heapq.heappush(queue, (reach + sources.get(x, 1.0) * price[graph.link[a]], int(graph.head[a])))
        return found

    def attachments(self, price: Floats, depth: dict[int, int], flatness: float, max_depth: int) -> dict[int, float]:
        """What the cheapest route to each participant outside of the tree costs."""
        sources = {int(self.graph.starts[v]): 1 + flatness * d for v, d in depth.items() if d < max_depth}
        found = self.walk(sources, price)
        ends = {v: int(self.graph.ends[v]) for v in range(self.n) if v not in depth}
        return {v: found[x] for v, x in ends.items() if x in found}

    def closure(self) -> dict[tuple[int, int], float]:
        """What the cheapest route from each to each costs."""
        pairs: dict[tuple[int, int], float] = {}
        for u in range(self.n):
            found = self.walk({int(self.graph.starts[u]): 1.0}, self.price)
            pairs |= {(u, v): found[int(self.graph.ends[v])] for v in range(self.n) if v != u}
        return pairs


def route_case(seed: int, *, connected: bool = True, symmetric: bool = False) -> RouteCase:
    """2 to 40 nodes, parallel links, some participants that forward; prices with ties, or such as differ widely."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 41))
    participants = int(rng.integers(2, nodes + 1))
    tail, head = rng.integers(nodes, size=(2, int(rng.integers(1, 3 * nodes))))
    forwarders = {i for i in range(participants) if rng.random() < 0.3}
    if connected:
        ring = rng.permutation(nodes)
        tail, head = np.concatenate([tail, ring]), np.concatenate([head, np.roll(ring, 1)])
        forwarders = set(range(participants))
    keep = tail != head
    tail, head = tail[keep], head[keep]
    price = rng.integers(1, 5, tail.size).astype(float)
    if seed % 2 == 0:
        price = 10.0 ** (rng.uniform(-6, 3, tail.size) if seed % 8 else rng.uniform(-40, 40, tail.size))
    if symmetric:
        tail, head, price = np.concatenate([tail, head]), np.concatenate([head, tail]), np.tile(price, 2)
    graph = route_graph_of(participants, tail, head, forwarders)
    return RouteCase(reversed_graph(graph) if seed % 3 == 0 else graph, price)
