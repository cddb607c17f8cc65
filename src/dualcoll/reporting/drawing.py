"""The parts that pictures of a fabric share: look, cables and their ways, nodes and their labels."""

from __future__ import annotations

import html
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dualcoll.collectives.description import describe
from dualcoll.diagnosis.bottleneck import role
from dualcoll.plans.model import Plan
from dualcoll.reporting.layout import Frame, Layout, arc_height
from dualcoll.topology.model import Topology
from dualcoll.units import format_bandwidth, format_fraction

__all__ = [
    "INK",
    "LETTER",
    "Cable",
    "Stroke",
    "add_strokes",
    "add_targets",
    "cables",
    "canvas",
    "curve",
    "dress",
    "escaped",
    "gap_text",
    "headline",
    "line_widths",
    "paths",
]

Floats = NDArray[np.float64]

INK = "#1f2933"
MUTED = "#6b7785"
FONT = "Inter, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
FRAME_FILL, FRAME_LINE = "#f5f7f9", "#d5dbe1"
HOVER_AT = (0.22, 0.41, 0.58, 0.79)  # along a cable; uneven, so that points of crossing cables do not coincide
LETTER = 0.56  # of the font size, the mean width of a letter


def headline(plan: Plan) -> str:
    """The result in one line, such as "AllReduce of 32 ranks: 250 GB/s, at most 258.065 GB/s (gap 3.12 %)"."""
    what = describe(plan.workload, plan.topology)
    return (
        f"{what[0].upper()}{what[1:]}: {format_bandwidth(plan.algbw)}, "
        f"at most {format_bandwidth(plan.bound)} (gap {gap_text(plan)})"
    )


def gap_text(plan: Plan) -> str:
    """The gap, down to what a solver can be asked for."""
    return format_fraction(plan.gap) if plan.gap > 1e-9 else "below 1e-9"


def escaped(text: str, most: int = 60) -> str:
    """Text for a figure: cut to a length that can be shown, with nothing in it that would be read as markup."""
    short = text if len(text) <= most else f"{text[: most - 1]}…"
    return html.escape(short, quote=False)


@dataclass(frozen=True, slots=True)
class Cable:
    """All links between two nodes: link indices from ``a`` to ``b``, and back; ``a < b``."""

    a: int
    b: int
    there: tuple[int, ...]
    back: tuple[int, ...]

    @property
    def links(self) -> tuple[int, ...]:
        """Both directions."""
        return self.there + self.back

    def capacity(self, topology: Topology) -> float:
        """Bytes/s of the better direction."""
        return max(sum(topology.links[e].capacity for e in side) for side in (self.there, self.back))

    def roles(self, topology: Topology) -> tuple[str, str]:
        """What it joins, in words; sorted."""
        one, other = sorted((role(topology, self.a), role(topology, self.b)))
        return one, other


def cables(topology: Topology, place: Layout) -> tuple[Cable, ...]:
    """The cables whose two ends are drawn, in the order of their first link."""
    sides: dict[tuple[int, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for e, link in enumerate(topology.links):
        if place.drawn(link.tail) and place.drawn(link.head):
            a, b = sorted((link.tail, link.head))
            sides[a, b][link.tail != a].append(e)
    return tuple(Cable(a, b, tuple(there), tuple(back)) for (a, b), (there, back) in sides.items())


def line_widths(topology: Topology, place: Layout, drawn: Sequence[Cable]) -> list[float]:
    """Px of each cable, in half steps: by the square root of its capacity, so that slow ones stay visible."""
    rates = [cable.capacity(topology) for cable in drawn]
    most = min(5.0, max(2.2, place.unit / 7), 42 / math.sqrt(max(len(rates), 1)))
    largest = max(rates, default=1.0)
    return [max(0.5, round(2 * most * (0.15 + 0.85 * math.sqrt(rate / largest))) / 2) for rate in rates]


def paths(topology: Topology, place: Layout, ends: Iterable[tuple[int, int]]) -> list[Floats]:
    """The points (n, 2) that each cable passes: straight, or bent round a node of its box or row that stands in its way."""
    drawn = np.flatnonzero(~np.isnan(place.x))
    spots = np.column_stack([place.x[drawn], place.y[drawn]])
    boxes = np.array([topology.nodes[i].box or "" for i in drawn])
    row_of = {int(node): row for row, node in enumerate(drawn)}
    clearance = min(14.0, 0.16 * place.unit)
    found = []
    for a, b in ends:
        start, end = spots[row_of[a]], spots[row_of[b]]
        length = math.dist(start, end)
        direction = (end - start) / length
        normal = np.array([-direction[1], direction[0]])
        offset = spots - start
        ahead = offset @ direction
        box = topology.nodes[a].box
        at_home = box is not None and box == topology.nodes[b].box
        level = abs(end[1] - start[1]) < 1
        if (
            not (at_home or level)
            or not ((np.abs(offset @ normal) < clearance) & (ahead > 1) & (ahead < length - 1)).any()
        ):
            found.append(np.array([start, end]))
            continue
        fellows = boxes == box if at_home else np.ones(drawn.size, bool)
        outward = float(((start + end) / 2 - spots[fellows].mean(axis=0)) @ normal)
        if outward < -1e-6 or (abs(outward) <= 1e-6 and normal[1] < -1e-6):
            normal = -normal
        found.append(curve(start, end, normal * arc_height(length, place.unit)))
    return found


def curve(start: Floats, end: Floats, bow: Floats, pieces: int = 20) -> Floats:
    """Points (pieces + 1, 2) of a parabola from start to end whose middle is displaced by ``bow``."""
    t = np.linspace(0, 1, pieces + 1)[:, None]
    return np.asarray(start + (end - start) * t + bow * 4 * t * (1 - t))


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line to draw: its points, look, the legend entry it belongs to (empty: none), and what hovering over it says."""

    points: Floats
    color: str
    width: float
    name: str = ""
    hover: str = ""
    dash: str = "solid"


def add_strokes(figure: go.Figure, strokes: Sequence[Stroke], **common: object) -> None:
    """Draw lines, those of one look in one trace, and what answers the pointer."""
    looks: dict[tuple[str, str, float, str], list[Stroke]] = defaultdict(list)
    for stroke in strokes:
        looks[stroke.name, stroke.color, stroke.width, stroke.dash].append(stroke)
    named: set[str] = set()
    for (name, color, width, dash), alike in looks.items():
        x, y = _joined(stroke.points for stroke in alike)
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            line={"color": color, "width": width, "dash": dash},
            hoverinfo="skip",
            name=name,
            legendgroup=name,
            showlegend=bool(name) and name not in named,
            **common,
        )
        named.add(name)
    add_targets(figure, strokes, **common)


def add_targets(figure: go.Figure, strokes: Sequence[Stroke], **common: object) -> None:
    """Draw the invisible trace that answers the pointer near lines that have something to say."""
    spots = [_at(stroke.points, fraction) for stroke in strokes if stroke.hover for fraction in HOVER_AT]
    if spots:
        figure.add_scatter(
            x=[round(float(spot[0]), 1) for spot in spots],
            y=[round(float(spot[1]), 1) for spot in spots],
            mode="markers",
            marker={"size": 9, "opacity": 0},
            text=[stroke.hover for stroke in strokes if stroke.hover for _ in HOVER_AT],
            hovertemplate="%{text}<extra></extra>",
            showlegend=False,
            name="cables",
            **common,
        )


def _joined(lines: Iterable[Floats]) -> tuple[list[float | None], list[float | None]]:
    x: list[float | None] = []
    y: list[float | None] = []
    for points in lines:
        rounded = points.round(1)
        x += [*rounded[:, 0].tolist(), None]
        y += [*rounded[:, 1].tolist(), None]
    return x[:-1], y[:-1]


def _at(points: Floats, fraction: float) -> Floats:
    whole = fraction * (len(points) - 1)
    i = min(int(whole), len(points) - 2)
    return np.asarray(points[i] + (whole - i) * (points[i + 1] - points[i]))


def canvas(place: Layout, title: str, subtitle: str) -> go.Figure:
    """An empty figure of the layout's size with the boxes' frames and names; the texts are escaped already."""
    figure = go.Figure()
    margin = {"l": 20, "r": 20, "t": 98 if place.note else 80, "b": 70}
    figure.update_layout(
        width=round(place.width) + margin["l"] + margin["r"],
        height=round(place.height) + margin["t"] + margin["b"],
        margin=margin,
        shapes=[_outline(frame) for frame in place.frames],
    )
    figure.update_xaxes(visible=False, range=[0, place.width])
    figure.update_yaxes(visible=False, range=[0, place.height])
    for frame in place.frames:
        letters = int((frame.right - frame.left - 8) / (11 * LETTER))
        if letters >= 2:
            figure.add_annotation(
                x=(frame.left + frame.right) / 2,
                y=frame.bottom + 10,
                text=escaped(frame.name, letters),
                showarrow=False,
                font={"size": 11, "color": MUTED},
            )
    if place.note:
        corner = {"xref": "paper", "yref": "paper", "x": 0.0, "y": 1.0, "xanchor": "left", "yanchor": "bottom"}
        figure.add_annotation(text=f"<b>{escaped(place.note)}</b>", showarrow=False, **corner)
    return dress(figure, title, subtitle)


def dress(figure: go.Figure, title: str, subtitle: str) -> go.Figure:
    """The common look: font, colours, white ground, a title that states the result; returns the figure."""
    figure.update_layout(
        title={
            "text": f"<b>{title}</b>",
            "x": 0.02,
            "xanchor": "left",
            "y": 0.98,
            "yanchor": "top",
            "font": {"size": 18, "color": INK},
            "subtitle": {"text": subtitle, "font": {"size": 13, "color": MUTED}},
        },
        font={"family": FONT, "size": 12, "color": INK},
        paper_bgcolor="#ffffff",
        plot_bgcolor="#ffffff",
        hovermode="closest",
        hoverlabel={"bgcolor": "#ffffff", "bordercolor": FRAME_LINE, "align": "left", "font": {"color": INK}},
        legend={"orientation": "h", "x": 0.0, "y": 0.0, "yanchor": "top", "itemsizing": "trace", "font": {"size": 12}},
    )
    return figure


def _outline(frame: Frame) -> dict[str, object]:
    """A rectangle with round corners."""
    r = min(10.0, (frame.right - frame.left) / 4)
    left, right, bottom, top = frame.left, frame.right, frame.bottom, frame.top
    corners = (
        f"M {left + r},{bottom} L {right - r},{bottom} Q {right},{bottom} {right},{bottom + r} "
        f"L {right},{top - r} Q {right},{top} {right - r},{top} L {left + r},{top} "
        f"Q {left},{top} {left},{top - r} L {left},{bottom + r} Q {left},{bottom} {left + r},{bottom} Z"
    )
    return {"type": "path", "path": corners, "layer": "below", "fillcolor": FRAME_FILL, "line": {"color": FRAME_LINE}}
