"""Rounds: their program by hand, and whole valid schedules at any time, no worse than list schedules."""

from __future__ import annotations

import numpy as np
import pytest

from dualcoll.collectives.contract import make_contract
from dualcoll.lp.engines import get_engine
from dualcoll.lp.integer_program import Limits, Status
from dualcoll.progress import Meter, Seconds, Stop
from dualcoll.time_expanded import round_program, rounds
from dualcoll.time_expanded.check import Rule, violations
from dualcoll.time_expanded.greedy import Lister, cost_of
from dualcoll.time_expanded.improve import prefix
from dualcoll.time_expanded.network import Clock, make_network
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from dualcoll.time_expanded.round_program import Round, make_round
from tests.time_expanded.by_hand import star_problem, switch_problem
from tests.time_expanded.fabrics import US, dgx1, h100, mesh, ndv2
from tests.time_expanded.test_greedy import assert_right, problem_of, random_problem

pytest.importorskip("ortools")


def nothing(problem: Problem) -> EpochSchedule:
    none = np.zeros(0, np.int32)
    return EpochSchedule(problem, none, none, none)


def round_of(problem: Problem, begin: int, end: int, best: EpochSchedule | None = None) -> Round:
    best = Lister(problem).run(0) if best is None else best
    made = make_round(prefix(best, begin), prefix(best, end), begin, end, np.random.default_rng(0))
    assert made is not None
    return made


def solved(made: Round) -> EpochSchedule:
    solution = get_engine("cp-sat").load()(made.program, Limits())
    assert solution.status is Status.OPTIMAL
    return made.schedule(solution.columns)


def test_a_round_makes_the_most_progress() -> None:
    """Figure 2a: one epoch brings the chunk to h, two bring it to everybody."""
    problem = star_problem()
    assert solved(round_of(problem, 0, 1)).arrival.tolist() == [1]
    whole = solved(round_of(problem, 0, 2))
    assert_right(whole)
    assert whole.finish == 2


def test_a_round_looks_ahead() -> None:
    """A hop that lands after the round is started in it, and nothing that cannot help."""
    problem = problem_of(dgx1(5 * US), "allgather")
    first = solved(round_of(problem, 0, 1))
    assert first.arrival.min() > 1
    assert {found.rule for found in violations(first)} == {Rule.DEMAND}
    assert len(set(zip(first.arc.tolist(), first.chunk.tolist(), strict=True))) == first.arc.size


def test_a_round_crosses_switches_after_its_end() -> None:
    """What has started on the way to a switch that holds nothing goes on, though the round is over."""
    problem = switch_problem()
    part = solved(round_of(problem, 0, 1))
    assert part.epoch.tolist() == [0, 1]
    assert {found.rule for found in violations(part)} == {Rule.DEMAND}


@pytest.mark.parametrize("seed", range(0, 60, 2))
def test_list_schedules_solve_the_program(seed: int) -> None:
    """The round of a list schedule is a solution, up to starts that bring no progress; so is what the engine finds."""
    problem = random_problem(seed)
    clock = problem.network.clock
    best = Lister(problem).run(seed, slack=0)
    begin, end = best.finish // 3, 2 * best.finish // 3 + 1
    made = make_round(prefix(best, begin), prefix(best, end), begin, end, np.random.default_rng(seed))
    if not clock.copy or clock.buffer is not None:
        assert made is None
        return
    if made is None:
        return
    found = get_engine("cp-sat").load()(made.program, Limits(2.0), made.hint(prefix(best, end)))
    assert made.program.holds(found.columns)
    part = made.schedule(found.columns)
    assert {broken.rule for broken in violations(part)} <= {Rule.DEMAND}
    assert_right(Lister(problem).run(seed, given=part, floor=end))


def test_some_chunks_are_free_where_all_would_be_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others start as they did."""
    monkeypatch.setattr(round_program, "MAX_COLUMNS", 500)
    problem = Problem(make_network(h100(2), 10**6), make_contract("allgather", 16))
    best = Lister(problem).run(0)
    made = round_of(problem, 0, 12, best)
    free = set(made.chunk.tolist())
    assert 0 < len(free) < 16
    assert made.arc.size <= 500
    assert not free & set(made.fixed.chunk.tolist())
    hint = made.hint(prefix(best, 12))
    assert made.program.holds(hint)
    assert made.schedule(hint).arc.size == prefix(best, 12).arc.size


@pytest.mark.parametrize(
    ("fabric", "epochs"),
    [(dgx1(), 2), (dgx1(0.7 * US), 4), (mesh(2), 1), (h100(2), 11)],
    ids=lambda value: str(value)[:0],
)
def test_longest_hop(fabric, epochs: int) -> None:  # type: ignore[no-untyped-def]
    """The slowest link and its latency; over a switch, both its links."""
    chunk = 10**6 if fabric.name.endswith("H100 boxes") else 25_000
    assert rounds.longest_hop(make_network(fabric, chunk)) == epochs


@pytest.mark.parametrize(
    ("problem", "least", "most"),
    [
        (problem_of(dgx1(), "allgather", 2), 5, 6),
        (problem_of(dgx1(0.7 * US), "allgather", 2), 9, 10),
        (problem_of(dgx1(), "alltoall"), 6, 6),
        (problem_of(ndv2(2), "allgather", clock=Clock(ignored_latency=0.1)), 35, 36),
    ],
    ids=["allgather", "late allgather", "alltoall", "two boxes"],
)
def test_rounds_lose_little(problem: Problem, least: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against proved makespans."""
    monkeypatch.setattr(rounds, "SECONDS", 0.5)
    told: list[int] = []
    found = rounds.solve(
        problem, meter=Meter(Stop()), bound=least, on_improvement=lambda made: told.append(made.finish)
    )
    assert_right(found)
    assert least <= found.finish <= most
    assert told == sorted(set(told), reverse=True)
    assert told[-1] == found.finish


@pytest.mark.parametrize("seed", range(9))
def test_every_clock(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole and valid, and no worse than the list schedule that it begins with."""
    monkeypatch.setattr(rounds, "SECONDS", 0.05)
    problem = random_problem(seed)
    first = Lister(problem).run(seed)
    found = rounds.solve(problem, meter=Meter(Stop()), bound=1, seed=seed)
    assert_right(found)
    assert cost_of(found, problem.wants(), 1) <= cost_of(first, problem.wants(), 1)


def test_goes_on_from_a_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A beginning is kept and completed; a whole schedule is improved."""
    monkeypatch.setattr(rounds, "SECONDS", 0.05)
    problem = problem_of(dgx1(), "allgather", 3)
    whole = Lister(problem).run(0)
    beginning = prefix(whole, 4)
    found = rounds.solve(problem, meter=Meter(Stop()), bound=1, start=beginning)
    assert_right(found)
    kept, starts = (
        set(zip(s.arc.tolist(), s.epoch.tolist(), s.chunk.tolist(), strict=True)) for s in (beginning, found)
    )
    assert kept <= starts
    assert all(epoch >= 4 for _, epoch, _ in starts - kept)
    assert rounds.solve(problem, meter=Meter(Stop()), bound=1, start=whole).finish <= whole.finish


def test_ends_when_asked() -> None:
    """Without time there is still a whole schedule; at the bound nothing more is done."""
    problem = Problem(make_network(h100(2), 10**6), make_contract("allgather", 16))
    assert_right(rounds.solve(problem, meter=Meter(Seconds(1e-9)), bound=1))
    meter = Meter(Stop())
    assert_right(rounds.solve(problem, meter=meter, bound=1000))
    assert len(meter.history) == 1


def test_nothing_given() -> None:
    """A beginning of no starts is the same as none."""
    problem = star_problem()
    assert rounds.solve(problem, meter=Meter(Stop()), bound=2, start=nothing(problem)).seconds == 2.0
