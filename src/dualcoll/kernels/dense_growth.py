"""Growing an arborescence on a dense digraph while a vertex gets dearer with every child: near-cheapest trees without hubs."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["grow_dense"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@nb.njit(cache=True)
def grow_dense(weight: Floats, sending: Floats, root: int, bump: float, flatness: float, max_depth: int) -> Ints:
    """Attach the vertex that is cheapest to reach from the tree, again and again. O(n²), O(n³) at worst.

    Args:
        weight: float64 (n, n); ``weight[u, v]`` of arc u -> v, inf where there is none.
        sending: float64 (n,), the part of a vertex's arcs' weights that all its arcs share.
        root: where the tree grows from.
        bump: the factor by which one child raises ``sending``.
        flatness: how much dearer a parent one arc farther from the root counts, relative. max_depth: most arcs from the root.

    Returns:
        up: int64 (n,), the tail of the arc into each vertex; -1 at the root, -2 where none was found.
    """
    n = weight.shape[0]
    up = np.full(n, -2, np.int64)
    depth = np.full(n, -1, np.int64)
    extra = np.zeros(n)
    key = np.full(n, np.inf)
    via = np.full(n, -1, np.int64)
    up[root] = -1
    depth[root] = 0
    if max_depth < 1:
        return up
    for v in range(n):
        if v != root:
            key[v] = weight[root, v]
            via[v] = root
    for _ in range(n - 1):
        while True:
            x = -1
            for v in range(n):
                if depth[v] < 0 and key[v] < np.inf and (x < 0 or key[v] < key[x]):
                    x = v
            if x < 0:
                return up
            u = via[x]
            if (weight[u, x] + extra[u]) * (1.0 + flatness * depth[u]) <= key[x]:
                break
            key[x] = np.inf  # the parent got dearer meanwhile: look again
            for w in range(n):
                if 0 <= depth[w] < max_depth:
                    cost = (weight[w, x] + extra[w]) * (1.0 + flatness * depth[w])
                    if cost < key[x]:
                        key[x] = cost
                        via[x] = w
        up[x] = u
        depth[x] = depth[u] + 1
        extra[u] = (extra[u] + sending[u]) * bump - sending[u]
        if depth[x] < max_depth:
            for v in range(n):
                if depth[v] < 0:
                    cost = weight[x, v] * (1.0 + flatness * depth[x])
                    if cost < key[v]:
                        key[v] = cost
                        via[v] = x
    return up
