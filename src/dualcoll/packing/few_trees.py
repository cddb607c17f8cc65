"""Packings of few columns: the best found with at most K a demand, out of a larger packing or made for the purpose.

An optimal packing has up to one column per row, more than a runtime wants to launch. Which K columns are best is hard; two
ways are tried and the best is kept: spread packings of K columns a demand at several level counts and targets, and the larger
packing with its slowest columns dropped, a few at a time. The rates of the chosen columns come from the LP on them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dualcoll.lp.packing_master import PackingMaster
from dualcoll.packing.pool import ColumnPool, Packing
from dualcoll.packing.problem import PackingProblem, Shape, column_depth
from dualcoll.packing.spreading import Schedule, spread_packing
from dualcoll.plans.model import Tradeoff

__all__ = ["best_rates", "fewer", "frontier", "most_of_one_demand"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVELS = (4, 5, 3, 2, 1)
TARGETS = (1.0, 0.96, 0.92, 0.88, 0.84)  # parts of the bound: whole uses of a link rarely add up to all of it
FLATNESSES = (0.02, 0.3)
TRIED_TREES = 1200  # columns that all trials make together, about
FEWEST_TRIALS, MOST_TRIALS = 3, 75
DROP = 0.25  # of the columns that are too many, at a time


def fewer(
    problem: PackingProblem,
    packing: Packing,
    most: int,
    shape: Shape,
    random: np.random.Generator,
    over: Callable[[], bool] = lambda: False,
) -> Packing:
    """The best packing found with at most ``most`` columns for each demand; the prices and the bound stay.

    Args:
        packing: feasible, with any number of columns.
        most: K, at least 1. shape: of columns made for the purpose; those of ``packing`` are taken as they are.
        random: for the trials.
        over: asked between trials; True keeps the best so far.
    """
    pool = ColumnPool(problem)
    numbers = [pool.add(column)[0] for column in packing.columns]
    rates = np.zeros(len(pool))
    np.add.at(rates, numbers, packing.rates)
    best, value = best_rates(pool, _dropped(pool, rates, most))
    trials = itertools.cycle([(part, levels) for part in TARGETS for levels in LEVELS if levels <= most])
    shapes = itertools.cycle([shape, Shape(FLATNESSES[-1], shape.max_depth)])
    count = min(MOST_TRIALS, max(FEWEST_TRIALS, TRIED_TREES // (most * problem.part.size)))
    for (part, levels), tried in itertools.islice(zip(trials, shapes, strict=False), count):
        if over():
            break
        before = len(pool)
        schedule = Schedule(levels, most // levels)
        made = spread_packing(problem, packing.prices, part * packing.bound, pool, schedule, tried, random)
        made[:before] = 0.0
        found, worth = best_rates(pool, _fastest(pool, made, np.flatnonzero(made), most))
        if worth > value:
            best, value = found, worth
    used = np.flatnonzero(best)
    return Packing(tuple(pool.columns[t] for t in used), best[used], value, packing.prices, packing.bound)


def frontier(
    problem: PackingProblem,
    packing: Packing,
    most: int,
    max_depth: int,
    random: np.random.Generator,
    over: Callable[[], bool] = lambda: False,
) -> tuple[Tradeoff, ...]:
    """Packings of 1, 2, 4, … columns up to ``most``, and the packing itself, of which none is beaten in every respect.

    ``over`` is asked between trials; once it says True, no more numbers of columns are tried.
    """
    found = [_tradeoff(packing)]
    columns = 1
    while columns < min(most, most_of_one_demand(packing)) and not over():
        for flatness in FLATNESSES:
            found.append(_tradeoff(fewer(problem, packing, columns, Shape(flatness, max_depth), random, over)))
        columns *= 2

    def beaten(one: Tradeoff) -> bool:
        return any(
            other != one and other.trees <= one.trees and other.rate >= one.rate and other.depth <= one.depth
            for other in found
        )

    return tuple(sorted({one for one in found if not beaten(one)}, key=lambda one: (one.trees, one.rate)))


def _tradeoff(packing: Packing) -> Tradeoff:
    used = np.flatnonzero(packing.rates)
    depth = max(column_depth(packing.columns[t]) for t in used)
    return Tradeoff(int(used.size), packing.value, depth)


def most_of_one_demand(packing: Packing) -> int:
    """The most columns in use that any one demand has."""
    return max(Counter(packing.columns[t].demand for t in np.flatnonzero(packing.rates)).values())


def best_rates(pool: ColumnPool, columns: Ints) -> tuple[Floats, float]:
    """Optimal rates of these columns alone, float64 (T,), bytes/s, and their value, fitted."""
    rates = np.zeros(len(pool))
    if columns.size == 0:
        return rates, 0.0
    problem = pool.problem
    unit = 1.0 / max(float(pool.relative[t].max()) for t in columns)  # what the poorest column could carry
    master = PackingMaster(problem.capacity.size, problem.part, problem.goal)
    for t in columns:
        master.add(pool.rows[t], pool.relative[t] * unit, pool.columns[t].demand)
    rates[columns] = master.solve(float("inf")).rates * unit
    return pool.fitted(rates)


def _dropped(pool: ColumnPool, rates: Floats, most: int) -> Ints:
    """Column numbers left when each demand's slowest are dropped a few at a time and the rest is optimised again."""
    columns = np.flatnonzero(rates)
    while True:
        left = _fastest(pool, rates, columns, most, DROP)
        if left.size == columns.size:
            return columns
        rates, columns = best_rates(pool, left)[0], left


def _fastest(pool: ColumnPool, rates: Floats, columns: Ints, most: int, part: float = 1.0) -> Ints:
    """Of the columns each demand's fastest, so that a part of those beyond ``most``, at least one, is dropped."""
    demand = np.array([pool.columns[t].demand for t in columns], np.int64)
    kept: list[Ints] = []
    for j in np.unique(demand):
        mine = columns[demand == j]
        leave = max(most, int(mine.size - max(1, part * (mine.size - most))))
        kept.append(mine[np.argsort(-rates[mine], kind="stable")[:leave]])
    return np.sort(np.concatenate(kept)) if kept else columns
