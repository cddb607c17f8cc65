"""Logical edges on physical links, and who meets whom there."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.classical.registry import build
from dualcoll.classical.ring import ring_all_reduce
from dualcoll.collectives.contract import make_contract
from dualcoll.errors import InputError
from dualcoll.reporting.route_map import route_map, route_map_text
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.routed import routed
from dualcoll.simulation import simulate
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Kind, Link, Node, SharedCapacity, Topology, duplex


def shared_nics() -> Topology:
    """Two boxes of four GPUs, all joined inside; ranks 0 and 3 of each box at NIC 0, ranks 1 and 2 at NIC 1; a switch."""
    nodes, links = [Node("net", Kind.SWITCH)], list[Link]()
    for box in range(2):
        first = len(nodes)
        nodes += [Node(f"g{4 * box + i}", Kind.GPU, box=f"b{box}") for i in range(4)]
        nodes += [Node(f"nic{2 * box + i}", Kind.NIC, box=f"b{box}") for i in range(2)]
        for a in range(4):
            for b in range(a):
                links += duplex(Link(first + a, first + b, 100e9))
            links += duplex(Link(first + a, first + 4 + (a in (1, 2)), 60e9))
        for nic in (first + 4, first + 5):
            links += duplex(Link(nic, 0, 50e9))
    return Topology(tuple(nodes), tuple(links))


def two_rings(topology: Topology) -> Schedule:
    """The ring in rank order, and its reverse."""
    return routed(ring_all_reduce(8, 8 * 2**20, [range(8), range(7, -1, -1)]), topology)


def test_edges_that_share_a_nic() -> None:
    """Edges that look independent meet at one NIC; each direction of it by itself, and what they carry there is told."""
    found = route_map(two_rings(shared_nics()))
    assert found.paths[3, 4] == "g3 -> nic0 -> net -> nic2 -> g4"
    text = [line for _, line in route_map_text(found)]
    where, what = " and 1 link more in all 14 rounds: ", "14 MiB, 293.6 us"
    assert f"edges 0→7 and 3→4 share NIC nic0 (nic0 -> net, 50 GB/s){where}{what}" in text
    assert f"edges 4→3 and 7→0 share NIC nic0 (net -> nic0, 50 GB/s){where}{what}" in text


def test_links_alike_are_one() -> None:
    """Links that the same edges use in the same rounds are one line, at the one that is busy longest."""
    found = route_map(routed(ring_all_reduce(8, 8 * 2**20), shared_nics()))
    use = next(use for use in found.uses if use.edges == ((3, 4),))
    assert len(use.alike) == 4
    assert not any(use.shared for use in found.uses)
    text = route_map_text(found, 2)
    assert text == [
        ("routes", "0→1: g0 -> g1"),
        ("", "1→2: g1 -> g2"),
        ("", "and 6 more"),
        ("contention", "none: no link carries two edges in one round"),
        ("heaviest", "NIC nic0 (nic0 -> net, 50 GB/s): 14 MiB, 293.6 us, edge 3→4, as 3 links more"),
        ("", "NIC nic0 (net -> nic0, 50 GB/s): 14 MiB, 293.6 us, edge 7→0, as 3 links more"),
        ("", "and 6 more"),
    ]


def test_only_some_meet_at_once() -> None:
    """A link that three edges use, two of them in one round, says so."""
    nodes = [Node(f"g{i}", Kind.GPU) for i in range(4)] + [Node(f"s{i}", Kind.SWITCH) for i in range(2)]
    links = [Link(i, 4, 10e9) for i in range(3)] + [Link(4, 5, 10e9), Link(5, 3, 10e9)]
    topology = Topology(tuple(nodes), tuple(links))
    builder = ScheduleBuilder(make_contract("gather", 4, root=3), 1000)
    for rank, when in ((0, 0), (1, 0), (2, 1)):
        builder.send(rank, 3, rank, round=when)
    found = route_map(routed(builder.build(), topology))
    use = next(use for use in found.uses if use.shared)
    assert (use.rounds, use.shared, use.at_once, len(use.edges)) == (2, 1, 2, 3)
    line = next(text for label, text in route_map_text(found) if label == "contention")
    where = "edges 0→3, 1→3 and 2→3 share s0 -> s1 (10 GB/s) and 1 link more"
    assert line == f"{where} in 1 of 2 rounds, at most 2 at once: 2.93 KiB, 300 ns"


def test_a_capacity_that_links_share() -> None:
    """Edges on different links meet at a capacity over both; it is named by its links."""
    nodes = tuple(Node(f"g{i}", Kind.GPU) for i in range(3))
    links = (Link(0, 2, 10e9), Link(1, 2, 10e9))
    topology = Topology(nodes, links, (SharedCapacity((0, 1), 10e9),))
    builder = ScheduleBuilder(make_contract("gather", 3, root=2), 10_000)
    builder.extend([0, 1], 2, [0, 1], round=0)
    text = route_map_text(route_map(routed(builder.build(), topology)))
    shared = "edges 0→2 and 1→2 share one capacity of 10 GB/s (g0 -> g2 and g1 -> g2) in its one round: 19.53 KiB, 2 us"
    assert ("contention", shared) in text


def test_spread_routes() -> None:
    """Parts of sends count as parts: what two spines carry of one edge adds up to its bytes."""
    topology = catalog("fat-tree:k=4")
    schedule = routed(ring_all_reduce(16, 16 * 2**20), topology, routing=Routing(RoutingKind.SPRAY))
    found = route_map(schedule)
    assert any(path.startswith("spread over ") for path in found.paths.values())
    out = sum(
        use.carried * len([row for row in use.alike if topology.links[row].tail == topology.ranks[3]])
        for use in found.uses
        if use.edges == ((3, 4),)
    )
    assert out == pytest.approx(30 * 2**20)


@settings(max_examples=25)
@given(
    st.sampled_from(["ring", "double-tree", "halving-doubling", "balanced"]),
    st.sampled_from(["rail:2x4", "dgx-1v:boxes=2"]),
)
def test_bytes_are_those_of_a_run(name: str, spec: str) -> None:
    """What every capacity row carries is what the simulation counts there, and takes as long."""
    topology = catalog(spec)
    try:
        schedule = build(name, "allreduce", topology, topology.ranks, 2**20, pieces=3)
    except InputError:
        return
    trace = simulate(schedule)
    carried = {int(row): float(amount) for row, amount in zip(trace.rows, trace.carried, strict=True)}
    busy = {int(row): float(seconds) for row, seconds in zip(trace.rows, trace.busy, strict=True)}
    uses = route_map(schedule).uses
    assert sorted(row for use in uses for row in use.alike) == sorted(row for row in carried if carried[row])
    for use in uses:
        assert use.carried == pytest.approx(carried[use.row])
        assert use.seconds == pytest.approx(busy[use.row])


def test_copies_by_switches_are_carried_once() -> None:
    """What a switch makes copies of is on the way to it once, as in the simulation."""
    topology = catalog("star:n=4")
    builder = ScheduleBuilder(make_contract("broadcast", 4), 1000, topology=topology, nodes=topology.ranks)
    ends = {(link.tail, link.head): e for e, link in enumerate(topology.links)}
    root, *others = topology.ranks
    hub = next(head for tail, head in ends if tail == root)
    for rank, node in enumerate(others, 1):
        builder.send(0, rank, 0, route=builder.route([ends[root, hub], ends[hub, node]]), multicast=0)
    assert [use.carried for use in route_map(builder.build()).uses for _ in use.alike] == [1000] * 4


def test_meetings_by_hand() -> None:
    """Rounds, meetings and crowds of a direct all-to-all around a switch: every port has P - 1 edges at once."""
    topology = catalog("star:n=5")
    found = route_map(build("direct", "alltoall", topology, topology.ranks, 5000))
    assert len(found.uses) == 10
    for use in found.uses:
        assert (use.rounds, use.shared, use.at_once, len(use.edges)) == (1, 1, 4, 4)
        assert Fraction(use.carried) == 4000
    pairwise = route_map(build("pairwise", "alltoall", topology, topology.ranks, 5000))
    assert all((use.rounds, use.shared, use.at_once) == (4, 0, 1) for use in pairwise.uses)


def test_without_rounds_by_steps() -> None:
    """A schedule without rounds is judged step by step."""
    topology = catalog("star:n=3")
    builder = ScheduleBuilder(make_contract("broadcast", 3), 100)
    builder.send(0, 1, 0)
    builder.send(1, 2, 0)
    text = route_map_text(route_map(routed(builder.build(), topology)))
    assert ("contention", "none: no link carries two edges in one step") in text


def test_nothing_is_sent() -> None:
    """A schedule without sends says so; one without a fabric has no map."""
    topology = catalog("star:n=3")
    alone = routed(ring_all_reduce(1, 100), topology, topology.ranks[:1])
    assert route_map_text(route_map(alone)) == [("routes", "none: nothing is sent")]
    with pytest.raises(InputError) as caught:
        route_map(ring_all_reduce(3, 100))
    assert str(caught.value) == "the schedule stands on no fabric; lay it on a topology first"
    assert np.array_equal(alone.src, [])
