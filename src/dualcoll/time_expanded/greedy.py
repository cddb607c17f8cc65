"""Whole schedules in milliseconds to seconds: list scheduling on the time-expanded network, and restarts of it.

Deliveries are entered one after the other, the chunk with most way to go first and its farthest destinations first (so that a
chunk comes to every box once before it spreads there), each at its earliest around what is there. TE-CCL has no counterpart;
TACOS (Won et al., MICRO 2024) matches chunks to links in the same spirit. See :mod:`dualcoll.kernels.list_schedule`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.time_expanded.distances import to_ranks
from dualcoll.time_expanded.feeds import feeds
from dualcoll.time_expanded.problem import FOREVER, EpochSchedule, Problem

if TYPE_CHECKING:
    from dualcoll.kernels.list_search import Graph

__all__ = ["Cost", "Lister", "cost_of", "list_schedule"]

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

BREADTHS = (16, 1, 4)
NOISES = (0.0, 0.1, 0.5)  # of the order of chunks, relative
SLACKS = (0, 0, 1)  # epochs


NEVER = 2**30  # epochs
TRIES = 27  # of which the best is taken, fewer where there is much to deliver
DELIVERIES = 4000  # in all tries together, roughly


class Cost(NamedTuple):
    """What is to become less, in this order: delays past deadlines, makespan, delays past a bound, the sum of completions."""

    overdue: int
    finish: int
    past: int
    total: int


def cost_of(schedule: EpochSchedule, wants: Flags, bound: int = 0) -> Cost:
    """The cost of a whole schedule. ``wants`` is bool (C, R), see :meth:`Problem.wants`."""
    deadline = schedule.problem.deadline.astype(np.int64)
    done = np.where(wants, schedule.delivered(), 0)
    past = np.maximum(0, done - bound)[wants].sum()
    overdue = np.maximum(0, done - deadline[:, None]).sum()
    return Cost(int(overdue), int(done.max(initial=0)), int(past), int(done.sum()))


def list_schedule(problem: Problem, seed: int = 0) -> EpochSchedule:
    """A whole schedule, the best of some tries; valid but for deadlines, which it heeds as far as it can.

    Raises:
        InputError: a chunk cannot reach who wants it at all (buffers or relays forbid it).
    """
    lister = Lister(problem)
    wants = problem.wants()
    tries = min(TRIES, max(1, DELIVERIES // max(1, int(wants.sum()))))
    return min((lister.run(seed + i) for i in range(tries)), key=lambda found: cost_of(found, wants))


class Lister:
    """A problem made ready for many runs of the list scheduler.

    Where ranks do not copy, every delivery counts as a chunk of its own.
    """

    def __init__(self, problem: Problem) -> None:
        from dualcoll.kernels.list_search import Goods

        self.problem = problem
        network = problem.network
        wants = problem.wants()
        keeps = np.zeros((problem.chunks, network.vertices), bool)
        keeps[:, : network.ranks] = wants
        own = np.flatnonzero(problem.source >= 0)
        keeps[own, problem.source[own]] = True
        self.of = np.arange(problem.chunks)  # the chunk of each
        if not network.clock.copy:
            self.of, ranks = np.nonzero(wants)
            wants = np.zeros((self.of.size, network.ranks), bool)
            wants[np.arange(self.of.size), ranks] = True
            keeps = keeps[self.of]
        wide = {name: getattr(problem, name).astype(np.int64)[self.of] for name in ("source", "release", "deadline")}
        self._goods = Goods(wide["source"], wide["release"], wants, keeps)
        self._weight = np.where(wide["deadline"] == FOREVER, 1.0, 1e6 / np.maximum(1, wide["deadline"]))
        self._graph = _graph(problem)
        pairs = [(row, *pair) for row, starts in enumerate(network.starts) for pair in starts]
        table = np.array(pairs, np.int64).reshape(-1, 3)
        ptr = np.searchsorted(table[:, 0], np.arange(network.rate.size + 1))
        self._pairs = ptr, table[:, 1].copy(), table[:, 2].copy()
        self._most = int(table[:, 1].max(initial=1)) + int(network.delay.max(initial=1)) * network.vertices
        self._epochs = self._guess()

    def run(
        self,
        seed: int = 0,
        *,
        given: EpochSchedule | None = None,
        floor: int = 0,
        slack: int | None = None,
        breadth: int | None = None,
        noise: float | None = None,
    ) -> EpochSchedule:
        """One schedule.

        Args:
            seed: of ties, and of what is not given below.
            given: starts to keep. floor: the first epoch of others.
            slack: epochs by which a hop may lead away from all destinations. breadth: how many destinations one search looks
                for. noise: spread of the order of chunks.
        """
        from dualcoll.kernels import list_schedule as kernel
        from dualcoll.kernels.list_search import Policy
        from dualcoll.kernels.start_windows import Windows

        rng = np.random.default_rng(seed)
        network = self.problem.network
        slack = SLACKS[seed % 3] if slack is None else slack
        breadth = BREADTHS[seed // 3 % 3] if breadth is None else breadth
        noise = NOISES[seed // 9 % 3] if noise is None else noise
        urgency = self._weight * np.exp(noise * rng.standard_normal(self.of.size))
        room = -1 if network.clock.buffer is None else network.clock.buffer
        policy = Policy(slack, breadth, floor, network.clock.relay, room, int(rng.integers(2**31)))
        arc, epoch, chunk = self._given(given)
        while True:
            shape = (network.rate.size, self._epochs)
            windows = Windows(*self._pairs, np.zeros(shape, np.int32), np.zeros(shape, bool))
            result, last, *columns = kernel.list_schedule(
                self._graph, windows, self._goods, policy, urgency, arc, epoch, chunk
            )
            if result == kernel.DONE:
                break
            if self._epochs > last + floor + int(self.problem.release.max(initial=0)) + self._most:
                raise self._no_way(int(self.of[result]))
            self._epochs *= 2
        columns[2] = self.of[columns[2]]
        return EpochSchedule(self.problem, *(column.astype(np.int32) for column in columns))

    def _given(self, given: EpochSchedule | None) -> tuple[Ints, Ints, Ints]:
        """Arcs, epochs and chunks of given starts; where ranks do not copy, of those that deliver something."""
        if given is None:
            none = np.zeros(0, np.int64)
            return none, none, none
        arc, epoch, chunk = (column.astype(np.int64) for column in (given.arc, given.epoch, given.chunk))
        self._epochs = max(self._epochs, int(given.arrival.max(initial=0)) + 2)
        if self.problem.network.clock.copy:
            return arc, epoch, chunk
        fed, delivers = feeds(given)
        unit = np.full(arc.size, -1)
        for i, (c, rank) in enumerate(zip(self.of.tolist(), self._goods.wanted.argmax(axis=1).tolist(), strict=True)):
            start = delivers.get((c, rank), -1)
            while start >= 0:
                unit[start] = i
                start = int(fed[start])
        kept = unit >= 0
        return arc[kept], epoch[kept], unit[kept]

    def _no_way(self, chunk: int) -> InputError:
        clock = self.problem.network.clock
        source = self.problem.network.name(int(self.problem.source[chunk]))
        why = "ranks relay nothing" if not clock.relay else f"ranks hold {clock.buffer} chunks of others"
        hint = "let ranks relay" if not clock.relay else "allow a larger buffer"
        return InputError(f"chunk {chunk} of {source} cannot come to all who want it: {why}", hint=hint)

    def _guess(self) -> int:
        """Epochs that will do, likely."""
        network = self.problem.network
        wants = self._goods.wanted.sum(axis=0)
        into = np.zeros(network.ranks)
        fast = np.array([network.rate[network.rows_of(a)].min() for a in range(network.arcs)])
        ends = network.head < network.ranks
        np.add.at(into, network.head[ends], fast[ends])
        work = float((wants / np.maximum(into, 1e-9)).max(initial=0.0))
        way = self._graph.way
        return (
            16
            + int(self.problem.release.max(initial=0))
            + math.ceil(2 * work)
            + 3 * int(way[way < NEVER].max(initial=0))
        )


def _graph(problem: Problem) -> Graph:
    from dualcoll.kernels.list_search import Graph

    network = problem.network
    out = np.argsort(network.tail, kind="stable")
    ptr = np.searchsorted(network.tail[out], np.arange(network.vertices + 1))
    return Graph(
        ptr=ptr.astype(np.int64),
        out=out.astype(np.int64),
        tail=network.tail.astype(np.int64),
        head=network.head.astype(np.int64),
        delay=network.delay.astype(np.int64),
        row_ptr=network.row_ptr.astype(np.int64),
        row=network.row.astype(np.int64),
        holds=network.holds.copy(),
        copies=network.copies.copy(),
        often=np.bincount(network.row, minlength=network.rate.size) > 1,
        way=np.minimum(to_ranks(network), NEVER),
    )
