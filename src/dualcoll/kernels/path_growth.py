"""Paths from one participant to many, batch by batch, while prices rise with every use: near-cheapest, with spread loads.

Each batch takes the cheapest paths under the prices that the batches before have left: one run of Dijkstra's algorithm each.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.route_search import MOST, RouteGraph, route_graph
from dualcoll.kernels.shortest_paths import shortest_paths

__all__ = ["grow_paths", "relay_graph"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def relay_graph(graph: RouteGraph, links: int) -> RouteGraph:
    """The graph in which routes may be strung together: from every participant's end an arc leads on to its start.

    In the place of a link, these arcs have the number ``links``.
    """
    tail = np.concatenate([graph.tail, graph.ends])
    order = np.argsort(tail, kind="stable")
    tail = tail[order]
    head = np.concatenate([graph.head, graph.starts])[order]
    link = np.concatenate([graph.link, np.full(graph.ends.size, links)])[order]
    ptr = np.searchsorted(tail, np.arange(graph.ptr.size))
    return route_graph(ptr, head, link, tail, graph.starts, graph.ends)


@nb.njit(cache=True)
def _use(links: Ints, amount: float, price: Floats, bump: float, room: Floats, penalty: float) -> None:
    """Make links dearer for a route that uses them."""
    for e in links:
        price[e] *= bump**amount
        if room[e] >= 1.0 > room[e] - amount:
            price[e] *= penalty
        price[e] = min(price[e], MOST)
        room[e] -= amount


@nb.njit(cache=True)
def grow_paths(
    graph: RouteGraph,
    source: int,
    targets: Ints,
    amounts: Floats,
    batch: int,
    price: Floats,
    bump: float,
    room: Floats,
    penalty: float,
) -> tuple[Ints, Ints, Ints, Ints]:
    """The cheapest path to one target after another, on prices that rise from batch to batch.

    Args:
        graph: the routes there are; of ``relay_graph``, if other participants may pass on what is not theirs.
        source: a participant. targets: int64 (T,), others, in the order in which they are served.
        amounts: float64 (T,), positive, what each path carries.
        batch: how many targets are served under the same prices.
        price: float64 (E,), positive; changed in place, by the factor ``bump**amount`` for every use.
        room: float64 (E,), amount before the link is full; changed in place. penalty: factor once there is less than 1 of it.

    Returns:
        hop_ptr, hops: int64 (T+1,), (P, 2), CSR: logical edges of each target's path, from the source on; none where there is
            no path.
        route_ptr, route: int64 (P+1,), (H,), CSR: links of each logical edge.
    """
    vertices, links = graph.ptr.size - 1, price.size
    costs = np.append(price, 0.0)
    owner = np.empty(vertices, np.int64)
    owner[graph.ends] = np.arange(graph.ends.size)
    distance, arrival = np.empty((1, vertices)), np.empty((1, vertices), np.int64)
    start = graph.starts[source : source + 1]
    way = np.empty(vertices, np.int64)
    hop_ptr = np.zeros(targets.size + 1, np.int64)
    hops = np.empty((2 * targets.size + vertices, 2), np.int64)
    route_ptr = np.zeros(hops.shape[0] + 1, np.int64)
    route = np.empty(8 * targets.size + vertices, np.int64)
    done = size = 0
    for i in range(targets.size):
        if i % batch == 0:
            shortest_paths(graph.ptr, graph.head, graph.link, costs, start, distance, arrival)
        x = graph.ends[targets[i]]
        length = 0
        while arrival[0, x] >= 0:
            way[length] = arrival[0, x]
            x = graph.tail[way[length]]
            length += 1
        if done + length > hops.shape[0]:
            hops = np.concatenate((hops, np.empty_like(hops)))
            route_ptr = np.append(route_ptr, np.empty_like(route_ptr))
        if size + length > route.size:
            route = np.append(route, np.empty_like(route))
        first, u = size, source
        for k in range(length - 1, -1, -1):
            arc = way[k]
            if graph.link[arc] < links:
                route[size] = graph.link[arc]
                size += 1
            if k == 0 or graph.link[arc] == links:
                v = targets[i] if k == 0 else owner[graph.tail[arc]]
                hops[done, 0] = u
                hops[done, 1] = v
                done += 1
                route_ptr[done] = size
                u = v
        hop_ptr[i + 1] = done
        _use(route[first:size], amounts[i], costs, bump, room, penalty)
    price[:] = costs[:links]
    return hop_ptr, hops[:done], route_ptr[: done + 1], route[:size]
