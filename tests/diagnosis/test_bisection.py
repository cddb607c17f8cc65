"""Bisection bandwidth: the bracket holds the truth, and closes where an AllToAll fills the narrowest halves."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest

from dualcoll._api import plan
from dualcoll.diagnosis.bisection import Bisection, bisection
from dualcoll.testing import degrade
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology
from tests.packing.exact import FABRIC_KINDS, random_case
from tests.packing.fabrics import GB, fabric
from tests.packing.test_cuts import leaving


def _of_plan(topology: Topology) -> Bisection:
    made = plan(topology, "alltoall")
    return bisection(topology, topology.ranks, made.value / len(topology.ranks), made.link_prices)


def _by_enumeration(topology: Topology) -> float:
    """The least over every node set with half of the ranks, rounded down or up."""
    nodes, n = range(len(topology.nodes)), len(topology.ranks)
    halves = {n // 2, n - n // 2}
    sides = (set(side) for size in nodes for side in itertools.combinations(nodes, size))
    return float(min(leaving(topology, side) for side in sides if len(side.intersection(topology.ranks)) in halves))


def _assert_witness(topology: Topology, found: Bisection) -> None:
    side, n = set(found.side), len(topology.ranks)
    assert len(side.intersection(topology.ranks)) in (n // 2, n - n // 2)
    assert float(leaving(topology, side)) == pytest.approx(found.upper, rel=1e-12)


@pytest.mark.parametrize("kind", ["switched", "one-way"])
@pytest.mark.parametrize("seed", range(8))
def test_the_bracket_holds_the_least_of_all_halves(seed: int, kind: str) -> None:
    """Against all node sets; on fabrics this small the upper end is the truth."""
    topology = random_case(kind, seed)
    found = _of_plan(topology)
    truth = _by_enumeration(topology)
    assert found.lower <= truth * (1 + 1e-9)
    assert found.upper == pytest.approx(truth, rel=1e-9)
    _assert_witness(topology, found)


@pytest.mark.parametrize("kind", FABRIC_KINDS)
def test_brackets_of_all_kinds_of_fabrics(kind: str) -> None:
    """Shared capacities, boxes and one-way links: a valid bracket with its witness."""
    for seed in range(4):
        topology = random_case(kind, seed)
        found = _of_plan(topology)
        assert 0 < found.lower <= found.upper
        _assert_witness(topology, found)


@pytest.mark.parametrize(
    ("spec", "upper"),
    [
        ("torus:4x4", 400.0),
        ("hypercube:3", 200.0),
        ("line:6", 50.0),
        ("full:6", 450.0),
        ("dgx-h100:boxes=2", 400.0),
        ("dgx-h100:boxes=2,network=leaf-spine,oversubscription=2", 200.0),
    ],
)
def test_brackets_that_close(spec: str, upper: float) -> None:
    """An AllToAll at its optimum fills the cut between the halves."""
    found = _of_plan(catalog(spec))
    assert found.upper == pytest.approx(upper * GB)
    assert found.tight


def test_an_alltoall_may_be_limited_elsewhere() -> None:
    """One slow rank holds the AllToAll down to 1/3 a pair, and no half."""
    found = _of_plan(fabric("g0-s0:10, g1-s0:10, g2-s0:10, g3-s0:1"))
    assert found.lower == pytest.approx(4 / 3 * GB)
    assert found.upper == pytest.approx(11 * GB)
    assert not found.tight


@pytest.mark.parametrize(
    ("spec", "upper"),
    [
        ("torus:8x8", 800.0),
        ("torus:4x4x4", 1600.0),
        ("hypercube:6", 1600.0),
        ("fat-tree:k=8", 3200.0),
        ("mesh:6x6", 300.0),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_halves_are_found_whatever_the_order_of_the_nodes(spec: str, upper: float, seed: int) -> None:
    """Known bisections of fabrics whose nodes are shuffled."""
    topology = catalog(spec)
    order = np.random.default_rng(seed).permutation(len(topology.nodes))
    place = np.argsort(order).tolist()
    links = tuple(replace(link, tail=place[link.tail], head=place[link.head]) for link in topology.links)
    shuffled = Topology(tuple(topology.nodes[i] for i in order.tolist()), links)
    found = bisection(shuffled, shuffled.ranks, 1.0)
    assert found.upper == pytest.approx(upper * GB)
    _assert_witness(shuffled, found)


def test_bisection_takes_less_than_a_second_at_256_gpus() -> None:
    """32 boxes of 8 with degraded rails, beside the halves of whole boxes."""
    topology = degrade(catalog("dgx-h100:boxes=32"), 1)
    bisection(topology, topology.ranks, 1.0)
    start = time.perf_counter()
    found = bisection(topology, topology.ranks, 1.0)
    assert time.perf_counter() - start < 1.0
    boxes = {f"b{i}" for i in range(16)}
    side = {i for i, node in enumerate(topology.nodes) if node.box in boxes}
    assert found.upper <= float(leaving(topology, side))
