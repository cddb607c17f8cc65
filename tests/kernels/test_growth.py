from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import networkx as nx
import numpy as np
import pytest

from dualcoll.kernels.growth import SLACK, grow_tree
from dualcoll.kernels.spanning_tree import voronoi_spanning_tree
from tests.kernels.graphs import Floats, Ints

SEEDS = range(160)
DEEP = 2**31
PLENTY = 10**6
PENALTY = 1000.0


@dataclass(frozen=True, slots=True)
class _Graph:
    """Cables (K,) between vertices, terminals first, and the CSR that the kernel walks."""

    vertices: int
    terminals: int
    tail: Ints
    head: Ints
    price: Floats

    def arcs(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """ptr, head, cable, reverse and switch_ptr; arcs to terminals stand first."""
        cables = self.tail.size
        tail, head = np.concatenate([self.tail, self.head]), np.concatenate([self.head, self.tail])
        order = np.lexsort([head, tail])
        ptr = np.concatenate([[0], np.cumsum(np.bincount(tail, minlength=self.vertices))])
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        first = np.bincount(tail[head < self.terminals], minlength=self.vertices)
        reverse = place[(order + cables) % (2 * cables)]
        return ptr, head[order], np.tile(np.arange(cables), 2)[order], reverse, ptr[:-1] + first

    def attachments(self, price: Floats, depth: dict[int, int], flatness: float, max_depth: int) -> dict[int, float]:
        """What each terminal outside of the tree pays to attach at these prices, by Dijkstra from all places at once."""
        near: list[list[tuple[int, float]]] = [[] for _ in range(self.vertices)]
        for a, b, cost in zip(self.tail.tolist(), self.head.tolist(), price.tolist(), strict=True):
            near[a].append((b, cost))
            near[b].append((a, cost))
        found: dict[int, float] = {}
        queue = [
            (cost * (1 + flatness * deep), y)
            for v, deep in depth.items()
            if deep < max_depth
            for y, cost in near[v]
            if y not in depth
        ]
        heapq.heapify(queue)
        while queue:
            reach, x = heapq.heappop(queue)
            if x in found:
                continue
            found[x] = reach
            if x >= self.terminals:
                for y, cost in near[x]:
                    if y not in depth:
                        heapq.heappush(queue, (reach + cost, y))
        return {x: cost for x, cost in found.items() if x < self.terminals}


def _graph(seed: int, *, connected: bool = True) -> _Graph:
    """2 to 30 vertices, parallel cables; small whole prices with ties, or real ones that differ widely."""
    rng = np.random.default_rng(seed)
    vertices = int(rng.integers(2, 31))
    terminals = int(rng.integers(2, vertices + 1))
    tail, head = rng.integers(vertices, size=(2, int(rng.integers(1, 3 * vertices))))
    if connected:
        name = rng.permutation(vertices)
        tail = np.concatenate([tail, name[1:]])
        head = np.concatenate([head, [name[rng.integers(i)] for i in range(1, vertices)]])
    keep = tail != head
    tail, head = tail[keep], head[keep]
    price = rng.integers(1, 5, tail.size).astype(float) if seed % 2 else 10.0 ** rng.uniform(-3, 1, tail.size)
    return _Graph(vertices, terminals, tail, head, price)


@dataclass(slots=True)
class _Grown:
    """A tree with what the kernel left of prices and room."""

    graph: _Graph
    root: int
    edges: list[list[int]]
    walks: list[list[int]]
    price: Floats
    room: Ints
    arcs: tuple[Ints, Ints, Ints, Ints, Ints]

    def cables(self, k: int) -> list[int]:
        return [int(self.arcs[2][arc]) for arc in self.walks[k]]

    def depths(self) -> dict[int, int]:
        depth = {self.root: 0}
        for child, parent in self.edges:
            depth[child] = depth[parent] + 1
        return depth


def _grow(
    graph: _Graph,
    root: int = 0,
    bump: float = 1.0,
    room: Ints | None = None,
    flatness: float = 0.0,
    max_depth: int = DEEP,
) -> _Grown:
    price = graph.price.copy()
    left = np.full(price.size, PLENTY) if room is None else room.copy()
    arcs = graph.arcs()
    edges, ptr, path = grow_tree(*arcs, graph.terminals, root, price, bump, left, PENALTY, flatness, max_depth)
    walks = [path[a:b].tolist() for a, b in itertools.pairwise(ptr.tolist())]
    return _Grown(graph, root, edges.tolist(), walks, price, left, arcs)


def _varied(seed: int, *, connected: bool = True) -> tuple[_Grown, float, Ints, float, int]:
    """A tree with everything in play, and the bump, room, flatness and depth limit that it was grown with."""
    rng = np.random.default_rng([seed, 1])
    graph = _graph(seed, connected=connected)
    bump, flatness = float(rng.choice([1.0, 1.35, 3.0])), float(rng.choice([0.0, 0.02, 0.5]))
    room = rng.integers(0, 4, graph.price.size)
    max_depth = int(rng.choice([1, 2, 3, DEEP]))
    grown = _grow(graph, int(rng.integers(graph.terminals)), bump, room, flatness, max_depth)
    return grown, bump, room, flatness, max_depth


@pytest.mark.parametrize("seed", SEEDS)
def test_at_steady_prices_the_tree_is_a_minimum_spanning_tree_within_the_slack(seed: int) -> None:
    """Against Voronoi cells and against networkx on the metric closure."""
    graph = _graph(seed)
    grown = _grow(graph, root=seed % graph.terminals)
    cost = sum(graph.price[grown.cables(k)].sum() for k in range(len(grown.edges)))
    ptr, head, cable, _, _ = graph.arcs()
    least = voronoi_spanning_tree(ptr, head, cable, graph.tail, graph.head, graph.price, graph.terminals)[0]
    wired: nx.MultiGraph[int] = nx.MultiGraph()
    wired.add_weighted_edges_from(zip(graph.tail.tolist(), graph.head.tolist(), graph.price.tolist(), strict=True))
    closure: nx.Graph[int] = nx.Graph()
    for v, away in nx.all_pairs_dijkstra_path_length(wired):
        closure.add_weighted_edges_from((v, u, away[u]) for u in range(graph.terminals) if u < v < graph.terminals)
    assert least == pytest.approx(nx.minimum_spanning_tree(closure).size("weight"))
    assert len(grown.edges) == graph.terminals - 1
    assert least * (1 - 1e-12) <= cost <= least * SLACK * (1 + 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_walk_joins_a_new_terminal_to_one_in_the_tree(seed: int) -> None:
    """Arc after arc, over vertices that are no terminals, none twice; no parent as deep as the limit."""
    grown, *_, max_depth = _varied(seed)
    _, head, _, reverse, _ = grown.arcs
    depth = {grown.root: 0}
    for (child, parent), walk in zip(grown.edges, grown.walks, strict=True):
        assert child not in depth
        assert depth[parent] < max_depth
        visited = [child, *(int(head[arc]) for arc in walk)]
        assert [int(head[reverse[arc]]) for arc in walk] == visited[:-1]
        assert visited[-1] == parent
        assert all(x >= grown.graph.terminals for x in visited[1:-1])
        assert len(set(visited)) == len(visited)
        depth[child] = depth[parent] + 1


@pytest.mark.parametrize("seed", SEEDS)
def test_every_attachment_is_cheapest_within_the_slack_at_the_prices_of_its_moment(seed: int) -> None:
    """Replayed with plain Dijkstra: the terminal pays the least it can, and nobody could have attached for much less."""
    grown, bump, room, flatness, max_depth = _varied(seed)
    price, left, depth = grown.graph.price.copy(), room.copy(), {grown.root: 0}
    for k, (child, parent) in enumerate(grown.edges):
        best = grown.graph.attachments(price, depth, flatness, max_depth)
        cables = grown.cables(k)
        cost = price[cables].sum() + price[cables[-1]] * flatness * depth[parent]
        assert cost == pytest.approx(best[child], rel=1e-12)
        assert cost <= min(best.values()) * SLACK * (1 + 1e-12)
        depth[child] = depth[parent] + 1
        for c in cables:
            left[c] -= 1
            price[c] *= bump * (PENALTY if left[c] == 0 else 1.0)
    np.testing.assert_array_equal(left, grown.room)
    np.testing.assert_allclose(price, grown.price, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tree_comes_back_short_only_where_nobody_else_can_attach(seed: int) -> None:
    """With and without a way to everybody: whoever is missing has no way to a terminal that takes children."""
    grown, _, _, flatness, max_depth = _varied(seed, connected=seed % 3 > 0)
    depth = grown.depths()
    assert len(depth) == len(grown.edges) + 1
    assert grown.graph.attachments(grown.price, depth, flatness, max_depth) == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_where_the_root_reaches_everybody_directly_any_depth_is_possible(seed: int) -> None:
    """A star comes out for a limit of 1, and a whole tree within the limit for a higher one."""
    graph = _graph(seed)
    direct = graph.attachments(graph.price, {0: 0}, 0.0, 1)
    for max_depth in (1, 2, 3):
        grown = _grow(graph, bump=1.35, room=np.ones(graph.price.size, np.int64), max_depth=max_depth)
        assert max(grown.depths().values(), default=0) <= max_depth
        if len(direct) == graph.terminals - 1:
            assert len(grown.edges) == graph.terminals - 1
        elif max_depth == 1:
            assert len(grown.edges) == len(direct)


def test_flatness_prefers_places_near_the_root() -> None:
    """On a line of three with a slightly dearer cable from end to end, the flat tree is the star."""
    triangle = _Graph(3, 3, np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([1.0, 1.0, 1.2]))
    assert _grow(triangle, flatness=0.0).edges == [[1, 0], [2, 1]]
    assert _grow(triangle, flatness=0.5).edges == [[1, 0], [2, 0]]


def test_a_price_that_rises_sends_the_next_terminal_elsewhere() -> None:
    """Two terminals reach the root over a shared cheap switch or each its own; the second takes its own once that pays."""
    cables = [(0, 3, 1.0), (1, 3, 1.0), (2, 3, 1.0), (2, 4, 2.0), (4, 0, 0.1)]
    tail, head, price = (np.array(column) for column in zip(*cables, strict=True))
    graph = _Graph(5, 3, tail.astype(np.int64), head.astype(np.int64), price)
    assert _grow(graph).edges == [[1, 0], [2, 0]] or _grow(graph).edges == [[1, 0], [2, 1]]
    full = _grow(graph, room=np.array([1, 1, 9, 9, 9]))
    assert full.edges[1] == [2, 0]
    assert full.cables(1) == [3, 4]


def test_prices_that_rise_without_end_do_not_end_the_tree() -> None:
    """A star of thousands over one cable of the root: its price must not overflow and cut the tree short."""
    n = 4000
    tail, head = np.arange(n), np.full(n, n)
    graph = _Graph(n + 1, n, tail, head, np.ones(n))
    assert len(_grow(graph, bump=1.35, max_depth=1).edges) == n - 1
