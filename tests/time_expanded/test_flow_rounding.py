"""Whole chunks out of flows: every rule holds, and the loss is what is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.collectives.contract import Contract
from dualcoll.errors import InputError
from dualcoll.progress import Gap, Meter, Stop
from dualcoll.time_expanded import flow_lp, flow_rounding
from dualcoll.time_expanded.check import violations
from dualcoll.time_expanded.flow_rounding import Rounded, whole_chunks
from dualcoll.time_expanded.network import Clock, make_network
from dualcoll.time_expanded.problem import Problem
from dualcoll.topology.model import Kind, Link, Node, SharedCapacity, Topology
from tests.time_expanded.fabrics import US, dgx1, h100, mesh
from tests.time_expanded.flows import least_epochs, random_problem
from tests.time_expanded.test_flow_lp import problem_of


def rounded(problem: Problem, stop: Stop | None = None) -> Rounded:
    found = whole_chunks(flow_lp.solve(problem, meter=Meter(stop or Stop())))
    assert violations(found.schedule) == []
    assert found.bound <= found.schedule.finish
    assert found.loss == found.schedule.finish / found.flow - 1
    return found


@pytest.mark.parametrize("alpha", [0.0, 0.7])
@pytest.mark.parametrize("pieces", [1, 2, 4, 8])
def test_dgx1_alltoall(alpha: float, pieces: int) -> None:
    """At most an epoch is lost on a DGX-1."""
    found = rounded(problem_of(dgx1(alpha * US), 25_000, pieces=pieces))
    assert found.schedule.finish <= found.flow + 1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random(seed: int) -> None:
    """Schedules on small networks are right and no faster than the best, at rates of 1, 1.5, 2 and 4 to 1 and others."""
    problem = random_problem(seed)
    assert rounded(problem).schedule.finish >= least_epochs(problem, whole=True)


def test_flow_of_whole_chunks_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow whose volumes are whole is the schedule, without another one being sought."""
    monkeypatch.setattr(flow_rounding, "ways_of", None)
    links = [Link(i, (i + 1) % 3, 1.0) for i in range(3)]
    ring = Topology(tuple(Node(f"g{i}", Kind.GPU) for i in range(3)), tuple(links))
    assert rounded(problem_of(ring, 1, pieces=2)).loss == 0


@pytest.mark.parametrize("buffer", [1, 2])
def test_limited_buffers(buffer: int) -> None:
    """Where buffers are limited, whole chunks stay within them."""
    rounded(problem_of(mesh(3), 1_000, clock=Clock(buffer=buffer)))


def test_boxes_to_a_percent() -> None:
    """AllToAll on 32 GPUs in four boxes, steady: whole chunks reach the bound to a percent, and do better than the flow."""
    found = rounded(problem_of(h100(4), 1_000_000), Gap(0.05))
    assert found.gap <= 0.01
    assert found.loss <= 0


@pytest.mark.parametrize("multiplier", [2, 4])
def test_longer_epochs(multiplier: int) -> None:
    """Epochs that are several times as long lose little on AllToAll."""
    assert rounded(problem_of(h100(4), 1_000_000, clock=Clock(multiplier=multiplier)), Gap(0.05)).gap <= 0.02


def test_way_that_no_whole_chunk_takes() -> None:
    """A chunk that would cross one slow capacity twice at once is refused by name."""
    nodes = (Node("a", Kind.GPU), Node("b", Kind.GPU), Node("s", Kind.SWITCH))
    links = (Link(0, 2, 4.0), Link(2, 1, 4.0), Link(1, 0, 4.0))
    topology = Topology(nodes, links, (SharedCapacity((0, 1), 2.0),))
    network = make_network(topology, 1, clock=Clock(epoch=0.25))
    problem = Problem(network, Contract("mix", 2, np.zeros(3, np.int32), np.ones(3, np.int32)))
    with pytest.raises(InputError) as refused:
        rounded(problem)
    assert str(refused.value) == (
        "rounding: a whole chunk goes twice over shared capacity 0 within 2 epochs, where 1 fit; "
        "use longer epochs or smaller chunks"
    )
