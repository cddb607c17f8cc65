"""``dualcoll convert``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualcoll.cli.options import Cpu, Gpu, Nic, Pcie, RatesName, TopologySpec, load, writable
from dualcoll.cli.output import say, show_lines
from dualcoll.errors import InputError

if TYPE_CHECKING:
    from dualcoll._api.lowering import LowerOptions

__all__ = ["convert"]

AUTO = "auto"
SCHEDULES = (
    "plan",
    "schedule",
    "epochs",
    "msccl",
    "mscclpp",
    "sccl",
    "teccl-schedule",
)  # kinds that are, or become, sends


def convert(
    source: TopologySpec,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write.", show_default=False)],
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="FORMAT", help="Of a plan or schedule: msccl-xml (or OUT ends in .xml) or mscclpp-json."
        ),
    ] = None,
    size: Annotated[
        str | None, typer.Option("--size", help="Of a plan's schedule: message, if not the plan's.")
    ] = None,
    chunks: Annotated[
        str, typer.Option("--chunks", help="Of a plan's schedule: pieces, or auto; of a program: most equal chunks.")
    ] = AUTO,
    channels: Annotated[
        int | None, typer.Option("--channels", min=1, help="With --to: most channels; trees share them.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", help="Of MSCCL XML: msccl or rccl, whose limits are kept. [default: msccl]"),
    ] = None,
    proto: Annotated[
        str | None, typer.Option("--proto", help="Of MSCCL XML: Simple, LL or LL128. [default: Simple]")
    ] = None,
    inplace: Annotated[
        bool | None,
        typer.Option(
            "--in-place/--out-of-place", help="Of MSCCL XML: one buffer, or two. [default: in place if it can be]"
        ),
    ] = None,
    min_bytes: Annotated[
        str | None, typer.Option("--min-bytes", metavar="SIZE", help="Of MSCCL XML: smallest message that it is for.")
    ] = None,
    max_bytes: Annotated[
        str | None, typer.Option("--max-bytes", metavar="SIZE", help="Of MSCCL XML: largest message that it is for.")
    ] = None,
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
    """Write a topology as a native file, a plan as a schedule, either as what runtimes execute, rated flows as a plan."""
    writable(out, "OUT", source)
    from dualcoll.cli.documents import kind_of, schedule_from

    kind = kind_of(source)
    if kind in ("plan", "schedule") and to is None and out.suffix.lower() == ".xml":
        to = "msccl-xml"
    asked = {
        "--channels": channels,
        "--target": target,
        "--proto": proto,
        "--in-place": inplace,
        "--min-bytes": min_bytes,
        "--max-bytes": max_bytes,
    }
    useless = next((flag for flag, value in asked.items() if value is not None), None)
    if to is not None:
        if kind not in SCHEDULES:
            raise InputError("it is no plan or schedule", where=source, hint="make one with dualcoll plan -o")
        options = _options(size, chunks, channels, target, proto, inplace, min_bytes, max_bytes)
        return _lowered(Path(source), kind, out, to, options)
    if useless is not None:
        raise InputError("it is of files that runtimes execute", where=useless, hint="add --to")
    if normal_form:
        if kind != "flows":
            raise InputError("it is no file of rated flows", where=source, hint="see docs/normal-form.md")
        _normal_form(source, out, forward)
    elif kind == "flows":
        raise InputError("rated flows convert to their normal form only", where=source, hint="add --normal-form")
    elif kind == "schedule":
        raise InputError("it is a schedule already", where=source, hint="say what it is to become: --to msccl-xml")
    elif kind in SCHEDULES:
        from dualcoll.schedules.file import write_schedule

        write_schedule(schedule_from(Path(source), size, chunks, None), out)
    else:
        from dualcoll.topology.file import write_topology

        write_topology(load(source, gpu, nic, pcie, cpu, rates), out)
    say(f"saved {out}")


def _options(
    size: str | None,
    chunks: str,
    channels: int | None,
    target: str | None,
    proto: str | None,
    inplace: bool | None,
    min_bytes: str | None,
    max_bytes: str | None,
) -> LowerOptions:
    from dualcoll._api.lowering import LowerOptions
    from dualcoll.units import parse_size

    if chunks != AUTO and not (chunks.isdecimal() and chunks.isascii() and int(chunks) > 0):
        raise InputError(f"{chunks[:60]!r} is not a number of chunks", where="--chunks", hint="use 1 or more")

    def bytes_(text: str | None, flag: str) -> int | None:
        try:
            return None if text is None else parse_size(text)
        except InputError as error:
            raise error.within(flag) from None

    return LowerOptions(
        target=target,
        proto=proto,
        inplace=inplace,
        min_bytes=bytes_(min_bytes, "--min-bytes"),
        max_bytes=bytes_(max_bytes, "--max-bytes"),
        chunks=None if chunks == AUTO else int(chunks),
        channels=channels,
        size=bytes_(size, "--size"),
    )


def _lowered(source: Path, kind: str, out: Path, to: str, options: LowerOptions) -> None:
    from dualcoll._api.lowering import lower
    from dualcoll.cli.documents import schedule_from
    from dualcoll.lowering.msccl.side_file import side_path
    from dualcoll.plans.file import read_plan

    writable(side_path(out), "OUT", source)
    made = read_plan(source) if kind == "plan" else schedule_from(source, None, AUTO, None)
    done = lower(made, to=to, options=options)
    saved = done.write(out)
    show_lines(list(done.lines))
    for path in saved:
        say(f"saved {path}")


def _normal_form(source: str, out: Path, forward: str) -> None:
    from dualcoll._api.normalising import normal_plan
    from dualcoll.plans.file import write_plan
    from dualcoll.plans.flow_file import read_flows
    from dualcoll.plans.normal_form import normal_form_text

    form, made = normal_plan(read_flows(source), forward=forward)
    write_plan(made, out)
    for line in normal_form_text(form):
        typer.echo(line)
