"""The two hierarchies and the torus: what crosses boxes, and who does the work."""

import pytest

from dualcoll.classical.counts import counts
from dualcoll.classical.hierarchical import balanced_all_reduce, leader_all_reduce, torus_all_reduce
from dualcoll.classical.registry import build
from dualcoll.classical.ring import ring_all_reduce
from dualcoll.errors import InputError
from dualcoll.schedules.validate import validate
from dualcoll.simulation import simulate
from dualcoll.topology.model import Kind, Link, Node, Topology, duplex
from tests.classical.samples import boxes_of

SHAPES = [(2, 2), (2, 8), (3, 4), (4, 8), (5, 3)]


@pytest.mark.parametrize(("Q", "G"), SHAPES)
def test_balanced_bytes_across(Q: int, G: int) -> None:
    """Each rank sends 2 (Q - 1) / Q * N / G bytes to other boxes, each box 2 (Q - 1) N / Q, counted send by send."""
    N, boxes = 240 * Q * G, boxes_of([G] * Q)
    found = counts(balanced_all_reduce(boxes, N), boxes)
    assert found.across.tolist() == [2 * (Q - 1) * N // (Q * G)] * (Q * G)
    assert found.box_sent.tolist() == found.box_received.tolist() == [2 * (Q - 1) * N // Q] * Q
    assert (found.sent - found.across).tolist() == [2 * (G - 1) * N // G] * (Q * G)  # inside the box


@pytest.mark.parametrize(("Q", "G"), SHAPES)
def test_leaders_carry_everything(Q: int, G: int) -> None:
    """A leader sends as many bytes to other boxes as a whole box does in the balanced hierarchy; its fellows send none."""
    N, boxes = 240 * Q * G, boxes_of([G] * Q)
    found = counts(leader_all_reduce(boxes, N), boxes)
    leads = [rank % G == 0 for rank in range(Q * G)]
    ring = 2 * (Q - 1) * N // Q
    assert found.across.tolist() == [ring if lead else 0 for lead in leads]
    assert found.box_sent.tolist() == [ring] * Q
    assert found.sent.tolist() == [ring + (G - 1) * N if lead else N for lead in leads]
    assert found.received.tolist() == found.sent.tolist()
    assert found.reduced.tolist() == [(G - 1) * N + ring // 2 if lead else 0 for lead in leads]
    assert found.read.tolist() == [2 * (G - 1) * N + 3 * ring // 2 if lead else N for lead in leads]
    assert found.written.tolist() == [(G - 1) * N + ring if lead else N for lead in leads]
    assert found.peers.tolist() == [max(G - 1, 1) if lead else 1 for lead in leads]


@pytest.mark.parametrize(("Q", "G"), SHAPES)
def test_work_at_the_end_points_differs(Q: int, G: int) -> None:
    """A leader moves more bytes, and reduces more, than any rank of the balanced hierarchy, whose ranks are all alike."""
    N, boxes = 240 * Q * G, boxes_of([G] * Q)
    balanced, leader = counts(balanced_all_reduce(boxes, N), boxes), counts(leader_all_reduce(boxes, N), boxes)
    for name in ("sent", "received", "read", "written", "reduced"):
        assert len(set(getattr(balanced, name).tolist())) == 1
        assert getattr(leader, name).max() > getattr(balanced, name).max()


def test_torus_bytes() -> None:
    """Each rank sends as much as in a flat ring; half of the data crosses boxes as shards, half before it is reduced."""
    boxes, N = boxes_of([4, 4, 4]), 4800
    found = counts(torus_all_reduce(boxes, N), boxes)
    assert found.sent.tolist() == [2 * 11 * N // 12] * 12
    assert found.across.tolist() == [2 * 2 * (N // 2) // (3 * 4) + 2 * 2 * (N // 2) // 3] * 12


def test_one_box_or_boxes_of_one_are_a_ring() -> None:
    """With nothing to reduce inside, or outside, the balanced hierarchy sends what one ring sends."""
    flat = counts(ring_all_reduce(6, 600))
    for sizes in ([6], [1] * 6):
        found = counts(balanced_all_reduce(boxes_of(sizes), 600))
        assert (found.rounds, found.sent.tolist()) == (flat.rounds, flat.sent.tolist())


def test_boxes_of_different_size() -> None:
    """The balanced hierarchy refuses them; leaders take them."""
    with pytest.raises(InputError) as caught:
        balanced_all_reduce(boxes_of([2, 3]), 100)
    assert str(caught.value) == "boxes of 2, 3 ranks; it needs boxes of one size"
    schedule = leader_all_reduce(boxes_of([2, 3, 1]), 120)
    validate(schedule)
    assert counts(schedule, boxes_of([2, 3, 1])).sent.tolist() == [160 + 120, 120, 160 + 240, 120, 120, 160]


def two_boxes(own_nic: bool) -> Topology:
    """Two boxes of four GPUs at a switch; a NIC of 50 GB/s for each GPU, or one at the switch for all; a switch between."""
    nodes, links = [Node("net", Kind.SWITCH)], list[Link]()
    for box in ("a", "b"):
        switch, first = len(nodes), len(nodes) + 1
        nodes.append(Node(f"{box}.switch", Kind.SWITCH, box=box))
        nodes += [Node(f"{box}.g{i}", Kind.GPU, box=box) for i in range(4)]
        for gpu in range(first, first + 4):
            links += duplex(Link(gpu, switch, 450e9))
        for owner in range(first, first + 4) if own_nic else (switch,):
            links += duplex(Link(owner, len(nodes), 50e9)) + duplex(Link(len(nodes), 0, 50e9))
            nodes.append(Node(f"{box}.nic{len(nodes)}", Kind.NIC, box=box))
    return Topology(tuple(nodes), tuple(links))


def test_the_same_bytes_on_two_layouts_take_two_times() -> None:
    """With a NIC per rail the shards travel side by side; through one shared port they take four times as long."""
    times = []
    for own_nic in (True, False):
        topology = two_boxes(own_nic)
        schedule = build("balanced", "allreduce", topology, topology.ranks, 2**26)
        validate(schedule)
        found = counts(schedule, boxes_of([4, 4]))
        assert found.across.tolist() == [2**24] * 8
        assert found.box_sent.tolist() == [2**26] * 2
        times.append(simulate(schedule).finish)
    local = 2 * (3 / 4) * 2**26 / 450e9
    for finish, network in zip(times, (2**24 / 50e9, 2**26 / 50e9), strict=True):
        assert network < finish < network + local  # the shards of the other box are on their way meanwhile
