"""The exact search: least makespans by both engines, against trying everything and against a second model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dualcoll.errors import InputError
from dualcoll.lp.integer_program import Status
from dualcoll.progress import Meter, Outcome, Seconds, Stop
from dualcoll.time_expanded import exact
from dualcoll.time_expanded.bounds import least_horizon
from dualcoll.time_expanded.exact import Exact
from dualcoll.time_expanded.greedy import list_schedule
from dualcoll.time_expanded.network import Clock
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from tests.time_expanded.by_force import least_copying, tiny_problem
from tests.time_expanded.by_hand import star_problem, switch_problem
from tests.time_expanded.fabrics import US, dgx1
from tests.time_expanded.flows import least_epochs, random_problem
from tests.time_expanded.test_greedy import assert_right, problem_of
from tests.time_expanded.test_greedy import random_problem as any_problem

pytest.importorskip("ortools")

ENGINES = ["cp-sat", "highs"]


def solved(problem: Problem, engine: str = "cp-sat", bound: int = 0) -> EpochSchedule:
    """The proved best schedule."""
    found = exact.solve(problem, engine=engine, meter=Meter(Stop()), bound=bound)
    assert found.schedule is not None
    assert found.outcome is Outcome.OPTIMAL
    assert found.bound == found.schedule.finish
    assert_right(found.schedule)
    return found.schedule


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(12))
def test_against_trying_everything(seed: int, engine: str) -> None:
    """Tiny random fabrics with slow and late links: the least makespan is that of all states that can be reached."""
    clock = Clock("slowest") if seed % 4 == 3 else Clock()
    problem = tiny_problem(seed, clock)
    if not problem.wants().any():
        return
    least = least_copying(problem)
    assert solved(problem, engine).finish == least
    assert least_horizon(problem)[0] <= least <= list_schedule(problem).finish


@pytest.mark.parametrize("seed", range(8))
def test_without_copy_against_a_second_model(seed: int) -> None:
    """Where ranks do not copy, whole chunks flow as in the plain model, one commodity per receiver."""
    problem = random_problem(seed)
    network = problem.network
    clock = replace(network.clock, copy=False)
    plain = replace(problem, network=replace(network, clock=clock, copies=np.zeros(network.vertices, bool)))
    assert solved(plain).finish == least_epochs(problem, whole=True)


@pytest.mark.parametrize("seed", range(18))
def test_every_clock(seed: int) -> None:
    """Switches that copy or not, at once or late, limited buffers: valid, and both engines agree."""
    problem = any_problem(seed)
    if problem.chunks > 16:
        return
    known = list_schedule(problem)
    found = exact.solve(problem, meter=Meter(Seconds(0.4)), start=known, bound=least_horizon(problem)[0])
    assert found.schedule is not None
    assert_right(found.schedule)
    assert found.bound <= found.schedule.finish <= known.finish


@pytest.mark.parametrize("engine", ENGINES)
def test_the_climb(engine: str) -> None:
    """From the bound on, every horizon is refuted or met; what is refuted is told; a known schedule is only proved."""
    problem = problem_of(dgx1(), "allgather", 2)
    told: list[int] = []

    def solve(start: EpochSchedule | None) -> Exact:
        return exact.solve(
            problem, engine=engine, meter=Meter(Stop()), start=start, on_improvement=lambda _, bound: told.append(bound)
        )

    found = solve(None)
    assert found.schedule is not None
    assert (found.schedule.finish, found.bound) == (5, 5)
    assert [(k, status is Status.INFEASIBLE) for k, status, _ in found.tried] == [(3, True), (4, True), (5, False)]
    assert told == sorted(told)
    again = solve(found.schedule)
    assert again.schedule is found.schedule
    assert [k for k, *_ in again.tried] == [3, 4]


def test_the_papers_objective() -> None:
    """Of the schedules of least makespan, Σ R / (k + 1) prefers those that deliver early; both engines find the same sum."""

    def worth(schedule: EpochSchedule) -> float:
        got, wants = schedule.delivered(), schedule.problem.wants()
        return float((1 / got[wants]).sum())

    problem = problem_of(dgx1(), "allgather")
    found = [exact.solve(problem, engine=engine, meter=Meter(Stop()), objective="reads").schedule for engine in ENGINES]
    assert found[0] is not None
    assert found[1] is not None
    assert [schedule.finish for schedule in found if schedule is not None] == [3, 3]
    assert worth(found[0]) == pytest.approx(worth(found[1]))
    assert worth(found[0]) >= worth(solved(problem))
    assert_right(found[0])


def test_switch_and_star() -> None:
    """The paper's figure 2a, and b that waits at B for the switch."""
    assert [solved(star_problem(clock)).seconds for clock in (Clock(), Clock(copy=False))] == [2.0, 4.0]
    waits = solved(switch_problem())
    assert sorted(waits.delivered()[:, 2].tolist()) == [2, 3]


@pytest.mark.parametrize("seed", range(0, 8, 2))
def test_limited_buffers(seed: int) -> None:
    """Ranks with room for one chunk of others: what trying everything finds, dropping and fetching again included."""
    problem = tiny_problem(seed, Clock(buffer=1))
    if problem.wants().any():
        least = least_copying(problem)
        assert [solved(problem, engine).finish for engine in ENGINES] == [least, least]


def test_out_of_time_or_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best that is known stays; a model that does not fit is refused with what to do, not built."""
    problem = problem_of(dgx1(0.7 * US), "allgather", 8)
    known = list_schedule(problem)
    late = exact.solve(problem, meter=Meter(Seconds(1e-9)), start=known)
    assert (late.schedule, late.outcome) == (known, Outcome.TIME)
    monkeypatch.setattr(exact, "free_memory", lambda: 1e6)
    assert not exact.fits(problem, known.finish)
    with pytest.raises(InputError) as refused:
        exact.solve(problem, meter=Meter(Stop()), bound=known.finish)
    assert "variables, about " in str(refused.value)
    assert "use longer epochs (--multiplier), fewer chunks, or fewer ranks" in str(refused.value)
    assert exact.estimate(problem, 21) > exact.estimate(problem, 12) > 0
