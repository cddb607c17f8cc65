"""The linear program without copies: known values, a second model, and the bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.collectives.contract import Contract, make_contract
from dualcoll.errors import InputError
from dualcoll.progress import Meter, Outcome, Seconds, Stop
from dualcoll.time_expanded import flow_lp, static_flow
from dualcoll.time_expanded.flow_demands import demands_of
from dualcoll.time_expanded.flow_lp import FlowSolution, Objective
from dualcoll.time_expanded.flow_model import reach_of
from dualcoll.time_expanded.flow_paths import EpochFlow
from dualcoll.time_expanded.network import SLOWEST, Clock, make_network
from dualcoll.time_expanded.problem import FOREVER, Problem
from dualcoll.topology.model import Kind, Link, Node, Topology
from tests.time_expanded.fabrics import US, dgx1, dgx2, h100, mesh, star
from tests.time_expanded.flows import assert_right, least_epochs, random_problem


def problem_of(
    topology: Topology, chunk: int, collective: str = "alltoall", pieces: int = 1, clock: Clock | None = None
) -> Problem:
    network = make_network(topology, chunk, clock=clock)
    return Problem(network, make_contract(collective, network.ranks, pieces=pieces))


def solved(problem: Problem, objective: Objective = "makespan", horizon: int | None = None) -> FlowSolution:
    found = flow_lp.solve(problem, meter=Meter(Stop()), objective=objective, horizon=horizon)
    assert_right(found.flow)
    assert found.bound <= found.flow.finish
    return found


@pytest.mark.parametrize(
    ("alpha", "pieces", "epochs"),
    [(0.0, 1, 6), (0.0, 2, 11), (0.0, 4, 22), (0.0, 8, 43), (0.7, 1, 8), (0.7, 2, 13), (0.7, 4, 24), (0.7, 8, 45)],
)
def test_dgx1_alltoall(alpha: float, pieces: int, epochs: int) -> None:
    """The known least makespans of AllToAll on a DGX-1, proved at the first horizon tried."""
    found = solved(problem_of(dgx1(alpha * US), 25_000, pieces=pieces))
    assert (found.flow.finish, found.bound, found.outcome, found.tried) == (epochs, epochs, Outcome.OPTIMAL, (epochs,))


def test_star_without_copy() -> None:
    """Figure 2a of the paper: four epochs from s to d1, d2 and d3 where nobody copies."""
    network = make_network(star(), 1_000_000, clock=Clock(copy=False))
    three = Contract("mix", 5, np.zeros(3, np.int32), np.array([2, 3, 4], np.int32))
    found = solved(Problem(network, three))
    assert (found.flow.finish, found.bound, found.flow.seconds) == (4, 4, 4.0)


def test_two_dgx2_boxes() -> None:
    """AllToAll of 32 GPUs with slow epochs: the 256 chunks each way take 32 epochs on 8 links, and one to get there."""
    found = solved(problem_of(dgx2(), 10_000_000, clock=Clock(SLOWEST)))
    assert (found.flow.finish, found.bound, found.outcome) == (33, 33, Outcome.OPTIMAL)


def test_half_chunks_count_half() -> None:
    """Two relays that pass on one half each deliver one chunk, not two: two chunks over two ways of rate 1 take one more."""
    links = [Link(0, 1, 1.0), Link(0, 2, 1.0), Link(1, 3, 1.0), Link(2, 3, 1.0), Link(3, 0, 1.0)]
    topology = Topology(tuple(Node(f"g{i}", Kind.GPU) for i in range(4)), tuple(links))
    for chunks, epochs in ((1, 2), (2, 2), (3, 3), (4, 3)):
        contract = Contract("mix", 4, np.zeros(chunks, np.int32), np.full(chunks, 3, np.int32))
        assert solved(Problem(make_network(topology, 1), contract)).flow.finish == epochs


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_second_model(seed: int) -> None:
    """The makespan is that of the plain model chunk by chunk, and no schedule of whole chunks is faster."""
    problem = random_problem(seed)
    found = solved(problem)
    assert found.flow.finish == found.bound == least_epochs(problem)
    assert found.bound <= least_epochs(problem, whole=True)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_any_prices_bound(seed: int) -> None:
    """Whatever prices are put on rows, what they prove is at most the least makespan."""
    problem = random_problem(seed)
    demands = demands_of(problem)
    prices = np.random.default_rng(seed).random(problem.network.rate.size) ** 4
    assert static_flow.price_bound(demands, reach_of(demands), prices) <= solved(problem).flow.finish


def test_reads_are_early() -> None:
    """The paper's objective reads no later in sum than the flow of least makespan, within the horizon."""
    problem = problem_of(dgx1(), 25_000)

    def worth(flow: EpochFlow) -> float:
        return float((flow.volume / flow.arrival).sum())

    least, paper = solved(problem), solved(problem, "reads", 9)
    assert paper.flow.finish <= 9
    assert worth(paper.flow) > worth(least.flow)


def test_ranks_that_do_not_relay() -> None:
    """Without relays every chunk takes its own link: three chunks on a link of two thirds of the fastest take five epochs."""
    links = [Link(i, j, 1.5 if i < 2 else 1.0) for i in range(4) for j in range(4) if i != j]
    topology = Topology(tuple(Node(f"g{i}", Kind.GPU) for i in range(4)), tuple(links))
    found = solved(problem_of(topology, 1, pieces=3, clock=Clock(relay=False)))
    assert np.all(np.diff(found.flow.ptr) == 1)
    assert found.flow.finish == 5


@pytest.mark.parametrize(("buffer", "epochs"), [(None, 6), (2, 7)])
def test_limited_buffers(buffer: int | None, epochs: int) -> None:
    """AllToAll on a 3x3 grid takes an epoch more where ranks hold two chunks of others at most, and they hold no more."""
    found = solved(problem_of(mesh(3), 1_000, clock=Clock(buffer=buffer)))
    assert found.flow.finish == epochs
    flow, network = found.flow, found.flow.demands.problem.network
    held = np.zeros((network.vertices, epochs + 1))
    for p in range(flow.paths):
        for h in range(flow.ptr[p] + 1, flow.ptr[p + 1]):
            came = flow.epoch[h - 1] + network.delay[flow.arc[h - 1]]
            held[network.tail[flow.arc[h]], came : flow.epoch[h] + 1] += flow.volume[p]
    assert held.max() <= (buffer or np.inf) + 1e-6


def test_releases_and_deadlines() -> None:
    """What is released later starts later, and what is due earlier is there by then."""
    problem = problem_of(dgx1(), 25_000)
    first = problem.source == 0
    solved(replace(problem, release=np.where(first, 2, 0)))
    solved(replace(problem, deadline=np.where(first, 3, FOREVER)))


def test_refusals() -> None:
    """What no flow can do is refused, with what to try."""
    alltoall = problem_of(dgx1(), 25_000)
    cases = {
        "allgather: chunk 0 has 7 receivers, and a flow makes no copies; "
        "use the model with copies, or forbid copying to ranks and switches": problem_of(dgx1(), 25_000, "allgather"),
        "alltoall: no flow meets all deadlines; allow later deadlines": replace(
            alltoall, deadline=np.ones(alltoall.chunks, np.int32)
        ),
        "alltoall: the demands cannot be met without relays; let ranks relay": problem_of(
            dgx1(), 25_000, clock=Clock(relay=False)
        ),
        "mix: there is nothing to send": Problem(
            alltoall.network, Contract("mix", 8, np.zeros(1, np.int32), np.zeros(1, np.int32))
        ),
    }
    for text, problem in cases.items():
        with pytest.raises(InputError) as refused:
            solved(problem)
        assert str(refused.value) == text
    with pytest.raises(InputError) as refused:
        solved(alltoall, "reads", 4)
    assert str(refused.value) == "horizon: no flow is done in 4 epochs; use 6 or more"


def test_steady_where_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Routes of the packing at a constant rate: right, near a bound that the linear program confirms."""
    problem = problem_of(h100(2), 1_000_000)
    known = solved(problem)
    monkeypatch.setattr(static_flow, "SMALL", 0)
    monkeypatch.setattr(flow_lp, "MOST_COLUMNS", 0)
    found = solved(problem)
    assert found.outcome is Outcome.LIMITED
    assert found.tried == ()
    assert found.bound <= known.flow.finish <= found.flow.finish <= 1.2 * found.bound


def test_best_so_far() -> None:
    """When the time is over, a right flow is there with its bound, and everything better was told on the way."""
    told: list[EpochFlow] = []
    problem = problem_of(dgx1(), 25_000, pieces=8)
    found = flow_lp.solve(problem, meter=Meter(Seconds(0.15)), on_improvement=told.append)
    assert found.flow is told[-1]
    assert_right(found.flow)
    assert found.bound <= 43 <= found.flow.finish
    assert found.outcome in (Outcome.TIME, Outcome.OPTIMAL)
