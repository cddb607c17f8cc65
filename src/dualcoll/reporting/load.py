"""Pictures of how full the links are."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dualcoll.diagnosis.bottleneck import role, utilisation
from dualcoll.plans.model import Plan
from dualcoll.reporting.drawing import (
    INK,
    Cable,
    Stroke,
    add_strokes,
    cables,
    canvas,
    dress,
    escaped,
    headline,
    line_widths,
    paths,
)
from dualcoll.reporting.groups import group_fills
from dualcoll.reporting.layout import layout
from dualcoll.reporting.markers import add_nodes
from dualcoll.topology.model import Topology
from dualcoll.units import format_bandwidth

__all__ = ["link_load_figure", "load_bars", "utilisation_color"]

Floats = NDArray[np.float64]

PRICED = "#b5dcf5"

# lightness falls steadily, so that the order survives without hue
HEAT = ((0.0, (222, 227, 232)), (0.5, (243, 188, 90)), (0.8, (221, 96, 40)), (1.0, (140, 10, 28)))
LEVELS = 20  # colours between an idle and a full link


def link_load_figure(plan: Plan) -> go.Figure:
    """The fabric with its links coloured by how much of their capacity the plan uses, the worse direction deciding.

    Links with a positive price, which limit the plan, have a blue halo. Hovering tells both directions.
    """
    topology = plan.topology
    place = layout(topology)
    drawn = cables(topology, place)
    widths = line_widths(topology, place, drawn)
    used, worst = utilisation(plan), _worst_rows(plan)
    priced = {e for group in plan.bottleneck for e in group.links}
    ways = paths(topology, place, [(cable.a, cable.b) for cable in drawn])
    halos: list[Stroke] = []
    strokes: list[tuple[float, Stroke]] = []
    for cable, way, width in zip(drawn, ways, widths, strict=True):
        load = float(worst[list(cable.links)].max())
        limiting = not priced.isdisjoint(cable.links)
        if limiting:
            halos.append(
                Stroke(way, PRICED, width + min(5.0, max(3.0, place.unit / 6)), "bottleneck (priced by the bound)")
            )
        hover = _about_load(topology, cable, used, worst) + ("<br><b>limits the plan</b>" if limiting else "")
        strokes.append((load, Stroke(way, utilisation_color(load), width, hover=hover)))
    figure = canvas(place, headline(plan), f"How full the links are on {escaped(topology.name or 'the fabric')}")
    add_strokes(figure, halos)
    add_strokes(figure, [stroke for _, stroke in sorted(strokes, key=lambda item: item[0])])
    _add_color_bar(figure)
    add_nodes(figure, topology, place, group_fills(plan))
    return figure


def load_bars(plan: Plan) -> go.Figure:
    """How full each kind of link is: the mean as a bar, the fullest and emptiest link as whiskers; fullest kind first."""
    topology = plan.topology
    worst = _worst_rows(plan)
    kinds: dict[tuple[str, str], list[int]] = defaultdict(list)
    for e, link in enumerate(topology.links):
        one, other = sorted((role(topology, link.tail), role(topology, link.head)))
        kinds[one, other].append(e)
    rows = sorted(((worst[links], roles) for roles, links in kinds.items()), key=lambda row: float(row[0].mean()))
    mean = [100 * float(values.mean()) for values, _ in rows]
    figure = go.Figure()
    figure.add_bar(
        x=mean,
        y=[f"{escaped(a)} – {escaped(b)}" for _, (a, b) in rows],
        orientation="h",
        marker={"color": [utilisation_color(value / 100) for value in mean]},
        error_x={
            "symmetric": False,
            "array": [100 * float(values.max()) - middle for (values, _), middle in zip(rows, mean, strict=True)],
            "arrayminus": [middle - 100 * float(values.min()) for (values, _), middle in zip(rows, mean, strict=True)],
            "color": INK,
            "thickness": 1.2,
        },
        customdata=[[values.size, 100 * values.min(), 100 * values.max()] for values, _ in rows],
        hovertemplate="%{y}: %{customdata[0]} links<br>mean %{x:.3g} %, "
        "from %{customdata[1]:.3g} to %{customdata[2]:.3g} %<extra></extra>",
        showlegend=False,
    )
    fullest = escaped(" – ".join(rows[-1][1]))
    title = f"{fullest} links are the fullest kind: {mean[-1]:.3g} % on average"
    dress(figure, title, "mean of all links of a kind, with the emptiest and the fullest")
    figure.update_layout(
        width=1160, height=130 + 40 * len(rows), margin={"l": 20, "r": 40, "t": 80, "b": 40}, bargap=0.45
    )
    figure.update_xaxes(range=[0, 104], ticksuffix=" %", gridcolor="#e8ecf0", zeroline=False)
    figure.update_yaxes(automargin=True, ticksuffix="  ")
    return figure


def utilisation_color(used: float) -> str:
    """The colour of a link of which this part is used, in [0, 1]; darker is fuller."""
    level = round(LEVELS * min(max(used, 0.0), 1.0)) / LEVELS
    for (low, start), (high, end) in itertools.pairwise(HEAT):
        if level <= high:
            part = (level - low) / (high - low)
            red, green, blue = (round(a + part * (b - a)) for a, b in zip(start, end, strict=True))
            return f"rgb({red}, {green}, {blue})"
    raise AssertionError("levels end at 1")


def _add_color_bar(figure: go.Figure) -> None:
    figure.add_scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker={
            "color": [0],
            "cmin": 0,
            "cmax": 100,
            "colorscale": [[i / LEVELS, utilisation_color(i / LEVELS)] for i in range(LEVELS + 1)],
            "showscale": True,
            "colorbar": {
                "title": {"text": "link used", "side": "right"},
                "ticksuffix": " %",
                "thickness": 12,
                "len": 0.6,
                "outlinewidth": 0,
                "x": 1.0,
            },
        },
        hoverinfo="skip",
        showlegend=False,
        name="scale",
    )
    figure.update_layout(width=figure.layout.width + 70, margin={"r": 90})


def _worst_rows(plan: Plan) -> Floats:
    """Utilisation of each link (E,), or of a capacity that it shares if that is fuller."""
    used = utilisation(plan)
    worst = used[: len(plan.topology.links)].copy()
    for s, row in enumerate(plan.topology.shared):
        members = list(row.links)
        worst[members] = np.maximum(worst[members], used[worst.size + s])
    return worst


def _about_load(topology: Topology, cable: Cable, used: Floats, worst: Floats) -> str:
    ends = [escaped(topology.nodes[end].name) for end in (cable.a, cable.b)]
    lines = [f"<b>{ends[0]} – {ends[1]}</b>"]
    for side, (start, end) in ((cable.there, ends), (cable.back, ends[::-1])):
        if side:
            capacity = sum(topology.links[e].capacity for e in side)
            load = sum(topology.links[e].capacity * float(used[e]) for e in side)
            many = f", {len(side)} cables" if len(side) > 1 else ""
            lines.append(
                f"{start} → {end}: {100 * load / capacity:.3g} % "
                f"({format_bandwidth(load)} of {format_bandwidth(capacity)}{many})"
            )
    shared = float(worst[list(cable.links)].max())
    if shared > float(used[list(cable.links)].max()):
        lines.append(f"capacity shared with other links: {100 * shared:.3g} %")
    return "<br>".join(lines)
