"""Multiplicative prices, the engine under Garg–Könemann and under the search for first prices.

Prices span hundreds of orders of magnitude (γ is 1e-362 at ε = 0.01 with 4160 links), so they are kept as logarithms. The
loop packs bundles: the cheapest columns of all demands of the cheapest goal, at a common pace (DualColl, Lemma 6.1). Of a
bundle only its loads and the prices that led to it are kept; the oracle makes its columns again when they are wanted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.lp.packing_master import PackingMaster
from dualcoll.packing.pool import ColumnPool, Packing
from dualcoll.packing.problem import PackingProblem

__all__ = ["PriceLoop"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CROWDED = 3  # bundles per row; more would take memory without end


class PriceLoop:
    """Repeats: ask for the cheapest bundle, run it at the rate its bottleneck allows, raise the prices that it loads.

    Args:
        log_prices: where to start, float64 (M,).

    Attributes:
        bound: least bound so far; prices: float64 (M,), the prices that proved it.
        rounds: oracle calls.
    """

    def __init__(self, problem: PackingProblem, epsilon: float, log_prices: Floats) -> None:
        self.problem = problem
        self.epsilon = epsilon
        self.bound = float("inf")
        self.prices: Floats = np.empty(0)
        self.rounds = 0
        self._log_price = log_prices
        self._congestion = np.zeros(problem.capacity.size)
        self._total = 0.0
        self._bundles: list[tuple[Ints, Floats, Floats]] = []  # rows, loads over capacity there, prices
        self._rates: list[float] = []
        self._index: dict[bytes, int] = {}

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

        It has at most a bundle per row, as a basic solution of the packing LP has.
        """
        if len(self._bundles) > self.problem.capacity.size:
            self._thin_out()
        divisor = float(self._congestion.max()) if scale is None else scale
        pool = ColumnPool(self.problem)
        rates: dict[int, float] = {}
        for (_, _, prices), rate in zip(self._bundles, self._rates, strict=True):
            quote = self.problem.price(prices)
            for column in quote.offer.columns(np.flatnonzero(self.problem.goal == quote.goal)):
                number, _ = pool.add(column)
                rates[number] = rates.get(number, 0.0) + rate * float(self.problem.part[column.demand]) / divisor
        amounts = np.array([rates[t] for t in range(len(pool))])
        value = self.problem.value(pool.carried(amounts))
        return Packing(tuple(pool.columns), amounts, value, self.prices, self.bound)

    def step(self) -> None:
        """One round."""
        if len(self._bundles) > CROWDED * self.problem.capacity.size:
            self._thin_out()
        problem = self.problem
        # prices below 1e-290 of the largest would vanish; a positive floor keeps every route's cost positive
        prices = np.exp(np.maximum(self._log_price - self._log_price.max(), -600.0))
        quote = problem.price(prices)
        self.rounds += 1
        relative = problem.bundle(quote) / problem.capacity
        rate = float(1.0 / relative.max())
        key = relative.astype(np.float32).tobytes()
        number = self._index.get(key)
        if number is None:
            rows = np.flatnonzero(relative)
            self._index[key] = len(self._bundles)
            self._bundles.append((rows, relative[rows], prices))
            self._rates.append(rate)
        else:
            self._rates[number] += rate
        self._total += rate
        self._congestion += rate * relative
        self._log_price = self._log_price + np.log1p(self.epsilon * rate * relative)
        if quote.bound < self.bound:
            self.bound, self.prices = quote.bound, prices

    def _thin_out(self) -> None:
        """Replace the packing by one that loads no row more, is worth no less, and has at most a bundle per row."""
        master = PackingMaster(self.problem.capacity.size)
        for rows, relative, _ in self._bundles:
            master.add(rows, relative * self._total / self._congestion[rows])
        solution = master.solve(float("inf"))
        if not solution.solved:
            return
        kept = np.flatnonzero(solution.rates)
        self._bundles = [self._bundles[t] for t in kept]
        self._rates = [float(solution.rates[t]) * self._total for t in kept]
        self._index = {}
        self._total = sum(self._rates)
