"""``dualcoll plan`` and ``dualcoll bound``."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualcoll.cli.options import Cpu, Gpu, Html, Json, Nic, Out, Pcie, RatesName, TopologySpec, load, writable
from dualcoll.cli.output import on_line, say, show_json, show_lines, status_line
from dualcoll.cli.workload import (
    Collective,
    DemandFile,
    Groups,
    Mix,
    NoRelay,
    ObjectiveName,
    Ranks,
    Root,
    RoutingName,
    Size,
    Weights,
    workload_of,
)
from dualcoll.errors import InputError

if TYPE_CHECKING:
    from dualcoll.collectives.demand_matrix import DemandMatrix
    from dualcoll.plans.model import Alternative, Plan
    from dualcoll.progress import Meter

__all__ = ["bound", "interruptible", "plan"]

MANY_RANKS = 128  # for the usual choice to be simulated
MANY_SENDS = 5000  # demands, for a second plan without relaying

GapText = Annotated[str, typer.Option("--gap", help="Stop once proved this close to the bound: 1% or 0.01.")]
SecondsText = Annotated[float, typer.Option("--seconds", help="Stop after this long with the best so far.")]
Forward = Annotated[str, typer.Option("--forward", help="switches, or all: every GPU and host forwards for others.")]
Method = Annotated[str, typer.Option("--method", help="auto (column generation), garg-konemann or composed.")]
MaxTrees = Annotated[
    int | None, typer.Option("--max-trees", metavar="K", min=1, help="The best found with so few trees.")
]
MaxDepth = Annotated[
    int | None, typer.Option("--max-depth", metavar="D", min=1, help="At most so many logical edges from root to rank.")
]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="PLAN", help="Start from a plan file of the same ranks on a similar fabric."),
]
Pareto = Annotated[bool, typer.Option("--pareto", help="Also print what fewer trees reach: trees, rate, depth.")]
Sharing = Annotated[
    str | None,
    typer.Option(
        "--sharing", metavar="max-min", help="Also say what the network's own fair sharing makes of the plan."
    ),
]
Copies = Annotated[
    int | None, typer.Option("--copies", metavar="Y", min=1, help="With --sharing: scale of the copies.")
]
Accuracy = Annotated[
    str | None,
    typer.Option("--accuracy", metavar="MU", help="With --sharing: how close copies come to the rates: 10%."),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, help="Breaks ties between equally good trees; seeds the hash of ecmp.")
]


def plan(
    topology: TopologySpec,
    collective: Collective = None,
    size: Size = None,
    gap: GapText = "1%",
    seconds: SecondsText = 30.0,
    ranks: Ranks = None,
    root: Root = None,
    weights: Weights = None,
    demand: DemandFile = None,
    groups: Groups = None,
    objective: ObjectiveName = "slowest",
    mix: Mix = None,
    routing: RoutingName = "single",
    no_relay: NoRelay = False,
    forward: Forward = "switches",
    method: Method = "auto",
    seed: Seed = 0,
    max_trees: MaxTrees = None,
    max_depth: MaxDepth = None,
    previous: From = None,
    pareto: Pareto = False,
    sharing: Sharing = None,
    copies: Copies = None,
    accuracy: Accuracy = None,
    output: Out = None,
    html: Html = None,
    gpu: Gpu = None,
    nic: Nic = None,
    pcie: Pcie = None,
    cpu: Cpu = None,
    rates: RatesName = "nominal",
    as_json: Json = False,
) -> None:
    """Find a plan, prove how good it is, and say what limits it."""
    inputs = (topology, previous, demand, mix, groups)
    writable(output, "--output", *inputs)
    writable(html, "--html", *inputs, output)
    tolerance = _sharing_wishes(sharing, copies, accuracy)
    from dualcoll.reporting.tables import plan_record, plan_text

    start = None
    if previous is not None:
        from dualcoll.plans.file import read_plan

        start = read_plan(previous)
    matrix = _read_demand(demand)
    carried = {"size": size, "ranks": ranks, "root": root, "weights": weights, "demand": matrix, "groups": groups}
    carried["objective"] = objective
    wishes = {"max_trees": max_trees, "max_depth": max_depth, "start": start, "pareto": pareto}
    asked = {"forward": forward, "relay": not no_relay, "routing": routing, "method": method, "seed": seed, **wishes}
    made = _solve(topology, collective, mix, carried, (gap, seconds), (gpu, nic, pcie, cpu, rates), asked)
    with suppress(KeyboardInterrupt):  # the plan is kept
        made = replace(made, alternatives=(*made.alternatives, *_alternatives(made, asked, (gap, seconds))))
    if output is not None:
        from dualcoll.plans.file import write_plan

        write_plan(made, output)
    if html is not None:
        from dualcoll.reporting.html import report

        report(made, html)
    record, lines = (plan_record(made), []) if as_json else ({}, plan_text(made))
    if matrix is not None:
        from dualcoll.collectives.description import describe_demand

        told = describe_demand(matrix)
        record["demand"] = list(told)
        lines += [("demand" if i == 0 else "", text) for i, text in enumerate(told)]
    if sharing is not None:
        from dualcoll.reporting.sharing import sharing_record, sharing_text
        from dualcoll.sharing import share

        shared = share(made, copies=copies, accuracy=tolerance)
        if as_json:
            record["sharing"] = sharing_record(shared)
        else:
            lines += sharing_text(shared)
    if as_json:
        show_json(record)
    else:
        show_lines(lines)
    for path in filter(None, (output, html)):
        say(f"saved {path}")


def bound(
    topology: TopologySpec,
    collective: Collective = None,
    size: Size = None,
    gap: GapText = "1%",
    seconds: SecondsText = 30.0,
    ranks: Ranks = None,
    root: Root = None,
    weights: Weights = None,
    demand: DemandFile = None,
    groups: Groups = None,
    objective: ObjectiveName = "slowest",
    mix: Mix = None,
    routing: RoutingName = "single",
    no_relay: NoRelay = False,
    forward: Forward = "switches",
    method: Method = "auto",
    seed: Seed = 0,
    gpu: Gpu = None,
    nic: Nic = None,
    pcie: Pcie = None,
    cpu: Cpu = None,
    rates: RatesName = "nominal",
    as_json: Json = False,
) -> None:
    """Say how fast the collective can possibly run, and what limits it."""
    from dualcoll.reporting.tables import plan_record, plan_text

    matrix = _read_demand(demand)
    carried = {"size": size, "ranks": ranks, "root": root, "weights": weights, "demand": matrix, "groups": groups}
    carried["objective"] = objective
    asked = {"forward": forward, "relay": not no_relay, "routing": routing, "method": method, "seed": seed}
    made = _solve(topology, collective, mix, carried, (gap, seconds), (gpu, nic, pcie, cpu, rates), asked)
    if as_json:
        show_json(plan_record(made))
    else:
        show_lines(plan_text(made, bound_only=True))


def _read_demand(path: Path | None) -> DemandMatrix | None:
    if path is None:
        return None
    from dualcoll.collectives.demand_file import read_demand

    return read_demand(path)


def _alternatives(made: Plan, asked: dict[str, Any], limits: tuple[str, float]) -> list[Alternative]:
    """What a library's usual choice would do, and sends without relaying, where that is quick to say."""
    from dualcoll._api import plan as make_plan
    from dualcoll._api import usual_choice
    from dualcoll.collectives.workload import Pattern
    from dualcoll.plans.model import Alternative
    from dualcoll.progress import Outcome, Stop
    from dualcoll.units import format_bandwidth, format_time, parse_fraction

    if made.outcome is Outcome.INTERRUPTED:
        return []
    found = []
    if len(made.participants) <= MANY_RANKS:
        usual = usual_choice(made)
        if usual is not None:
            text = f"the usual library choice, {usual.method}, simulated: {format_time(usual.seconds)}"
            found.append(Alternative(usual.size / usual.seconds, text))
    demands, left = made.workload.demands(), limits[1] - made.seconds
    if left > 0 and made.relay and demands[0].pattern is Pattern.SEND and len(demands) <= MANY_SENDS:
        stop = Stop(gap=parse_fraction(limits[0]), seconds=left)
        try:
            direct = make_plan(made.topology, made.workload, stop=stop, **{**asked, "relay": False, "pareto": False})
            text = f"without relaying (--no-relay), of {format_bandwidth(direct.bound)} that are possible so"
            found.append(Alternative(direct.value, text))
        except InputError:
            found.append(Alternative(0.0, "without relaying (--no-relay): some ranks cannot reach each other directly"))
    return found


def _sharing_wishes(sharing: str | None, copies: int | None, accuracy: str | None) -> float | None:
    """The accuracy as a number.

    Raises:
        InputError: sharing that is not known, copies or accuracy without it, both, or no accuracy at all.
    """
    if sharing not in (None, "max-min"):
        raise InputError(f"{sharing!r} is not known", where="--sharing", hint="use max-min")
    for flag, value in (("--copies", copies), ("--accuracy", accuracy)):
        if value is not None and sharing is None:
            raise InputError("it says how trees share without rate control", where=flag, hint="add --sharing max-min")
    if accuracy is None:
        return None
    if copies is not None:
        raise InputError("the number of copies follows from it", where="--accuracy", hint="leave out --copies")
    from dualcoll.units import parse_fraction

    try:
        tolerance = parse_fraction(accuracy)
    except InputError as error:
        raise error.within("--accuracy") from None
    if tolerance == 0:
        raise InputError(
            "no number of copies is sure to be exact", where="--accuracy", hint="10% keeps 1/1.1 of each rate"
        )
    return tolerance


def _solve(
    topology: str,
    collective: str | None,
    mix: Path | None,
    carried: dict[str, Any],
    limits: tuple[str, float],
    imports: tuple[str | None, str | None, str | None, str | None, str],
    asked: dict[str, Any],
) -> Plan:
    from dualcoll._api import plan as make_plan
    from dualcoll.collectives.catalogue import canonical_name
    from dualcoll.progress import Meter, Stop
    from dualcoll.units import parse_fraction, parse_size

    stop = Stop(gap=parse_fraction(limits[0]), seconds=limits[1])
    if collective is not None:
        canonical_name(collective)  # before a large fabric is read
    if carried["size"] is not None:
        parse_size(carried["size"])
    fabric = load(topology, *imports)
    work = workload_of(fabric, collective, mix, carried)
    with status_line() as line:
        meter = Meter(stop, on_line(line))
        with interruptible(meter):
            return make_plan(fabric, work, meter=meter, **asked)


@contextmanager
def interruptible(meter: Meter) -> Iterator[None]:
    """The first Ctrl-C ends the search after its current step; the second ends the program."""

    def handle(*_: object) -> None:
        if meter.interrupted:
            raise KeyboardInterrupt
        meter.interrupt()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
