"""Chunks that spread and chunks that gather, on the same links at the same time: one 0/1 program at a fixed horizon.

What gathers runs on the transposed network with time turned round, so its start in epoch ``k`` there, with a delay of ``d``, is
a start in epoch ``K - k - d`` here. An all-reduced chunk leaves its owner once all that gathers has come. Groups may be due
earlier than the horizon. Columns and rows: O(C A K). Shape letters: C chunks, A arcs, V vertices, K epochs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualcoll.lp.integer_program import UNBOUNDED, IntegerProgram
from dualcoll.time_expanded.network import FAR, Network
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from dualcoll.time_expanded.task import Task

__all__ = ["JointModel", "least_joint"]

Ints = NDArray[np.int64]
Start = tuple[int, int, int]  # chunk, arc, epoch


def least_joint(task: Task) -> int:
    """Epochs that latency alone takes: the farthest rank of every chunk, there and back for one that is all-reduced."""
    reach = np.zeros(task.contract.chunks, np.int64)
    for problem in (task.copying, task.reducing):
        if problem is not None:
            reach += _farthest(problem)
    return int(reach.max(initial=0))


def _farthest(problem: Problem) -> Ints:
    distance = problem.network.distances()
    wants = problem.wants()
    farthest: Ints = np.where(wants, distance[problem.source][:, : problem.network.ranks], 0).max(axis=1)
    return farthest


class JointModel:
    """The program of a task over a horizon.

    Args:
        task: what is to be done. horizon: K.
        due: int64 (C,), the epoch by which each chunk is to be done; the horizon by default.
    """

    def __init__(self, task: Task, horizon: int, due: Ints | None = None) -> None:
        self.task, self.horizon = task, horizon
        self.due = np.minimum(horizon, np.full(task.contract.chunks, horizon) if due is None else due)
        self._upper: list[int] = []
        self._rows: list[tuple[int, int, list[tuple[int, int]]]] = []
        self._uses: dict[int, list[tuple[int, int]]] = defaultdict(list)  # row -> (start here, column)
        self.copies: dict[Start, int] = {}
        self.gathers: dict[Start, int] = {}
        if task.copying is not None:
            back = np.zeros(task.contract.chunks, np.int64) if task.reducing is None else _farthest(task.reducing)
            self.copies = self._part(task.copying, back, self.due)
        if task.reducing is not None:
            spread = np.zeros(task.contract.chunks, np.int64) if task.copying is None else _farthest(task.copying)
            self.gathers = self._part(task.reducing, horizon - self.due + spread, np.full(self.due.size, horizon))
        if task.copying is not None and task.reducing is not None:
            self._couple(task.copying, task.reducing)
        self._capacities()

    @property
    def program(self) -> IntegerProgram:
        """The program; any solution will do."""
        low, high, entries = zip(*self._rows, strict=True) if self._rows else ((), (), ())
        row = np.repeat(np.arange(len(self._rows)), [len(found) for found in entries])
        flat = np.array([entry for found in entries for entry in found], np.int64).reshape(-1, 2)
        upper, least, most = (np.array(side, np.int64) for side in (self._upper, low, high))
        return IntegerProgram(upper, least, most, row.astype(np.int64), flat[:, 0], flat[:, 1])

    def schedules(self, columns: Ints) -> tuple[EpochSchedule | None, EpochSchedule | None]:
        """What spreads and what gathers, of a solution."""
        parts = (self.task.copying, self.copies), (self.task.reducing, self.gathers)
        found = []
        for problem, starts in parts:
            taken = np.array([start for start, column in starts.items() if columns[column]], np.int32).reshape(-1, 3)
            found.append(None if problem is None else EpochSchedule(problem, taken[:, 1], taken[:, 2], taken[:, 0]))
        return found[0], found[1]

    def _column(self) -> int:
        self._upper.append(1)
        return len(self._upper) - 1

    def _row(self, low: int, high: int, entries: Sequence[tuple[int, int]]) -> None:
        self._rows.append((low, high, list(entries)))

    def _part(self, problem: Problem, release: Ints, due: Ints) -> dict[Start, int]:
        """Columns and rows of what spreads on a network."""
        network, wants = problem.network, problem.wants()
        starts: dict[Start, int] = {}
        distance = network.distances()
        backward = problem is self.task.reducing
        for chunk in np.flatnonzero(wants.any(axis=1)).tolist():
            source = int(problem.source[chunk])
            earliest = distance[source] + max(int(release[chunk]), int(problem.release[chunk]))
            arriving: dict[tuple[int, int], list[int]] = defaultdict(list)
            leaving: dict[tuple[int, int], list[int]] = defaultdict(list)
            for arc in range(network.arcs):
                tail, head, delay = int(network.tail[arc]), int(network.head[arc]), int(network.delay[arc])
                if head == source or earliest[tail] >= FAR or not _may_enter(network, wants[chunk], head):
                    continue
                for k in range(int(earliest[tail]), int(due[chunk]) - delay + 1):
                    column = starts[chunk, arc, k] = self._column()
                    arriving[head, k + delay].append(column)
                    leaving[tail, k].append(column)
                    here = self.horizon - k - delay if backward else k
                    for row in network.rows_of(arc).tolist():
                        self._uses[row].append((here, column))
            for vertex in range(network.vertices):
                if vertex != source:
                    wanted = vertex < network.ranks and bool(wants[chunk, vertex])
                    self._vertex(network, vertex, int(due[chunk]), arriving, leaving, wanted=wanted)
        return starts

    def _vertex(
        self,
        network: Network,
        vertex: int,
        due: int,
        arriving: dict[tuple[int, int], list[int]],
        leaving: dict[tuple[int, int], list[int]],
        *,
        wanted: bool,
    ) -> None:
        """What comes to a vertex, and what may leave it for that."""
        if not network.holds[vertex]:
            for k in range(due + 1):
                comes, leaves = arriving[vertex, k], leaving[vertex, k]
                if network.copies[vertex]:
                    for column in leaves:
                        self._row(0, UNBOUNDED, [*((c, 1) for c in comes), (column, -1)])
                elif leaves:
                    self._row(0, UNBOUNDED, [*((c, 1) for c in comes), *((c, -1) for c in leaves)])
            return
        everything = [column for k in range(due + 1) for column in arriving[vertex, k]]
        self._row(int(wanted), 1, [(column, 1) for column in everything])
        has: list[tuple[int, int]] = []  # the column that says whether it is there
        for k in range(due + 1):
            comes = arriving[vertex, k]
            if comes:
                now = self._column()
                self._row(0, 0, [*has, *((column, 1) for column in comes), (now, -1)])
                has = [(now, 1)]
            for column in leaving[vertex, k]:
                self._row(0, UNBOUNDED, [(column, -1), *has])

    def _couple(self, copying: Problem, reducing: Problem) -> None:
        """What an owner spreads follows all that it gathers."""
        both = np.asarray(copying.wants().any(axis=1) & reducing.wants().any(axis=1))
        whole: dict[tuple[int, int], int] = {}
        for chunk in np.flatnonzero(both).tolist():
            for k in range(self.horizon + 1):
                whole[chunk, k] = self._column()
                if k:
                    self._row(0, UNBOUNDED, [(whole[chunk, k], 1), (whole[chunk, k - 1], -1)])
        for (chunk, arc, k), column in self.gathers.items():
            if both[chunk] and reducing.network.tail[arc] == reducing.source[chunk] and k < self.horizon:
                self._row(0, 1, [(column, 1), (whole[chunk, self.horizon - k - 1], 1)])
        for (chunk, arc, k), column in self.copies.items():
            if both[chunk] and copying.network.tail[arc] == copying.source[chunk]:
                self._row(0, UNBOUNDED, [(whole[chunk, k], 1), (column, -1)])

    def _capacities(self) -> None:
        part = self.task.reducing or self.task.copying  # the transposed network has the rows of both
        assert part is not None
        for row, uses in self._uses.items():
            at: dict[int, list[int]] = defaultdict(list)
            for k, column in uses:
                at[k].append(column)
            for window, most in part.network.starts[row]:
                for k in range(min(at), max(at) + 1):
                    inside = [column for j in range(k, k + window) for column in at.get(j, ())]
                    if len(inside) > most:
                        self._row(0, most, [(column, 1) for column in inside])


def _may_enter(network: Network, wants: NDArray[np.bool_], vertex: int) -> bool:
    """Whether a chunk may come to a vertex: ranks take what is not for them only where they relay."""
    if not network.holds[vertex] or network.clock.relay:
        return True
    return vertex < network.ranks and bool(wants[vertex])
