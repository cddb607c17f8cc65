"""Loads of links, in bulk: from uses of logical edges to loads, without looking at one edge at a time."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["forest_loads", "path_costs", "path_loads"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Floats = NDArray[np.float64]


@nb.njit(cache=True)
def forest_loads(arrival: Ints, arc_tail: Ints, arc_link: Ints, ends: Ints, counts: Floats, links: int) -> Floats:
    """Push uses of logical edges up the shortest-path tree of each source. O(R V).

    A vertex passes its mass on after all of its children have, found by counting them: where arcs are free, distances do not
    say which of two vertices comes first.

    Args:
        arrival: int64 (R, V), arc by which each vertex is reached from each source; -1 for the source and what is unreached.
        arc_tail, arc_link: int64 (A,).
        ends: int64 (R,), last vertex of the routes to each target.
        counts: float64 (R, R), uses of the route from each source to each target.
        links: E.

    Returns:
        float64 (E,).
    """
    loads = np.zeros(links)
    vertices = arrival.shape[1]
    mass = np.empty(vertices)
    waiting = np.empty(vertices, np.int64)
    for source in range(arrival.shape[0]):
        via = arrival[source]
        mass[:] = 0.0
        waiting[:] = 0
        for x in range(vertices):
            if via[x] >= 0:
                waiting[arc_tail[via[x]]] += 1
        for target in range(ends.size):
            mass[ends[target]] += counts[source, target]
        for first in range(vertices):
            x = first
            while via[x] >= 0 and waiting[x] == 0:
                waiting[x] = -1
                loads[arc_link[via[x]]] += mass[x]
                above = arc_tail[via[x]]
                mass[above] += mass[x]
                waiting[above] -= 1
                x = above
    return loads


@nb.njit(cache=True)
def path_costs(ptr: Ints, links: Shorts, price: Floats) -> Floats:
    """Cost of each path of a CSR of links, float64 (K,); inf of one without links."""
    cost = np.empty(ptr.size - 1)
    for k in range(cost.size):
        cost[k] = 0.0 if ptr[k] < ptr[k + 1] else np.inf
        for i in range(ptr[k], ptr[k + 1]):
            cost[k] += price[links[i]]
    return cost


@nb.njit(cache=True)
def path_loads(ptr: Ints, links: Shorts, counts: Floats, total: int) -> Floats:
    """Loads of all links, float64 (``total``,), when each path is used ``counts`` float64 (K,) times."""
    loads = np.zeros(total)
    for k in range(counts.size):
        for i in range(ptr[k], ptr[k + 1]):
            loads[links[i]] += counts[k]
    return loads
