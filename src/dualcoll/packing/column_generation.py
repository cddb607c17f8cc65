"""The default solver: a start that is often within a thousandth, then column generation, both proved at every step.

For any prices y, ``D(y)`` over the cost of the cheapest columns bounds the optimum, so every oracle call may improve the
bound and every LP the value. Zero duals would prove nothing: the LP's duals are mixed with the best prices so far and with a
little of the capacities' inverse.

The start is prices, by class or by a short run of multiplicative ones, and a spread packing at these prices
(:mod:`dualcoll.packing.spreading`). Cold column generation stalls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.lp.packing_master import PackingMaster
from dualcoll.packing.class_prices import class_prices
from dualcoll.packing.pool import ColumnPool, Packing
from dualcoll.packing.prices import PriceLoop
from dualcoll.packing.problem import UNLIMITED, Column, PackingProblem, Quote, Shape, column_depth
from dualcoll.packing.spreading import Schedule, spread_packing
from dualcoll.progress import OPTIMAL_GAP, Meter, Outcome, relative_gap

__all__ = ["FLAT", "column_generation"]

Floats = NDArray[np.float64]

FEW_ROWS = 300  # problems this small are solved on to the optimum, whatever gap is asked: it costs a second at most
MANY_DEMANDS = 20_000  # rows of the LP for demands; beyond it the LP takes minutes
SPARE_LEVELS = 4  # for what the last level leaves, and for trees that did not fit
MOST_LEVELS = 24  # of a spread packing: 2**-24 is below any gap worth asking for
ROUNDS = 16  # columns of a demand and level, divided among demands
WARM_UP = 200  # rounds of prices; more do not pay before the LP has spoken
EPSILON = 0.3
JITTER = 1e-3  # relative; breaks ties between equally cheap columns
MIX = (0.0, 0.3, 0.7)  # shares of the best prices among the LP's duals
PRECISE = 1e-7  # a gap that the LP's tolerances explain
FLOOR = 1e-9  # share of the price that is spread over all rows
FLAT = Shape(flatness=0.02)  # shallow enough at no cost in rate


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
        fitted, value = self.pool.fitted(rates)
        if value > self.value:
            self.rates, self.value = fitted, value

    def ask(self, prices: Floats) -> Quote:
        """Ask the oracle; take the prices over if their bound is better."""
        quote = self.problem.price(prices)
        self.calls += 1
        self.prove(prices, quote.bound)
        return quote

    def prove(self, prices: Floats, bound: float) -> None:
        """Take prices over if their bound is better."""
        if bound < self.bound:
            self.prices, self.bound = prices / self.problem.worth(prices), bound

    def take(self, column: Column) -> bool:
        """Add a column to the pool; whether it is new and within the shape."""
        return column_depth(column) <= self.shape.max_depth and self.pool.add(column)[1]

    def ended(self, value: float | None = None) -> Outcome | None:
        """Report; the outcome if this is the end."""
        ended = self.meter.outcome(self.calls, self.value if value is None else value, self.bound)
        if ended is Outcome.GAP and self.problem.capacity.size <= FEW_ROWS and not self.meter.spent:
            return None
        return ended

    def packing(self) -> Packing:
        return Packing(tuple(self.pool.columns[: self.rates.size]), self.rates, self.value, self.prices, self.bound)


def column_generation(
    problem: PackingProblem,
    meter: Meter,
    seed: int = 0,
    shape: Shape = FLAT,
    known: Sequence[Floats] = (),
) -> tuple[Packing, Outcome, int]:
    """Pack to the gap that the meter asks for.

    Args:
        problem: what to pack. meter: when to stop. seed: of the tie-breaks.
        shape: of the columns; its depth is a limit, its flatness a wish.
        known: prices float64 (M,) that may prove a good bound.

    Returns:
        The packing, why it ended, and the number of oracle calls.

    Raises:
        InputError: no tree was found within the depth limit.
    """
    random = np.random.default_rng(seed)
    best = _Best(problem, meter, ColumnPool(problem), shape)
    for prices in known:
        best.ask(_mixed(problem, prices))
    _first_prices(best, random)
    ended = _spread(best, random)
    few = problem.part.size <= MANY_DEMANDS
    # an optimum that is no basic solution would have more columns than it needs
    if few and (ended is None or not len(best.pool) or (ended is Outcome.OPTIMAL and not meter.spent)):
        ended = _generate(best)
    if not few and ended is None:
        _multiplicative_prices(best, random)  # classes cannot price one slow link apart from its like
        ended = best.ended()
    if not best.value:
        raise InputError(
            f"no tree was found that is at most {shape.max_depth} logical edges deep", hint="allow deeper trees"
        )
    return best.packing(), ended or Outcome.STALLED, best.calls


def _first_prices(best: _Best, random: np.random.Generator) -> None:
    """Prices that prove a good bound: by class where the fabric has few, else multiplicative ones."""
    problem = best.problem
    for classes in problem.classes:
        prices, bound, calls = class_prices(problem, classes, lambda: best.meter.spent)
        best.prove(prices, bound)
        best.calls += calls
    if not problem.classes:
        _multiplicative_prices(best, random)


def _multiplicative_prices(best: _Best, random: np.random.Generator) -> None:
    """Prices that rise on whatever is crowded, from the best so far."""
    problem = best.problem
    first = _mixed(problem, best.prices if best.prices.size else None)
    loop = PriceLoop(problem, EPSILON, np.log(first) + JITTER * random.random(first.size))
    while loop.rounds < WARM_UP and (loop.rounds == 0 or not best.meter.spent):
        loop.step()
        best.calls += 1
        best.prove(loop.prices, loop.bound)
        if best.ended() is not None:
            break


def _spread(best: _Best, random: np.random.Generator) -> Outcome | None:
    problem = best.problem
    ended: Outcome | None = None

    def over(value: float) -> bool:
        nonlocal ended
        best.calls += 1
        ended = best.ended(max(best.value, value))
        return ended is not None

    batches = len(problem.oracle.batches)
    rounds = max(1, ROUNDS // batches)
    levels = min(MOST_LEVELS, max(1, math.ceil(-math.log2(max(best.meter.stop.gap, 1e-9))) + SPARE_LEVELS))
    # without an LP to mend it, half of the gap is left free for what does not fit
    target = best.bound * (1 - best.meter.stop.gap / 2 * (problem.part.size > MANY_DEMANDS))
    for shape in _tried_shapes(best.shape):
        if not len(best.pool) or not best.meter.spent:
            schedule = Schedule(levels, rounds)
            rates = spread_packing(problem, best.prices, target, best.pool, schedule, shape, random, over)
            best.propose(rates)
    return best.ended()


def _tried_shapes(shape: Shape) -> tuple[Shape, ...]:
    """Under a depth limit also flatter trees, which are bushy before they meet it."""
    if shape.max_depth >= UNLIMITED:
        return (shape,)
    return tuple(Shape(flatness, shape.max_depth) for flatness in (0.3, 0.1, shape.flatness))


def _generate(best: _Best) -> Outcome:
    problem, pool = best.problem, best.pool
    if not len(pool):
        return Outcome.LIMITED
    master = PackingMaster(problem.capacity.size, problem.part, problem.goal)
    unit = best.value  # rates in the LP are of the order of 1
    everything = np.arange(problem.part.size)
    sent = 0
    while True:
        for t in range(sent, len(pool)):
            master.add(pool.rows[t], pool.relative[t] * unit, pool.columns[t].demand)
        first, sent = sent == 0, len(pool)
        solution = master.solve(best.meter.remaining)
        if first and solution.solved:
            best.value *= 1 - OPTIMAL_GAP  # equally good, but with fewer columns
        best.propose(solution.rates * unit)
        duals = solution.duals / (problem.weight * problem.capacity)
        stale = True
        for share in MIX:
            quote = best.ask(_mixed(problem, duals, best.prices, share))
            for column in quote.offer.columns(everything):
                stale &= not best.take(column)
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
