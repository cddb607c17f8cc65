"""A plan or a topology as one HTML page that needs nothing else: no network, no server, no files beside it."""

from __future__ import annotations

from pathlib import Path

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
from dualcoll.reporting.page import bars, figure, numbers, page, safe, section, table
from dualcoll.reporting.tables import plan_text, topology_text
from dualcoll.reporting.words import each_rate, size_text, structure
from dualcoll.topology.model import Topology
from dualcoll.units import format_bandwidth, format_time

__all__ = ["report", "topology_page"]


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
        f"<h1>{safe(headline(plan))}</h1>",
        f'<p class="muted">on {safe(name)}, {size_text(plan)}; {safe(outcome)}</p>',
        numbers(_results(plan, times)),
        section("What limits it", _limits(plan)),
    ]
    if len(plan.workload.groups) > 1:
        parts.append(section("Groups", figure(group_bars(plan))))
    if plan.alternatives:
        parts.append(section("Beside it", _alternatives(plan)))
    parts += [
        section("Link load", figure(link_load_figure(plan)), figure(load_bars(plan))),
        section(_heading(plan, len(shown)), figure(tree_figure(plan, *shown))),
        section("Convergence", figure(convergence_figure(plan))),
        section("The plan in full", table(plan_text(plan))),
        section("The fabric", table(topology_text(plan.topology))),
    ]
    atomic_write(path, page(headline(plan), parts))


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
        f"<h1>{safe(name)}</h1>",
        section("Picture", figure(topology_figure(topology))),
        section("The fabric", table(topology_text(topology))),
    ]
    atomic_write(path, page(name, parts))


def _limits(plan: Plan) -> str:
    rows = [(group.price_share, f"{100 * group.price_share:.3g} %", group.text) for group in plan.bottleneck]
    cut = cut_text(plan)
    return (
        "<p>The bound is made of these links alone: more capacity anywhere else would allow no higher rate. "
        f"The share is each group's part of the bound.</p>{bars(rows)}"
        + ("" if cut is None else f'<p class="after">The narrowest cut: {safe(cut)}.</p>')
    )


def _alternatives(plan: Plan) -> str:
    """This plan and what else would reach, as parts of the bound."""
    ways = [(plan.algbw, "this plan"), *((one.rate, one.text) for one in plan.alternatives)]
    rows = [(rate / plan.bound, format_bandwidth(rate), text) for rate, text in ways]
    return f"<p>Rates of other ways, by the same message; a full bar is the bound.</p>{bars(rows)}"
