"""Schedule files: one JSON object, described in docs/schedule-file.md."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.files import atomic_write, read_bytes
from dualcoll.schedules.columns import packed, short, unpacked
from dualcoll.schedules.contract_form import MAX_ROWS, ContractForm, contract_of, contract_to_dict, counted
from dualcoll.schedules.ir import NONE, Routes, Schedule
from dualcoll.topology.forms import Form, Text, Whole, filled, one_of
from dualcoll.topology.model import Forwarding
from dualcoll.topology.native import topology_from_dict, topology_to_dict
from dualcoll.topology.source_text import SourceText, loc_text

__all__ = ["FORMAT", "read_schedule", "schedule_from_dict", "schedule_to_dict", "write_schedule"]

FORMAT = "dualcoll.schedule/1"
MAX_BYTES = 2**30  # of a schedule file
MAX_ENTRIES = 2**27  # dependencies, or links of routes

_SENDS = ("src", "dst", "chunk", "into", "op", "channel", "round", "route", "multicast")
_OPTIONAL = ("into", "multicast")

T = TypeVar("T")


class SendsForm(Form):
    """Columns over the sends; ``into`` where a send writes another chunk than it reads, ``multicast`` where switches copy."""

    count: Whole
    src: Any
    dst: Any
    chunk: Any
    into: Any = None
    op: Any
    channel: Any
    round: Any
    route: Any
    multicast: Any = NONE
    dependencies: Any
    depends: Any


class RoutesForm(Form):
    """The table of routes; ``share`` where links carry parts."""

    count: Whole
    hops: Any
    links: Any
    share: Any = None


class FabricForm(Form):
    """Where the ranks stand."""

    topology: Any
    nodes: Any
    forward: Annotated[Forwarding, one_of(Forwarding)] | None
    routes: RoutesForm


class ScheduleForm(Form):
    """A whole file."""

    format: Text
    generator: Text
    name: Text = ""
    contract: ContractForm
    chunk_size: Any
    sends: SendsForm
    fabric: FabricForm | None = None


def write_schedule(schedule: Schedule, path: str | Path) -> None:
    """Write a schedule file, whole or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    atomic_write(path, _text(schedule_to_dict(schedule)) + "\n")


def read_schedule(path: str | Path) -> Schedule:
    """Read a schedule file. Whether it keeps its contract is for :func:`~dualcoll.schedules.validate.validate`.

    Raises:
        InputError: it is no schedule file, or a number in it names what does not exist; with the line or the key.
    """
    where = str(path)
    return schedule_from_dict(SourceText.parse(read_bytes(path, MAX_BYTES), where).data, where)


def schedule_to_dict(schedule: Schedule) -> dict[str, Any]:
    """The schedule as JSON-ready data."""
    data = {"format": FORMAT, "generator": f"dualcoll {version('dualcoll')}"}
    sends: dict[str, Any] = {"count": schedule.sends}
    sends |= {name: packed(getattr(schedule, name)) for name in _SENDS if name not in _OPTIONAL}
    if not np.array_equal(schedule.into, schedule.chunk):
        sends["into"] = packed(schedule.into)
    if np.any(schedule.multicast != NONE):
        sends["multicast"] = packed(schedule.multicast)
    sends |= {"dependencies": packed(np.diff(schedule.depends_ptr)), "depends": packed(schedule.depends)}
    named = {"name": schedule.name} if schedule.name else {}
    whole = (
        data
        | named
        | {"contract": contract_to_dict(schedule.contract), "chunk_size": packed(schedule.chunk_size), "sends": sends}
    )
    return whole if schedule.topology is None else whole | {"fabric": _fabric_to_dict(schedule)}


def schedule_from_dict(data: object, where: str) -> Schedule:
    """Read what :func:`schedule_to_dict` wrote; ``where`` names its origin in messages.

    Raises:
        InputError: the data has not the form of a schedule, with its key.
    """
    if isinstance(data, dict) and "format" in data and data["format"] != FORMAT:
        raise InputError(f"format {str(data['format'])[:60]!r} is not {FORMAT}", where=f"{where}: format")
    form = filled(ScheduleForm, data, lambda loc: ": ".join(filter(None, (where, loc_text(loc)))))
    return _within(where, lambda: _schedule(form))


def _schedule(form: ScheduleForm) -> Schedule:
    contract = _within("contract", lambda: contract_of(form.contract))
    columns = _within("sends", lambda: _sends(form.sends))
    fabric = {} if form.fabric is None else _within("fabric", lambda: _fabric(form.fabric, contract.ranks))
    size = unpacked(form.chunk_size, contract.chunks, "chunk_size")
    return Schedule(contract=contract, chunk_size=size, name=form.name, **columns, **fabric)


def _sends(form: SendsForm) -> dict[str, Any]:
    count = counted(form.count, MAX_ROWS, "count")
    given = {name: getattr(form, name) for name in _SENDS}
    given["into"] = given["chunk"] if given["into"] is None else given["into"]
    columns = {name: unpacked(column, count, name) for name, column in given.items()}
    ptr = _row_ends(unpacked(form.dependencies, count, "dependencies"), "dependencies")
    return columns | {"depends_ptr": ptr, "depends": unpacked(form.depends, int(ptr[-1]), "depends")}


def _fabric(form: FabricForm | None, ranks: int) -> dict[str, Any]:
    assert form is not None
    count = counted(form.routes.count, MAX_ROWS, "routes.count")
    ptr = _row_ends(unpacked(form.routes.hops, count, "routes.hops"), "routes.hops")
    links = short(unpacked(form.routes.links, int(ptr[-1]), "routes.links"), "routes.links")
    share = form.routes.share
    parts = None if share is None else unpacked(share, links.size, "routes.share", floats=True)
    return {
        "topology": topology_from_dict(form.topology),
        "nodes": tuple(unpacked(form.nodes, ranks, "nodes").tolist()),
        "forwarding": form.forward,
        "routes": Routes(ptr, links, parts),
    }


def _fabric_to_dict(schedule: Schedule) -> dict[str, Any]:
    assert schedule.topology is not None
    routes = schedule.routes
    table = {"count": len(routes), "hops": packed(np.diff(routes.ptr)), "links": packed(routes.links)}
    return {
        "topology": topology_to_dict(schedule.topology),
        "nodes": packed(np.array(schedule.nodes)),
        "forward": None if schedule.forwarding is None else str(schedule.forwarding),
        "routes": table | ({} if routes.share is None else {"share": packed(routes.share)}),
    }


def _row_ends(lengths: NDArray[np.int64], where: str) -> NDArray[np.int64]:
    """CSR row ends from the rows' lengths."""
    if np.any((lengths < 0) | (lengths > MAX_ENTRIES)) or int(lengths.sum()) > MAX_ENTRIES:
        raise InputError(f"the numbers are not lengths that sum to at most {MAX_ENTRIES}", where=where)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _within(where: str, make: Callable[[], T]) -> T:
    """Call, with ``where`` put before the place of any error."""
    try:
        return make()
    except InputError as error:
        raise error.within(where) from None


def _text(data: dict[str, Any]) -> str:
    """JSON with a line for each key of the two upper levels."""

    def lines(level: dict[str, Any], indent: str, deep: bool) -> str:
        parts = [
            f'{indent}  "{key}": '
            + (
                lines(value, indent + "  ", False)
                if deep and isinstance(value, dict) and "zlib" not in value
                else json.dumps(value, allow_nan=False, ensure_ascii=False)
            )
            for key, value in level.items()
        ]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"

    return lines(data, "", True)
