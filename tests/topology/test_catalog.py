"""The catalogue: what its fabrics look like, how specs are read, and what is refused."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll._api import plan
from dualcoll.errors import InputError
from dualcoll.topology.arrays import reversal
from dualcoll.topology.catalog import box, catalog, entries
from dualcoll.topology.model import Kind, Topology
from dualcoll.topology.networks import NetworkKind


def out_rates(topology: Topology) -> list[float]:
    """Bytes/s leaving each node."""
    rates = [0.0] * len(topology.nodes)
    for link in topology.links:
        rates[link.tail] += link.capacity
    return rates


def names(topology: Topology, kind: Kind) -> list[str]:
    return [node.name for node in topology.nodes if node.kind is kind]


def between(topology: Topology, tail: str, head: str) -> list[float]:
    ends = topology.index[tail], topology.index[head]
    return [link.capacity for link in topology.links if (link.tail, link.head) == ends]


@pytest.mark.parametrize(
    ("spec", "gpus", "per_gpu"),
    [
        ("dgx-1v", 8, 150e9),
        ("dgx-2", 16, 150e9),
        ("dgx-a100", 8, 300e9),
        ("dgx-h100", 8, 450e9),
        ("dgx-b200", 8, 900e9),
        ("gb200-nvl72", 72, 900e9),
        ("mi250", 16, 350e9),
        ("mi300x", 8, 448e9),
        ("ndv2", 8, 150e9),
        ("ndv4", 8, 300e9),
        ("ndv5", 8, 450e9),
        ("p4d", 8, 300e9),
        ("p5", 8, 450e9),
        ("dgx-1v:rates=nccl", 8, 120e9),
        ("dgx-2:rates=nccl", 16, 120e9),
        ("dgx-a100:rates=nccl", 8, 240e9),
        ("dgx-h100:rates=nccl", 8, 370.8e9),
        ("dgx-b200:rates=nccl", 8, 721.8e9),
        ("gb200-nvl72:rates=nccl", 72, 721.8e9),
        ("mi250:rates=nccl", 16, 252e9),
        ("mi300x:rates=nccl", 8, 336e9),
        ("ndv2:rates=nccl", 8, 120e9),
        ("ndv4:rates=nccl", 8, 240e9),
        ("ndv5:rates=nccl", 8, 370.8e9),
        ("p4d:rates=nccl", 8, 240e9),
        ("p5:rates=nccl", 8, 370.8e9),
    ],
)
def test_boxes(spec: str, gpus: int, per_gpu: float) -> None:
    """Every GPU has all the links that its model has, at the vendor's rate or the library's."""
    topology = catalog(spec)
    assert topology.name == spec
    assert [topology.nodes[rank].name for rank in topology.ranks] == [f"g{i}" for i in range(gpus)]
    assert [out_rates(topology)[rank] for rank in topology.ranks] == pytest.approx([per_gpu] * gpus, rel=1e-12)
    assert {node.box for node in topology.nodes} == {"b0"}
    assert {link.latency for link in topology.links} == {0.35e-6}
    assert reversal(topology) is not None


@pytest.mark.parametrize(
    ("spec", "nics", "rate", "behind"),
    [
        ("dgx-1v", 4, 12.5e9, 2),
        ("dgx-2", 8, 12.5e9, 2),
        ("dgx-a100", 8, 25e9, 1),
        ("dgx-h100", 8, 50e9, 1),
        ("dgx-b200", 8, 50e9, 1),
        ("gb200-nvl72", 72, 50e9, 1),
        ("mi250", 8, 25e9, 2),
        ("mi300x", 8, 50e9, 1),
        ("ndv2", 1, 12.5e9, 8),
        ("ndv4", 8, 25e9, 1),
        ("ndv5", 8, 50e9, 1),
        ("p4d", 4, 12.5e9, 2),
        ("p5", 32, 12.5e9, 1),
        ("p4d:nic=200Gb/s", 4, 25e9, 2),
    ],
)
def test_nics(spec: str, nics: int, rate: float, behind: int) -> None:
    """A box has the NICs of its generation; where they are fewer than the GPUs, neighbours share them."""
    found = box(spec)
    ports = found.ports()
    assert [port[1] for port in ports] == [rate] * nics
    assert {len(nodes) for nodes, _ in ports} == {behind}
    served = [node for nodes, _ in ports for node in nodes]
    assert sorted(set(served)) == list(found.topology.ranks)
    assert len(served) == max(nics, len(found.topology.ranks))


NVSWITCH = (
    *("dgx-2", "dgx-a100", "dgx-h100", "dgx-b200", "gb200-nvl72", "ndv4", "ndv5", "p4d", "p5"),
    *("dgx-2:rates=nccl", "gb200-nvl72:rates=nccl"),
)


@pytest.mark.parametrize("spec", NVSWITCH)
def test_allreduce_around_a_box_switch(spec: str) -> None:
    """n GPUs of capacity c around a switch: n c / (2 (n - 1))."""
    topology = catalog(spec)
    n, c = len(topology.ranks), out_rates(topology)[0]
    made = plan(topology)
    assert [made.algbw, made.bound] == pytest.approx([n * c / 2 / (n - 1)] * 2, rel=1e-6)


@pytest.mark.parametrize(
    ("spec", "optimum"),
    [
        ("ndv2", 1200 / 14),  # all links over the edges of a tree, both ways
        ("mi300x", 4 * 64),  # n/2 of a link in a full mesh
        ("mi300x:rates=nccl", 4 * 48),
        ("dgx-1v:boxes=2", 4 * 12.5),  # what leaves a box: Q B / (2 (Q - 1))
        ("ndv2:boxes=4", 4 * 12.5 / 6),
        ("p4d:boxes=4", 4 * 50 / 6),
        ("p4d:boxes=4,network=dual-plane", 4 * 50 / 6),
        ("p5:boxes=2", 8 * 2 * 500 / 2 / (8 * 2 - 1)),  # what leaves a GPU
        ("dgx-h100:boxes=4,network=dual-plane", 8 * 4 * 500 / 2 / (8 * 4 - 1)),
        ("dgx-h100:boxes=4,network=dragonfly", 4 * 300 / 6),  # a group for each box, 6 of its 8 global links in use
        ("dragonfly:2", 72 * 50 / 2 / 71),
    ],
)
def test_allreduce_of_meshes_and_networks(spec: str, optimum: float) -> None:
    """Closed forms in GB/s: the tightest cut is met by the plan."""
    made = plan(catalog(spec))
    assert [made.algbw / 1e9, made.bound / 1e9] == pytest.approx([optimum] * 2, rel=1e-6)


def test_gpus_share_a_nic() -> None:
    """Both GPUs behind a NIC reach its leaf at its full rate, but not together; the leaf counts the NIC once."""
    topology = catalog("p4d:boxes=2")
    assert between(topology, "b0.g0", "leaf0") == between(topology, "leaf0", "b0.g1") == [12.5e9]
    assert between(topology, "b1.g7", "leaf3") == [12.5e9]
    assert between(topology, "leaf3", "spine0") == [2 * 12.5e9 / 4]
    assert len(topology.shared) == 2 * 4 * 2
    names = topology.describe_links()
    assert [[names[e] for e in row.links] for row in topology.shared[:2]] == [
        ["b0.g0 -> leaf0", "b0.g1 -> leaf0"],
        ["leaf0 -> b0.g0", "leaf0 -> b0.g1"],
    ]
    assert {(row.capacity, row.source) for row in topology.shared} == {
        (12.5e9, "a 100 Gb/s EFA NIC for two GPUs, nominal; Amazon EC2 P4d documentation")
    }
    assert reversal(topology) is not None
    assert {node.ports for node in catalog("p4d").nodes[:4]} == {(12.5e9,), ()}


def test_several_nics_a_gpu() -> None:
    """Each of the four NICs of a GPU is a rail of its own."""
    topology = catalog("p5:boxes=2")
    assert sum(name.startswith("leaf") for name in topology.index) == 32
    assert between(topology, "b1.g7", "leaf31") == between(topology, "b1.g7", "leaf28") == [12.5e9]
    assert between(topology, "b1.g7", "leaf27") == []


def test_cube_mesh_and_gcd_links() -> None:
    """Pairs with several links carry them together, under the field's numbering."""
    assert between(catalog("dgx-1v"), "g0", "g3") == [50e9]
    assert between(catalog("dgx-1v"), "g1", "g0") == [25e9]
    assert between(catalog("dgx-1v"), "g0", "g5") == []
    assert between(catalog("mi250"), "g0", "g1") == [200e9]
    assert between(catalog("mi250"), "g10", "g1") == [50e9]
    assert catalog("ndv2").links[0].capacity == catalog("dgx-1v").links[0].capacity
    assert [len(catalog(name).links) for name in ("ndv2", "dgx-1v", "mi300x")] == [32, 32, 56]


def test_sources_say_whose_rates() -> None:
    """Each link tells where its number comes from."""
    nominal, counted = catalog("dgx-h100"), catalog("dgx-h100:rates=nccl,boxes=2,nic=200Gb/s")
    assert nominal.links[0].source == (
        "18 NVLinks x 25 GB/s nominal (NCCL counts 370.8 GB/s); NVIDIA DGX H100 datasheet"
    )
    assert {link.source for link in counted.links} == {
        "18 NVLinks x 20.6 GB/s as NCCL counts (nominal 450 GB/s); NVIDIA DGX H100 datasheet",
        "the catalogue's nic option",
        "derived: a leaf's ports / oversubscription 1 / 4 spines",
    }
    assert {link.source for link in catalog("mi300x:boxes=2,network=single-switch").links} == {
        "1 XGMI x 64 GB/s nominal (RCCL counts 48 GB/s); AMD Instinct MI300X platform datasheet",
        "a 400 Gb/s NIC for each GPU, nominal; AMD ROCm documentation of multi-node serving",
    }


def test_default_network_is_rails_with_four_spines() -> None:
    """GPU i of every box meets leaf i; leaves go up without blocking."""
    topology = catalog("dgx-h100", boxes=4)
    assert topology == catalog("dgx-h100:boxes=4")
    assert names(topology, Kind.GPU)[:9] == [*(f"b0.g{i}" for i in range(8)), "b1.g0"]
    network = [node.name for node in topology.nodes if node.kind is Kind.SWITCH and node.box is None]
    assert network == [*(f"leaf{i}" for i in range(8)), *(f"spine{i}" for i in range(4))]
    assert topology.nodes[topology.index["b2.nvswitch"]].box == "b2"
    assert between(topology, "b3.g5", "leaf5") == [50e9]
    assert between(topology, "b3.g5", "leaf4") == []
    assert between(topology, "leaf5", "spine2") == [4 * 50e9 / 4]
    assert not any(node.ports for node in topology.nodes)
    assert {link.latency for link in topology.links} == {0.35e-6, 1.3e-6}


def test_other_networks() -> None:
    """A single switch takes every port; leaves take whole boxes; a fat tree grows to what fits."""
    single = catalog("dgx-a100:boxes=3,network=single-switch")
    assert out_rates(single)[single.index["switch"]] == 24 * 25e9
    leaves = catalog("dgx-a100:boxes=4,network=leaf-spine,boxes_per_leaf=2,spines=2,oversubscription=4")
    assert between(leaves, "b3.g7", "leaf1") == [25e9]
    assert between(leaves, "leaf0", "spine1") == [16 * 25e9 / 4 / 2]
    one_leaf = catalog("dgx-a100:boxes=2,network=leaf-spine,boxes_per_leaf=2")
    assert "spine0" not in one_leaf.index
    tree = catalog("dgx-a100:boxes=2,network=fat-tree")
    assert [sum(name.startswith(layer) for name in tree.index) for layer in ("edge", "agg", "core")] == [8, 8, 4]


def test_ports_stay_free_on_a_single_box() -> None:
    """One box has no network; its ports wait for a cluster."""
    assert {node.ports for node in catalog("dgx-h100").nodes} == {(50e9,), ()}
    assert box("dgx-a100", nic="12.5GB/s").topology.nodes[3].ports == (12.5e9,)


@pytest.mark.parametrize(
    ("spec", "gpus", "cables"),
    [
        ("ring:8", 8, 8),
        ("ring:2", 2, 1),
        ("line:4", 4, 3),
        ("full:8", 8, 28),
        ("mesh:3x3", 9, 12),
        ("mesh:2x3x4", 24, 46),
        ("torus:8x8", 64, 128),
        ("torus:4x2", 8, 12),
        ("torus:5x1", 5, 5),
        ("hypercube:4", 16, 32),
        ("star:5", 5, 5),
        ("single-switch:5", 5, 5),
        ("fat-tree:k=8", 128, 384),
        ("fat-tree:2", 2, 6),
        ("dragonfly:2", 72, 72 + 9 * 6 + 36),
        ("dragonfly:1,a=4", 20, 20 + 5 * 6 + 10),
        ("dragonfly:p=2,groups=3", 24, 24 + 3 * 6 + 3 * 4),
        ("dragonfly:4,a=2,h=1,groups=1", 8, 8 + 1),
        ("rail:4x8", 32, 96),
    ],
)
def test_shapes(spec: str, gpus: int, cables: int) -> None:
    """Every shape has its GPUs and cables, duplex and alike in both directions."""
    topology = catalog(spec)
    assert len(topology.ranks) == gpus
    assert len(topology.links) == 2 * cables
    assert reversal(topology) is not None
    assert len({(link.tail, link.head) for link in topology.links}) == 2 * cables


def test_regular_shapes_are_regular() -> None:
    """In ring, torus, hypercube and full every GPU has as many cables as every other."""
    for spec, degree in (("ring:5", 2), ("torus:4x5x3", 6), ("torus:2x3", 3), ("hypercube:3", 3), ("full:6", 5)):
        topology = catalog(spec, bandwidth="1GB/s")
        assert out_rates(topology) == [degree * 1e9] * len(topology.nodes)


def test_options_of_shapes() -> None:
    """A cable's bandwidth and latency can be set, a ring can run one way."""
    ring = catalog("ring:4,oneway=true,bandwidth=8Gb/s,latency=0")
    assert [(link.tail, link.head, link.capacity, link.latency) for link in ring.links] == [
        (i, (i + 1) % 4, 1e9, 0.0) for i in range(4)
    ]
    assert {link.latency for link in catalog("torus:4x4").links} == {0.35e-6}
    assert {link.latency for link in catalog("star:4").links} == {1.3e-6}
    rail = catalog("rail:2x4,box_bandwidth=100GB/s,bandwidth=10GB/s,spines=2,oversubscription=2,latency=2us")
    assert between(rail, "b0.g0", "b0.switch") == [100e9]
    assert between(rail, "leaf0", "spine0") == [20e9 / 2 / 2]
    blocked = catalog("fat-tree:4,oversubscription=2")
    assert between(blocked, "edge0", "agg0") == [50e9 / 2]
    assert between(blocked, "agg0", "core0") == [50e9 / 2]


def test_a_full_fat_tree_does_not_block() -> None:
    """Each layer of a k-ary fat tree carries what its hosts send."""
    topology = catalog("fat-tree:k=8")
    layers: Counter[tuple[str, str]] = Counter()
    for link in topology.links:
        tail, head = (topology.nodes[end].name.rstrip("0123456789") for end in (link.tail, link.head))
        layers[tail, head] += int(link.capacity)
    assert {layers[pair] for pair in (("g", "edge"), ("edge", "agg"), ("agg", "core"))} == {128 * 50 * 10**9}


def test_the_list_is_complete() -> None:
    """Every entry says what it is and what it takes, and stands in the documentation."""
    listed = {entry.name: entry for entry in entries()}
    assert set(listed) == {
        *("dgx-1v", "dgx-a100", "dgx-h100", "mi250", "ring", "line", "full", "mesh", "torus", "hypercube", "star"),
        *("single-switch", "fat-tree", "dragonfly", "rail", "dgx-2", "dgx-b200", "gb200-nvl72", "mi300x"),
        *("ndv2", "ndv4", "ndv5", "p4d", "p5"),
    }
    page = (Path(__file__).parents[2] / "docs" / "catalogue.md").read_text()
    assert all(f"`{name}" in page for name in (*listed, *NetworkKind))
    assert all(entry.summary and all(option.summary for option in entry.options) for entry in listed.values())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "dgx-h1000",
            "the catalogue has no 'dgx-h1000'; did you mean dgx-h100 or dgx-a100? `dualcoll topo list` shows all names",
        ),
        ("", "the catalogue has no ''; `dualcoll topo list` shows all names"),
        ("dgx-h100:boxs=4", "dgx-h100:boxs=4: unknown option 'boxs'; did you mean boxes?"),
        ("line:4,zzz=1", "line:4,zzz=1: unknown option 'zzz'; line takes n, bandwidth, latency"),
        ("dgx-h100:4", "dgx-h100:4: cannot read '4'; write option=value, separated by commas"),
        ("dgx-h100:boxes=0", "dgx-h100:boxes=0: boxes: 0 is out of range; use 1 to 1000000"),
        ("dgx-h100:boxes=-1", "dgx-h100:boxes=-1: boxes: -1 is out of range; use 1 to 1000000"),
        ("dgx-h100:boxes=two", "dgx-h100:boxes=two: boxes: 'two' is not a whole number; use 1 to 1000000"),
        ("dgx-h100:boxes=2,boxes=2", "dgx-h100:boxes=2,boxes=2: option boxes is given twice"),
        (
            "dgx-h100:boxes=900000",
            "dgx-h100:boxes=900000: it would have 8100000 nodes; at most 1000000 can be handled",
        ),
        ("dgx-h100:network=ral", "dgx-h100:network=ral: network: 'ral' is not known; did you mean rail?"),
        (
            "dgx-h100:network=single-switch,spines=2",
            "dgx-h100:network=single-switch,spines=2: spines has no meaning for a single-switch network; "
            "it belongs to rail, leaf-spine and dual-plane",
        ),
        (
            "dgx-h100:oversubscription=0",
            "dgx-h100:oversubscription=0: oversubscription 0.0 is out of range; use 0.01 to 1000",
        ),
        (
            "dgx-h100:oversubscription=2:1",
            'dgx-h100:oversubscription=2:1: oversubscription: \'2:1\' is not a number; use a number such as "2" or "1.5"',
        ),
        (
            "dgx-a100:boxes=9,network=fat-tree,k=4",
            "dgx-a100:boxes=9,network=fat-tree,k=4: 72 network ports do not fit a fat tree of k = 4 (16 hosts)",
        ),
        (
            "dgx-h100:boxes=1000,network=leaf-spine,spines=4096",
            "dgx-h100:boxes=1000,network=leaf-spine,spines=4096: it would have 8224000 links; "
            "at most 4000000 can be handled",
        ),
        ("p5:boxes=80000", "p5:boxes=80000: it would have 6400000 links; at most 4000000 can be handled"),
        (
            "dgx-a100:boxes=2,network=dragonfly,p=1,a=2,h=1",
            "dgx-a100:boxes=2,network=dragonfly,p=1,a=2,h=1: 16 network ports do not fit a dragonfly of "
            "a = 2, p = 1, h = 1 (6 ports); raise one of them, or leave it out",
        ),
        (
            "dgx-a100:network=rail,a=2",
            "dgx-a100:network=rail,a=2: a has no meaning for a rail network; it belongs to dragonfly",
        ),
        (
            "dgx-a100:network=dual-plane,boxes_per_leaf=2",
            "dgx-a100:network=dual-plane,boxes_per_leaf=2: boxes_per_leaf has no meaning for a dual-plane network; "
            "it belongs to leaf-spine",
        ),
        ("dragonfly:2,h=0", "dragonfly:2,h=0: h: 0 is out of range; use 1 to 4096"),
        ("dragonfly", "dragonfly: its size is missing; write dragonfly:p (GPUs of a router)"),
        (
            "dragonfly:2,groups=10",
            "dragonfly:2,groups=10: 10 groups are too many for a = 4, h = 2; use up to a h + 1 = 9",
        ),
        ("dragonfly:1,a=1,groups=1", "dragonfly:1,a=1,groups=1: it has a single GPU; collectives need 2 or more"),
        ("dragonfly:40", "dragonfly:40: it would have 10243200 nodes; at most 1000000 can be handled"),
        ("ring", "ring: its size is missing; write ring:n (how many GPUs)"),
        ("torus", "torus: its size is missing; write torus:shape (sides, such as 8x8)"),
        ("ring:1", "ring:1: n: 1 is out of range; use 2 to 1000000"),
        ("ring:4,n=4", "ring:4,n=4: option n is given twice"),
        ("ring:4,oneway=maybe", "ring:4,oneway=maybe: oneway: 'maybe' is neither true nor false"),
        (
            "ring:4,bandwidth=50",
            "ring:4,bandwidth=50: bandwidth: bandwidth '50' has no unit; "
            'write it with its unit, such as "50GB/s" (bytes) or "400Gb/s" (bits)',
        ),
        ("torus:0x8", "torus:0x8: shape: '0x8' is not a shape; write sides, such as 8x8, each at least 1"),
        ("torus:8xx8", "torus:8xx8: shape: '8xx8' is not a shape; write sides, such as 8x8, each at least 1"),
        ("torus:1x1", "torus:1x1: it has a single GPU; collectives need 2 or more"),
        ("torus:1000x1001", "torus:1000x1001: it would have 1001000 nodes; at most 1000000 can be handled"),
        ("rail:8", "rail:8: shape: '8' has 1 sides; write sides, such as 4x8"),
        ("full:5000", "full:5000: it would have 24995000 links; at most 4000000 can be handled"),
        ("hypercube:60", "hypercube:60: d: 60 is out of range; use 1 to 19"),
        ("fat-tree:5", "fat-tree:5: k 5 is not an even number from 2 to 256"),
    ],
)
def test_unusable_specs(spec: str, message: str) -> None:
    """A spec that cannot be built says which part is wrong and what to write; nothing big is built first."""
    start = time.perf_counter()
    with pytest.raises(InputError) as caught:
        catalog(spec)
    assert str(caught.value) == message
    assert time.perf_counter() - start < 60


def test_options_from_python() -> None:
    """Options may be Python values, but an option said twice is refused."""
    assert catalog("ring", n=4, oneway=True) == catalog("ring:4,oneway=True")
    with pytest.raises(InputError) as caught:
        catalog("ring:4", n=4)
    assert str(caught.value) == "ring:4: option n is given twice"


SMALL = st.text("0123456789x=,.:-abnkoesrw", max_size=12).filter(lambda text: sum(map(str.isdigit, text)) < 4)


@given(st.sampled_from([entry.name for entry in entries()]), SMALL)
def test_any_spec_is_built_or_refused(name: str, rest: str) -> None:
    """No text behind a name makes the catalogue fail otherwise than by saying so."""
    try:
        topology = catalog(f"{name}:{rest}")
    except InputError:
        return
    assert len(topology.ranks) >= 2
