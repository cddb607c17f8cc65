"""Random graphs in the forms that kernels read, and as networkx graphs."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray

__all__ = ["Digraph", "least_arborescence", "random_digraph", "random_tree"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Digraph:
    """Arcs (A,) with prices, and the CSR that a kernel walks: ``link`` maps its arcs to the prices."""

    vertices: int
    tail: Ints
    head: Ints
    price: Floats

    @property
    def order(self) -> Ints:
        """Arcs sorted by tail."""
        return np.argsort(self.tail, kind="stable")

    @property
    def ptr(self) -> Ints:
        """CSR offsets by tail."""
        counts = np.bincount(self.tail, minlength=self.vertices)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def networkx(self) -> nx.DiGraph[int]:
        """The same graph; of parallel arcs the cheapest."""
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(range(self.vertices))
        for tail, head, price in zip(self.tail.tolist(), self.head.tolist(), self.price.tolist(), strict=True):
            known = graph.get_edge_data(tail, head, {"weight": np.inf})["weight"]
            graph.add_edge(tail, head, weight=min(known, price))
        return graph


def random_digraph(seed: int, *, connected: bool = False) -> Digraph:
    """2 to 9 vertices; small whole prices with zeros and ties, or real ones; parallel arcs.

    Args:
        connected: strongly, by a cycle through all vertices.
    """
    rng = np.random.default_rng(seed)
    vertices = int(rng.integers(2, 10))
    count = int(rng.integers(1, 3 * vertices))
    tail, head = rng.integers(vertices, size=(2, count))
    keep = tail != head
    tail, head = tail[keep], head[keep]
    if connected or not tail.size:
        ring = rng.permutation(vertices)
        tail, head = np.concatenate([tail, ring]), np.concatenate([head, np.roll(ring, 1)])
    price = rng.integers(0, 5, tail.size).astype(float) if seed % 2 else rng.random(tail.size)
    return Digraph(vertices, tail.astype(np.int64), head.astype(np.int64), price)


def random_tree(seed: int, least: int = 1) -> tuple[int, Ints]:
    """The number of vertices and the edges (n-1, 2) of a random tree, in random order and direction."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(least, 12))
    name = rng.permutation(n)
    edges = np.array([[name[i], name[rng.integers(i)]] for i in range(1, n)], np.int64).reshape(-1, 2)
    edges = np.where(rng.random((n - 1, 1)) < 0.5, edges, edges[:, ::-1])
    return n, np.ascontiguousarray(edges[rng.permutation(n - 1)])


def least_arborescence(costs: dict[tuple[int, int], float], root: int) -> list[tuple[int, int]]:
    """Arcs of a minimum spanning arborescence out of the root, by networkx.

    Costs are turned so that one more arc is worth more than all differences together; the turn that
    ``nx.minimum_spanning_arborescence`` makes is too small for some sparse graphs, where it finds none.
    """
    low, high = min(costs.values()), max(costs.values())
    turn = high + 1 + len({v for _, v in costs}) * (high - low)
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_weighted_edges_from((u, v, turn - cost) for (u, v), cost in costs.items() if v != root)
    return list(nx.maximum_branching(graph).edges)
