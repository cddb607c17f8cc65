"""A picture of how a solver got there."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dualcoll.plans.model import Plan
from dualcoll.reporting.drawing import INK, dress, escaped
from dualcoll.units import format_fraction, format_time

__all__ = ["convergence_figure"]


def convergence_figure(plan: Plan) -> go.Figure:
    """The best rate and the proved bound against seconds, and below them the gap between the two on a log scale."""
    history = [step for step in plan.history if np.isfinite(step.bound) and step.value > 0]
    seconds = [step.seconds for step in history]
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.62, 0.38], vertical_spacing=0.07)
    for name, values, color, fill in (
        ("bound: no plan is faster", [step.bound / 1e9 for step in history], "#d55e00", None),
        ("this plan", [step.value / 1e9 for step in history], "#0072b2", "tonexty"),
    ):
        figure.add_scatter(
            x=seconds,
            y=values,
            mode="lines+markers" if len(history) < 40 else "lines",
            line={"color": color, "width": 2.2, "shape": "hv"},
            marker={"size": 5},
            fill=fill,
            fillcolor="rgba(107, 119, 133, 0.10)",
            name=name,
            hovertemplate="%{x:.3g} s: %{y:.6g} GB/s<extra>" + name + "</extra>",
            row=1,
            col=1,
        )
    figure.add_scatter(
        x=seconds,
        y=[max(step.gap, 1e-12) for step in history],
        mode="lines+markers" if len(history) < 40 else "lines",
        line={"color": INK, "width": 1.8, "shape": "hv"},
        marker={"size": 4},
        showlegend=False,
        name="gap",
        hovertemplate="%{x:.3g} s: gap %{y:.2e}<extra></extra>",
        row=2,
        col=1,
    )
    after = f"{plan.outcome} after {format_time(plan.seconds)}, {plan.iterations} oracle calls"
    dress(figure, f"Gap {format_fraction(plan.gap)}: {plan.outcome.advice}", escaped(after))
    figure.update_layout(
        width=1160,
        height=460,
        margin={"l": 20, "r": 40, "t": 80, "b": 60},
        legend={"x": 1.0, "xanchor": "right", "y": 1.0, "yanchor": "bottom"},
    )
    figure.update_xaxes(gridcolor="#e8ecf0", zeroline=False)
    figure.update_xaxes(title_text="seconds", row=2, col=1)
    figure.update_yaxes(gridcolor="#e8ecf0", zeroline=False, automargin=True)
    figure.update_yaxes(title_text="GB/s", row=1, col=1)
    figure.update_yaxes(title_text="gap", type="log", exponentformat="power", nticks=6, row=2, col=1)
    if history:
        best = min(step.bound for step in history) / 1e9
        top = min(max(step.bound for step in history) / 1e9, 2 * best)
        figure.update_yaxes(range=[0, 1.06 * top], row=1, col=1)
    return figure
