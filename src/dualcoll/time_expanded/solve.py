"""The search for a task: which solver, in which order, within one clock.

A list schedule first, which costs milliseconds. Then, where every chunk has one receiver, the flow without copy (an LP) and
whole chunks out of it; otherwise the exact search if its model fits in memory, and rounds with improvement if not. What gathers
is solved like what spreads; where both are there, one after the other, and then together if that model is small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.lp.engines import get_engine
from dualcoll.lp.integer_program import Limits, Status
from dualcoll.progress import Meter, Outcome
from dualcoll.time_expanded import exact, flow_lp, improve, rounds
from dualcoll.time_expanded.bounds import least_horizon
from dualcoll.time_expanded.feeds import pruned
from dualcoll.time_expanded.flow_rounding import whole_chunks
from dualcoll.time_expanded.greedy import list_schedule
from dualcoll.time_expanded.joint import JointModel, least_joint
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from dualcoll.time_expanded.solution import Solution
from dualcoll.time_expanded.task import Task

__all__ = ["Search", "solve"]

Ints = NDArray[np.int64]

WORKERS = 2
MANY_STARTS = 400_000  # columns of a joint model


@dataclass(frozen=True, slots=True)
class Search:
    """How to search.

    Attributes:
        meter: of the whole search; its values are 1 / epochs.
        engine: of 0/1 programs, see :mod:`dualcoll.lp.engines`.
        seed: of everything random.
        earliest: among the schedules of least makespan, one that delivers early: the paper's objective, Σ R / (k + 1).
        tell: called with every better solution, and with every better bound.
    """

    meter: Meter
    engine: str = "cp-sat"
    seed: int = 0
    earliest: bool = False
    tell: Callable[[Solution], None] = lambda _: None


def solve(
    task: Task,
    search: Search,
    *,
    start: Solution | None = None,
    bound: tuple[int, str] = (0, ""),
    priorities: Sequence[int] = (),
) -> Solution:
    """The best schedule that can be found, with what is proved of it.

    Args:
        task: what is to be done. search: how.
        start: a solution of the same task to go on from, with its bound.
        bound: epochs that are known to be needed, and why.
        priorities: of each group, higher first; groups of one priority count alike. A group is done as early as those before it
            let it be, however long those behind it take. None: all count alike.

    Raises:
        InputError: an engine that is not there, a problem that no solver can hold, or priorities where nobody copies.
    """
    known = bound
    if start is not None and start.bound > bound[0]:
        known = start.bound, start.reason
    best = _Best(task, search, known)
    if start is not None:
        best.take(replace(start, bound=0))
    if len(set(priorities)) > 1:
        _by_priority(best, priorities)
    elif task.copying is None or task.reducing is None:
        _one_part(best)
    else:
        _both(best)
    return best.ended()


class _Best:
    """The best so far, and what is proved.

    Args:
        task: what is to be done. search: how. bound: epochs that are needed, and why.
        meter: of a part of the search; the whole one's by default.
    """

    def __init__(self, task: Task, search: Search, bound: tuple[int, str], meter: Meter | None = None) -> None:
        self.task, self.search, self.meter = task, search, meter or search.meter
        self.bound, self.reason = bound
        self.found: Solution | None = None

    def take(self, found: Solution) -> None:
        """Keep it if it is better."""
        if found.bound > self.bound:
            self.bound, self.reason = found.bound, found.reason
        if self.found is None or found.finish < self.found.finish:
            self.found = found
            self._tell()

    def prove(self, bound: int, reason: str) -> None:
        """Nothing is faster than this."""
        if bound > self.bound:
            self.bound, self.reason = bound, reason
            self._tell()

    def schedule(self, made: EpochSchedule, method: str) -> None:
        """Take a schedule of a task of one part."""
        made = pruned(made)
        copying, reducing = (made, None) if self.task.copying is not None else (None, made)
        self.take(Solution(self.task, copying, reducing, turn=made.finish, method=method))

    @property
    def only(self) -> EpochSchedule | None:
        """The schedule of a task of one part."""
        return None if self.found is None else self.found.copying or self.found.reducing

    @property
    def over(self) -> bool:
        """Whether the search is over."""
        return self.found is not None and self._outcome() is not None

    def ended(self) -> Solution:
        """What was found."""
        if self.found is None:
            raise InputError("no schedule was found in time", hint="allow more --seconds")
        outcome = self._outcome() or Outcome.STALLED
        return self._complete(outcome)

    def _outcome(self) -> Outcome | None:
        assert self.found is not None
        return self.meter.outcome(0, 1 / max(1, self.found.finish), 1 / max(1, self.bound))

    def _complete(self, outcome: Outcome | None) -> Solution:
        assert self.found is not None
        seconds = self.search.meter.seconds
        return replace(self.found, bound=self.bound, reason=self.reason, outcome=outcome, seconds=seconds)

    def _tell(self) -> None:
        if self.found is not None:
            self.search.tell(self._complete(None))


def _one_part(best: _Best) -> None:
    """What only spreads, or only gathers."""
    problem = best.task.copying or best.task.reducing
    assert problem is not None
    search = best.search
    best.prove(*least_horizon(problem))
    best.schedule(list_schedule(problem, search.seed), "list scheduling")
    if best.over and not search.earliest:
        return
    alone = bool(np.all(problem.wants().sum(axis=1) <= 1)) or not problem.network.clock.copy
    if alone:
        flow = flow_lp.solve(problem, meter=best.meter.part(0.5))
        best.prove(flow.bound, "no flow is faster, even one that cuts chunks")
        best.schedule(whole_chunks(flow, search.seed).schedule, "whole chunks of a flow")
    if not best.over or search.earliest:
        _search_further(best, problem)


def _search_further(best: _Best, problem: Problem) -> None:
    """Exactly if it fits in memory, else by rounds."""
    search = best.search
    assert best.only is not None

    def exactly(schedule: EpochSchedule | None, bound: int) -> None:
        best.prove(bound, "no schedule of fewer epochs exists: exact search")
        if schedule is not None:
            best.schedule(schedule, "exact")

    if exact.fits(problem, best.only.finish):
        found = exact.solve(
            problem,
            engine=search.engine,
            meter=best.meter,
            start=best.only,
            bound=best.bound,
            objective="reads" if search.earliest else "makespan",
            seed=search.seed,
            on_improvement=exactly,
        )
        if search.earliest and found.schedule is not None:
            best.found = None  # of one makespan, the one that delivers early
            best.schedule(found.schedule, "exact, early deliveries")
        if not best.over and best.found is not None:
            _improve(best)
        return
    made = rounds.solve(
        problem,
        engine=search.engine,
        meter=best.meter.part(0.5),
        bound=best.bound,
        seed=search.seed,
        on_improvement=lambda made: best.schedule(made, "rounds"),
    )
    best.schedule(made, "rounds")
    if not best.over:
        _improve(best)


def _improve(best: _Best) -> None:
    """Take parts out and enter them again, as long as there is time."""
    assert best.only is not None
    made = improve.improve(
        best.only,
        meter=best.meter,
        bound=best.bound,
        seed=best.search.seed,
        on_improvement=lambda made: best.schedule(made, "improved"),
    )
    best.schedule(made, "improved")


def _both(best: _Best) -> None:
    """What gathers, what spreads after it, and both together if that is small."""
    task, search = best.task, best.search
    best.prove(least_joint(task), "latency there and back")
    parts = []
    for i, part in enumerate((replace(task, copying=None), replace(task, reducing=None))):
        inner = _Best(part, replace(search, tell=lambda _: None), (0, ""), best.meter.part((0.25, 0.33)[i]))
        _one_part(inner)
        parts.append(inner.ended())
        best.prove(parts[-1].bound, parts[-1].reason)
    first, second = parts
    best.take(_in_turn(task, first, second))
    if not best.over and _small(task, best):
        _climb(best, "together")


def _in_turn(task: Task, first: Solution, second: Solution) -> Solution:
    """One solution after the other."""
    copying = second.copying
    assert copying is not None
    later = replace(copying, epoch=copying.epoch + np.int32(first.finish))
    name = first.method if first.method == second.method else f"{first.method}; {second.method}"
    return Solution(task, later, first.reducing, turn=first.turn, method=f"one after the other: {name}")


def _small(task: Task, best: _Best) -> bool:
    assert best.found is not None
    parts = [part for part in (task.copying, task.reducing) if part is not None]
    clock = task.network.clock
    starts = sum(part.count(best.found.finish).flows for part in parts)
    return starts <= MANY_STARTS and clock.copy and clock.buffer is None


def _climb(best: _Best, method: str, due: Ints | None = None) -> None:
    """Joint programs on a climbing horizon, below what is known."""
    search = best.search
    solver = get_engine(search.engine).load()
    while best.found is not None and best.bound < best.found.finish and not best.over:
        model = JointModel(best.task, best.bound, due)
        limits = Limits(best.meter.remaining, lambda: best.meter.spent, WORKERS, search.seed)
        result = solver(model.program, limits)
        if result.status is Status.INFEASIBLE:
            best.prove(best.bound + 1, "no schedule of fewer epochs exists: exact search")
        elif result.columns.size:
            copying, reducing = model.schedules(result.columns)
            best.take(Solution(best.task, copying, reducing, turn=best.bound, method=f"exact, {method}"))
        else:
            return


def _by_priority(best: _Best, priorities: Sequence[int]) -> None:
    """Group after group: as early as those before let it be, which keep the epochs that they have reached."""
    task, search = best.task, best.search
    clock = task.network.clock
    if not clock.copy or clock.buffer is not None:
        raise InputError("priorities need ranks that copy, and buffers without a limit", where="priorities")
    rank = np.array(priorities)[task.contract.group]
    due = np.full(rank.size, np.iinfo(np.int32).max, np.int64)
    levels = sorted(set(priorities), reverse=True)
    so_far: Solution | None = None
    for i, level in enumerate(levels):
        part = _only(task, rank >= level)
        alone = _Best(_only(task, rank == level), replace(search, tell=lambda _: None), (0, ""), best.meter.part(0.3))
        (_both if alone.task.copying and alone.task.reducing else _one_part)(alone)
        stage = _Best(part, replace(search, tell=lambda _: None), (0, ""), best.meter.part(1 / (len(levels) - i)))
        stage.prove(alone.bound, alone.reason)
        stage.take(_after(part, so_far, alone.ended()))
        if not stage.over:
            _climb(stage, "by priority", due)
        so_far = stage.ended()
        reached = so_far.delivered()
        due = np.where(rank >= level, np.minimum(due, reached[rank == level].max(initial=0)), due)
    assert so_far is not None
    best.prove(so_far.bound, so_far.reason)
    best.take(replace(so_far, task=task, bound=0))


def _only(task: Task, chosen: NDArray[np.bool_]) -> Task:
    """The task with what is not chosen left where it is."""
    parts = []
    for part in (task.copying, task.reducing):
        made = None
        if part is not None:
            target = np.where(chosen, part.contract.target, part.contract.source)
            made = replace(part, contract=replace(part.contract, target=target))
        parts.append(made if made is not None and made.wants().any() else None)
    return replace(task, copying=parts[0], reducing=parts[1])


def _after(task: Task, first: Solution | None, second: Solution) -> Solution:
    """The second solution's starts once the first is done."""
    if first is None:
        return replace(second, task=task)
    shift = first.finish
    copying = _merged(task.copying, first.copying, second.copying, shift)
    turn = shift + second.turn if second.reducing is not None else first.turn
    reducing = _merged(task.reducing, second.reducing, first.reducing, turn - first.turn)
    return Solution(task, copying, reducing, turn=turn, method="one after the other")


def _merged(
    problem: Problem | None, first: EpochSchedule | None, second: EpochSchedule | None, shift: int
) -> EpochSchedule | None:
    """Starts of both, those of the second so much later."""
    if problem is None:
        return None
    given = [(part, by) for part, by in ((first, 0), (second, shift)) if part is not None]
    columns = [np.concatenate([getattr(part, name) for part, _ in given]) for name in ("arc", "chunk")]
    epoch = np.concatenate([part.epoch + np.int32(by) for part, by in given])
    return EpochSchedule(problem, columns[0], epoch, columns[1])
