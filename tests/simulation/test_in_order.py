"""Links that serve in the schedule's order, and copies that switches make (docs/simulation.md §3)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.collectives.contract import make_contract
from dualcoll.errors import InputError
from dualcoll.reporting.schedule_page import schedule_page
from dualcoll.reporting.timeline import Sent, timeline
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.schedules.validate import validate
from dualcoll.simulation import Options, critical_path_text, simulate, to_chrome
from dualcoll.topology.model import Kind, Link, Node, SharedCapacity, Topology
from tests.simulation import samples

IN_ORDER = Options(in_order=True)


def star(ranks: int, *, latency: float = 0.0) -> Topology:
    """GPUs around a switch, 1 byte/s; rank r's links are 2 r (up) and 2 r + 1 (down)."""
    nodes = (*(Node(f"g{r}", Kind.GPU) for r in range(ranks)), Node("sw", Kind.SWITCH))
    return Topology(nodes, tuple(Link(a, b, 1.0, latency) for r in range(ranks) for a, b in ((r, ranks), (ranks, r))))


def spread(ranks: int, pieces: int, *, multicast: bool) -> Schedule:
    """A broadcast from rank 0 over the switch, copied there or sent to each."""
    fabric = star(ranks)
    contract = make_contract("broadcast", ranks, pieces=pieces)
    builder = ScheduleBuilder(contract, 10, topology=fabric, nodes=range(ranks))
    for chunk in range(pieces):
        for rank in range(1, ranks):
            route = builder.route([0, 2 * rank + 1])
            builder.send(0, rank, chunk, round=chunk, route=route, multicast=chunk if multicast else -1)
    return builder.build()


def test_switch_copies_serve_once() -> None:
    """What a switch copies takes the shared link once, and is counted once."""
    apart, copied = (simulate(spread(4, 2, multicast=way)) for way in (False, True))
    assert (apart.finish, copied.finish) == (60.0, 20.0)
    assert dict(zip(copied.rows.tolist(), copied.carried.tolist(), strict=True))[0] == 20.0
    assert dict(zip(copied.rows.tolist(), copied.busy.tolist(), strict=True))[0] == 20.0
    assert dict(zip(apart.rows.tolist(), apart.carried.tolist(), strict=True))[0] == 60.0


def test_copies_are_shown(tmp_path: Path) -> None:
    """Each copy stands by itself in timeline, page and events."""
    made = spread(3, 1, multicast=True)
    trace = simulate(made)
    shown = timeline(made)
    assert [cell.sent for cell in shown.cells[0]] == [(Sent(0, 1), Sent(0, 2))]
    schedule_page(made, tmp_path / "page.html", trace)
    assert "<h2>Over which links</h2>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    slices = [event for event in to_chrome(trace, made)["traceEvents"] if event["ph"] == "X"]
    assert [(event["ts"], event["dur"]) for event in slices] == [(0.0, 1e7)] * 2


@pytest.mark.parametrize("links", [(1, 3, 5), (0, 3)])
def test_a_shared_capacity_counts_links(links: tuple[int, ...]) -> None:
    """A shared capacity over several links of the tree carries the data once for each of them."""
    made = spread(4, 1, multicast=True)
    assert made.topology is not None
    made = replace(made, topology=replace(made.topology, shared=(SharedCapacity(links, 1.0),)))
    trace = simulate(made)
    assert (trace.finish, trace.rows[-1], trace.carried[-1], trace.busy[-1]) == (20.0, 8, 20.0, 20.0)


def late_copy(delay: int) -> Schedule:
    """Rank 0 sends 10 bytes to ranks 1 and 2, copied by the switch, to rank 2 only after so many bytes from rank 3."""
    down = {3: Link(4, 1, 10.0), 5: Link(4, 2, 10.0, latency=3.0)}
    fabric = replace(star(4), links=tuple(down.get(i, link) for i, link in enumerate(star(4).links)))
    builder = ScheduleBuilder(make_contract("alltoall", 4), [10] * 12 + [delay] * 4, topology=fabric, nodes=range(4))
    first = builder.send(3, 0, 12, route=builder.route([6, 1]))
    builder.send(0, 1, 2, route=builder.route([0, 3]), multicast=0)
    builder.send(0, 2, 2, route=builder.route([0, 5]), multicast=0, after=[first])
    return builder.build()


@pytest.mark.parametrize(("delay", "end"), [(4, 13), (25, 29)])
def test_a_late_copy_waits_for_itself(delay: int, end: int) -> None:
    """A copy passes with the first one while that is served, in no time after it, and never before it starts."""
    trace = simulate(late_copy(delay))
    assert trace.start.tolist() == [0, 0, delay]
    assert trace.left.tolist() == [delay, 10, max(10, delay)]
    assert trace.end.tolist() == [delay, 10, end]
    assert trace.services is not None
    assert trace.services.own.tolist() == [True] * 4 + [False, True]


def test_the_path_of_a_copy_goes_over_the_first() -> None:
    """A copy that comes while the first one is served is through when that is, which is why."""
    made = late_copy(4)
    assert critical_path_text(simulate(made), made).splitlines()[2:] == [
        "  0 s to 10 s: send 1 (rank g0 -> g1, chunk 2), over g0 -> sw, from the beginning",
        "  10 s to 13 s: send 2 (rank g0 -> g2, chunk 2), latency, with send 1, which it is a copy of",
    ]


def test_copies_that_divide_their_bytes_are_refused() -> None:
    """§9.4 of what schedules mean: nothing says what of them a link carries once."""
    fabric = replace(star(3), links=(*star(3).links, Link(0, 3, 1.0)))
    builder = ScheduleBuilder(make_contract("broadcast", 3), 10, topology=fabric, nodes=range(3))
    builder.send(0, 1, 0, route=builder.route([0, 6, 3], [0.5, 0.5, 1]), multicast=0)
    with pytest.raises(InputError) as raised:
        simulate(builder.build())
    assert str(raised.value) == "send 0 (rank g0 -> g1, chunk 0): switches do not copy what divides its bytes (§9)"


def test_order_is_kept() -> None:
    """A link waits for a send whose turn it is, though another could go first."""
    fabric = Topology(
        tuple(Node(f"g{i}", Kind.GPU) for i in range(3)), (Link(0, 1, 1.0), Link(1, 2, 1.0), Link(2, 1, 1.0))
    )
    builder = ScheduleBuilder(make_contract("alltoall", 3), 10, topology=fabric, nodes=range(3))
    first = builder.send(0, 1, 2, route=builder.route([0]))
    builder.send(1, 2, 2, route=builder.route([1]), after=[first])  # by rank 1 to 2: its turn comes first
    builder.send(1, 2, 5, route=builder.route([1]), channel=1)
    made = builder.build()
    assert simulate(made).start.tolist() == [0.0, 10.0, 0.0]
    assert simulate(made).end.tolist() == [10.0, 20.0, 10.0]
    ordered = simulate(made, IN_ORDER)
    assert ordered.end.tolist() == [10.0, 20.0, 30.0]


def test_reductions_are_in_order() -> None:
    """A rank reduces what comes first last, if that is its turn."""
    builder = ScheduleBuilder(make_contract("allreduce", 3, pieces=2), [9, 3], topology=star(3), nodes=range(3))
    builder.send(0, 2, 0, Op.REDUCE, route=builder.route([0, 5]))
    builder.send(1, 2, 1, Op.REDUCE, route=builder.route([2, 5]))
    made = builder.build()
    fast = tuple(replace(link, capacity=9.0 if link.tail == 3 else link.capacity) for link in star(3).links)
    made = replace(made, topology=replace(star(3), links=fast))
    assert simulate(made, Options(reduction_speed=1.0)).reduced.tolist() == [18.0, 6.0]
    assert simulate(made, Options(reduction_speed=1.0, in_order=True)).reduced.tolist() == [18.0, 21.0]


def test_the_path_names_who_was_first() -> None:
    """A send waits for its turn at all that serves it at once: one of them may be idle meanwhile."""
    nodes = tuple(Node(f"g{i}", Kind.GPU) for i in range(3))
    links = Link(0, 1, 8.0, 5.0), Link(1, 2, 8.0), Link(0, 2, 8.0)
    fabric = Topology(nodes, links, (SharedCapacity((1, 2), 4.0), SharedCapacity((2,), 1.0)))
    builder = ScheduleBuilder(make_contract("alltoall", 3), 8, topology=fabric, nodes=range(3), forwarding=None)
    builder.send(0, 2, 2, route=builder.route([0, 1]))
    builder.send(0, 2, 5, route=builder.route([2]), channel=1)
    made = builder.build()
    assert simulate(made).end.tolist() == [7.0, 8.0]
    trace = simulate(made, IN_ORDER)
    assert trace.end.tolist() == [7.0, 13.0]
    assert critical_path_text(trace, made).splitlines()[2:] == [
        "  0 s to 5 s: send 0 (rank g0 -> g2, chunk 2), latency, from the beginning",
        "  5 s to 13 s: send 1 (rank g0 -> g2, chunk 5), over shared capacity 1, in turn after send 0",
    ]


def random_schedule(random: np.random.Generator) -> Schedule:
    """Sends of an all-gather around a switch, some of them made by it, in any order that can run."""
    ranks = int(random.integers(2, 6))
    fabric = star(ranks, latency=float(random.choice([0.0, 0.5])))
    sizes = random.integers(1, 10, ranks)
    builder = ScheduleBuilder(make_contract("allgather", ranks), sizes, topology=fabric, nodes=range(ranks))
    held = [(r, r) for r in range(ranks)]
    group = 0
    while len(held) < ranks * ranks:
        chunk, src = held[random.integers(len(held))]
        lacking = [r for r in range(ranks) if (chunk, r) not in held]
        some = random.permutation(lacking)[: random.integers(0, len(lacking) + 1)].tolist()
        for dst in some:
            route = builder.route([2 * src, 2 * dst + 1])
            builder.send(src, dst, chunk, route=route, channel=chunk, multicast=group if len(some) > 1 else -1)
            held.append((chunk, dst))
        group += 1
    return builder.build()


def reference(schedule: Schedule) -> list[float]:
    """The end of each send, worked out send by send: every link is free when the send before is through."""
    assert schedule.topology is not None
    free = [0.0] * len(schedule.topology.links)
    served: dict[tuple[int, int], tuple[float, float]] = {}
    left: dict[tuple[int, int, int], float] = {}
    landed: dict[tuple[int, int, int], float] = {}
    ends: list[float] = []
    for send in range(schedule.sends):
        channel = int(schedule.src[send]), int(schedule.dst[send]), int(schedule.channel[send])
        now = max([ends[d] for d in schedule.depends_of(send).tolist()] + [left.get(channel, 0.0)])
        tail = 0.0
        for i, link in enumerate(schedule.routes.of(int(schedule.route[send])).tolist()):
            group = int(schedule.multicast[send])
            size = float(schedule.send_size[send])
            begin, end = served.get((group, link), (0.0, 0.0)) if group >= 0 else (0.0, 0.0)
            if not end:
                begin = max(now, free[link])
                end = free[link] = begin + size
                if group >= 0:
                    served[group, link] = begin, end
            out = max(end, tail)
            if i == 0:
                left[channel] = max(now, out)
            latency = schedule.topology.links[link].latency
            now, tail = max(now, begin + latency), max(tail, out + latency)
        landed[channel] = max(tail, landed.get(channel, 0.0))
        ends.append(landed[channel])
    return ends


@pytest.mark.parametrize("seed", range(60))
def test_against_reference(seed: int) -> None:
    """Served in the order of numbers, every send ends when a plain walk through them says."""
    made = random_schedule(np.random.default_rng(seed))
    validate(made, depth=None)
    assert simulate(made, IN_ORDER).end.tolist() == pytest.approx(reference(made))


@given(samples.schedules(copies=True), st.data())
@settings(max_examples=100)
def test_no_anomaly(schedule: Schedule, data: st.DataObject) -> None:
    """In order, fewer bytes, faster links and reductions, and shorter latencies never make anything later."""
    assert schedule.topology is not None
    smaller = np.array([data.draw(st.integers(0, size)) for size in schedule.chunk_size.tolist()])
    links = tuple(
        replace(
            link,
            capacity=link.capacity * data.draw(st.sampled_from([1, 1, 3])),
            latency=link.latency * data.draw(st.sampled_from([0, 1, 1])),
        )
        for link in schedule.topology.links
    )
    better = replace(schedule, chunk_size=smaller, topology=replace(schedule.topology, links=links))
    before = Options(
        in_order=True,
        cut_through=data.draw(st.booleans()),
        overhead=data.draw(st.sampled_from([0.0, 0.5])),
        reduction_speed=data.draw(st.sampled_from([None, 1.0])),
    )
    after = replace(before, overhead=before.overhead * data.draw(st.sampled_from([0, 1])))
    if before.reduction_speed is not None:
        after = replace(after, reduction_speed=data.draw(st.sampled_from([None, 1.0, 2.0])))
    late, early = simulate(schedule, before), simulate(better, after)
    for moments in ("start", "left", "arrived", "reduced", "end"):
        was, now = getattr(late, moments), getattr(early, moments)
        assert np.all((now <= was + 1e-9) | np.isnan(was))


def refused(schedule: Schedule, chosen: Options) -> str:
    """Why it cannot be simulated."""
    with pytest.raises(InputError) as raised:
        simulate(schedule, chosen)
    return str(raised.value)


def test_who_never_gets_a_turn() -> None:
    """A send that depends on a later one may block a link that this one needs; elsewhere it does not matter."""
    made = spread(3, 2, multicast=False)
    made = replace(made, depends_ptr=np.array([0, 1, 1, 1, 1]), depends=np.array([3], np.int32))
    assert refused(made, IN_ORDER) == (
        "in_order: 4 of 4 sends never get their turn: send 0 (rank g0 -> g1, chunk 0) depends on send 3, whose turn is "
        "later; number sends in an order in which they can run"
    )
    builder = ScheduleBuilder(make_contract("broadcast", 3, pieces=2), 10, topology=star(3), nodes=range(3))
    builder.send(0, 1, 0, route=builder.route([0, 3]))
    builder.send(1, 2, 1, route=builder.route([2, 5]))
    apart = replace(builder.build(), depends_ptr=np.array([0, 1, 1]), depends=np.array([1], np.int32))
    assert simulate(apart, IN_ORDER).end.tolist() == [20.0, 10.0]


def test_room_that_is_made_out_of_turn() -> None:
    """A full channel waits for what goes on from it, that for one before it, which is not in turn before the full channel."""
    builder = ScheduleBuilder(make_contract("broadcast", 3, pieces=3), 10, topology=star(3), nodes=range(3))
    for chunk in range(2):
        builder.send(0, 1, chunk, route=builder.route([0, 3]))
    builder.send(1, 0, 1, route=builder.route([2, 1]))
    for chunk in (2, 0):
        builder.send(1, 2, chunk, route=builder.route([2, 5]))
    made = builder.build()
    assert simulate(made, Options(depth=1)).finish == 30.0
    assert refused(made, Options(depth=1, in_order=True)) == (
        "in_order: 4 of 5 sends never get their turn: channels of depth 1 wait for sends whose turn is later to make room; "
        "leave out depth"
    )


def test_what_does_not_go_together() -> None:
    """The fluid model has no order and no copies; places of ranks go to who asks first."""
    with pytest.raises(InputError) as raised:
        Options(mode="fluid", in_order=True)
    assert str(raised.value) == "in_order: links share in the fluid model; use alpha-beta"
    with pytest.raises(InputError) as raised:
        Options(concurrency=1, in_order=True)
    assert str(raised.value) == (
        "in_order: with concurrency, places go to who asks first, whatever the order; leave out one of the two"
    )
    text = "multicast: the fluid model knows no copies made by switches; use alpha-beta"
    assert refused(spread(3, 1, multicast=True), Options(mode="fluid")) == text
