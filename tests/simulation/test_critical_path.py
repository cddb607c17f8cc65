from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.schedules.ir import NONE, Schedule
from dualcoll.schedules.ops import Op
from dualcoll.simulation import Activity, Options, Wait, critical_path, critical_path_text, simulate
from dualcoll.topology.model import Link, SharedCapacity
from tests.simulation.samples import builder, fabric, ring, star
from tests.simulation.test_trace import runs


@given(st.booleans().flatmap(lambda copies: runs(copies=copies)))
@settings(max_examples=50)
def test_steps_cover_the_run_without_a_gap(run: tuple[Schedule, Options]) -> None:
    """§6: from the beginning to the last delivery, each step beginning when the one before ends."""
    schedule, trace = run[0], simulate(*run)
    path = critical_path(trace, schedule)
    assert bool(path) == (schedule.sends > 0)
    if path:
        assert path[0].begin == 0
        assert path[0].wait is Wait.BEGINNING
        assert path[-1].end == trace.finish
        assert all(later.begin == earlier.end for earlier, later in pairwise(path))


@given(st.booleans().flatmap(lambda copies: runs(copies=copies)))
@settings(max_examples=50)
def test_reasons_are_true(run: tuple[Schedule, Options]) -> None:
    """§6: what a step is said to have waited for happened at the moment when it began."""
    schedule, trace = run[0], simulate(*run)
    for step in critical_path(trace, schedule):
        other = step.behind
        if step.wait is Wait.DEPENDENCY:
            assert other in schedule.depends_of(step.send)
            assert trace.end[other] == step.begin == trace.start[step.send]
        elif step.wait is Wait.CHANNEL:
            assert trace.left[other] == step.begin == trace.start[step.send]
        elif step.wait is Wait.PLACE:
            assert trace.end[other] == step.begin == trace.start[step.send]
            assert schedule.src[other] == schedule.src[step.send] or schedule.dst[other] == schedule.dst[step.send]
        elif step.wait is Wait.ROOM:
            assert step.begin in (trace.end[other], trace.start[other])
        elif step.wait is Wait.REDUCER:
            assert trace.reduced[other] == step.begin
            assert schedule.dst[other] == schedule.dst[step.send]
        elif step.wait is Wait.ORDER:
            assert trace.end[other] == step.begin
        elif step.wait is Wait.LINK:
            assert trace.services is not None
            assert step.begin in trace.services.end[trace.services.ptr[other] : trace.services.ptr[other + 1]]
        elif step.wait is Wait.TURN:
            assert run[1].in_order
            assert other < step.send or schedule.multicast[other] != NONE
        elif step.wait is Wait.COPY:
            assert schedule.multicast[other] == schedule.multicast[step.send] != NONE
        else:
            assert other == NONE


@given(st.booleans().flatmap(lambda copies: runs(copies=copies)))
@settings(max_examples=50)
def test_time_on_a_row_is_time_of_its_service(run: tuple[Schedule, Options]) -> None:
    """§6: a step over a row is a service of that send there, in the alpha-beta model."""
    schedule, trace = run[0], simulate(*run)
    services = trace.services
    for step in critical_path(trace, schedule) if services else ():
        if services and step.activity is Activity.LINK:
            own = np.arange(services.ptr[step.send], services.ptr[step.send + 1])
            at = own[services.row[services.place[own]] == step.row]
            assert (step.begin, step.end) in zip(services.begin[at].tolist(), services.end[at].tolist(), strict=True)


def test_a_ring_is_latency_and_links_by_turns() -> None:
    """A chain of dependencies: each step of the ring waits for the one before."""
    schedule = ring(3, 4, 2, 1)
    path = critical_path(simulate(schedule), schedule)
    assert [step.activity for step in path] == [Activity.LINK, Activity.LATENCY] * 4
    assert [step.wait for step in path[2::2]] == [Wait.DEPENDENCY] * 3
    assert [step.begin for step in path] == [0, 2, 3, 5, 6, 8, 9, 11]


def crossing() -> Schedule:
    """Rank 0 and rank 1 send to rank 2 over one link out of the switch; rank 2 passes the later one on to rank 0."""
    built = builder(star(3, 2, 1), [8, 8])
    built.send(0, 2, 0, route=built.route([0, 5]))
    built.send(1, 2, 1, route=built.route([2, 5]))
    built.send(2, 0, 1, Op.COPY, route=built.route([4, 1]))
    return built.build()


def test_the_text_says_where_the_time_went() -> None:
    """The parts, the links, and every step with its reason."""
    schedule = crossing()
    text = critical_path_text(simulate(schedule, Options(overhead=0.5)), schedule)
    assert text == "\n".join(
        [
            "17 s: 70.6 % link, 23.5 % latency, 5.88 % overhead",
            "links: s0 -> g2 47.1 %, s0 -> g0 23.5 %",
            "  0 s to 500 ms: send 0 (rank g0 -> g2, chunk 0), overhead, from the beginning",
            "  500 ms to 1.5 s: send 0 (rank g0 -> g2, chunk 0), latency",
            "  1.5 s to 9.5 s: 2 sends over s0 -> g2, from send 0 to send 1",
            "  9.5 s to 10.5 s: send 1 (rank g1 -> g2, chunk 1), latency",
            "  10.5 s to 11 s: send 2 (rank g2 -> g0, chunk 1), overhead, after send 1 was delivered",
            "  11 s to 12 s: send 2 (rank g2 -> g0, chunk 1), latency",
            "  12 s to 16 s: send 2 (rank g2 -> g0, chunk 1), over s0 -> g0",
            "  16 s to 17 s: send 2 (rank g2 -> g0, chunk 1), latency",
        ]
    )


def test_a_long_text_is_cut_in_the_middle() -> None:
    """The beginning and the end are what people read."""
    schedule = crossing()
    text = critical_path_text(simulate(schedule), schedule, lines=3)
    assert text.splitlines()[2:] == [
        "  0 s to 1 s: send 0 (rank g0 -> g2, chunk 0), latency, from the beginning",
        "  1 s to 9 s: 2 sends over s0 -> g2, from send 0 to send 1",
        "  … 3 more steps …",
        "  15 s to 16 s: send 2 (rank g2 -> g0, chunk 1), latency",
    ]


def test_the_text_names_what_is_no_link() -> None:
    """A shared capacity by its number, a rank's reductions by the rank, a send that takes no time as such."""
    links = [Link(0, 1, 8), Link(1, 0, 8)]
    built = builder(fabric(2, links, shared=[SharedCapacity((0, 1), 2)]), [8])
    built.send(0, 1, 0, Op.REDUCE, route=built.route([0]))
    built.send(1, 1, 0, into=built.scratch(0))
    schedule = built.build()
    text = critical_path_text(simulate(schedule, Options(reduction_speed=2)), schedule)
    assert text == "\n".join(
        [
            "8 s: 50 % link, 50 % reduction",
            "links: shared capacity 0 50 %",
            "  0 s to 4 s: send 0 (rank g0 -> g1, chunk 0), over shared capacity 0, from the beginning",
            "  4 s to 8 s: send 0 (rank g0 -> g1, chunk 0), reduction at g1",
            "  at 8 s: send 1 (rank g1, local, chunk 0 into 1), no time, after send 0 was delivered",
        ]
    )


def test_nothing_to_explain() -> None:
    """Without sends there is no path."""
    schedule = builder(star(), [8]).build()
    assert critical_path_text(simulate(schedule), schedule) == "no time: there are no sends"


@pytest.mark.parametrize("mode", ["alpha-beta", "fluid"])
def test_in_both_models_the_links_of_a_ring_take_the_same(mode: str) -> None:
    """The parts of the time are those of the closed form: 4 latencies of 1 s, 4 times 2 s of bytes."""
    schedule = ring(3, 4, 2, 1)
    path = critical_path(simulate(schedule, Options(mode=mode)), schedule)
    assert sum(step.seconds for step in path if step.activity is Activity.LINK) == 8
    assert sum(step.seconds for step in path if step.activity is Activity.LATENCY) == 4
