"""The least makespan with copies, exactly: feasibility on a climbing horizon, from what is proved to what is known.

TE-CCL minimises over a horizon that is long enough; here every horizon from the bound on is a program of its own without an
objective, and the first that has a solution is the least. (Minimising a makespan variable proves nothing for minutes where the
climb takes a second.) Each refuted horizon is a bound; a schedule that is known ends the climb before its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dualcoll.errors import InputError
from dualcoll.lp.engines import get_engine
from dualcoll.lp.integer_program import IntegerSolution, Limits, Status
from dualcoll.machine import free_memory
from dualcoll.progress import Meter, Outcome
from dualcoll.time_expanded.distances import Distances
from dualcoll.time_expanded.integer_model import Model, Size, Usable, make_model
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from dualcoll.units import format_size

__all__ = ["Exact", "Objective", "estimate", "fits", "solve"]

Objective = Literal["makespan", "reads"]

COLUMN_BYTES, ENTRY_BYTES = 1500, 250  # what they have been seen to take at most, the engine's own structures included
SHARE = 0.5  # of the free memory that a model may take
WORKERS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """What the search has come to.

    Attributes:
        schedule: the best, or None if none was found and none given. bound: epochs that every schedule takes.
        outcome: why it ended. tried: horizons with their results and seconds.
    """

    schedule: EpochSchedule | None
    bound: int
    outcome: Outcome
    tried: tuple[tuple[int, Status, float], ...]


def estimate(problem: Problem, horizon: int) -> int:
    """Bytes that the search over a horizon takes, without building anything."""
    size = Size.of(problem, Usable.of(problem, Distances.of(problem), horizon))
    return size.columns * COLUMN_BYTES + size.entries * ENTRY_BYTES


def fits(problem: Problem, horizon: int) -> bool:
    """Whether this machine's free memory is enough for it."""
    return estimate(problem, horizon) <= SHARE * free_memory()


def solve(
    problem: Problem,
    *,
    engine: str = "cp-sat",
    meter: Meter,
    bound: int = 0,
    start: EpochSchedule | None = None,
    objective: Objective = "makespan",
    seed: int = 0,
    on_improvement: Callable[[EpochSchedule | None, int], None] | None = None,
) -> Exact:
    """Climb from a bound to the least horizon that has a schedule.

    Args:
        problem: what to schedule; where ranks do not copy, flows are whole numbers of units.
        engine: of integer programs, see :mod:`dualcoll.lp.engines`.
        meter: when to stop. Its values are 1 / epochs.
        bound: epochs that are known to be needed.
        start: a schedule that is known, which keeps every demand and deadline.
        objective: ``makespan``; or ``reads``, the paper's: over the least horizon found, maximise Σ R / (k + 1) over all that
            is delivered in time.
        seed: of the engine.
        on_improvement: called with the best schedule and the bound whenever one of them is better.

    Raises:
        InputError: an engine that is not there, or a model that does not fit into this machine's memory.
    """
    search = _Search(problem, engine, meter, bound, start, seed, on_improvement)
    search.climb()
    if objective == "reads" and search.best is not None:
        search.read_early()
    return search.result()


class _Search:
    """The climb, and what it knows so far."""

    def __init__(
        self,
        problem: Problem,
        engine: str,
        meter: Meter,
        bound: int,
        start: EpochSchedule | None,
        seed: int,
        on_improvement: Callable[[EpochSchedule | None, int], None] | None,
    ) -> None:
        self.problem, self.meter, self.seed = problem, meter, seed
        self.solver = get_engine(engine).load()
        self.distances = Distances.of(problem)
        self.bound, self.best = max(1, bound), start
        self.tell = on_improvement or (lambda *_: None)
        self.tried: list[tuple[int, Status, float]] = []

    def climb(self) -> None:
        """One horizon after the other, until one has a schedule, or the time is over."""
        while (self.best is None or self.bound < self.best.finish) and self._over() is None:
            usable = Usable.of(self.problem, self.distances, self.bound)
            if not usable.met:
                self._refuted()
                continue
            result, model = self._solved(usable, earliest=False)
            if result.status is Status.INFEASIBLE:
                self._refuted()
            elif result.columns.size:
                self.best = model.schedule(result.columns)
                self.tell(self.best, self.bound)
            else:
                return

    def read_early(self) -> None:
        """Over the makespan that is known, the schedule that delivers earliest by the paper's measure."""
        assert self.best is not None
        usable = Usable.of(self.problem, self.distances, self.best.finish)
        result, model = self._solved(usable, earliest=True)
        if result.columns.size:
            self.best = model.schedule(result.columns)
            self.tell(self.best, self.bound)

    def result(self) -> Exact:
        """What was found."""
        return Exact(self.best, self.bound, self._over() or Outcome.STALLED, tuple(self.tried))

    def _refuted(self) -> None:
        self.bound += 1
        self.tell(self.best, self.bound)

    def _solved(self, usable: Usable, *, earliest: bool) -> tuple[IntegerSolution, Model]:
        size = Size.of(self.problem, usable)
        needed, free = size.columns * COLUMN_BYTES + size.entries * ENTRY_BYTES, free_memory()
        if needed > SHARE * free:
            problem = f"{usable.horizon} epochs make {size.columns:,} variables, about {format_size(needed)} of memory"
            hint = "use longer epochs (--multiplier), fewer chunks, or fewer ranks"
            raise InputError(f"{problem}; {format_size(int(free))} are free", where="exact search", hint=hint)
        before = self.meter.seconds
        model = make_model(self.problem, usable, earliest=earliest)
        limits = Limits(self.meter.remaining, lambda: self.meter.spent, WORKERS, self.seed)
        result = self.solver(model.program, limits)
        self.tried.append((usable.horizon, result.status, self.meter.seconds - before))
        return result, model

    def _over(self) -> Outcome | None:
        value = 0.0 if self.best is None else 1 / max(1, self.best.finish)
        return self.meter.outcome(len(self.tried), value, 1 / self.bound)
