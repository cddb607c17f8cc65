"""Dijkstra's algorithm with a binary heap, from many sources, on a graph in CSR form. O(n (A + V) log V) for n sources.

Vertices without outgoing arcs never enter the heap: in a fabric most vertices are such sinks.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["heap_pop", "heap_push", "shortest_paths"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@nb.njit(cache=True)
def heap_push(keys: Floats, items: Ints, size: int, key: float, item: int) -> int:
    """Add an item to the heap in ``keys[:size]``, ``items[:size]``; returns the new size."""
    j = size
    while j > 0:
        up = (j - 1) >> 1
        if keys[up] <= key:
            break
        keys[j] = keys[up]
        items[j] = items[up]
        j = up
    keys[j] = key
    items[j] = item
    return size + 1


@nb.njit(cache=True)
def heap_pop(keys: Floats, items: Ints, size: int) -> int:
    """Remove the least item, which stands at position 0 before the call; returns the new size."""
    size -= 1
    key = keys[size]
    item = items[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i] = keys[child]
        items[i] = items[child]
        i = child
    keys[i] = key
    items[i] = item
    return size


@nb.njit(cache=True)
def shortest_paths(
    ptr: Ints, head: Ints, link: Ints, price: Floats, sources: Ints, distance: Floats, arrival: Ints
) -> None:
    """Fill cheapest distances and the arc by which each vertex is reached, one row per source.

    Args:
        ptr, head, link: CSR arcs by tail, int64 (V+1,), (A,), (A,); an arc costs ``price[link]``.
        price: float64 (E,), not negative.
        sources: int64 (n,).
        distance, arrival: outputs, float64 and int64 (n, V); inf and -1 where unreachable.
    """
    vertices = ptr.size - 1
    keys = np.empty(head.size + 1)
    items = np.empty(head.size + 1, np.int64)
    done = np.empty(vertices, np.bool_)
    for i in range(sources.size):
        dist = distance[i]
        via = arrival[i]
        dist[:] = np.inf
        via[:] = -1
        done[:] = False
        dist[sources[i]] = 0.0
        size = heap_push(keys, items, 0, 0.0, sources[i])
        while size > 0:
            x = items[0]
            size = heap_pop(keys, items, size)
            if done[x]:
                continue
            done[x] = True
            for arc in range(ptr[x], ptr[x + 1]):
                y = head[arc]
                reach = dist[x] + price[link[arc]]
                if reach < dist[y]:
                    dist[y] = reach
                    via[y] = arc
                    if ptr[y + 1] > ptr[y]:
                        size = heap_push(keys, items, size, reach, y)
