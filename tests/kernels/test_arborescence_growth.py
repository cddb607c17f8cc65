from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import networkx as nx
import numpy as np
import pytest

from dualcoll.kernels.arborescence_growth import grow_arborescence
from dualcoll.kernels.route_search import SLACK, reversed_graph, route_graph
from dualcoll.routing.policy_graph import policy_graph
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Forwarding
from tests.kernels.graphs import Floats, Ints, least_arborescence
from tests.kernels.routes import RouteCase, route_case, route_graph_of

SEEDS = range(160)
DEEP = 2**31
PLENTY = 10**9
PENALTY = 1000.0


@dataclass(slots=True)
class _Grown:
    """A tree with what the kernel left of prices and room."""

    parent: list[int]
    routes: list[list[int]]
    order: list[int]
    price: Floats
    room: Ints

    def depths(self, root: int) -> dict[int, int]:
        depth = {root: 0}
        for v in self.order:
            depth[v] = depth[self.parent[v]] + 1
        return depth


def _grow(
    case: RouteCase,
    root: int = 0,
    bump: float = 1.0,
    room: Ints | None = None,
    flatness: float = 0.0,
    max_depth: int = DEEP,
) -> _Grown:
    price = case.price.copy()
    left = np.full(price.size, PLENTY) if room is None else room.copy()
    parent, ptr, route, order = grow_arborescence(case.graph, root, price, bump, left, PENALTY, flatness, max_depth)
    routes = [route[a:b].tolist() for a, b in itertools.pairwise(ptr.tolist())]
    return _Grown(parent.tolist(), routes, order.tolist(), price, left)


def _varied(seed: int, *, connected: bool = True) -> tuple[RouteCase, _Grown, int, float, Ints, float, int]:
    """A tree with everything in play, and the root, bump, room, flatness and depth limit that it was grown with."""
    rng = np.random.default_rng([seed, 1])
    case = route_case(seed, connected=connected)
    root = int(rng.integers(case.n))
    bump, flatness = float(rng.choice([1.0, 1.35, 3.0])), float(rng.choice([0.0, 0.02, 0.5]))
    room = rng.integers(0, 4, case.price.size)
    max_depth = int(rng.choice([1, 2, 3, DEEP]))
    return case, _grow(case, root, bump, room, flatness, max_depth), root, bump, room, flatness, max_depth


@pytest.mark.parametrize("seed", SEEDS)
def test_every_route_leads_from_the_parent_to_the_child(seed: int) -> None:
    """Over arcs that follow each other, from a participant that was in the tree already, no deeper than allowed."""
    case, grown, root, *_, max_depth = _varied(seed, connected=seed % 4 > 0)
    graph = case.graph
    depth = {root: 0}
    assert grown.parent[root] == -1
    for v in grown.order:
        u = grown.parent[v]
        assert v not in depth
        assert depth[u] < max_depth
        depth[v] = depth[u] + 1
        here = {int(graph.starts[u])}
        for e in grown.routes[v]:
            here = {int(graph.head[a]) for a in np.flatnonzero(graph.link == e) if int(graph.tail[a]) in here}
        assert int(graph.ends[v]) in here
    for v in range(case.n):
        assert (v in depth) == (grown.parent[v] != -2)
        assert (v in grown.order) == bool(grown.routes[v])


@pytest.mark.parametrize("seed", SEEDS)
def test_every_attachment_is_cheapest_within_the_slack_at_the_prices_of_its_moment(seed: int) -> None:
    """Replayed with plain Dijkstra, in the order in which participants were reached."""
    case, grown, root, bump, room, flatness, max_depth = _varied(seed, connected=seed % 4 > 0)
    price, left, depth = case.price.copy(), room.copy(), {root: 0}
    for v in grown.order:
        best = case.attachments(price, depth, flatness, max_depth)
        u, links = grown.parent[v], grown.routes[v]
        cost = price[links].sum() + price[links[0]] * flatness * depth[u]
        assert best[v] * (1 - 1e-9) <= cost <= min(best.values()) * SLACK * (1 + 1e-9)
        depth[v] = depth[u] + 1
        for e in links:
            left[e] -= 1
            price[e] *= bump * (PENALTY if left[e] == 0 else 1.0)
    np.testing.assert_array_equal(left, grown.room)
    np.testing.assert_allclose(price, grown.price, rtol=1e-12)
    assert case.attachments(price, depth, flatness, max_depth) == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_at_steady_prices_no_tree_is_cheaper_than_the_minimum_arborescence(seed: int) -> None:
    """Against networkx on the projected digraph; where both ways cost the same, the tree is minimum within the slack."""
    for symmetric in (False, True):
        case = route_case(seed, symmetric=symmetric)
        grown = _grow(case, root=seed % case.n)
        cost = sum(case.price[route].sum() for route in grown.routes)
        costs = case.closure()
        if symmetric:
            graph: nx.Graph[int] = nx.Graph()
            graph.add_weighted_edges_from((u, v, cost) for (u, v), cost in costs.items())
            least = nx.minimum_spanning_tree(graph).size("weight")
            assert cost <= least * SLACK * (1 + 1e-9)
        else:
            least = sum(costs[arc] for arc in least_arborescence(costs, seed % case.n))
        assert len(grown.order) == case.n - 1
        assert cost >= least * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_the_reversed_graph_has_every_arc_turned(seed: int) -> None:
    """The same links between swapped states, in both orders of its arcs; turned twice, it is what it was."""
    graph = route_case(seed).graph
    turned = reversed_graph(graph)
    arcs = sorted(zip(graph.tail.tolist(), graph.head.tolist(), graph.link.tolist(), strict=True))
    assert sorted(zip(turned.head.tolist(), turned.tail.tolist(), turned.link.tolist(), strict=True)) == arcs
    for x in range(turned.ptr.size - 1):
        assert (turned.tail[turned.ptr[x] : turned.ptr[x + 1]] == x).all()
        assert (turned.head[turned.back[turned.back_ptr[x] : turned.back_ptr[x + 1]]] == x).all()
    np.testing.assert_array_equal(turned.starts, graph.ends)
    np.testing.assert_array_equal(turned.ends, graph.starts)
    for one, other in zip(reversed_graph(turned), graph, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", SEEDS)
def test_where_the_root_reaches_everybody_directly_any_depth_is_possible(seed: int) -> None:
    """A star comes out for a limit of 1, and a whole tree within the limit for a higher one."""
    case = route_case(seed, connected=seed % 4 > 0)
    direct = case.attachments(case.price, {0: 0}, 0.0, 1)
    for max_depth in (1, 2, 3):
        grown = _grow(case, bump=1.35, room=np.ones(case.price.size, np.int64), max_depth=max_depth)
        assert max(grown.depths(0).values()) <= max_depth
        if len(direct) == case.n - 1 or max_depth == 1:
            assert len(grown.order) == len(direct)


def _both_ways(participants: int, cables: list[tuple[int, int, float]]) -> RouteCase:
    a, b, price = (np.array(column) for column in zip(*cables, strict=True))
    tail, head = np.concatenate([a, b]), np.concatenate([b, a])
    return RouteCase(route_graph_of(participants, tail, head, set()), np.tile(price.astype(float), 2))


def test_flatness_prefers_places_near_the_root() -> None:
    """On a line of three with a slightly dearer cable from end to end, the flat tree is the star."""
    triangle = _both_ways(3, [(0, 1, 1.0), (1, 2, 1.0), (0, 2, 1.2)])
    assert _grow(triangle, flatness=0.0).parent == [-1, 0, 1]
    assert _grow(triangle, flatness=0.5).parent == [-1, 0, 0]


def test_a_price_that_rises_sends_the_next_route_elsewhere() -> None:
    """Two participants are reached over one link of the root, or the dearer over another once the first is full."""
    tail, head = np.array([0, 3, 3, 0, 4]), np.array([3, 1, 2, 4, 2])
    case = RouteCase(route_graph_of(3, tail, head, set()), np.array([1.0, 1.0, 1.2, 0.1, 2.2]))
    assert _grow(case).routes == [[], [0, 1], [0, 2]]
    assert _grow(case, room=np.array([1, 9, 9, 9, 9])).routes == [[], [0, 1], [3, 4]]


def test_prices_that_rise_without_end_do_not_end_the_tree() -> None:
    """A star of thousands over one link of the root: its price must not overflow and cut the tree short."""
    n = 4000
    case = RouteCase(route_graph_of(n, np.array([0, *[n] * n]), np.array([n, *range(n)]), set()), np.ones(n + 1))
    grown = _grow(case, bump=1.35)
    assert grown.parent == [-1] + [0] * (n - 1)
    assert np.isfinite(grown.price).all()


def test_a_participant_that_nobody_reaches_is_left_out() -> None:
    """Its parent is -2 and its route is empty; the others are in the tree."""
    case = RouteCase(route_graph_of(3, np.array([0, 2]), np.array([1, 1]), set()), np.ones(2))
    grown = _grow(case)
    assert (grown.parent, grown.routes, grown.order) == ([-1, 0, -2], [[], [0], []], [1])


def test_trees_one_after_another_use_the_rails_of_boxes_evenly() -> None:
    """Each box is entered once by each tree, and over many trees each of its ports is used about equally."""
    boxes, gpus, trees = 8, 4, 64
    topology = catalog(f"rail:{boxes}x{gpus}")
    states = policy_graph(topology, topology.ranks, Forwarding.SWITCHES)
    graph = route_graph(states.ptr, states.head, states.link, states.tail, states.starts, states.ends)
    box = np.array([node.box or "" for node in topology.nodes])
    into = np.array([box[link.head] if not box[link.tail] else "" for link in topology.links])
    capacity = np.array([link.capacity for link in topology.links])
    pace = capacity / capacity[into == "b0"].sum()
    rng = np.random.default_rng(0)
    total = np.zeros(capacity.size)
    for k in range(trees):
        price = np.exp(0.3 * (total - k * pace)) / capacity * (1 + 0.02 * rng.random(capacity.size))
        root = int(rng.integers(boxes * gpus))
        room = np.full(capacity.size, PLENTY)
        _, _, route, _ = grow_arborescence(graph, root, price, math.exp(0.3), room, PENALTY, 0.02, DEEP)
        loads = np.bincount(route, minlength=capacity.size)
        for name in sorted(set(box) - {""}):
            assert loads[into == name].sum() == (name != box[topology.ranks[root]])
        total += loads
    used = total[into != ""]
    assert used.size == boxes * gpus
    assert used.max() <= 1.3 * used.mean()
