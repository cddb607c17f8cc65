"""Linear programs on HiGHS: one problem in, one solution out.

maximise  c·x   subject to   low ≤ A x ≤ high,   lower ≤ x ≤ upper
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import highspy
import numpy as np
from numpy.typing import NDArray

__all__ = ["LinearMethod", "LinearProgram", "LinearSolution", "LinearStatus", "solve_linear"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class LinearMethod(StrEnum):
    """How to solve: the simplex method, or the interior-point method with a crossover to a basic solution."""

    SIMPLEX = "simplex"
    INTERIOR = "ipm"


class LinearStatus(StrEnum):
    """What came out. STOPPED: the time was over or somebody asked for the end; there is no solution then."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, eq=False)
class LinearProgram:
    """Columns, rows and the matrix's entries, one by one in any order; entries of one place add up.

    Attributes:
        cost, lower, upper: float64 (n,), objective to maximise and bounds of the columns.
        low, high: float64 (m,), bounds of the rows.
        row, column: int64 (nnz,). value: float64 (nnz,).
    """

    cost: Floats
    lower: Floats
    upper: Floats
    low: Floats
    high: Floats
    row: Ints
    column: Ints
    value: Floats

    @property
    def columns(self) -> int:
        """n, the number of columns."""
        return int(self.cost.size)

    @property
    def rows(self) -> int:
        """m, the number of rows."""
        return int(self.low.size)


@dataclass(frozen=True, slots=True, eq=False)
class LinearSolution:
    """What the solver found.

    Attributes:
        status: what the rest is worth.
        value: the objective. columns: float64 (n,), empty unless optimal.
        duals: float64 (m,), what one more unit of each row's bound adds to the objective; empty unless optimal.
    """

    status: LinearStatus
    value: float
    columns: Floats
    duals: Floats


def solve_linear(
    program: LinearProgram,
    method: LinearMethod = LinearMethod.SIMPLEX,
    *,
    seconds: float = float("inf"),
    stopped: Callable[[], bool] = lambda: False,
) -> LinearSolution:
    """Solve a linear program to a basic optimum.

    Args:
        program: what to solve; its objective must be bounded.
        method: how.
        seconds: the time limit. stopped: asked now and then whether to give up.
    """
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("solver", str(method))
    highs.setOptionValue("time_limit", min(max(seconds, 1e-3), 1e9))
    for callback in (highs.cbSimplexInterrupt, highs.cbIpmInterrupt):
        callback.subscribe(lambda event: event.interrupt() if stopped() else None)
    highs.passModel(_model(program))
    highs.run()
    status = highs.getModelStatus()
    if status == highspy.HighsModelStatus.kOptimal:
        solution = highs.getSolution()
        columns = np.array(solution.col_value, dtype=np.float64)
        duals = np.array(solution.row_dual, dtype=np.float64)
        return LinearSolution(LinearStatus.OPTIMAL, float(highs.getObjectiveValue()), columns, duals)
    infeasible = status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible)
    none = np.zeros(0)
    return LinearSolution(LinearStatus.INFEASIBLE if infeasible else LinearStatus.STOPPED, float("-inf"), none, none)


def _model(program: LinearProgram) -> highspy.HighsLp:
    order = np.lexsort((program.row, program.column))
    row, column, value = program.row[order], program.column[order], program.value[order]
    first = np.flatnonzero(np.diff(row, prepend=-1) | np.diff(column, prepend=-1))
    if first.size < row.size:
        row, column, value = row[first], column[first], np.add.reduceat(value, first)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = program.columns, program.rows
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = program.cost
    model.col_lower_, model.col_upper_ = _bounded(program.lower), _bounded(program.upper)
    model.row_lower_, model.row_upper_ = _bounded(program.low), _bounded(program.high)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    starts = np.zeros(program.columns + 1, np.int32)
    np.cumsum(np.bincount(column, minlength=program.columns), out=starts[1:])
    model.a_matrix_.start_ = starts
    model.a_matrix_.index_ = row.astype(np.int32)
    model.a_matrix_.value_ = value
    return model


def _bounded(bound: Floats) -> Floats:
    return np.clip(bound, -highspy.kHighsInf, highspy.kHighsInf)
