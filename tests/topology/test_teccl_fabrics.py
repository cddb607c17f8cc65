"""TE-CCL's fabrics: as its code builds them, with their faults named, and as they were meant."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from dualcoll.errors import InputError
from dualcoll.topology.file import read_topology
from dualcoll.topology.importers.teccl_fabrics import FabricName, teccl_fabric
from dualcoll.topology.model import Kind, Topology


def pairs(topology: Topology) -> dict[tuple[int, int], float]:
    """Gigabytes a second of each link, by TE-CCL's numbers of its ends."""
    return {(link.tail, link.head): round(link.capacity / 1e9, 6) for link in topology.links}


def switches(topology: Topology) -> set[int]:
    return {i for i, node in enumerate(topology.nodes) if node.kind is Kind.SWITCH}


@pytest.mark.parametrize("published", [True, False])
def test_dgx1(*, published: bool) -> None:
    """Sixteen cables, eight of them double, six parts a GPU."""
    fabric = teccl_fabric(FabricName("DGX1", alpha=(0.7e-6, 0.0)), published=published)
    assert Counter(pairs(fabric).values()) == {50: 16, 25: 16}
    for gpu in range(8):
        assert sum(rate for (tail, _), rate in pairs(fabric).items() if tail == gpu) == 150
    assert {link.latency for link in fabric.links} == {0.7e-6}
    assert fabric.notes == ()


def test_two_ndv2_boxes() -> None:
    """One-way links of 12.5 GB/s join them; TE-CCL takes GPU 0 for a switch."""
    meant, built = (teccl_fabric(FabricName("NDv2", 2), published=published) for published in (False, True))
    assert {ends for ends, rate in pairs(meant).items() if rate == 12.5} == {(0, 9), (8, 1)}
    assert pairs(meant) == pairs(built)
    assert (len(meant.ranks), switches(meant), meant.notes) == (16, set(), ())
    assert (len(built.ranks), switches(built)) == (15, {0})
    assert built.notes[0].startswith("15 GPUs: node 0, a GPU, is taken for a switch")


def test_four_ndv2_boxes() -> None:
    """The first GPU of each sends to switch 0, which sends to the second; both readings agree."""
    meant, built = (teccl_fabric(FabricName("NDv2", 4), published=published) for published in (False, True))
    assert (meant.links, meant.notes) == (built.links, built.notes)
    assert {ends for ends in pairs(meant) if 0 in ends} == {(1 + 8 * b, 0) for b in range(4)} | {
        (0, 2 + 8 * b) for b in range(4)
    }


def test_dgx2() -> None:
    """Switches 0 and 17; every odd GPU sends to the even one before it in the other box, not back."""
    fabric = teccl_fabric(FabricName("DGX2", 2))
    assert switches(fabric) == {0, 17}
    between = {ends for ends, rate in pairs(fabric).items() if rate == 12.5}
    assert between == {(i + 1, 17 + i) for i in range(1, 17, 2)} | {(18 + i, i) for i in range(1, 17, 2)}
    assert teccl_fabric(FabricName("DGX2", 3)).notes[0].startswith("chassis ignored: DGX2 is always two boxes")
    assert len(teccl_fabric(FabricName("DGX2", 3), published=False).ranks) == 48


def test_mesh() -> None:
    """TE-CCL joins the end of each row to the beginning of the next; a grid does not."""
    meant, built = (teccl_fabric(FabricName("Mesh", side_length=3), published=p) for p in (False, True))
    assert pairs(built).keys() - pairs(meant).keys() == {(2, 3), (3, 2), (5, 6), (6, 5)}
    assert len(pairs(meant)) == 24
    assert built.notes == ("row-wrap links: the last node of each row is joined to the first of the next",)


def test_two_amd_boxes() -> None:
    """Off by one: a GPU is a switch, a switch is a GPU, and the first switch has links of GPUs' class."""
    name = FabricName("AMD", 2, alpha=(1e-6, 2e-6))
    meant, built = (teccl_fabric(name, published=published) for published in (False, True))
    assert switches(meant) == {0, *range(17, 25), *range(41, 49)}
    assert switches(built) == {0, *range(16, 24), *range(40, 48)}
    assert (len(meant.ranks), len(built.ranks)) == (32, 32)
    assert (pairs(meant)[1, 17], pairs(built)[1, 17]) == (25, 50)
    assert {link.latency for link in built.links if (link.tail, link.head) == (1, 17)} == {1e-6}
    assert (0, 24) in pairs(meant)
    assert (0, 24) not in pairs(built)
    assert [note.partition(":")[0] for note in built.notes] == ["switches off by one", "link class off by one"]


def test_input_as_topology(tmp_path: Path) -> None:
    """An input stands for the fabric that was meant; with ``faults=kept`` behind its name for the one that is built."""
    path = tmp_path / "input.json"
    data = {"TopologyParams": {"name": "Mesh", "side_length": 3, "chunk_size": 1}, "InstanceParams": {"collective": 1}}
    path.write_text(json.dumps(data))
    meant, built = read_topology(path), read_topology(f"{path}:faults=kept")
    assert (len(meant.links), len(built.links)) == (24, 28)
    assert meant.notes[0].startswith("TE-CCL's code builds another fabric: row-wrap links")
    with pytest.raises(InputError, match="faults=x is not known"):
        read_topology(f"{path}:faults=x")
    with pytest.raises(InputError, match="cannot read 'boxes=2'"):
        read_topology(f"{path}:boxes=2")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (FabricName("NDv3"), "'NDv3' is not known"),
        (FabricName("NDv2", 0), "0 is below 1"),
        (FabricName("Mesh", side_length=1), "1 is below 2"),
        (FabricName("Mesh", side_length=10**6), "at most"),
        (FabricName("DGX1", 2), "DGX1 is one box"),
    ],
    ids=lambda row: "",
)
def test_unusable(name: FabricName, words: str) -> None:
    """Names and numbers that there are not."""
    with pytest.raises(InputError) as refused:
        teccl_fabric(name, published=False)
    assert words in str(refused.value)
