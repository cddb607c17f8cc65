from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dualcoll.collectives.contract import make_contract
from dualcoll.errors import CheckFailed, InputError
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import NONE, Schedule
from dualcoll.schedules.order import running_order
from dualcoll.simulation import Options, Trace, simulate
from dualcoll.topology.arrays import fabric_arrays
from tests.simulation.samples import builder, options, ring, schedules, star

MODES = [Options(), Options(cut_through=False), Options(mode="fluid"), Options(mode="fluid", coupling="tree")]


@st.composite
def runs(draw: st.DrawFn, copies: bool = False) -> tuple[Schedule, Options]:
    """A schedule and options under which it can run; with ``copies`` made by switches always in the alpha-beta model."""
    mode = "alpha-beta" if copies else draw(st.sampled_from(["alpha-beta", "fluid"]))
    schedule, chosen = draw(schedules(copies=copies)), draw(options(mode))
    try:
        running_order(schedule, chosen.depth)
    except CheckFailed:
        assume(False)
    return schedule, chosen


def loads(schedule: Schedule, send: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The part of a send on each capacity row."""
    assert schedule.topology is not None
    fabric = fabric_arrays(schedule.topology)
    links = np.zeros(fabric.links)
    if schedule.src[send] != schedule.dst[send]:
        route = int(schedule.route[send])
        links[schedule.routes.of(route)] = schedule.routes.shares(route)
    return fabric.row_loads(links)


@given(runs())
@settings(max_examples=50)
def test_rows_carry_what_the_schedule_puts_there(run: tuple[Schedule, Options]) -> None:
    """§6: bytes of each row are those of the sends on it, and take their bytes over the capacity."""
    schedule, trace = run[0], simulate(*run)
    assert schedule.topology is not None
    carried = np.zeros(fabric_arrays(schedule.topology).capacity.size)
    for send in range(schedule.sends):
        carried += loads(schedule, send) * schedule.send_size[send]
    capacity = fabric_arrays(schedule.topology).capacity
    assert trace.carried.tolist() == carried[trace.rows].tolist()
    assert trace.busy == pytest.approx(carried[trace.rows] / capacity[trace.rows], rel=1e-9)


@given(runs(copies=True))
@settings(max_examples=50)
def test_rows_carry_copies_once(run: tuple[Schedule, Options]) -> None:
    """§3: bytes that come to a link once count once there, and at each of its shared capacities."""
    schedule, trace = run[0], simulate(*run)
    assert schedule.topology is not None
    fabric = fabric_arrays(schedule.topology)
    carried = np.zeros(fabric.capacity.size)
    seen: set[tuple[int, int]] = set()
    for send in np.flatnonzero(schedule.src != schedule.dst).tolist():
        group, route = int(schedule.multicast[send]), int(schedule.route[send])
        links = np.zeros(fabric.links)
        for link, share in zip(schedule.routes.of(route).tolist(), schedule.routes.shares(route), strict=True):
            links[link] = 0 if group != NONE and (group, link) in seen else share
            seen.add((group, link))
        carried += fabric.row_loads(links) * schedule.send_size[send]
    assert trace.carried.tolist() == carried[trace.rows].tolist()
    assert trace.busy == pytest.approx(carried[trace.rows] / fabric.capacity[trace.rows], rel=1e-9)
    assert np.all(trace.end >= trace.start)


@given(runs())
@settings(max_examples=50)
def test_rows_never_carry_more_than_they_can(run: tuple[Schedule, Options]) -> None:
    """§7.1: in no bin of time and not over the run; the bins cover it and sum to what was used."""
    trace = simulate(*run)
    assert np.all(trace.busy <= trace.finish * (1 + 1e-9))
    assert np.all(trace.utilisation <= 1 + 1e-9)
    assert trace.utilisation.sum(axis=1) * trace.bin_width == pytest.approx(trace.busy)
    if trace.finish > 0:
        assert trace.utilisation.shape[1] * trace.bin_width >= trace.finish * (1 - 1e-9)


@given(runs())
@settings(max_examples=50)
def test_no_send_is_faster_than_its_route(run: tuple[Schedule, Options]) -> None:
    """§7.2: overhead, latencies of a path, and the slowest link, nor than any row; and moments come in order."""
    schedule, chosen = run
    trace = simulate(*run)
    assert schedule.topology is not None
    fabric = fabric_arrays(schedule.topology)
    for send in np.flatnonzero(schedule.src != schedule.dst).tolist():
        part = loads(schedule, send)
        whole = part[: fabric.links] == 1
        seconds = schedule.send_size[send] * part / fabric.capacity
        least = chosen.overhead + fabric.latency[whole].sum() + seconds[: fabric.links].max()
        assert trace.end[send] - trace.start[send] >= max(least, seconds.max()) * (1 - 1e-9)
    moved = schedule.src != schedule.dst
    moments = [trace.start[moved], trace.left[moved], trace.arrived[moved], trace.reduced[moved], trace.end[moved]]
    assert all(np.all(after >= before) for before, after in pairwise(moments))


@given(runs())
@settings(max_examples=50)
def test_a_run_can_be_repeated(run: tuple[Schedule, Options]) -> None:
    """§1: the same input gives the same trace, digit by digit."""
    first, second = simulate(*run), simulate(*run)
    for name in ("start", "end", "utilisation", "rank_finish"):
        assert np.array_equal(getattr(first, name), getattr(second, name))


@given(runs(), st.sampled_from([2, 4]))
@settings(max_examples=50)
def test_time_grows_with_size_where_there_is_no_latency(run: tuple[Schedule, Options], factor: int) -> None:
    """§7.3: without latencies and overhead, so many times the bytes take so many times the time."""
    schedule, chosen = run
    assert schedule.topology is not None
    links = tuple(replace(link, latency=0) for link in schedule.topology.links)
    small = replace(schedule, topology=replace(schedule.topology, links=links))
    large = replace(small, chunk_size=factor * small.chunk_size)
    chosen = replace(chosen, overhead=0.0)
    assert simulate(large, chosen).finish == pytest.approx(factor * simulate(small, chosen).finish)


@given(st.integers(2, 5), st.integers(0, 1000), st.integers(0, 1000), st.sampled_from(MODES))
def test_time_grows_with_size_where_links_keep_their_order(ranks: int, size: int, more: int, chosen: Options) -> None:
    """§7: around a ring more bytes take longer."""
    small, large = (simulate(ring(ranks, s, 1e9, 1e-6), chosen).finish for s in (size, size + more))
    assert small < large if more else small == large


def test_a_trace_cannot_be_changed() -> None:
    """Columns are read-only."""
    trace: Trace = simulate(ring(2, 8, 1, 0))
    with pytest.raises(ValueError, match="read-only"):
        trace.end[0] = 1


def test_a_schedule_needs_a_fabric() -> None:
    """§1: without links nothing has a time."""
    built = ScheduleBuilder(make_contract("allreduce", 2), 8)
    with pytest.raises(InputError) as caught:
        simulate(built.build())
    assert str(caught.value) == (
        "the schedule is on no fabric, so nothing says how long a send takes; "
        "schedules of plans stand on one; lay others on one with dualcoll.schedules.routed.routed in Python"
    )


@pytest.mark.parametrize("empty", [False, True])
def test_a_send_needs_a_route(empty: bool) -> None:
    """Neither no route nor an empty one will do."""
    built = builder(star(2), [8])
    built.send(0, 1, 0, route=built.route([]) if empty else NONE)
    with pytest.raises(InputError) as caught:
        simulate(built.build())
    assert str(caught.value) == "send 0 (rank g0 -> g1, chunk 0): it has no route (§9)"


def test_a_sprayed_route_has_no_circle() -> None:
    """Levels would have no end."""
    built = builder(star(2), [8])
    built.send(0, 1, 0, route=built.route([0, 1, 3], [1, 0.5, 0.5]))
    with pytest.raises(InputError) as caught:
        simulate(built.build())
    assert str(caught.value) == "route 0: its links form a circle (§9)"


def _circle(built: ScheduleBuilder) -> Schedule:
    schedule = built.build()
    return replace(
        schedule, depends_ptr=np.array([0, 1, 2, 2]), depends=np.array([1, 0], np.int32)
    )  # the first two wait for each other


def _channel(built: ScheduleBuilder) -> Schedule:
    schedule = built.build()
    return replace(schedule, depends_ptr=np.array([0, 1, 1, 1]), depends=np.array([2], np.int32))


@pytest.mark.parametrize(("spoil", "stuck", "kind"), [(_circle, 3, "dependency cycle"), (_channel, 2, "deadlock")])
@pytest.mark.parametrize("chosen", MODES)
def test_sends_that_wait_for_each_other_are_refused(
    spoil: Callable[[ScheduleBuilder], Schedule], stuck: int, kind: str, chosen: Options
) -> None:
    """§1: with the circle, as a validation has it, and no hang."""
    built = builder(star(2), [8, 8])
    built.send(0, 1, 0, route=built.route([0, 3]))
    built.send(1, 0, 0, route=built.route([2, 1]))
    built.send(0, 1, 1, route=built.route([0, 3]))
    _refused(spoil(built), chosen, stuck, kind)


@pytest.mark.parametrize("mode", ["alpha-beta", "fluid"])
def test_a_channel_too_short_is_a_deadlock(mode: str) -> None:
    """§2.3: around a ring a channel with one place is full with what only itself could empty."""
    chosen = Options(mode=mode, depth=1)
    _refused(ring(3, 8, 1, 0), chosen, 9, "deadlock of in-order channels of depth 1")


def _refused(schedule: Schedule, chosen: Options, stuck: int, kind: str) -> None:
    with pytest.raises(CheckFailed) as circle:
        running_order(schedule, chosen.depth)
    assert circle.value.findings[0].startswith(kind)
    with pytest.raises(InputError) as caught:
        simulate(schedule, chosen)
    text = f"the schedule: {stuck} of {schedule.sends} sends can never start; {circle.value.findings[0]}"
    assert str(caught.value) == text


def test_times_beyond_all_doubles_are_refused() -> None:
    """A capacity of next to nothing makes no number."""
    built = builder(star(2, 1e-308), [2**40])
    built.send(0, 1, 0, route=built.route([0, 3]))
    with pytest.raises(InputError) as caught:
        simulate(built.build())
    assert str(caught.value) == "the sends take more seconds than a double can hold; capacities are in bytes/s"


@pytest.mark.parametrize(
    ("given_options", "text"),
    [
        ({"mode": "exact"}, "mode: 'exact' is not known; use one of alpha-beta, fluid"),
        ({"coupling": "both"}, "coupling: 'both' is not known; use one of flow, tree"),
        ({"protocol": "LL64"}, "protocol: 'LL64' is not known; use one of ll, ll128, simple"),
        ({"depth": 0}, "depth: 0 sends at once are too few; use 1 or more"),
        ({"concurrency": -1}, "concurrency: -1 sends at once are too few; use 1 or more"),
        ({"overhead": -1.0}, "overhead: -1.0 s is not a finite number >= 0"),
        ({"overhead": float("nan")}, "overhead: nan s is not a finite number >= 0"),
        ({"reduction_speed": 0.0}, "reduction_speed: 0.0 bytes/s is not a finite number > 0"),
        ({"reduction_speed": float("inf")}, "reduction_speed: inf bytes/s is not a finite number > 0"),
    ],
)
def test_options_out_of_range_are_refused(given_options: dict[str, Any], text: str) -> None:
    """Each with its name, its value and what can be had instead."""
    with pytest.raises(InputError) as caught:
        Options(**given_options)
    assert str(caught.value) == text
