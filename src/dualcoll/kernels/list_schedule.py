"""List scheduling on the time-expanded network: one delivery after the other, each at its earliest (docs/time-expanded.md).

Every step takes the chunk with most way to go, and of those who want it some of the farthest; the first of them that can have
it gets it (:mod:`dualcoll.kernels.list_search`), and what it passes on its way has it too. O(n (A + V) K) at worst for n
deliveries, far less where holders are near. Shape letters: R ranks, V vertices, A arcs, C chunks, K epochs, S starts.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.list_search import (
    FIRST,
    GOALS,
    ID,
    NEVER,
    RANDOM,
    STARTS,
    STAY,
    Book,
    Goods,
    Graph,
    Policy,
    Search,
    draw,
    find_way,
    step_back,
)
from dualcoll.kernels.shortest_paths import heap_pop, heap_push
from dualcoll.kernels.start_windows import Windows, take

__all__ = ["DONE", "list_schedule"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DONE = -1


@nb.njit(cache=True)
def _arrive(graph: Graph, goods: Goods, book: Book, c: int, v: int, k: int) -> None:
    """A vertex that holds has the chunk from epoch k on."""
    book.since[c, v] = min(book.since[c, v], k)
    if v < book.open.shape[1]:
        book.open[c, v] = False
    for t in range(book.open.shape[1]):
        if book.open[c, t]:
            book.near[c, t] = min(book.near[c, t], graph.way[t, v])


@nb.njit(cache=True)
def _enter(graph: Graph, windows: Windows, goods: Goods, book: Book, search: Search, c: int, a: int, k: int) -> None:
    """A start: capacity, arrival, and the columns of the schedule."""
    for i in range(graph.row_ptr[a], graph.row_ptr[a + 1]):
        take(windows, graph.row[i], k)
    start = search.tally[STARTS]
    book.arc[start], book.epoch[start], book.chunk[start] = a, k, c
    book.before[start] = book.last[c]
    book.last[c] = start
    search.tally[STARTS] = start + 1
    h = graph.head[a]
    if graph.holds[h]:
        _arrive(graph, goods, book, c, h, k + graph.delay[a])


@nb.njit(cache=True)
def _take_way(
    graph: Graph, windows: Windows, goods: Goods, policy: Policy, book: Book, search: Search, c: int, v: int, k: int
) -> None:
    """Book the way by which a state was reached."""
    while search.via[v, k] != FIRST:
        limited = policy.room >= 0 and graph.holds[v] and not goods.keeps[c, v]
        if limited:
            book.held[v, k] += 1
            book.until[c, v] = max(book.until[c, v], k)
        if search.via[v, k] == STAY:
            k -= 1
            continue
        a = search.via[v, k]
        u, e = step_back(graph, goods, policy, search, c, v, k)
        _enter(graph, windows, goods, book, search, c, a, k - graph.delay[a])
        v, k = u, e


@nb.njit(cache=True)
def _choose(policy: Policy, book: Book, search: Search, c: int) -> None:
    """Begin a search for some of the farthest that still want the chunk."""
    search.tally[ID] += 1
    ranks = book.open.shape[1]
    farthest = -1
    many = 0
    shift = draw(search, ranks)
    for i in range(ranks):
        t = (i + shift) % ranks
        if not book.open[c, t] or book.near[c, t] < farthest:
            continue
        if book.near[c, t] > farthest:
            farthest = book.near[c, t]
            many = 0
        search.goal[many] = t
        many += 1
    while many > policy.breadth:
        i = draw(search, many)
        many -= 1
        search.goal[i] = search.goal[many]
    search.tally[GOALS] = many


@nb.njit(cache=True)
def _key(book: Book, weight: Floats, c: int) -> float:
    """How late in the line a chunk is: it has most way to go first."""
    way = 0
    for t in range(book.open.shape[1]):
        if book.open[c, t]:
            way += book.near[c, t]
    return -float(way * weight[c])


@nb.njit(cache=True)
def _longer(column: Ints, more: int) -> Ints:
    longer = np.empty(2 * column.size + more, np.int64)
    longer[: column.size] = column
    return longer


@nb.njit(cache=True)
def _roomier(book: Book, more: int) -> Book:
    """The same with columns for twice as many starts and some more."""
    return Book(
        book.since,
        book.until,
        book.held,
        book.near,
        book.open,
        _longer(book.arc, more),
        _longer(book.epoch, more),
        _longer(book.chunk, more),
        book.last,
        _longer(book.before, more),
    )


@nb.njit(cache=True)
def _fill_buffers(graph: Graph, goods: Goods, book: Book, starts: int) -> None:
    """Enter how long the given starts keep chunks in buffers."""
    for s in range(starts):
        c, v = book.chunk[s], graph.tail[book.arc[s]]
        if graph.holds[v] and not goods.keeps[c, v]:
            book.until[c, v] = max(book.until[c, v], book.epoch[s])
    chunks, vertices = book.since.shape
    for c in range(chunks):
        for v in range(vertices):
            for k in range(book.since[c, v], book.until[c, v] + 1):
                book.held[v, k] += 1


@nb.njit(cache=True)
def _schedule(
    graph: Graph, windows: Windows, goods: Goods, policy: Policy, book: Book, search: Search, weight: Floats
) -> tuple[int, Book]:
    chunks = goods.source.size
    keys = np.empty(chunks + 1)
    line = np.empty(chunks + 1, np.int64)
    size = 0
    for c in range(chunks):
        if book.open[c].any():
            size = heap_push(keys, line, size, _key(book, weight, c), c)
    widest = Policy(NEVER, policy.breadth, policy.floor, policy.relay, policy.room, policy.seed)
    while size:
        c = line[0]
        _choose(policy, book, search, c)
        v, k = find_way(graph, windows, goods, policy, book, search, c)
        if v < 0:
            search.tally[ID] += 1
            v, k = find_way(graph, windows, goods, widest, book, search, c)
            if v < 0:
                return c, book
        if search.tally[STARTS] + graph.holds.size > book.arc.size:
            book = _roomier(book, graph.holds.size)
        _take_way(graph, windows, goods, policy, book, search, c, v, k)
        size = heap_pop(keys, line, size)
        if book.open[c].any():
            size = heap_push(keys, line, size, _key(book, weight, c), c)
    return DONE, book


@nb.njit(cache=True)
def list_schedule(
    graph: Graph,
    windows: Windows,
    goods: Goods,
    policy: Policy,
    weight: Floats,
    arc: Ints,
    epoch: Ints,
    chunk: Ints,
) -> tuple[int, int, Ints, Ints, Ints]:
    """Deliver everything.

    Args:
        graph, windows, goods, policy: see there; ``windows`` is filled in, its columns are the epochs that there are.
        weight: float64 (C,); chunks with twice the weight count as having twice the way to go.
        arc, epoch, chunk: int64 (S,), starts that are given.

    Returns:
        ``DONE``, or a chunk for which there is no way within the epochs; the last epoch of any start; arc, epoch and chunk of
        all starts, the given ones first.
    """
    chunks, ranks = goods.wanted.shape
    vertices = graph.holds.size
    epochs = windows.starts.shape[1]
    limited = epochs if policy.room >= 0 else 0
    most = arc.size + 2 * int(goods.wanted.sum()) + 1
    book = Book(
        np.full((chunks, vertices), NEVER, np.int32),
        np.full((chunks if limited else 0, vertices), -1, np.int32),
        np.zeros((vertices, limited), np.int32),
        np.full((chunks, ranks), NEVER, np.int64),
        goods.wanted.copy(),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.full(chunks, -1, np.int64),
        np.empty(most, np.int64),
    )
    search = Search(
        np.zeros((vertices, epochs), np.int32),
        np.empty((vertices, epochs), np.int32),
        np.empty((vertices, epochs), np.int32),
        np.full(epochs, -1, np.int64),
        np.zeros(vertices, np.int64),
        np.zeros(vertices, np.int64),
        np.zeros(vertices, np.int64),
        np.zeros(vertices, np.int64),
        np.zeros(vertices, np.int64),
        np.zeros(ranks, np.int64),
        np.zeros(6, np.int64),
    )
    search.tally[RANDOM] = policy.seed & 0x7FFFFFFF
    for c in range(chunks):
        if goods.source[c] >= 0:
            _arrive(graph, goods, book, c, goods.source[c], goods.release[c])
    for s in range(arc.size):
        _enter(graph, windows, goods, book, search, chunk[s], arc[s], epoch[s])
    if limited:
        _fill_buffers(graph, goods, book, search.tally[STARTS])
    result, book = _schedule(graph, windows, goods, policy, book, search, weight)
    starts = search.tally[STARTS]
    final = 0
    for s in range(starts):
        final = max(final, book.epoch[s])
    return result, final, book.arc[:starts].copy(), book.epoch[:starts].copy(), book.chunk[:starts].copy()
