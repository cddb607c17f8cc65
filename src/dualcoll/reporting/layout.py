"""Where the nodes of a fabric stand in a picture.

Boxes stand side by side with the network's switches above them, a row for each hop from the boxes. Inside a box: NICs and
switches that leave it, CPUs, PCIe switches, GPUs, then switches that do not leave it. GPUs that are joined to each other and
to nothing else in their box form a grid if they are wired as one, a row if they are a chain, and else a circle. Everything
follows from node order.

A picture of more than ``LIMIT`` nodes helps nobody: then only the first boxes are placed, as many as fit beside the network,
and ``note`` says so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.reporting.grids import grid_positions
from dualcoll.topology.model import Kind, Topology

__all__ = ["LIMIT", "WIDTH", "Frame", "Layout", "arc_height", "layout"]

Floats = NDArray[np.float64]
Point = tuple[float, float]

LIMIT = 600  # nodes
WIDTH = 1120.0  # px
TALL = 600.0  # px, of boxes drawn as circles or grids
WIDEST = 90.0  # px between the nodes of a row
ROOMIEST = 125.0  # px between the nodes of a circle or grid
ROW = 66.0  # px between the rows of a box
LAYER = 110.0  # px between the layers of the network, and as many more as the layer below has nodes
PAD = 32.0  # px between a frame and its nodes, above and below
CAPTION = 22.0  # px for a box's name

_ROWS = {Kind.CPU: 1, Kind.PCI: 2, Kind.GPU: 3, Kind.HOST: 3, Kind.NIC: 0}
_INNER = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """The outline of a box, px."""

    name: str
    left: float
    right: float
    bottom: float
    top: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions in px, y upwards.

    Attributes:
        x, y: float64 (V,), NaN for a node that is not drawn.
        unit: px between neighbours in a box.
        width, height: of the whole, px; everything is inside [0, width] x [0, height].
        frames: outlines of the boxes of two or more nodes.
        note: what is left out; empty if nothing is.
    """

    x: Floats
    y: Floats
    unit: float
    width: float
    height: float
    frames: tuple[Frame, ...]
    note: str

    def drawn(self, node: int) -> bool:
        """Whether the node has a place."""
        return not math.isnan(self.x[node])


@dataclass(frozen=True, slots=True)
class _Block:
    """The inside of a box: column and row of each node, and how many there are; ``square`` if both have the same scale."""

    places: dict[int, Point]
    columns: float
    rows: float
    square: bool
    sag: float = 0.0  # columns that the longest bent cable spans


def layout(topology: Topology) -> Layout:
    """Place a fabric's nodes: O(V log V + E)."""
    boxes, network, note = _chosen(topology)
    near = _neighbours(topology)
    blocks = [_block(topology, members, near) for members in boxes.values()]
    gaps = [1.0 if len(block.places) > 1 else 0.0 for block in blocks]
    columns = sum(block.columns + gap for block, gap in zip(blocks, gaps, strict=True)) or 1.0
    tallest = max((block.rows for block in blocks if block.square), default=0.0)
    unit = min(WIDTH / columns, min(ROOMIEST, TALL / tallest) if tallest else WIDEST)
    x, y = np.full(len(topology.nodes), np.nan), np.full(len(topology.nodes), np.nan)
    heights = [_height(block, unit) for block in blocks]
    height = top = max(heights, default=0.0)
    frames = []
    left = (WIDTH - columns * unit) / 2
    for name, block, gap, room in zip(boxes, blocks, gaps, heights, strict=True):
        right = left + (block.columns + gap) * unit
        ceiling = top - (PAD + block.square * _sag(block, unit) if gap else 0.0)
        for node, (column, line) in block.places.items():
            x[node] = left + (column + gap / 2 + 0.5) * unit
            y[node] = ceiling - line * (unit if block.square else ROW)
        if gap:
            frames.append(Frame(name, left + 0.2 * unit, right - 0.2 * unit, top - room, top))
        left = right
    below = sum(len(block.places) for block in blocks)
    for row in _network(topology, network, near, x):
        height += LAYER + min(LAYER, below) if height else PAD
        x[row] = WIDTH * (0.5 + 0.92 * ((np.arange(len(row)) + 0.5) / len(row) - 0.5))
        y[row] = height
        below = len(row)
    return Layout(x, y, unit, WIDTH, max(PAD, height + (PAD if height > top else 0.0)), tuple(frames), note)


def arc_height(span: float, unit: float) -> float:
    """How far a cable that passes over others bends aside, px: longer cables further."""
    return 0.42 * min(unit, 64.0) * math.sqrt(max(span / unit, 0.25))


def _chosen(topology: Topology) -> tuple[dict[str, list[int]], list[int], str]:
    """Boxes and network nodes to draw: all, or the first boxes that fit with the network."""
    boxes: dict[str, list[int]] = defaultdict(list)
    network: list[int] = []
    for i, node in enumerate(topology.nodes):
        if node.box is None:
            network.append(i)
        else:
            boxes[node.box].append(i)
    if len(topology.nodes) <= LIMIT:
        return boxes, network, ""
    room = LIMIT - len(network)
    kept: dict[str, list[int]] = {}
    for name, members in boxes.items():
        if len(members) > room:
            break
        kept[name] = members
        room -= len(members)
    if not kept:
        return {}, [], f"{len(topology.nodes)} nodes are too many to draw"
    return kept, network, f"The first {len(kept)} of {len(boxes)} boxes are drawn."


def _neighbours(topology: Topology) -> list[list[int]]:
    near: list[dict[int, None]] = [{} for _ in topology.nodes]
    for link in topology.links:
        near[link.tail][link.head] = None
        near[link.head][link.tail] = None
    return [list(seen) for seen in near]


def _height(block: _Block, unit: float) -> float:
    if len(block.places) == 1:
        return ROW / 2
    return (
        (block.rows - 1) * (unit if block.square else ROW) + 2 * PAD + CAPTION + _sag(block, unit) * (1 + block.square)
    )


def _sag(block: _Block, unit: float) -> float:
    """Px that bent cables need beyond the nodes: below them, and if the block is square above them too."""
    return arc_height(block.sag * unit, unit) if block.sag > 1.5 else 0.0


def _block(topology: Topology, members: list[int], near: list[list[int]]) -> _Block:
    local = {node: i for i, node in enumerate(members)}
    pairs = {(i, local[j]) for node, i in local.items() for j in near[node] if local.get(j, -1) > i}
    if pairs and all(topology.nodes[node].kind in (Kind.GPU, Kind.HOST) for node in members):
        grid = grid_positions(len(members), pairs)
        spots = grid or _circle(len(members))
        left = min(column for column, _ in spots)
        columns, rows = max(column for column, _ in spots) - left + 1, max(row for _, row in spots) + 1
        shifted = [(column - left, row) for column, row in spots]
        level = [abs(spots[i][k] - spots[j][k]) for i, j in pairs for k in (0, 1) if spots[i][1 - k] == spots[j][1 - k]]
        return _Block(
            dict(zip(members, shifted, strict=True)), columns, rows, True, max(level, default=0.0) if grid else 0.0
        )
    return _rows(topology, members, near)


def _circle(count: int) -> list[Point]:
    """Neighbours 1.15 columns apart, the first at the top, clockwise."""
    radius = 1.15 * count / (2 * math.pi)
    turns = [2 * math.pi * i / count for i in range(count)]
    return [(radius * (1 + math.sin(turn)), radius * (1 - math.cos(turn))) for turn in turns]


def _rows(topology: Topology, members: list[int], near: list[list[int]]) -> _Block:
    inside = set(members)
    pci = _pci_depths(topology, members, near)
    rows: dict[tuple[int, int], list[int]] = defaultdict(list)
    for node in members:
        kind = topology.nodes[node].kind
        leaves = any(other not in inside for other in near[node])
        level = _ROWS.get(kind, 0 if leaves else _INNER)
        rows[level, pci.get(node, 0)].append(node)
    place = _columns(rows, near)
    left = min(place.values())
    row_of = {node: i for i, key in enumerate(sorted(rows)) for node in rows[key]}
    gpus = set(rows.get((_ROWS[Kind.GPU], 0), ()))
    spans = [abs(place[a] - place[b]) for a in gpus for b in near[a] if b in gpus]
    return _Block(
        {node: (place[node] - left, float(row_of[node])) for node in members},
        max(place.values()) - left + 1,
        len(rows),
        square=False,
        sag=max(spans, default=0.0),
    )


def _pci_depths(topology: Topology, members: list[int], near: list[list[int]]) -> dict[int, int]:
    """How many PCIe switches lie between each of them and its CPU."""
    depth: dict[int, int] = {}
    front = [node for node in members if topology.nodes[node].kind is Kind.CPU]
    inside = {node for node in members if topology.nodes[node].kind is Kind.PCI}
    hops = 0
    while front:
        front = list(dict.fromkeys(j for i in front for j in near[i] if j in inside and j not in depth))
        depth.update(dict.fromkeys(front, hops))
        hops += 1
    return depth


def _columns(rows: dict[tuple[int, int], list[int]], near: list[list[int]]) -> dict[int, float]:
    """A column for every node of a box: GPUs in node order, the others above or below what they are joined to."""
    widest = max(len(row) for row in rows.values())
    place: dict[int, float] = {}
    for sweep in range(3):
        for key in sorted(rows, key=lambda key: (key[0] != _ROWS[Kind.GPU], -key[0], -key[1])):
            row = rows[key]
            if key[0] == _ROWS[Kind.GPU]:
                step, middle = max(1.0, 0.8 * widest / len(row)), (len(row) - 1) / 2
                place |= {node: (i - middle) * step for i, node in enumerate(row)}
                continue
            known = {node: [place[j] for j in near[node] if j in place] for node in row}
            wanted = {node: float(np.mean(at)) if at else place.get(node, 0.0) for node, at in known.items()}
            ranked = sorted(row, key=lambda node: (round(wanted[node], 6), node))
            spots = _apart([wanted[node] for node in ranked], 1.0 if sweep else 0.0)
            place |= dict(zip(ranked, spots, strict=True))
    return place


def _apart(wanted: Sequence[float], gap: float) -> list[float]:
    """The ascending positions at least ``gap`` apart that are nearest to the wanted ones in least squares."""
    groups: list[tuple[float, int]] = []
    for i, position in enumerate(wanted):
        mean, count = position - i * gap, 1
        while groups and groups[-1][0] > mean:
            before, size = groups.pop()
            mean, count = (mean * count + before * size) / (count + size), count + size
        groups.append((mean, count))
    flat = [mean for mean, count in groups for _ in range(count)]
    return [mean + i * gap for i, mean in enumerate(flat)]


def _network(topology: Topology, network: list[int], near: list[list[int]], x: Floats) -> list[list[int]]:
    """The network's switches by hops from the boxes, each row ordered by what hangs below it."""
    place = {i: float(x[i]) for i in range(x.size) if not math.isnan(x[i])}
    left = dict.fromkeys(network)
    front = {i for i in network if any(topology.nodes[j].box is not None for j in near[i])}
    layers: list[list[int]] = []
    while left:
        row = [node for node in left if node in front] or list(left)
        below = {node: [place[j] for j in near[node] if j in place] for node in row}
        wanted = {node: round(float(np.mean(at)), 3) if at else WIDTH for node, at in below.items()}
        row.sort(key=lambda node: (wanted[node], node))
        place |= {node: WIDTH * (i + 0.5) / len(row) for i, node in enumerate(row)}
        layers.append(row)
        for node in row:
            del left[node]
        front = {j for i in row for j in near[i] if j in left}
    return layers
