"""Algorithms by name, on fabrics."""

import time

import numpy as np
import pytest

from dualcoll.classical.parts import good_pieces
from dualcoll.classical.place import Place, place_on, ring_orders
from dualcoll.classical.registry import ALGORITHMS, algorithms_for, build, draw
from dualcoll.collectives.catalogue import COLLECTIVES
from dualcoll.errors import InputError
from dualcoll.schedules.validate import validate
from dualcoll.simulation import simulate
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Kind, Link, Node, Topology, duplex
from tests.classical.samples import CASES, HIERARCHIES, boxes_of, on


def star(sizes: list[int]) -> Topology:
    """Boxes of these sizes: GPUs at a switch of their box, which is joined to one network switch."""
    nodes, links = [Node("net", Kind.SWITCH)], list[Link]()
    for q, count in enumerate(sizes):
        switch = len(nodes)
        nodes.append(Node(f"b{q}.switch", Kind.SWITCH, box=f"b{q}"))
        links += duplex(Link(switch, 0, 50e9))
        for i in range(count):
            links += duplex(Link(len(nodes), switch, 400e9))
            nodes.append(Node(f"b{q}.g{i}", Kind.GPU, box=f"b{q}"))
    return Topology(tuple(nodes), tuple(links))


def test_names() -> None:
    """Every collective has an algorithm, and every algorithm is of a known collective."""
    assert set().union(*ALGORITHMS.values()) == set(COLLECTIVES)
    assert algorithms_for("broadcast") == ["chain", "tree"]
    assert algorithms_for("alltoall") == ["bruck", "direct", "pairwise", "rail"]


@pytest.mark.parametrize(("name", "collective"), CASES)
@pytest.mark.parametrize("sizes", [[3, 3], [1, 2, 3], [4], [1], [1, 1]])
def test_built_or_refused_as_a_whole(name: str, collective: str, sizes: list[int]) -> None:
    """On boxes of equal and unequal size, one box, and one rank, an algorithm's schedule is right, or refused with reason."""
    topology = star(sizes)
    ranks = len(topology.ranks)
    matrix = np.ones((ranks, ranks), np.int64)
    refused = ""
    if name in HIERARCHIES and max(sizes) in (1, ranks):
        grid = ", or ranks that form a torus of two dimensions" if name == "torus" else ""
        refused = f"algorithm {name}: it needs several boxes of several ranks{grid}"
    elif name in HIERARCHIES and name != "leader" and len(set(sizes)) > 1:
        refused = f"algorithm {name}: boxes of 1, 2, 3 ranks; it needs boxes of one size"
    if refused:
        with pytest.raises(InputError) as caught:
            build(name, collective, topology, topology.ranks, 999, matrix=matrix)
        assert str(caught.value) == refused
    else:
        schedule = build(name, collective, topology, topology.ranks, 999, root=ranks - 1, matrix=matrix)
        validate(schedule)
        assert schedule.nodes == topology.ranks


def test_some_ranks_in_an_order_of_their_own() -> None:
    """Rank numbers follow the caller's list; boxes are those of the nodes."""
    topology = catalog("rail:2x4")
    ranks = tuple(topology.ranks[i] for i in (6, 1, 4, 3))
    place = place_on(topology, ranks, 10)
    assert place.boxes == ((0, 2), (1, 3))
    schedule = build("balanced", "allreduce", topology, ranks, 4096)
    validate(schedule)
    assert schedule.nodes == ranks


def test_errors_are_whole() -> None:
    """Unknown names, missing routes, wrong roots and matrices are told with the algorithm."""
    torus = catalog("torus:4x4")
    for arguments, message in (
        (
            ("rign", "allreduce", torus, torus.ranks, 8),
            "AllReduce has no algorithm 'rign'; use one of ring, ring-both-ways, "
            "tree, double-tree, halving-doubling, balanced, leader, torus",
        ),
        (
            ("ring", "alltoall", torus, torus.ranks, 8),
            "AllToAll has no algorithm 'ring'; use one of bruck, direct, pairwise, rail",
        ),
        (
            ("tree", "allreduce", torus, torus.ranks, 8),
            "algorithm tree: rank g0 has no route to rank g8; see `forward` and the links between them",
        ),
        (("direct", "alltoallv", torus, torus.ranks, 8), "algorithm direct: no matrix for an AllToAllv of 16 ranks"),
    ):
        with pytest.raises(InputError) as caught:
            build(*arguments)
        assert str(caught.value) == message
    with pytest.raises(InputError) as caught:
        build("chain", "reduce", torus, torus.ranks, 8, root=16)
    assert str(caught.value) == "algorithm chain: root 16 is not within ranks 0 to 15"
    with pytest.raises(InputError) as caught:
        build("pairwise", "alltoallv", torus, torus.ranks, 8, matrix=np.ones((2, 2), np.int64))
    assert str(caught.value) == "algorithm pairwise: a matrix of shape (2, 2) for an AllToAllv of 16 ranks"


def test_rings_as_nccl_lays_them() -> None:
    """One ring for each place; rails are changed nowhere with an even number of boxes, and once with an odd one."""
    for boxes, changes in ((2, 0), (4, 0), (3, 1)):
        place = Place(boxes_of([4] * boxes), 1)
        orders = ring_orders(place)
        assert [order[0] for order in orders] == [0, 1, 2, 3]
        for order in orders:
            assert sorted(order) == list(range(4 * boxes))
            across = [(a, b) for a, b in zip(order, order[1:] + order[:1], strict=True) if a // 4 != b // 4]
            assert len(across) == boxes
            assert sum(a % 4 != b % 4 for a, b in across) == changes
        assert len({order[3] for order in orders}) == 4  # each rank leaves its box in one ring
    assert ring_orders(Place(boxes_of([2, 3]), 1)) == [[0, 1, 2, 3, 4]]
    assert ring_orders(Place(boxes_of([1, 1, 1]), 1)) == [[0, 1, 2]]
    assert ring_orders(Place(boxes_of([3]), 1)) == [[0, 1, 2]]


@pytest.mark.parametrize("spec", ["dgx-1v:boxes=2", "mi300x:boxes=3", "mi250:boxes=2"])
def test_rings_enter_and_leave_everywhere(spec: str) -> None:
    """Where cables decide the order in a box, too, each rank is where one ring enters and where one leaves."""
    place = on(spec)
    count = len(place.boxes[0])
    orders = ring_orders(place)
    assert [order[0] for order in orders] == list(range(count))
    assert sorted(order[count - 1] for order in orders) == list(range(count))
    assert len({order[1] for order in orders}) > 2  # by different cables


def test_large_boxes_use_one_cycle() -> None:
    """Boxes of hundreds of ranks are laid out at once, each rank where one ring enters and where one leaves."""
    count = 300
    cycles = (tuple(range(count)), tuple(range(count - 1, -1, -1)))
    orders = ring_orders(Place(boxes_of([count, count]), 1, cycles=cycles))
    assert [order[count - 1] for order in orders] == [(k - 1) % count for k in range(count)]


def test_rings_fill_a_cube_mesh() -> None:
    """The six rings of a DGX-1 use all six NVLinks of every GPU: 150 GB/s over 2 (P - 1) / P."""
    topology = catalog("dgx-1v")
    for name in ("ring", "ring-both-ways"):
        finish = simulate(build(name, "allreduce", topology, topology.ranks, 2**30)).finish
        assert 2**30 / finish == pytest.approx(150e9 / (2 * 7 / 8), rel=1e-3)


def test_pieces_are_chosen_by_size() -> None:
    """A message of a few bytes goes in one piece, a large one in as many as keep the pipeline full; or in as many as asked."""
    place = Place(boxes_of([16]), 64)
    assert draw("tree", "allreduce", place).chunks == 1
    assert draw("chain", "broadcast", Place(place.boxes, 2**30)).chunks > 64
    assert draw("chain", "broadcast", Place(place.boxes, 2**30, pieces=5)).chunks == 5
    assert good_pieces(2**50, 2046, 4096) == 2**20 // 4096  # there is a limit


def test_a_thousand_ranks() -> None:
    """Trees over 1,024 GPUs are laid out in seconds."""
    topology = catalog("rail:128x8")
    start = time.perf_counter()
    schedule = build("double-tree", "allreduce", topology, topology.ranks, 2**22, pieces=4)
    assert schedule.sends == 16 * 4 * 2 * 1023
    assert time.perf_counter() - start < 15
