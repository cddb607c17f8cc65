"""``dualcoll plan`` and ``dualcoll bound``."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from dualcoll.cli.options import Gpu, Html, Json, Nic, Out, Pcie, RatesName, TopologySpec, load, writable
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
    output: Out = None,
    html: Html = None,
    gpu: Gpu = None,
    nic: Nic = None,
    pcie: Pcie = None,
    rates: RatesName = "nominal",
    as_json: Json = False,
) -> None:
    """Find a plan, prove how good it is, and say what limits it."""
    writable(output, "--output")
    writable(html, "--html")
    from dualcoll.reporting.tables import plan_record, plan_text

    made = _solve(topology, collective, size, gap, seconds, ranks, forward, method, seed, (gpu, nic, pcie, rates))
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
    rates: RatesName = "nominal",
    as_json: Json = False,
) -> None:
    """Say how fast the collective can possibly run, and what limits it."""
    from dualcoll.reporting.tables import plan_record, plan_text

    made = _solve(topology, collective, size, gap, seconds, ranks, forward, method, seed, (gpu, nic, pcie, rates))
    if as_json:
        show_json(plan_record(made))
    else:
        show_lines(plan_text(made, bound_only=True))


def _solve(
    topology: str,
    collective: str,
    size: str,
    gap: str,
    seconds: float,
    ranks: str | None,
    forward: str,
    method: str,
    seed: int,
    imports: tuple[str | None, str | None, str | None, str],
) -> Plan:
    from dualcoll._api import plan as make_plan
    from dualcoll.collectives.catalogue import canonical_name
    from dualcoll.progress import Meter, Stop
    from dualcoll.units import parse_fraction, parse_size

    stop = Stop(gap=parse_fraction(gap), seconds=seconds)
    canonical_name(collective)
    parse_size(size)
    fabric = load(topology, *imports)
    with progress_line() as show:
        meter = Meter(stop, show)
        with _interruptible(meter):
            return make_plan(
                fabric, collective, size=size, ranks=ranks, forward=forward, method=method, seed=seed, meter=meter
            )


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
