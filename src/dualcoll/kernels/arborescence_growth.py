"""Growing one spanning out-arborescence over routes while prices rise with every use: near-cheapest trees with spread loads.

Prim's algorithm on the digraph of cheapest routes, without computing it: participants in the tree wait by a lower bound on
what the way to the nearest participant outside costs, and a search from the first of them finds the way or raises the bound.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.route_search import (
    CLASSES,
    EFFORT,
    MOST,
    RouteGraph,
    class_of,
    least_of,
    nothing_learnt,
    renew,
    search,
)

__all__ = ["grow_arborescence"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


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
    vertices = graph.ptr.size - 1
    learnt = nothing_learnt(graph)
    ahead, starts = learnt.ahead, graph.starts
    owner = np.empty(vertices, np.int64)
    owner[graph.ends] = np.arange(n)
    parent = np.full(n, -2, np.int64)
    parent[root] = -1
    renew(graph, price, graph.ends[parent == -2], learnt)
    depth = np.zeros(n, np.int64)
    order = np.empty(n, np.int64)
    ptr = np.zeros(n + 1, np.int64)
    route = np.empty(4 * n + vertices, np.int64)
    lowest = class_of(price.min())
    newest = np.full(CLASSES - lowest, -1, np.int64)
    after = np.empty(n, np.int64)
    _wait(newest, after, root, 0)
    effort = EFFORT * (vertices + graph.head.size)
    cursor = rounds = done = 0
    while done < n - 1:
        while cursor < newest.size and newest[cursor] < 0:
            cursor += 1
        if cursor == newest.size:
            break
        u = _oldest(newest, after, cursor)
        scale = 1.0 + flatness * depth[u]
        limit = least_of(lowest + cursor + 1)
        rounds += 1
        length, cost, left = search(graph, price, scale, starts[u], limit, effort, rounds, learnt)
        if length == 0:
            effort = left
            if effort < 0:
                renew(graph, price, graph.ends[parent == -2], learnt)
                effort = EFFORT * (vertices + graph.head.size)
            if cost < np.inf:
                _wait(newest, after, u, max(cursor, class_of(cost) - lowest))
            continue
        end = graph.head[learnt.arcs[length - 1]]
        v = owner[end]
        ahead[end] = np.inf
        parent[v] = u
        depth[v] = depth[u] + 1
        order[done] = v
        if ptr[done] + length > route.size:
            route = np.append(route, np.empty(route.size, np.int64))
        ptr[done + 1] = ptr[done] + length
        links = route[ptr[done] : ptr[done + 1]]
        links[:] = graph.link[learnt.arcs[:length]]
        _use(links, price, bump, room, penalty)
        done += 1
        _wait(newest, after, u, cursor)
        if depth[v] < max_depth and ahead[starts[v]] < np.inf:
            class_ = class_of(ahead[starts[v]]) - lowest
            _wait(newest, after, v, class_)
            cursor = min(cursor, class_)
    return parent, *_by_participant(ptr[: done + 1], route, order[:done], n), order[:done]
