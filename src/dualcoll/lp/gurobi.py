"""Integer programs on Gurobi, for users who have it. What it finds is rounded and checked in whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gurobipy
import numpy as np
from numpy.typing import NDArray

from dualcoll.lp.integer_program import UNBOUNDED, IntegerProgram, IntegerSolution, Limits, Status
from dualcoll.lp.watched import watched

__all__ = ["solve"]

Ints = NDArray[np.int64]


def solve(
    program: IntegerProgram,
    limits: Limits,
    start: Ints | None = None,
    on_solution: Callable[[Ints, float, float], None] | None = None,
) -> IntegerSolution:
    """See :class:`dualcoll.lp.integer_program.Solver`."""
    with gurobipy.Env(params={"OutputFlag": 0}) as environment, gurobipy.Model(env=environment) as model:
        model.Params.Threads, model.Params.Seed = limits.workers, limits.seed % 2_000_000_000
        model.Params.MIPGap, model.Params.MIPGapAbs = 0.0, 1e-9
        model.Params.TimeLimit = min(max(limits.seconds, 1e-3), 1e9)
        variables = _add(model, program)
        if start is not None:
            variables.Start = start.astype(np.float64)
        listener = None if on_solution is None else _teller(program, on_solution, variables)
        watched(lambda: model.optimize(listener), limits.stopped, model.terminate)
        return _solution(program, model, variables)


def _add(model: Any, program: IntegerProgram) -> Any:
    variables = model.addMVar(program.columns, ub=program.upper.astype(np.float64), vtype=gurobipy.GRB.INTEGER)
    ptr, column, value = (part.tolist() for part in program.by_row())
    columns = variables.tolist()
    for i, (low, high) in enumerate(zip(program.low.tolist(), program.high.tolist(), strict=True)):
        entries = range(ptr[i], ptr[i + 1])
        total = gurobipy.LinExpr([value[e] for e in entries], [columns[column[e]] for e in entries])
        if low == high:
            model.addConstr(total == low)
            continue
        if low > -UNBOUNDED:
            model.addConstr(total >= low)
        if high < UNBOUNDED:
            model.addConstr(total <= high)
    if program.gain is not None:
        model.setObjective(program.gain @ variables, gurobipy.GRB.MAXIMIZE)
    return variables


def _teller(
    program: IntegerProgram, tell: Callable[[Ints, float, float], None], variables: Any
) -> Callable[[Any, int], None]:
    def listen(model: Any, where: int) -> None:
        if where != gurobipy.GRB.Callback.MIPSOL:
            return
        columns = np.rint(model.cbGetSolution(variables)).astype(np.int64)
        if program.holds(columns):
            value = 0.0 if program.gain is None else float(program.gain @ columns)
            tell(columns, value, float(model.cbGet(gurobipy.GRB.Callback.MIPSOL_OBJBND)))

    return listen


def _solution(program: IntegerProgram, model: Any, variables: Any) -> IntegerSolution:
    codes = gurobipy.GRB.Status
    if model.Status in (codes.INFEASIBLE, codes.INF_OR_UNBD):
        return IntegerSolution(Status.INFEASIBLE)
    columns = np.rint(variables.X).astype(np.int64) if model.SolCount else np.zeros(0, np.int64)
    if not model.SolCount or not program.holds(columns):
        return IntegerSolution(Status.UNKNOWN)
    if program.gain is None:
        return IntegerSolution(Status.OPTIMAL, columns, 0.0, 0.0)
    status = Status.OPTIMAL if model.Status == codes.OPTIMAL else Status.FEASIBLE
    return IntegerSolution(status, columns, float(program.gain @ columns), float(model.ObjBound))
