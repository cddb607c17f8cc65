"""The in-network bound: the least directed cut between participants."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from dualcoll._api import plan
from dualcoll.packing.cuts import least_cut
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology
from tests.packing.exact import FABRIC_KINDS, random_case
from tests.packing.fabrics import GB, fabric


def _leaving(topology: Topology, side: set[int]) -> Fraction:
    return sum(
        (Fraction(link.capacity) for link in topology.links if link.tail in side and link.head not in side), Fraction(0)
    )


def _by_enumeration(topology: Topology, participants: tuple[int, ...]) -> Fraction:
    """The least over every node set with some of the participants, but not all."""
    nodes = range(len(topology.nodes))
    sides = (set(side) for size in nodes for side in itertools.combinations(nodes, size))
    return min(
        _leaving(topology, side) for side in sides if 0 < len(side.intersection(participants)) < len(participants)
    )


@pytest.mark.parametrize("kind", ["switched", "one-way"])
@pytest.mark.parametrize("seed", range(40))
def test_the_least_cut_is_the_least_of_all_node_sets(seed: int, kind: str) -> None:
    """Against all subsets; its witness parts the participants and lets out no more than is claimed."""
    topology = random_case(kind, seed)
    participants = topology.ranks[:-1] if seed % 2 else topology.ranks
    cut = least_cut(fabric_arrays(topology), len(topology.nodes), participants)
    side = set(cut.side)
    assert cut.capacity == pytest.approx(float(_by_enumeration(topology, participants)), rel=1e-12)
    assert _leaving(topology, side) <= Fraction(cut.capacity)
    assert 0 < len(side.intersection(participants)) < len(participants)


@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(15))
def test_no_plan_is_above_the_in_network_bound(seed: int, kind: str) -> None:
    """The end-point optimum is below it, with every GPU forwarding too."""
    topology = random_case(kind, seed)
    for forward in ("switches", "all"):
        made = plan(topology, forward=forward)
        assert made.value <= made.in_network.capacity
        assert made.bound <= made.in_network.capacity * (1 + 2e-9)


def test_an_inward_cut_counts_as_much_as_an_outward_one() -> None:
    """A rank that sends at 10 but hears at 2 limits everything to 2; the side is everybody else."""
    topology = fabric("g0-s0:10, g1-s0:10, g2-s0:10/2")
    cut = plan(topology).in_network
    assert cut.capacity == pytest.approx(2 * GB)
    assert {topology.nodes[i].name for i in cut.side} == {"g0", "g1", "s0"}


def test_known_in_network_bounds() -> None:
    """An H100 box can reduce at a GPU's 450; two boxes at the 400 that leave a box."""
    assert plan(catalog("dgx-h100")).in_network.capacity == pytest.approx(450 * GB)
    assert plan(catalog("dgx-h100:boxes=2")).in_network.capacity == pytest.approx(400 * GB)
