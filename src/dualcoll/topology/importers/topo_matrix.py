"""The table of ``nvidia-smi topo -m`` as people paste it: found in any text, with what it says of each pair."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from dualcoll.errors import InputError

__all__ = ["Matrix", "decode_text", "find_matrices"]

MAX_DEVICES = 256
MAX_TABLES = 64
_PEER_CELLS = {"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"}
_CELL = re.compile(r"X|SYS|SOC|NODE|PHB|PXB|PIX|NV[0-9]{1,3}|OK|CNS|GNS|TNS|NS|DR|U")
_GPU = re.compile(r"GPU[0-9]{1,4}")
_DEVICE = re.compile(r"(?=.{0,60}[0-9])[A-Za-z][\w.:-]{0,59}\w")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_MARKS = re.compile(r"[\s#>|`'\"]*")
_TITLES = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")


def decode_text(data: bytes) -> str:
    """Text without terminal colours."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return _ANSI.sub("", data.decode(encoding, errors="replace"))


@dataclass(slots=True)
class Matrix:
    """One table.

    Attributes:
        line: of its first line, from 1.
        columns: device names in column order.
        cells: what the rows say, by (row, column); the old ``SOC`` is read as ``SYS``.
        numa, cpus: NUMA and CPU affinity of a device as text, where one is shown.
        rows: line of each device's row.
    """

    line: int
    columns: list[str]
    cells: dict[tuple[str, str], str] = field(default_factory=dict)
    numa: dict[str, str] = field(default_factory=dict)
    cpus: dict[str, str] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)

    @property
    def gpus(self) -> list[str]:
        """The GPUs, in column order."""
        return [name for name in self.columns if _GPU.fullmatch(name)]

    @property
    def nics(self) -> list[str]:
        """All other devices, in column order."""
        return [name for name in self.columns if not _GPU.fullmatch(name)]

    @property
    def is_peer_access(self) -> bool:
        """Whether it is the matrix of ``topo -p2p``, which has no link classes."""
        return bool(_PEER_CELLS & set(self.cells.values()))

    def between(self, first: str, second: str, where: str) -> str:
        """The cell of a pair, from whichever row has it; empty if neither has.

        Raises:
            InputError: the two rows disagree.
        """
        one, two = self.cells.get((first, second), ""), self.cells.get((second, first), "")
        if one and two and one != two:
            raise InputError(
                f"row {first} says {one} for {second} but row {second} says {two} for {first}",
                where=f"{where}:{self.rows[first]}",
                hint="the matrix is the same read by rows or by columns: paste it again",
            )
        return one or two


@dataclass(slots=True)
class _Header:
    columns: list[str]
    titles: int
    line: int


@dataclass(slots=True)
class _Row:
    label: str
    cells: list[str]
    fields: list[str]  # after the cells
    aligned: bool  # whether each field has its place even if blank
    line: int


def find_matrices(text: str, where: str) -> list[Matrix]:
    """Every table of the text that has rows; one without a header takes its columns from its row labels.

    Raises:
        InputError: too many matrices or devices, a device twice, or rows that do not fit the columns.
    """
    groups: list[tuple[_Header | None, list[_Row]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line[_MARKS.match(line).end() :]  # type: ignore[union-attr]  # it matches the empty text too
        tokens = line.split()
        header, row = _header(line, tokens, number), _row(line, tokens, number)
        if header is not None:
            groups.append((header, []))
        elif row is not None:
            if not groups or any(row.label == other.label for other in groups[-1][1]):
                groups.append((None, []))
            groups[-1][1].append(row)
        if len(groups) > MAX_TABLES:
            raise InputError(
                f"more than {MAX_TABLES} matrices", where=f"{where}:{number}", hint="keep the one that you mean"
            )
    return [_matrix(header, rows, where) for header, rows in groups if rows]


def _header(line: str, tokens: list[str], number: int) -> _Header | None:
    """A line of device names, GPU0 first, and then the titles of the affinity columns."""
    names: list[str] = []
    for token in tokens:
        if token in ("CPU", "NUMA", "GPU"):
            break
        if not _DEVICE.fullmatch(token) or _CELL.fullmatch(token):
            return None
        names.append(token)
    if not names or not _GPU.fullmatch(names[0]):
        return None
    return _Header(names, sum(title in line for title in _TITLES), number)


def _row(line: str, tokens: list[str], number: int) -> _Row | None:
    """A device name, cells, and affinity fields."""
    if len(tokens) < 2 or not _DEVICE.fullmatch(tokens[0]) or not _CELL.fullmatch(tokens[1]):
        return None
    count = next((i for i, token in enumerate(tokens[1:]) if not _CELL.fullmatch(token)), len(tokens) - 1)
    cells = ["SYS" if cell == "SOC" else cell for cell in tokens[1 : 1 + count]]
    parts = line.split("\t")
    seen = 0
    for i, part in enumerate(parts):
        seen += len(part.split())
        if seen == 1 + count and len(parts) > i + 1:
            return _Row(tokens[0], cells, [field.strip() for field in parts[i + 1 :]], True, number)
    return _Row(tokens[0], cells, [token for token in tokens[1 + count :] if token != "NUMA"], False, number)


def _matrix(header: _Header | None, rows: list[_Row], where: str) -> Matrix:
    columns = header.columns if header else [row.label for row in rows]
    matrix = Matrix(header.line if header else rows[0].line, columns)
    if len(columns) > MAX_DEVICES:
        raise InputError(
            f"the matrix has {len(columns)} columns", where=f"{where}:{matrix.line}", hint="at most 256 are read"
        )
    if len(set(columns)) != len(columns):
        raise InputError("the matrix names a device twice in its header", where=f"{where}:{matrix.line}")
    position = {name: i for i, name in enumerate(columns)}
    for row in rows:
        if row.label not in position:
            raise InputError(
                f"row {row.label} has no column of that name",
                where=f"{where}:{row.line}",
                hint="paste the whole output",
            )
        _check_cells(row, position[row.label], columns, header is not None, f"{where}:{row.line}")
        for name, cell in zip(columns, row.cells, strict=False):
            if name != row.label:
                matrix.cells[row.label, name] = cell
        matrix.rows[row.label] = row.line
        cpu, numa = _affinity(row, header.titles if header else 2)
        if cpu:
            matrix.cpus[row.label] = cpu
        if numa and numa.upper() != "N/A":
            matrix.numa[row.label] = numa
    return matrix


def _check_cells(row: _Row, own: int, columns: Sequence[str], headed: bool, where: str) -> None:
    if len(row.cells) > len(columns):
        what = "columns" if headed else "rows, and no header"
        raise InputError(
            f"row {row.label} has {len(row.cells)} cells but there are {len(columns)} {what}",
            where=where,
            hint="paste the whole output, header included",
        )
    for i, cell in enumerate(row.cells):
        if (cell == "X") != (i == own):
            raise InputError(
                f"row {row.label} has {cell} in column {columns[i]}, but X belongs in column {row.label} and only there",
                where=where,
                hint="rows and columns do not match: paste the whole output, header included",
            )


def _affinity(row: _Row, titles: int) -> tuple[str, str]:
    """CPU and NUMA affinity of a row; where blank fields have been lost, what is left is taken to be the last ones."""
    fields = row.fields
    if not row.aligned and len(fields) == titles - 1 and titles > 1:
        fields = ["", *fields]
    cpu = fields[0] if fields and titles > 0 else ""
    numa = fields[1] if len(fields) > 1 and titles > 1 else ""
    return cpu[:60], numa.removeprefix("NUMA").strip()[:60]
