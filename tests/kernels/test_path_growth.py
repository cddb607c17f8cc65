from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from dualcoll.kernels.path_growth import grow_paths, relay_graph
from dualcoll.kernels.route_search import route_graph
from dualcoll.routing.policy_graph import policy_graph
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Forwarding
from tests.kernels.graphs import Floats, Ints
from tests.kernels.routes import RouteCase, route_case, route_graph_of

SEEDS = range(120)
PENALTY = 1000.0


@dataclass(slots=True)
class _Grown:
    """Each target's logical edges with their links, and what the kernel left of prices and room."""

    paths: list[list[tuple[int, int, list[int]]]]
    price: Floats
    room: Floats


def _grow(
    case: RouteCase,
    source: int,
    targets: Ints,
    amounts: Floats,
    *,
    relay: bool,
    batch: int = 1,
    bump: float = 1.0,
    room: Floats | None = None,
) -> _Grown:
    graph = relay_graph(case.graph, case.price.size) if relay else case.graph
    price = case.price.copy()
    left = np.full(price.size, np.inf) if room is None else room.copy()
    hop_ptr, hops, ptr, route = grow_paths(graph, source, targets, amounts, batch, price, bump, left, PENALTY)
    routes = [route[a:b].tolist() for a, b in itertools.pairwise(ptr.tolist())]
    edges = [(u, v, links) for (u, v), links in zip(hops.tolist(), routes, strict=True)]
    return _Grown([edges[a:b] for a, b in itertools.pairwise(hop_ptr.tolist())], price, left)


@dataclass(frozen=True, slots=True)
class _Varied:
    """A random case and what to ask of it."""

    case: RouteCase
    source: int
    targets: Ints
    amounts: Floats
    relay: bool
    batch: int
    bump: float
    room: Floats

    def grow(self) -> _Grown:
        return _grow(
            self.case,
            self.source,
            self.targets,
            self.amounts,
            relay=self.relay,
            batch=self.batch,
            bump=self.bump,
            room=self.room,
        )


def _varied(seed: int) -> _Varied:
    rng = np.random.default_rng([seed, 2])
    case = route_case(seed, connected=seed % 4 > 0)
    order = rng.permutation(case.n)
    amounts = rng.choice([1.0, 0.25, 2.5], case.n - 1)
    bump, batch = float(rng.choice([1.0, 1.35, 3.0])), int(rng.choice([1, 3, 100]))
    room = rng.choice([0.0, 0.5, 1.0, 2.75, 9.0], case.price.size)
    return _Varied(case, int(order[0]), order[1:], amounts, seed % 3 > 0, batch, bump, room)


@pytest.mark.parametrize("seed", SEEDS)
def test_paths_lead_from_the_source_to_each_target(seed: int) -> None:
    """Logical edge after logical edge, each over a route from the one's start to the other's end; one edge without relays."""
    varied = _varied(seed)
    graph = varied.case.graph
    for target, path in zip(varied.targets.tolist(), varied.grow().paths, strict=True):
        if not path:
            continue
        visited = [varied.source, *(v for _, v, _ in path)]
        assert [u for u, _, _ in path] == visited[:-1]
        assert visited[-1] == target
        assert len(set(visited)) == len(visited)
        assert varied.relay or len(path) == 1
        for u, v, links in path:
            here = {int(graph.starts[u])}
            for e in links:
                here = {int(graph.head[a]) for a in np.flatnonzero(graph.link == e) if int(graph.tail[a]) in here}
            assert int(graph.ends[v]) in here


@pytest.mark.parametrize("seed", SEEDS)
def test_each_batch_takes_cheapest_paths_at_what_the_batches_before_left(seed: int) -> None:
    """Replayed with plain Dijkstra; who has no path is unreachable, and prices and room come out as replayed."""
    varied = _varied(seed)
    case, grown = varied.case, varied.grow()
    graph = relay_graph(case.graph, case.price.size) if varied.relay else case.graph
    price, room = case.price.copy(), varied.room.copy()
    best: dict[int, float] = {}
    old = price
    for i, (target, path) in enumerate(zip(varied.targets.tolist(), grown.paths, strict=True)):
        if i % varied.batch == 0:
            old = price.copy()
            walker = RouteCase(graph, np.append(old, 0.0))
            best = walker.walk({int(graph.starts[varied.source]): 1.0}, walker.price)
        links = [e for *_, route in path for e in route]
        assert bool(path) == (int(graph.ends[target]) in best)
        if path:
            assert old[links].sum() == pytest.approx(best[int(graph.ends[target])], rel=1e-9)
        for e in links:
            full = room[e] >= 1
            room[e] -= varied.amounts[i]
            price[e] *= varied.bump ** varied.amounts[i] * (PENALTY if full and room[e] < 1 else 1.0)
    np.testing.assert_allclose(grown.price, price, rtol=1e-9)
    np.testing.assert_allclose(grown.room, room)


def test_a_relay_is_used_where_that_is_cheaper_or_the_only_way() -> None:
    """From 0 to 2 there is a dear direct link and a cheap way over 1; to 3 only a way over 2."""
    tail, head = np.array([0, 0, 1, 2]), np.array([2, 1, 2, 3])
    case = RouteCase(route_graph_of(4, tail, head, set()), np.array([9.0, 1.0, 1.0, 1.0]))
    targets, ones = np.array([2, 3]), np.ones(2)
    assert _grow(case, 0, targets, ones, relay=False).paths == [[(0, 2, [0])], []]
    assert _grow(case, 0, targets, ones, relay=True).paths == [
        [(0, 1, [1]), (1, 2, [2])],
        [(0, 1, [1]), (1, 2, [2]), (2, 3, [3])],
    ]


def test_what_a_path_carries_decides_how_dear_it_gets() -> None:
    """Two parallel links: one large path fills the first link, the small ones that follow take the second."""
    tail, head = np.array([0, 0, 3, 3, 4, 4]), np.array([3, 4, 1, 2, 1, 2])
    price = np.array([1.0, 1.5, 0.1, 0.1, 0.1, 0.1])
    case = RouteCase(route_graph_of(3, tail, head, set()), price)
    for amount, way in ((1.0, [0, 3]), (2.0, [1, 5])):
        grown = _grow(case, 0, np.array([1, 2]), np.array([amount, 1.0]), relay=False, bump=1.35)
        assert grown.paths == [[(0, 1, [0, 2])], [(0, 2, way)]]


def test_prices_that_rise_without_end_do_not_end_the_paths() -> None:
    """Thousands of targets behind one link of the source, one by one."""
    n = 2000
    graph = route_graph_of(n, np.array([0, *[n] * (n - 1)]), np.array([n, *range(1, n)]), set())
    grown = _grow(RouteCase(graph, np.ones(n)), 0, np.arange(1, n), np.ones(n - 1), relay=False, bump=3.0, batch=9)
    assert all(len(path) == 1 for path in grown.paths)
    assert np.isfinite(grown.price).all()


def test_all_to_all_uses_the_ports_of_boxes_evenly() -> None:
    """With relays inside boxes, in batches: the fullest port carries little more than the mean, in both directions."""
    boxes, gpus, steer = 6, 4, 0.1
    topology = catalog(f"rail:{boxes}x{gpus}")
    states = policy_graph(topology, topology.ranks, Forwarding.SWITCHES)
    direct = route_graph(states.ptr, states.head, states.link, states.tail, states.starts, states.ends)
    capacity = np.array([link.capacity for link in topology.links])
    graph = relay_graph(direct, capacity.size)
    box = [node.box for node in topology.nodes]
    ports = np.array([(box[link.tail] is None) != (box[link.head] is None) for link in topology.links])
    n = boxes * gpus
    pace = capacity / capacity[ports].min() * (boxes - 1) * gpus / n
    rng = np.random.default_rng(0)
    total = np.zeros(capacity.size)
    for k, source in enumerate(rng.permutation(n).tolist()):
        price = np.exp(steer * (total - k * pace)) / capacity * (1 + 0.02 * rng.random(capacity.size))
        targets = rng.permutation(np.delete(np.arange(n), source))
        room = np.full(capacity.size, np.inf)
        *_, route = grow_paths(graph, source, targets, np.ones(n - 1), 4, price, math.exp(steer), room, PENALTY)
        total += np.bincount(route, minlength=capacity.size)
    used = total[ports]
    assert used.sum() >= 2 * n * (boxes - 1) * gpus
    assert used.max() <= 1.15 * (boxes - 1) * gpus
