"""The default solver: a short run of multiplicative prices, then column generation, both proved at every step.

For any prices y, ``D(y) / cost(cheapest column)`` bounds the optimum, so every oracle call may improve the bound and every LP
the value. Zero duals would prove nothing: the LP's duals are mixed with the best prices so far and with a little of the
capacities' inverse.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.lp.packing_master import PackingMaster
from dualcoll.packing.prices import PriceLoop
from dualcoll.packing.problem import ColumnPool, Packing, PackingProblem
from dualcoll.progress import OPTIMAL_GAP, Meter, Outcome

__all__ = ["column_generation"]

Floats = NDArray[np.float64]

WARM_UP = 200  # rounds; more do not pay before the LP has spoken
EPSILON = 0.3
MIX = (0.0, 0.3, 0.7)  # shares of the best prices among the LP's duals
FLOOR = 1e-9  # share of the price that is spread over all rows


def column_generation(problem: PackingProblem, meter: Meter, seed: int = 0) -> tuple[Packing, Outcome, int]:
    """Pack until the meter says so, or until the LP has nothing to add.

    A gap that the warm-up already meets does not end it: the first LP costs little, is nearly always exact, and its solution
    is basic: no more trees than rows.

    Args:
        problem: what to pack.
        meter: when to stop.
        seed: breaks ties between equally cheap columns, by starting prices that differ by at most 0.1 %.

    Returns:
        The packing, why it ended, and the number of oracle calls.
    """
    warm = PriceLoop(problem, EPSILON, jitter=np.random.default_rng(seed).random(problem.capacity.size))
    ended: Outcome | None = None
    while ended is not Outcome.OPTIMAL and not (warm.rounds and meter.spent) and warm.rounds < WARM_UP:
        warm.step()
        ended = meter.outcome(warm.rounds, warm.value, warm.bound)
    best = _Best(warm.pool, warm.packing().rates, warm.value, warm.prices, warm.bound, warm.rounds)
    if ended is None or not meter.spent:
        ended = _generate(problem, best, meter)
    return best.packing(), ended, best.calls


class _Best:
    """What is proved so far."""

    def __init__(self, pool: ColumnPool, rates: Floats, value: float, prices: Floats, bound: float, calls: int) -> None:
        self.pool, self.rates, self.value = pool, rates, value
        self.prices, self.bound, self.calls = prices, bound, calls

    def packing(self) -> Packing:
        return Packing(tuple(self.pool.columns[: self.rates.size]), self.rates, self.prices, self.bound)


def _generate(problem: PackingProblem, best: _Best, meter: Meter) -> Outcome:
    pool = best.pool
    master = PackingMaster(problem.capacity.size)
    unit = best.value  # rates in the LP are of the order of 1
    sent = 0
    basic = False
    flat = 1.0 / (problem.weight * problem.capacity)
    flat /= problem.worth(flat)
    while True:
        for rows, relative in zip(pool.rows[sent:], pool.relative[sent:], strict=True):
            master.add(rows, relative * unit)
        sent = len(pool)
        solution = master.solve(meter.remaining)
        value = solution.rates.sum() * unit / max(pool.congestion(solution.rates * unit), 1e-300)
        if value > best.value or (not basic and value > best.value * (1 - OPTIMAL_GAP)):
            basic = True
            best.value = float(value)
            best.rates = solution.rates * unit / pool.congestion(solution.rates * unit)
        duals = solution.duals / (problem.weight * problem.capacity)
        worth = problem.worth(duals)
        duals = duals / worth if worth > 0 else flat
        stale = True
        for share in MIX:
            anchor = best.prices / problem.worth(best.prices)
            prices = (1 - FLOOR) * ((1 - share) * duals + share * anchor) + FLOOR * flat
            column, loads, bound = problem.price(prices)
            best.calls += 1
            if bound < best.bound:
                best.bound, best.prices = bound, prices
            stale &= not pool.add(column, loads)[1]
            ended = meter.outcome(best.calls, best.value, best.bound)
            if ended is not None:
                return ended
        if stale:
            return Outcome.OPTIMAL
