"""Routes as stages: what serves a send at one time, link after link. O(h) for a path of h links, O(h^2) for a sprayed route."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["levels", "stages"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Floats = NDArray[np.float64]


@nb.njit(cache=True)
def levels(ptr: Ints, links: Shorts, share: Floats, tail: Ints, head: Ints) -> tuple[Shorts, int]:
    """How far into its route each link stands: the most links of the route that lead up to it.

    Args:
        ptr, links, share: CSR of routes, int64 (T+1,), int32 (H,), float64 (H,). Where all shares of a route are 1 the links
            stand in travelling order.
        tail, head: int64 (E,), ends of links.

    Returns:
        int32 (H,), and the first route whose links form a circle, or -1.
    """
    level = np.zeros(links.size, np.int32)
    for route in range(ptr.size - 1):
        begin, end = ptr[route], ptr[route + 1]
        if np.all(share[begin:end] == 1):
            for i in range(begin, end):
                level[i] = i - begin
            continue
        changed = True
        turns = 0
        while changed:
            changed = False
            turns += 1
            if turns > end - begin + 1:
                return level, route
            for i in range(begin, end):
                for j in range(begin, end):
                    if head[links[j]] == tail[links[i]] and level[i] <= level[j]:
                        level[i] = level[j] + 1
                        changed = True
    return level, -1


@nb.njit(cache=True)
def stages(
    ptr: Ints, links: Shorts, share: Floats, level: Shorts, over_ptr: Ints, over: Shorts, first_row: int
) -> tuple[Ints, Ints, Shorts, Floats, Ints]:
    """The stages of each route: for every level its shared capacities, if it has any, and then its links.

    Args:
        ptr, links, share, level: of the routes, as for :func:`levels`.
        over_ptr, over: CSR of the shared capacities over each link, int64 (E+1,), int32 (n,).
        first_row: number of the first shared capacity among all rows.

    Returns:
        stage_ptr int64 (T+1,), place_ptr int64 (G+1,), row int32 (P,), load float64 (P,), the part of a send on each row, and
        first int64 (T,), the number of stages of the first level, less one.
    """
    routes = ptr.size - 1
    room = links.size
    for link in links:
        room += over_ptr[link + 1] - over_ptr[link]
    stage_ptr = np.zeros(routes + 1, np.int64)
    place_ptr = np.zeros(room + 1, np.int64)
    row = np.empty(room, np.int32)
    load = np.empty(room)
    first = np.zeros(routes, np.int64)
    stage = place = 0
    for route in range(routes):
        order = ptr[route] + np.argsort(level[ptr[route] : ptr[route + 1]], kind="mergesort")
        at = 0
        while at < order.size:
            end = at
            while end < order.size and level[order[end]] == level[order[at]]:
                end += 1
            begin = place
            for i in order[at:end]:
                for k in range(over_ptr[links[i]], over_ptr[links[i] + 1]):
                    shared = first_row + over[k]
                    j = begin
                    while j < place and row[j] != shared:
                        j += 1
                    if j == place:
                        row[j] = shared
                        load[j] = 0.0
                        place += 1
                    load[j] += share[i]
            if place > begin:
                stage += 1
                place_ptr[stage] = place
            for i in order[at:end]:
                row[place] = links[i]
                load[place] = share[i]
                place += 1
            stage += 1
            place_ptr[stage] = place
            if at == 0:
                first[route] = stage - stage_ptr[route] - 1
            at = end
        stage_ptr[route + 1] = stage
    return stage_ptr, place_ptr[: stage + 1].copy(), row[:place].copy(), load[:place].copy(), first
