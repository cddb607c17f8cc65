"""Demand matrices from files: as nccl-tests' alltoallv reads them, CSV, or expert routing (docs/collectives.md)."""

from __future__ import annotations

import csv
import io
import re
from fractions import Fraction
from pathlib import Path

import numpy as np

from dualcoll.collectives.demand_matrix import MAX_RANK_BYTES, DemandMatrix
from dualcoll.collectives.expert_routing import expert_demand
from dualcoll.collectives.routing_file import routing_from_data
from dualcoll.errors import InputError
from dualcoll.files import read_bytes
from dualcoll.topology.source_text import SourceText
from dualcoll.units import parse_size

__all__ = ["read_demand"]

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_NOTHING = re.compile(r"0+(?:\.0*)?(?:[kmgtKMGT]|[KMGT]iB|[kKMGT]?B)")
_SHAPE = "give one row and one column for each rank"

Row = tuple[int, list[str]]  # line number, cells


def read_demand(path: str | Path) -> DemandMatrix:
    """The demand in a file: cell (i, j) is what the i-th rank sends to the j-th.

    A file that ends in ``.yaml``, ``.yml`` or ``.json``, or begins with ``{``, is expert routing. Any other is a square matrix
    of bytes, its cells separated by commas if there is one in the file and by blanks if not; ranks may be named in the first
    row, the first column or both. A cell may have a unit, ``4MiB``.

    Raises:
        InputError: whatever is wrong, with the file and line.
    """
    data = read_bytes(path)
    where = str(path)
    if Path(path).suffix.lower() in (".yaml", ".yml", ".json") or data.lstrip()[:1] == b"{":
        text = SourceText.parse(data, where)
        routing = routing_from_data(text.data, text.place)
        return expert_demand(routing, text.place(("ranks",) if routing.names else ()))
    rows = _rows(data, where)
    if not rows:
        raise InputError("it has no cells", where=where, hint=_SHAPE)
    names, line, body = _named(rows, where)
    for number, cells in body[1:]:
        if len(cells) != len(body[0][1]):
            problem = f"a row of length {len(cells)}, where line {body[0][0]} has {len(body[0][1])} cells"
            raise InputError(problem, where=f"{where}:{number}", hint=_SHAPE)
    if not body or len(body) != len(body[0][1]):
        columns = len(body[0][1]) if body else len(names)
        raise InputError(f"a matrix of {len(body)} by {columns} is not square", where=where, hint=_SHAPE)
    table = [[_nbytes(cell, f"{where}:{number}") for cell in cells] for number, cells in body]
    return DemandMatrix(np.array(table, np.int64), names, f"{where}:{line}" if names else where)


def _rows(data: bytes, where: str) -> list[Row]:
    """All rows that are not blank; a blank cell that ends every row is none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("it is not UTF-8 text", where=f"{where}:{line}") from None
    if "," not in text:
        return [(i, line.split()) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[Row] = []
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                rows.append((reader.line_num, stripped))
    except csv.Error as error:
        raise InputError(f"the CSV is broken: {error}", where=f"{where}:{reader.line_num}") from None
    while rows and all(not cells[-1] for _, cells in rows):
        rows = [(line, cells[:-1]) for line, cells in rows]
    return rows


def _named(rows: list[Row], where: str) -> tuple[tuple[str, ...], int, list[Row]]:
    """Names of the ranks, the line where they begin, and the rows without names; columns in the order of the rows."""
    line, first = rows[0]
    others = rows[1:]
    if others and all(len(cells) == len(first) + 1 for _, cells in others):
        first = ["", *first]
    side = [cells[0] for _, cells in others]
    if len(first) == len(rows) and _is_named(first[0], first[1:], side):
        return tuple(side), line, _aligned(first[1:], side, others, where, line)
    if len(first) == len(rows) + 1 and not any(map(_is_size, [first[0], *side])):
        return (first[0], *side), line, [(number, cells[1:]) for number, cells in rows]
    if len(first) == len(rows) - 1 and not any(map(_is_size, first)):
        return tuple(first), line, others
    return (), line, rows


def _is_named(corner: str, head: list[str], side: list[str]) -> bool:
    """Whether the first row and column are names: numbers can be, where they agree and the corner is no number."""
    if not corner or not any(map(_is_size, [*head, *side])):
        return bool(head)
    return not _is_size(corner) and set(head) == set(side)


def _aligned(head: list[str], side: list[str], rows: list[Row], where: str, line: int) -> list[Row]:
    unlike = next((name for name in [*head, *side] if head.count(name) != side.count(name)), None)
    if unlike is not None:
        what = "a column but no row" if unlike not in side else "a row but no column" if unlike not in head else "two"
        problem = f"{unlike[:60]!r} names {what}"
        raise InputError(problem, where=f"{where}:{line}", hint="name rows and columns alike")
    order = [1 + head.index(name) for name in side]
    return [(number, [cells[i] for i in order] if len(cells) == 1 + len(head) else cells[1:]) for number, cells in rows]


def _is_size(cell: str) -> bool:
    try:
        _nbytes(cell, "")
    except InputError:
        return _NUMBER.fullmatch(cell) is not None
    return True


def _nbytes(cell: str, where: str) -> int:
    if cell.isascii() and cell.isdecimal() and len(cell) < 19:
        return int(cell)
    hint = 'write bytes, such as "1048576" or "4MiB"'
    shown = repr(cell if len(cell) <= 60 else f"{cell[:57]}...")
    if len(cell) > 60:
        raise InputError(f"{shown} is not a number of bytes", where=where, hint=hint)
    if _NUMBER.fullmatch(cell):
        value = Fraction(cell)
        if value < 0:
            raise InputError(f"{shown} is negative", where=where, hint="bytes are 0 or more")
        if value.denominator != 1:
            hint = 'cells are bytes; with a unit one may be broken, such as "1.5MiB"'
            raise InputError(f"{shown} is not a whole number of bytes", where=where, hint=hint)
    elif _NOTHING.fullmatch(cell):
        return 0
    else:
        try:
            value = Fraction(parse_size(cell))
        except InputError as error:
            too_large = error.problem.endswith("is out of range")
            problem = error.problem if too_large else f"{shown} is not a number of bytes"
            raise InputError(problem, where=where, hint=hint) from None
    if value > MAX_RANK_BYTES:
        raise InputError(f"{shown} is absurdly large", where=where, hint="a rank sends at most 2**62 bytes")
    return int(value)
