"""The restricted packing LP on HiGHS, columns added as they are found.

    maximise  Σ λ   subject to   Σ_c A[m, c] λ_c ≤ 1 for every row m,   λ ≥ 0

It is solved as its dual, ``minimise Σ y subject to Σ_m A[m, c] y_m ≥ 1 for every column c``: a fabric has many links and a
packing few trees, so the basis is small, and a new column is a new row, which keeps the last basis dual feasible.
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
    """Warm-started dual simplex; its solutions are basic, with at most one positive rate per row.

    Args:
        rows: M, number of rows; every right-hand side is 1.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._highs = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("threads", 1)
        self._highs.setOptionValue("presolve", "off")
        self._highs.setOptionValue("primal_feasibility_tolerance", 1e-10)
        self._highs.setOptionValue("dual_feasibility_tolerance", 1e-10)
        self._highs.addVars(rows, np.zeros(rows), np.full(rows, highspy.kHighsInf))
        self._highs.changeColsCost(rows, np.arange(rows, dtype=np.int32), np.ones(rows))

    def add(self, rows: Ints, loads: Floats) -> None:
        """Add a column: row indices (k,) and its loads there per unit rate (k,), relative to the right-hand sides."""
        self._highs.addRow(1.0, highspy.kHighsInf, rows.size, rows.astype(np.int32), loads)

    def solve(self, seconds: float) -> MasterSolution:
        """Optimise over the columns so far, for at most this many seconds."""
        self._highs.setOptionValue("time_limit", self._highs.getRunTime() + min(max(seconds, 1e-3), 1e9))
        self._highs.run()
        solution = self._highs.getSolution()
        solved = self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        rates = np.maximum(np.array(solution.row_dual, dtype=np.float64), 0.0)
        assert np.count_nonzero(rates) <= self._rows, "a basic solution has at most one positive rate per row"
        duals = np.maximum(np.array(solution.col_value, dtype=np.float64), 0.0)
        return MasterSolution(rates, duals, solved)
