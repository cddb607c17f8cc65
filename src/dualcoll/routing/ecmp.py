"""Hashed equal-cost paths: at every node a hash of the logical edge picks one next hop on a shortest route (docs/model.md §8).

All n² paths are fixed at the start, O(n² hops); costs and loads are sums over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.loads import path_costs, path_loads
from dualcoll.kernels.next_hops import NextHops
from dualcoll.routing.policy_graph import PolicyGraph
from dualcoll.routing.shortest import shortest_routes
from dualcoll.topology.model import Topology

__all__ = ["EcmpRouter", "ecmp_router"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EcmpRouter:
    """One fixed path for each logical edge.

    Attributes:
        graph: the routes that paths are chosen from.
        ptr, path: CSR of links in travelling order, int64 (n²+1,), int32 (H,); that of u -> v is number v n + u.
    """

    graph: PolicyGraph
    ptr: Ints
    path: NDArray[np.int32]

    def project(self, link_prices: Floats) -> _Projection:
        """What the paths cost under prices float64 (E,)."""
        n = self.graph.starts.size
        weight = np.ascontiguousarray(path_costs(self.ptr, self.path, link_prices).reshape(n, n).T)
        return _Projection(weight, self, link_prices.size)


@dataclass(frozen=True, slots=True)
class _Projection:
    weight: Floats
    router: EcmpRouter
    links: int

    def loads(self, counts: Floats) -> Floats:
        return path_loads(self.router.ptr, self.router.path, np.ascontiguousarray(counts.T).ravel(), self.links)

    def routes(self, edges: Ints) -> tuple[Ints, Ints, None]:
        number = edges[:, 1] * self.router.graph.starts.size + edges[:, 0]
        first, hops = self.router.ptr[number], self.router.ptr[number + 1] - self.router.ptr[number]
        ptr = np.concatenate([[0], np.cumsum(hops)])
        at = np.arange(ptr[-1]) + np.repeat(first - ptr[:-1], hops)
        return ptr, self.router.path[at].astype(np.int64), None


def ecmp_router(topology: Topology, participants: tuple[int, ...], graph: PolicyGraph, seed: int) -> EcmpRouter:
    """Choose the paths between participants (node indices) among the shortest routes of their graph."""
    graph, hops = shortest_routes(topology, graph)
    ends_of = np.array([(link.tail, link.head) for link in topology.links], np.int64).reshape(-1, 2)
    node = np.empty(graph.ptr.size - 1, np.int64)
    node[graph.tail], node[graph.head] = ends_of[graph.link].T
    node[graph.starts] = node[graph.ends] = participants
    names = [topology.nodes[x].name for x in node.tolist()]
    lengths, paths = [np.zeros(1, np.int64)], []
    for v in range(len(participants)):
        table = _paths_to(v, graph, hops, names, seed)
        lengths.append((table >= 0).sum(1))
        paths.append(table[table >= 0])
    return EcmpRouter(graph, np.cumsum(np.concatenate(lengths)), np.concatenate(paths))


def _paths_to(v: int, graph: PolicyGraph, hops: NextHops, names: list[str], seed: int) -> NDArray[np.int32]:
    """The links from each participant to ``v``, int32 (n, hops), -1 after the last; ``names`` are those of the states."""
    rows = np.arange(hops.row_ptr[v], hops.row_ptr[v + 1])
    row_of = np.full(graph.ptr.size - 1, -1)
    row_of[hops.vertex[rows]] = rows
    edge = [f"{seed}/{names[u]}/{names[graph.ends[v]]}/" for u in graph.starts.tolist()]
    at = row_of[graph.starts]
    at[v] = -1
    steps = [np.full(at.size, -1, np.int32)]
    while (under_way := np.flatnonzero(at >= 0)).size:
        row = at[under_way]
        first, choices = hops.arc_ptr[row], hops.arc_ptr[row + 1] - hops.arc_ptr[row]
        pick = np.zeros(row.size, np.int64)
        torn = np.flatnonzero(choices > 1)
        here = hops.vertex[row[torn]].tolist()
        texts = [edge[u] + names[x] for u, x in zip(under_way[torn].tolist(), here, strict=True)]
        pick[torn] = _hashes(texts) % choices[torn].astype(np.uint64)
        arc = hops.arc[first + pick]
        steps.append(np.full(at.size, -1, np.int32))
        steps[-1][under_way] = graph.link[arc]
        at[under_way] = row_of[graph.head[arc]]
    return np.stack(steps, 1)


def _hashes(texts: list[str]) -> NDArray[np.uint64]:
    """The first eight bytes of each text's SHA-256."""
    digests = b"".join([sha256(text.encode()).digest() for text in texts])
    return np.frombuffer(digests, ">u8")[::4].astype(np.uint64)
