import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.reporting.figures import topology_figure
from dualcoll.reporting.grids import grid_positions, grid_sides
from dualcoll.reporting.layout import LIMIT, layout
from dualcoll.testing import random_fabric
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Kind, Link, Node, Topology, duplex

FABRICS = (
    "dgx-h100:boxes=4",
    "dgx-1v",
    "dgx-1v:boxes=2",
    "mi250",
    "torus:4x4",
    "fat-tree:k=4",
    "ring:16",
    "mesh:8x8",
    "star:9",
)


def imported_box() -> Topology:
    """Two CPUs, four PCIe switches with a GPU and a NIC each, an NVSwitch, and a leaf outside."""
    nodes = [Node(f"cpu{i}", Kind.CPU, box="b") for i in range(2)]
    nodes += [Node(f"pci{i}", Kind.PCI, box="b") for i in range(4)]
    nodes += [Node(f"gpu{i}", Kind.GPU, box="b") for i in range(4)]
    nodes += [Node(f"nic{i}", Kind.NIC, box="b") for i in range(4)]
    nodes += [Node("nvswitch", Kind.SWITCH, box="b"), Node("leaf", Kind.SWITCH)]
    index = {node.name: i for i, node in enumerate(nodes)}
    cables = [("cpu0", "cpu1")]
    for i in range(4):
        cables += [(f"cpu{i // 2}", f"pci{i}"), (f"pci{i}", f"gpu{i}"), (f"pci{i}", f"nic{i}")]
        cables += [(f"gpu{i}", "nvswitch"), (f"nic{i}", "leaf")]
    links = [link for a, b in cables for link in duplex(Link(index[a], index[b], 1e9))]
    return Topology(tuple(nodes), tuple(links), name="imported")


@given(st.integers(0, 10_000), st.booleans())
def test_every_node_has_a_place_of_its_own_inside_the_picture(seed: int, conditional: bool) -> None:
    """On any fabric no node is lost, none covers another, and the same fabric is always placed alike."""
    topology = random_fabric(seed, ranks=7, switches=4, conditional=conditional)
    place = layout(topology)
    spots = list(zip(place.x.tolist(), place.y.tolist(), strict=True))
    assert len({(round(x, 3), round(y, 3)) for x, y in spots}) == len(topology.nodes)
    assert all(0 <= x <= place.width and 0 <= y <= place.height for x, y in spots)
    again = layout(topology)
    assert np.array_equal(place.x, again.x)
    assert np.array_equal(place.y, again.y)


def test_the_network_stands_above_the_boxes_by_hops() -> None:
    """Spines over leaves over GPUs over the box switch, whatever the node order says."""
    topology = catalog("dgx-h100:boxes=2")
    place = layout(topology)
    height = {
        name: float(place.y[topology.index[name]]) for name in ("spine0", "leaf3", "b0.g0", "b1.g7", "b0.nvswitch")
    }
    assert height["spine0"] > height["leaf3"] > height["b0.g0"] == height["b1.g7"] > height["b0.nvswitch"]


def test_an_imported_box_reads_from_nic_to_box_switch() -> None:
    """NICs, CPUs, PCIe switches, GPUs and the NVSwitch are rows in this order, each NIC over its PCIe switch."""
    topology = imported_box()
    place = layout(topology)
    names = ("leaf", "nic0", "cpu0", "pci0", "gpu0", "nvswitch")
    rows = [float(place.y[topology.index[name]]) for name in names]
    assert all(upper > lower for upper, lower in pairwise(rows))
    columns = [[float(place.x[topology.index[f"{kind}{i}"]]) for i in range(4)] for kind in ("nic", "pci", "gpu")]
    assert columns[0] == pytest.approx(columns[1])
    assert columns[1] == pytest.approx(columns[2])


@pytest.mark.parametrize("spec", FABRICS)
def test_a_frame_holds_its_box_and_nothing_else(spec: str) -> None:
    """The outline with a box's name surrounds exactly the nodes of that box."""
    topology = catalog(spec)
    place = layout(topology)
    for frame in place.frames:
        inside = {
            i
            for i in range(len(topology.nodes))
            if frame.left < place.x[i] < frame.right and frame.bottom < place.y[i] < frame.top
        }
        assert inside == {i for i, node in enumerate(topology.nodes) if node.box == frame.name}
    boxes = {node.box for node in topology.nodes if node.box is not None}
    assert len(place.frames) == (0 if len(boxes) == len(topology.ranks) else len(boxes))


@pytest.mark.parametrize("spec", FABRICS)
def test_labels_do_not_overlap(spec: str) -> None:
    """Up to 64 nodes the labels that are shown stay clear of each other, and every GPU shows its name."""
    topology = catalog(spec)
    boxes: list[tuple[float, float, float]] = []
    for trace in topology_figure(topology).data:
        if trace.mode != "markers+text":
            continue
        marks = zip(trace.x, trace.y, trace.text, trace.textposition, trace.marker.size, strict=True)
        for x, y, text, side, size in marks:
            shift = {"middle": 0.0, "top": 1.0, "bottom": -1.0}[side.split()[0]] * (size / 2 + 7)
            if text:
                boxes.append((x, y + shift, 0.56 * 9.5 * len(text) / 2))
        if trace.name == "GPU":
            assert all(trace.text)
    assert boxes
    for i, (x, y, half) in enumerate(boxes):
        assert all(abs(x - u) > half + w or abs(y - v) > 9 for u, v, w in boxes[:i])


@given(st.lists(st.integers(2, 4), min_size=1, max_size=3), st.booleans())
def test_grids_are_recognised_from_their_cables(sides: list[int], wrap: bool) -> None:
    """A mesh or torus of any sides is found again, up to another grid of the same cables."""
    topology = catalog(f"{'torus' if wrap else 'mesh'}:{'x'.join(map(str, sides))}")
    pairs = {(min(link.tail, link.head), max(link.tail, link.head)) for link in topology.links}
    found = grid_sides(len(topology.nodes), pairs)
    assert found is not None
    assert math.prod(found[0]) == len(topology.nodes)
    assert sorted(found[0]) == sorted(sides) or wrap  # a closed 2 x 2 is also a ring of 4
    spots = grid_positions(len(topology.nodes), pairs)
    if spots is not None:
        assert len({(round(x, 6), round(y, 6)) for x, y in spots}) == len(topology.nodes)


@pytest.mark.parametrize("spec", ["ring:6", "full:5", "dgx-1v", "mi250"])
def test_what_is_no_grid_stands_on_a_circle(spec: str) -> None:
    """Rings and irregular direct wiring are drawn round: all GPUs equally far from the middle."""
    place = layout(catalog(spec))
    spots = np.column_stack([place.x, place.y])
    radii = np.hypot(*(spots - spots.mean(axis=0)).T)
    assert radii == pytest.approx(np.full(radii.size, radii.mean()), rel=1e-6)


def test_a_torus_is_a_square_of_rows_and_columns() -> None:
    """torus:4x4 is drawn as four rows of four."""
    place = layout(catalog("torus:4x4"))
    assert len(set(place.x.round(3).tolist())) == len(set(place.y.round(3).tolist())) == 4


@pytest.mark.parametrize(
    ("spec", "drawn", "note"),
    [
        ("dgx-h100:boxes=128", 65 * 9 + 12, "The first 65 of 128 boxes are drawn."),
        ("ring:1000", 0, "1000 nodes are too many to draw"),
        ("dgx-h100:boxes=16", 156, ""),
    ],
)
def test_what_is_too_large_is_cut_and_says_so(spec: str, drawn: int, note: str) -> None:
    """Above the limit the first boxes are drawn, or none; the note says how many."""
    topology = catalog(spec)
    place = layout(topology)
    assert int((~np.isnan(place.x)).sum()) == drawn <= LIMIT
    assert place.note == note
