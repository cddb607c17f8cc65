"""TACCL's topologies: costs as rates and latencies, and what has to stand behind the file's name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dualcoll.errors import InputError
from dualcoll.topology.devices import Rates
from dualcoll.topology.file import read_topology, write_topology
from dualcoll.topology.importers import ImportOptions
from dualcoll.topology.model import Kind, Topology

NDV2: dict[str, Any] = {
    "name": "NDv2_32KB",
    "gpus_per_node": 8,
    "nics_per_node": 1,
    "alpha": 3,
    "node_betas_list": [7.1875, 14.375],
    "node_invbws_list": [10.1875, 17.375],
    "remote_alpha": 26,
    "remote_beta": 32.8125,
    "remote_invbw": 59,
}
DGX2: dict[str, Any] = {
    "name": "DGX2_1MB",
    "gpus_per_node": 16,
    "nics_per_node": 8,
    "alpha": 0.3,
    "node_betas_list": [8],
    "node_invbws_list": [8.3],
    "remote_alpha": 2.6,
    "remote_beta": 105,
    "remote_invbw": 107.6,
}
TABLED: dict[str, Any] = {  # two cables from 0 to 1, one back, by destination and source
    "name": "mine_1MB",
    "gpus_per_node": 2,
    "alpha": 1,
    "links": [[0, 1], [2, 0]],
    "betas": [[0, 100], [50, 0]],
    "invbws": [[0, 101], [51, 0]],
}


def read(folder: Path, data: dict[str, Any], behind: str = "boxes=1", options: ImportOptions | None = None) -> Topology:
    path = folder / "topo.json"
    path.write_text(json.dumps(data))
    return read_topology(f"{path}:{behind}" if behind else path, options)


def rates(topology: Topology, *kinds: Kind) -> set[tuple[float, float]]:
    """Gigabytes and microseconds of links between nodes of these kinds."""
    return {
        (round(link.capacity / 1e9, 3), round(link.latency * 1e6, 3))
        for link in topology.links
        if {topology.nodes[link.tail].kind, topology.nodes[link.head].kind} == set(kinds)
    }


def test_scaled_costs(tmp_path: Path) -> None:
    """Costs of 32 KB that are multiplied by 10: 23 and 46 us/MB, 0.3 us; a KB is a 1024th of 10^6 bytes."""
    fabric = read(tmp_path, NDV2, "boxes=2,scale=10")
    assert rates(fabric, Kind.GPU) == {(43.478, 0.3), (21.739, 0.3)}
    assert rates(fabric, Kind.NIC, Kind.SWITCH) == {(9.524, 1.3)}
    assert len(fabric.ranks) == 16
    assert "invbw 59 is not alpha + beta = 58.8125: alpha and beta are used" in fabric.notes


def test_switched_box(tmp_path: Path) -> None:
    """GPUs of a DGX2 meet at a switch, two GPUs have a NIC, and a way over both links has the latency of the file."""
    fabric = read(tmp_path, DGX2, "boxes=2")
    assert rates(fabric, Kind.GPU, Kind.SWITCH) == {(125.0, 0.15)}
    assert rates(fabric, Kind.GPU, Kind.NIC) == {(9.524, 0.0)}
    assert sum(node.kind is Kind.NIC for node in fabric.nodes) == 16
    assert fabric.notes == (
        "costs are taken as us for 1 MB, not multiplied; scale=10 behind the file's name says otherwise",
    )


def test_tables_are_by_destination(tmp_path: Path) -> None:
    """``links[1][0]`` is from 0 to 1."""
    fabric = read(tmp_path, TABLED)
    assert {(link.tail, link.head, link.capacity) for link in fabric.links} == {(0, 1, 40e9), (1, 0, 10e9)}


def test_other_sizes(tmp_path: Path) -> None:
    """A name without a size needs one, and a structure that the name does not say can be given."""
    data = DGX2 | {"name": "ours"}
    assert rates(read(tmp_path, data, "boxes=1,size=1MB,structure=DGX2"), Kind.GPU, Kind.SWITCH) == {(125.0, 0.15)}


def test_native_copy(tmp_path: Path) -> None:
    """Written as a native file it is the same fabric."""
    fabric = read(tmp_path, NDV2, "boxes=2,scale=10")
    write_topology(fabric, tmp_path / "native.yaml")
    copy = read_topology(tmp_path / "native.yaml")
    assert (copy.nodes, copy.ranks) == (fabric.nodes, fabric.ranks)
    assert [(x.tail, x.head) for x in copy.links] == [(x.tail, x.head) for x in fabric.links]
    assert [x.capacity for x in copy.links] == pytest.approx([x.capacity for x in fabric.links])


BAD: list[tuple[dict[str, Any], str, str]] = [
    (NDV2, "", "not how many there are; say it behind the file's name: topo.json:boxes=2"),
    (NDV2, "boxes=2", "multiplied by a number that it does not say"),
    (NDV2, "boxes=0,scale=10", "boxes=0"),
    (NDV2, "boxes=2,boxes=2", "boxes is given twice"),
    (NDV2, "boxes=2,nodes=2", "cannot read 'nodes=2'"),
    (NDV2, "boxes=2,scale=x", "scale=x"),
    (NDV2, "boxes=2,scale=nan", "scale=nan"),
    (NDV2, "boxes=2,scale=10,structure=DGX9", "'DGX9' is not known"),
    (NDV2, "boxes=2,scale=10,structure=DGX2", "a DGX2 has 16 GPUs, not 8"),
    (NDV2, "boxes=999999,scale=10", "at most"),
    (NDV2 | {"nics_per_node": 3}, "boxes=2,scale=10", "3 NICs for 8 GPUs"),
    (NDV2 | {"remote_beta": 0}, "boxes=2,scale=10", "remote_beta"),
    (NDV2 | {"node_betas_list": [1]}, "boxes=2,scale=10", "1 betas, where a NDv2 has 2"),
    (NDV2 | {"alpha": -3}, "boxes=2,scale=10", "alpha"),
    (NDV2 | {"name": "ours"}, "boxes=2,scale=10", "does not say which chunk the costs are for"),
    (NDV2 | {"name": "ours_1MB"}, "boxes=2", "names no structure"),
    (NDV2 | {"name": "NDv2_0KB"}, "boxes=2,scale=1", "costs for no bytes"),
    (TABLED, "boxes=2", "nothing of what joins them"),
    (TABLED | {"links": [[0, 1]]}, "boxes=1", "links: it is no table of 2 by 2 numbers"),
    (TABLED | {"betas": [[0, 0], [0, 0]]}, "boxes=1", "a beta of 0.0 is not above 0"),
]


@pytest.mark.parametrize(("data", "behind", "words"), BAD, ids=range(len(BAD)))
def test_unusable(tmp_path: Path, data: dict[str, Any], behind: str, words: str) -> None:
    """What a file does not say has to be said, and what cannot be is refused."""
    with pytest.raises(InputError) as refused:
        read(tmp_path, data, behind)
    assert words in str(refused.value)


def test_flags_change_nothing(tmp_path: Path) -> None:
    """Flags of other importers are noted, as a file of costs has no use for them."""
    fabric = read(tmp_path, TABLED, options=ImportOptions(gpu="H100", rates=Rates.NCCL))
    assert "--gpu H100 changed nothing: a TACCL topology has its own costs" in fabric.notes
    assert "--rates nccl changed nothing: a TACCL topology has its own costs" in fabric.notes


def test_keys_behind_other_files(tmp_path: Path) -> None:
    """Nothing is read behind the names of files that need nothing."""
    fabric = read(tmp_path, TABLED)
    write_topology(fabric, tmp_path / "native.yaml")
    with pytest.raises(InputError, match="nothing is read behind the name of a native file"):
        read_topology(f"{tmp_path / 'native.yaml'}:boxes=2")
    (tmp_path / "topo.xml").write_text("<system version='1'></system>")
    with pytest.raises(InputError, match="nothing is read behind the name of NCCL"):
        read_topology(f"{tmp_path / 'topo.xml'}:boxes=2")
