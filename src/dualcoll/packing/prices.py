"""Multiplicative prices, the engine under Garg–Könemann and under the warm-up of column generation.

Prices span hundreds of orders of magnitude (γ is 1e-362 at ε = 0.01 with 4160 links), so they are kept as logarithms.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.packing.problem import ColumnPool, PackingProblem

__all__ = ["PriceLoop"]

Floats = NDArray[np.float64]


class PriceLoop:
    """Repeats: ask for the cheapest column, run it at the rate its bottleneck allows, raise the prices that it loads.

    Attributes:
        pool: the columns found. rates: their accumulated rates, not yet scaled to fit.
        value: best feasible value so far (the accumulated packing scaled by its true worst congestion), bytes/s.
        bound: least bound so far; prices: float64 (M,), the prices that proved it.
        rounds: oracle calls.
    """

    def __init__(
        self, problem: PackingProblem, epsilon: float, log_start: float = 0.0, jitter: Floats | None = None
    ) -> None:
        self.problem = problem
        self.epsilon = epsilon
        self.pool = ColumnPool(problem)
        self.rates: list[float] = []
        self.best_rates: Floats = np.empty(0)
        self.value = 0.0
        self.bound = float("inf")
        self.prices: Floats = np.exp(-np.log(problem.capacity))
        self.rounds = 0
        self._log_price = log_start - np.log(problem.capacity)
        if jitter is not None:
            self._log_price += 1e-3 * jitter
        self._congestion = np.zeros(problem.capacity.size)
        self._total = 0.0

    @property
    def log_worth(self) -> float:
        """``log D(y)``."""
        terms = self._log_price + np.log(self.problem.capacity * self.problem.weight)
        top = float(terms.max())
        return top + float(np.log(np.exp(terms - top).sum()))

    def step(self) -> None:
        """One round."""
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
        self._log_price += np.log1p(self.epsilon * rate * relative)
        if bound < self.bound:
            self.bound, self.prices = bound, prices
        value = self._total / float(self._congestion.max())
        if value > self.value:
            self.value = value
            self.best_rates = np.array(self.rates) / float(self._congestion.max())
