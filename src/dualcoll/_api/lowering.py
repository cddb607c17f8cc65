"""Plans and schedules as files that runtimes execute: one table of formats, and nothing that its own reader does not accept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from dualcoll.errors import CheckFailed, InputError
from dualcoll.files import atomic_write
from dualcoll.lowering import mscclpp
from dualcoll.lowering.chunk_counts import MAX_CHUNKS, equal_chunks
from dualcoll.lowering.msccl.from_plan import plan_to_msccl
from dualcoll.lowering.msccl.from_schedule import to_msccl
from dualcoll.lowering.msccl.read import parse_msccl
from dualcoll.lowering.msccl.side_file import side_file_to_json, side_path
from dualcoll.lowering.msccl.validate import validate
from dualcoll.lowering.msccl.write import msccl_text
from dualcoll.lowering.shared_channels import share_channels
from dualcoll.plans.model import Plan
from dualcoll.schedules.ir import Schedule

__all__ = ["FORMATS", "Format", "LowerOptions", "Lowered", "lower"]


@dataclass(frozen=True, slots=True)
class LowerOptions:
    """What one may ask of a format; None is its own choice.

    Attributes:
        target: executor of MSCCL XML, ``"msccl"`` or ``"rccl"``. proto: ``"Simple"``, ``"LL"`` or ``"LL128"``.
        inplace: whether input and output are one buffer. min_bytes, max_bytes: message sizes that the file is for.
        chunks: most equal chunks that a plan's message is cut into. channels: most channels, which trees then share.
        size: bytes of the message that a plan is cut for. name: of the algorithm.
    """

    target: str | None = None
    proto: str | None = None
    inplace: bool | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None
    chunks: int | None = None
    channels: int | None = None
    size: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Lowered:
    """A file's content.

    Attributes:
        format: its name in :data:`FORMATS`. text: the file. schedule: the sends that it stands for, if it has some.
        lines: what is to be known of it, labelled: the rate that it keeps, the verdict of the validator, notes.
        beside: content of files that go with it, by their place beside the file.
    """

    format: str
    text: str
    schedule: Schedule | None = None
    lines: tuple[tuple[str, str], ...] = ()
    beside: tuple[tuple[Callable[[Path], Path], str], ...] = field(default=(), repr=False)

    def write(self, path: str | Path) -> tuple[Path, ...]:
        """Write the file, and those beside it, each whole or not at all.

        Returns:
            Their paths, the file itself first.

        Raises:
            InputError: one cannot be written; then the file itself is not.
        """
        main = Path(path)
        others = tuple((place(main), text) for place, text in self.beside)
        for other, text in others:
            atomic_write(other, text)
        atomic_write(main, self.text)
        return main, *(other for other, _ in others)


@dataclass(frozen=True, slots=True)
class Format:
    """A format that plans and schedules are lowered to.

    Attributes:
        title: for people. options: fields of :class:`LowerOptions` that say something of it. make: the writer.
    """

    title: str
    options: tuple[str, ...]
    make: Callable[[Plan | Schedule, LowerOptions], Lowered]


def lower(made: Plan | Schedule, *, to: str, options: LowerOptions | None = None) -> Lowered:
    """Lower a plan or a schedule; what comes out has been read again and validated.

    Args:
        made: what to lower; its rank r becomes GPU r. Plans are cut into equal chunks first.
        to: a name in :data:`FORMATS`. options: what the format is to be like.

    Raises:
        InputError: an unknown format, an option that says nothing of it, or content that it cannot say.
        CheckFailed: a limit of the executor is exceeded, with the value, where, and the way out.
    """
    if to not in FORMATS:
        raise InputError(f"format {to!r} is not known", where="--to", hint=f"use one of {', '.join(FORMATS)}")
    asked = options or LowerOptions()
    of_plans = ("chunks", "size")
    for name in LowerOptions.__dataclass_fields__:
        if getattr(asked, name) is None:
            continue
        flag = "--" + ("in-place" if name == "inplace" else name.replace("_", "-"))
        if name not in FORMATS[to].options:
            raise InputError(f"it says nothing of {FORMATS[to].title}", where=flag)
        if name in of_plans and isinstance(made, Schedule):
            raise InputError("a schedule has its chunks and their sizes", where=flag, hint="give a plan instead")
    return FORMATS[to].make(made, asked)


def _msccl(made: Plan | Schedule, asked: LowerOptions) -> Lowered:
    target = asked.target or "msccl"
    low, high = asked.min_bytes or 0, asked.max_bytes or 0
    if not 0 <= low <= (high or low):
        raise InputError(
            f"{low} to {high} bytes is no range of sizes", where="--min-bytes", hint="write the smaller first"
        )
    name, proto = asked.name or "", asked.proto or "Simple"
    lines: list[tuple[str, str]] = []
    if isinstance(made, Plan) and asked.channels is None:
        done = plan_to_msccl(
            made,
            target=target,
            max_chunks=asked.chunks or MAX_CHUNKS,
            size=asked.size,
            name=name,
            proto=proto,
            inplace=asked.inplace,
        )
        schedule, lowered = done.schedule, done.lowered
        lines.append(("rate", done.counts.text))
        if done.channels < sum(count > 0 for count in done.counts.of_tree):
            lines.append(
                ("channels", f"trees share {done.channels}; they take turns where they run between the same ranks")
            )
    else:
        schedule, rate = _cut(made, asked)
        lines += rate
        lowered = to_msccl(schedule, target=target, name=name, proto=proto, inplace=asked.inplace)
    text = msccl_text(replace(lowered.program, min_bytes=low, max_bytes=high))
    lines.append(("checked", validate(parse_msccl(text.encode(), "the program"), target=target).text))
    lines += [("note" if i == 0 else "", note) for i, note in enumerate(lowered.notes)]
    side = json.dumps(side_file_to_json(lowered.side)) + "\n"
    beside = ((side_path, side),) if lowered.side.ranks else ()
    return Lowered("msccl-xml", text, schedule, tuple(lines), beside)


def _mscclpp(made: Plan | Schedule, asked: LowerOptions) -> Lowered:
    schedule, lines = _cut(made, asked)
    text = mscclpp.plan_to_json(mscclpp.from_schedule(schedule, name=asked.name or "")) + "\n"
    plan = mscclpp.plan_from_bytes(text.encode(), "the plan")
    try:
        report = mscclpp.inspect(plan)
    except InputError as large:
        lines.append(("not checked", large.problem))
    else:
        if report.faults:
            raise CheckFailed(report.faults)
        lines.append(("checked", report.facts))
        lines += [("note" if i == 0 else "", note) for i, note in enumerate(report.warnings)]
    return Lowered("mscclpp-json", text, schedule, tuple(lines))


def _cut(made: Plan | Schedule, asked: LowerOptions) -> tuple[Schedule, list[tuple[str, str]]]:
    """The sends, on as many channels as asked for, and what cutting a plan costs."""
    lines: list[tuple[str, str]] = []
    if isinstance(made, Plan):
        made, counts = equal_chunks(made, asked.chunks or MAX_CHUNKS, size=asked.size)
        lines.append(("rate", counts.text))
    return (made if asked.channels is None else share_channels(made, asked.channels)), lines


FORMATS = {
    "msccl-xml": Format(
        "MSCCL XML",
        ("target", "proto", "inplace", "min_bytes", "max_bytes", "chunks", "channels", "size", "name"),
        _msccl,
    ),
    "mscclpp-json": Format("an MSCCL++ plan", ("chunks", "channels", "size", "name"), _mscclpp),
}
