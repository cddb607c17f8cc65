"""The rank timeline for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

from dualcoll.collectives.catalogue import title
from dualcoll.reporting.timeline import Cell, Received, Sent, Timeline
from dualcoll.schedules.ops import Op

__all__ = ["cell_lines", "number_list", "timeline_text"]

T = TypeVar("T")

WIDTH = 100
LINES = 6  # of a cell
LISTED = 6  # ranges of numbers
KEY = (
    "send 3 → R1: chunk 3 leaves for rank 1; add 2 ← R3 = {0,3}: chunk 2 from rank 3 is merged in, now that of 0 and 3;",
    "get 2 ← R3: chunk 2 from rank 3 is stored; owns: chunks that are whole there",
)


def timeline_text(line: Timeline, width: int = WIDTH) -> str:
    """Ranks as rows, columns side by side as far as they fit, then further down.

    A cell says what the rank sends, what it merges into what it holds, and whose contributions that makes, what it takes over,
    and which chunks it then owns whole; a line above says how.

    Args:
        line: what is to be shown. width: letters of the terminal.
    """
    schedule = line.schedule
    names = [f"R{rank}" for rank in line.ranks]
    if schedule.topology is not None:
        names = [f"{name} {schedule.rank_name(rank)}" for name, rank in zip(names, line.ranks, strict=True)]
    before = [["owns " + number_list(cell.owned)] if cell.owned else [] for cell in line.before]
    table = [("before", before)] if any(before) else []
    for k, name in enumerate(line.columns):
        table.append((name, [cell_lines(row[k], line.needed) for row in line.cells]))
    out = [_heading(line), *KEY]
    left = max(map(len, names), default=0)
    for block in _blocks(table, width - left):
        out += ["", *_block(names, left, block)]
    return "\n".join(out)


def cell_lines(cell: Cell, needed: Sequence[int], most: int = LINES) -> list[str]:
    """A cell in words, one thing to a line."""
    lines = [f"send {number_list([one.chunk for one in some])} → R{to}" for to, some in _by(cell.sent, _to)]
    for (source, op, holds), some in _by(cell.received, _what):
        chunks = number_list([one.chunk for one in some])
        if op == Op.COPY:
            lines.append(f"get {chunks} ← R{source}")
        else:
            lines.append(f"add {chunks} ← R{source} = {_set(holds, needed[some[0].chunk])}")
    if len(lines) > most:
        lines[most - 1 :] = [f"and {len(lines) - most + 1} more"]
    return [*lines, f"owns {number_list(cell.owned)}"] if cell.owned else lines


def number_list(numbers: Sequence[int]) -> str:
    """Text such as ``0-3,7,8``, cut short where it is long."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    shown = parts if len(parts) <= LISTED else parts[: LISTED - 1]
    text = ",".join(str(a) if a == b else f"{a}{',' if b == a + 1 else '-'}{b}" for a, b in shown)
    rest = sum(b - a + 1 for a, b in parts[len(shown) :])
    return f"{text} and {rest} more" if rest else text


def _to(sent: Sent) -> int:
    return sent.to


def _what(received: Received) -> tuple[int, Op, tuple[int, ...]]:
    return received.source, received.op, received.holds if received.op == Op.REDUCE else ()


def _by(items: Sequence[T], key: Callable[[T], Any]) -> Iterator[tuple[Any, list[T]]]:
    for value, some in groupby(sorted(items, key=key), key=key):
        yield value, list(some)


def _set(ranks: Sequence[int], needed: int) -> str:
    return "all" if len(ranks) == needed else "{" + number_list(ranks) + "}"


def _heading(line: Timeline) -> str:
    schedule = line.schedule
    what = f"{title(schedule.contract.collective)} of {schedule.ranks} ranks"
    made = f" ({schedule.name})" if schedule.name else ""
    hidden = []
    if len(line.ranks) < schedule.ranks:
        hidden.append(f"{len(line.ranks)} of {schedule.ranks} ranks")
    if len(line.columns) < line.all_columns:
        hidden.append(f"{len(line.columns)} of {line.all_columns} {line.word}s")
    return what + made + (f"; {' and '.join(hidden)} shown" if hidden else "")


def _blocks(table: list[tuple[str, list[list[str]]]], width: int) -> Iterator[list[tuple[str, list[list[str]], int]]]:
    """Columns with their widths, as many at a time as fit."""
    block: list[tuple[str, list[list[str]], int]] = []
    for name, cells in table:
        wide = max([len(name), *(len(line) for lines in cells for line in lines)])
        if block and sum(w + 3 for _, _, w in block) + wide + 3 > width:
            yield block
            block = []
        block.append((name, cells, wide))
    if block:
        yield block


def _block(names: list[str], left: int, block: list[tuple[str, list[list[str]], int]]) -> Iterator[str]:
    rule = "-+-".join(["-" * left, *("-" * wide for _, _, wide in block)])
    yield " | ".join([" " * left, *(name.ljust(wide) for name, _, wide in block)]).rstrip()
    for row, name in enumerate(names):
        yield rule
        height = max(1, *(len(cells[row]) for _, cells, _ in block))
        for i in range(height):
            parts = [(cells[row][i] if i < len(cells[row]) else "").ljust(wide) for _, cells, wide in block]
            yield " | ".join([(name if i == 0 else "").ljust(left), *parts]).rstrip()
