"""Rings along the cables of a box."""

from collections import Counter
from itertools import pairwise

import pytest

from dualcoll.classical.place import ring_orders
from dualcoll.classical.ring_search import box_cycles, torus_rows
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Kind, Link, Node, Topology, duplex
from tests.classical.samples import on


def used(cycles: tuple[tuple[int, ...], ...]) -> Counter[tuple[int, int]]:
    """How often each directed pair of places is used."""
    return Counter(pair for cycle in cycles for pair in pairwise((*cycle, cycle[0])))


@pytest.mark.parametrize(
    ("spec", "rings"),
    [
        ("dgx-1v", 6),
        ("mi300x", 6),
        ("torus:4x4", 4),
        ("torus:8x8", 4),
        ("mesh:4x4", 2),
        ("hypercube:4", 4),
        ("ring:1200", 2),
        ("full:5", 4),
    ],
)
def test_rings_share_no_cable(spec: str, rings: int) -> None:
    """As many disjoint Hamiltonian rings are found as there are, in both directions, each cable within its capacity."""
    topology = catalog(spec)
    cycles = box_cycles(topology, [topology.ranks])
    assert len(cycles) == rings
    assert all(sorted(cycle) == list(range(len(topology.ranks))) for cycle in cycles)
    capacity = {(link.tail, link.head): link.capacity for link in topology.links}
    number = {node: i for i, node in enumerate(topology.ranks)}
    speed = min(link.capacity for link in topology.links)
    found = used(cycles)
    assert all(found[b, a] == times for (a, b), times in found.items())
    assert all(
        found[number[a], number[b]] * speed <= most for (a, b), most in capacity.items() if a in number and b in number
    )


@pytest.mark.parametrize("spec", ["dgx-h100", "mesh:3x3", "line:4", "ring:n=5,oneway=true", "star:6", "ring:2"])
def test_where_no_cables_make_a_ring(spec: str) -> None:
    """Ranks at a switch, odd meshes, lines, one-way cables and pairs have no such cycle and keep their order."""
    assert on(spec).cycles == ()
    assert ring_orders(on(spec)) == [list(range(on(spec).ranks))]


def test_the_best_speed_is_taken() -> None:
    """Two rings at half of the speed of the one through the thick cables alone carry less: the one is taken."""
    pairs = {(0, 1): 50.0, (1, 2): 50.0, (2, 3): 50.0, (0, 3): 50.0, (0, 2): 20.0, (1, 3): 20.0}
    links = [link for (a, b), rate in pairs.items() for link in duplex(Link(a, b, rate))]
    topology = Topology(tuple(Node(f"g{i}", Kind.GPU) for i in range(4)), tuple(links))
    assert set(box_cycles(topology, [range(4)])) == {(0, 1, 2, 3), (0, 3, 2, 1)}


def test_all_boxes_count() -> None:
    """A cable that one box lacks is used in none."""
    nodes = tuple(Node(f"g{i}", Kind.GPU) for i in range(6))
    links = [link for a, b in ((0, 1), (1, 2), (0, 2), (3, 4), (4, 5)) for link in duplex(Link(a, b, 10.0))]
    assert len(box_cycles(Topology(nodes, tuple(links)), [[0, 1, 2]])) == 2
    assert box_cycles(Topology(nodes, tuple(links)), [[0, 1, 2], [3, 4, 5]]) == ()


def test_rows_of_a_torus() -> None:
    """A torus of two dimensions is told from other fabrics, whatever its sides."""
    for spec, rows in (("torus:3x5", 3), ("torus:5x3", 5), ("torus:2x2", 2), ("mesh:3x5", 0), ("torus:3x3x3", 0)):
        topology = catalog(spec)
        found = torus_rows(topology, topology.ranks)
        assert len(found) == rows
        assert [rank for row in found for rank in row] == (list(range(len(topology.ranks))) if rows else [])
