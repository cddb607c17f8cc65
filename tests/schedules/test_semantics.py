"""Validation against the semantics in plain Python, on random schedules that are mostly wrong."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.errors import CheckFailed
from dualcoll.schedules.ir import Schedule, previous_on_channel
from dualcoll.schedules.order import running_order
from tests.schedules.reference import expected_sections, happens_before, races, runs
from tests.schedules.samples import csr, findings, programs, ring, sections


@st.composite
def tangles(draw: st.DrawFn) -> Schedule:
    """A program whose dependencies are thinned out or drawn anew, forwards and backwards."""
    schedule = draw(programs())
    sends = schedule.sends
    if sends == 0 or draw(st.integers(0, 3)) == 0:
        return schedule
    rows = [[d for d in schedule.depends_of(s).tolist() if draw(st.integers(0, 3))] for s in range(sends)]
    for _ in range(draw(st.integers(0, 2))):
        s, d = draw(st.integers(0, sends - 1)), draw(st.integers(0, sends - 1))
        if d != s and d not in rows[s]:
            rows[s].append(d)
    return replace(schedule, **csr(rows))


@given(tangles())
@settings(max_examples=300)
def test_findings_cite_what_the_semantics_say(schedule: Schedule) -> None:
    """Validation finds a violation of a section exactly where the plain reading of the sections has one."""
    expected = expected_sections(schedule)
    found = sections(findings(schedule, depth=None))
    assert found >= expected
    if expected != {6}:  # what a race leaves behind depends on the order that was tried
        assert found == expected


@given(programs())
@settings(max_examples=100)
def test_the_builder_leaves_no_race(schedule: Schedule) -> None:
    """Dependencies that the builder derives order every conflict, in the order in which the sends were added."""
    before = happens_before(schedule)
    assert not before.diagonal().any()
    assert not races(schedule, before)
    assert 6 not in sections(findings(schedule, depth=None))


@given(tangles(), st.integers(1, 3), st.integers(0, 9))
@settings(max_examples=200)
def test_deadlocks_are_those_of_the_token_game(schedule: Schedule, depth: int, seed: int) -> None:
    """Channels of a depth run dry in the check exactly when sends that take and free places one by one get stuck."""
    try:
        order = running_order(schedule, depth)
    except CheckFailed:
        assert not runs(schedule, depth, seed)
    else:
        assert runs(schedule, depth, seed)
        assert sorted(order.tolist()) == list(range(schedule.sends))


@given(programs(), st.randoms())
@settings(max_examples=60)
def test_numbers_do_not_order_sends(schedule: Schedule, rng: random.Random) -> None:
    """A schedule whose sends are renumbered is as right as before if channels keep their order."""
    lines: dict[tuple[int, ...], list[int]] = {}
    for s in range(schedule.sends):
        key = (int(schedule.src[s]), int(schedule.dst[s]), int(schedule.channel[s]))
        lines.setdefault(key if key[0] != key[1] else (s,), []).append(s)
    order: list[int] = []
    waiting = [list(line) for line in lines.values()]
    while any(waiting):
        order.append(rng.choice([line for line in waiting if line]).pop(0))
    new = {send: i for i, send in enumerate(order)}
    columns: dict[str, Any] = {
        name: getattr(schedule, name)[order] for name in ("src", "dst", "chunk", "into", "op", "channel")
    }
    moved = replace(
        schedule,
        **columns,
        **csr([[new[d] for d in schedule.depends_of(send).tolist()] for send in order]),
    )
    assert sections(findings(moved)) == sections(findings(schedule))


def test_previous_on_channel_counts_places() -> None:
    """The send some places before is that of the same source, destination and channel number."""
    schedule = ring(3)
    assert previous_on_channel(schedule).tolist() == [-1, -1, -1, *range(9)]
    assert previous_on_channel(schedule, 3).tolist() == [-1] * 9 + [0, 1, 2]
    apart = replace(schedule, channel=np.repeat([0, 1], 6))
    assert previous_on_channel(apart).tolist() == [-1, -1, -1, 0, 1, 2, -1, -1, -1, 6, 7, 8]


@pytest.mark.parametrize("ranks", [2, 3, 4, 9])
def test_a_ring_needs_two_places(ranks: int) -> None:
    """Around a ring every channel of one place fills with a first send that only the next rank's second could free."""
    assert findings(ring(ranks), depth=2) == ()
    assert sections(findings(ring(ranks), depth=1)) == {5}
