"""NCCL topology files: written, loaded as NCCL does, and read back to the same rates."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualcoll.errors import InputError
from dualcoll.lowering.nccl import check_topology, topology_text, write_topology
from dualcoll.topology.catalog import catalog
from dualcoll.topology.devices import Rates
from dualcoll.topology.model import Kind, Link, Node, SharedCapacity, Topology
from tests.topology.imported import fixture, links, options, read


@pytest.mark.parametrize(
    ("box", "gpu"), [("dgx-1v", "V100"), ("dgx-a100", "A100"), ("dgx-h100", "H100"), ("dgx-b200", "B200")]
)
@pytest.mark.parametrize("rates", list(Rates))
def test_catalogue_boxes(box: str, gpu: str, rates: Rates, tmp_path: Path) -> None:
    """Every GPU link and network port of a box comes back at its rate."""
    topology = catalog(box, rates=str(rates))
    write_topology(topology, tmp_path / "t.xml", gpu, rates=rates)
    data = (tmp_path / "t.xml").read_bytes()
    assert check_topology(data, "t") == ()
    back = read(data, options(rates=rates))
    found = links(back)
    for (tail, head), rate in links(topology).items():
        ends = [name.replace("g", "gpu", 1) if name.startswith("g") else name for name in (tail, head)]
        assert found[ends[0], ends[1]] == rate
    ports = [sorted(port for node in box.nodes for port in node.ports) for box in (topology, back)]
    assert ports[0] == ports[1]


@pytest.mark.parametrize("rates", list(Rates))
def test_imported_box(rates: Rates) -> None:
    """A full dump that was imported is written and read back to the same links, ports and charged host bridges."""
    topology = read(fixture("nccl_full.xml"), options(rates=rates))
    text = topology_text(topology, "H100", rates=rates)
    back = read(text, options(rates=rates))
    assert check_topology(text.encode(), "t") == ()
    assert links(back) == links(topology)
    assert sorted(row.capacity for row in back.shared) == sorted(row.capacity for row in topology.shared)
    assert {node.name: node.ports for node in back.nodes} == {node.name: node.ports for node in topology.nodes}


def test_bus_ids() -> None:
    """Bus ids that are given are used, and no other device gets them."""
    topology = catalog("dgx-a100")
    text = topology_text(topology, "A100", busids={"g3": "0000:01:00.0"})
    assert text.count('pci busid="0000:01:00.0"') == 1
    with pytest.raises(InputError, match="is used twice; give each its own"):
        topology_text(topology, "A100", busids={"g0": "0000:AA:00.0", "g1": "0000:aa:00.0"})


def pair(capacity: float, shared: bool = False) -> Topology:
    nodes = (Node("a", Kind.GPU, box="b"), Node("b", Kind.GPU, box="b"))
    both = (Link(0, 1, capacity), Link(1, 0, capacity))
    return Topology(nodes, both, (SharedCapacity((0, 1), capacity),) if shared else ())


@pytest.mark.parametrize(
    ("topology", "gpu", "problem"),
    [
        (pair(30e9), "H100", "link a -> b: 30 GB/s is no number of NVLinks of 25 GB/s"),
        (pair(25e9, shared=True), "H100", "shared capacities have no place"),
        (pair(25e9), "MI300X", "MI300X is not by NVIDIA"),
        (pair(25e9), "abacus", "GPU model 'abacus' is not known"),
        (catalog("dgx-a100", boxes=2), "A100", "2 boxes; NCCL takes a file of one box"),
        (
            Topology((Node("h", Kind.HOST, box="b"), Node("i", Kind.HOST, box="b")), (Link(0, 1, 1.0),)),
            "A100",
            "has no GPU",
        ),
    ],
)
def test_refusals(topology: Topology, gpu: str, problem: str) -> None:
    """What the file cannot say is refused with the reason."""
    with pytest.raises(InputError) as caught:
        topology_text(topology, gpu)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        (' sm="80"', "", "a <gpu> has no sm"),
        ('version="1"', 'version="2"', "NCCL loads 1 only"),
        ('"16.0 GT/s PCIe"', '"16.0 GT/s"', "NCCL counts it as Gen3"),
        ('rank="1"', 'rank="0"', "two GPUs have rank 0"),
        ('busid="0000:01:00.0"', 'busid="0000:00:00.0"', "bus id 0000:00:00.0 is used twice"),
    ],
)
def test_faults(old: str, new: str, finding: str) -> None:
    """The validator finds each fault."""
    text = topology_text(catalog("dgx-a100"), "A100")
    assert any(finding in line for line in check_topology(text.replace(old, new).encode(), "t"))


def test_too_many_nodes() -> None:
    """More elements than NCCL has room for are found."""
    gpus = "".join(f'<pci busid="{i}"></pci>' for i in range(300))
    with pytest.raises(InputError, match="255 in all"):
        check_topology(f'<system version="1"><cpu numaid="0">{gpus}</cpu></system>'.encode(), "t")
