"""Integer programs on HiGHS' branch and bound. What it finds is rounded and checked in whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from dualcoll.lp.integer_program import UNBOUNDED, IntegerProgram, IntegerSolution, Limits, Status
from dualcoll.lp.watched import watched

__all__ = ["solve"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def solve(
    program: IntegerProgram,
    limits: Limits,
    start: Ints | None = None,
    on_solution: Callable[[Ints, float, float], None] | None = None,
) -> IntegerSolution:
    """See :class:`dualcoll.lp.integer_program.Solver`."""
    highs = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", limits.seed % 2**31),
        ("time_limit", min(max(limits.seconds, 1e-3), 1e9)),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", 1e-9),
    ):
        highs.setOptionValue(option, value)
    ended = False

    def stop() -> None:
        nonlocal ended
        ended = True

    def look(event: Any) -> None:
        if ended:
            event.interrupt()

    for callback in (highs.cbMipInterrupt, highs.cbSimplexInterrupt):
        callback.subscribe(look)
    if on_solution is not None:
        highs.cbMipImprovingSolution.subscribe(_teller(program, on_solution))
    highs.passModel(_model(program))
    if start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = start.astype(np.float64).tolist()
        highs.setSolution(solution)
    watched(highs.run, limits.stopped, stop)
    return _solution(program, highs)


def _solution(program: IntegerProgram, highs: highspy.Highs) -> IntegerSolution:
    status, info = highs.getModelStatus(), highs.getInfo()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return IntegerSolution(Status.INFEASIBLE)
    if info.primal_solution_status != highspy.kSolutionStatusFeasible:
        return IntegerSolution(Status.UNKNOWN)
    columns = np.rint(np.array(highs.getSolution().col_value)).astype(np.int64)
    if not program.holds(columns):
        return IntegerSolution(Status.UNKNOWN)
    if program.gain is None:
        return IntegerSolution(Status.OPTIMAL, columns, 0.0, 0.0)
    optimal = status == highspy.HighsModelStatus.kOptimal
    value = float(program.gain @ columns)
    return IntegerSolution(Status.OPTIMAL if optimal else Status.FEASIBLE, columns, value, float(info.mip_dual_bound))


def _teller(program: IntegerProgram, tell: Callable[[Ints, float, float], None]) -> Callable[[Any], None]:
    def told(event: Any) -> None:
        columns = np.rint(np.array(event.data_out.mip_solution)).astype(np.int64)
        if program.holds(columns):
            value = 0.0 if program.gain is None else float(program.gain @ columns)
            tell(columns, value, float(event.data_out.mip_dual_bound))

    return told


def _model(program: IntegerProgram) -> highspy.HighsLp:
    ptr, column, value = program.by_row()
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = program.columns, program.rows
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = np.zeros(program.columns) if program.gain is None else program.gain
    model.col_lower_, model.col_upper_ = np.zeros(program.columns), program.upper.astype(np.float64)
    model.row_lower_, model.row_upper_ = _bounds(program.low), _bounds(program.high)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = ptr.astype(np.int32)
    model.a_matrix_.index_ = column.astype(np.int32)
    model.a_matrix_.value_ = value.astype(np.float64)
    model.integrality_ = [highspy.HighsVarType.kInteger] * program.columns
    return model


def _bounds(bound: Ints) -> Floats:
    return np.where(np.abs(bound) < UNBOUNDED, bound, np.copysign(highspy.kHighsInf, bound))
