"""Loads of links, in bulk: from uses of logical edges to loads, without looking at one edge at a time."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["forest_loads"]

Ints = NDArray[np.int64]
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
