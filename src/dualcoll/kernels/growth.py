"""Growing one spanning tree while prices rise with every edge: near-cheapest trees whose loads are spread."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.shortest_paths import heap_pop, heap_push

__all__ = ["grow_tree"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST = 1e200  # of a price, so that no sum of prices overflows
SLACK = 1.03  # a terminal this close to the cheapest is as good: believing it saves pricing the whole queue anew


@nb.njit(cache=True)
def _place(price: Floats, cable: Ints, depth: Ints, arc: int, parent: int, flatness: float) -> float:
    """What the last cable into a parent counts, its depth considered."""
    return price[cable[arc]] * (1.0 + flatness * depth[parent])  # type: ignore[no-any-return]


@nb.njit(cache=True)
def _nearest_below(
    x: int,
    ptr: Ints,
    head: Ints,
    cable: Ints,
    price: Floats,
    depth: Ints,
    flatness: float,
    near: Floats,
    arcs: Ints,
    fill: Ints,
) -> int:
    """The cheapest cable from switch x to a neighbour in the tree, as an arc; -1 if there is none.

    ``near`` and ``arcs`` hold a queue per switch, ``fill`` its length. Prices only rise, so its head is priced anew until it
    stays at the head.
    """
    first, last = ptr[x], ptr[x + 1]
    keys, items = near[first:last], arcs[first:last]
    while fill[x] > 0:
        arc = items[0]
        now = _place(price, cable, depth, arc, head[arc], flatness)
        if now <= keys[0]:
            return int(arc)
        fill[x] = heap_pop(keys, items, fill[x])
        fill[x] = heap_push(keys, items, fill[x], now, arc)
    return -1


@nb.njit(cache=True)
def _attachment(
    v: int,
    ptr: Ints,
    head: Ints,
    cable: Ints,
    price: Floats,
    depth: Ints,
    flatness: float,
    max_depth: int,
    near: Floats,
    arcs: Ints,
    fill: Ints,
    switch_ptr: Ints,
    stamp: Ints,
    round_: int,
    dist: Floats,
    via: Ints,
    low: Floats,
    settled: Ints,
    keys: Floats,
    items: Ints,
) -> tuple[float, int]:
    """The cheapest way from terminal v to the tree over switches: its cost and its last arc, -1 if there is none.

    ``via`` has the arc by which each switch on the way is entered. ``low``, a lower bound on what each switch pays to reach
    the tree, prunes the search and learns from it: nobody reaches the tree for less than v does, less the way from v to him.
    """
    n = depth.size
    best = np.inf
    chosen = -1
    size = 0
    count = 0
    for arc in range(ptr[v], ptr[v + 1]):
        y = head[arc]
        if y >= n:
            cost = price[cable[arc]]
            if stamp[y] != round_ or cost < dist[y]:
                stamp[y] = round_
                dist[y] = cost
                via[y] = arc
                size = heap_push(keys, items, size, cost, y)
        elif 0 <= depth[y] < max_depth:
            cost = _place(price, cable, depth, arc, y, flatness)
            if cost < best:
                best = cost
                chosen = arc
    while size > 0:
        reach = keys[0]
        x = items[0]
        size = heap_pop(keys, items, size)
        if reach >= best:
            break
        if reach > dist[x] or reach + low[x] >= best:
            continue
        settled[count] = x
        count += 1
        arc = _nearest_below(x, ptr, head, cable, price, depth, flatness, near, arcs, fill)
        if arc >= 0:
            cost = reach + _place(price, cable, depth, arc, head[arc], flatness)
            if cost < best:
                best = cost
                chosen = arc
        for k in range(switch_ptr[x], ptr[x + 1]):  # arcs to switches stand behind those to terminals
            y = head[k]
            cost = reach + price[cable[k]]
            if cost + low[y] < best and (stamp[y] != round_ or cost < dist[y]):
                stamp[y] = round_
                dist[y] = cost
                via[y] = k
                size = heap_push(keys, items, size, cost, y)
    if chosen >= 0:
        for i in range(count):
            low[settled[i]] = max(low[settled[i]], best - dist[settled[i]])
    return best, chosen


@nb.njit(cache=True)
def _bound_of(
    v: int, ptr: Ints, head: Ints, cable: Ints, price: Floats, depth: Ints, flatness: float, low: Floats
) -> float:
    """A lower bound on what terminal v pays to attach, from what its neighbours pay."""
    bound = np.inf
    for arc in range(ptr[v], ptr[v + 1]):
        y = head[arc]
        if y >= depth.size:
            bound = min(bound, price[cable[arc]] + low[y])
        elif depth[y] >= 0:
            bound = min(bound, _place(price, cable, depth, arc, y, flatness))
    return bound


@nb.njit(cache=True)
def _announce(
    v: int,
    ptr: Ints,
    head: Ints,
    cable: Ints,
    price: Floats,
    depth: Ints,
    flatness: float,
    low: Floats,
    key: Floats,
    keys: Floats,
    items: Ints,
    frontier: Floats,
    waiting: Ints,
    size: int,
) -> int:
    """Lower the bounds on what other terminals pay to attach, now that v is in the tree; returns the queue's new size."""
    n = depth.size
    low[v] = 0.0
    inner = heap_push(keys, items, 0, 0.0, v)
    while inner > 0:
        reach = keys[0]
        x = items[0]
        inner = heap_pop(keys, items, inner)
        if reach > low[x]:
            continue
        for arc in range(ptr[x], ptr[x + 1]):
            y = head[arc]
            cost = reach + (_place(price, cable, depth, arc, v, flatness) if x == v else price[cable[arc]])
            if y >= n:
                if cost < low[y]:
                    low[y] = cost
                    inner = heap_push(keys, items, inner, cost, y)
            elif depth[y] < 0 and cost < key[y]:
                key[y] = cost
                size = heap_push(frontier, waiting, size, cost, y)
    return size


@nb.njit(cache=True)
def grow_tree(
    ptr: Ints,
    head: Ints,
    cable: Ints,
    reverse: Ints,
    switch_ptr: Ints,
    terminals: int,
    root: int,
    price: Floats,
    bump: float,
    room: Ints,
    penalty: float,
    flatness: float,
    max_depth: int,
) -> tuple[Ints, Ints, Ints]:
    """Prim's algorithm on prices that rise as the tree uses them.

    Always the terminal that is (all but) cheapest to attach comes next, and every cable on its way gets dearer at once by
    the factor ``bump``, so that one tree does not hang everything on the cable that was cheapest when it began. Prices only
    rise, so what a terminal would have paid is a lower bound; the cheapest in the queue is priced anew before it is believed.

    Args:
        ptr, head, cable: CSR of the undirected graph, int64 (V+1,), (2K,), (2K,); vertices 0..terminals-1 are the terminals.
        reverse: int64 (2K,), the same cable's arc the other way.
        switch_ptr: int64 (V,), where the arcs to switches begin among each vertex's arcs; those to terminals come first.
        root: the terminal to begin with.
        price: float64 (K,), positive; changed in place.
        room: int64 (K,), uses before the cable is full; changed in place. penalty: factor once it is.
        flatness: a cable from a terminal d edges below the root counts ``1 + flatness * d`` times its price.
        max_depth: terminals this far below the root take no more children; the root's neighbours stand at 1.

    Returns:
        edges: int64 (n-1, 2), (terminal, its parent); path_ptr, path: CSR of the arcs from terminal to parent, int64 (n,) and
        (H,). Fewer edges if some terminal found no way.
    """
    vertices = ptr.size - 1
    dist = np.full(vertices, np.inf)
    low = np.full(vertices, np.inf)
    settled = np.empty(vertices, np.int64)
    via = np.full(vertices, -1, np.int64)
    stamp = np.zeros(vertices, np.int64)
    keys, items = np.empty(head.size + 1), np.empty(head.size + 1, np.int64)
    frontier, waiting = np.empty(2 * head.size + 1), np.empty(2 * head.size + 1, np.int64)
    near, arcs = np.empty(head.size), np.empty(head.size, np.int64)
    fill = np.zeros(vertices, np.int64)
    key = np.full(terminals, np.inf)
    depth = np.full(terminals, -1, np.int64)
    edges = np.empty((terminals - 1, 2), np.int64)
    path_ptr = np.zeros(terminals, np.int64)
    path = np.empty(4 * vertices, np.int64)
    hops, done, size, rounds = 0, 0, 0, 0
    v, parent = root, -1
    while True:
        depth[v] = 0 if parent < 0 else depth[parent] + 1
        if depth[v] < max_depth:
            for arc in range(switch_ptr[v], ptr[v + 1]):
                x = head[arc]
                back = reverse[arc]
                mine = _place(price, cable, depth, back, v, flatness)
                fill[x] = heap_push(near[ptr[x] : ptr[x + 1]], arcs[ptr[x] : ptr[x + 1]], fill[x], mine, back)
            if frontier.size < size + head.size:
                frontier = np.append(frontier, np.empty(frontier.size))
                waiting = np.append(waiting, np.empty(waiting.size, np.int64))
            size = _announce(
                v, ptr, head, cable, price, depth, flatness, low, key, keys, items, frontier, waiting, size
            )
        last = -1
        while size > 0:
            v = waiting[0]
            size = heap_pop(frontier, waiting, size)
            if depth[v] >= 0:
                continue
            cost = _bound_of(v, ptr, head, cable, price, depth, flatness, low)
            if size > 0 and cost > frontier[0] * SLACK:
                key[v] = cost
                size = heap_push(frontier, waiting, size, cost, v)
                continue
            rounds += 1
            cost, last = _attachment(
                v,
                ptr,
                head,
                cable,
                price,
                depth,
                flatness,
                max_depth,
                near,
                arcs,
                fill,
                switch_ptr,
                stamp,
                rounds,
                dist,
                via,
                low,
                settled,
                keys,
                items,
            )
            if last >= 0 and (size == 0 or cost <= frontier[0] * SLACK):
                break
            if last >= 0:
                key[v] = cost
                size = heap_push(frontier, waiting, size, cost, v)
            last = -1
        if last < 0:
            return edges[:done], path_ptr[: done + 1], path[:hops]
        parent = head[last]
        if hops + vertices > path.size:
            path = np.append(path, np.empty(path.size, np.int64))
        start = hops
        arc = last
        while True:  # back from the parent's cable to v's
            path[hops] = arc
            hops += 1
            c = cable[arc]
            price[c] *= bump
            room[c] -= 1
            if room[c] == 0:
                price[c] *= penalty
            price[c] = min(price[c], MOST)
            x = head[reverse[arc]]
            if x == v:
                break
            arc = via[x]
        for i in range((hops - start) // 2):
            path[start + i], path[hops - 1 - i] = path[hops - 1 - i], path[start + i]
        edges[done, 0] = v
        edges[done, 1] = parent
        done += 1
        path_ptr[done] = hops
