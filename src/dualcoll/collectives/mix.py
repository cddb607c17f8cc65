"""Different collectives on different groups at the same time, from a file (docs/collectives.md, "Mixes")."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dualcoll.collectives.demand_file import read_demand
from dualcoll.collectives.group_sets import is_pattern
from dualcoll.collectives.request import checked_objective, make_groups
from dualcoll.collectives.workload import Group, Workload
from dualcoll.errors import InputError
from dualcoll.files import read_bytes
from dualcoll.topology.forms import Form, Name, Place, Text, Whole, filled
from dualcoll.topology.model import Topology
from dualcoll.topology.source_text import Loc, SourceText

__all__ = ["read_mix"]


class EntryForm(Form):
    """One collective."""

    name: Name
    collective: Text
    size: Text | None = None
    ranks: Any = None
    groups: Any = None
    root: Text | None = None
    weights: tuple[Whole, ...] | None = None
    demand: Text | None = None
    priority: Whole = 0


def read_mix(path: str | Path, topology: Topology, objective: str = "slowest") -> Workload:
    """The collectives that a file lists, all at once.

    Args:
        path: of YAML or JSON. Files that it names are looked for in its folder.
        topology: its ranks are numbered in node order, from 0.
        objective: ``"slowest"`` (the time until all are done) or ``"total"`` (the sum of the groups' rates).

    Raises:
        InputError: whatever is wrong, with its file and line.
    """
    text = SourceText.parse(read_bytes(path), str(path))
    if not isinstance(text.data, list) or not text.data:
        hint = "each entry has name, collective and size, and ranks or groups"
        raise InputError("it is not a list of collectives", where=text.where, hint=hint)
    groups: list[Group] = []
    names: set[str] = set()
    for i, entry in enumerate(text.data):
        form = filled(EntryForm, entry, _within(text, i))
        if form.name in names or "[" in form.name:
            problem = f"{form.name[:60]!r} is taken" if form.name in names else f"{form.name[:60]!r} has a bracket"
            raise InputError(problem, where=text.place((i, "name")), hint="names are unique, without brackets")
        names.add(form.name)
        made = _entry(topology, form, Path(path).parent, text, (i,))
        groups += [replace(group, priority=form.priority) for group in made]
    return Workload(tuple(groups), checked_objective(objective, groups))


def _within(text: SourceText, i: int) -> Place:
    return lambda loc: text.place((i, *loc))


def _entry(topology: Topology, form: EntryForm, folder: Path, text: SourceText, at: tuple[int]) -> tuple[Group, ...]:
    if (form.size is None) == (form.demand is None):
        if form.size is None:
            raise InputError("size is missing", where=text.place(at), hint="give bytes, such as 64MiB")
        where = text.place((*at, "size"))
        raise InputError("the demand matrix says the size", where=where, hint="leave it out")
    try:
        return make_groups(
            topology,
            form.collective,
            size=form.size,
            ranks=_ranks(form.ranks, text, (*at, "ranks")),
            root=form.root,
            weights=form.weights,
            demand=None if form.demand is None else read_demand(folder / form.demand),
            groups=_sets(form.groups, folder, text, (*at, "groups")),
            name=form.name,
        )
    except InputError as error:
        if error.where in EntryForm.model_fields:
            raise InputError(error.problem, where=text.place((*at, error.where)), hint=error.hint) from None
        if error.where.startswith(text.where):
            raise
        raise error.within(text.place(at)) from None


def _ranks(value: object, text: SourceText, loc: Loc) -> str | list[str] | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(rank, str) for rank in value):
        return value
    hint = 'write "0-7,12" or a list of numbers and names'
    raise InputError(f"{str(value)[:60]!r} are not ranks", where=text.place(loc), hint=hint)


def _sets(value: object, folder: Path, text: SourceText, loc: Loc) -> str | Path | list[str | list[str]] | None:
    if isinstance(value, list):
        sets = [_ranks(ranks, text, (*loc, i)) for i, ranks in enumerate(value)]
        return [ranks for ranks in sets if ranks is not None]
    if value is None or not isinstance(value, str):
        if value is None:
            return None
        raise InputError(f"{str(value)[:60]!r} are not groups", where=text.place(loc), hint="write a pattern or a list")
    try:
        named = folder / value
        return named if not is_pattern(value) and named.is_file() else value
    except (OSError, ValueError):
        return value
