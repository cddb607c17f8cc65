"""List schedules: whole and valid by two checks for every fabric, clock and contract, and near the least makespan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dualcoll.collectives.contract import Contract, make_contract
from dualcoll.errors import InputError
from dualcoll.testing import random_fabric
from dualcoll.time_expanded.check import violations
from dualcoll.time_expanded.greedy import Lister, cost_of, list_schedule
from dualcoll.time_expanded.network import Clock, make_network
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from dualcoll.topology.model import Forwarding, Kind, Link, Node, Topology, duplex
from tests.time_expanded.by_hand import star_problem
from tests.time_expanded.fabrics import US, dgx1, h100, mesh, ndv2
from tests.time_expanded.second_check import faults, late_links, undelivered

CLOCKS = (
    Clock(),
    Clock(epoch="slowest"),
    Clock(multiplier=1.5),
    Clock(latent_switches=True),
    Clock(switch_copy=True),
    Clock(latent_switches=True, switch_copy=True),
    Clock(copy=False),
    Clock(buffer=1),
    Clock(copy=False, buffer=1, latent_switches=True),
)
CONTRACTS = ("allgather", "broadcast", "scatter", "gather", "alltoall")


def problem_of(topology: Topology, collective: str, pieces: int = 1, clock: Clock | None = None) -> Problem:
    chunk = 10**9 if topology.name.endswith("NDv2 boxes") else 25_000
    network = make_network(topology, chunk, clock=clock)
    return Problem(network, make_contract(collective, network.ranks, pieces=pieces))


def random_problem(seed: int) -> Problem:
    """A random fabric, with the clock and the contract whose turn it is."""
    topology = random_fabric(seed, ranks=3 + seed % 3, switches=seed % 4, symmetric=seed % 2 == 0, shared=seed % 3 == 0)
    clock = CLOCKS[seed % len(CLOCKS)]
    network = make_network(topology, 10**6, forwarding=Forwarding.ALL, clock=clock)
    contract = make_contract(CONTRACTS[seed % len(CONTRACTS)], network.ranks, pieces=1 + seed % 2)
    release = np.random.default_rng(seed).integers(0, 3, contract.chunks)
    return Problem(network, contract, release.astype(np.int32))


def assert_right(schedule: EpochSchedule) -> None:
    assert [str(found) for found in violations(schedule)] == []
    assert (faults(schedule), late_links(schedule), undelivered(schedule)) == ([], [], 0)


@pytest.mark.parametrize("seed", range(90))
def test_schedules_are_whole_and_valid(seed: int) -> None:
    """Every clock with every contract, on fabrics with parallel cables, switches, shared capacities and idle GPUs."""
    lister = Lister(random_problem(seed))
    for tries in range(3):
        assert_right(lister.run(seed + 7 * tries))


@pytest.mark.parametrize("seed", range(0, 90, 3))
def test_rest_of_a_schedule(seed: int) -> None:
    """Some chunks are taken out, and entered again from some epoch on: what stays does not move, nothing starts before."""
    problem = random_problem(seed)
    lister = Lister(problem)
    whole = lister.run(seed)
    kept = whole.chunk % 2 == 0
    part = EpochSchedule(problem, whole.arc[kept], whole.epoch[kept], whole.chunk[kept])
    again = lister.run(seed + 1, given=part, floor=3)
    assert_right(again)
    if problem.network.clock.copy:
        before, after = (set(zip(s.arc.tolist(), s.epoch.tolist(), s.chunk.tolist())) for s in (part, again))  # noqa: B905
        assert before <= after
        assert all(epoch >= 3 for _, epoch, _ in after - before)


@pytest.mark.parametrize("seed", range(40))
def test_one_chunk_for_one_rank_takes_the_distance(seed: int) -> None:
    """Alone on the fabric, nothing is in its way."""
    network = make_network(random_fabric(seed, 5, 2), 10**6, forwarding=Forwarding.ALL)
    source, target = np.random.default_rng(seed).permutation(5)[:2]
    problem = Problem(network, Contract("mix", 5, np.array([source]), np.array([target])), np.array([4]))
    assert list_schedule(problem).finish == 4 + network.distances()[source, target]


@pytest.mark.parametrize(
    ("problem", "least", "most"),
    [
        (problem_of(dgx1(), "allgather", 2), 5, 6),
        (problem_of(dgx1(), "allgather", 3), 8, 8),
        (problem_of(dgx1(), "allgather", 8), 19, 21),
        (problem_of(dgx1(0.7 * US), "allgather", 4), 12, 14),
        (problem_of(dgx1(), "alltoall", 2), 11, 12),
        (problem_of(dgx1(), "alltoall", 8), 43, 48),
        (problem_of(mesh(4), "allgather"), 8, 8),
        (problem_of(ndv2(2), "allgather", clock=Clock(epoch="slowest", ignored_latency=0.1)), 10, 10),
        (problem_of(ndv2(4), "allgather", clock=Clock(epoch="slowest", switch_copy=True, ignored_latency=0.1)), 26, 28),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else value.network.topology.name,
)
def test_close_to_the_least_makespan(problem: Problem, least: int, most: int) -> None:
    """Published and proved least makespans are not beaten, and missed by little."""
    schedule = list_schedule(problem)
    assert_right(schedule)
    assert least <= schedule.finish <= most


def test_four_boxes() -> None:
    """32 GPUs: 27 epochs of each NIC, 11 and 9 more to come to everybody, and hardly more."""
    problem = Problem(make_network(h100(4), 10**6), make_contract("allgather", 32))
    schedule = list_schedule(problem)
    assert_right(schedule)
    assert 38 <= schedule.finish <= 46


def test_same_seed_same_schedule() -> None:
    """The seed decides everything."""
    problem = problem_of(dgx1(), "alltoall", 2)
    first, second, other = list_schedule(problem, 3), list_schedule(problem, 3), Lister(problem).run(5)
    assert all(np.array_equal(getattr(first, name), getattr(second, name)) for name in ("arc", "epoch", "chunk"))
    assert not np.array_equal(first.arc, other.arc)


def test_copies_of_ranks_and_switches() -> None:
    """Figure 2a: two epochs with copies, four without; a switch that copies takes one start for all."""
    assert list_schedule(star_problem()).seconds == 2.0
    assert list_schedule(star_problem(Clock(copy=False))).seconds == 4.0
    nodes = (*(Node(name, Kind.GPU) for name in "abcd"), Node("W", Kind.SWITCH))
    fabric = Topology(nodes, tuple(link for i in range(4) for link in duplex(Link(i, 4, 1.0))))
    for copies, epochs, starts in ((False, 3, 6), (True, 1, 4)):
        network = make_network(fabric, 1, clock=Clock(switch_copy=copies))
        schedule = list_schedule(Problem(network, make_contract("broadcast", 4)))
        assert_right(schedule)
        assert schedule.arc.size <= starts
        assert schedule.finish <= epochs


def test_deadlines_come_first() -> None:
    """Two chunks for one link: the one that is due goes first, whatever its number."""
    fabric = Topology((Node("a", Kind.GPU), Node("b", Kind.GPU)), (Link(0, 1, 1.0),))
    contract = Contract("mix", 2, np.zeros(3, np.int32), np.ones(3, np.int32))
    for due in range(3):
        deadline = np.full(3, 2**31 - 1)
        deadline[due] = 1
        schedule = list_schedule(Problem(make_network(fabric, 1), contract, deadline=deadline))
        assert schedule.delivered()[due, 1] == 1
        assert cost_of(schedule, schedule.problem.wants()).overdue == 0


def test_overdue_epochs_are_counted() -> None:
    """Where deadlines cannot be met the schedule is whole all the same, and says by how much it is late."""
    problem = replace(problem_of(mesh(2), "allgather"), deadline=np.full(4, 1))
    schedule = list_schedule(problem)
    assert undelivered(schedule) == 0
    cost = cost_of(schedule, problem.wants(), bound=1)
    assert (cost.overdue, cost.finish, cost.past, cost.total) == (4, 2, 4, 16)


@pytest.mark.parametrize(
    ("clock", "message"),
    [
        (Clock(buffer=0), "ranks hold 0 chunks of others; allow a larger buffer"),
        (Clock(relay=False), "ranks relay nothing; let ranks relay"),
    ],
)
def test_no_way(clock: Clock, message: str) -> None:
    """A chunk that only others could pass on is refused, with what forbids it."""
    problem = problem_of(mesh(2), "scatter", clock=clock)
    with pytest.raises(InputError) as error:
        list_schedule(problem)
    assert str(error.value) == f"chunk 3 of g0.0 cannot come to all who want it: {message}"
