"""``dualcoll plan`` and ``dualcoll bound``."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualcoll.cli.options import Cpu, Gpu, Html, Json, Nic, Out, Pcie, RatesName, TopologySpec, load, writable
from dualcoll.cli.output import progress_line, say, show_json, show_lines

if TYPE_CHECKING:
    from dualcoll.plans.model import Plan
    from dualcoll.progress import Meter

__all__ = ["bound", "plan"]

Collective = Annotated[
    str, typer.Argument(metavar="COLLECTIVE", help="allreduce, in any spelling.", show_default=False)
]
Size = Annotated[
    str, typer.Option("--size", help="Message: K, M, G are binary as in nccl-tests; KiB, MB say themselves.")
]
GapText = Annotated[str, typer.Option("--gap", help="Stop once proved this close to the bound: 1% or 0.01.")]
SecondsText = Annotated[float, typer.Option("--seconds", help="Stop after this long with the best so far.")]
RanksText = Annotated[
    str | None, typer.Option("--ranks", metavar="LIST", help="Who takes part: 0-7,12 or names. [default: all]")
]
Forward = Annotated[str, typer.Option("--forward", help="switches, or all: every GPU and host forwards for others.")]
Method = Annotated[str, typer.Option("--method", help="auto (column generation) or garg-konemann.")]
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
Seed = Annotated[int, typer.Option("--seed", min=0, help="Breaks ties between equally good trees.")]


def plan(
    topology: TopologySpec,
    collective: Collective,
    size: Size = "1G",
    gap: GapText = "1%",
    seconds: SecondsText = 30.0,
    ranks: RanksText = None,
    forward: Forward = "switches",
    method: Method = "auto",
    seed: Seed = 0,
    max_trees: MaxTrees = None,
    max_depth: MaxDepth = None,
    previous: From = None,
    pareto: Pareto = False,
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
    writable(output, "--output", topology, previous)
    writable(html, "--html", topology, previous, output)
    from dualcoll.reporting.tables import plan_record, plan_text

    start = None
    if previous is not None:
        from dualcoll.plans.file import read_plan

        start = read_plan(previous)
    wishes = {"max_trees": max_trees, "max_depth": max_depth, "start": start, "pareto": pareto}
    asked = {"size": size, "ranks": ranks, "forward": forward, "method": method, "seed": seed, **wishes}
    made = _solve(topology, collective, gap, seconds, (gpu, nic, pcie, cpu, rates), asked)
    if output is not None:
        from dualcoll.plans.file import write_plan

        write_plan(made, output)
    if html is not None:
        from dualcoll.reporting.html import report

        report(made, html)
    if as_json:
        show_json(plan_record(made))
    else:
        show_lines(plan_text(made))
    for path in filter(None, (output, html)):
        say(f"saved {path}")


def bound(
    topology: TopologySpec,
    collective: Collective,
    size: Size = "1G",
    gap: GapText = "1%",
    seconds: SecondsText = 30.0,
    ranks: RanksText = None,
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

    asked = {"size": size, "ranks": ranks, "forward": forward, "method": method, "seed": seed}
    made = _solve(topology, collective, gap, seconds, (gpu, nic, pcie, cpu, rates), asked)
    if as_json:
        show_json(plan_record(made))
    else:
        show_lines(plan_text(made, bound_only=True))


def _solve(
    topology: str,
    collective: str,
    gap: str,
    seconds: float,
    imports: tuple[str | None, str | None, str | None, str | None, str],
    asked: dict[str, Any],
) -> Plan:
    from dualcoll._api import plan as make_plan
    from dualcoll.collectives.catalogue import canonical_name
    from dualcoll.progress import Meter, Stop
    from dualcoll.units import parse_fraction, parse_size

    stop = Stop(gap=parse_fraction(gap), seconds=seconds)
    canonical_name(collective)  # before a large fabric is read
    parse_size(asked["size"])
    fabric = load(topology, *imports)
    with progress_line() as show:
        meter = Meter(stop, show)
        with _interruptible(meter):
            return make_plan(fabric, collective, meter=meter, **asked)


@contextmanager
def _interruptible(meter: Meter) -> Iterator[None]:
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
