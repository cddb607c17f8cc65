"""Packing by successive refinement: from good prices to a nearly optimal packing of few trees, without an LP.

Trees are added at a fixed rate, each priced by how far every row is ahead of an even schedule towards the target; then the rate
is halved, so that the next trees mend what the last left uneven, and so on. A row is never more than a few uses off, and a use
shrinks with the rate: the loss falls by half from level to level, and prices that were somewhat wrong at first mend themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.packing.problem import ColumnPool, PackingProblem, Shape, SpreadingOracle

__all__ = ["Schedule", "spread_packing"]

Floats = NDArray[np.float64]

STEER = 0.3  # a row one use ahead of the schedule is this much dearer, in logarithms
PENALTY = math.exp(8.0)  # of a row with no room for another use
FLAT_SHARE = 0.1  # of the base prices: a row that the bound leaves free is steered as well
JITTER = 0.02  # relative; without it, ties go to the same box in every tree
MUCH_ROOM = 1e15  # uses; more are not told apart
PATIENCE = 16  # roots without a tree before the clock is asked
SPAN = 50.0  # logarithms of prices are kept within this of the base prices


@dataclass(frozen=True, slots=True)
class Schedule:
    """How many trees: a level packs half of what is left to the target in so many trees, an only level all of it.

    The rate is also halved where a tree no longer fits. There are never more than ``levels * trees`` of them.
    """

    levels: int = 10
    trees: int = 16


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
    """Add columns to the pool and return feasible rates of its columns, float64 (T,), bytes/s.

    Args:
        problem: its oracle is a :class:`SpreadingOracle`, its rows are links.
        prices: float64 (M,), positive, near the optimal ones or not.
        target: bytes/s, what the packing aims at: the best bound known.
        pool: where the columns go.
        schedule, shape: how many columns, and of what form.
        random: picks roots and breaks ties.
        over: asked after every column, with the value so far; True ends the packing, once it has a column.
    """
    oracle = problem.oracle
    assert isinstance(oracle, SpreadingOracle)
    capacity = problem.capacity
    flat = 1.0 / (problem.weight * capacity)
    base = (1 - FLAT_SHARE) * prices / problem.worth(prices) + FLAT_SHARE * flat / problem.worth(flat)
    rates: dict[int, float] = {}
    load, packed, missed = np.zeros(capacity.size), 0.0, 0
    rate = target / schedule.trees / (1 if schedule.levels == 1 else 2)
    for _ in range(schedule.levels * schedule.trees):
        if schedule.levels > 1 and target - packed < rate * (schedule.trees - 0.5):
            rate /= 2
        ahead = (load - capacity * (packed / target)) / rate
        room = np.floor(np.minimum((capacity - load) / rate, MUCH_ROOM)).astype(np.int64)
        steered = base * np.exp(np.clip(STEER * ahead, -SPAN, SPAN)) * np.where(room < 1, PENALTY, 1.0)
        steered *= 1.0 + JITTER * random.random(capacity.size)
        column = oracle.spread(steered[problem.fold], math.exp(STEER), room[problem.fold], PENALTY, shape, random)
        if column is None:  # another root may do
            missed += 1
            if missed >= PATIENCE and over(packed):
                break
            continue
        loads = problem.loads(column)
        used = loads > 0
        fits = min(rate, float(((capacity - load)[used] / loads[used]).min()))
        if fits >= rate / 2:
            number, _ = pool.add(column, loads)
            rates[number] = rates.get(number, 0.0) + fits
            load += fits * loads
            packed += fits
        if fits < rate:
            rate /= 2  # no room for more at this rate
        if over(packed):
            if not rates:  # a first column whatever it is worth
                rates[pool.add(column, loads)[0]] = fits
            break
    result = np.zeros(len(pool))
    for number, value in rates.items():
        result[number] = value
    return result
