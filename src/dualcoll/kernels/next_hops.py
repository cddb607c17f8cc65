"""Shortest paths by hops toward each destination: all of them, as next hops, and what shares over them cost and load.

Local equal-next-hop spraying of the DualColl paper, sections 5.1 and 5.3. O(V + A) for each destination.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["NextHops", "divisors", "next_hops", "sprayed_costs", "sprayed_loads", "sprayed_routes"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Floats = NDArray[np.float64]


class NextHops(NamedTuple):
    """The shortest paths to R destinations.

    Each destination has a row for every vertex from which it can be reached, itself left out, nearest first.

    Attributes:
        vertices: V.
        row_ptr: int64 (R+1,), rows of each destination.
        vertex: int32 (K,), of each row.
        arc_ptr, arc: int64 (K+1,), int32 (M,), CSR of the arcs that lead one hop nearer, in arc order.
    """

    vertices: int
    row_ptr: Ints
    vertex: Shorts
    arc_ptr: Ints
    arc: Shorts


@nb.njit(cache=True)
def next_hops(ptr: Ints, head: Ints, into_ptr: Ints, into_tail: Ints, ends: Ints) -> NextHops:
    """Search backwards from each destination.

    Args:
        ptr, head: CSR arcs by tail, int64 (V+1,), (A,).
        into_ptr, into_tail: the same arcs by head, int64 (V+1,), (A,).
        ends: int64 (R,), the destinations' vertices.
    """
    vertices = ptr.size - 1
    hops, queue = np.empty(vertices, np.int64), np.empty(vertices, np.int64)
    row_ptr = np.zeros(ends.size + 1, np.int64)
    total = 0
    for v in range(ends.size):
        found = _search(into_ptr, into_tail, ends[v], hops, queue)
        row_ptr[v + 1] = row_ptr[v] + found - 1
        for x in queue[1:found]:
            for a in range(ptr[x], ptr[x + 1]):
                total += hops[head[a]] == hops[x] - 1
    vertex, arc = np.empty(row_ptr[-1], np.int32), np.empty(total, np.int32)
    arc_ptr = np.zeros(row_ptr[-1] + 1, np.int64)
    row = at = 0
    for v in range(ends.size):
        found = _search(into_ptr, into_tail, ends[v], hops, queue)
        for x in queue[1:found]:
            for a in range(ptr[x], ptr[x + 1]):
                if hops[head[a]] == hops[x] - 1:
                    arc[at] = a
                    at += 1
            vertex[row] = x
            row += 1
            arc_ptr[row] = at
    return NextHops(vertices, row_ptr, vertex, arc_ptr, arc)


@nb.njit(cache=True)
def _search(into_ptr: Ints, into_tail: Ints, end: int, hops: Ints, queue: Ints) -> int:
    """Fill the hops to ``end`` (V,), -1 where there is no way, and the vertices that have one, nearest first; count them."""
    hops[:] = -1
    hops[end] = 0
    queue[0] = end
    first, last = 0, 1
    while first < last:
        x = queue[first]
        first += 1
        for k in range(into_ptr[x], into_ptr[x + 1]):
            y = into_tail[k]
            if hops[y] < 0:
                hops[y] = hops[x] + 1
                queue[last] = y
                last += 1
    return last


@nb.njit(cache=True)
def divisors(hops: NextHops, head: Ints) -> Shorts:
    """One over the share of each arc of ``hops``, int32 (M,): equal over heads, then over the arcs to each.

    Args:
        head: int64 (A,); arcs from a vertex to the same head stand together.
    """
    divisor = np.empty(hops.arc.size, np.int32)
    for row in range(hops.vertex.size):
        first, last = hops.arc_ptr[row], hops.arc_ptr[row + 1]
        heads = 0
        for k in range(first, last):
            heads += k == first or head[hops.arc[k]] != head[hops.arc[k - 1]]
        while first < last:
            beyond = first + 1
            while beyond < last and head[hops.arc[beyond]] == head[hops.arc[first]]:
                beyond += 1
            divisor[first:beyond] = heads * (beyond - first)
            first = beyond
    return divisor


@nb.njit(cache=True)
def sprayed_costs(hops: NextHops, divisor: Shorts, head: Ints, price: Floats, starts: Ints, ends: Ints) -> Floats:
    """Mean cost from each start to each destination, float64 (R, R); inf where there is no way.

    Args:
        divisor: int32 (M,). head: int64 (A,). price: float64 (A,), of each arc. starts, ends: int64 (R,).
    """
    cost = np.empty((starts.size, ends.size))
    ahead = np.empty(hops.vertices)
    for v in range(ends.size):
        ahead[:] = np.inf
        ahead[ends[v]] = 0.0
        for row in range(hops.row_ptr[v], hops.row_ptr[v + 1]):
            mean = 0.0
            for k in range(hops.arc_ptr[row], hops.arc_ptr[row + 1]):
                arc = hops.arc[k]
                mean += (price[arc] + ahead[head[arc]]) / divisor[k]
            ahead[hops.vertex[row]] = mean
        for u in range(starts.size):
            cost[u, v] = ahead[starts[u]]
    return cost


@nb.njit(cache=True)
def sprayed_loads(hops: NextHops, divisor: Shorts, head: Ints, starts: Ints, counts: Floats) -> Floats:
    """Loads of the arcs, float64 (A,), when ``counts`` float64 (R, R) go from each start to each destination."""
    loads = np.zeros(head.size)
    mass = np.empty(hops.vertices)
    for v in range(starts.size):
        mass[:] = 0.0
        for u in range(starts.size):
            mass[starts[u]] += counts[u, v]
        for row in range(hops.row_ptr[v + 1] - 1, hops.row_ptr[v] - 1, -1):
            here = mass[hops.vertex[row]]
            if here == 0.0:
                continue
            for k in range(hops.arc_ptr[row], hops.arc_ptr[row + 1]):
                arc = hops.arc[k]
                loads[arc] += here / divisor[k]
                mass[head[arc]] += here / divisor[k]
    return loads


@nb.njit(cache=True)
def sprayed_routes(
    hops: NextHops, divisor: Shorts, head: Ints, arc_link: Ints, total: int, starts: Ints, pairs: Ints
) -> tuple[Ints, Ints, Floats]:
    """The links that one unit from start to destination uses, and how much of it is on each.

    Args:
        arc_link: int64 (A,), among ``total`` links. pairs: int64 (K, 2), (source, destination).

    Returns:
        CSR ptr int64 (K+1,), links int64 (H,), each once per pair, from the start outwards; shares float64 (H,).
    """
    ptr = np.zeros(pairs.shape[0] + 1, np.int64)
    links, shares = np.empty(4 * pairs.shape[0], np.int64), np.empty(4 * pairs.shape[0])
    mass = np.zeros(hops.vertices)
    place = np.full(total, -1)  # of each link among those of the pair
    at = 0
    for i in range(pairs.shape[0]):
        source, v = pairs[i]
        mass[starts[source]] = 1.0
        for row in range(hops.row_ptr[v + 1] - 1, hops.row_ptr[v] - 1, -1):
            here = mass[hops.vertex[row]]
            if here == 0.0:
                continue
            mass[hops.vertex[row]] = 0.0
            for k in range(hops.arc_ptr[row], hops.arc_ptr[row + 1]):
                arc = hops.arc[k]
                mass[head[arc]] += here / divisor[k]
                link = arc_link[arc]
                if place[link] < 0:
                    if at == links.size:
                        links, shares = np.append(links, np.empty_like(links)), np.append(shares, np.empty_like(shares))
                    place[link] = at
                    links[at], shares[at] = link, 0.0
                    at += 1
                shares[place[link]] += here / divisor[k]
        ptr[i + 1] = at
        for link in links[ptr[i] : at]:
            place[link] = -1
    return ptr, links[:at].copy(), shares[:at].copy()
