"""One case for each rule of docs/simulation.md, computed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.simulation import Options, Trace, simulate
from dualcoll.topology.model import Kind, Link, Node, SharedCapacity, Topology
from tests.simulation.samples import builder, fabric, ring, star

FLUID = Options(mode="fluid")
TREE = Options(mode="fluid", coupling="tree")
STORE = Options(cut_through=False)


def ends(schedule: Schedule, options: Options | None = None) -> list[float]:
    return list(simulate(schedule, options).end.tolist())


def line(*capacities: float, latency: float = 0.0) -> Topology:
    """Rank 0, switches and rank 1 in a row: link i has the i-th capacity."""
    nodes = [0, *range(2, 1 + len(capacities)), 1]
    links = [Link(tail, head, room, latency) for tail, head, room in zip(nodes, nodes[1:], capacities, strict=False)]
    return fabric(2, links, len(capacities) - 1)


def over_all(topology: Topology, size: int, times: int = 1, channels: Sequence[int] = (0,)) -> Schedule:
    """Sends from rank 0 to rank 1 over all links in order, the channels by turns; each of a chunk of its own."""
    built = builder(topology, [size] * times)
    for chunk in range(times):
        route = built.route(range(len(topology.links)))
        built.send(0, 1, chunk, route=route, channel=channels[chunk % len(channels)])
    return built.build()


def test_cut_through_takes_the_latencies_and_the_slowest_link() -> None:
    """§3: slow, fast, slow: 3 latencies of 1 s and 8 bytes at 2 bytes/s."""
    assert ends(over_all(line(2, 8, 2, latency=1), 8)) == [7]


def test_store_and_forward_takes_every_link() -> None:
    """§3: 4 + 1 + 4 s of bytes and 3 latencies of 1 s."""
    assert ends(over_all(line(2, 8, 2, latency=1), 8), STORE) == [12]


def test_fluid_takes_the_latencies_and_the_slowest_link() -> None:
    """§4: the rate is that of the slowest link."""
    assert ends(over_all(line(2, 8, 2, latency=1), 8), FLUID) == [7]


def test_a_link_serves_one_after_the_other() -> None:
    """§3: two channels ready at once: the lower number first, then the other."""
    assert ends(over_all(line(2), 8, 2, channels=(0, 1))) == [4, 8]


def test_sends_share_a_link_in_the_fluid_model() -> None:
    """§4: two channels get half of the link each."""
    assert ends(over_all(line(2), 8, 2, channels=(0, 1)), FLUID) == [8, 8]


def test_a_channel_puts_one_send_on_the_network_at_a_time() -> None:
    """§2.2: in the fluid model two sends of one channel do not share the link, but follow each other, latencies overlapping."""
    assert ends(over_all(line(2, latency=3), 8, 2), FLUID) == [7, 11]
    assert ends(over_all(line(2, latency=3), 8, 2)) == [7, 11]


def test_channels_take_turns() -> None:
    """§2.2: a channel's second send asks for the link only after its first, so another channel's first comes between."""
    assert ends(over_all(line(2), 8, 4, channels=(0, 0, 1, 1))) == [4, 12, 8, 16]


def test_who_comes_first_is_served_first() -> None:
    """§3: rank 1's send is short of its own link, comes to the common one first, and goes first in spite of its number."""
    links = [Link(0, 3, 1, 5), Link(1, 3, 1, 1), Link(3, 2, 1)]
    built = builder(fabric(3, links, 1), [4, 4])
    built.send(0, 2, 0, route=built.route([0, 2]))
    built.send(1, 2, 1, route=built.route([1, 2]))
    assert ends(built.build()) == [9, 5]


def test_a_slow_send_takes_little_of_a_fast_link() -> None:
    """§3: 8 bytes that trickle in at 1 byte/s hold a link of 8 bytes/s for 1 s; one behind them need not wait."""
    links = [Link(0, 3, 1), Link(1, 3, 8), Link(3, 2, 8)]
    built = builder(fabric(3, links, 1), [8, 8])
    built.send(0, 2, 0, route=built.route([0, 2]))
    built.send(1, 2, 1, route=built.route([1, 2]))
    trace = simulate(built.build())
    assert trace.end.tolist() == [8, 2]
    assert trace.busy.tolist() == [8, 1, 2]


def test_a_send_waits_for_what_it_depends_on() -> None:
    """§2.1: the second hop of a chunk starts when the first is delivered."""
    built = builder(star(3, 2, 1), [8])
    built.send(0, 1, 0, route=built.route([0, 3]))
    built.send(1, 2, 0, route=built.route([2, 5]))
    assert simulate(built.build()).start.tolist() == [0, 6]


def test_delivery_is_in_order_on_a_channel() -> None:
    """§2: the second send takes a shorter way and arrives first, and counts as delivered only with the first."""
    links = [Link(0, 2, 4, 9), Link(2, 1, 4), Link(0, 1, 4)]
    built = builder(fabric(2, links, 1), [4, 4])
    built.send(0, 1, 0, route=built.route([0, 1]))
    built.send(0, 1, 1, route=built.route([2]))
    trace = simulate(built.build())
    assert trace.arrived.tolist() == [10, 2]
    assert trace.end.tolist() == [10, 10]


def test_depth_holds_a_channel_back() -> None:
    """§2.3: with two places the third send waits until the first is delivered and passed on, here behind a slow link."""
    links = [Link(0, 1, 8), Link(1, 2, 1)]
    built = builder(fabric(3, links), [8] * 4)
    for chunk in range(4):
        built.send(0, 1, chunk, route=built.route([0]))
        built.send(1, 2, chunk, route=built.route([1]))
    free, held = simulate(built.build()), simulate(built.build(), Options(depth=2))
    assert free.start[::2].tolist() == [0, 1, 2, 3]
    assert held.start[::2].tolist() == [0, 1, 2, 9]
    assert held.start[1::2].tolist() == [1, 9, 17, 25]


def test_overhead_is_spent_by_the_channel() -> None:
    """§2: 1 s before each send's first byte; the next send of the channel is taken up when the one before has left."""
    trace = simulate(over_all(line(2), 8, 2), Options(overhead=1))
    assert trace.start.tolist() == [0, 5]
    assert trace.end.tolist() == [5, 10]


@pytest.mark.parametrize("options", [Options(concurrency=1), Options(mode="fluid", concurrency=1)])
def test_concurrency_limits_the_sends_of_a_rank(options: Options) -> None:
    """§2: rank 0 sends to three others, one at a time, though it has a link to each."""
    built = builder(fabric(4, [Link(0, i, 1) for i in (1, 2, 3)]), [4])
    for dst in (1, 2, 3):
        built.send(0, dst, 0, route=built.route([dst - 1]))
    assert ends(built.build(), options) == [4, 8, 12]


def test_concurrency_counts_what_comes_in() -> None:
    """§2: three ranks send to one, which takes them one at a time."""
    built = builder(fabric(4, [Link(i, 0, 1) for i in (1, 2, 3)]), [4])
    for src in (1, 2, 3):
        built.send(src, 0, 0, Op.REDUCE, route=built.route([src - 1]))
    assert ends(built.build(), Options(concurrency=1)) == [4, 8, 12]


@pytest.mark.parametrize("mode", ["alpha-beta", "fluid"])
def test_reductions_of_a_rank_follow_each_other(mode: str) -> None:
    """§2: both sends arrive at 4 s; 8 bytes at 2 bytes/s are 4 s more, for one after the other. Copies take none."""
    links = [Link(0, 2, 2), Link(1, 2, 2), Link(2, 0, 2)]
    built = builder(fabric(3, links), [8])
    built.send(0, 2, 0, Op.REDUCE, route=built.route([0]))
    built.send(1, 2, 0, Op.REDUCE, route=built.route([1]))
    built.send(2, 0, 0, Op.COPY, route=built.route([2]))
    trace = simulate(built.build(), Options(mode=mode, reduction_speed=2))
    assert trace.arrived.tolist() == [4, 4, 16]
    assert trace.end.tolist() == [8, 12, 16]


def test_local_sends_take_the_time_of_their_reduction() -> None:
    """§2: a copy between two slots of a rank is done at once, a reduction takes its bytes over the speed."""
    built = builder(star(2), [8, 8])
    built.send(0, 0, 0, into=1)
    built.send(0, 0, 1, Op.REDUCE, into=0)
    assert ends(built.build(), Options(reduction_speed=2, overhead=1)) == [0, 4]


def test_a_shared_capacity_serves_like_a_link() -> None:
    """§3: two directions of a half-duplex cable of 2 bytes/s each and both together: 4 s for each send, one after the other."""
    links = [Link(0, 1, 2), Link(1, 0, 2)]
    built = builder(fabric(2, links, shared=[SharedCapacity((0, 1), 2)]), [8, 8])
    built.send(0, 1, 0, route=built.route([0]))
    built.send(1, 0, 1, route=built.route([1]))
    trace = simulate(built.build())
    assert trace.end.tolist() == [4, 8]
    assert trace.rows.tolist() == [0, 1, 2]
    assert trace.busy.tolist() == [4, 4, 8]
    assert ends(built.build(), FLUID) == [8, 8]


def test_a_path_may_pass_a_shared_capacity_twice() -> None:
    """§3, §4: both links of the path are under one capacity of 2 bytes/s, so 8 bytes take 8 s of it."""
    topology = line(8, 8)
    shared = Topology(topology.nodes, topology.links, (SharedCapacity((0, 1), 2),))
    assert ends(over_all(shared, 8)) == [8]
    assert ends(over_all(shared, 8), FLUID) == [8]


def diamond() -> Topology:
    """Rank 0 to rank 1 by way of either of two switches."""
    links = [Link(0, 2, 2, 1), Link(0, 3, 2, 1), Link(2, 1, 2, 1), Link(3, 1, 2, 2)]
    return fabric(2, links, 2)


def test_a_sprayed_send_uses_its_ways_side_by_side() -> None:
    """§3, §4: half of 8 bytes on each of two ways takes 2 s, after the larger latency of each level, 1 + 2 s."""
    built = builder(diamond(), [8])
    built.send(0, 1, 0, route=built.route([0, 1, 2, 3], [0.5] * 4))
    schedule = built.build()
    assert ends(schedule) == [5]
    assert ends(schedule, STORE) == [7]
    assert ends(schedule, FLUID) == [5]
    assert simulate(schedule).carried.tolist() == [4] * 4


def test_sprayed_links_stand_in_levels_in_whatever_order_they_are_given() -> None:
    """§3: the table of a sprayed route has no order; the links' ends have."""
    built = builder(diamond(), [8])
    built.send(0, 1, 0, route=built.route([3, 1, 2, 0], [0.5] * 4))
    assert ends(built.build(), STORE) == [7]


def test_sends_of_a_tree_have_one_rate() -> None:
    """§4: channel 0 also needs a link of 1, so it asks for 1 of the common 10, and channel 1 gets 9; by flow it is 5 and 5."""
    links = [Link(0, 1, 10), Link(1, 2, 1)]
    built = builder(fabric(3, links), [180])
    built.send(0, 1, 0, route=built.route([0]), channel=0)
    built.send(1, 2, 0, route=built.route([1]), channel=0)
    built.send(0, 1, 0, route=built.route([0]), channel=1)
    none = np.zeros(0, np.int32)  # nothing depends on anything
    schedule = replace(built.build(), depends_ptr=np.zeros(4, np.int64), depends=none)
    assert ends(schedule, TREE) == [180, 180, 20]
    assert ends(schedule, FLUID) == [36, 180, 36]


def test_rates_change_when_a_send_ends() -> None:
    """§4: 4 and 12 bytes share 2 bytes/s until 4 s, then the longer one has all: 8 bytes more take 4 s."""
    built = builder(line(2), [4, 12])
    for chunk in (0, 1):
        built.send(0, 1, chunk, route=built.route([0]), channel=chunk)
    assert ends(built.build(), FLUID) == [4, 8]


def test_empty_chunks_take_latency_alone() -> None:
    """§3, §4: there is nothing to pass."""
    for options in (Options(), STORE, FLUID):
        assert ends(over_all(line(2, 2, latency=1), 0, 2), options) == [2, 2]


def boxes() -> Topology:
    """Three GPUs and a PCIe switch in one box, and a GPU in another; links 0 by NVLink, 1 and 2 by PCIe, 3 by network."""
    kinds = [Kind.GPU, Kind.GPU, Kind.GPU, Kind.GPU, Kind.PCI]
    nodes = tuple(Node(f"n{i}", kind, box="c" if i == 3 else "b") for i, kind in enumerate(kinds))
    return Topology(nodes, (Link(0, 1, 8e6), Link(0, 4, 8e6), Link(4, 2, 8e6), Link(0, 3, 8e6, 5e-6)))


@pytest.mark.parametrize(
    ("protocol", "seconds"),
    [
        ("ll", [2.6e-6, 3.0e-6, 7.0e-6]),
        ("ll128", [1.9e-6 + 128 / 120e6, 2.5e-6 + 128 / 120e6, 5e-6 + 128 / 120e6]),
        ("simple", [4.4e-6, 6.7e-6, 15e-6]),
    ],
)
@pytest.mark.parametrize("mode", ["alpha-beta", "fluid"])
def test_protocols_have_payload_and_least_latency(protocol: str, seconds: list[float], mode: str) -> None:
    """§5: 8 bytes at 8 MB/s within the box, over PCIe, and over a network link of 5 us, which only Simple exceeds."""
    found = []
    for dst, links in ((1, [0]), (2, [1, 2]), (3, [3])):
        built = builder(boxes(), [8])
        built.send(0, dst, 0, route=built.route(links))
        found += ends(built.build(), Options(mode=mode, protocol=protocol))
    assert found == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("options", [Options(), STORE, FLUID, TREE])
def test_a_ring_takes_its_closed_form(ranks: int, options: Options) -> None:
    """§7.4: 2 (P - 1) (alpha + N / (P B))."""
    trace = simulate(ring(ranks, 1000, 1e9, 1e-6), options)
    assert trace.finish == pytest.approx(2 * (ranks - 1) * (1e-6 + 1000 / 1e9), rel=1e-9)
    assert trace.rank_finish == pytest.approx([trace.finish] * ranks)


def test_more_bytes_may_take_less_time() -> None:
    """§7: the larger first chunk is late at the common link, so the send that a longer one waits for goes first there."""

    def finish(size: int) -> float:
        links = [Link(0, 1, 1), Link(2, 1, 1), Link(1, 3, 1), Link(3, 0, 1)]
        built = builder(fabric(4, links), [size, 4, 2, 4])
        first = built.send(0, 1, 0, route=built.route([0]))
        second = built.send(2, 1, 2, route=built.route([1]))
        built.send(1, 3, 1, route=built.route([2]), after=[first], channel=0)
        third = built.send(1, 3, 2, route=built.route([2]), after=[second], channel=1)
        built.send(3, 0, 3, route=built.route([3]), after=[third])
        return simulate(built.build()).finish

    assert finish(1) == 1 + 4 + 2 + 4
    assert finish(3) == 2 + 2 + 4


def test_nothing_takes_no_time() -> None:
    """A schedule without sends is over at once."""
    for options in (Options(), FLUID):
        trace = simulate(builder(star(), [8]).build(), options)
        assert (trace.finish, trace.algbw, trace.rank_finish.tolist()) == (0, float("inf"), [0, 0, 0])
        assert trace.utilisation.shape == (0, 0)


def test_bandwidths_are_those_of_nccl_tests() -> None:
    """§6: all-reduce of 3 chunks of 1000 bytes over 3 ranks; busbw is 4/3 of algbw."""
    trace: Trace = simulate(ring(3, 1000, 1e9, 0))
    assert trace.algbw == pytest.approx(3000 / 4e-6)
    assert trace.busbw == pytest.approx(3000 / 4e-6 * 4 / 3)
