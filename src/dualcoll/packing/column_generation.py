"""The default solver: a start that is often within a thousandth, then column generation, both proved at every step.

For any prices y, ``D(y) / cost(cheapest column)`` bounds the optimum, so every oracle call may improve the bound and every LP
the value. Zero duals would prove nothing: the LP's duals are mixed with the best prices so far and with a little of the
capacities' inverse.

The start is prices by class and a spread packing where the oracle can spread (:mod:`dualcoll.packing.spreading`), and a short
run of multiplicative prices elsewhere. Cold column generation stalls.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualcoll.lp.packing_master import PackingMaster
from dualcoll.packing.class_prices import class_prices
from dualcoll.packing.prices import PriceLoop
from dualcoll.packing.problem import ColumnPool, Packing, PackingProblem, Shape, SpreadingOracle
from dualcoll.packing.spreading import Schedule, spread_packing
from dualcoll.progress import OPTIMAL_GAP, Meter, Outcome

__all__ = ["column_generation"]

Floats = NDArray[np.float64]

FEW_ROWS = 600  # problems this small are solved on to the optimum, whatever gap is asked: it costs a second at most
WARM_UP = 200  # rounds of prices; more do not pay before the LP has spoken
EPSILON = 0.3
MIX = (0.0, 0.3, 0.7)  # shares of the best prices among the LP's duals
FLOOR = 1e-9  # share of the price that is spread over all rows
FLAT = Shape(flatness=0.02)  # shallow enough at no cost in rate


@dataclass(slots=True)
class _Best:
    """What is proved so far."""

    problem: PackingProblem
    meter: Meter
    pool: ColumnPool
    rates: Floats = field(default_factory=lambda: np.empty(0))
    value: float = 0.0
    prices: Floats = field(default_factory=lambda: np.empty(0))
    bound: float = float("inf")
    calls: int = 0

    def propose(self, rates: Floats) -> None:
        """Take rates of the pool's columns over if they are better once scaled to fit."""
        congestion = self.pool.congestion(rates)
        if congestion > 0 and rates.sum() / congestion > self.value:
            self.rates, self.value = rates / congestion, float(rates.sum() / congestion)

    def prove(self, prices: Floats, bound: float) -> None:
        """Take prices over if their bound is better."""
        if bound < self.bound:
            self.prices, self.bound = prices / self.problem.worth(prices), bound

    def ended(self, value: float | None = None) -> Outcome | None:
        """Report; the outcome if this is the end."""
        ended = self.meter.outcome(self.calls, self.value if value is None else value, self.bound)
        if ended is Outcome.GAP and self.problem.capacity.size <= FEW_ROWS and not self.meter.spent:
            return None
        return ended

    def packing(self) -> Packing:
        return Packing(tuple(self.pool.columns[: self.rates.size]), self.rates, self.prices, self.bound)


def column_generation(
    problem: PackingProblem, meter: Meter, seed: int = 0, shape: Shape = FLAT
) -> tuple[Packing, Outcome, int]:
    """Pack until the meter says so, or until the LP has nothing to add.

    Args:
        problem: what to pack.
        meter: when to stop.
        seed: breaks ties between equally good columns.
        shape: preferred form of the columns, where the oracle can heed it.

    Returns:
        The packing, why it ended, and the number of oracle calls.
    """
    random = np.random.default_rng(seed)
    best = _Best(problem, meter, ColumnPool(problem))
    if problem.classes and isinstance(problem.oracle, SpreadingOracle):
        ended = _start_spread(best, shape, random)
    else:
        ended = _start_priced(best, random)
    # an optimum that is no basic solution would have more columns than it needs
    if ended is None or (ended is Outcome.OPTIMAL and not meter.spent):
        ended = _generate(best)
    return best.packing(), ended, best.calls


def _start_spread(best: _Best, shape: Shape, random: np.random.Generator) -> Outcome | None:
    problem = best.problem
    for classes in problem.classes:
        prices, bound, calls = class_prices(problem, classes, lambda: best.meter.spent)
        best.prove(prices, bound)
        best.calls += calls
    ended: Outcome | None = None

    def over(value: float) -> bool:
        nonlocal ended
        best.calls += 1
        ended = best.ended(value)
        return ended is not None

    best.propose(spread_packing(problem, best.prices, best.bound, best.pool, Schedule(), shape, random, over))
    return ended


def _start_priced(best: _Best, random: np.random.Generator) -> Outcome | None:
    warm = PriceLoop(best.problem, EPSILON, jitter=random.random(best.problem.capacity.size))
    ended: Outcome | None = None
    while ended is None and warm.rounds < WARM_UP:
        warm.step()
        best.calls += 1
        best.prove(warm.prices, warm.bound)
        ended = best.ended(warm.value)
    best.pool = warm.pool
    best.propose(np.array(warm.rates))
    return ended


def _generate(best: _Best) -> Outcome:
    problem, pool = best.problem, best.pool
    master = PackingMaster(problem.capacity.size)
    unit = best.value  # rates in the LP are of the order of 1
    sent = 0
    flat = 1.0 / (problem.weight * problem.capacity)
    flat /= problem.worth(flat)
    while True:
        for rows, relative in zip(pool.rows[sent:], pool.relative[sent:], strict=True):
            master.add(rows, relative * unit)
        first, sent = sent == 0, len(pool)
        solution = master.solve(best.meter.remaining)
        if first and solution.solved:
            best.value *= 1 - OPTIMAL_GAP  # equally good, but with fewer columns
        best.propose(solution.rates * unit)
        duals = solution.duals / (problem.weight * problem.capacity)
        worth = problem.worth(duals)
        duals = duals / worth if worth > 0 else flat
        stale = True
        for share in MIX:
            prices = (1 - FLOOR) * ((1 - share) * duals + share * best.prices) + FLOOR * flat
            column, loads, bound = problem.price(prices)
            best.calls += 1
            best.prove(prices, bound)
            stale &= not pool.add(column, loads)[1]
            ended = best.ended()
            if ended is not None:
                return ended
        if stale:
            return Outcome.OPTIMAL
