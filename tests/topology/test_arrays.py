"""The fabric as arrays, and when it is symmetric."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.testing import random_fabric
from dualcoll.topology.arrays import fabric_arrays, reversal
from dualcoll.topology.model import Kind, Link, Node, SharedCapacity, Topology, duplex

NODES = tuple(Node(name, Kind.GPU) for name in "abc")


def fabric(*links: Link, shared: tuple[SharedCapacity, ...] = ()) -> Topology:
    return Topology(NODES, links, shared)


def test_columns() -> None:
    """Every link and shared capacity has its row, and the arrays cannot be written to."""
    rows = (SharedCapacity((0, 1), 3.0), SharedCapacity((2,), 4.0))
    arrays = fabric_arrays(fabric(Link(0, 1, 1.0, 5.0), Link(1, 0, 1.0), Link(1, 2, 2.0), shared=rows))
    assert arrays.tail.tolist() == [0, 1, 1]
    assert arrays.head.tolist() == [1, 0, 2]
    assert arrays.latency.tolist() == [5.0, 0.0, 0.0]
    assert arrays.capacity.tolist() == [1.0, 1.0, 2.0, 3.0, 4.0]
    assert arrays.links == 3
    with pytest.raises(ValueError, match="read-only"):
        arrays.capacity[0] = 2.0


@given(st.integers(0, 10**6))
def test_loads_and_prices_are_adjoint(seed: int) -> None:
    """Prices of rows on loads of rows cost the same as prices of links on loads of links."""
    arrays = fabric_arrays(random_fabric(seed, shared=True))
    rng = np.random.default_rng(seed)
    loads, prices = rng.random(arrays.links), rng.random(arrays.capacity.size)
    assert prices @ arrays.row_loads(loads) == pytest.approx(arrays.link_prices(prices) @ loads)


@given(st.integers(0, 10**6), st.booleans())
def test_symmetric_fabrics_are_recognised(seed: int, conditional: bool) -> None:
    """The pairing is an involution of opposite links with equal capacity, and keeps the shared capacities."""
    topology = random_fabric(seed, conditional=conditional, shared=True)
    partner = reversal(topology)
    assert partner is not None
    for e, back in enumerate(partner.tolist()):
        one, other = topology.links[e], topology.links[back]
        assert partner[back] == e
        assert (one.tail, one.head, one.capacity) == (other.head, other.tail, other.capacity)
    rows = sorted(sorted(row.links) for row in topology.shared)
    assert sorted(sorted(partner[list(row.links)].tolist()) for row in topology.shared) == rows


def test_parallel_cables_pair_by_capacity() -> None:
    """The order of parallel links does not matter."""
    partner = reversal(fabric(Link(0, 1, 1.0), Link(0, 1, 2.0), Link(1, 0, 2.0), Link(1, 0, 1.0)))
    assert partner is not None
    assert partner.tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize(
    "topology",
    [
        fabric(Link(0, 1, 1.0)),
        fabric(Link(0, 1, 1.0), Link(1, 0, 2.0)),
        fabric(Link(0, 1, 1.0), Link(0, 1, 1.0), Link(1, 0, 2.0)),
        fabric(*duplex(Link(0, 1, 1.0)), shared=(SharedCapacity((0,), 0.5),)),
        fabric(*duplex(Link(0, 1, 1.0)), shared=(SharedCapacity((0,), 0.5), SharedCapacity((1,), 0.6))),
    ],
    ids=["one-way", "unequal", "sum equal", "row on one direction", "rows unequal"],
)
def test_asymmetric_fabrics_are_recognised(topology: Topology) -> None:
    """One-way links, unequal directions and lopsided shared capacities are not symmetric."""
    assert reversal(topology) is None


def test_rows_on_both_directions_are_symmetric() -> None:
    """One row over both directions, or one alike on each, keeps the symmetry."""
    cable = duplex(Link(0, 1, 1.0))
    assert reversal(fabric(*cable, shared=(SharedCapacity((0, 1), 0.5),))) is not None
    assert reversal(fabric(*cable, shared=(SharedCapacity((1,), 0.5), SharedCapacity((0,), 0.5)))) is not None


def test_one_changed_link_breaks_the_symmetry() -> None:
    """A single slower direction is noticed."""
    topology = random_fabric(3)
    links = (replace(topology.links[0], capacity=topology.links[0].capacity / 2), *topology.links[1:])
    assert reversal(replace(topology, links=links)) is None
