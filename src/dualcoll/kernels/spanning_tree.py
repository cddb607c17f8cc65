"""Minimum spanning trees: of terminals in a graph by Voronoi cells (Mehlhorn 1988), and of a dense weight matrix (Prim)."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.shortest_paths import heap_pop, heap_push

__all__ = ["prim", "voronoi_spanning_tree"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@nb.njit(cache=True)
def _cells(ptr: Ints, head: Ints, cable: Ints, price: Floats, terminals: int) -> tuple[Floats, Ints, Ints]:
    """Distance to the nearest terminal, that terminal, and the cable by which it is reached, for every vertex."""
    vertices = ptr.size - 1
    dist = np.full(vertices, np.inf)
    cell = np.full(vertices, -1, np.int64)
    via = np.full(vertices, -1, np.int64)
    done = np.zeros(vertices, np.bool_)
    keys = np.empty(head.size + terminals + 1)
    items = np.empty(head.size + terminals + 1, np.int64)
    size = 0
    for t in range(terminals):
        dist[t] = 0.0
        cell[t] = t
        size = heap_push(keys, items, size, 0.0, t)
    while size > 0:
        x = items[0]
        size = heap_pop(keys, items, size)
        if done[x]:
            continue
        done[x] = True
        for arc in range(ptr[x], ptr[x + 1]):
            y = head[arc]
            reach = dist[x] + price[cable[arc]]
            if not done[y] and reach < dist[y]:
                dist[y] = reach
                cell[y] = cell[x]
                via[y] = cable[arc]
                size = heap_push(keys, items, size, reach, y)
    return dist, cell, via


@nb.njit(cache=True)
def voronoi_spanning_tree(
    ptr: Ints, head: Ints, cable: Ints, end_a: Ints, end_b: Ints, price: Floats, terminals: int
) -> tuple[float, Ints, Ints, Ints]:
    """A minimum spanning tree of the terminals' metric closure, routed, in O(E log E).

    One multi-source search grows a cell around every terminal. A minimum spanning tree of the closure is found among the paths
    "terminal, its cell, a cable into another cell, that cell's terminal" (Mehlhorn, Inf. Proc. Letters 27, 1988).

    Args:
        ptr, head, cable: CSR of the undirected graph, int64 (V+1,), (2K,), (2K,); vertices 0..terminals-1 are the terminals.
        end_a, end_b: ends of each cable, int64 (K,).
        price: float64 (K,), not negative.
        terminals: n, at least 2, connected to each other.

    Returns:
        cost: sum of the paths' prices.
        edges: int64 (n-1, 2), terminals (u, v).
        path_ptr, path: CSR of the walk from u to v, int64 (n,) and (H,), as ``2 * cable + (0 if walked from a to b else 1)``.
    """
    vertices = ptr.size - 1
    cables = end_a.size
    dist, cell, via = _cells(ptr, head, cable, price, terminals)
    crossing = np.empty(cables, np.int64)
    weight = np.empty(cables)
    count = 0
    for c in range(cables):
        a, b = end_a[c], end_b[c]
        if cell[a] != cell[b] and cell[a] >= 0 and cell[b] >= 0:
            crossing[count] = c
            weight[count] = dist[a] + price[c] + dist[b]
            count += 1
    order = np.argsort(weight[:count], kind="mergesort")
    parent = np.arange(terminals)
    edges = np.empty((terminals - 1, 2), np.int64)
    path_ptr = np.zeros(terminals, np.int64)
    path = np.empty(4 * vertices, np.int64)
    scratch = np.empty(vertices, np.int64)
    chosen = 0
    hops = 0
    cost = 0.0
    for k in order:
        c = crossing[k]
        u, v = cell[end_a[c]], cell[end_b[c]]
        ru, rv = u, v
        while parent[ru] != ru:
            parent[ru] = parent[parent[ru]]
            ru = parent[ru]
        while parent[rv] != rv:
            parent[rv] = parent[parent[rv]]
            rv = parent[rv]
        if ru == rv:
            continue
        parent[ru] = rv
        cost += weight[k]
        if hops + 2 * vertices + 1 > path.size:
            grown = np.empty(2 * path.size + 2 * vertices + 1, np.int64)
            grown[:hops] = path[:hops]
            path = grown
        x = end_a[c]
        back = 0
        while via[x] >= 0:  # towards u; written in reverse
            step = via[x]
            into_b = end_b[step] == x
            scratch[back] = 2 * step if into_b else 2 * step + 1
            back += 1
            x = end_a[step] if into_b else end_b[step]
        for i in range(back):
            path[hops] = scratch[back - 1 - i]
            hops += 1
        path[hops] = 2 * c
        hops += 1
        x = end_b[c]
        while via[x] >= 0:  # towards v, each step walked against its growth
            step = via[x]
            into_b = end_b[step] == x
            path[hops] = 2 * step + 1 if into_b else 2 * step
            hops += 1
            x = end_a[step] if into_b else end_b[step]
        edges[chosen, 0] = u
        edges[chosen, 1] = v
        chosen += 1
        path_ptr[chosen] = hops
        if chosen == terminals - 1:
            break
    return cost, edges[:chosen], path_ptr[: chosen + 1], path[:hops]


@nb.njit(cache=True)
def prim(weight: Floats) -> tuple[float, Ints]:
    """A minimum spanning tree of a complete graph in O(n²).

    Args:
        weight: float64 (n, n), symmetric; inf where there is no edge.

    Returns:
        cost, and edges int64 (n-1, 2).
    """
    n = weight.shape[0]
    best = np.full(n, np.inf)
    near = np.zeros(n, np.int64)
    inside = np.zeros(n, np.bool_)
    edges = np.empty((n - 1, 2), np.int64)
    cost = 0.0
    x = 0
    for k in range(n - 1):
        inside[x] = True
        nearest = -1
        for y in range(n):
            if inside[y]:
                continue
            if weight[x, y] < best[y]:
                best[y] = weight[x, y]
                near[y] = x
            if nearest < 0 or best[y] < best[nearest]:
                nearest = y
        edges[k, 0] = near[nearest]
        edges[k, 1] = nearest
        cost += best[nearest]
        x = nearest
    return cost, edges
