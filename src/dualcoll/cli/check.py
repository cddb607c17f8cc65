"""``dualcoll check``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from dualcoll.cli.options import Cpu, Gpu, Json, Nic, Pcie, RatesName, load
from dualcoll.cli.output import show_json, show_lines

__all__ = ["check"]

ELEMENTS = 64  # of every chunk whose movement is tried; a chunk's bytes need not be whole elements
Told = tuple[dict[str, Any], list[tuple[str, str]]]  # the record for machines, and the lines for people


def check(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="By whomever: a plan, a schedule, an epoch file, MSCCL XML, an MSCCL++ plan, or a result of TE-CCL or SCCL.",
            show_default=False,
        ),
    ],
    topology: Annotated[
        str | None,
        typer.Option(
            "--topology",
            metavar="OTHER",
            help="Hold a plan against this fabric instead of its own. Of a result of TE-CCL: the input that it was made from.",
        ),
    ] = None,
    depth: Annotated[
        int, typer.Option("--depth", min=1, metavar="D", help="Of a schedule or MSCCL XML: places of every channel.")
    ] = 2,
    data: Annotated[
        bool, typer.Option("--data", help="Of a schedule: also move data and compare the results.")
    ] = False,
    target: Annotated[
        str | None, typer.Option("--target", help="Of MSCCL XML: also the limits of msccl or rccl.")
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", help="Of an epoch file: for the best possible schedules beside it.")
    ] = 10.0,
    gpu: Gpu = None,
    nic: Nic = None,
    pcie: Pcie = None,
    cpu: Cpu = None,
    rates: RatesName = "nominal",
    as_json: Json = False,
) -> None:
    """Prove a plan's claims in exact arithmetic, or that a schedule keeps its contract; else say why not (exit code 1)."""
    from dualcoll.cli.documents import kind_of
    from dualcoll.errors import CheckFailed, InputError

    if str(file) == "-":
        raise InputError("a plan is not read from standard input", where="FILE", hint="name a file")
    kind = kind_of(file)
    _refuse(kind, {"--target": (target, ("msccl",)), "--data": (data, ("schedule", "epochs", "sccl"))})
    other = None if topology is None or kind == "teccl-schedule" else load(topology, gpu, nic, pcie, cpu, rates)
    looks: dict[str | None, Callable[[], Told]] = {
        "schedule": lambda: _schedule(file, depth, data=data),
        "sccl": lambda: _schedule(file, depth, data=data),
        "epochs": lambda: _epochs(file, seconds, data=data),
        "msccl": lambda: _msccl(file, depth, target),
        "mscclpp": lambda: _mscclpp(file),
        "teccl-schedule": lambda: _teccl(file, topology),
    }
    try:
        record, lines = looks.get(kind, lambda: _plan(file, kind, other))()
    except CheckFailed as failed:
        if not as_json:
            raise
        show_json({"supported": False, "findings": list(failed.findings)})
        raise typer.Exit(1) from None
    if as_json:
        show_json(record)
    else:
        show_lines(lines)
    if record.get("supported") is False:
        raise typer.Exit(1)


def _refuse(kind: str | None, given: dict[str, tuple[object, tuple[str, ...]]]) -> None:
    from dualcoll.errors import InputError

    for flag, (value, kinds) in given.items():
        if value and kind not in kinds:
            raise InputError("it says nothing of this file", where=flag)


def _plan(file: Path, kind: str | None, other: Any) -> Told:
    from dualcoll._api import check as prove
    from dualcoll.errors import InputError
    from dualcoll.reporting.tables import proof_record, proof_text

    if kind == "flows":
        hint = "convert --normal-form makes a plan of them"
        raise InputError("rated flows claim nothing", where=str(file), hint=hint)
    if kind in ("teccl-input", "taccl"):
        raise InputError("it claims nothing", where=str(file), hint="plan it: see docs/planner-files.md")
    proof = prove(file, other)
    return proof_record(proof), proof_text(proof)


def _schedule(file: Path, depth: int, *, data: bool) -> Told:
    from dualcoll.cli.documents import AUTO, schedule_from
    from dualcoll.execution.in_process import execute
    from dualcoll.reporting.runs import schedule_record, schedule_text
    from dualcoll.schedules.validate import validate

    drawn = schedule_from(file, None, AUTO, None)
    validate(drawn, depth=depth)
    moved = execute(drawn, elements=ELEMENTS).text if data else ""
    record = {"supported": True, "findings": [], **schedule_record(drawn), **({"data": moved} if data else {})}
    lines = [("supported", "every promise is kept (docs/semantics.md)"), *schedule_text(drawn)]
    return record, [*lines, *([("data", moved)] if data else [])]


def _epochs(file: Path, seconds: float, *, data: bool) -> Told:
    from dualcoll._api.time_expanding import best_possible, replay
    from dualcoll.execution.in_process import execute
    from dualcoll.progress import Seconds
    from dualcoll.reporting.epochs import examination_record, examination_text
    from dualcoll.time_expanded.check import examine_solution
    from dualcoll.time_expanded.file import read_epochs
    from dualcoll.units import format_time

    found = read_epochs(file)
    seen = examine_solution(found)
    best = best_possible(found.task, stop=Seconds(seconds))
    record, lines = examination_record(seen, best), examination_text(seen, best)
    if not seen.violations:
        made, trace = replay(found)
        record["replay_s"] = trace.finish
        lines.append(("replay", f"{format_time(trace.finish)} when everything is sent as soon as it is ready"))
        if data:
            record["data"] = execute(made, elements=ELEMENTS).text
            lines.append(("data", record["data"]))
    return record, lines


def _msccl(file: Path, depth: int, target: str | None) -> Told:
    from dualcoll.lowering.msccl.read import read_msccl
    from dualcoll.lowering.msccl.validate import validate

    verdict = validate(read_msccl(file), depth=depth, target=target)
    lines = [("supported", verdict.text)]
    size = f"{verdict.blocks} thread blocks a GPU, {verdict.steps} steps a block, {verdict.count} chunks a step at most"
    lines.append(("size", size))
    lines += [("note" if i == 0 else "", note) for i, note in enumerate(verdict.notes)]
    return {"supported": True, "findings": [], "verdict": verdict.text, "notes": list(verdict.notes)}, lines


def _mscclpp(file: Path) -> Told:
    from dualcoll.lowering import mscclpp

    report = mscclpp.validate(mscclpp.read_plan(str(file)))
    lines = [("supported", report.facts)]
    lines += [("note" if i == 0 else "", note) for i, note in enumerate(report.warnings)]
    return {"supported": True, "findings": [], "verdict": report.facts, "notes": list(report.warnings)}, lines


def _teccl(file: Path, given: str | None) -> Told:
    """``given``: the input that the result was made from."""
    from dualcoll.cli.documents import kind_of
    from dualcoll.errors import InputError
    from dualcoll.time_expanded import planner_files

    if given is not None and kind_of(given) != "teccl-input":
        hint = "give the input that the result was made from, or nothing"
        raise InputError("it is no input of TE-CCL", where=given, hint=hint)
    asked = None if given is None else planner_files.read_teccl_input(given, published=True)
    verdict = planner_files.check_teccl_schedule(planner_files.read_teccl_schedule(file, asked))
    lines = [("supported", verdict.text), *(("note" if i == 0 else "", note) for i, note in enumerate(verdict.notes))]
    return {"supported": True, "findings": [], "verdict": verdict.text, "notes": list(verdict.notes)}, lines
