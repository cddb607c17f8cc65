"""A search for cheap routes that learns: it follows lower bounds on the rest of the way and raises those that are too low.

Where prices only rise and goals only vanish, a bound stays one. A search runs straight to its goal where the bounds are up to
date (learning real-time search, Korf 1990); where it looks around for too long, one Dijkstra makes all of them exact again.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.shortest_paths import heap_pop, heap_push

__all__ = [
    "CLASSES",
    "EFFORT",
    "MOST",
    "SLACK",
    "Learnt",
    "RouteGraph",
    "class_of",
    "least_of",
    "nothing_learnt",
    "renew",
    "reversed_graph",
    "route_graph",
    "search",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST = 1e200  # of a price, so that no sum of prices overflows
SLACK = 1 + 1 / 32  # costs that share the exponent and five bits of the mantissa, a class, are equally good
SHIFT = 47  # which takes the other bits off
CLASSES = (int(np.array([1e220]).view(np.int64)[0]) >> SHIFT) + 1
ROUNDING = 1e-10  # must not lift a bound above what it bounds, nor end a search that follows exact bounds
EFFORT = 2  # arcs looked at in vain, in sizes of the graph, before bounds are computed anew


class RouteGraph(NamedTuple):
    """A graph over which participants have routes.

    Attributes:
        ptr, head, link, tail: arcs in CSR by tail, int64 (V+1,), (A,), (A,), (A,); arc ``a`` goes over link ``link[a]``.
        back_ptr, back: numbers of the arcs in CSR by head, int64 (V+1,), (A,).
        starts, ends: int64 (n,), the vertices where participant i's routes begin, which nothing enters, and where they end,
            which nothing leaves.
    """

    ptr: Ints
    head: Ints
    link: Ints
    tail: Ints
    back_ptr: Ints
    back: Ints
    starts: Ints
    ends: Ints


def route_graph(ptr: Ints, head: Ints, link: Ints, tail: Ints, starts: Ints, ends: Ints) -> RouteGraph:
    """With the arcs by head as well; the arguments are as the attributes."""
    back_ptr = np.zeros_like(ptr)
    np.cumsum(np.bincount(head, minlength=ptr.size - 1), out=back_ptr[1:])
    return RouteGraph(ptr, head, link, tail, back_ptr, np.argsort(head, kind="stable"), starts, ends)


def reversed_graph(graph: RouteGraph) -> RouteGraph:
    """Every arc turned. An out-arborescence of it is an in-arborescence of the graph; its routes come out backwards."""
    back = graph.back
    number = np.empty_like(back)
    number[back] = np.arange(back.size)
    turned = (graph.tail[back], graph.link[back], graph.head[back])
    return RouteGraph(graph.back_ptr, *turned, graph.ptr, number, graph.ends, graph.starts)


class Learnt(NamedTuple):
    """What searches learn.

    Attributes:
        ahead: float64 (V,), lower bounds on the price of the way to the nearest goal; 0 of goals only.
        onward: int64 (V,), the arc taken or looked at last, the best one after ``renew``: among equals it is preferred, so that
            a search right after ``renew`` does not go astray where prices differ by more than a float64 tells apart.
        dist, stamp: (V,), the price of the way so far, valid where ``stamp`` is the present round.
        seen: int64 (V,), scratch. arcs: int64 (V,), the way that was found.
        keys, items: (A+V,), scratch of a heap.
    """

    ahead: Floats
    onward: Ints
    dist: Floats
    stamp: Ints
    seen: Ints
    arcs: Ints
    keys: Floats
    items: Ints


@nb.njit(cache=True)
def nothing_learnt(graph: RouteGraph) -> Learnt:
    """With bounds that ``renew`` has to fill."""
    vertices, size = graph.ptr.size - 1, graph.head.size + graph.ptr.size - 1
    return Learnt(
        np.empty(vertices),
        np.empty(vertices, np.int64),
        np.empty(vertices),
        np.zeros(vertices, np.int64),
        np.empty(vertices, np.int64),
        np.empty(vertices, np.int64),
        np.empty(size),
        np.empty(size, np.int64),
    )


@nb.njit(cache=True)
def renew(graph: RouteGraph, price: Floats, goals: Ints, learnt: Learnt) -> None:
    """Make all bounds exact: Dijkstra's algorithm backwards from the goals. O((A + V) log V)."""
    ahead, keys, items = learnt.ahead, learnt.keys, learnt.items
    ahead[:] = np.inf
    learnt.onward[:] = -1
    size = 0
    for x in goals:
        ahead[x] = 0.0
        size = heap_push(keys, items, size, 0.0, x)
    while size > 0:
        reach = keys[0]
        x = items[0]
        size = heap_pop(keys, items, size)
        if reach > ahead[x]:
            continue
        for k in range(graph.back_ptr[x], graph.back_ptr[x + 1]):
            arc = graph.back[k]
            y = graph.tail[arc]
            cost = reach + price[graph.link[arc]]
            if cost < ahead[y]:
                ahead[y] = cost
                learnt.onward[y] = arc
                if graph.back_ptr[y + 1] > graph.back_ptr[y]:
                    size = heap_push(keys, items, size, cost, y)


@nb.njit(cache=True)
def search(
    graph: RouteGraph, price: Floats, scale: float, start: int, limit: float, effort: int, round_: int, learnt: Learnt
) -> tuple[int, float, int]:
    """Look for a way from ``start`` to a goal that costs less than the limit, its first arc ``scale`` times its price.

    Depth first, the arc that promises most first. Returns the number of arcs on the way, which stand in ``learnt.arcs``; if
    there is none, 0, then a lower bound on the cost of any way; and what is left of the effort, negative if that ran out.
    """
    ptr, head, link = graph.ptr, graph.head, graph.link
    ahead, onward, dist, stamp, seen, arcs = (
        learnt.ahead,
        learnt.onward,
        learnt.dist,
        learnt.stamp,
        learnt.seen,
        learnt.arcs,
    )
    stamp[start] = round_
    dist[start] = 0.0
    seen[0] = x = start
    count = 1
    depth = 0
    bound = np.inf
    while True:
        effort -= ptr[x + 1] - ptr[x]
        if effort < 0:
            return 0, 0.0, effort
        factor = scale if depth == 0 else 1.0
        reach = dist[x]
        arc = onward[x]
        first = least = np.inf
        if arc >= 0 and stamp[head[arc]] != round_:
            first = factor * price[link[arc]] + ahead[head[arc]]
        for a in range(ptr[x], ptr[x + 1]):
            y = head[a]
            step = factor * price[link[a]]
            value = step + ahead[y]
            least = min(least, value)
            if value < first and (stamp[y] != round_ or reach + step < dist[y]):
                first = value
                arc = a
        ahead[x] = max(ahead[x], least)
        onward[x] = arc
        if reach + first < (limit if depth == 0 else limit * (1.0 + ROUNDING)):
            arcs[depth] = arc
            depth += 1
            x = head[arc]
            if ahead[x] == 0.0:
                return depth, 0.0, effort
            if stamp[x] != round_:
                stamp[x] = round_
                seen[count] = x
                count += 1
            dist[x] = reach + factor * price[link[arc]]
            continue
        bound = min(bound, reach + first)
        if depth == 0:
            break
        depth -= 1
        x = graph.tail[arcs[depth]]
    for i in range(count):
        x = seen[i]
        ahead[x] = max(ahead[x], bound * (1.0 - ROUNDING) - dist[x])
    return 0, bound, effort


@nb.njit(cache=True)
def class_of(cost: float) -> int:
    """The class of a cost; the dearer, the higher."""
    return int(np.float64(cost).view(np.int64) >> SHIFT)


@nb.njit(cache=True)
def least_of(class_: int) -> float:
    """The least cost of a class."""
    return float(np.int64(class_ << SHIFT).view(np.float64))
