"""Growing one spanning out-arborescence over routes while prices rise with every use: near-cheapest trees with spread loads.

Prim's algorithm on the digraph of cheapest routes, without computing it. Each vertex has a lower bound on the price of the way
to the nearest participant outside of the tree. Prices only rise and participants only join, so a bound stays one; a search
that follows the bounds runs straight to its goal where they are up to date, and raises them where they are not (learning
real-time search, Korf 1990). Where that takes too long, one Dijkstra makes all bounds exact again.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.shortest_paths import heap_pop, heap_push

__all__ = ["SLACK", "RouteGraph", "grow_arborescence", "reversed_graph", "route_graph"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST = 1e200  # of a price, so that no sum of prices overflows
SLACK = 1 + 1 / 32  # costs that share the exponent and five bits of the mantissa are equally good
SHIFT = 47  # which takes the other bits off
CLASSES = int(np.array([1e220]).view(np.int64)[0]) >> SHIFT
SAFE = 1 - 1e-12  # rounding must not lift a bound above what it bounds
EFFORT = 2  # arcs looked at in vain, in sizes of the graph, before bounds are computed anew


class RouteGraph(NamedTuple):
    """A graph over which participants have routes.

    Attributes:
        ptr, head, link, tail: arcs in CSR by tail, int64 (V+1,), (A,), (A,), (A,); arc ``a`` goes over link ``link[a]``.
        back_ptr, back: numbers of the arcs in CSR by head, int64 (V+1,), (A,).
        starts, ends: int64 (n,), the vertices where participant i's routes begin, which nothing enters, and where they end,
            which nothing leaves.
    """

    ptr: Ints
    head: Ints
    link: Ints
    tail: Ints
    back_ptr: Ints
    back: Ints
    starts: Ints
    ends: Ints


def route_graph(ptr: Ints, head: Ints, link: Ints, tail: Ints, starts: Ints, ends: Ints) -> RouteGraph:
    """With the arcs by head as well; the arguments are as the attributes."""
    back_ptr = np.zeros_like(ptr)
    np.cumsum(np.bincount(head, minlength=ptr.size - 1), out=back_ptr[1:])
    return RouteGraph(ptr, head, link, tail, back_ptr, np.argsort(head, kind="stable"), starts, ends)


def reversed_graph(graph: RouteGraph) -> RouteGraph:
    """Every arc turned. An out-arborescence of it is an in-arborescence of the graph; its routes come out backwards."""
    back = graph.back
    number = np.empty_like(back)
    number[back] = np.arange(back.size)
    turned = (graph.tail[back], graph.link[back], graph.head[back])
    return RouteGraph(graph.back_ptr, *turned, graph.ptr, number, graph.ends, graph.starts)


class _Search(NamedTuple):
    """What searches remember.

    Attributes:
        ahead: float64 (V,), the bounds; 0 of the ends of participants outside of the tree only.
        dist, stamp: (V,), the price of the way so far, valid where ``stamp`` is the present round.
        seen: int64 (V,), scratch. arcs: int64 (V,), the way that was found.
        keys, items: (A+V,), scratch of a heap.
    """

    ahead: Floats
    dist: Floats
    stamp: Ints
    seen: Ints
    arcs: Ints
    keys: Floats
    items: Ints


@nb.njit(cache=True)
def _renew(graph: RouteGraph, price: Floats, parent: Ints, state: _Search) -> None:
    """Make all bounds exact: Dijkstra's algorithm backwards from the participants outside."""
    ahead, keys, items = state.ahead, state.keys, state.items
    ahead[:] = np.inf
    size = 0
    for v in range(parent.size):
        if parent[v] == -2:
            ahead[graph.ends[v]] = 0.0
            size = heap_push(keys, items, size, 0.0, graph.ends[v])
    while size > 0:
        reach = keys[0]
        x = items[0]
        size = heap_pop(keys, items, size)
        if reach > ahead[x]:
            continue
        for k in range(graph.back_ptr[x], graph.back_ptr[x + 1]):
            arc = graph.back[k]
            y = graph.tail[arc]
            cost = reach + price[graph.link[arc]]
            if cost < ahead[y]:
                ahead[y] = cost
                if graph.back_ptr[y + 1] > graph.back_ptr[y]:
                    size = heap_push(keys, items, size, cost, y)


@nb.njit(cache=True)
def _search(
    graph: RouteGraph, price: Floats, scale: float, start: int, limit: float, effort: int, round_: int, state: _Search
) -> tuple[int, float, int]:
    """Look for a way from ``start`` to a participant outside that costs less than the limit, its first arc ``scale`` fold.

    Depth first, the arc that promises most first. Returns the number of arcs on the way, which stand in ``state.arcs``; if
    there is none, 0, then a lower bound on the cost of any way; and what is left of the effort, negative if that ran out.
    """
    ptr, head, link = graph.ptr, graph.head, graph.link
    ahead, dist, stamp, seen, arcs = state.ahead, state.dist, state.stamp, state.seen, state.arcs
    stamp[start] = round_
    dist[start] = 0.0
    seen[0] = x = start
    count = 1
    depth = 0
    bound = np.inf
    while True:
        effort -= ptr[x + 1] - ptr[x]
        if effort < 0:
            return 0, 0.0, effort
        factor = scale if depth == 0 else 1.0
        reach = dist[x]
        first = least = np.inf
        arc = -1
        for a in range(ptr[x], ptr[x + 1]):
            y = head[a]
            step = factor * price[link[a]]
            value = step + ahead[y]
            least = min(least, value)
            if value < first and (stamp[y] != round_ or reach + step < dist[y]):
                first = value
                arc = a
        ahead[x] = max(ahead[x], least)
        if reach + first < limit:
            arcs[depth] = arc
            depth += 1
            x = head[arc]
            if ahead[x] == 0.0:
                return depth, 0.0, effort
            if stamp[x] != round_:
                stamp[x] = round_
                seen[count] = x
                count += 1
            dist[x] = reach + factor * price[link[arc]]
            continue
        bound = min(bound, reach + first)
        if depth == 0:
            break
        depth -= 1
        x = graph.tail[arcs[depth]]
    for i in range(count):
        x = seen[i]
        ahead[x] = max(ahead[x], bound * SAFE - dist[x])
    return 0, bound, effort


@nb.njit(cache=True)
def _class_of(cost: float) -> int:
    return int(np.float64(cost).view(np.int64) >> SHIFT)


@nb.njit(cache=True)
def _least_of(class_: int) -> float:
    return float(np.int64(class_ << SHIFT).view(np.float64))


@nb.njit(cache=True)
def _wait(newest: Ints, after: Ints, u: int, class_: int) -> None:
    """Let participant u wait behind the others of its class of costs: a ring from the newest to the oldest."""
    last = newest[class_]
    if last < 0:
        after[u] = u
    else:
        after[u] = after[last]
        after[last] = u
    newest[class_] = u


@nb.njit(cache=True)
def _oldest(newest: Ints, after: Ints, class_: int) -> int:
    """Take out the participant that has waited longest in its class."""
    last = newest[class_]
    u = after[last]
    if u == last:
        newest[class_] = -1
    else:
        after[last] = after[u]
    return int(u)


@nb.njit(cache=True)
def _use(links: Ints, price: Floats, bump: float, room: Ints, penalty: float) -> None:
    """Make links dearer for a route that uses them."""
    for e in links:
        price[e] *= bump
        room[e] -= 1
        if room[e] == 0:
            price[e] *= penalty
        price[e] = min(price[e], MOST)


@nb.njit(cache=True)
def _by_participant(ptr: Ints, items: Ints, order: Ints, n: int) -> tuple[Ints, Ints]:
    """Of a CSR whose row i is participant order[i]'s, the CSR whose row v is participant v's."""
    new_ptr = np.zeros(n + 1, np.int64)
    new_ptr[order + 1] = ptr[1:] - ptr[:-1]
    new_ptr = np.cumsum(new_ptr)
    new_items = np.empty(ptr[-1], np.int64)
    for i in range(order.size):
        new_items[new_ptr[order[i]] : new_ptr[order[i] + 1]] = items[ptr[i] : ptr[i + 1]]
    return new_ptr, new_items


@nb.njit(cache=True)
def grow_arborescence(
    graph: RouteGraph,
    root: int,
    price: Floats,
    bump: float,
    room: Ints,
    penalty: float,
    flatness: float,
    max_depth: int,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Prim's algorithm along the arcs' directions, on prices that rise as the tree uses them.

    Always the participant comes next that is cheapest to reach from the tree, within ``SLACK``, and every link on its route
    gets dearer at once by the factor ``bump``. Of equally good places in the tree the one that has waited longest gets the
    child, which keeps the tree flat.

    Args:
        graph: the routes there are.
        root: participant to begin with.
        price: float64 (E,), positive; changed in place. bump: at least 1.
        room: int64 (E,), uses before the link is full; changed in place. penalty: factor once it is.
        flatness: a route's first link counts ``1 + flatness * d`` times its price if the route begins d edges below the root.
        max_depth: participants this far below the root take no more children; the root's stand at 1.

    Returns:
        parent: int64 (n,), -1 of the root, -2 of participants that were not reached.
        route_ptr, route: int64 (n+1,), (H,), CSR: links of the route from parent[v] to v, in its direction.
        order: int64 (n-1,) or shorter, participants in the order in which they were reached.
    """
    n = graph.starts.size
    vertices, arcs = graph.ptr.size - 1, graph.head.size
    state = _Search(
        np.empty(vertices),
        np.empty(vertices),
        np.zeros(vertices, np.int64),
        np.empty(vertices, np.int64),
        np.empty(vertices, np.int64),
        np.empty(arcs + vertices),
        np.empty(arcs + vertices, np.int64),
    )
    ahead, starts = state.ahead, graph.starts
    owner = np.empty(vertices, np.int64)
    owner[graph.ends] = np.arange(n)
    parent = np.full(n, -2, np.int64)
    parent[root] = -1
    _renew(graph, price, parent, state)
    depth = np.zeros(n, np.int64)
    order = np.empty(n, np.int64)
    ptr = np.zeros(n + 1, np.int64)
    route = np.empty(4 * n + vertices, np.int64)
    lowest = _class_of(price.min())
    newest = np.full(CLASSES - lowest + 1, -1, np.int64)
    after = np.empty(n, np.int64)
    _wait(newest, after, root, 0)
    effort = EFFORT * (vertices + arcs)
    cursor = rounds = done = 0
    while done < n - 1:
        while cursor < newest.size and newest[cursor] < 0:
            cursor += 1
        if cursor == newest.size:
            break
        u = _oldest(newest, after, cursor)
        scale = 1.0 + flatness * depth[u]
        limit = _least_of(lowest + cursor + 1)
        rounds += 1
        length, cost, left = _search(graph, price, scale, starts[u], limit, effort, rounds, state)
        if length == 0:
            effort = left
            if effort < 0:
                _renew(graph, price, parent, state)
                effort = EFFORT * (vertices + arcs)
            if cost < np.inf:
                _wait(newest, after, u, max(cursor, _class_of(cost) - lowest))
            continue
        end = graph.head[state.arcs[length - 1]]
        v = owner[end]
        ahead[end] = np.inf
        parent[v] = u
        depth[v] = depth[u] + 1
        order[done] = v
        if ptr[done] + length > route.size:
            route = np.append(route, np.empty(route.size, np.int64))
        ptr[done + 1] = ptr[done] + length
        links = route[ptr[done] : ptr[done + 1]]
        links[:] = graph.link[state.arcs[:length]]
        _use(links, price, bump, room, penalty)
        done += 1
        _wait(newest, after, u, cursor)
        if depth[v] < max_depth and ahead[starts[v]] < np.inf:
            class_ = _class_of(ahead[starts[v]]) - lowest
            _wait(newest, after, v, class_)
            cursor = min(cursor, class_)
    return parent, *_by_participant(ptr[: done + 1], route, order[:done], n), order[:done]
