"""A plan or a topology as one HTML page that needs nothing else: no network, no server, no files beside it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plotly.io import to_html
from plotly.offline import get_plotlyjs

from dualcoll.collectives.workload import Objective
from dualcoll.diagnosis.cut_words import cut_text
from dualcoll.diagnosis.timing import Timing, timing
from dualcoll.files import atomic_write
from dualcoll.plans.model import Plan
from dualcoll.reporting.drawing import gap_text, headline
from dualcoll.reporting.figures import (
    convergence_figure,
    group_bars,
    link_load_figure,
    load_bars,
    shown_trees,
    topology_figure,
    tree_figure,
)
from dualcoll.reporting.tables import plan_text, topology_text
from dualcoll.reporting.words import each_rate, size_text, structure
from dualcoll.topology.model import Topology
from dualcoll.units import format_bandwidth, format_time

__all__ = ["report", "topology_page"]

_BUTTONS = ["toImage", "zoom2d", "pan2d", "resetScale2d"]  # none that would send the figure elsewhere

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: #eef1f4; color: #1f2933; line-height: 1.5;
       font: 15px/1.5 Inter, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
main { max-width: 1320px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 0 0 12px; }
p { margin: 0 0 12px; max-width: 75ch; }
.muted { color: #56616d; }
section { background: #fff; border: 1px solid #dde3e8; border-radius: 10px; padding: 20px 24px; margin-top: 18px; }
.figure { overflow-x: auto; }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(260px, 1fr)); gap: 12px; margin-top: 18px; }
.numbers div { background: #fff; border: 1px solid #dde3e8; border-radius: 10px; padding: 14px 18px; }
.numbers b { display: block; font-size: 23px; font-weight: 650; font-variant-numeric: tabular-nums; }
.numbers span { color: #56616d; font-size: 13px; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 5px 12px 5px 0; border-bottom: 1px solid #eef1f4;
         overflow-wrap: anywhere; }
th { font-weight: 600; white-space: nowrap; width: 7.5em; color: #56616d; }
.share { width: 12em; }
.after { margin: 14px 0 0; }
.track { display: inline-block; width: 68px; }
.bar { display: inline-block; height: 10px; border-radius: 2px; background: #8c0a1c; }
@media print { body { background: #fff; } section, .numbers div { break-inside: avoid; } }
"""


def report(plan: Plan, path: str | Path) -> None:
    """Write the page of a plan: the result, what limits it, link load, trees, convergence, and what was assumed.

    The file takes its name only when it is complete.

    Raises:
        InputError: the file cannot be written.
    """
    times = timing(plan)
    shown = shown_trees(plan)
    name = plan.topology.name or "the fabric"
    outcome = f"{plan.outcome}: {plan.outcome.advice}"
    parts = [
        f"<h1>{_safe(headline(plan))}</h1>",
        f'<p class="muted">on {_safe(name)}, {size_text(plan)}; {_safe(outcome)}</p>',
        _numbers(_results(plan, times)),
        _section("What limits it", _limits(plan)),
    ]
    if len(plan.workload.groups) > 1:
        parts.append(_section("Groups", _figure(group_bars(plan))))
    if plan.alternatives:
        parts.append(_section("Beside it", _alternatives(plan)))
    parts += [
        _section("Link load", _figure(link_load_figure(plan)), _figure(load_bars(plan))),
        _section(_heading(plan, len(shown)), _figure(tree_figure(plan, *shown))),
        _section("Convergence", _figure(convergence_figure(plan))),
        _section("The plan in full", _table(plan_text(plan))),
        _section("The fabric", _table(topology_text(plan.topology))),
    ]
    atomic_write(path, _page(headline(plan), parts))


def _results(plan: Plan, times: Timing) -> list[tuple[str, str]]:
    """Numbers and what they are."""
    several = len(plan.workload.groups) > 1
    total = plan.workload.objective is Objective.TOTAL
    algbw = "algbw" + (", the sum of all groups" if total else ", of the largest message" if several else "")
    each = each_rate(plan)
    items = [
        (algbw, format_bandwidth(plan.algbw)),
        ("busbw, as nccl-tests counts", "" if plan.busbw is None else format_bandwidth(plan.busbw)),
        ("" if each is None else f"for each {each[0]}", "" if each is None else format_bandwidth(each[1])),
        ("bound: the most without computing in the network", format_bandwidth(plan.bound)),
        ("proved gap", gap_text(plan)),
        (
            "bound if every node forwards and reduces",
            "" if plan.in_network is None else format_bandwidth(plan.in_network.rate),
        ),
        ("predicted until all is done" if several else f"predicted for {size_text(plan)}", format_time(times.total)),
        ("least time, from latencies", format_time(times.latency_bound)),
        (f"{structure(plan)}, most logical edges of a way", f"{len(plan.trees)}, {times.depth}"),
    ]
    return [(label, value) for label, value in items if value]


def _heading(plan: Plan, shown: int) -> str:
    count, carriers = len(plan.trees), structure(plan, len(plan.trees))
    if shown == count:
        return f"The {carriers}" if count == 1 else f"The {count} {carriers}"
    if len(plan.workload.demands()) == 1:
        return f"The {shown} fastest of {count} {carriers}"
    return f"{shown} of {count} {carriers}, the fastest of each demand first"


def topology_page(topology: Topology, path: str | Path) -> None:
    """Write the page of a topology: its picture, its links, where their capacities come from, and what was assumed.

    Raises:
        InputError: the file cannot be written.
    """
    name = topology.name or "Fabric"
    parts = [
        f"<h1>{_safe(name)}</h1>",
        _section("Picture", _figure(topology_figure(topology))),
        _section("The fabric", _table(topology_text(topology))),
    ]
    atomic_write(path, _page(name, parts))


def _page(title: str, parts: Sequence[str]) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_safe(title)}</title>\n<style>{_STYLE}</style>\n<script>{get_plotlyjs()}</script>\n"
        "</head>\n<body>\n<main>\n" + "\n".join(parts) + "\n</main>\n</body>\n</html>\n"
    )


def _safe(text: str) -> str:
    return html.escape(text, quote=True)


def _section(title: str, *content: str) -> str:
    return f"<section>\n<h2>{_safe(title)}</h2>\n" + "\n".join(content) + "\n</section>"


def _numbers(items: Sequence[tuple[str, str]]) -> str:
    cells = "".join(f"<div><b>{_safe(value)}</b><span>{_safe(label)}</span></div>" for label, value in items)
    return f'<div class="numbers">{cells}</div>'


def _limits(plan: Plan) -> str:
    rows = [(group.price_share, f"{100 * group.price_share:.3g} %", group.text) for group in plan.bottleneck]
    cut = cut_text(plan)
    return (
        "<p>The bound is made of these links alone: more capacity anywhere else would allow no higher rate. "
        f"The share is each group's part of the bound.</p>{_bars(rows)}"
        + ("" if cut is None else f'<p class="after">The narrowest cut: {_safe(cut)}.</p>')
    )


def _alternatives(plan: Plan) -> str:
    """This plan and what else would reach, as parts of the bound."""
    ways = [(plan.algbw, "this plan"), *((one.rate, one.text) for one in plan.alternatives)]
    rows = [(rate / plan.bound, format_bandwidth(rate), text) for rate, text in ways]
    return f"<p>Rates of other ways, by the same message; a full bar is the bound.</p>{_bars(rows)}"


def _bars(rows: Sequence[tuple[float, str, str]]) -> str:
    """A table of bars: the part of a whole, its number, and what it is."""
    cells = "".join(
        f'<tr><td class="share"><span class="track">'
        f'<span class="bar" style="width:{max(2, round(60 * min(part, 1.0)))}px"></span></span>'
        f"{_safe(number)}</td><td>{_safe(text)}</td></tr>"
        for part, number, text in rows
    )
    return f"<table>{cells}</table>"


def _table(lines: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<tr><th>{_safe(label)}</th><td>{_safe(text)}</td></tr>" for label, text in lines)
    return f"<table>{rows}</table>"


def _figure(figure: Any) -> str:
    config = {"displaylogo": False, "displayModeBar": "hover", "modeBarButtons": [_BUTTONS]}
    body = to_html(figure, config=config, include_plotlyjs=False, include_mathjax=False, full_html=False)
    return f'<div class="figure">{body}</div>'
