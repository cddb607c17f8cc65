"""One tree or path over a fabric: its logical edges as arrows, and the links that carry them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dualcoll.plans.model import Phase, Tree
from dualcoll.reporting.drawing import Cable, Stroke, add_strokes, add_targets, cables, curve, escaped, paths
from dualcoll.reporting.layout import Layout, arc_height, layout
from dualcoll.topology.model import Topology
from dualcoll.units import format_fraction

__all__ = ["Scene", "add_tree", "scene_of"]

Floats = NDArray[np.float64]

COLORS = {Phase.REDUCE: "#0072b2", Phase.BROADCAST: "#e69f00", Phase.SEND: "#b0528f"}
WORDS = {
    Phase.REDUCE: "reduce, towards the root",
    Phase.BROADCAST: "broadcast, from the root",
    Phase.SEND: "send, from rank to rank",
}
ROOT = "#009e73"
SHADES = 4  # of the links that a tree uses, by how much of it they carry
LANE = {Phase.REDUCE: 1.0, Phase.BROADCAST: -1.0, Phase.SEND: 0.0}  # beside the middle of a cable, in line widths


@dataclass(frozen=True, slots=True)
class Scene:
    """A fabric that trees are drawn over.

    Attributes:
        cables, ways: what is drawn of the network, and the points (n, 2) that each passes.
        cable_of: int64 (E,), the cable of each link, -1 for a link that is not drawn.
    """

    topology: Topology
    place: Layout
    cables: tuple[Cable, ...]
    ways: tuple[Floats, ...]
    cable_of: NDArray[np.int64]


def scene_of(topology: Topology) -> Scene:
    """The fabric's places and ways."""
    place = layout(topology)
    drawn = cables(topology, place)
    cable_of = np.full(len(topology.links), -1, np.int64)
    for i, cable in enumerate(drawn):
        cable_of[list(cable.links)] = i
    ways = paths(topology, place, [(cable.a, cable.b) for cable in drawn])
    return Scene(topology, place, drawn, tuple(ways), cable_of)


def add_tree(figure: go.Figure, scene: Scene, tree: Tree, *, visible: bool) -> None:
    """Draw one tree, phase by phase, and mark its root.

    A shade over a cable says that it carries the tree, the darker the more of it. Arrows of reduce and broadcast pass on
    different sides.
    """
    phases = [phase for phase in Phase if (tree.phase == phase).any()]
    for phase in phases:
        _add_shades(figure, scene, tree, phase, lane=LANE[phase] if len(phases) > 1 else 0.0, visible=visible)
    for phase in phases:
        _add_arrows(figure, scene, tree, phase, visible=visible)
    place = scene.place
    if place.drawn(tree.root):
        figure.add_scatter(
            x=[float(place.x[tree.root])],
            y=[float(place.y[tree.root])],
            mode="markers",
            marker={"symbol": "circle", "size": min(38.0, place.unit + 8), "color": ROOT, "opacity": 0.9},
            hoverinfo="skip",
            name="sender" if phases == [Phase.SEND] else "root",
            visible=visible,
        )


def _add_shades(figure: go.Figure, scene: Scene, tree: Tree, phase: Phase, *, lane: float, visible: bool) -> None:
    """The cables that carry a phase; where packets are sprayed, hovering tells how much each direction carries."""
    mine = np.repeat(tree.phase == phase, np.diff(tree.route_ptr))
    links = tree.route_links[mine]
    share = None if tree.route_share is None else tree.route_share[mine]
    part = np.bincount(links, share, len(scene.topology.links))
    used = np.unique(scene.cable_of[links])
    most = 0.0 if share is None else float(part.max())
    width = 2.5 if scene.place.unit > 20 else 1.5
    strokes = []
    for i in used[used >= 0].tolist():
        cable = scene.cables[i]
        there, back = (float(part[list(side)].sum()) for side in (cable.there, cable.back))
        opacity = 1.0 if share is None else math.ceil(SHADES * min(max(there, back) / most, 1.0) - 1e-9) / SHADES
        way = _aside(scene.ways[i], lane * width * 0.7)
        hover = "" if share is None else _about_part(scene.topology, cable, phase, there, back)
        strokes.append(Stroke(way, _faded(COLORS[phase], 0.55 * opacity), width, hover=hover))
    add_strokes(figure, strokes, visible=visible)


def _add_arrows(figure: go.Figure, scene: Scene, tree: Tree, phase: Phase, *, visible: bool) -> None:
    place = scene.place
    edges = [a for a in np.flatnonzero(tree.phase == phase).tolist() if all(map(place.drawn, tree.edges[a].tolist()))]
    if not edges:
        return
    arrows = [_arrow(place, tree.edges[a], phase) for a in edges]
    x: list[float | None] = []
    y: list[float | None] = []
    sizes: list[int] = []
    head = 11 if place.unit > 20 else 7
    for arrow in arrows:
        x += [*arrow[:, 0].round(1).tolist(), None]
        y += [*arrow[:, 1].round(1).tolist(), None]
        sizes += [*[0] * (len(arrow) - 1), head, 0]
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines+markers",
        line={"color": COLORS[phase], "width": 2 if place.unit > 20 else 1.2},
        marker={
            "symbol": "arrow",
            "angleref": "previous",
            "size": sizes,
            "color": COLORS[phase],
            "opacity": 1,
            "line": {"width": 0},
        },
        hoverinfo="skip",
        name=WORDS[phase],
        visible=visible,
    )
    hovers = [_about_edge(scene.topology, tree, a, phase) for a in edges]
    spots = [Stroke(arrow, COLORS[phase], 0.0, hover=hover) for arrow, hover in zip(arrows, hovers, strict=True)]
    add_targets(figure, spots, visible=visible)


def _arrow(place: Layout, edge: NDArray[np.int64], phase: Phase) -> Floats:
    """A bent line along a logical edge that ends short of its head's marker."""
    start, end = np.column_stack([place.x[edge], place.y[edge]])
    length = math.dist(start, end)
    direction = (end - start) / length
    normal = np.array([-direction[1], direction[0]])
    if abs(end[1] - start[1]) < 1:
        normal = np.array([0.0, -1.0 if phase is Phase.BROADCAST else 1.0])
        bow = 1.3 * arc_height(length, max(place.unit, 20.0))
    else:
        bow = 0.1 * length
    points = curve(start, end, normal * bow, pieces=24)
    short = min(14.0, 0.31 * place.unit + 2.0)
    far = np.hypot(*(points - end).T) > short
    return np.asarray(points[: max(2, int(far.sum()))])


def _aside(way: Floats, offset: float) -> Floats:
    """The same way, so many px to its left, seen from its start."""
    direction = way[-1] - way[0]
    normal = np.array([-direction[1], direction[0]]) / math.hypot(*direction)
    return np.asarray(way + offset * normal)


def _faded(color: str, opacity: float) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:.3g})"


def _about_edge(topology: Topology, tree: Tree, edge: int, phase: Phase) -> str:
    tail, head = (escaped(topology.nodes[int(end)].name) for end in tree.edges[edge])
    route = tree.route(edge).tolist()
    start = f"<b>{tail} → {head}</b> ({phase.name.lower()})<br>"
    if tree.route_share is not None:
        return f"{start}sprayed over {len(route)} link{'s' * (len(route) != 1)}"
    stops = [
        topology.nodes[topology.links[route[0]].tail].name,
        *(topology.nodes[topology.links[e].head].name for e in route),
    ]
    return f"{start}over {' → '.join(escaped(stop, 40) for stop in stops)}"


def _about_part(topology: Topology, cable: Cable, phase: Phase, there: float, back: float) -> str:
    one, other = (escaped(topology.nodes[end].name, 40) for end in (cable.a, cable.b))
    lines = [
        f"{start} → {end}: {format_fraction(part)} of its rate ({phase.name.lower()})"
        for start, end, part in ((one, other, there), (other, one, back))
        if part > 0
    ]
    return "<br>".join(lines)
