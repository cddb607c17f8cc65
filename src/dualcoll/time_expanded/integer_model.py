"""The time-expanded network over a fixed number of epochs as an integer program: TE-CCL's model with copy, without slack.

Liu et al., "Rethinking Machine Learning Collective Communication as a Multi-Commodity Flow Problem" (TE-CCL), SIGCOMM 2024,
§3.1, Appendices B and C. What differs makes it smaller and its relaxation tighter, and costs no makespan:

* a start exists only from the epoch in which its chunk can be there, and only while it can still help somebody in time;
* where ranks copy, a chunk comes to a rank at most once, and has-it columns add these arrivals up;
* where they do not, flows are whole numbers of units, and the stock of a rank is what came less what left.

Shape letters: C chunks, V vertices, A arcs, K epochs, N starts (a chunk on an arc in an epoch).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.lp.integer_program import UNBOUNDED, IntegerProgram
from dualcoll.time_expanded.distances import Distances
from dualcoll.time_expanded.network import FAR
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from dualcoll.time_expanded.sparse_rows import SparseRows, expanded, matches

__all__ = ["Model", "Size", "Usable", "make_model"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Usable:
    """When each chunk may start on each arc, and when it matters whether a vertex has it.

    Attributes:
        horizon: K. deadline: int64 (C,), the epoch by which a chunk must be where it is wanted, at most K.
        first, count: int64 (C, A), of starts, the first epoch and how many there are.
        ready, held: int64 (C, V), of a chunk at a vertex that holds, the same.
        met: whether everything can be delivered in time on an empty network.
    """

    horizon: int
    deadline: Ints
    first: Ints
    count: Ints
    ready: Ints
    held: Ints
    met: bool

    @classmethod
    def of(cls, problem: Problem, distances: Distances, horizon: int) -> Usable:
        """What can be right and of use over so many epochs."""
        network, wants = problem.network, problem.wants()
        deadline = np.minimum(problem.deadline, horizon).astype(np.int64)
        first = distances.ready[:, network.tail]
        last = deadline[:, None] - network.delay - distances.to_wanted[:, network.head]
        allowed = (first < FAR) & (network.head != problem.source[:, None])
        if not network.clock.relay:
            takes = np.zeros((problem.chunks, network.vertices), bool)
            takes[:, : network.ranks] = wants
            allowed &= takes[:, network.head] | ~network.holds[network.head]
        count = np.where(allowed, np.maximum(last - first + 1, 0), 0)
        until = np.full((problem.chunks, network.vertices), -1)
        for a, tail in enumerate(network.tail.tolist()):
            until[:, tail] = np.maximum(until[:, tail], np.where(count[:, a] > 0, last[:, a], -1))
        ready = distances.ready
        chunk, rank = np.nonzero(wants)
        if not network.clock.copy:
            until[chunk, rank] = np.maximum(until[chunk, rank], deadline[chunk])
        holds = network.holds & (np.arange(network.vertices) != problem.source[:, None]) & (ready < FAR)
        met = bool(np.all(ready[chunk, rank] <= deadline[chunk]))
        return cls(horizon, deadline, first, count, ready, np.where(holds, np.maximum(until - ready + 1, 0), 0), met)


@dataclass(frozen=True, slots=True)
class Size:
    """Columns and entries of a model, before rows are left out that always hold."""

    columns: int
    entries: int

    @classmethod
    def of(cls, problem: Problem, usable: Usable) -> Size:
        """Count without building anything of size N."""
        network = problem.network
        starts, states = int(usable.count.sum()), int(usable.held.sum())
        spans = [
            sum(window for row in network.rows_of(a).tolist() for window, _ in network.starts[row])
            for a in range(network.arcs)
        ]
        kinds = 1 if network.clock.buffer is None or not network.clock.copy else 3
        entries = 4 * starts + 3 * kinds * states + int(usable.count.sum(axis=0) @ np.array(spans, np.int64))
        return cls(starts + kinds * states, entries)


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """An integer program whose first N columns are the starts.

    Attributes:
        problem: what it is a model of. program: the integer program.
        chunk, arc, epoch: int64 (N,), of each start.
    """

    problem: Problem
    program: IntegerProgram
    chunk: Ints
    arc: Ints
    epoch: Ints

    def schedule(self, columns: Ints) -> EpochSchedule:
        """The starts of a solution."""
        times = columns[: self.chunk.size]
        parts = (np.repeat(part, times).astype(np.int32) for part in (self.arc, self.epoch, self.chunk))
        return EpochSchedule(self.problem, *parts)


def make_model(problem: Problem, usable: Usable, *, earliest: bool = False) -> Model:
    """The integer program of a problem.

    Args:
        problem: what. usable: when, all of it met on an empty network.
        earliest: reward each delivery in epoch k (complete before it begins) with 1/k, the paper's objective, whose epochs
            count from 0; otherwise any solution will do.
    """
    return _Builder(problem, usable).model(earliest)


class _Builder:
    """Columns and rows of a model, block by block."""

    def __init__(self, problem: Problem, usable: Usable) -> None:
        self.problem, self.usable, self.network = problem, usable, problem.network
        self.wants = problem.wants()
        pair, step = expanded(usable.count.ravel())
        self.chunk, self.arc = np.divmod(pair, max(1, self.network.arcs))
        self.epoch = usable.first.ravel()[pair] + step
        self.tail = self.network.tail[self.arc].astype(np.int64)
        self.head = self.network.head[self.arc].astype(np.int64)
        self.arrival = self.epoch + self.network.delay[self.arc]
        self.start = np.arange(pair.size)
        units = np.ones(problem.chunks, np.int64) if self.network.clock.copy else self.wants.sum(axis=1)
        self.units = units
        self.rows = SparseRows(units[self.chunk])
        held = usable.held.ravel()
        self.state_of = np.cumsum(held) - held  # of (chunk, vertex), its first state
        where, step = expanded(held)
        self.state_chunk, self.state_vertex = np.divmod(where, self.network.vertices)
        self.state_epoch = usable.ready.ravel()[where] + step
        self.follows = step > 0

    def model(self, earliest: bool) -> Model:
        """All of it."""
        gain = self._has() if self.network.clock.copy else self._stock()
        self._cross()
        self._fit()
        program = self.rows.program(gain if earliest else None)
        return Model(self.problem, program, self.chunk, self.arc, self.epoch)

    def _states(self, chunk: Ints, vertex: Ints, epoch: Ints) -> tuple[Ints, Ints]:
        """Which of these have a state, and its number."""
        place = chunk * self.network.vertices + vertex
        step = epoch - self.usable.ready.ravel()[place]
        found = np.flatnonzero((step >= 0) & (step < self.usable.held.ravel()[place]))
        return found, self.state_of[place[found]] + step[found]

    def _has(self) -> Floats:
        """Ranks copy: one arrival, has-it columns, and who sends has it. Returns the gain of each column."""
        network, rows = self.network, self.rows
        wanted = np.zeros(self.usable.held.shape, np.int64)
        wanted[:, : network.ranks] = self.wants
        into = np.flatnonzero(network.holds[self.head])
        place = self.chunk[into] * network.vertices + self.head[into]
        busy = np.union1d(place, np.flatnonzero(wanted))
        rows.add(wanted.ravel()[busy], 1, (np.searchsorted(busy, place), into, 1))
        has = rows.columns(np.ones(self.state_chunk.size, np.int64))
        later = np.flatnonzero(self.follows)
        come, state = self._states(self.chunk[into], self.head[into], self.arrival[into])
        rows.add(
            np.zeros(has.size, np.int64),
            0,
            (np.arange(has.size), has, 1),
            (later, has[later - 1], -1),
            (state, into[come], -1),
        )
        leave, state = self._leaving()
        rows.add(
            np.full(leave.size, -UNBOUNDED),
            0,
            (np.arange(leave.size), leave, 1),
            (np.arange(leave.size), has[state], -1),
        )
        if network.clock.buffer is not None:
            self._buffer(has, leave, state)
        gain = np.zeros(rows.width)
        reward = self.wants[self.chunk, np.minimum(self.head, network.ranks - 1)] & (self.head < network.ranks)
        gain[: self.start.size] = reward / np.maximum(1, self.arrival)
        return gain

    def _leaving(self) -> tuple[Ints, Ints]:
        """Starts from holders other than the source, and the states they need."""
        mine = np.flatnonzero(self.network.holds[self.tail] & (self.tail != self.problem.source[self.chunk]))
        found, state = self._states(self.chunk[mine], self.tail[mine], self.epoch[mine])
        return mine[found], state

    def _buffer(self, has: Ints, leave: Ints, state: Ints) -> None:
        """A copying rank holds what is not for it from the arrival until it has last left."""
        rows, count = self.rows, has.size
        goes = rows.columns(np.ones(count, np.int64))  # it leaves in this epoch or later
        later = np.flatnonzero(self.follows)
        rows.add(
            np.full(later.size, -UNBOUNDED),
            0,
            (np.arange(later.size), goes[later], 1),
            (np.arange(later.size), goes[later - 1], -1),
        )
        rows.add(
            np.full(leave.size, -UNBOUNDED),
            0,
            (np.arange(leave.size), leave, 1),
            (np.arange(leave.size), goes[state], -1),
        )
        waits = rows.columns(np.ones(count, np.int64))
        each = np.arange(count)
        rows.add(np.full(count, -UNBOUNDED), 1, (each, has, 1), (each, goes, 1), (each, waits, -1))
        self._room((each, waits))

    def _room(self, *held: tuple[Ints, Ints]) -> None:
        """Columns that hold something in a state: at no vertex and epoch more than the buffer, but for who wants it."""
        vertex, epoch = self.state_vertex, self.state_epoch
        own = np.zeros(vertex.size, bool)
        ranks = vertex < self.network.ranks
        own[ranks] = self.wants[self.state_chunk[ranks], vertex[ranks]]
        key = vertex * (self.usable.horizon + 1) + epoch
        busy, row = np.unique(key[~own], return_inverse=True)
        number = np.full(vertex.size, -1)
        number[~own] = row
        entries = []
        for state, column in held:
            kept = number[state] >= 0
            entries.append((number[state[kept]], column[kept], 1))
        self.rows.add(np.full(busy.size, -UNBOUNDED), self.network.clock.buffer or 0, *entries)

    def _stock(self) -> Floats:
        """Ranks do not copy: what they have is what came less what left. Returns the gain of each column."""
        network, rows = self.network, self.rows
        stock = rows.columns(self.units[self.state_chunk])
        each, later = np.arange(stock.size), np.flatnonzero(self.follows)
        into = np.flatnonzero(network.holds[self.head])
        come, arrived = self._states(self.chunk[into], self.head[into], self.arrival[into])
        leave, left = self._leaving()
        rows.add(
            np.zeros(stock.size, np.int64),
            0,
            (each, stock, 1),
            (later, stock[later - 1], -1),
            (arrived, into[come], -1),
            (left, leave, 1),
        )
        if network.clock.buffer is not None:
            self._room((each, stock), (left, leave))
        ranks = np.minimum(self.state_vertex, network.ranks - 1)
        mine = np.flatnonzero((self.state_vertex < network.ranks) & self.wants[self.state_chunk, ranks])
        kept = rows.columns(np.ones(mine.size, np.int64))  # one unit is there to stay
        due = self.state_epoch[mine] == self.usable.deadline[self.state_chunk[mine]]
        rows.add(
            np.full(mine.size, -UNBOUNDED), 0, (np.arange(mine.size), kept, 1), (np.arange(mine.size), stock[mine], -1)
        )
        rows.add(np.ones(np.count_nonzero(due), np.int64), 1, (np.arange(np.count_nonzero(due)), kept[due], 1))
        after = np.flatnonzero(self.follows[mine])
        rows.add(
            np.full(after.size, -UNBOUNDED),
            0,
            (np.arange(after.size), kept[after - 1], 1),
            (np.arange(after.size), kept[after], -1),
        )
        gain = np.zeros(rows.width)
        reward = 1 / np.maximum(1, self.state_epoch[mine])
        gain[kept] = reward
        gain[kept[after - 1]] -= reward[after]
        return gain

    def _cross(self) -> None:
        """What leaves a vertex that does not hold comes in that very epoch."""
        network, rows = self.network, self.rows
        key = (self.chunk * network.vertices + self.head) * (self.usable.horizon + 1) + self.arrival
        into = np.flatnonzero(~network.holds[self.head])
        into = into[np.argsort(key[into], kind="stable")]
        out = np.flatnonzero(~network.holds[self.tail])
        needs = (self.chunk[out] * network.vertices + self.tail[out]) * (self.usable.horizon + 1) + self.epoch[out]
        copies = network.copies[self.tail[out]]
        copied = out[copies]
        row, come = matches(needs[copies], key[into])
        most = self.units[self.chunk[copied]]
        rows.add(
            np.full(copied.size, -UNBOUNDED), 0, (np.arange(copied.size), copied, 1), (row, into[come], -most[row])
        )
        places, row_out = np.unique(needs[~copies], return_inverse=True)
        row, come = matches(places, key[into])
        rows.add(np.full(places.size, -UNBOUNDED), 0, (row_out, out[~copies], 1), (row, into[come], -1))

    def _fit(self) -> None:
        """Capacity rows, every window of each."""
        network = self.network
        many = np.diff(network.row_ptr)[self.arc]
        start, step = expanded(many)
        row = network.row[network.row_ptr[self.arc[start]] + step]
        order = np.argsort(row, kind="stable")
        start, ptr = start[order], np.searchsorted(row[order], np.arange(network.rate.size + 1))
        for r, pairs in enumerate(network.starts):
            mine = start[ptr[r] : ptr[r + 1]]
            if not mine.size:
                continue
            epoch = self.epoch[mine] - self.epoch[mine].min()
            for window, most in pairs:
                last = max(0, int(epoch.max()) - window + 1)  # the last window that says something of its own
                low = np.maximum(0, epoch - window + 1)
                which, step = expanded(np.minimum(epoch, last) - low + 1)
                number = low[which] + step
                load = np.zeros(last + 1, np.int64)
                np.add.at(load, number, self.rows.upper[mine[which]])
                tight = np.cumsum(load > most) - 1
                kept = load[number] > most
                total = int(np.count_nonzero(load > most))
                self.rows.add(np.full(total, -UNBOUNDED), most, (tight[number[kept]], mine[which[kept]], 1))
