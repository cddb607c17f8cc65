from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from dualcoll.kernels.growth import breadth_first, grow_tree
from tests.kernels.graphs import Digraph, Floats, Ints, random_digraph, random_tree

SEEDS = range(150)
DEEP = 2**31


@pytest.mark.parametrize("seed", SEEDS)
def test_breadth_first_order_starts_at_the_root_and_rises(seed: int) -> None:
    """Every vertex once, distances from the root never falling."""
    n, edges = random_tree(seed, least=2)
    order = breadth_first(edges, n, seed % n)
    away = nx.single_source_shortest_path_length(nx.Graph(edges.tolist()), seed % n)
    assert order[0] == seed % n
    assert sorted(order.tolist()) == list(range(n))
    steps = [away[v] for v in order.tolist()]
    assert steps == sorted(steps)


class _Growth:
    """A connected graph, its terminals in random order, and a tree grown on it."""

    def __init__(
        self, seed: int, *, bump: float = 1.0, room: int = 1000, flatness: float = 0.0, max_depth: int = DEEP
    ) -> None:
        graph = random_digraph(seed, connected=True)
        rng = np.random.default_rng(seed)
        self.graph = graph
        self.price: Floats = graph.price + 0.1
        self.order: Ints = rng.permutation(2 + seed % (graph.vertices - 1))
        ends = np.concatenate([graph.tail, graph.head])
        by_end = np.argsort(ends, kind="stable")
        ptr = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=graph.vertices))])
        self.left = np.full(graph.tail.size, room)
        self.dearer = self.price.copy()
        self.edges, self.path_ptr, self.path = grow_tree(
            ptr,
            np.concatenate([graph.head, graph.tail])[by_end],
            np.tile(np.arange(graph.tail.size), 2)[by_end],
            graph.tail,
            self.order,
            self.dearer,
            np.full(graph.tail.size, bump),
            self.left,
            1000.0,
            flatness,
            max_depth,
        )

    def walk(self, k: int) -> list[int]:
        return list(self.path[self.path_ptr[k] : self.path_ptr[k + 1]].tolist())

    def depths(self) -> dict[int, int]:
        depth = {int(self.order[0]): 0}
        for child, parent in self.edges.tolist():
            depth[child] = depth[parent] + 1
        return depth


def _without_terminals(graph: Digraph, price: Floats, kept: set[int], terminals: int) -> nx.Graph[int]:
    """The undirected graph in which of the terminals only the kept ones are left."""
    left: nx.Graph[int] = nx.Graph()
    left.add_nodes_from(kept)
    for tail, head, cost in zip(graph.tail.tolist(), graph.head.tolist(), price.tolist(), strict=True):
        if all(v >= terminals or v in kept for v in (tail, head)):
            known = left.get_edge_data(tail, head, {"weight": np.inf})["weight"]
            left.add_edge(tail, head, weight=min(known, cost))
    return left


@pytest.mark.parametrize("seed", SEEDS)
def test_each_terminal_joins_the_tree_over_the_cheapest_path(seed: int) -> None:
    """Without flatness: networkx's distance to the nearest terminal already there, no terminal in between, old prices."""
    grown = _Growth(seed)
    n = grown.order.size
    inside = {int(grown.order[0])}
    for k, (child, parent) in enumerate(grown.edges.tolist()):
        assert child == grown.order[k + 1]
        assert parent in inside
        place = child
        for step in grown.walk(k):
            first, second = (grown.graph.tail, grown.graph.head)[:: 1 if step % 2 == 0 else -1]
            assert first[step >> 1] == place
            place = int(second[step >> 1])
        assert place == parent
        cost = sum(grown.price[step >> 1] for step in grown.walk(k))
        distances = []
        for other in inside:
            left = _without_terminals(grown.graph, grown.price, {child, other}, n)
            if nx.has_path(left, child, other):
                distances.append(nx.dijkstra_path_length(left, child, other))
        assert cost == pytest.approx(min(distances))
        inside.add(child)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_use_raises_the_price_and_takes_room(seed: int) -> None:
    """By the factor for each use, and by the penalty once no room is left."""
    grown = _Growth(seed, bump=1.5, room=2)
    uses = np.bincount(grown.path >> 1, minlength=grown.price.size)
    np.testing.assert_array_equal(grown.left, 2 - uses)
    np.testing.assert_allclose(grown.dearer, grown.price * 1.5**uses * np.where(uses >= 2, 1000.0, 1.0))


@pytest.mark.parametrize("seed", SEEDS)
def test_depth_is_kept_within_its_limit(seed: int) -> None:
    """No terminal below the limit; a tree that cannot be finished within it comes back short."""
    grown = _Growth(seed, max_depth=1)
    assert max(grown.depths().values()) <= 1
    assert len(grown.depths()) == grown.edges.shape[0] + 1 <= grown.order.size


def test_flatness_prefers_places_near_the_root() -> None:
    """On a line of three with a slightly dearer cable from end to end, the flat tree is the star."""
    args = (
        np.array([0, 2, 4, 6]),
        np.array([1, 2, 0, 2, 0, 1]),
        np.array([0, 2, 0, 1, 2, 1]),
        np.array([0, 1, 0]),
        np.array([0, 1, 2]),
    )
    for flatness, parent in ((0.0, 1), (0.5, 0)):
        price = np.array([1.0, 1.0, 1.2])
        edges, _, _ = grow_tree(*args, price, np.ones(3), np.full(3, 9), 1.0, flatness, DEEP)
        assert edges.tolist() == [[1, 0], [2, parent]]


def test_a_terminal_without_a_way_ends_the_tree() -> None:
    """The edges so far come back."""
    edges, ptr, path = grow_tree(
        np.array([0, 1, 2, 2]),
        np.array([1, 0]),
        np.array([0, 0]),
        np.array([0]),
        np.array([0, 1, 2]),
        np.ones(1),
        np.ones(1),
        np.ones(1, np.int64),
        1.0,
        0.0,
        DEEP,
    )
    assert edges.tolist() == [[1, 0]]
    assert ptr.tolist() == [0, 1]
    assert path.tolist() == [1]
