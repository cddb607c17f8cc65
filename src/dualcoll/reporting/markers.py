"""The nodes of a picture and their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dualcoll.diagnosis.bottleneck import role
from dualcoll.reporting.drawing import INK, LETTER, escaped
from dualcoll.reporting.layout import Layout
from dualcoll.topology.model import Kind, Topology
from dualcoll.units import format_bandwidth

__all__ = ["Fills", "add_nodes"]

Floats = NDArray[np.float64]

LABEL_SIZE = 9.5  # px
IDLE = "#dfe4e9"
FEW = 6  # groups of one rank that are named
MOST_NAMED = 8  # groups in the legend
_SHAPES = {
    Kind.GPU: ("circle", "#ffffff", "GPU"),
    Kind.HOST: ("circle", "#e6ebf0", "host"),
    Kind.SWITCH: ("square", "#3d4c5c", "switch"),
    Kind.NIC: ("diamond", "#b9c4cf", "NIC"),
    Kind.CPU: ("hexagon", "#b9c4cf", "CPU"),
    Kind.PCI: ("square", "#b9c4cf", "PCIe switch"),
}


@dataclass(frozen=True, slots=True)
class Fills:
    """Colours of ranks by what they take part in.

    Attributes:
        color: of each node that takes part. groups: names of the groups of each, where there are several groups.
        legend: colours of groups by name, those that some rank is coloured by; the legend names them if they are few.
    """

    color: Mapping[int, str]
    groups: Mapping[int, Sequence[str]]
    legend: Mapping[str, str]


def add_nodes(figure: go.Figure, topology: Topology, place: Layout, taking_part: Fills | None = None) -> None:
    """Draw the nodes, one trace a kind; ranks that take no part are grey. Labels are left out where they would overlap."""
    drawn = [i for i in range(len(topology.nodes)) if place.drawn(i)]
    if not drawn:
        return
    sizes, labels, sides = _fitted(topology, place, drawn)
    rank_of = {node: rank for rank, node in enumerate(topology.ranks)}
    legend = {} if taking_part is None or len(taking_part.legend) > MOST_NAMED else taking_part.legend
    for kind, (symbol, fill, word) in _SHAPES.items():
        mine = [i for i in drawn if topology.nodes[i].kind is kind]
        if not mine:
            continue
        fills = [fill if taking_part is None or not _ranked(kind) else taking_part.color.get(i, IDLE) for i in mine]
        dark = kind is Kind.SWITCH
        figure.add_scatter(
            x=place.x[mine].round(1).tolist(),
            y=place.y[mine].round(1).tolist(),
            mode="markers+text",
            marker={
                "symbol": symbol,
                "size": [sizes[i] for i in mine],
                "color": fills,
                "line": {"color": "#3d4c5c", "width": 1.2 if min(sizes.values()) > 8 else 0.7},
                "opacity": 1,
            },
            text=[labels[i] for i in mine],
            textposition=[f"{sides[i]} center" for i in mine],
            textfont={"size": LABEL_SIZE, "color": ["#ffffff" if dark and sides[i] == "middle" else INK for i in mine]},
            customdata=[_about(topology, i, rank_of, taking_part) for i in mine],
            hovertemplate="%{customdata}<extra></extra>",
            name=word,
            showlegend=not (legend and _ranked(kind)),
        )
    for name, color in legend.items():
        marker = {"symbol": "circle", "size": 14, "color": color, "line": {"color": "#3d4c5c", "width": 1.2}}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=escaped(name, 24), hoverinfo="skip")


def _ranked(kind: Kind) -> bool:
    return kind in (Kind.GPU, Kind.HOST)


def _fitted(
    topology: Topology, place: Layout, drawn: list[int]
) -> tuple[dict[int, float], dict[int, str], dict[int, str]]:
    """Marker sizes (px), labels, and where these stand: in the middle of the marker, or on the side with fewer cables."""
    spots = np.column_stack([place.x[drawn], place.y[drawn]])
    apart = np.abs(spots[:, None, :] - spots[None, :, :])
    np.einsum("iij->ij", apart)[:] = 1e4
    nearest = np.hypot(apart[..., 0], apart[..., 1]).min(axis=1)
    level = apart[..., 1] < LABEL_SIZE
    beside = np.where(level, apart[..., 0], 1e4).min(axis=1)
    names = [topology.nodes[i].name.removeprefix(f"{topology.nodes[i].box}.") for i in drawn]
    needs = np.array([LETTER * LABEL_SIZE * len(name) + 5 for name in names])
    fits = needs <= np.minimum(beside, 110.0)
    fits &= ~(level & ~fits).any(axis=1)  # a row has all its labels or none
    sizes: dict[int, float] = {}
    labels: dict[int, str] = {}
    sides: dict[int, str] = {}
    pull = _pull(topology, place)
    for row, i in enumerate(drawn):
        node = topology.nodes[i]
        name, needed = names[row], float(needs[row])
        sizes[i] = float(
            min(
                max(0.62 * nearest[row], min(0.8 * nearest[row], 7.0), 3.0),
                26.0 if node.kind in (Kind.GPU, Kind.HOST) else 20.0,
            )
        )
        labels[i], sides[i] = "", "middle"
        if needed <= min(38.0, 0.8 * nearest[row]):
            sizes[i] = max(sizes[i], needed)
            labels[i] = escaped(name)
        elif fits[row] and nearest[row] > 2 * LABEL_SIZE:
            labels[i] = escaped(name)
            sides[i] = "bottom" if pull[i] > 0 else "top"
    return sizes, labels, sides


def _pull(topology: Topology, place: Layout) -> Floats:
    """Cables that leave each node upwards less those that leave it downwards, float64 (V,)."""
    tail = np.array([link.tail for link in topology.links], np.int64)
    head = np.array([link.head for link in topology.links], np.int64)
    rise = np.nan_to_num(np.sign(place.y[head] - place.y[tail]))
    pull = np.zeros(place.y.size)
    np.add.at(pull, tail, rise)
    np.add.at(pull, head, -rise)
    return pull


def _about(topology: Topology, i: int, rank_of: dict[int, int], taking_part: Fills | None) -> str:
    node = topology.nodes[i]
    lines = [f"<b>{escaped(node.name)}</b>", role(topology, i)]
    if i in rank_of:
        lines[1] += f", rank {rank_of[i]}"
    if node.box is not None:
        lines.append(f"in box {escaped(node.box)}")
    names = [] if taking_part is None else [escaped(name, 40) for name in taking_part.groups.get(i, ())]
    if names:
        more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
        lines.append(f"group{'s' * (len(names) > 1)} {', '.join(names[:FEW])}{more}")
    lines += [f"port of {format_bandwidth(port)}, not cabled" for port in node.ports[:4]]
    return "<br>".join(lines)
