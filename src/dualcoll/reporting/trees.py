"""Pictures of a plan's trees."""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dualcoll.diagnosis.timing import tree_depth
from dualcoll.errors import InputError
from dualcoll.plans.model import Phase, Plan, Tree
from dualcoll.reporting.drawing import (
    Stroke,
    add_strokes,
    add_targets,
    cables,
    canvas,
    curve,
    escaped,
    paths,
)
from dualcoll.reporting.layout import Layout, arc_height, layout
from dualcoll.reporting.markers import add_nodes
from dualcoll.topology.model import Topology
from dualcoll.units import format_bandwidth, format_fraction, format_size

__all__ = ["tree_figure"]

Floats = NDArray[np.float64]

FABRIC = "#d9dee4"
COLORS = {Phase.REDUCE: "#0072b2", Phase.BROADCAST: "#e69f00", Phase.SEND: "#cc79a7"}
WORDS = {
    Phase.REDUCE: "reduce, towards the root",
    Phase.BROADCAST: "broadcast, from the root",
    Phase.SEND: "send, from rank to rank",
}
ROOT = "#009e73"


def tree_figure(plan: Plan, index: int = 0, *more: int) -> go.Figure:
    """One tree: its logical edges as arrows over the fabric, reduce and broadcast apart, the root marked.

    Between nodes of one row reduce arrows pass above and broadcast arrows below. Hovering over an arrow tells its route.
    With more than one index a menu selects the tree.

    Raises:
        InputError: the plan has no such tree.
    """
    indices = (index, *more)
    for i in indices:
        if not 0 <= i < len(plan.trees):
            raise InputError(f"tree {i} does not exist", hint=f"the plan has trees 0 to {len(plan.trees) - 1}")
    topology = plan.topology
    place = layout(topology)
    figure = canvas(place, "", "")
    ways = paths(topology, place, [(cable.a, cable.b) for cable in cables(topology, place)])
    add_strokes(figure, [Stroke(way, FABRIC, 1.0) for way in ways])
    first: list[int] = [len(figure.data)]
    for i in indices:
        _add_tree(figure, plan, plan.trees[i], place, visible=i == index)
        first.append(len(figure.data))
    add_nodes(figure, topology, place, frozenset(plan.participants))
    titles = [_title(plan, i) for i in indices]
    figure.update_layout(title_text=titles[0][0], title_subtitle_text=titles[0][1])
    _make_room(figure, place)
    if more:
        _add_menu(figure, indices, titles, first)
    return figure


def _make_room(figure: go.Figure, place: Layout) -> None:
    """Let the picture grow by what arrows need above and below the fabric."""
    reached = [y for trace in figure.data if trace.mode == "lines+markers" for y in trace.y if y is not None]
    low, high = min([0.0, *(y - 8 for y in reached)]), max([place.height, *(y + 8 for y in reached)])
    figure.update_yaxes(range=[low, high])
    figure.update_layout(height=round(figure.layout.height + high - low - place.height))


def _title(plan: Plan, index: int) -> tuple[str, str]:
    tree = plan.trees[index]
    whole = sum(other.rate for other in plan.trees if other.demand == tree.demand)
    title = (
        f"<b>{'Path' if tree.phase[0] == Phase.SEND else 'Tree'} {index} of {len(plan.trees)}: "
        f"{format_bandwidth(tree.rate)}, {format_fraction(tree.rate / whole)} of its data</b>"
    )
    depth = tree_depth(tree, len(plan.topology.nodes))
    root = escaped(plan.topology.nodes[tree.root].name)
    return title, f"root {root}, at most {depth} edges deep, carries {format_size(tree.size)}"


def _add_tree(figure: go.Figure, plan: Plan, tree: Tree, place: Layout, visible: bool) -> None:
    topology = plan.topology
    for phase in Phase:
        edges = [
            a for a in np.flatnonzero(tree.phase == phase).tolist() if all(map(place.drawn, tree.edges[a].tolist()))
        ]
        if not edges:
            continue
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
        hovers = [_route_text(topology, tree, a, phase) for a in edges]
        spots = [Stroke(arrow, COLORS[phase], 0.0, hover=hover) for arrow, hover in zip(arrows, hovers, strict=True)]
        add_targets(figure, spots, visible=visible)
    if place.drawn(tree.root):
        figure.add_scatter(
            x=[float(place.x[tree.root])],
            y=[float(place.y[tree.root])],
            mode="markers",
            marker={"symbol": "circle", "size": min(38.0, place.unit + 8), "color": ROOT, "opacity": 0.9},
            hoverinfo="skip",
            name="root",
            visible=visible,
        )


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


def _route_text(topology: Topology, tree: Tree, edge: int, phase: Phase) -> str:
    tail, head = (escaped(topology.nodes[int(end)].name) for end in tree.edges[edge])
    route = tree.route(edge).tolist()
    start = f"<b>{tail} → {head}</b> ({phase.name.lower()})<br>"
    if tree.route_share is not None:
        return f"{start}sprayed over {len(route)} links"
    stops = [
        topology.nodes[topology.links[route[0]].tail].name,
        *(topology.nodes[topology.links[e].head].name for e in route),
    ]
    return f"{start}over {' → '.join(escaped(stop, 40) for stop in stops)}"


def _add_menu(figure: go.Figure, indices: tuple[int, ...], titles: list[tuple[str, str]], first: list[int]) -> None:
    """A drop-down list that shows one tree's traces and its title."""
    buttons = []
    for k, index in enumerate(indices):
        shown = [not first[0] <= t < first[-1] or first[k] <= t < first[k + 1] for t in range(len(figure.data))]
        title, subtitle = titles[k]
        buttons.append(
            {
                "label": f"tree {index}",
                "method": "update",
                "args": [{"visible": shown}, {"title.text": title, "title.subtitle.text": subtitle}],
            }
        )
    figure.update_layout(
        updatemenus=[
            {
                "buttons": buttons,
                "x": 1.0,
                "xanchor": "right",
                "y": 1.0,
                "yanchor": "bottom",
                "pad": {"b": 14},
                "bgcolor": "#ffffff",
            }
        ]
    )
