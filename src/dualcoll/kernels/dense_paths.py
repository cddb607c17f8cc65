"""Shortest paths on a dense digraph, and what flows along them load."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["add_hops", "dense_paths", "hops"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@nb.njit(cache=True)
def dense_paths(weight: Floats, sources: Ints, distance: Floats, before: Ints) -> None:
    """Dijkstra's algorithm without a heap, O(n²) a source.

    Args:
        weight: float64 (n, n), not negative; inf where there is no arc.
        sources: int64 (K,).
        distance, before: float64 and int64 (K, n), filled in; ``before`` is the vertex before each on its path, -1 at the
            source and where there is no path.
    """
    n = weight.shape[0]
    done = np.empty(n, np.bool_)
    for k in range(sources.size):
        dist, pred = distance[k], before[k]
        dist[:] = np.inf
        pred[:] = -1
        done[:] = False
        dist[sources[k]] = 0.0
        for _ in range(n):
            x = -1
            for v in range(n):
                if not done[v] and dist[v] < np.inf and (x < 0 or dist[v] < dist[x]):
                    x = v
            if x < 0:
                break
            done[x] = True
            for v in range(n):
                if not done[v] and dist[x] + weight[x, v] < dist[v]:
                    dist[v] = dist[x] + weight[x, v]
                    pred[v] = x


@nb.njit(cache=True)
def add_hops(before: Ints, row: Ints, target: Ints, amounts: Floats, counts: Floats) -> None:
    """Add each flow's amount to ``counts[u, v]`` (n, n) for every hop of its path, which ends at ``target`` (J,).

    ``before`` is int64 (K, n) as :func:`dense_paths` leaves it; ``row`` int64 (J,) is the flow's source there.
    """
    for j in range(row.size):
        v = target[j]
        while before[row[j], v] >= 0:
            u = before[row[j], v]
            counts[u, v] += amounts[j]
            v = u


@nb.njit(cache=True)
def hops(before: Ints, row: Ints, target: Ints) -> tuple[Ints, Ints]:
    """The hops of each flow's path in travelling order, as CSR: int64 (J+1,) and (H, 2)."""
    ptr = np.zeros(row.size + 1, np.int64)
    for j in range(row.size):
        v = target[j]
        length = 0
        while before[row[j], v] >= 0:
            length += 1
            v = before[row[j], v]
        ptr[j + 1] = ptr[j] + length
    edges = np.empty((ptr[row.size], 2), np.int64)
    for j in range(row.size):
        v = target[j]
        for at in range(ptr[j + 1] - 1, ptr[j] - 1, -1):
            edges[at, 0] = before[row[j], v]
            edges[at, 1] = v
            v = edges[at, 0]
    return ptr, edges
