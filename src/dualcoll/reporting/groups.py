"""Groups told apart: the colours of their ranks, and a picture of their rates."""

from __future__ import annotations

from collections import defaultdict

import plotly.graph_objects as go

from dualcoll.collectives.catalogue import title
from dualcoll.collectives.workload import Objective
from dualcoll.plans.model import Plan
from dualcoll.reporting.drawing import dress, escaped
from dualcoll.reporting.markers import Fills
from dualcoll.units import format_bandwidth, format_size, format_time

__all__ = ["group_bars", "group_fills"]

# light enough for a name in ink, none of them a colour of arrows or full links
_TINTS = ("#8fd3bd", "#f4e27a", "#a9cdf0", "#d7b3d8", "#f2b48a", "#c3cbd3", "#b9b2ea", "#d8c39a")
WHITE = "#ffffff"
MOST_BARS = 40
INFINITE = float("inf")


def group_fills(plan: Plan) -> Fills:
    """The ranks that take part in white, or where there are several groups in the colour of their first group."""
    groups = plan.workload.groups
    if len(groups) == 1:
        return Fills(dict.fromkeys(plan.participants, WHITE), {}, {})
    color: dict[int, str] = {}
    names: dict[int, list[str]] = defaultdict(list)
    legend: dict[str, str] = {}
    for number, group in enumerate(groups):
        for rank in group.ranks:
            if rank not in color:
                color[rank] = legend[group.name] = _TINTS[number % len(_TINTS)]
            names[rank].append(group.name)
    return Fills(color, dict(names), legend)


def group_bars(plan: Plan) -> go.Figure:
    """Every group's rate as a bar with its time, in the colour of its ranks; of many groups those that take longest."""
    groups, rates = plan.workload.groups, plan.group_rates()
    seconds = [group.size / rate if rate > 0 else INFINITE for group, rate in zip(groups, rates, strict=True)]
    shown = sorted(sorted(range(len(groups)), key=lambda g: (-seconds[g], g))[:MOST_BARS])
    tints = group_fills(plan).legend
    figure = go.Figure()
    figure.add_bar(
        x=[rates[g] / 1e9 for g in shown],
        y=list(range(len(shown))),
        orientation="h",
        marker={"color": [tints.get(groups[g].name, WHITE) for g in shown], "line": {"color": "#3d4c5c", "width": 0.7}},
        text=[
            f"{format_bandwidth(rates[g])}, {'never done' if rates[g] <= 0 else f'done after {format_time(seconds[g])}'}"
            for g in shown
        ],
        textposition="auto",
        hovertext=[
            f"{escaped(groups[g].name)}: {title(groups[g].collective)} of {len(groups[g].ranks)} ranks, "
            f"{format_size(groups[g].size)}"
            for g in shown
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
    )
    which = f"the {MOST_BARS} of {len(groups)} that take longest" if len(shown) < len(groups) else "message over time"
    dress(figure, _headline(plan, seconds), f"rate of each group: {which}")
    figure.update_layout(
        width=1160, height=130 + 26 * len(shown), margin={"l": 20, "r": 40, "t": 80, "b": 50}, bargap=0.3
    )
    figure.update_xaxes(title_text="GB/s", gridcolor="#e8ecf0", rangemode="tozero")
    names = [f"{escaped(groups[g].name, 40)}  " for g in shown]
    figure.update_yaxes(tickvals=list(range(len(shown))), ticktext=names, autorange="reversed", automargin=True)
    return figure


def _headline(plan: Plan, seconds: list[float]) -> str:
    if plan.workload.objective is Objective.TOTAL:
        idle = sum(time == INFINITE for time in seconds)
        left_out = f"; {idle} of {len(seconds)} groups get nothing" if idle else ""
        return f"{format_bandwidth(plan.algbw)} in total{left_out}"
    first, last = format_time(min(seconds)), format_time(max(seconds))
    return f"All groups are done after {last}" + (f", the first after {first}" if first != last else "")
