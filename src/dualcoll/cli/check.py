"""``dualcoll check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualcoll.cli.options import Cpu, Gpu, Json, Nic, Pcie, RatesName, load
from dualcoll.cli.output import show_json, show_lines

__all__ = ["check"]

ELEMENTS = 64  # of every chunk whose movement is tried; a chunk's bytes need not be whole elements


def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A plan or a schedule, by whomever.", show_default=False)
    ],
    topology: Annotated[
        str | None, typer.Option("--topology", metavar="OTHER", help="Hold it against this fabric instead of its own.")
    ] = None,
    depth: Annotated[
        int, typer.Option("--depth", min=1, metavar="D", help="Of a schedule: places of every channel.")
    ] = 2,
    data: Annotated[
        bool, typer.Option("--data", help="Of a schedule: also move data and compare the results.")
    ] = False,
    gpu: Gpu = None,
    nic: Nic = None,
    pcie: Pcie = None,
    cpu: Cpu = None,
    rates: RatesName = "nominal",
    as_json: Json = False,
) -> None:
    """Prove a plan's claims in exact arithmetic, or that a schedule keeps its contract; else say why not (exit code 1)."""
    from dualcoll._api import check as prove
    from dualcoll.errors import CheckFailed, InputError
    from dualcoll.reporting.tables import proof_record, proof_text

    if str(file) == "-":
        raise InputError("a plan is not read from standard input", where="FILE", hint="name a file")
    from dualcoll.cli.documents import kind_of

    kind = kind_of(file)
    if kind == "schedule":
        _check_schedule(file, depth, data=data, as_json=as_json)
        return
    if kind == "flows":
        raise InputError(
            "rated flows claim nothing", where=str(file), hint="convert --normal-form makes a plan of them"
        )
    other = None if topology is None else load(topology, gpu, nic, pcie, cpu, rates)
    try:
        proof = prove(file, other)
    except CheckFailed as failed:
        if not as_json:
            raise
        show_json({"supported": False, "findings": list(failed.findings)})
        raise typer.Exit(1) from None
    if as_json:
        show_json(proof_record(proof))
    else:
        show_lines(proof_text(proof))


def _check_schedule(file: Path, depth: int, *, data: bool, as_json: bool) -> None:
    from dualcoll.errors import CheckFailed
    from dualcoll.execution.in_process import execute
    from dualcoll.reporting.runs import schedule_record, schedule_text
    from dualcoll.schedules.file import read_schedule
    from dualcoll.schedules.validate import validate

    drawn = read_schedule(file)
    try:
        validate(drawn, depth=depth)
        moved = execute(drawn, elements=ELEMENTS).text if data else ""
    except CheckFailed as failed:
        if not as_json:
            raise
        show_json({"supported": False, "findings": list(failed.findings)})
        raise typer.Exit(1) from None
    if as_json:
        show_json({"supported": True, "findings": [], **schedule_record(drawn), **({"data": moved} if data else {})})
    else:
        lines = [("supported", "every promise is kept (docs/semantics.md)"), *schedule_text(drawn)]
        show_lines([*lines, *([("data", moved)] if data else [])])
