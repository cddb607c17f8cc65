"""The earliest way of a chunk to one of several ranks on the time-expanded network, around a schedule that is there.

A search over (vertex, epoch), epoch by epoch, from the nearest holders over arcs that lead nearer: O((A + V) K) at worst.
Shape letters: R ranks, V vertices, A arcs, M rows, C chunks, K epochs, S starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.start_windows import Windows, first_open, fits

__all__ = [
    "FIRST",
    "GOALS",
    "ID",
    "NEVER",
    "RANDOM",
    "STARTS",
    "STAY",
    "Book",
    "Goods",
    "Graph",
    "Policy",
    "Search",
    "draw",
    "find_way",
    "step_back",
]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Flags = NDArray[np.bool_]

NEVER = 2**30
FIRST, STAY = -1, -2  # how a state was reached, besides over an arc: the chunk is there anyhow; it waits in a buffer


class Graph(NamedTuple):
    """Arcs by tail (CSR int64 (V+1,), (A,)), and int64 (A,) tail, head and delay; rows of each arc as CSR int64.

    holds, copies: bool (V,). often: bool (M,), rows with more than one arc. way: int64 (R, V), epochs from a vertex to a rank.
    """

    ptr: Ints
    out: Ints
    tail: Ints
    head: Ints
    delay: Ints
    row_ptr: Ints
    row: Ints
    holds: Flags
    copies: Flags
    often: Flags
    way: Ints


class Goods(NamedTuple):
    """Chunks: their source and release int64 (C,), who wants them and who may keep them without limit bool (C, R), (C, V)."""

    source: Ints
    release: Ints
    wanted: Flags
    keeps: Flags


class Policy(NamedTuple):
    """What may be chosen.

    slack: epochs by which a hop may lead away. breadth: destinations that one search looks for. floor: first epoch of starts.
    relay: whether those pass on who do not keep. room: chunks in a buffer, -1 for any number. seed: of ties.
    """

    slack: int
    breadth: int
    floor: int
    relay: bool
    room: int
    seed: int


class Book(NamedTuple):
    """The schedule so far: when each vertex has each chunk and until when it stays in its buffer int32 (C, V), buffers taken
    int32 (V, K), distance of each rank from the nearest holder int64 (C, R), still wanted bool (C, R); starts as
    int64 columns (S,), with the last one of each chunk (C,) and the one before (S,).
    """

    since: Shorts
    until: Shorts
    held: Shorts
    near: Ints
    open: Flags
    arc: Ints
    epoch: Ints
    chunk: Ints
    last: Ints
    before: Ints


class Search(NamedTuple):
    """States of one search: int32 (V, K) the search that reached it, how, and the next state of its epoch; first of each epoch
    int64 (K,); earliest epoch int64 (V,) and its search; way to the nearest destination int64 (V,); holders
    that wait, and when they try again, int64 (V,); destinations int64 (R,); tallies int64 (6,): number of the search, of
    those that wait, of destinations and of starts, random state, latest epoch with a state.
    """

    seen: Shorts
    via: Shorts
    after: Shorts
    first: Ints
    label: Ints
    labelled: Ints
    togo: Ints
    waiting: Ints
    again: Ints
    goal: Ints
    tally: Ints


ID, WAITING, GOALS, STARTS, RANDOM, LATEST = range(6)


@nb.njit(cache=True, inline="always")
def draw(search: Search, below: int) -> int:
    """A random number from 0 to ``below - 1`` (a linear congruence)."""
    x = (search.tally[RANDOM] * 1103515245 + 12345) & 0x7FFFFFFF
    search.tally[RANDOM] = x
    return int((x >> 8) % below)


@nb.njit(cache=True)
def _measure(graph: Graph, search: Search) -> None:
    """Epochs from each vertex to the nearest destination of this search."""
    for v in range(graph.holds.size):
        least = graph.way[search.goal[0], v]
        for i in range(1, search.tally[GOALS]):
            least = min(least, graph.way[search.goal[i], v])
        search.togo[v] = least


@nb.njit(cache=True, inline="always")
def _put(search: Search, v: int, k: int, via: int) -> None:
    if k >= search.first.size or search.seen[v, k] == search.tally[ID]:
        return
    search.seen[v, k] = search.tally[ID]
    search.via[v, k] = via
    search.after[v, k] = search.first[k]
    search.first[k] = v
    search.tally[LATEST] = max(search.tally[LATEST], k)
    if search.labelled[v] != search.tally[ID] or k < search.label[v]:
        search.labelled[v] = search.tally[ID]
        search.label[v] = k


@nb.njit(cache=True, inline="always")
def step_back(graph: Graph, goods: Goods, policy: Policy, search: Search, c: int, v: int, k: int) -> tuple[int, int]:
    """The state before one that was reached over an arc: where its tail got the chunk."""
    a = search.via[v, k]
    u = graph.tail[a]
    if graph.holds[u] and (policy.room < 0 or goods.keeps[c, u]):
        return int(u), int(search.label[u])
    return int(u), int(k - graph.delay[a])


@nb.njit(cache=True)
def _add_way(
    graph: Graph,
    windows: Windows,
    goods: Goods,
    policy: Policy,
    search: Search,
    c: int,
    v: int,
    k: int,
    row: int,
    by: int,
) -> None:
    """Count the starts on a row of the way by which a state was reached."""
    if graph.holds[v] and (policy.room < 0 or goods.keeps[c, v]):
        k = search.label[v]
    while search.via[v, k] != FIRST:
        if search.via[v, k] == STAY:
            k -= 1
            continue
        a = search.via[v, k]
        for i in range(graph.row_ptr[a], graph.row_ptr[a + 1]):
            if graph.row[i] == row:
                windows.starts[row, k - graph.delay[a]] += by
        v, k = step_back(graph, goods, policy, search, c, v, k)


@nb.njit(cache=True)
def _fits_after(
    graph: Graph, windows: Windows, goods: Goods, policy: Policy, search: Search, c: int, v: int, k: int, row: int
) -> bool:
    """Whether a start on a row, which is open, fits after the way to v, too."""
    _add_way(graph, windows, goods, policy, search, c, v, k, row, 1)
    good = fits(windows, row, k)
    _add_way(graph, windows, goods, policy, search, c, v, k, row, -1)
    return good


@nb.njit(cache=True, inline="always")
def _enters(graph: Graph, goods: Goods, policy: Policy, book: Book, search: Search, c: int, h: int, k: int) -> bool:
    """Whether it is of use that a chunk comes to a vertex in epoch k, and allowed."""
    if k >= search.first.size or search.seen[h, k] == search.tally[ID]:
        return False
    if not graph.holds[h]:
        return True
    if book.since[c, h] <= k:
        return False
    if not goods.keeps[c, h]:
        if not policy.relay:
            return False
        if policy.room >= 0:
            return bool(book.since[c, h] == NEVER and book.held[h, k] < policy.room)
    return bool(search.labelled[h] != search.tally[ID] or search.label[h] > k)


@nb.njit(cache=True)
def _expand(
    graph: Graph, windows: Windows, goods: Goods, policy: Policy, book: Book, search: Search, c: int, v: int, k: int
) -> int:
    """Reach what a chunk at v in epoch k can be sent to. Returns the first epoch in which to try again."""
    if k < policy.floor and graph.holds[v]:
        return policy.floor
    begin, end = graph.ptr[v], graph.ptr[v + 1]
    most = search.togo[v] + policy.slack
    shift = draw(search, end - begin) if end > begin else 0
    again = NEVER
    for i in range(begin, end):
        at = i + shift
        a = graph.out[at if at < end else at - end + begin]
        h = graph.head[a]
        if graph.delay[a] + search.togo[h] > most:
            continue
        free = k
        for j in range(graph.row_ptr[a], graph.row_ptr[a + 1]):
            free = max(free, first_open(windows.closed, graph.row[j], k))
        again = min(again, max(free, k + 1))
        if free > k or not _enters(graph, goods, policy, book, search, c, h, k + graph.delay[a]):
            continue
        good = True
        for j in range(graph.row_ptr[a], graph.row_ptr[a + 1]):
            if graph.often[graph.row[j]]:  # the way to v may have used it
                good = good and _fits_after(graph, windows, goods, policy, search, c, v, k, graph.row[j])
        if good:
            _put(search, h, k + graph.delay[a], a)
    return again


@nb.njit(cache=True)
def _begin(graph: Graph, goods: Goods, policy: Policy, book: Book, search: Search, c: int) -> int:
    """Enter where the chunk is: nearest holders, and switches that copy what passes. The first epoch to look at."""
    vertices = graph.holds.size
    nearest = NEVER
    for v in range(vertices):
        if graph.holds[v] and book.since[c, v] < NEVER:
            nearest = min(nearest, search.togo[v])
    first = NEVER
    for v in range(vertices):
        if not (graph.holds[v] and book.since[c, v] < NEVER and search.togo[v] <= nearest + policy.slack):
            continue
        since = book.since[c, v]
        if policy.room < 0 or goods.keeps[c, v]:
            since = max(since, policy.floor)
            _put(search, v, since, FIRST)
        else:
            for k in range(since, book.until[c, v] + 1):
                _put(search, v, k, FIRST)
        first = min(first, since)
    start = book.last[c]
    while start >= 0:
        a = book.arc[start]
        v = graph.head[a]
        if not graph.holds[v] and graph.copies[v] and search.togo[v] <= nearest + policy.slack:
            k = book.epoch[start] + graph.delay[a]
            if book.epoch[start] >= policy.floor:
                _put(search, v, k, FIRST)
                first = min(first, k)
        start = book.before[start]
    return first


@nb.njit(cache=True)
def find_way(
    graph: Graph, windows: Windows, goods: Goods, policy: Policy, book: Book, search: Search, c: int
) -> tuple[int, int]:
    """The first destination that can have the chunk, and when; -1 if none before the last epoch."""
    epochs = search.first.size
    search.tally[WAITING] = 0
    search.tally[LATEST] = 0
    found = -1
    _measure(graph, search)
    k = _begin(graph, goods, policy, book, search, c)
    while k < epochs and found < 0:
        waiting = search.tally[WAITING]
        if waiting:
            shift = draw(search, waiting)
            for i in range(waiting):
                at = i + shift
                v = search.waiting[at if at < waiting else at - waiting]
                if search.again[v] <= k:
                    search.again[v] = _expand(graph, windows, goods, policy, book, search, c, v, k)
        elif k > search.tally[LATEST]:
            break
        while search.first[k] >= 0:
            v = search.first[k]
            search.first[k] = search.after[v, k]
            if v < book.open.shape[1] and book.open[c, v] and search.togo[v] == 0:
                found = v
                break
            if graph.holds[v] and (policy.room < 0 or goods.keeps[c, v]):
                if search.label[v] < k:
                    continue
                search.waiting[search.tally[WAITING]] = v
                search.tally[WAITING] += 1
            elif graph.holds[v] and k + 1 < epochs and book.held[v, k + 1] < policy.room:
                _put(search, v, k + 1, STAY)
            search.again[v] = _expand(graph, windows, goods, policy, book, search, c, v, k)
        if found < 0:
            k += 1
    for e in range(min(k, epochs), min(search.tally[LATEST] + 1, epochs)):
        search.first[e] = -1
    return found, k
