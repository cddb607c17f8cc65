"""What kind of document a file is, and schedules out of plans and schedule files alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from dualcoll.errors import InputError
from dualcoll.files import read_bytes

if TYPE_CHECKING:
    from dualcoll.schedules.ir import Schedule
    from dualcoll.simulation import Options

__all__ = ["AUTO", "kind_of", "schedule_from"]

AUTO = "auto"
MAX_BYTES = 2**30


def kind_of(path: str | Path) -> str | None:
    """``plan``, ``schedule``, ``flows``, ``topology`` or ``cluster`` of one of our JSON files; None for anything else."""
    if not Path(path).is_file():
        return None
    data = read_bytes(path, MAX_BYTES)
    if not data.lstrip().startswith(b"{"):
        return None
    try:
        name = json.loads(data).get("format")
    except (ValueError, RecursionError):
        return None
    if not isinstance(name, str) or not name.startswith("dualcoll."):
        return None
    return name.removeprefix("dualcoll.").partition("/")[0]


def schedule_from(path: Path, size: str | None, chunks: str, options: Options | None) -> Schedule:
    """The schedule in a file, or a plan's.

    Raises:
        InputError: it is neither, or a size or number of chunks is asked of a schedule, which has its own.
    """
    kind = kind_of(path)
    if kind == "plan":
        from dualcoll._api import schedule
        from dualcoll.plans.file import read_plan

        return schedule(read_plan(path), size=size, chunks=chunks, options=options)
    if kind == "schedule":
        if size is not None:
            raise InputError("a schedule's chunks have their sizes", where="--size", hint="give the plan instead")
        if chunks != AUTO:
            raise InputError("a schedule has its chunks", where="--chunks", hint="give the plan instead")
        from dualcoll.schedules.file import read_schedule

        return read_schedule(path)
    if not path.exists():
        raise InputError("the file does not exist", where=str(path))
    raise InputError("it is neither a plan nor a schedule", where=str(path), hint="make one with dualcoll plan -o")
