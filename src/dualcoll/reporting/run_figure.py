"""A simulated run as a picture: what leaves and reaches each rank over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dualcoll.collectives.catalogue import title
from dualcoll.reporting.drawing import dress, escaped
from dualcoll.reporting.timeline_figure import COLORS
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.simulation import Trace
from dualcoll.units import format_time

__all__ = ["run_figure"]

Floats = NDArray[np.float64]

ROWS = 32  # ranks, where nobody says otherwise
BARS = 20_000
WORDS = {Op.REDUCE: "to be merged", Op.COPY: "to be stored"}


def run_figure(schedule: Schedule, trace: Trace, *, ranks: Sequence[int] | None = None) -> go.Figure:
    """Ranks as rows over time: above each row's middle what leaves the rank, below it what comes in until it is delivered.

    Args:
        schedule: what was run. trace: the run. ranks: rank numbers to show, the first 32 by default.
    """
    shown = list(range(min(schedule.ranks, ROWS)) if ranks is None else ranks)
    figure = go.Figure()
    bars = _bars(schedule, trace, shown)
    for op in Op:
        mine = [bar for bar in bars[:BARS] if schedule.op[bar[0]] == op]
        x: list[float | None] = []
        y: list[float | None] = []
        about: list[str | None] = []
        for send, height, begin, end in mine:
            x += [1e6 * begin, 1e6 * end, None]
            y += [height, height, None]
            about += [_about(schedule, trace, send)] * 2 + [None]
        if mine:
            figure.add_scatter(
                x=x,
                y=y,
                mode="lines",
                line={"color": COLORS[op], "width": 8},
                opacity=0.75,
                text=about,
                hovertemplate="%{text}<extra></extra>",
                name=WORDS[op],
            )
    made = f" ({schedule.name})" if schedule.name else ""
    what = f"{title(schedule.contract.collective)} of {schedule.ranks} ranks{made}: {format_time(trace.finish)}"
    missing = f"; the first {BARS} of {len(bars)} bars" if len(bars) > BARS else ""
    dress(figure, escaped(what), f"above each line what the rank puts out, below it what comes in{missing}")
    height = 34 * len(shown)
    figure.update_layout(
        width=1160,
        height=160 + height,
        margin={"l": 20, "r": 30, "t": 80, "b": 80},
        legend={"y": -48 / max(height, 1), "x": 1, "xanchor": "right"},
    )
    figure.update_xaxes(title_text="microseconds", gridcolor="#e8ecf0", zeroline=False)
    names = [escaped(schedule.rank_name(rank), 24) for rank in shown]
    ticks = {"tickmode": "array", "tickvals": [-row for row in range(len(shown))], "ticktext": names}
    figure.update_yaxes(**ticks, range=[-len(shown) + 0.5, 0.5], showgrid=False, zeroline=False, automargin=True)
    return figure


def _bars(schedule: Schedule, trace: Trace, shown: Sequence[int]) -> list[tuple[int, float, float, float]]:
    """Send, height, begin and end of what leaves and reaches the ranks shown, in order of sends.

    A send leaves while its first links serve it, and comes in from when its last ones do. Where the run does not tell, both
    begin with its start.
    """
    row_of = {rank: row for row, rank in enumerate(shown)}
    left = np.where(np.isnan(trace.left), trace.end, trace.left)
    out, into = trace.start.copy(), trace.start.copy()
    if trace.services is not None:
        served = np.flatnonzero(np.diff(trace.services.ptr))
        out[served] = trace.services.begin[trace.services.ptr[served]]
        into[served] = trace.services.begin[trace.services.ptr[served + 1] - 1]
    bars = []
    for send, (src, dst) in enumerate(zip(schedule.src.tolist(), schedule.dst.tolist(), strict=True)):
        if src in row_of:
            bars.append((send, 0.18 - row_of[src], float(out[send]), float(left[send])))
        if dst in row_of and src != dst:
            bars.append((send, -0.18 - row_of[dst], float(into[send]), float(trace.end[send])))
    return bars


def _about(schedule: Schedule, trace: Trace, send: int) -> str:
    begin, end = format_time(float(trace.start[send])), format_time(float(trace.end[send]))
    return (
        f"send {send}: chunk {schedule.chunk[send]}, R{schedule.src[send]} → R{schedule.dst[send]}<br>{begin} to {end}"
    )
