"""Routes out of shortest-path forests, and centres of trees."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["root_distances", "trace", "tree_centre"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@nb.njit(cache=True)
def trace(arrival: Ints, arc_tail: Ints, arc_link: Ints, starts: Ints, ends: Ints, pairs: Ints) -> tuple[Ints, Ints]:
    """Walk back from each pair's end to its start.

    Args:
        arrival: int64 (R, V), arc by which each vertex is reached from each source.
        arc_tail, arc_link: int64 (A,).
        starts, ends: int64 (R,), first and last vertex of a source's and a target's routes.
        pairs: int64 (K, 2), (source, target).

    Returns:
        CSR of link indices in travelling order: ptr int64 (K+1,), links (H,).
    """
    count = pairs.shape[0]
    ptr = np.zeros(count + 1, np.int64)
    for k in range(count):
        source = pairs[k, 0]
        x = ends[pairs[k, 1]]
        hops = 0
        while x != starts[source]:
            hops += 1
            x = arc_tail[arrival[source, x]]
        ptr[k + 1] = ptr[k] + hops
    links = np.empty(ptr[count], np.int64)
    for k in range(count):
        source = pairs[k, 0]
        x = ends[pairs[k, 1]]
        at = ptr[k + 1]
        while x != starts[source]:
            at -= 1
            links[at] = arc_link[arrival[source, x]]
            x = arc_tail[arrival[source, x]]
    return ptr, links


@nb.njit(cache=True)
def _farthest(ptr: Ints, neighbour: Ints, start: int, parent: Ints, queue: Ints) -> int:
    parent[:] = -2
    parent[start] = -1
    queue[0] = start
    first, last = 0, 1
    while first < last:
        x = queue[first]
        first += 1
        for k in range(ptr[x], ptr[x + 1]):
            y = neighbour[k]
            if parent[y] == -2:
                parent[y] = x
                queue[last] = y
                last += 1
    return int(queue[last - 1])


@nb.njit(cache=True)
def tree_centre(edges: Ints, n: int) -> tuple[int, Ints]:
    """The middle of a longest path of a tree, and every vertex's parent from there (-1 at the centre). O(n).

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
    parent = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)
    end = _farthest(ptr, neighbour, 0, parent, queue)
    other = _farthest(ptr, neighbour, end, parent, queue)
    length = 0
    x = other
    while parent[x] >= 0:
        length += 1
        x = parent[x]
    x = other
    for _ in range(length // 2):
        x = parent[x]
    _farthest(ptr, neighbour, x, parent, queue)
    return x, parent


@nb.njit(cache=True)
def root_distances(child: Ints, parent: Ints, weight: Floats, root: int, vertices: int) -> Floats:
    """Sum of the weights between each vertex of a tree and its root. O(vertices).

    Args:
        child, parent: int64 (n-1,), every child once. weight: float64 (n-1,).
        root: the vertex that is no child. vertices: one more than the largest vertex number.

    Returns:
        float64 (vertices,), nan for vertices that are not in the tree.
    """
    above = np.full(vertices, -1, np.int64)
    step = np.zeros(vertices)
    for k in range(child.size):
        above[child[k]] = parent[k]
        step[child[k]] = weight[k]
    distance = np.full(vertices, np.nan)
    distance[root] = 0.0
    trail = np.empty(child.size, np.int64)
    for k in range(child.size):
        x = child[k]
        length = 0
        while np.isnan(distance[x]):
            trail[length] = x
            length += 1
            x = above[x]
        for i in range(length - 1, -1, -1):
            y = trail[i]
            distance[y] = distance[above[y]] + step[y]
    return distance
