"""``dualcoll convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualcoll.cli.options import Cpu, Gpu, Nic, Pcie, RatesName, TopologySpec, load, writable
from dualcoll.cli.output import say

__all__ = ["convert"]


def convert(
    source: TopologySpec,
    target: Annotated[Path, typer.Argument(metavar="OUT", help="File to write: .yaml or .json.", show_default=False)],
    gpu: Gpu = None,
    nic: Nic = None,
    pcie: Pcie = None,
    cpu: Cpu = None,
    rates: RatesName = "nominal",
) -> None:
    """Write any topology that can be read as a native file, every number with its source."""
    from dualcoll.topology.file import write_topology

    writable(target, "OUT", source)
    write_topology(load(source, gpu, nic, pcie, cpu, rates), target)
    say(f"saved {target}")
