"""A right schedule with one thing changed: every change is found, under the section that it violates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dualcoll.collectives.contract import make_contract
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Routes, Schedule
from dualcoll.schedules.ops import Op
from dualcoll.schedules.routed import routed
from tests.schedules.reference import happens_before
from tests.schedules.samples import all_to_all, csr, edited, findings, loop, ring, sections, star, swap

rings = st.integers(3, 6).map(ring)


def tree(ranks: int) -> Schedule:
    """AllReduce in four chunks over a binary tree, each chunk down as soon as it is up."""
    builder = ScheduleBuilder(make_contract("allreduce", ranks, pieces=4), 8, name="tree")
    for chunk in range(4):
        for rank in range(ranks - 1, 0, -1):
            builder.send(rank, (rank - 1) // 2, chunk, Op.REDUCE)
        for rank in range(1, ranks):
            builder.send((rank - 1) // 2, rank, chunk)
    return builder.build()


minimal = st.one_of(rings, st.integers(2, 9).map(tree), st.integers(2, 4).map(all_to_all), st.just(swap()))


@given(minimal)
@settings(max_examples=20)
def test_what_is_changed_below_is_right(schedule: Schedule) -> None:
    """The schedules that are mutated have nothing to find."""
    assert findings(schedule) == ()


@given(minimal, st.data())
@settings(max_examples=60)
def test_a_dropped_send_is_missed(schedule: Schedule, data: st.DataObject) -> None:
    """Without any one of its sends a schedule sends what is not there, or ends without a promised contribution."""
    gone = data.draw(st.integers(0, schedule.sends - 1))
    texts = findings(edited(schedule, [s for s in range(schedule.sends) if s != gone]))
    assert texts
    assert sections(texts) <= {4, 6, 7}
    assert sections(texts) & {4, 7}


@given(minimal, st.data())
@settings(max_examples=60)
def test_a_doubled_reduction_is_counted(schedule: Schedule, data: st.DataObject) -> None:
    """A reduction done again, in order, counts a contribution twice, and says whose."""
    assume(np.any(schedule.op == Op.REDUCE))
    again = data.draw(st.sampled_from(np.flatnonzero(schedule.op == Op.REDUCE).tolist()))
    order = np.repeat(np.arange(schedule.sends), 1 + (np.arange(schedule.sends) == again))
    builder = ScheduleBuilder(schedule.contract, schedule.chunk_size)
    builder.extend(
        schedule.src[order], schedule.dst[order], schedule.chunk[order], schedule.op[order], into=schedule.into[order]
    )
    texts = findings(builder.build(), depth=None)
    assert sections(texts) == {4}
    assert f"send {again + 1} " in texts[0]
    assert texts[0].endswith("is counted twice (§4)")


@given(rings, st.data())
@settings(max_examples=60)
def test_swapped_sends_are_found(schedule: Schedule, data: st.DataObject) -> None:
    """Two sends of a ring that take each other's chunk race, come too early, or leave results incomplete."""
    one = data.draw(st.integers(0, schedule.sends - 1))
    other = data.draw(st.integers(0, schedule.sends - 1))
    assume(schedule.chunk[one] != schedule.chunk[other])
    chunk = schedule.chunk.copy()
    chunk[[one, other]] = chunk[[other, one]]
    texts = findings(replace(schedule, chunk=chunk, into=chunk))
    assert texts
    assert sections(texts) <= {4, 6, 7}


@given(rings, st.data())
@settings(max_examples=40)
def test_a_copy_for_a_reduction_loses_contributions(schedule: Schedule, data: st.DataObject) -> None:
    """A reduction that overwrites instead takes the destination's contribution out of the result."""
    send = data.draw(st.sampled_from(np.flatnonzero(schedule.op == Op.REDUCE).tolist()))
    op = schedule.op.copy()
    op[send] = Op.COPY
    assert sections(findings(replace(schedule, op=op))) == {7}


@given(rings, st.data())
@settings(max_examples=60)
def test_a_channel_out_of_order_deadlocks(schedule: Schedule, data: st.DataObject) -> None:
    """Two sends of one channel that change places, where one comes of the other, wait for each other."""
    before = happens_before(schedule, channels=False)
    pairs = [
        (a, b)
        for a in range(schedule.sends)
        for b in range(schedule.sends)
        if before[2 * a + 1, 2 * b] and schedule.src[a] == schedule.src[b]
    ]
    first, second = data.draw(st.sampled_from(pairs))
    order = list(range(schedule.sends))
    order[first], order[second] = second, first
    texts = findings(edited(schedule, order))
    assert sections(texts) - {8} == {5}
    assert texts[0].startswith("deadlock of in-order channels: send ")


@given(rings, st.data())
@settings(max_examples=40)
def test_a_circle_of_dependencies_is_found(schedule: Schedule, data: st.DataObject) -> None:
    """A send that depends on what comes of it can never start."""
    first = data.draw(st.sampled_from(np.unique(schedule.depends).tolist()))
    then = data.draw(st.sampled_from([s for s in range(schedule.sends) if first in schedule.depends_of(s)]))
    rows = [schedule.depends_of(s).tolist() for s in range(schedule.sends)]
    rows[first].append(then)
    texts = findings(replace(schedule, **csr(rows)))
    assert sections(texts) - {8} == {6}
    assert texts[-1].startswith("dependency cycle: send ")


@pytest.mark.parametrize("fabric", [star(4), loop(4)], ids=["star", "loop"])
@given(data=st.data())
@settings(max_examples=40)
def test_a_missing_link_is_found(fabric: object, data: st.DataObject) -> None:
    """A route of which one link is another's, left out, or doubled is no path between the ends of its sends."""
    schedule = routed(ring(4), star(4) if fabric == star(4) else loop(4))
    assert findings(schedule) == ()
    assert schedule.topology is not None
    links, ptr = schedule.routes.links.tolist(), schedule.routes.ptr.copy()
    at = data.draw(st.integers(0, len(links) - 1))
    kind = data.draw(st.sampled_from(["other", "gone", "doubled"]))
    route = int(np.searchsorted(ptr, at, side="right")) - 1
    if kind == "other":
        others = [e for e in range(len(schedule.topology.links)) if e != links[at]]
        links[at] = data.draw(st.sampled_from(others))
    elif kind == "gone":
        del links[at]
        ptr[route + 1 :] -= 1
    else:
        links.insert(at, links[at])
        ptr[route + 1 :] += 1
    broken = replace(schedule, routes=Routes(ptr, np.array(links, np.int32)))
    texts = findings(broken)
    assert sections(texts) == {9}
    assert all("its route" in text and text.startswith("send ") for text in texts)
