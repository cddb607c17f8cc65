"""Prices that are equal within classes of links: a packing problem with a handful of rows.

Adding up the capacity rows of a class relaxes the problem, so its optimum bounds the true one; on a fabric whose classes are
orbits of its automorphisms the two are equal (average an optimal packing over the group). A handful of rows is solved exactly
in milliseconds, where single prices take minutes to settle. The oracle proves the prices, so wrong classes only cost quality.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dualcoll.lp.packing_master import PackingMaster
from dualcoll.packing.problem import PackingProblem
from dualcoll.progress import OPTIMAL_GAP

__all__ = ["class_prices"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ROUNDS = 100
FLOOR = 1e-9  # share of the price spread over all classes, so that every price is positive


def class_prices(
    problem: PackingProblem, row_classes: Ints, over: Callable[[], bool] = lambda: False
) -> tuple[Floats, float, int]:
    """The best prices that are equal within classes, by cutting planes on the merged rows.

    Args:
        problem: what to bound.
        row_classes: int64 (E+S,), a class for every capacity row.
        over: asked after every oracle call; True ends the search with the best so far.

    Returns:
        prices: float64 (M,); bound: bytes/s, what they prove; calls: of the oracle.
    """
    labels = np.zeros(problem.capacity.size, np.int64)
    labels[problem.fold] = row_classes
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    capacity = np.bincount(labels, problem.weight * problem.capacity)
    everything = np.arange(capacity.size)
    flat = 1.0 / (capacity * capacity.size)  # worth 1
    master: PackingMaster | None = None
    prices, best, bound, unit, rounds = flat, flat, float("inf"), 1.0, 0
    while rounds < ROUNDS:
        quote = problem.price(prices[labels])
        proved = quote.bound
        rounds += 1
        if proved < bound:
            best, bound = prices, proved
        if over():
            break
        if master is None:
            master, unit = PackingMaster(capacity.size), proved
        merged = np.bincount(labels, problem.weight * problem.bundle(quote), minlength=capacity.size)
        master.add(everything, merged * unit / capacity)
        solution = master.solve(float("inf"))
        if solution.rates.sum() * unit >= bound * (1 - OPTIMAL_GAP) or capacity.size == 1:
            break
        duals = solution.duals / capacity / max(solution.duals.sum(), 1e-300)
        share = 0.5 if rounds % 2 else 0.0  # every other time half-way to the best: duals alone swing
        prices = (1 - FLOOR) * ((1 - share) * duals + share * best) + FLOOR * flat
    return best[labels], bound, rounds
