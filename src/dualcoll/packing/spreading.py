"""Packing by successive refinement: from good prices to a nearly optimal packing of few trees, without an LP.

Trees are added at a fixed rate, each priced by how far every row is ahead of an even schedule towards the target; then the rate
is halved, so that the next trees mend what the last left uneven. A row is never more than a few uses off, and a use shrinks
with the rate: the loss falls by half from level to level, and prices that were somewhat wrong to begin with mend themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.packing.problem import ColumnPool, PackingProblem, Shape, SpreadingOracle

__all__ = ["Schedule", "spread_packing"]

Floats = NDArray[np.float64]

STEER = 0.3  # a row one use ahead of the schedule is this much dearer, in logarithms
PENALTY = float(np.exp(8.0))  # of a row with no room for another use
AMPLE = 2**31  # uses; more would not fit an integer where capacities are far apart
SPAN = 50.0  # logarithms of prices are kept within this of the base prices


@dataclass(frozen=True, slots=True)
class Schedule:
    """How many levels, and how many trees in each; every level packs half of what is left to the target."""

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
        random: picks roots.
        over: asked after every column, with the value so far; True ends the packing.
    """
    oracle = problem.oracle
    assert isinstance(oracle, SpreadingOracle)
    capacity = problem.capacity
    rates: dict[int, float] = {}
    load, packed = np.zeros(capacity.size), 0.0
    rate = target / (2 * schedule.trees)
    for tree in range(schedule.levels * schedule.trees):
        if tree and tree % schedule.trees == 0:
            rate /= 2
        ahead = (load - capacity * (packed / target)) / rate
        room = np.clip((capacity - load) / rate, 0, AMPLE).astype(np.int64)
        steered = prices * np.exp(np.clip(STEER * ahead, -SPAN, SPAN)) * np.where(room < 1, PENALTY, 1.0)
        column = oracle.spread(steered[problem.fold], float(np.exp(STEER)), room[problem.fold], PENALTY, shape, random)
        if column is None:
            break
        loads = problem.loads(column)
        number, _ = pool.add(column, loads)
        rates[number] = rates.get(number, 0.0) + rate
        load += rate * loads
        packed += rate
        if over(packed / float((load / capacity).max())):
            break
    result = np.zeros(len(pool))
    for number, value in rates.items():
        result[number] = value
    return result / float((load / capacity).max()) if rates else result
