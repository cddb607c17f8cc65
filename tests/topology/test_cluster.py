"""Cluster files: boxes and a network become one fabric."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dualcoll.errors import InputError
from dualcoll.topology.catalog import catalog
from dualcoll.topology.compose import Box, compose
from dualcoll.topology.file import read_topology, topology_from_dict, topology_to_dict
from dualcoll.topology.model import Kind, Node, Topology
from dualcoll.topology.networks import Network, NetworkKind

FIXTURES = Path(__file__).parent.parent / "fixtures"
HEAD = "format: dualcoll.cluster/1\n"


def cluster(path: Path, content: str) -> Topology:
    path.write_text(HEAD + content)
    return read_topology(path)


def between(topology: Topology, tail: str, head: str) -> list[float]:
    ends = topology.index[tail], topology.index[head]
    return [link.capacity for link in topology.links if (link.tail, link.head) == ends]


def test_boxes_of_the_catalogue(tmp_path: Path) -> None:
    """A cluster of one catalogue box is the catalogue's cluster, but for its name."""
    found = cluster(
        tmp_path / "c.yaml",
        "name: dgx-h100:boxes=4,spines=2,oversubscription=2\n"
        "boxes: [{count: 4, use: dgx-h100}]\nnetwork: {kind: rail, spines: 2, oversubscription: 2}",
    )
    assert found == catalog("dgx-h100:boxes=4,spines=2,oversubscription=2")


def test_boxes_that_differ(tmp_path: Path) -> None:
    """Different GPU and NIC counts and speeds stand side by side; a leaf goes up by what hangs below it."""
    found = cluster(
        tmp_path / "c.yaml",
        "boxes:\n"
        "  - {use: dgx-h100}\n"
        "  - {use: dgx-a100, rates: nccl, nic: 100Gb/s, rails: [0, 2]}\n"
        f"  - {{count: 2, file: {FIXTURES}/shared-nic-box.yaml}}\n",
    )
    assert len(found.ranks) == 8 + 8 + 2 + 2
    assert between(found, "b1.g0", "b1.nvswitch") == [240e9]
    assert between(found, "b1.g1", "leaf2") == [12.5e9]
    assert found.nodes[found.index["b1.g2"]].ports == (12.5e9,)
    assert between(found, "b2.nic", "leaf0") == between(found, "b3.nic", "leaf1") == [25e9]
    assert between(found, "leaf0", "spine3") == [(50e9 + 12.5e9 + 25e9 + 25e9) / 4]
    assert between(found, "leaf7", "spine0") == [50e9 / 4]
    assert {node.box for node in found.nodes} == {"b0", "b1", "b2", "b3", None}
    assert found.notes == ("measured by hand",)


def test_the_inside_of_a_box_comes_along(tmp_path: Path) -> None:
    """Ids and shared capacities of a box are there once per copy, and the fabric can be written and read."""
    found = cluster(
        tmp_path / "c.yaml",
        f"boxes: [{{count: 2, file: {FIXTURES}/shared-nic-box.yaml}}]\nnetwork: {{kind: single-switch}}",
    )
    assert [[found.links[e].id for e in row.links] for row in found.shared] == [["b0.lane"] * 2, ["b1.lane"] * 2]
    assert between(found, "b1.nic", "switch") == [25e9, 25e9]
    assert topology_from_dict(topology_to_dict(found)) == found


def test_imported_boxes_share_their_nic(tmp_path: Path) -> None:
    """GPUs of an NCCL file reach the network through their PCIe switch and its NIC; paths are relative to the cluster."""
    (tmp_path / "boxes").mkdir()
    (tmp_path / "boxes" / "pair.xml").write_bytes((FIXTURES / "two-gpus-one-nic.xml").read_bytes())
    found = cluster(
        tmp_path / "c.yaml", "boxes: [{count: 3, file: boxes/pair.xml}]\nnetwork: {kind: leaf-spine, boxes_per_leaf: 2}"
    )
    assert len(found.ranks) == 6
    assert [node.name for node in found.nodes if node.kind is Kind.NIC] == ["b0.mlx5_0", "b1.mlx5_0", "b2.mlx5_0"]
    assert between(found, "b1.mlx5_0", "leaf0") == between(found, "b2.mlx5_0", "leaf1") == [25e9]
    assert {link.source for link in found.links if found.nodes[link.head].name == "leaf0"} >= {
        "network port of boxes/pair.xml"
    }


def test_two_rails_for_eight_ports(tmp_path: Path) -> None:
    """Several ports of a box may share a rail: NIC i on switch i mod 2."""
    found = cluster(tmp_path / "c.yaml", "boxes: [{count: 2, use: dgx-a100, rails: [0, 1, 0, 1, 0, 1, 0, 1]}]")
    assert [n.name for n in found.nodes if n.box is None] == ["leaf0", "leaf1", *(f"spine{i}" for i in range(4))]
    assert between(found, "leaf1", "spine0") == [8 * 25e9 / 4]


def test_shared_nics_on_few_rails(tmp_path: Path) -> None:
    """A rail is given for each NIC, not for each GPU behind it; NICs beyond the list stay free."""
    found = cluster(tmp_path / "c.yaml", "boxes: [{count: 2, use: p4d, nic: 50Gb/s, rails: [0, 1, 0]}]")
    assert between(found, "b1.g1", "leaf0") == between(found, "b1.g4", "leaf0") == [6.25e9]
    assert between(found, "b1.g3", "leaf1") == [6.25e9]
    assert between(found, "leaf0", "spine0") == [4 * 6.25e9 / 4]
    assert len(found.shared) == 2 * 3 * 2
    assert {node.name for node in found.nodes if node.ports} == {"b0.g6", "b1.g6"}


def test_dragonfly_and_dual_plane(tmp_path: Path) -> None:
    """The other networks of the catalogue can be written in a file, and planes have rails."""
    flies = "name: 'dgx-h100:boxes=4,network=dragonfly,a=2,p=4,h=2'\nboxes: [{count: 4, use: dgx-h100}]\n"
    found = cluster(tmp_path / "c.yaml", f"{flies}network: {{kind: dragonfly, a: 2, p: 4, h: 2}}")
    assert found == catalog("dgx-h100:boxes=4,network=dragonfly,a=2,p=4,h=2")
    planes = (
        "boxes: [{count: 2, use: dgx-a100, rails: [0, 0, 0, 0, 1, 1, 1, 1]}]\nnetwork: {kind: dual-plane, spines: 1}"
    )
    found = cluster(tmp_path / "c.yaml", planes)
    assert between(found, "b1.g7", "plane0.leaf1") == between(found, "b1.g7", "plane1.leaf1") == [12.5e9]
    assert between(found, "plane1.leaf1", "plane1.spine0") == [8 * 12.5e9]


def test_a_rail_alone_needs_no_spine(tmp_path: Path) -> None:
    """If everything hangs on one leaf there is nothing above it."""
    found = cluster(tmp_path / "c.yaml", "boxes: [{count: 2, use: dgx-a100, rails: [0]}]\nnetwork: {latency: 2us}")
    assert [n.name for n in found.nodes if n.box is None] == ["leaf0"]
    assert {link.latency for link in found.links} == {0.35e-6, 2e-6}


def test_a_single_box_has_no_network(tmp_path: Path) -> None:
    """One box keeps its ports."""
    found = cluster(tmp_path / "c.yaml", "boxes: [{use: dgx-a100}]")
    assert all(node.box == "b0" for node in found.nodes)
    assert found.nodes[0] == Node("b0.g0", Kind.GPU, True, "b0", (25e9,))


def test_a_file_of_several_boxes_keeps_them_apart() -> None:
    """Boxes inside a composed box keep their own names behind its own."""
    inner = Topology(
        (Node("a", Kind.GPU, box="x", ports=(1e9,)), Node("b", Kind.GPU, box="y"), Node("s", Kind.SWITCH)), ()
    )
    found = compose([Box("b0", inner), Box("b1", inner)], Network(NetworkKind.SINGLE_SWITCH))
    assert [node.box for node in found.nodes] == ["b0.x", "b0.y", None, "b1.x", "b1.y", None, None]


def test_boxes_to_compose_need_names() -> None:
    """Composing needs boxes, each with its own name."""
    one = Box("b0", catalog("dgx-a100"))
    with pytest.raises(InputError) as caught:
        compose([], Network())
    assert str(caught.value) == "the cluster has no boxes"
    with pytest.raises(InputError) as caught:
        compose([one, one], Network())
    assert str(caught.value) == "box name 'b0' is used 2 times; names must be unique"


PAIR = "boxes:\n  - {count: 2, use: dgx-h100}\nnetwork: {kind: rail, spines: 2}\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rail", "rial", "c.yaml:4: network.kind: 'rial' is not known; did you mean rail?"),
        ("spines", "spine", "c.yaml:4: network.spine: unknown key 'spine'; did you mean spines?"),
        ("spines: 2", "spines: 0", "c.yaml:4: network: spines 0 is out of range; use 1 to 4096"),
        ("spines: 2", "spines: two", "c.yaml:4: network.spines: 'two' is not a whole number of at most nine digits"),
        (
            "spines: 2",
            "oversubscription: 2:1",
            'c.yaml:4: network.oversubscription: \'2:1\' is not a positive number; use a number such as "2" or "1.5"',
        ),
        (
            "spines: 2",
            "oversubscription: 1e30",
            "c.yaml:4: network: oversubscription 1e+30 is out of range; use 0.01 to 1000",
        ),
        (
            "spines: 2",
            "oversubscription: 1e999",
            "c.yaml:4: network: oversubscription inf is out of range; use 0.01 to 1000",
        ),
        (
            "kind: rail",
            "kind: fat-tree",
            "c.yaml:4: network: spines has no meaning for a fat-tree network; it belongs to rail, leaf-spine and dual-plane",
        ),
        ("count: 2", "count: 0", "c.yaml:3: boxes[0].count: 0 is out of range; use 1 or more"),
        ("count: 2", "count: 900000", "c.yaml: it would have 8100000 nodes; at most 1000000 can be handled"),
        ("boxes:", "box:", "c.yaml:2: box: unknown key 'box'; did you mean boxes?"),
        (
            "dgx-h100",
            "dgx-h1000",
            "c.yaml:3: boxes[0]: the catalogue has no box 'dgx-h1000'; its boxes are dgx-1v, dgx-2, dgx-a100, dgx-h100, "
            "dgx-b200, gb200-nvl72, mi250, mi300x, ndv2, ndv4, ndv5, p4d, p5",
        ),
        (
            "use: dgx-h100",
            "use: 'dgx-h100:boxes=2'",
            "c.yaml:3: boxes[0]: dgx-h100:boxes=2: boxes is no option of a single box; say count beside it, and network below",
        ),
        ("use: dgx-h100", "gpu: A100", "c.yaml:3: boxes[0]: it needs either use (a box of the catalogue) or file"),
        (
            "use: dgx-h100",
            "use: dgx-h100, file: x",
            "c.yaml:3: boxes[0]: it needs either use (a box of the catalogue) or file",
        ),
        (
            "use: dgx-h100",
            "use: dgx-h100, pcie: Gen4",
            "c.yaml:3: boxes[0]: pcie is for a file, not for a box of the catalogue",
        ),
        (
            "use: dgx-h100",
            "use: dgx-h100, cpu: 40GB/s",
            "c.yaml:3: boxes[0]: cpu is for a file, not for a box of the catalogue",
        ),
        (
            "use: dgx-h100",
            "use: dgx-h100, nic: 200",
            "c.yaml:3: boxes[0]: dgx-h100: nic: bandwidth '200' has no unit; "
            'write it with its unit, such as "50GB/s" (bytes) or "400Gb/s" (bits)',
        ),
        (
            "use: dgx-h100",
            "file: none.xml",
            "c.yaml:3: boxes[0]: none.xml: it cannot be read: No such file or directory",
        ),
        ("use: dgx-h100", "file: sub", "c.yaml:3: boxes[0]: sub: it is a folder, not a file"),
        (
            "use: dgx-h100",
            "file: c.yaml",
            "c.yaml:3: boxes[0]: c.yaml: a cluster cannot stand in a cluster; list its boxes here",
        ),
        ("use: dgx-h100", "use: dgx-h100, rails: [0, -1]", "c.yaml:3: boxes[0].rails: rails [0, -1] have one below 0"),
        (
            "use: dgx-h100",
            "use: dgx-h100, rails: [0,1,2,3,4,5,6,7,8]",
            "c.yaml: box b0: 9 rails for 8 network ports",
        ),
        (
            "use: dgx-h100",
            "use: dgx-h100, rails: []",
            "c.yaml: box b0: it has no network port to cable; "
            "give the speed of its NICs, or cable at least one of its ports to a rail",
        ),
    ],
)
def test_where_and_what_is_wrong(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A mistake is reported with its file, line and key, or the box that it concerns."""
    assert old in PAIR
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError) as caught:
        cluster(tmp_path / "c.yaml", PAIR.replace(old, new, 1))
    assert str(caught.value).replace(f"{tmp_path}{os.sep}", "") == message


def test_what_a_file_does_not_say_stands_beside_it(tmp_path: Path) -> None:
    """The keys are the flags of the same name: used, or noted with the reason."""
    (tmp_path / "m.txt").write_text("GPU0 GPU1 eth0\nGPU0 X SYS PHB\nGPU1 SYS X SYS\neth0 PHB SYS X\n")
    text = "boxes:\n  - {count: 2, file: m.txt, nic: 100Gb/s, pcie: Gen4, cpu: 40GB/s}\n"
    assert between(cluster(tmp_path / "c.yaml", text), "b1.cpu0", "b1.cpu1") == [40e9]
    topology = cluster(tmp_path / "c.yaml", text.replace("nic:", "gpu: T4, nic:"))
    assert [note for note in topology.notes if "--" in note] == [
        "--gpu T4 changed nothing: the matrix shows no NVLink, and --pcie says the PCIe generation"
    ]


def test_mistakes_inside_a_box_are_placed_in_both_files(tmp_path: Path) -> None:
    """An error in a box's file names the cluster's line and the file's own."""
    (tmp_path / "box.yaml").write_text("format: dualcoll.topology/1\nnodes:\n  - {name: g0, kind: gpuu}\n")
    with pytest.raises(InputError) as caught:
        cluster(tmp_path / "c.yaml", "boxes:\n  - {file: box.yaml}")
    assert str(caught.value).replace(f"{tmp_path}{os.sep}", "") == (
        "c.yaml:3: boxes[0]: box.yaml:3: nodes[0].kind: 'gpuu' is not known; did you mean gpu?"
    )


def test_a_box_without_network_is_named(tmp_path: Path) -> None:
    """A box that could not talk to the others is refused, by name."""
    (tmp_path / "box.yaml").write_text("format: dualcoll.topology/1\nnodes: [{name: g0, kind: gpu}]\n")
    with pytest.raises(InputError) as caught:
        cluster(tmp_path / "c.yaml", "boxes: [{use: dgx-h100}, {file: box.yaml}]")
    assert str(caught.value).replace(f"{tmp_path}{os.sep}", "") == (
        "c.yaml: box b1: it has no network port to cable; "
        "give the speed of its NICs, or cable at least one of its ports to a rail"
    )


def test_rails_belong_to_rail_networks(tmp_path: Path) -> None:
    """A rail mapping is refused where the network has no rails."""
    with pytest.raises(InputError) as caught:
        cluster(tmp_path / "c.yaml", "boxes: [{count: 2, use: dgx-h100, rails: [0]}]\nnetwork: {kind: fat-tree}")
    assert caught.value.problem == "rails have no meaning for a fat-tree network"
