"""Improvement: never worse, always valid, down to the least makespan on what is known, and over when nothing comes of it."""

from __future__ import annotations

import numpy as np
import pytest

from dualcoll.collectives.contract import make_contract
from dualcoll.progress import Meter, Outcome, Seconds, Stop
from dualcoll.time_expanded import improve as module
from dualcoll.time_expanded.check import Rule, violations
from dualcoll.time_expanded.greedy import Lister, cost_of
from dualcoll.time_expanded.improve import improve, prefix
from dualcoll.time_expanded.network import Clock, make_network
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from tests.time_expanded.by_hand import by_hand, switch_problem
from tests.time_expanded.fabrics import US, dgx1, h100, mesh
from tests.time_expanded.test_greedy import assert_right, problem_of, random_problem


@pytest.mark.parametrize(
    ("problem", "least"),
    [
        (problem_of(dgx1(), "allgather", 5), 12),
        (problem_of(dgx1(0.7 * US), "allgather", 2), 9),
        (problem_of(dgx1(0.7 * US), "allgather", 4), 12),
        (problem_of(dgx1(), "alltoall", 4), 22),
        (problem_of(dgx1(0.7 * US), "alltoall", 4), 24),
    ],
    ids=["5 chunks", "2 late chunks", "4 late chunks", "alltoall", "late alltoall"],
)
def test_comes_to_the_least_makespan(problem: Problem, least: int) -> None:
    """Proved values are reached, and the search ends there; shorter and shorter schedules are told on the way."""
    meter = Meter(Stop())
    told: list[EpochSchedule] = []
    first = Lister(problem).run(7)
    found = improve(first, meter=meter, bound=least, seed=1, on_improvement=told.append)
    assert_right(found)
    assert (found.finish, meter.history[-1].gap) == (least, 0.0)
    finishes = [first.finish, *(schedule.finish for schedule in told)]
    assert finishes == sorted(set(finishes), reverse=True)
    assert finishes[-1] == least


@pytest.mark.parametrize("seed", range(18))
def test_no_worse_and_valid(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every clock: switches and ranks that copy or not, buffers, late switches."""
    monkeypatch.setattr(module, "PATIENCE", 15)
    problem = random_problem(seed)
    first = Lister(problem).run(seed)
    found = improve(first, meter=Meter(Stop()), bound=1, seed=seed)
    assert_right(found)
    assert cost_of(found, problem.wants(), 1) <= cost_of(first, problem.wants(), 1)


def test_same_seed_same_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed decides everything."""
    monkeypatch.setattr(module, "PATIENCE", 20)
    first = Lister(problem_of(dgx1(), "allgather", 2)).run(0)
    one, two = (improve(first, meter=Meter(Stop()), bound=1, seed=4) for _ in range(2))
    assert all(np.array_equal(getattr(one, name), getattr(two, name)) for name in ("arc", "epoch", "chunk"))


def test_ends_when_asked() -> None:
    """An interrupted search, and one without time, give back what they were given."""
    first = Lister(problem_of(mesh(3), "allgather", 2)).run(0)
    interrupted, late = Meter(Stop()), Meter(Seconds(1e-9))
    interrupted.interrupt()
    for meter, outcome in ((interrupted, Outcome.INTERRUPTED), (late, Outcome.TIME)):
        assert improve(first, meter=meter, bound=1) is first
        assert meter.outcome(0, 1 / first.finish, 1) is outcome


def test_prefix_keeps_whole_hops() -> None:
    """What is on a switch when the time comes has started before, and stays."""
    problem = switch_problem()
    schedule = by_hand(problem, ("A", "W", 0, 0), ("W", "C", 1, 0), ("B", "W", 1, 1), ("W", "C", 2, 1))
    parts = [prefix(schedule, epoch) for epoch in range(3)]
    assert [part.epoch.tolist() for part in parts] == [[], [0, 1], [0, 1, 1, 2]]
    assert [part.chunk.tolist() for part in parts[:2]] == [[], [0, 0]]


def test_prefix_of_hops_at_once() -> None:
    """A hop over two switches in one epoch stays or goes as a whole: nothing is left that does not hold."""
    network = make_network(h100(2), 10**6, clock=Clock(switch_copy=True))
    schedule = Lister(Problem(network, make_contract("allgather", 16))).run(0)
    for epoch in range(schedule.finish):
        part = prefix(schedule, epoch)
        assert {found.rule for found in violations(part)} <= {Rule.DEMAND}
        assert np.all(part.epoch[network.holds[network.tail[part.arc]]] < epoch)
