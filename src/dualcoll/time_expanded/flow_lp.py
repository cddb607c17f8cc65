"""The least makespan without copies: linear programs on a climbing horizon, or a steady flow where they are too large.

Liu et al. (TE-CCL), SIGCOMM 2024, §4.1. The climb starts at what flows without time and latencies prove (static_flow.py), which
is nearly always the answer, and ends at the first horizon at which everything is delivered. Every horizon before has been
proved too short by its own optimum. Shape letters: see flow_model.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dualcoll.errors import InputError
from dualcoll.lp.linear import LinearMethod, LinearStatus, solve_linear
from dualcoll.progress import Meter, Outcome
from dualcoll.time_expanded.flow_demands import Demands, demands_of
from dualcoll.time_expanded.flow_model import FlowModel, Reach, reach_of
from dualcoll.time_expanded.flow_paths import EpochFlow, paths_of
from dualcoll.time_expanded.problem import FOREVER, Problem
from dualcoll.time_expanded.static_flow import static_flow
from dualcoll.time_expanded.steady_flow import steady_flow

__all__ = ["FlowSolution", "Objective", "solve"]

Objective = Literal["makespan", "reads"]

MOST_COLUMNS = 400_000  # beyond it, steady flows alone
FEW_COLUMNS = 60_000  # up to which the simplex method is faster
COLUMN_BYTES = 6_000  # what a column has been seen to take, its entries and the solver's factors included
DETOUR = 1e-5  # what a start costs against a delivered chunk where short ways are preferred
SHORT = 1e-6  # chunks, and this part of all: less is what a solver's tolerance leaves


@dataclass(frozen=True, slots=True, eq=False)
class FlowSolution:
    """A flow with its proof.

    Attributes:
        flow: the best found.
        bound: epochs; no flow, and no schedule of whole chunks without copies, is faster.
        outcome: why it ended; LIMITED where linear programs over the epochs would be too large.
        tried: horizons solved, one by one. columns: of the largest program; memory: bytes that it was expected to take.
    """

    flow: EpochFlow
    bound: int
    outcome: Outcome
    tried: tuple[int, ...]
    columns: int
    memory: int


def solve(
    problem: Problem,
    *,
    meter: Meter,
    objective: Objective = "makespan",
    horizon: int | None = None,
    on_improvement: Callable[[EpochFlow], None] | None = None,
) -> FlowSolution:
    """Find the flow of least makespan.

    Args:
        problem: chunks with one receiver each, or a network on which nobody copies.
        meter: when to stop. Its values are 1 / epochs.
        objective: ``makespan``, or ``reads``, the paper's: maximise Σ R / (k + 1) over all that is read, within the horizon.
        horizon: of ``reads``; the least makespan by default.
        on_improvement: called with every better flow.

    Raises:
        InputError: copies could help, nothing to send, deadlines or a horizon that no flow meets, or no time to find any flow.
    """
    demands = demands_of(problem)
    reach = reach_of(demands)
    static = static_flow(demands, reach, meter)
    search = _Search(demands, reach, meter, static.bound, on_improvement)
    steady = steady_flow(demands, static)
    if np.all(steady.arrival <= demands.deadline[steady.demand]):
        search.improved(steady)
    else:
        search.first(steady.finish)
    search.climb()
    if objective == "reads":
        search.read_early(horizon)
    return search.solution()


def columns_of(demands: Demands, reach: Reach, horizon: int) -> int:
    """Columns F and B of the program over a horizon, without building it."""
    network = demands.problem.network
    stays = np.maximum(0, horizon - reach.onward - reach.earliest) * network.holds
    return int(reach.starts(network, horizon).sum() + stays.sum())


class _Search:
    """The climb, and what it knows so far."""

    def __init__(
        self,
        demands: Demands,
        reach: Reach,
        meter: Meter,
        bound: int,
        on_improvement: Callable[[EpochFlow], None] | None,
    ) -> None:
        self.demands, self.reach, self.meter, self.bound = demands, reach, meter, bound
        self.on_improvement = on_improvement
        self.best: EpochFlow | None = None
        self.tried: list[int] = []
        self.columns = 0
        self.outcome: Outcome | None = None

    def improved(self, flow: EpochFlow) -> None:
        """Take a better flow."""
        self.best = flow
        if self.on_improvement is not None:
            self.on_improvement(flow)
        self._look()

    def first(self, steady: int) -> None:
        """A flow that meets deadlines, which need no more time than everything takes after the last of them."""
        due = self.demands.deadline
        last = max(self.bound, int(due[due < FOREVER].max(initial=0)) + steady)
        collective = self.demands.problem.contract.collective
        if not self._fits(last):
            raise InputError(
                f"its deadlines make programs of {columns_of(self.demands, self.reach, last)} columns, "
                f"where {MOST_COLUMNS} are solved",
                where=collective,
                hint="use longer epochs, or no deadlines",
            )
        found = self._solve(last)
        if found is None:
            spent = self.meter.spent
            raise InputError(
                "no flow was found in time" if spent else "no flow meets all deadlines",
                where=collective,
                hint="allow more seconds" if spent else "allow later deadlines",
            )
        self.improved(found)

    def climb(self) -> None:
        """Horizons from the bound up, until one is long enough or no better than what is known."""
        assert self.best is not None
        while self.outcome is None:
            if not self._fits(self.bound):
                self.outcome = Outcome.LIMITED
                return
            found = self._solve(self.bound)
            if found is not None:
                self.improved(found)
            elif self.outcome is None:
                self.bound += not self.meter.spent
                self._look()

    def read_early(self, horizon: int | None) -> None:
        """The paper's objective within a horizon; the flow of least makespan stays where there is no time for it."""
        assert self.best is not None
        horizon = self.best.finish if horizon is None else horizon
        if horizon < self.bound:
            raise InputError(f"no flow is done in {horizon} epochs", where="horizon", hint=f"use {self.bound} or more")
        if not self._fits(horizon):
            raise InputError(
                f"a program of {columns_of(self.demands, self.reach, horizon)} columns, where {MOST_COLUMNS} are solved",
                where="objective reads",
                hint="use the objective makespan, or longer epochs",
            )
        found = self._solve(horizon, weighted=True)
        if found is not None:
            self.best = found

    def solution(self) -> FlowSolution:
        """What was found."""
        assert self.best is not None
        assert self.outcome is not None
        return FlowSolution(
            self.best, self.bound, self.outcome, tuple(self.tried), self.columns, self.columns * COLUMN_BYTES
        )

    def _look(self) -> None:
        assert self.best is not None
        self.outcome = self.meter.outcome(len(self.tried), 1 / self.best.finish, 1 / self.bound)

    def _fits(self, horizon: int) -> bool:
        return columns_of(self.demands, self.reach, horizon) <= MOST_COLUMNS

    def _solve(self, horizon: int, *, weighted: bool = False) -> EpochFlow | None:
        """Everything delivered within a horizon; None where that cannot be, or no time is left.

        Short ways are preferred first, which is quicker to solve; only without that preference a horizon is too short.
        """
        for detour in (0.0,) if weighted else (DETOUR, 0.0):
            model = FlowModel(self.demands, self.reach, horizon, detour=detour, weighted=weighted)
            program = model.program()
            self.columns = max(self.columns, program.columns)
            method = LinearMethod.SIMPLEX if program.columns <= FEW_COLUMNS else LinearMethod.INTERIOR
            solution = solve_linear(
                program, method, seconds=self.meter.remaining, stopped=lambda: self.meter.interrupted
            )
            if solution.status is LinearStatus.STOPPED:
                self.outcome = None if self.meter.spent else Outcome.STALLED  # the solver gave up by itself
                return None
            missing = SHORT * (1 + self.demands.total)
            if solution.columns.size and model.delivered(solution.columns) >= self.demands.total - missing:
                self.tried.append(horizon)
                return paths_of(self.demands, model.flows(solution.columns))
        self.tried.append(horizon)
        return None
