"""Integer programs on OR-tools CP-SAT. Rows over 0/1 columns become clauses where they are ones, which it reasons on best."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from dualcoll.lp.integer_program import UNBOUNDED, IntegerProgram, IntegerSolution, Limits, Status
from dualcoll.lp.watched import watched

__all__ = ["solve"]

Ints = NDArray[np.int64]

_STATUS = {
    cp_model.OPTIMAL: Status.OPTIMAL,
    cp_model.FEASIBLE: Status.FEASIBLE,
    cp_model.INFEASIBLE: Status.INFEASIBLE,
    cp_model.UNKNOWN: Status.UNKNOWN,
}


def solve(
    program: IntegerProgram,
    limits: Limits,
    start: Ints | None = None,
    on_solution: Callable[[Ints, float, float], None] | None = None,
) -> IntegerSolution:
    """See :class:`dualcoll.lp.integer_program.Solver`."""
    model = _model(program)
    if start is not None:
        model.proto.solution_hint.vars.extend(range(program.columns))
        model.proto.solution_hint.values.extend(start.tolist())
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = limits.workers
    parameters.random_seed = limits.seed % 2**31
    parameters.catch_sigint_signal = False
    if limits.seconds < float("inf"):
        parameters.max_time_in_seconds = max(limits.seconds, 1e-3)
    tell = None if on_solution is None else _Teller(on_solution)
    status = _STATUS[watched(lambda: solver.solve(model, tell), limits.stopped, solver.stop_search)]
    if status in (Status.INFEASIBLE, Status.UNKNOWN):
        return IntegerSolution(status)
    columns = np.array(solver.response_proto.solution, dtype=np.int64)
    if program.gain is None:
        return IntegerSolution(Status.OPTIMAL, columns, 0.0, 0.0)
    return IntegerSolution(status, columns, float(solver.objective_value), float(solver.best_objective_bound))


def _model(program: IntegerProgram) -> cp_model.CpModel:
    model = cp_model.CpModel()
    proto = model.proto
    for upper in program.upper.tolist():
        proto.variables.add().domain.extend((0, upper))
    ptr, column, value = (part.tolist() for part in program.by_row())
    binary = program.upper <= 1
    clausal = np.ones(program.rows, bool)
    np.logical_and.at(clausal, program.row, binary[program.column] & (np.abs(program.value) == 1))
    least = np.zeros(program.rows, np.int64)
    np.add.at(least, program.row, np.minimum(program.value, 0) * program.upper[program.column])
    most = np.zeros(program.rows, np.int64)
    np.add.at(most, program.row, np.maximum(program.value, 0) * program.upper[program.column])
    for i, (low, high) in enumerate(zip(program.low.tolist(), program.high.tolist(), strict=True)):
        columns, values = column[ptr[i] : ptr[i + 1]], value[ptr[i] : ptr[i + 1]]
        below, above = low <= least[i], high >= most[i]
        if below and above:
            continue
        constraint = proto.constraints.add()
        if clausal[i] and _add_clause(constraint, columns, values, low - least[i], high - least[i], below, above):
            continue
        constraint.linear.vars.extend(columns)
        constraint.linear.coeffs.extend(values)
        constraint.linear.domain.extend((max(low, -UNBOUNDED), min(high, UNBOUNDED)))
    if program.gain is not None:
        objective = proto.floating_point_objective
        busy = np.flatnonzero(program.gain)
        objective.vars.extend(busy.tolist())
        objective.coeffs.extend(program.gain[busy].tolist())
        objective.maximize = True
    return model


def _add_clause(
    constraint: Any, columns: list[int], values: list[int], low: int, high: int, below: bool, above: bool
) -> bool:
    """Whether the row is a clause on literals: at least one, at most one or exactly one of them is true."""
    literals = [j if v > 0 else -j - 1 for j, v in zip(columns, values, strict=True)]  # -j - 1 is "not j"
    if above and low == 1:
        constraint.bool_or.literals.extend(literals)
    elif below and high == 1:
        constraint.at_most_one.literals.extend(literals)
    elif low == high == 1:
        constraint.exactly_one.literals.extend(literals)
    elif below and high == len(literals) - 1:
        constraint.bool_or.literals.extend([-literal - 1 for literal in literals])
    else:
        return False
    return True


class _Teller(cp_model.CpSolverSolutionCallback):
    def __init__(self, tell: Callable[[Ints, float, float], None]) -> None:
        super().__init__()
        self._tell = tell

    def on_solution_callback(self) -> None:
        found = np.array(self.response_proto.solution, dtype=np.int64)
        self._tell(found, self.objective_value, self.best_objective_bound)
