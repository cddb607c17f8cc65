"""How time, memory and oracle calls grow, beside the bounds of the DualColl paper, and pictures of it."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualcoll import Gap, Seconds, plan
from dualcoll.packing.garg_konemann import iteration_limit
from dualcoll.topology.catalog import catalog

__all__ = ["BOXES", "STUDIES", "Study", "draw_bounds", "draw_growth", "measure_study"]

Record = dict[str, Any]

BOXES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)  # of eight GPUs
EPSILON = 0.2  # of Garg–Könemann where it does not vary
GAP = 0.01  # of the default method
LIMIT = 100.0  # seconds of one plan; a longer one is left out
KINDS = {"allreduce": "AllReduce", "spray": "sprayed AllReduce", "allgather": "AllGather"}
COLOURS = {"allreduce": "#1f77b4", "spray": "#2ca02c", "allgather": "#d62728"}
SIXTEEN = ("ring:16", "torus:4x4", "fat-tree:k=4", "full:16")  # fabrics of 16 GPUs with more and more links
RAILS = (2, 4, 8, 16)  # boxes
EPSILONS = (0.5, 0.35, 0.25, 0.15, 0.1)


@dataclass(frozen=True, slots=True)
class Study:
    """One plan by the paper's algorithm, and one by the default method.

    Attributes:
        axis: what varies: ``"links"``, ``"ranks"`` or ``"epsilon"``. spec: the fabric. kind: of plan. epsilon: of the
            paper's algorithm.
    """

    axis: str
    spec: str
    kind: str
    epsilon: float = EPSILON


STUDIES = (
    *(Study("links", spec, kind) for kind in KINDS for spec in SIXTEEN),
    *(Study("ranks", f"dgx-h100:boxes={boxes},network=rail", kind) for kind in KINDS for boxes in RAILS),
    *(Study("epsilon", "torus:4x4", kind, epsilon) for kind in KINDS for epsilon in EPSILONS),
)


def measure_study(study: Study) -> Record:
    """Oracle calls and processor seconds; none for a method that needs longer than the limit."""
    fabric = catalog(study.spec)
    collective, routing = ("allgather", "single") if study.kind == "allgather" else ("allreduce", "single")
    if study.kind == "spray":
        routing = "spray"
    rows, ranks = len(fabric.links), len(fabric.ranks)
    record: Record = {"axis": study.axis, "kind": study.kind, "spec": study.spec, "links": rows, "ranks": ranks}
    record |= {"epsilon": study.epsilon, "calls_bound": iteration_limit(rows, study.epsilon)}
    record["work_bound"] = record["calls_bound"] * _oracle_work(study.kind, rows, ranks, len(fabric.nodes))
    gaps = {"garg-konemann": 1 - (1 - study.epsilon) ** 2, "auto": GAP}
    for method, gap in gaps.items():
        asked = {"stop": Gap(gap) | Seconds(LIMIT), "method": method, "routing": routing}
        plan(catalog("torus:3x3"), collective, **{**asked, "stop": Gap(0.5)})  # type: ignore[arg-type]
        before = time.process_time()
        made = plan(fabric, collective, **asked)  # type: ignore[arg-type]
        spent = time.process_time() - before
        ended = made.seconds < LIMIT
        record[method] = {"calls": made.iterations if ended else None, "seconds": spent if ended else None}
    return record


def _oracle_work(kind: str, links: int, ranks: int, nodes: int) -> float:
    """Steps of an oracle call in the paper: section 4.3, 5.3 for sprayed packets, 6.1 for AllGather; without its constant."""
    search = ranks * (links + nodes * math.log(nodes))
    if kind == "spray":
        search = ranks * (links + nodes)
    return search + (ranks**2 if kind == "allreduce" else ranks**3)


def draw_bounds(records: list[Record], file: Path) -> None:
    """Oracle calls and seconds against links, ranks and ε; the paper's bounds dashed."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    axes = {
        "links": "directed links |E| (16 GPUs: ring, torus, fat tree, all to all)",
        "ranks": "GPUs n (H100 boxes on rails)",
        "epsilon": "ε (torus of 4 by 4)",
    }
    figure = make_subplots(rows=2, cols=3, horizontal_spacing=0.06, vertical_spacing=0.12)
    for column, (axis, title) in enumerate(axes.items(), 1):
        for kind, name in KINDS.items():
            mine = sorted((r for r in records if (r["axis"], r["kind"]) == (axis, kind)), key=lambda r: r[axis])
            for x, y, row, label, dash in _lines(mine, axis):
                style = {"color": COLOURS[kind], "dash": dash}
                shown = (column, row) == (1, 1)
                line = go.Scatter(x=x, y=y, line=style, mode="lines+markers", name=f"{name}, {label}", showlegend=shown)
                figure.add_trace(line, row=row, col=column)
        ticks = sorted({record[axis] for record in records if record["axis"] == axis})
        for row in (1, 2):
            figure.update_xaxes(type="log", tickvals=ticks, ticktext=[f"{x:g}" for x in ticks], row=row, col=column)
        figure.update_xaxes(title_text=title, row=2, col=column)
    figure.update_yaxes(type="log", dtick=1)
    figure.update_yaxes(title_text="oracle calls", row=1, col=1)
    figure.update_yaxes(title_text="CPU seconds", row=2, col=1)
    figure.update_layout(template="plotly_white", width=1500, height=800, margin={"t": 30})
    file.write_text(figure.to_html(include_plotlyjs=True, config={"displayModeBar": False}))


def _lines(records: list[Record], axis: str) -> Iterator[tuple[list[float], list[float | None], int, str, str]]:
    """x, y, row, label and dash of each line; the bound on time has the constant that fits the measured times best."""
    x = [record[axis] for record in records]

    def measured(method: str, key: str) -> list[float | None]:
        return [record[method][key] for record in records]

    yield x, measured("garg-konemann", "calls"), 1, "Garg–Könemann", "solid"
    yield x, measured("auto", "calls"), 1, "default to 1 %", "dot"
    yield x, [record["calls_bound"] for record in records], 1, "the paper's bound", "dash"
    seconds = measured("garg-konemann", "seconds")
    yield x, seconds, 2, "Garg–Könemann", "solid"
    yield x, measured("auto", "seconds"), 2, "default to 1 %", "dot"
    ratios = [math.log(s / r["work_bound"]) for s, r in zip(seconds, records, strict=True) if s]
    constant = math.exp(statistics.fmean(ratios))
    yield x, [constant * record["work_bound"] for record in records], 2, "the paper's bound", "dash"


def draw_growth(records: list[Record], file: Path) -> None:
    """Seconds and memory against GPUs."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=2, subplot_titles=("solver seconds", "peak memory, MiB"))
    ranks = [record["ranks"] for record in records]
    for column, key in ((1, "seconds"), (2, "MiB")):
        line = go.Scatter(x=ranks, y=[record[key] for record in records], mode="lines+markers", showlegend=False)
        figure.add_trace(line, row=1, col=column)
    texts = [f"{count:,}" for count in ranks]
    figure.update_xaxes(type="log", title_text="GPUs (H100 boxes on rails)", tickvals=ranks, ticktext=texts)
    figure.update_yaxes(type="log", dtick=1, row=1, col=1)
    figure.update_yaxes(rangemode="tozero", row=1, col=2)
    figure.update_layout(template="plotly_white", width=1000, height=400, title="AllReduce to a gap of 1 %")
    file.write_text(figure.to_html(include_plotlyjs=True, config={"displayModeBar": False}))
