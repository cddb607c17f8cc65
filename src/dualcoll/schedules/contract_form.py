"""Contracts in files (docs/schedule-file.md)."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import FailFast

from dualcoll.collectives.catalogue import canonical_name
from dualcoll.collectives.contract import Contract
from dualcoll.errors import InputError
from dualcoll.schedules.columns import packed, short, unpacked
from dualcoll.topology.forms import Form, Text, Whole

__all__ = ["MAX_ROWS", "ContractForm", "contract_of", "contract_to_dict", "counted"]

MAX_ROWS = 2**24  # sends, chunks, or routes


class ContractForm(Form):
    """The contract; ``data`` and ``group`` where a chunk is not its own data, or of the first group."""

    collective: Text
    ranks: Whole
    chunks: Whole
    root: Whole | None = None
    source: Any
    target: Any
    data: Any = None
    groups: Annotated[tuple[Any, ...], FailFast()] = ()
    group: Any = 0


def contract_of(form: ContractForm) -> Contract:
    """The contract.

    Raises:
        InputError: a column that is none, or a number that names nothing, with its key.
    """
    chunks = counted(form.chunks, MAX_ROWS, "chunks")
    groups = []
    for i, group in enumerate(form.groups):
        if not isinstance(group, list):
            raise InputError("it is not a list of rank numbers", where=f"groups[{i}]")
        groups.append(tuple(unpacked(group, len(group), f"groups[{i}]").tolist()))
    return Contract(
        canonical_name(form.collective) if form.collective != "mix" else "mix",
        form.ranks,
        short(unpacked(form.source, chunks, "source"), "source"),
        short(unpacked(form.target, chunks, "target"), "target"),
        np.arange(chunks, dtype=np.int32) if form.data is None else short(unpacked(form.data, chunks, "data"), "data"),
        form.root,
        tuple(groups),
        short(unpacked(form.group, chunks, "group"), "group"),
    )


def contract_to_dict(contract: Contract) -> dict[str, Any]:
    """What :func:`contract_of` reads."""
    found: dict[str, Any] = {"collective": contract.collective, "ranks": contract.ranks, "chunks": contract.chunks}
    found |= {} if contract.root is None else {"root": contract.root}
    found |= {"source": packed(contract.source), "target": packed(contract.target)}
    if not np.array_equal(contract.data, np.arange(contract.chunks)):
        found["data"] = packed(contract.data)
    if contract.groups != (tuple(range(contract.ranks)),):
        found |= {"groups": [list(group) for group in contract.groups], "group": packed(contract.group)}
    return found


def counted(count: int, most: int, where: str) -> int:
    """The count itself.

    Raises:
        InputError: it is below 0 or above ``most``.
    """
    if not 0 <= count <= most:
        raise InputError(f"{count} is not in 0 .. {most}", where=where)
    return count
