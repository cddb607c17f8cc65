"""Published and closed-form optima of AllGather, ReduceScatter, AllToAll and Broadcast, in GB/s, each with a proved plan."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from dualcoll._api import check, plan
from dualcoll.plans.model import Plan
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology
from tests.packing.fabrics import GB, fabric
from tests.packing.test_known_values import a100_boxes, h100_boxes

ONE = "bandwidth=1GB/s"
DGX_1V = "0-1:1 0-2:1 0-3:2 0-4:2 1-2:2 1-3:1 1-5:2 2-3:2 2-6:1 3-7:1 4-5:1 4-6:1 4-7:2 5-6:2 5-7:1 6-7:2"
MI250 = (
    "0-1:4 0-4:2 0-8:1 1-5:1 1-9:1 1-10:1 2-3:4 2-6:1 2-9:1 2-10:1 3-7:2 3-11:1 4-5:4 4-6:1 5-6:1 5-7:1 6-7:4 8-9:4 8-12:2 "
    "9-13:1 10-11:4 10-14:1 11-15:2 12-13:4 12-14:1 13-14:1 13-15:1 14-15:4"
)


def _fabric(name: str) -> Topology:
    """Boxes by number, ``a100 x2``, or the catalogue's fabric of that name."""
    boxes = re.fullmatch(r"(a100|h100) x(\d+)", name)
    if boxes is None:
        return catalog(name)
    return (a100_boxes if boxes[1] == "a100" else h100_boxes)(int(boxes[2]))


def _assert_known(made: Plan, optimum: float) -> None:
    """The plan and its bound are this, to six digits, and the exact proof agrees."""
    proof = check(made)
    assert made.algbw / GB == pytest.approx(optimum, rel=1e-6)
    assert made.bound / GB == pytest.approx(optimum, rel=1e-6)
    assert proof.rate >= made.value
    assert proof.bound <= made.bound


@pytest.mark.parametrize(("spec", "each", "table"), [("dgx-1v", 25, DGX_1V), ("mi250", 50, MI250)])
def test_wired_boxes_have_the_published_links(spec: str, each: int, table: str) -> None:
    """So many links of that bandwidth between two GPUs, and no others."""
    topology = catalog(spec)
    wanted = {(int(a), int(b)): int(count) for a, b, count in re.findall(r"(\d+)-(\d+):(\d+)", table)}
    number = {node: rank for rank, node in enumerate(topology.ranks)}
    bandwidth: Counter[tuple[int, int]] = Counter()
    for link in topology.links:
        bandwidth[number[link.tail], number[link.head]] += round(link.capacity / GB)
    assert bandwidth == {arc: count * each for pair, count in wanted.items() for arc in (pair, (pair[1], pair[0]))}


GATHERED = [
    ("dgx-a100", 342.857142857),
    ("a100 x2", 346.666666667),
    ("a100 x3", min(24 * 325 / 23, 200 * 3 / 2)),
    ("a100 x4", 266.666666667),
    ("dgx-h100", 514.285714286),
    ("h100 x2", 533.333333333),
    ("h100 x3", min(24 * 500 / 23, 400 * 3 / 2)),
    ("h100 x4", 516.129032258),
    ("dgx-h100:boxes=4", 516.129032258),
    ("mi250", 342.857142857),
    ("dgx-1v", 171.428571429),
    *((f"ring:{n},{ONE}", 2 * n / (n - 1)) for n in (3, 6)),
    *((f"star:{n},{ONE}", n / (n - 1)) for n in (3, 8)),
    *((f"full:{n},{ONE}", n) for n in (4, 8)),
    *((f"hypercube:{d},{ONE}", d * 2**d / (2**d - 1)) for d in (2, 3, 4)),
    *((f"torus:{m}x{m},{ONE}", 4 * m * m / (m * m - 1)) for m in (3, 4)),
    (f"line:4,{ONE}", 1.333333333),
    (f"mesh:3x3,{ONE}", 2.25),
]


@pytest.mark.parametrize("collective", ["allgather", "reducescatter"])
@pytest.mark.parametrize(("name", "optimum"), GATHERED)
def test_allgather_and_reducescatter(name: str, optimum: float, collective: str) -> None:
    """The same value for both where every cable is as fast either way."""
    _assert_known(plan(_fabric(name), collective), optimum)


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("dgx-a100", 42.857142857),
        ("a100 x2", 3.125),
        ("h100 x2", 6.25),
        ("h100 x4", 2.083333333),
        ("mi250", 4.6875),
        ("dgx-1v", 9.375),
        (f"full:8,{ONE}", 1),
        (f"hypercube:4,{ONE}", 0.125),
        (f"torus:4x4,{ONE}", 0.125),
        (f"line:4,{ONE}", 0.25),
        (f"mesh:3x3,{ONE}", 0.166666667),
    ],
)
def test_alltoall(name: str, pair: float) -> None:
    """What every ordered pair gets at once; algbw counts n shards, one of them a rank's own."""
    topology = _fabric(name)
    _assert_known(plan(topology, "alltoall"), pair * len(topology.ranks))


@pytest.mark.parametrize(
    ("name", "optimum"),
    [
        ("dgx-a100", 300),
        ("a100 x2", 200),
        ("h100 x2", 400),
        ("mi250", 300),
        ("dgx-1v", 150),
        (f"full:8,{ONE}", 7),
    ],
)
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_broadcast_and_reduce(name: str, optimum: float, collective: str) -> None:
    """From rank 0, and to it."""
    _assert_known(plan(_fabric(name), collective), optimum)


@pytest.mark.parametrize("collective", ["allgather", "reducescatter"])
def test_a_slow_gpu_in_a_star(collective: str) -> None:
    """GPUs at 10, 10, 10 and 1 around a switch: the slow one takes in three shards, 1/3 each."""
    _assert_known(plan(fabric("g0-s0:10, g1-s0:10, g2-s0:10, g3-s0:1"), collective), 4 / 3)


def test_a_slow_uplink_makes_the_cut_loose() -> None:
    """Four GPUs at 10 whose last sends at 5: a shard of each at 35/12, while no cut says less than 10/3."""
    made = plan(fabric("g0-s0:10, g1-s0:10, g2-s0:10, g3-s0:5/10"), "allgather")
    _assert_known(made, 4 * 35 / 12)
    assert made.in_network is not None
    assert made.in_network.rate / GB == pytest.approx(4 * 10 / 3)


def test_a_forwarder_that_cannot_copy_makes_the_cut_loose() -> None:
    """s to w to a and b, one way, at 1 each: w gets each byte once for a and once for b, though one would do for the cut."""
    made = plan(fabric("g0>s0:1, s0>g1:1, s0>g2:1"), "broadcast", root=0)
    _assert_known(made, 1 / 2)
    assert made.in_network is not None
    assert made.in_network.rate / GB == pytest.approx(1)


def test_a_path_of_five_gathers_one_shard_at_one() -> None:
    """Appendix A of the paper, capacity 4 and everyone forwards: AllGather 1 for each root, direct AllReduce 4."""
    path = fabric("g0-g1:4, g1-g2:4, g2-g3:4, g3-g4:4")
    for collective, optimum in (("allgather", 5.0), ("reducescatter", 5.0), ("allreduce", 4.0)):
        _assert_known(plan(path, collective, forward="all"), optimum)


@pytest.mark.parametrize("forward", ["switches", "all"])
def test_a_triangle(forward: str) -> None:
    """Capacities 1, 2 and 2: direct AllReduce 5/2."""
    _assert_known(plan(fabric("g0-g1:1, g0-g2:2, g1-g2:2"), forward=forward), 2.5)
