"""Fabrics without what has failed."""

from __future__ import annotations

import pytest

from dualcoll.errors import InputError
from dualcoll.topology.failed import without
from dualcoll.topology.model import Kind, Link, Node, SharedCapacity, Topology


def ring() -> Topology:
    """Three GPUs in a ring, both ways, the first two joined by two cables, and a capacity over the third cable."""
    nodes = tuple(Node(name, Kind.GPU) for name in "abc")
    ends = [(0, 1), (1, 0), (0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2)]
    return Topology(nodes, tuple(Link(t, h, 1.0 + i) for i, (t, h) in enumerate(ends)), (SharedCapacity((4, 5), 3.0),))


def test_node() -> None:
    """A node takes its links and what they shared with it; the rest keeps its rates."""
    left = without(ring(), ["c"])
    assert [node.name for node in left.nodes] == ["a", "b"]
    assert [link.capacity for link in left.links] == [1.0, 2.0, 3.0, 4.0]
    assert left.shared == ()


def test_one_direction() -> None:
    """A link is one direction of one cable."""
    left = without(ring(), ["b -> c", "a -> b (cable 1)"])
    assert [link.capacity for link in left.links] == [1.0, 2.0, 4.0, 6.0, 7.0, 8.0]
    assert left.shared == (SharedCapacity((3,), 3.0),)


def test_all_cables() -> None:
    """Two names are all cables between them, both ways."""
    assert [link.capacity for link in without(ring(), ["b - a"]).links] == [5.0, 6.0, 7.0, 8.0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("d", "there is no node or link 'd'; name a node, such as a, or a link, such as 'a -> b (cable 0)'"),
        ("a -> d", "there is no node or link 'a -> d'; name a node, such as a, or a link, such as 'a -> b (cable 0)'"),
        ("a - a", "no cable joins a - a"),
    ],
)
def test_unknown(name: str, message: str) -> None:
    """What is not there cannot fail."""
    with pytest.raises(InputError) as raised:
        without(ring(), [name])
    assert str(raised.value) == message
