"""Growing one spanning tree while prices rise with every edge: near-cheapest trees whose loads are spread."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.shortest_paths import heap_pop, heap_push

__all__ = ["breadth_first", "grow_tree"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@nb.njit(cache=True)
def breadth_first(edges: Ints, n: int, root: int) -> Ints:
    """Vertices of a tree in breadth-first order from the root, int64 (n,). O(n).

    Args:
        edges: int64 (n-1, 2).
    """
    ptr = np.zeros(n + 1, np.int64)
    for k in range(n - 1):
        ptr[edges[k, 0] + 1] += 1
        ptr[edges[k, 1] + 1] += 1
    for i in range(n):
        ptr[i + 1] += ptr[i]
    fill = ptr[:-1].copy()
    neighbour = np.empty(2 * (n - 1), np.int64)
    for k in range(n - 1):
        a, b = edges[k, 0], edges[k, 1]
        neighbour[fill[a]] = b
        fill[a] += 1
        neighbour[fill[b]] = a
        fill[b] += 1
    order = np.empty(n, np.int64)
    seen = np.zeros(n, np.bool_)
    order[0] = root
    seen[root] = True
    last = 1
    for first in range(n):
        x = order[first]
        for k in range(ptr[x], ptr[x + 1]):
            y = neighbour[k]
            if not seen[y]:
                seen[y] = True
                order[last] = y
                last += 1
    return order


@nb.njit(cache=True)
def grow_tree(
    ptr: Ints,
    head: Ints,
    cable: Ints,
    end_a: Ints,
    order: Ints,
    price: Floats,
    bump: Floats,
    room: Ints,
    penalty: float,
    flatness: float,
    max_depth: int,
) -> tuple[Ints, Ints, Ints]:
    """Attach the terminals one after the other, each over the cheapest path to the tree grown so far.

    Every use of a cable raises its price by the factor ``bump`` at once, so that one tree does not hang everything on the cable
    that was cheapest when it began.

    Args:
        ptr, head, cable: CSR of the undirected graph, int64 (V+1,), (2K,), (2K,); vertices 0..n-1 are the terminals.
        end_a: first end of each cable, int64 (K,).
        order: terminals in the order of attachment, int64 (n,); the first is the root.
        price: float64 (K,), positive; changed in place. bump: float64 (K,), factors, at least 1.
        room: int64 (K,), uses before the cable is full; changed in place. penalty: factor once it is.
        flatness: a path to a terminal d edges below the root counts ``1 + flatness * d`` times its price.
        max_depth: terminals this far below the root take no more children; the root's neighbours stand at 1.

    Returns:
        edges: int64 (n-1, 2), (terminal, its parent); path_ptr, path: CSR of the walk to the parent, int64 (n,) and (H,), as
        ``2 * cable + (0 if walked from end a, else 1)``. Fewer edges if a terminal found no way.
    """
    vertices = ptr.size - 1
    n = order.size
    dist = np.full(vertices, np.inf)
    via = np.full(vertices, -1, np.int64)
    before = np.full(vertices, -1, np.int64)
    stamp = np.zeros(vertices, np.int64)
    keys = np.empty(head.size + 1)
    items = np.empty(head.size + 1, np.int64)
    depth = np.full(n, -1, np.int64)
    edges = np.empty((n - 1, 2), np.int64)
    path_ptr = np.zeros(n, np.int64)
    path = np.empty(4 * vertices, np.int64)
    hops = 0
    depth[order[0]] = 0
    for k in range(1, n):
        v = order[k]
        dist[v] = 0.0
        stamp[v] = k
        size = heap_push(keys, items, 0, 0.0, v)
        best = np.inf
        chosen = -1
        while size > 0:
            reach = keys[0]
            x = items[0]
            size = heap_pop(keys, items, size)
            if reach >= best:
                break
            if reach > dist[x]:
                continue
            for arc in range(ptr[x], ptr[x + 1]):
                y = head[arc]
                cost = reach + price[cable[arc]]
                if cost >= best:
                    continue
                if y >= n:
                    if stamp[y] != k or cost < dist[y]:
                        stamp[y] = k
                        dist[y] = cost
                        via[y] = cable[arc]
                        before[y] = x
                        size = heap_push(keys, items, size, cost, y)
                elif 0 <= depth[y] < max_depth:
                    key = cost * (1.0 + flatness * depth[y])
                    if key < best:
                        best = key
                        chosen = y
                        via[y] = cable[arc]
                        before[y] = x
        if chosen < 0:
            return edges[: k - 1], path_ptr[:k], path[:hops]
        depth[v] = depth[chosen] + 1
        if hops + vertices > path.size:
            grown = np.empty(2 * path.size, np.int64)
            grown[:hops] = path[:hops]
            path = grown
        start = hops
        y = chosen
        while y != v:
            c = via[y]
            path[hops] = 2 * c if end_a[c] == before[y] else 2 * c + 1
            hops += 1
            price[c] *= bump[c]
            room[c] -= 1
            if room[c] == 0:
                price[c] *= penalty
            y = before[y]
        for i in range((hops - start) // 2):  # the walk was written from the parent's side
            path[start + i], path[hops - 1 - i] = path[hops - 1 - i], path[start + i]
        edges[k - 1, 0] = v
        edges[k - 1, 1] = chosen
        path_ptr[k] = hops
    return edges, path_ptr, path[:hops]
