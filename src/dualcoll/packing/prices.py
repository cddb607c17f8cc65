"""Multiplicative prices, the engine under Garg–Könemann and under the warm-up of column generation.

Prices span hundreds of orders of magnitude (γ is 1e-362 at ε = 0.01 with 4160 links), so they are kept as logarithms.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.lp.packing_master import PackingMaster
from dualcoll.packing.problem import ColumnPool, Packing, PackingProblem

__all__ = ["PriceLoop"]

Floats = NDArray[np.float64]

CROWDED = 3  # columns per row; more would take memory without end


class PriceLoop:
    """Repeats: ask for the cheapest column, run it at the rate its bottleneck allows, raise the prices that it loads.

    Args:
        log_prices: where to start, float64 (M,).

    Attributes:
        pool: the columns found. rates: their accumulated rates, not yet scaled to fit.
        bound: least bound so far; prices: float64 (M,), the prices that proved it.
        rounds: oracle calls.
    """

    def __init__(self, problem: PackingProblem, epsilon: float, log_prices: Floats) -> None:
        self.problem = problem
        self.epsilon = epsilon
        self.pool = ColumnPool(problem)
        self.rates: list[float] = []
        self.bound = float("inf")
        self.prices: Floats = np.empty(0)
        self.rounds = 0
        self._log_price = log_prices
        self._congestion = np.zeros(problem.capacity.size)
        self._total = 0.0

    @property
    def log_worth(self) -> float:
        """``log D(y)``."""
        terms = self._log_price + np.log(self.problem.capacity * self.problem.weight)
        top = float(terms.max())
        return top + float(np.log(np.exp(terms - top).sum()))

    @property
    def value(self) -> float:
        """Of the packing so far, scaled by its true worst congestion, bytes/s."""
        return self._total / float(self._congestion.max()) if self.rounds else 0.0

    def packing(self, scale: float | None = None) -> Packing:
        """What is packed so far, its rates divided by the scale; by their true worst congestion unless one is given.

        It has at most a column per row, as a basic solution of the packing LP has.
        """
        if len(self.pool) > self.problem.capacity.size:
            self._thin_out()
        divisor = float(self._congestion.max()) if scale is None else scale
        return Packing(tuple(self.pool.columns), np.array(self.rates) / divisor, self.prices, self.bound)

    def step(self) -> None:
        """One round."""
        if len(self.pool) > CROWDED * self.problem.capacity.size:
            self._thin_out()
        problem = self.problem
        # prices below 1e-290 of the largest would vanish; a positive floor keeps every route's cost positive
        prices = np.exp(np.maximum(self._log_price - self._log_price.max(), -600.0))
        column, loads, bound = problem.price(prices)
        self.rounds += 1
        number, new = self.pool.add(column, loads)
        if new:
            self.rates.append(0.0)
        relative = np.zeros_like(self._congestion)
        relative[self.pool.rows[number]] = self.pool.relative[number]
        rate = 1.0 / relative.max()
        self.rates[number] += rate
        self._total += rate
        self._congestion += rate * relative
        self._log_price = self._log_price + np.log1p(self.epsilon * rate * relative)
        if bound < self.bound:
            self.bound, self.prices = bound, prices

    def _thin_out(self) -> None:
        """Replace the packing by one that loads no row more, is worth no less, and has at most a column per row."""
        master = PackingMaster(self.problem.capacity.size)
        for rows, relative in zip(self.pool.rows, self.pool.relative, strict=True):
            master.add(rows, relative * self._total / self._congestion[rows])
        solution = master.solve(float("inf"))
        if not solution.solved:
            return
        old, self.pool, self.rates = self.pool, ColumnPool(self.problem), []
        for t in np.flatnonzero(solution.rates):
            self.pool.take(old, int(t))
            self.rates.append(float(solution.rates[t]) * self._total)
        self._total = sum(self.rates)
