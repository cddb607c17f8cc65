"""``dualcoll convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualcoll.cli.options import Cpu, Gpu, Nic, Pcie, RatesName, TopologySpec, load, writable
from dualcoll.cli.output import say
from dualcoll.errors import InputError

__all__ = ["convert"]


def convert(
    source: TopologySpec,
    target: Annotated[Path, typer.Argument(metavar="OUT", help="File to write: .yaml or .json.", show_default=False)],
    size: Annotated[
        str | None, typer.Option("--size", help="Of a plan's schedule: message, if not the plan's.")
    ] = None,
    chunks: Annotated[str, typer.Option("--chunks", help="Of a plan's schedule: pieces, or auto.")] = "auto",
    normal_form: Annotated[
        bool, typer.Option("--normal-form", help="Bring an AllReduce given as rated flows into trees: a plan.")
    ] = False,
    forward: Annotated[
        str, typer.Option("--forward", help="With --normal-form: the policy of the flows' routes.")
    ] = "switches",
    gpu: Gpu = None,
    nic: Nic = None,
    pcie: Pcie = None,
    cpu: Cpu = None,
    rates: RatesName = "nominal",
) -> None:
    """Write any topology as a native file, every number with its source; a plan as a schedule; rated flows as a plan."""
    writable(target, "OUT", source)
    from dualcoll.cli.documents import kind_of, schedule_from

    kind = kind_of(source)
    if normal_form:
        if kind != "flows":
            raise InputError("it is no file of rated flows", where=source, hint="see docs/normal-form.md")
        _normal_form(source, target, forward)
    elif kind == "flows":
        raise InputError("rated flows convert to their normal form only", where=source, hint="add --normal-form")
    elif kind == "plan":
        from dualcoll.schedules.file import write_schedule

        write_schedule(schedule_from(Path(source), size, chunks, None), target)
    elif kind == "schedule":
        raise InputError("a schedule converts to nothing yet", where=source, hint="give a plan or a topology")
    else:
        from dualcoll.topology.file import write_topology

        write_topology(load(source, gpu, nic, pcie, cpu, rates), target)
    say(f"saved {target}")


def _normal_form(source: str, target: Path, forward: str) -> None:
    from dualcoll._api.normalising import normal_plan
    from dualcoll.plans.file import write_plan
    from dualcoll.plans.flow_file import read_flows
    from dualcoll.plans.normal_form import normal_form_text

    form, made = normal_plan(read_flows(source), forward=forward)
    write_plan(made, target)
    for line in normal_form_text(form):
        typer.echo(line)
