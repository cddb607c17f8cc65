"""Whole chunks out of a flow: each takes one of the flow's ways, balanced over the links, and starts when there is room.

Rows that are full in the flow stay nearly full: a chunk is small against what a link carries in all, and longest remaining
work first keeps the fullest links busy. Several orders are tried; the loss against the flow is stated.

Shape letters: J jobs (a chunk for one receiver), D demands, P ways, L legs, H hops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.time_expanded.flow_demands import Demands
from dualcoll.time_expanded.flow_lp import FlowSolution
from dualcoll.time_expanded.flow_paths import EpochFlow
from dualcoll.time_expanded.flow_ways import Ways, balanced, pace_of, ways_of
from dualcoll.time_expanded.network import Network
from dualcoll.time_expanded.problem import EpochSchedule

__all__ = ["Rounded", "whole_chunks"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MANY_STARTS = 2_000_000  # jobs times epochs, in all orders that are tried together
TRIES = 64  # orders at most
WHOLE = 1e-6  # a volume this close to a whole number is one


@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """A schedule of whole chunks and what it loses.

    Attributes:
        schedule: of whole chunks.
        flow: epochs of the flow that it comes from. bound: epochs; no schedule is faster.
        late: deliveries after their deadlines.
    """

    schedule: EpochSchedule
    flow: int
    bound: int
    late: int

    @property
    def loss(self) -> float:
        """How much longer it takes than the flow, relative; below 0 where a steady flow can be beaten."""
        return self.schedule.finish / self.flow - 1

    @property
    def gap(self) -> float:
        """How far from the bound it may be, relative: 1 - bound / makespan."""
        return 1 - self.bound / self.schedule.finish


def whole_chunks(solution: FlowSolution, seed: int = 0) -> Rounded:
    """Round a flow to whole chunks.

    What is due earlier goes first; deadlines that the flow meets may yet be missed.

    Args:
        solution: the flow. seed: of the orders that are tried.
    """
    flow = solution.flow
    if np.all(flow.times == 1) and np.all(np.abs(flow.volume - np.round(flow.volume)) < WHOLE):
        return Rounded(_as_it_is(flow), flow.finish, solution.bound, 0)
    demands, network = flow.demands, flow.demands.problem.network
    ways = ways_of(flow)
    way = np.repeat(np.arange(ways.demand.size), balanced(ways, demands, solution.bound))
    line = _Line(demands, network, ways, way)
    tries = int(np.clip(MANY_STARTS // (way.size * flow.finish), 2, TRIES))
    best = line.run(*next(_orders(demands, ways, way, seed)), 2 * flow.finish)
    for order, ranked in islice(_orders(demands, ways, way, seed), 1, tries):
        if best.late == 0 and best.finish <= solution.bound:
            break
        best = min(best, line.run(order, ranked, 2 * flow.finish), key=lambda run: (run.late, run.finish))
    chunk = np.repeat(demands.chunk, np.diff(line.arc_ptr))
    schedule = EpochSchedule(
        demands.problem, line.arc.astype(np.int32), line.epochs(best.start).astype(np.int32), chunk.astype(np.int32)
    )
    return Rounded(schedule, flow.finish, solution.bound, best.late)


def _as_it_is(flow: EpochFlow) -> EpochSchedule:
    """A flow of whole chunks, as basic solutions often are."""
    chunks = np.round(flow.volume).astype(np.int64)
    path = np.repeat(np.arange(flow.paths), chunks)  # by demand, as chunks are
    hops = np.diff(flow.ptr)[path]
    start = np.repeat(flow.ptr[path], hops) + np.arange(hops.sum()) - np.repeat(np.cumsum(hops) - hops, hops)
    chunk = np.repeat(flow.demands.chunk, hops)
    return EpochSchedule(
        flow.demands.problem,
        flow.arc[start].astype(np.int32),
        flow.epoch[start].astype(np.int32),
        chunk.astype(np.int32),
    )


def _orders(demands: Demands, ways: Ways, way: Ints, seed: int) -> Iterator[tuple[Ints, bool]]:
    """Places of the jobs among equals, int64 (J,), and whether the fullest row comes first.

    Receivers in a circle after the source come first: then at each time everybody sends to somebody else.
    """
    random = np.random.default_rng(seed)
    ranks = demands.problem.network.ranks
    demand = ways.demand[way]
    source, due = demands.source[demands.commodity[demand]], demands.deadline[demand]
    shift = (demands.target[demand] - source) % ranks
    leaves = ways.leaves[way]
    yield _places(due, shift), True
    yield _places(due, leaves), False
    while True:
        yield _places(due, leaves * random.uniform(0.8, 1.2, way.size)), False
        yield _places(due, random.random(way.size)), True


def _check_alone(network: Network, ends: list[int], row: list[int], offset: list[int]) -> None:
    """That a chunk may be on the same row twice, where its way between two holders takes it there."""
    for begin, end in pairwise([0, *ends]):
        mine = row[begin:end]
        if len(set(mine)) == len(mine):
            continue
        for m in {m for m in mine if mine.count(m) > 1 and m < len(network.starts)}:
            epochs = [offset[begin + i] for i, other in enumerate(mine) if other == m]
            for window, most in network.starts[m]:
                if max(sum(k <= other < k + window for other in epochs) for k in epochs) > most:
                    raise InputError(
                        f"a whole chunk goes twice over {network.row_name(m)} within {window} epochs, where {most} fit",
                        where="rounding",
                        hint="use longer epochs or smaller chunks",
                    )


def _places(due: Ints, key: Ints | Floats) -> Ints:
    places = np.empty(key.size, np.int64)
    places[np.lexsort((key, due))] = np.arange(key.size)
    return places


class _Run(NamedTuple):
    """Epochs of the legs, int64 (L,), the makespan, and deliveries after their deadlines."""

    start: Ints
    finish: int
    late: int


class _Line:
    """Jobs on their ways, ready to be put into epochs in any order.

    Where buffers are limited a chunk stays nowhere: its way is one leg, and every rank in between has a row of its own, which
    holds as many chunks in an epoch as the buffer.
    """

    def __init__(self, demands: Demands, network: Network, ways: Ways, way: Ints) -> None:
        from dualcoll.kernels.path_schedule import Legs

        room = network.clock.buffer
        arcs: list[Ints] = []
        leg_of: list[int] = []  # of each arc of each job
        after: list[int] = []  # epochs from the leg's start
        legs: list[int] = [0]
        ends: list[int] = []  # of each leg's rows
        row: list[int] = []
        offset: list[int] = []
        delay: list[int] = []
        for w in way.tolist():
            mine = ways.arc[ways.ptr[w] : ways.ptr[w + 1]]
            arcs.append(mine)
            passed = 0
            for i, a in enumerate(mine.tolist()):
                tail = int(network.tail[a])
                if i == 0 or (network.holds[tail] and room is None):
                    delay.append(0)
                    ends.append(0)
                    passed = 0
                elif network.holds[tail]:
                    row.append(network.rate.size + tail)
                    offset.append(passed)
                leg_of.append(len(delay) - 1)
                after.append(passed)
                rows = network.rows_of(a).tolist()
                row += rows
                offset += [passed] * len(rows)
                passed += int(network.delay[a])
                ends[-1] = len(row)
                delay[-1] = passed
            legs.append(len(delay))
        self.arc = np.concatenate(arcs)
        self.arc_ptr = np.concatenate([[0], np.cumsum([mine.size for mine in arcs])])
        _check_alone(network, ends, row, offset)
        self._leg_of, self._after = np.array(leg_of), np.array(after)
        hops = np.array([0, *ends], np.int64)
        self._legs = Legs(
            np.array(legs, np.int64),
            hops,
            np.array(row, np.int64),
            np.array(offset, np.int64),
            np.array(delay, np.int64),
        )
        pairs = [*network.starts, *([((1, room),)] * network.vertices if room else [])]
        table = np.array([(m, *pair) for m, own in enumerate(pairs) for pair in own], np.int64).reshape(-1, 3)
        self._pairs = np.searchsorted(table[:, 0], np.arange(len(pairs) + 1)), table[:, 1], table[:, 2]
        self._pace = (
            np.concatenate([pace_of(network), np.full(network.vertices, float(room))]) if room else pace_of(network)
        )
        self._every = int(np.ceil(1 / self._pace[self._legs.row].min()))
        self._release = demands.release[demands.commodity[ways.demand[way]]]
        self._due = np.unique(demands.deadline, return_inverse=True)[1].reshape(-1)[ways.demand[way]].astype(np.int64)
        self._deadline = demands.deadline[ways.demand[way]]
        self._longest = int(self._legs.offset.max())

    def run(self, order: Ints, ranked: bool, epochs: int) -> _Run:
        """Put the jobs into epochs; ``epochs`` is a guess at how many it takes."""
        from dualcoll.kernels.path_schedule import path_schedule
        from dualcoll.kernels.start_windows import Windows

        start = np.zeros(self._legs.delay.size, np.int64)
        every = self._every if ranked else 0
        finish = -1
        while finish < 0:
            shape = (self._pace.size, epochs + self._longest)
            windows = Windows(*self._pairs, np.zeros(shape, np.int32), np.zeros(shape, bool))
            finish = path_schedule(self._legs, windows, self._pace, self._release, self._due, order, every, start)
            epochs *= 2
        last = self._legs.leg_ptr[1:] - 1
        return _Run(start, finish, int(np.sum(start[last] + self._legs.delay[last] > self._deadline)))

    def epochs(self, start: Ints) -> Ints:
        """The epoch of every arc of every job."""
        return np.asarray(start[self._leg_of] + self._after)
