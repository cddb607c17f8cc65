"""Published and closed-form AllReduce optima, each to six digits with a plan that the exact proof accepts."""

from __future__ import annotations

import pytest

from dualcoll._api import check, plan
from dualcoll.packing.collective import Columns
from dualcoll.packing.column_generation import column_generation
from dualcoll.plans.model import Plan
from dualcoll.progress import Gap, Meter, Seconds
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology
from tests.packing.fabrics import GB, fabric
from tests.packing.problems import allreduce_problem

ONE = "bandwidth=1GB/s"


def a100_boxes(count: int) -> Topology:
    """Boxes of eight GPUs at 300 around NVSwitch, each GPU with its own NIC of 25; NIC b on InfiniBand switch b mod 2."""
    nodes, cables = [], []
    for q in range(count):
        names = [f"g{q}_{i}" for i in range(8)]
        nics = [f"n{q}_{i}" for i in range(8)]
        nodes.append(f"b{q}: s_nv{q} {' '.join(names + nics)}")
        for i in range(8):
            cables += [f"g{q}_{i}-s_nv{q}:300", f"g{q}_{i}-n{q}_{i}:25", f"n{q}_{i}-s_ib{i % 2}:25"]
    return fabric(", ".join(cables), boxes=";".join(nodes))


def h100_boxes(count: int) -> Topology:
    """Boxes of eight GPUs at 450 around NVSwitch, each GPU at 50 on the one InfiniBand switch."""
    links = [f"g{q}_{i}-s_nv{q}:450, g{q}_{i}-s_ib:50" for q in range(count) for i in range(8)]
    boxes = [f"b{q}: s_nv{q} {' '.join(f'g{q}_{i}' for i in range(8))}" for q in range(count)]
    return fabric(", ".join(links), boxes=";".join(boxes))


def _assert_known(made: Plan, optimum: float) -> None:
    proof = check(made)
    assert made.algbw / GB == pytest.approx(optimum, rel=1e-6)
    assert made.bound / GB == pytest.approx(optimum, rel=1e-6)
    assert made.gap <= 1e-6
    assert proof.rate >= made.value
    assert proof.bound <= made.bound


@pytest.mark.parametrize(
    ("spec", "optimum"),
    [
        ("dgx-a100", 171.428571429),
        ("dgx-h100", 257.142857143),
        ("dgx-h100:boxes=2", 266.666666667),
        ("dgx-h100:boxes=4", 258.064516129),
        ("dgx-h100:boxes=16", 213.333333333),
        ("mi250", 171.428571429),
        ("dgx-1v", 85.714285714),
        (f"full:8,{ONE}", 4.0),
        (f"torus:4x4,{ONE}", 2.133333333),
        (f"line:4,{ONE}", 1.0),
        (f"mesh:3x3,{ONE}", 1.5),
        ("torus:8x8", 101.587301),
        ("fat-tree:k=8", 25.19685),
    ],
)
def test_catalogue_fabrics(spec: str, optimum: float) -> None:
    """Boxes, boxes on rails, meshes, tori and a fat tree, in GB/s."""
    _assert_known(plan(catalog(spec)), optimum)


def test_a100_boxes_on_two_switches() -> None:
    """Two boxes whose NICs, nodes of their own, alternate between two switches."""
    _assert_known(plan(a100_boxes(2)), 173.333333333)


def test_a_thousand_gpus_on_rails() -> None:
    """128 boxes of eight, balanced to a millionth and proved: 400 Q / (2 (Q - 1))."""
    made = plan(catalog("dgx-h100:boxes=128"), stop=Gap(1e-6) | Seconds(60))
    _assert_known(made, 400 * 128 / 254)


@pytest.mark.parametrize("boxes", [2, 3, 4])
def test_h100_boxes_on_one_switch(boxes: int) -> None:
    """Half the AllGather's closed form min(8n·500/(8n-1), 400n/(n-1)): the cut at a GPU or at a box."""
    n = boxes
    _assert_known(plan(h100_boxes(n)), min(8 * n * 500 / (8 * n - 1), 400 * n / (n - 1)) / 2)


@pytest.mark.parametrize("n", [3, 4, 5, 9])
def test_rings_stars_and_full_graphs(n: int) -> None:
    """n/(n-1) on a two-way ring, half of that on a star, n/2 on a complete graph of unit links."""
    _assert_known(plan(catalog(f"ring:{n},{ONE}")), n / (n - 1))
    _assert_known(plan(catalog(f"star:{n},{ONE}")), n / (2 * (n - 1)))
    _assert_known(plan(catalog(f"full:{n},{ONE}")), n / 2)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_hypercubes(d: int) -> None:
    """As many edge-disjoint spanning trees as Nash-Williams allows: d·2^d/2 cables over 2^d - 1 edges a tree."""
    _assert_known(plan(catalog(f"hypercube:{d},{ONE}")), d * 2**d / 2 / (2**d - 1))


@pytest.mark.parametrize("m", [3, 4, 5])
def test_tori(m: int) -> None:
    """2m² cables over m² - 1 edges a tree."""
    _assert_known(plan(catalog(f"torus:{m}x{m},{ONE}")), 2 * m * m / (m * m - 1))


def test_a_slow_gpu_limits_a_star() -> None:
    """Around one switch, three GPUs at 10 and one at 1: nothing beats the slow one."""
    _assert_known(plan(fabric("g0-s0:10, g1-s0:10, g2-s0:10, g3-s0:1")), 1.0)


def test_a_path_is_as_fast_as_its_cables() -> None:
    """Five ranks in a line of capacity 4: direct AllReduce 4, where composed AllReduces give less."""
    _assert_known(plan(fabric("g0-g1:4, g1-g2:4, g2-g3:4, g3-g4:4")), 4.0)


def test_a_triangle_separates_direct_from_composed() -> None:
    """Capacities 1, 2, 2: 5/2 direct, where ReduceScatter and AllGather one after the other reach 9/4 at best."""
    _assert_known(plan(fabric("g0-g1:1, g0-g2:2, g1-g2:2")), 2.5)


def test_two_ranks_of_a_dgx_1v_with_and_without_outsiders() -> None:
    """Ranks 0 and 1 have one NVLink of 25; with every GPU forwarding they get the 150 that leave a GPU. The plan says which."""
    alone = plan(catalog("dgx-1v"), ranks="0,1")
    helped = plan(catalog("dgx-1v"), ranks=[0, "g1"], forward="all")
    _assert_known(alone, 25.0)
    _assert_known(helped, 150.0)
    assert (alone.forwarding, helped.forwarding) == ("switches", "all")


@pytest.mark.parametrize("spec", ["dgx-h100", "torus:4x4", "dgx-1v", "mi250"])
def test_pairs_reach_the_same_values(spec: str) -> None:
    """The general columns on symmetric fabrics: same optimum, same gap."""
    topology = catalog(spec)
    problem = allreduce_problem(topology, topology.ranks, columns=Columns.PAIR)
    packing, _, _ = column_generation(problem, Meter(Gap(0.0)))
    assert packing.value == pytest.approx(plan(topology).value, rel=1e-6)
    assert packing.bound == pytest.approx(packing.value, rel=1e-6)
