"""The restricted packing LP on HiGHS, columns added as they are found.

    maximise  Σ_k z_k   subject to   Σ_{c of j} λ_c ≥ p_j z_k(j) for every demand j,
                                     Σ_c A[m, c] λ_c ≤ 1 for every row m,   λ ≥ 0

It is solved as its dual, ``minimise Σ y subject to Σ_m A[m, c] y_m ≥ u_j for every column c of demand j, Σ_{j of k} p_j u_j ≥ 1
for every goal k, y, u ≥ 0``: a fabric has many links and a packing few trees, so the basis is small, and a new column is a new
row, which keeps the last basis dual feasible. A demand that is alone in its goal has ``u = 1 / p`` and needs no variable.
"""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

__all__ = ["MasterSolution", "PackingMaster"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MasterSolution:
    """Primal rates (T,) and row duals (M,), both not negative; ``solved`` is False where the time limit came first."""

    rates: Floats
    duals: Floats
    solved: bool


class PackingMaster:
    """Warm-started dual simplex; its solutions are basic, with at most one positive rate per row and demand.

    Args:
        rows: M, number of rows; every right-hand side is 1.
        part, goal: float64 and int64 (J,), of each demand; one demand that is everything by default.
    """

    def __init__(self, rows: int, part: Floats | None = None, goal: Ints | None = None) -> None:
        part = np.ones(1) if part is None else part
        goal = np.zeros(part.size, np.int64) if goal is None else goal
        self._rows = rows
        self._price = np.full(part.size, -1, np.int64)  # the variable u of each demand
        shared = np.bincount(goal)[goal] > 1
        self._price[shared] = rows + np.arange(np.count_nonzero(shared))
        self._alone = 1.0 / part
        self._goals = np.unique(goal[shared])
        self._highs = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("threads", 1)
        self._highs.setOptionValue("presolve", "off")
        self._highs.setOptionValue("primal_feasibility_tolerance", 1e-10)
        self._highs.setOptionValue("dual_feasibility_tolerance", 1e-10)
        variables = rows + int(np.count_nonzero(shared))
        self._highs.addVars(variables, np.zeros(variables), np.full(variables, highspy.kHighsInf))
        self._highs.changeColsCost(rows, np.arange(rows, dtype=np.int32), np.ones(rows))
        for k in self._goals:
            mine = np.flatnonzero(goal == k)
            self._highs.addRow(1.0, highspy.kHighsInf, mine.size, self._price[mine].astype(np.int32), part[mine])

    def add(self, rows: Ints, loads: Floats, demand: int = 0) -> None:
        """Add a column: row indices (k,) and its loads there per unit rate (k,), relative to the right-hand sides."""
        price = self._price[demand]
        if price < 0:
            lower = self._alone[demand]
        else:
            rows, loads, lower = np.append(rows, price), np.append(loads, -1.0), 0.0
        self._highs.addRow(lower, highspy.kHighsInf, rows.size, rows.astype(np.int32), loads)

    def solve(self, seconds: float) -> MasterSolution:
        """Optimise over the columns so far, for at most this many seconds."""
        self._highs.setOptionValue("time_limit", self._highs.getRunTime() + min(max(seconds, 1e-3), 1e9))
        self._highs.run()
        solution = self._highs.getSolution()
        solved = self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        rates = np.maximum(np.array(solution.row_dual, dtype=np.float64)[self._goals.size :], 0.0)
        most = self._rows + np.count_nonzero(self._price >= 0)
        assert np.count_nonzero(rates) <= most, "a basic solution has at most one positive rate per row and demand"
        duals = np.maximum(np.array(solution.col_value, dtype=np.float64)[: self._rows], 0.0)
        return MasterSolution(rates, duals, solved)
