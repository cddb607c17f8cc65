from __future__ import annotations

from dataclasses import replace

import pytest

from dualcoll.collectives.groups import participants_of
from dualcoll.errors import InputError
from dualcoll.topology.model import Topology
from tests.packing.fabrics import fabric

# nodes:    0   1   2   3   4   5; ranks 0..3 are g0, g1, h0, g3
TOPOLOGY = fabric("g0-s0:1, g1-s0:1, h0-s0:1, x0-s0:1, g3-s0:1")


@pytest.mark.parametrize(
    ("asked", "nodes"),
    [
        (None, ["g0", "g1", "h0", "g3"]),
        ("0-3", ["g0", "g1", "h0", "g3"]),
        ("3,0", ["g3", "g0"]),
        (" 1 , h0 ", ["g1", "h0"]),
        ([3, "g0", "1-2"], ["g3", "g0", "g1", "h0"]),
        ("2", ["h0"]),
    ],
)
def test_ranks_by_number_range_and_name(asked: str | list[int | str] | None, nodes: list[str]) -> None:
    """Numbers count ranks, not nodes, and the order asked for is kept."""
    assert [TOPOLOGY.nodes[i].name for i in participants_of(TOPOLOGY, asked)] == nodes


def called(*names: str) -> Topology:
    """Two ranks of these names, one cable between them."""
    pair = fabric("g0-g1:1")
    return replace(pair, nodes=tuple(replace(node, name=name) for node, name in zip(pair.nodes, names, strict=True)))


def test_a_node_called_like_a_number_is_meant_by_its_name() -> None:
    """A node whose name is a number that is no other rank's."""
    topology = called("0", "7")
    assert [topology.nodes[i].name for i in participants_of(topology, "7,0")] == ["7", "0"]


def test_a_name_that_is_the_number_of_another_rank_is_refused() -> None:
    """As text it may mean either; as a number or a range it can only be the number."""
    topology = called("a", "0")
    with pytest.raises(InputError) as caught:
        participants_of(topology, "0")
    assert str(caught.value) == (
        "ranks: 0 is the name of one rank and the number of another, a; rename the nodes, or give ranks as a range such as 0-1"
    )
    assert [topology.nodes[i].name for i in participants_of(topology, [0])] == ["a"]
    assert [topology.nodes[i].name for i in participants_of(topology, "0-1")] == ["a", "0"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("0,0", "ranks: rank g0 is named twice"),
        ("0-1,g1", "ranks: rank g1 is named twice"),
        ("4", "ranks: 4 is not within ranks 0 to 3"),
        ("2-9", "ranks: 2-9 is not within ranks 0 to 3"),
        ("3-1", "ranks: 3-1 is not within ranks 0 to 3"),
        ("s0", "ranks: s0 is a switch and no rank; give the node `rank: true`"),
        ("x0", "ranks: x0 is a gpu and no rank; give the node `rank: true`"),
        ("", "ranks: '' is not a rank; ranks are 0 to 3, or node names"),
        ("banana", "ranks: 'banana' is not a rank; ranks are 0 to 3, or node names"),
        ([-1], "ranks: '-1' is not a rank; ranks are 0 to 3, or node names"),
        ("1" * 80, f"ranks: '{'1' * 60}' is not a rank; ranks are 0 to 3, or node names"),
    ],
)
def test_unusable_ranks_are_refused(asked: str | list[int | str], message: str) -> None:
    """With what was asked for, why it cannot be, and what can."""
    with pytest.raises(InputError) as caught:
        participants_of(TOPOLOGY, asked)
    assert str(caught.value) == message


def test_a_misspelt_name_is_met_with_the_close_ones() -> None:
    """At most three."""
    topology = fabric(", ".join(f"gpu_{i}-switch:1" for i in range(8)))
    with pytest.raises(InputError) as caught:
        participants_of(topology, "gpu-7")
    assert str(caught.value) == "ranks: 'gpu-7' is not a rank; did you mean gpu_7, gpu_6, gpu_5?"
