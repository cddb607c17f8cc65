"""One round as an integer program: which chunks start on which arcs in a few epochs, so that most progress is made.

TE-CCL (Liu et al., SIGCOMM 2024, §4.2) rewards progress by shortest-path distance. Here a wanted delivery is worth the epochs
by which the nearest holder comes nearer, even if it gets the chunk after the round (the look-ahead: what starts in the round
counts when it lands). Sooner is better among equals. Shape letters: C chunks, V vertices, A arcs, R ranks, n columns.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.lp.integer_program import UNBOUNDED, IntegerProgram
from dualcoll.time_expanded.distances import to_ranks
from dualcoll.time_expanded.network import FAR, Network
from dualcoll.time_expanded.problem import EpochSchedule
from dualcoll.time_expanded.sparse_rows import SparseRows, matches

__all__ = ["MAX_COLUMNS", "Round", "make_round"]

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MAX_COLUMNS = 4_000  # starts that are free in one program


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """The program of a round, and what its first columns stand for.

    Attributes:
        fixed: starts that stay. program: its columns are starts, then rewards.
        arc, epoch, chunk: int64 (n,), of the columns that are starts.
    """

    fixed: EpochSchedule
    program: IntegerProgram
    arc: Ints
    epoch: Ints
    chunk: Ints

    def schedule(self, columns: Ints) -> EpochSchedule:
        """What is fixed, and the starts of a solution."""
        fixed, times = self.fixed, columns[: self.arc.size]
        return EpochSchedule(
            fixed.problem,
            np.concatenate([fixed.arc, np.repeat(self.arc, times)]).astype(np.int32),
            np.concatenate([fixed.epoch, np.repeat(self.epoch, times)]).astype(np.int32),
            np.concatenate([fixed.chunk, np.repeat(self.chunk, times)]).astype(np.int32),
        )

    def hint(self, schedule: EpochSchedule) -> Ints:
        """The columns of a schedule's starts, as far as they are free in the round, and of what they gain."""
        place = {key: i for i, key in enumerate(zip(*(part.tolist() for part in self._key), strict=True))}
        columns = np.zeros(self.program.columns, np.int64)
        for key in zip(schedule.arc.tolist(), schedule.epoch.tolist(), schedule.chunk.tolist(), strict=True):
            if key in place:
                columns[place[key]] += 1
        program = self.program
        reward = program.column >= self.arc.size  # alone with what helps in its row
        helped = np.zeros(program.rows, np.int64)
        np.add.at(helped, program.row[~reward], columns[program.column[~reward]])
        columns[program.column[reward]] = helped[program.row[reward]] > 0
        return np.minimum(columns, program.upper)

    @property
    def _key(self) -> tuple[Ints, Ints, Ints]:
        return self.arc, self.epoch, self.chunk


def make_round(
    before: EpochSchedule, best: EpochSchedule, begin: int, end: int, draw: np.random.Generator
) -> Round | None:
    """The round of the hops that start in epochs ``begin`` to ``end - 1``.

    Args:
        before: the hops that start earlier. best: these, and the round's as they are so far.
        begin, end: epochs. draw: decides which chunks are free where all would be more than :data:`MAX_COLUMNS` columns; the
            others start as they do in ``best``.

    Returns:
        The round; None where there is nothing to gain, and where ranks do not copy or have limited buffers, which it knows
        nothing of.
    """
    problem = before.problem
    network = problem.network
    if not network.clock.copy or network.clock.buffer is not None:
        return None
    state = _State(before, begin)
    arc, epoch, chunk = _columns(state, begin, end)
    order = draw.permutation(problem.chunks)
    free = np.zeros(problem.chunks, bool)
    free[order[np.cumsum(np.bincount(chunk, minlength=problem.chunks)[order]) <= MAX_COLUMNS]] = True
    kept = free[chunk]
    arc, epoch, chunk = arc[kept], epoch[kept], chunk[kept]
    if not arc.size:
        return None
    fixed = _joined(before, best, ~free)
    upper = np.where(_into_switch(network)[arc], _at_once(network)[arc], 1)
    rows = SparseRows(upper)
    _conservation(rows, state, arc, epoch, chunk)
    _capacity(rows, fixed, upper, arc, epoch)
    rewards = _rewards(rows, state, arc, chunk)
    arrival = epoch + network.delay[arc]
    price = np.where(network.holds[network.head[arc]], arrival - begin, 1)
    unit = 2.0 * float(arrival.max() - begin + network.vertices)  # more than any hop costs
    gain = np.concatenate([-1.0 * price, unit * np.array(rewards)])
    return Round(fixed, rows.program(gain), arc, epoch, chunk)


def _joined(before: EpochSchedule, best: EpochSchedule, chunks: Flags) -> EpochSchedule:
    """Some chunks' starts in one schedule, all others' in another."""
    mine, other = ~chunks[before.chunk], chunks[best.chunk]
    columns = (
        np.concatenate([getattr(before, name)[mine], getattr(best, name)[other]]) for name in ("arc", "epoch", "chunk")
    )
    return EpochSchedule(before.problem, *columns)


class _State:
    """Who has what, or will have it, and how far it still is."""

    def __init__(self, given: EpochSchedule, begin: int) -> None:
        problem, network = given.problem, given.problem.network
        self.problem, self.network = problem, network
        shape = (problem.chunks, network.vertices)
        self.since = np.full(shape, FAR)
        own = np.flatnonzero(problem.source >= 0)
        self.since[own, problem.source[own]] = problem.release[own]
        lands = network.holds[network.head[given.arc]]
        np.minimum.at(
            self.since, (given.chunk[lands], network.head[given.arc[lands]]), given.arrival[lands].astype(np.int64)
        )
        self.way = to_ranks(network)  # (R, V), from a vertex to a rank
        have = self.since < FAR
        self.open = problem.wants() & ~have[:, : network.ranks]
        self.near = np.full(self.open.shape, FAR)  # from the nearest holder to each rank
        for v in np.flatnonzero(network.holds & have.any(axis=0)).tolist():
            np.minimum(self.near, np.where(have[:, v, None], self.way[None, :, v], FAR), out=self.near)
        self.early = np.maximum(self.since, begin)  # the first epoch in which a vertex can have a chunk
        for _ in range(network.vertices):
            before = self.early.copy()
            np.minimum.at(self.early.T, network.head, (self.early[:, network.tail] + network.delay).T)
            if np.array_equal(before, self.early):
                break


def _columns(state: _State, begin: int, end: int) -> tuple[Ints, Ints, Ints]:
    """Starts that may help: arc, epoch and chunk. Switches go on for what starts at the end."""
    network = state.network
    late = end + int(network.delay[_into_switch(network)].max(initial=0)) * 2
    relays = network.clock.relay
    wants = state.problem.wants()
    found = []
    nearer = np.zeros(state.early.shape, bool)  # whether a chunk at a vertex is nearer to a rank that wants it
    for v in range(network.vertices):
        way = state.way[:, v]
        closer = way[None, :] <= state.near if not network.holds[v] else way[None, :] < state.near
        nearer[:, v] = np.any(state.open & closer, axis=1)
    for a in range(network.arcs):
        tail, head, delay = int(network.tail[a]), int(network.head[a]), int(network.delay[a])
        able = nearer[:, head] & (state.early[:, tail] < late)
        if network.holds[head]:
            able &= state.since[:, head] > begin + delay
            if not relays:
                able &= wants[:, head] if head < network.ranks else False
        epochs = np.arange(begin, end if network.holds[tail] else late)
        c, k = np.nonzero(able[:, None] & (state.early[:, tail, None] <= epochs[None, :]))
        k = epochs[k]
        if network.holds[head]:
            soon = k + delay < state.since[c, head]
            c, k = c[soon], k[soon]
        found.append((np.full(c.size, a), k, c))
    arc, epoch, chunk = (np.concatenate(part).astype(np.int64) for part in zip(*found, strict=True))
    return arc, epoch, chunk


def _into_switch(network: Network) -> Flags:
    return ~network.holds[network.head] & ~network.copies[network.head]


def _at_once(network: Network) -> Ints:
    """The most starts of one epoch on each arc."""
    most = np.array([min((starts for _, starts in pairs), default=1) for pairs in network.starts])
    return np.array([most[network.rows_of(a)].min() for a in range(network.arcs)], np.int64)


def _at_most(rows: SparseRows, high: Ints, *entries: tuple[Ints, Ints, int]) -> None:
    """Rows whose sums are at most ``high`` (m,), of rows, columns and values."""
    turned = ((row, column, -value) for row, column, value in entries)
    rows.add(-high, UNBOUNDED, *turned)


def _conservation(rows: SparseRows, state: _State, arc: Ints, epoch: Ints, chunk: Ints) -> None:
    """A holder sends what it has or has got; one arrival is enough. A switch sends on what comes, and copies if it can."""
    network = state.network
    tail, head = network.tail[arc], network.head[arc]
    arrival = epoch + network.delay[arc]
    at_head, at_tail = chunk * network.vertices + head, chunk * network.vertices + tail

    lands = np.flatnonzero(network.holds[head])
    lands = lands[np.argsort(at_head[lands], kind="stable")]
    _, row = np.unique(at_head[lands], return_inverse=True)
    _at_most(rows, np.ones(row.max(initial=-1) + 1, np.int64), (row, lands, 1))

    later = np.flatnonzero(network.holds[tail] & (epoch < state.since[chunk, tail]))
    which, came = matches(at_tail[later], at_head[lands])
    came = lands[came]
    intime = arrival[came] <= epoch[later[which]]
    _at_most(
        rows,
        np.zeros(later.size, np.int64),
        (np.arange(later.size), later, 1),
        (which[intime], came[intime], -1),
    )

    span = int(arrival.max()) + 1
    out = np.flatnonzero(~network.holds[tail])
    into = np.flatnonzero(~network.holds[head])
    into = into[np.argsort(at_head[into] * span + arrival[into], kind="stable")]
    moment = at_tail[out] * span + epoch[out]
    for copies in (False, True):
        mine = np.flatnonzero(network.copies[tail[out]] == copies)
        keys, row = np.unique(moment[mine], return_inverse=True)
        if copies:
            keys, row = moment[mine], np.arange(mine.size)
        which, came = matches(keys, at_head[into] * span + arrival[into])
        _at_most(rows, np.zeros(keys.size, np.int64), (row, out[mine], 1), (which, into[came], -1))


def _capacity(rows: SparseRows, given: EpochSchedule, upper: Ints, arc: Ints, epoch: Ints) -> None:
    """Every window of every row, with the given starts in it."""
    network = given.problem.network
    used: dict[int, list[int]] = defaultdict(list)
    for a, k in zip(given.arc.tolist(), given.epoch.tolist(), strict=True):
        for row in network.rows_of(a).tolist():
            used[row].append(k)
    columns: dict[int, list[Ints]] = defaultdict(list)
    order = np.argsort(arc, kind="stable")
    ends = np.searchsorted(arc[order], np.arange(network.arcs + 1))
    for a in range(network.arcs):
        mine = order[ends[a] : ends[a + 1]]
        for row in network.rows_of(a).tolist() if mine.size else ():
            columns[row].append(mine)
    for row, parts in columns.items():
        mine = np.concatenate(parts)
        mine = mine[np.argsort(epoch[mine], kind="stable")]
        at = epoch[mine]
        before = np.sort(np.array(used.get(row, []), np.int64))
        for length, most in network.starts[row]:
            last = -1
            for begin in range(int(at[0]) - length + 1, int(at[-1]) + 1):
                low, high = np.searchsorted(at, [begin, begin + length])
                held = int(np.subtract(*np.searchsorted(before, [begin + length, begin])))
                if high == last and not held:
                    continue  # the window before holds these and more
                last = high
                if upper[mine[low:high]].sum() > most - held:
                    room = np.array([max(0, most - held)])
                    _at_most(rows, room, (np.zeros(high - low, np.int64), mine[low:high], 1))


def _rewards(rows: SparseRows, state: _State, arc: Ints, chunk: Ints) -> list[int]:
    """Adds a column for each nearer distance of each delivery, which needs an arrival; the epochs that each is worth."""
    network = state.network
    head = network.head[arc]
    lands: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))  # chunk -> vertex -> columns
    for j in np.flatnonzero(network.holds[head]).tolist():
        lands[int(chunk[j])][int(head[j])].append(j)
    worth: list[int] = []
    for c, by_vertex in lands.items():
        vertices = np.array(sorted(by_vertex))
        gains: dict[bytes, int] = defaultdict(int)  # which vertices help -> epochs gained
        for t in np.flatnonzero(state.open[c]).tolist():
            way = state.way[t, vertices]
            levels = sorted({int(w) for w in way if w < state.near[c, t]}, reverse=True)
            for above, level in zip([int(state.near[c, t]), *levels], levels, strict=False):
                gains[(way <= level).tobytes()] += above - level
        for key, gain in gains.items():
            helping = vertices[np.frombuffer(key, bool)]
            columns = np.concatenate([np.array(by_vertex[v]) for v in helping.tolist()])
            reward = rows.columns(np.ones(1, np.int64))
            none = np.zeros(1, np.int64)
            _at_most(rows, none, (none, reward, 1), (np.zeros(columns.size, np.int64), columns, -1))
            worth.append(gain)
    return worth
