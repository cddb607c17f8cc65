"""What kind of document a file is, and schedules out of everything that stands for one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from dualcoll.errors import InputError
from dualcoll.files import read_bytes

if TYPE_CHECKING:
    from dualcoll.schedules.ir import Schedule
    from dualcoll.simulation import Options
    from dualcoll.topology.model import Topology

__all__ = ["AUTO", "SIZED", "kind_of", "schedule_from"]

AUTO = "auto"
MAX_BYTES = 2**30
SIZED = ("plan", "msccl", "mscclpp")  # kinds whose message has any size
DEFAULT_SIZE = 2**20  # of programs, rounded up to what they divide


def kind_of(path: str | Path) -> str | None:
    """``plan``, ``schedule``, ``epochs``, ``flows``, ``topology`` or ``cluster`` of one of our JSON files; ``msccl``,
    ``mscclpp``, ``teccl-input``, ``teccl-schedule``, ``taccl`` or ``sccl`` of others' files; None for anything else.
    """
    if not Path(path).is_file():
        return None
    data = read_bytes(path, MAX_BYTES)
    if data.lstrip().startswith(b"<"):
        from dualcoll.lowering.msccl.read import is_msccl

        return "msccl" if is_msccl(data) else None
    if not data.lstrip().startswith(b"{"):
        return None
    try:
        name = json.loads(data).get("format")
    except (ValueError, RecursionError):
        return None
    if isinstance(name, str) and name.startswith("dualcoll."):
        return name.removeprefix("dualcoll.").partition("/")[0]
    from dualcoll.lowering.mscclpp import is_mscclpp
    from dualcoll.time_expanded.planner_files import kind_of as planner_kind

    return "mscclpp" if is_mscclpp(data) else planner_kind(data)


def schedule_from(
    path: Path, size: str | None, chunks: str, options: Options | None, topology: Topology | None = None
) -> Schedule:
    """The schedule that a file is, or stands for.

    Args:
        path: a plan, a schedule, an epoch file, a program for MSCCL or MSCCL++, or a result of another planner.
        size, chunks: as given; ``chunks`` of plans alone. options: of the simulations that choose a plan's chunks.
        topology: the fabric of a program, which names none; its ranks are the program's, in order.

    Raises:
        InputError: it is none of these, or a size, number of chunks or fabric is given to one that has its own.
    """
    kind = kind_of(path)
    if chunks != AUTO and kind != "plan":
        raise InputError("it has its chunks", where="--chunks", hint="give the plan instead")
    if size is not None and kind not in SIZED and kind is not None:
        raise InputError("its chunks have their sizes", where="--size", hint="give the plan instead")
    if topology is not None and kind not in ("msccl", "mscclpp", "sccl"):
        raise InputError("it stands on a fabric of its own", where="--topology")
    if kind == "plan":
        from dualcoll._api import schedule
        from dualcoll.plans.file import read_plan

        return schedule(read_plan(path), size=size, chunks=chunks, options=options)
    if kind == "schedule":
        from dualcoll.schedules.file import read_schedule

        return read_schedule(path)
    if kind == "epochs":
        from dualcoll.time_expanded.file import read_epochs
        from dualcoll.time_expanded.to_schedule import to_schedule

        return to_schedule(read_epochs(path))
    if kind in ("msccl", "mscclpp"):
        return _program(path, kind, size, topology)
    if kind in ("sccl", "teccl-schedule"):
        return _of_planner(path, kind, topology)
    if not path.exists():
        raise InputError("the file does not exist", where=str(path))
    hint = "make one with dualcoll plan -o"
    raise InputError("it is no plan, schedule or program", where=str(path), hint=hint)


def _program(path: Path, kind: str, size: str | None, topology: Topology | None) -> Schedule:
    """The sends of a program, on a fabric if one is given, and on the routes of the file beside it if there is one."""
    from dualcoll.schedules.routed import routed
    from dualcoll.units import parse_size

    bytes_ = None if size is None else parse_size(size)
    if kind == "msccl":
        from dualcoll.lowering.msccl import read, to_schedule
        from dualcoll.lowering.msccl.side_file import read_side_file, side_path, with_side_file

        program = read.read_msccl(path)
        made = to_schedule.to_schedule(program, _rounded(bytes_, program.nchunksperloop))
        if topology is not None and side_path(path).exists():
            return with_side_file(made, read_side_file(side_path(path)), topology)
    else:
        from dualcoll.lowering import mscclpp

        plan = mscclpp.read_plan(str(path))
        chunks = max(max(gpu.input_chunks, gpu.output_chunks) for gpu in plan.gpus)
        made = mscclpp.to_schedule(plan, _rounded(bytes_, plan.alignment * max(1, chunks)))
    return made if topology is None else routed(made, topology)


def _rounded(size: int | None, unit: int) -> int:
    return -(-DEFAULT_SIZE // unit) * unit if size is None else size


def _of_planner(path: Path, kind: str, topology: Topology | None) -> Schedule:
    from dualcoll.time_expanded import planner_files

    if kind == "sccl":
        from dualcoll.schedules.routed import routed

        made = planner_files.read_sccl(path)
        return made if topology is None else routed(made, topology)
    from dualcoll.time_expanded.to_schedule import to_schedule

    return to_schedule(planner_files.read_teccl_schedule(path).solution)
