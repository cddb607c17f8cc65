"""What the verbs that search have in common: their options, and a search that Ctrl-C ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualcoll.cli.options import load
from dualcoll.cli.output import on_line, status_line
from dualcoll.cli.workload import workload_of

if TYPE_CHECKING:
    from dualcoll.collectives.demand_matrix import DemandMatrix
    from dualcoll.plans.model import Plan
    from dualcoll.progress import Meter, Stop

__all__ = ["Forward", "GapText", "Method", "SecondsText", "Seed", "demand_of", "interruptible", "searched", "stop_of"]

GapText = Annotated[str, typer.Option("--gap", help="Stop once proved this close to the bound: 1% or 0.01.")]
SecondsText = Annotated[float, typer.Option("--seconds", help="Stop after this long with the best so far.")]
Forward = Annotated[str, typer.Option("--forward", help="switches, or all: every GPU and host forwards for others.")]
Method = Annotated[
    str, typer.Option("--method", help="auto (column generation), garg-konemann, composed or time-expanded.")
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, help="Breaks ties between equally good trees; seeds the hash of ecmp.")
]


def demand_of(path: Path | None) -> DemandMatrix | None:
    """The demand in a file, if one is named."""
    if path is None:
        return None
    from dualcoll.collectives.demand_file import read_demand

    return read_demand(path)


def stop_of(gap: str, seconds: float) -> Stop:
    """When the search is to end, as the options say."""
    from dualcoll.progress import Stop
    from dualcoll.units import parse_fraction

    return Stop(gap=parse_fraction(gap), seconds=seconds)


def searched(
    topology: str,
    collective: str | None,
    mix: Path | None,
    carried: dict[str, Any],
    limits: tuple[str, float],
    imports: tuple[str | None, str | None, str | None, str | None, str],
    asked: dict[str, Any],
) -> Plan:
    """The plan of what the arguments ask for.

    Args:
        topology, collective, mix: as given. carried: the other options of the workload, see :func:`workload_of`.
        limits: gap and seconds. imports: what the user says of the fabric. asked: the rest, as for :func:`dualcoll.plan`.
    """
    from dualcoll._api import plan as make_plan
    from dualcoll.collectives.catalogue import canonical_name
    from dualcoll.progress import Meter
    from dualcoll.units import parse_size

    stop = stop_of(*limits)
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
