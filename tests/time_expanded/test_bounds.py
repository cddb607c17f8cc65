"""Bounds without a search: never above the least makespan, at it where they are known to be, with a reason."""

from __future__ import annotations

import pytest

from dualcoll.collectives.contract import make_contract
from dualcoll.progress import Meter, Stop
from dualcoll.time_expanded import exact
from dualcoll.time_expanded.bounds import least_horizon
from dualcoll.time_expanded.check import examine
from dualcoll.time_expanded.greedy import list_schedule
from dualcoll.time_expanded.network import Clock, make_network
from dualcoll.time_expanded.problem import Problem
from dualcoll.topology.model import Kind, Link, Node, Topology
from tests.time_expanded.by_force import least_copying, tiny_problem
from tests.time_expanded.by_hand import by_hand, star_problem
from tests.time_expanded.fabrics import US, dgx1, mesh, ndv2, star
from tests.time_expanded.test_greedy import problem_of, random_problem

pytest.importorskip("ortools")


@pytest.mark.parametrize("seed", range(12, 24))
def test_never_above_the_optimum(seed: int) -> None:
    """Tiny random fabrics, against trying everything."""
    problem = tiny_problem(seed)
    if problem.wants().any():
        assert least_horizon(problem)[0] <= least_copying(problem)


@pytest.mark.parametrize("seed", range(90))
def test_never_above_a_schedule(seed: int) -> None:
    """Every clock and contract, on fabrics with switches, shared capacities and idle GPUs: what is done is not said to be
    impossible.
    """
    problem = random_problem(seed)
    assert 1 <= least_horizon(problem)[0] <= list_schedule(problem).finish


@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_what_is_below_has_no_schedule(seed: int) -> None:
    """The exact search refutes the epoch before the bound, or finds that it was right to."""
    problem = random_problem(seed)
    if problem.chunks > 12:
        return
    bound = least_horizon(problem)[0]
    found = exact.solve(problem, meter=Meter(Stop()), bound=1, start=list_schedule(problem))
    assert bound <= found.bound


SLOW = Clock("slowest", ignored_latency=0.1)


@pytest.mark.parametrize(
    ("problem", "least", "optimum"),
    [
        (problem_of(dgx1(), "allgather", 1), 3, 3),
        (problem_of(dgx1(), "allgather", 3), 7, 8),
        (problem_of(dgx1(), "allgather", 8), 19, 19),
        (problem_of(dgx1(0.7 * US), "allgather", 1), 7, 7),
        (problem_of(dgx1(0.7 * US), "allgather", 8), 20, 21),
        (problem_of(mesh(4), "allgather"), 8, 8),
        (problem_of(ndv2(2), "allgather", clock=SLOW), 10, 10),
        (problem_of(ndv2(4), "allgather", clock=Clock("slowest", switch_copy=True, ignored_latency=0.1)), 26, 26),
        (star_problem(), 2, 2),
    ],
    ids=["1", "3", "8", "late 1", "late 8", "mesh", "two boxes", "four boxes", "star"],
)
def test_known_instances(problem: Problem, least: int, optimum: int) -> None:
    """Close to the proved makespans, and mostly at them."""
    bound, reason = least_horizon(problem)
    assert least <= bound <= optimum
    assert reason


def test_reasons() -> None:
    """Latency names a way, a cut what has to cross it, and nothing to do is said."""
    assert least_horizon(star_problem()) == (2, "chunk 0 cannot get from s to d1 any sooner")
    bound, reason = least_horizon(problem_of(ndv2(2), "allgather", clock=SLOW))
    assert bound == 10
    assert reason == "8 chunks have to enter box b0, and 7 can within 9 epochs"
    bound, reason = least_horizon(star_problem(chunks=5))
    assert (bound, reason) == (6, "5 chunks have to leave s, and 4 can within 5 epochs")


@pytest.mark.parametrize("fabric", [dgx1(), star()], ids=lambda fabric: fabric.name)
def test_longer_messages_tend_to_the_rate(fabric: Topology) -> None:
    """More chunks never need fewer epochs, and what they need more of tends to a constant."""
    network = make_network(fabric, 25_000)
    bounds = [
        least_horizon(Problem(network, make_contract("allgather", network.ranks, pieces=pieces)))[0]
        for pieces in (1, 2, 4, 8)
    ]
    assert bounds == sorted(bounds)
    assert bounds[3] - bounds[2] <= 2 * (bounds[2] - bounds[1]) + 1


def test_a_rank_that_does_not_copy_has_what_it_keeps() -> None:
    """b passes the first on to c: it has the chunk from the second on, and the makespan counts that one."""
    nodes = tuple(Node(name, Kind.GPU) for name in "abc")
    fabric = Topology(nodes, (Link(0, 1, 1.0), Link(1, 2, 1.0), Link(2, 0, 1.0)), (), "one way")
    network = make_network(fabric, 1, clock=Clock(copy=False))
    problem = Problem(network, make_contract("broadcast", 3))
    passed = by_hand(problem, ("a", "b", 0, 0), ("b", "c", 1, 0), ("a", "b", 3, 0))
    assert passed.delivered().tolist() == [[0, 4, 2]]
    assert (passed.finish, examine(passed).finish, examine(passed).violations) == (4, 4, ())
    gone = by_hand(problem, ("a", "b", 0, 0), ("b", "c", 1, 0))
    assert gone.delivered().tolist() == [[0, -1, 2]]
