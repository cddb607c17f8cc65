"""Packing by successive refinement: from good prices to a nearly optimal packing of few columns, without an LP.

Columns are added at a fixed pace, each priced by how far every row is ahead of an even schedule towards the target; then the
pace is halved, so that the next columns mend what the last left uneven, and so on. A row is never more than a few uses off, and
a use shrinks with the pace: the loss falls by half from level to level, and prices that were somewhat wrong at first mend
themselves. Demands take turns, batch by batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.packing.pool import ColumnPool
from dualcoll.packing.problem import Column, PackingProblem, Shape, Steering

__all__ = ["Schedule", "spread_packing"]

Floats = NDArray[np.float64]

STEER = 0.3  # a row one use ahead of the schedule is this much dearer, in logarithms
PENALTY = math.exp(8.0)  # of a row with no room for another use
FLAT_SHARE = 0.1  # of the base prices: a row that the bound leaves free is steered as well
JITTER = 0.02  # relative; without it, ties go to the same box in every tree
MUCH_ROOM = 1e15  # uses; more are not told apart
PATIENCE = 16  # times that a column which the shape forbids is tried from other roots
MANY_BATCHES = 256  # so many demands even one another out: the first round may serve them whole
MOST_OF_IT = 0.75  # of a round has to fit
DUST = 1e-9  # of a demand's need
SPAN = 50.0  # logarithms of prices are kept within this of the base prices


@dataclass(frozen=True, slots=True)
class Schedule:
    """How many columns: a level packs half of what is left to the target in so many rounds, an only level all of it.

    A round serves every demand once, at most. The pace is also halved where a round no longer fits.
    """

    levels: int = 10
    rounds: int = 16


class _Spreading:
    """Loads and progress of one spread packing."""

    def __init__(self, problem: PackingProblem, prices: Floats, target: float, pool: ColumnPool) -> None:
        self.problem = problem
        self.pool = pool
        capacity = problem.capacity
        flat = 1.0 / (problem.weight * capacity)
        self.base = (1 - FLAT_SHARE) * prices / problem.worth(prices) + FLAT_SHARE * flat / problem.worth(flat)
        share = np.full(problem.goals, 1.0 / problem.goals)  # of the target, of each goal
        self.needed = problem.part * (target * share)[problem.goal]
        self.carried = np.zeros(self.needed.size)
        self.load = np.zeros(capacity.size)
        self.rates: dict[int, float] = {}

    @property
    def progress(self) -> float:
        """Part of the target that is packed."""
        return float(self.carried.sum() / self.needed.sum())

    def columns(self, batch: int, pace: float, shape: Shape, random: np.random.Generator) -> list[Column]:
        """A column for each demand of the batch, priced for ``pace`` of its need."""
        problem = self.problem
        unit = pace * float(self.needed[problem.oracle.batches[batch]].mean())
        ahead = (self.load - problem.capacity * self.progress) / unit
        room = np.floor(np.minimum((problem.capacity - self.load) / unit, MUCH_ROOM)).astype(np.int64)
        steered = self.base * np.exp(np.clip(STEER * ahead, -SPAN, SPAN)) * np.where(room < 1, PENALTY, 1.0)
        steered *= 1.0 + JITTER * random.random(steered.size)
        room_of_link = room[problem.fold[: problem.fabric.links]]
        steering = Steering(math.exp(STEER), room_of_link, PENALTY, shape, random)
        return problem.oracle.spread(batch, problem.link_prices(steered), steering)

    def take(self, column: Column, rate: float, *, force: bool = False) -> float:
        """Add a column at the rate, or at what fits if that is half of it; with ``force`` fit or not.

        Returns what was added.
        """
        loads = self.problem.loads(column)
        used = np.flatnonzero(loads)
        fits = rate
        if not force:
            fits = min(rate, float(((self.problem.capacity[used] - self.load[used]) / loads[used]).min()))
        if fits < rate / 2:
            return 0.0
        number, _ = self.pool.add(column, loads)
        self.rates[number] = self.rates.get(number, 0.0) + fits
        self.load[used] += fits * loads[used]
        self.carried[column.demand] += fits
        return fits

    def round(
        self,
        pace: float,
        shape: Shape,
        random: np.random.Generator,
        over: Callable[[float], bool],
        *,
        force: bool = False,
    ) -> float | None:
        """Serve every demand once, at most; the part of it that fitted, or None where the clock ended it."""
        wanted = taken = 0.0
        for batch in random.permutation(len(self.problem.oracle.batches)):
            mine = self.problem.oracle.batches[int(batch)]
            due = np.minimum(pace * self.needed, self.needed - self.carried)
            if due[mine].max() <= DUST * self.needed[mine].max():
                continue
            columns = self.columns(int(batch), pace, shape, random)
            for column in columns:
                rate = float(due[column.demand])
                if rate > 0:
                    wanted += rate
                    taken += self.take(column, rate, force=force)
            if not force and over(self.problem.value(self.carried)):
                return None
        return taken / wanted if wanted > 0 else 1.0

    def result(self) -> Floats:
        """Rates of the pool's columns, float64 (T,): as packed, or such that all demands keep pace, whichever is worth more."""
        packed, even = np.zeros(len(self.pool)), np.zeros(len(self.pool))
        for number, value in self.rates.items():
            demand = self.pool.columns[number].demand
            packed[number] = value
            even[number] = value * self.needed[demand] / max(self.carried[demand], 1e-300)
        return max(packed, even, key=lambda rates: self.pool.fitted(rates)[1])


def spread_packing(
    problem: PackingProblem,
    prices: Floats,
    target: float,
    pool: ColumnPool,
    schedule: Schedule,
    shape: Shape,
    random: np.random.Generator,
    over: Callable[[float], bool] = lambda _: False,
) -> Floats:
    """Add columns to the pool and return rates of its columns, float64 (T,), bytes/s, to be fitted.

    Args:
        problem: what to pack. prices: float64 (M,), positive, near the best. target: bytes/s, to aim at.
        schedule, shape: how many columns, and of what form.
        random: picks roots and breaks ties.
        over: asked now and then, with the value so far; True ends the packing, once every demand has a column.
    """
    state = _Spreading(problem, prices, target, pool)
    many = len(problem.oracle.batches) >= MANY_BATCHES and len(problem.oracle.batches) == problem.part.size
    pace = 1.0 / schedule.rounds / (1 if schedule.levels == 1 or many else 2)
    for _ in range(schedule.levels * schedule.rounds):
        if schedule.levels > 1 and 1.0 - state.progress < pace * (schedule.rounds - 0.5):
            pace /= 2
        fitted = state.round(pace, shape, random, over)
        if fitted is None:
            break
        if fitted < MOST_OF_IT:
            pace /= 2  # no room for more at this pace
    if problem.part.size > problem.goals:  # demands that have to keep pace
        state.round(1.0, shape, random, over, force=True)
    for _ in range(PATIENCE):
        if state.carried.all():
            break
        state.round(1.0, shape, random, over, force=True)
    return state.result()
