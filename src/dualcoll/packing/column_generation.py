"""The default solver: a start that is often within a thousandth, then column generation, both proved at every step.

For any prices y, ``D(y) / cost(cheapest column)`` bounds the optimum, so every oracle call may improve the bound and every LP
the value. Zero duals would prove nothing: the LP's duals are mixed with the best prices so far and with a little of the
capacities' inverse.

The start is prices by class and a spread packing where the oracle can spread (:mod:`dualcoll.packing.spreading`), and a short
run of multiplicative prices elsewhere. Cold column generation stalls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.lp.packing_master import PackingMaster
from dualcoll.packing.class_prices import class_prices
from dualcoll.packing.prices import PriceLoop
from dualcoll.packing.problem import (
    UNLIMITED,
    Column,
    ColumnPool,
    Packing,
    PackingProblem,
    Shape,
    SpreadingOracle,
    column_depth,
)
from dualcoll.packing.spreading import Schedule, spread_packing
from dualcoll.progress import OPTIMAL_GAP, Meter, Outcome, relative_gap

__all__ = ["Start", "column_generation"]

Floats = NDArray[np.float64]

FEW_ROWS = 300  # problems this small are solved on to the optimum, whatever gap is asked: it costs a second at most
SPARE_LEVELS = 4  # for what the last level leaves, and for trees that did not fit
MOST_LEVELS = 24  # of a spread packing: 2**-24 is below any gap worth asking for
WARM_UP = 200  # rounds of prices; more do not pay before the LP has spoken
AGAIN = 60  # rounds, from prices and with columns that are known to be good
EPSILON = 0.3
JITTER = 1e-3  # relative; breaks ties between equally cheap columns
MIX = (0.0, 0.3, 0.7)  # shares of the best prices among the LP's duals
PRECISE = 1e-7  # a gap that the LP's tolerances explain
FLOOR = 1e-9  # share of the price that is spread over all rows
FLAT = Shape(flatness=0.02)  # shallow enough at no cost in rate


@dataclass(frozen=True, slots=True)
class Start:
    """What is known before the search.

    Attributes:
        prices: float64 (M,) each, that may prove a good bound.
        columns, rates: a packing that may be good once it is scaled to fit; rates in any unit.
    """

    prices: tuple[Floats, ...] = ()
    columns: tuple[Column, ...] = ()
    rates: tuple[float, ...] = ()


@dataclass(slots=True)
class _Best:
    """What is proved so far."""

    problem: PackingProblem
    meter: Meter
    pool: ColumnPool
    shape: Shape
    rates: Floats = field(default_factory=lambda: np.empty(0))
    value: float = 0.0
    prices: Floats = field(default_factory=lambda: np.empty(0))
    bound: float = float("inf")
    calls: int = 0

    def propose(self, rates: Floats) -> None:
        """Take rates of the pool's columns over if they are better once scaled to fit."""
        congestion = self.pool.congestion(rates) if rates.any() else 0.0
        if congestion > 0 and rates.sum() / congestion > self.value:
            self.rates, self.value = rates / congestion, float(rates.sum() / congestion)

    def prove(self, prices: Floats, bound: float) -> None:
        """Take prices over if their bound is better."""
        if bound < self.bound:
            self.prices, self.bound = prices / self.problem.worth(prices), bound

    def take(self, column: Column, loads: Floats) -> bool:
        """Add a column, loads float64 (M,), to the pool; whether it is new and within the shape."""
        return column_depth(column) <= self.shape.max_depth and self.pool.add(column, loads)[1]

    def ended(self, value: float | None = None) -> Outcome | None:
        """Report; the outcome if this is the end."""
        ended = self.meter.outcome(self.calls, self.value if value is None else value, self.bound)
        if ended is Outcome.GAP and self.problem.capacity.size <= FEW_ROWS and not self.meter.spent:
            return None
        return ended

    def packing(self) -> Packing:
        return Packing(tuple(self.pool.columns[: self.rates.size]), self.rates, self.prices, self.bound)


def column_generation(
    problem: PackingProblem,
    meter: Meter,
    seed: int = 0,
    shape: Shape = FLAT,
    start: Start | None = None,
) -> tuple[Packing, Outcome, int]:
    """Pack until the meter says so, or until the LP has nothing to add.

    Args:
        problem: what to pack.
        meter: when to stop.
        seed: breaks ties between equally good columns.
        shape: form of the columns. A depth limit is kept by leaving out the columns that the prices alone would choose, so
            that the result is the best found, not the best there is.
        start: what is known already.

    Returns:
        The packing, why it ended, and the number of oracle calls.

    Raises:
        InputError: no tree was found within the depth limit.
    """
    random = np.random.default_rng(seed)
    best = _Best(problem, meter, ColumnPool(problem), shape)
    start = start or Start()
    for rows in start.prices:
        prices = _mixed(problem, rows)
        best.prove(prices, problem.price(prices)[2])
        best.calls += 1
    if problem.classes and isinstance(problem.oracle, SpreadingOracle):
        ended = _start_spread(best, random)  # known columns would not make it faster
    else:
        packed = zip(start.columns, start.rates, strict=True)
        best.propose(np.array([rate for column, rate in packed if best.take(column, problem.loads(column))]))
        ended = _start_priced(best, random, AGAIN if start.columns else WARM_UP)
    # an optimum that is no basic solution would have more columns than it needs
    if ended is None or not len(best.pool) or (ended is Outcome.OPTIMAL and not meter.spent):
        ended = _generate(best)
    return best.packing(), ended, best.calls


def _start_spread(best: _Best, random: np.random.Generator) -> Outcome | None:
    problem = best.problem
    for classes in problem.classes:
        prices, bound, calls = class_prices(problem, classes, lambda: best.meter.spent)
        best.prove(prices, bound)
        best.calls += calls
    ended: Outcome | None = None

    def over(value: float) -> bool:
        nonlocal ended
        best.calls += 1
        ended = best.ended(max(best.value, value))
        return ended is not None

    levels = min(MOST_LEVELS, max(1, math.ceil(-math.log2(max(best.meter.stop.gap, 1e-9))) + SPARE_LEVELS))
    for shape in _tried_shapes(best.shape):
        if not len(best.pool) or not best.meter.spent:
            rates = spread_packing(problem, best.prices, best.bound, best.pool, Schedule(levels), shape, random, over)
            best.propose(rates)
    return ended


def _tried_shapes(shape: Shape) -> tuple[Shape, ...]:
    """Under a depth limit also flatter trees, which are bushy before they meet it."""
    if shape.max_depth >= UNLIMITED:
        return (shape,)
    return tuple(Shape(flatness, shape.max_depth) for flatness in (0.3, 0.1, shape.flatness))


def _start_priced(best: _Best, random: np.random.Generator, rounds: int) -> Outcome | None:
    problem = best.problem
    known = len(best.pool)
    if best.shape.max_depth < UNLIMITED:
        for root in range(problem.oracle.roots):
            column = problem.oracle.star(problem.fabric.link_prices(_mixed(problem, None)[problem.fold]), root)
            if column is not None:
                best.take(column, problem.loads(column))
    first = _mixed(problem, best.prices) if known else 1.0 / problem.capacity
    warm = PriceLoop(problem, EPSILON, np.log(first) + JITTER * random.random(first.size))
    ended: Outcome | None = None
    while ended is None and warm.rounds < rounds:
        warm.step()
        best.calls += 1
        best.prove(warm.prices, warm.bound)
        ended = best.ended(max(best.value, warm.value if best.shape.max_depth >= UNLIMITED else 0.0))
    rates = np.zeros(len(best.pool))
    for t, column in enumerate(warm.pool.columns):
        if best.take(column, problem.loads(column)):
            rates = np.append(rates, warm.rates[t])
    best.propose(rates if rates.any() else np.ones(len(best.pool)))
    return ended


def _generate(best: _Best) -> Outcome:
    problem, pool = best.problem, best.pool
    if not len(pool):
        raise InputError(
            f"no tree was found that is at most {best.shape.max_depth} logical edges deep", hint="allow deeper trees"
        )
    master = PackingMaster(problem.capacity.size)
    unit = best.value  # rates in the LP are of the order of 1
    sent = 0
    while True:
        for rows, relative in zip(pool.rows[sent:], pool.relative[sent:], strict=True):
            master.add(rows, relative * unit)
        first, sent = sent == 0, len(pool)
        solution = master.solve(best.meter.remaining)
        if first and solution.solved:
            best.value *= 1 - OPTIMAL_GAP  # equally good, but with fewer columns
        best.propose(solution.rates * unit)
        duals = solution.duals / (problem.weight * problem.capacity)
        stale = True
        for share in MIX:
            prices = _mixed(problem, duals, best.prices, share)
            column, loads, bound = problem.price(prices)
            best.calls += 1
            best.prove(prices, bound)
            stale &= not best.take(column, loads)
            ended = best.ended()
            if ended is not None:
                return ended
        if stale:
            return _stale(best)


def _stale(best: _Best) -> Outcome:
    """What it means that the LP has nothing to add: by its theory an optimum, but only the gap is proof of that."""
    gap = relative_gap(best.value, best.bound)
    if gap <= PRECISE:
        return Outcome.OPTIMAL
    if gap <= best.meter.stop.gap:
        return Outcome.GAP
    return Outcome.STALLED if best.shape.max_depth >= UNLIMITED else Outcome.LIMITED


def _mixed(problem: PackingProblem, prices: Floats | None, anchor: Floats | None = None, share: float = 0.0) -> Floats:
    """Row prices (M,), scaled to be worth 1 and mixed with a share of the anchor's and a little of flat ones: all positive."""
    flat = 1.0 / (problem.weight * problem.capacity)
    flat /= problem.worth(flat)
    worth = 0.0 if prices is None else problem.worth(prices)
    mixed = flat if prices is None or worth <= 0 else prices / worth
    if anchor is not None:
        mixed = (1 - share) * mixed + share * anchor
    return np.asarray((1 - FLOOR) * mixed + FLOOR * flat)
