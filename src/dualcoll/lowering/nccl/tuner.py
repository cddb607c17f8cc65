"""The configuration file of NCCL's example tuner plugin (``NCCL_TUNER_CONFIG_FILE``), from what ``compare`` found.

One line for each range of sizes: collective, least and most bytes, algorithm, protocol, channels, nodes, ranks, and where
needed numPipeOps and regBuff; -1 stands for any. The plugin takes the first line that fits, and where none does NCCL decides.
It reads any word that it does not know as ``allreduce``, ``ring`` or ``simple`` without telling; the validator does tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dualcoll.collectives.catalogue import title
from dualcoll.errors import InputError
from dualcoll.files import atomic_write, read_bytes

__all__ = ["ANY", "TunerRow", "check_tuner", "read_tuner", "tuner_rows", "write_tuner"]

ANY = -1
COLLECTIVES = ("broadcast", "reduce", "allgather", "reducescatter", "allreduce")
ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
PROTOCOLS = ("ll", "ll128", "simple")
MAX_LINE = 254  # characters, the plugin's buffer without its end
MOST_BYTES = 2**64 - 1
MOST_INT = 2**31 - 1
# what NCCL can run of what is compared: its chain along a ring is part of "ring"
NCCL_NAMES = {"ring": "ring", "chain": "ring", "tree": "tree", "double-tree": "tree"}
_NUMBERS = ("min_bytes", "max_bytes", "channels", "nodes", "ranks", "pipe_ops", "reg_buff")


class Timed(Protocol):
    """A method's time at one size, such as :class:`dualcoll.diagnosis.comparison.Result`."""

    @property
    def method(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def seconds(self) -> float: ...


@dataclass(frozen=True, slots=True)
class TunerRow:
    """One line: what to use for messages of ``min_bytes`` to ``max_bytes``, both included.

    Attributes:
        collective, algorithm, protocol: the plugin's words.
        channels, nodes, ranks, pipe_ops, reg_buff: ``ANY`` for NCCL's choice (channels) or for no condition.

    Raises:
        InputError: a word that the plugin does not know, or a number out of range.
    """

    collective: str
    min_bytes: int
    max_bytes: int
    algorithm: str
    protocol: str = "simple"
    channels: int = ANY
    nodes: int = ANY
    ranks: int = ANY
    pipe_ops: int = ANY
    reg_buff: int = ANY

    def __post_init__(self) -> None:
        for name, known in (("collective", COLLECTIVES), ("algorithm", ALGORITHMS), ("protocol", PROTOCOLS)):
            if getattr(self, name) not in known:
                problem = f"{name} {getattr(self, name)[:60]!r} is not known to the tuner plugin"
                raise InputError(problem, hint=f"use one of {', '.join(known)}")
        if self.algorithm == "tree" and self.collective != "allreduce":
            raise InputError(f"NCCL has no tree for {title(self.collective)}", hint="use ring")
        if not 0 <= self.min_bytes <= self.max_bytes <= MOST_BYTES:
            problem = f"sizes {self.min_bytes} to {self.max_bytes} are no range"
            raise InputError(problem, hint="give 0 <= least <= most < 2^64 bytes")
        for name in _NUMBERS[2:]:
            if not (getattr(self, name) == ANY or 0 <= getattr(self, name) <= MOST_INT):
                raise InputError(f"{name} {getattr(self, name)} is not a number from 0, or -1 for any")
        if 0 in (self.channels, self.nodes, self.ranks):
            raise InputError("0 channels, nodes or ranks fit nothing", hint="use -1 for any")


def tuner_rows(
    collective: str, ranks: int, results: Iterable[Timed], *, nodes: int = 1, protocol: str = "simple"
) -> tuple[TunerRow, ...]:
    """Rows that choose, at each size compared, the fastest of the algorithms that NCCL has.

    A row reaches from a size as far as the next, and the last ends with the last size: nothing is said of others. The times
    are those of the ``simple`` protocol, as the simulation knows no other.

    Args:
        collective: canonical name. ranks: of the communicator. results: of ``compare``. nodes: boxes.

    Raises:
        InputError: a collective for which NCCL has no choice of algorithms, or no result of an algorithm that it has.
    """
    if collective not in COLLECTIVES:
        raise InputError(
            f"NCCL's tuner chooses no algorithm for {title(collective)}",
            hint=f"compare one of {', '.join(COLLECTIVES)}",
        )
    best: dict[int, tuple[float, str]] = {}
    for result in results:
        name = NCCL_NAMES.get(result.method)
        if name == "ring" or (name == "tree" and collective == "allreduce"):
            best[result.size] = min(best.get(result.size, (float("inf"), "")), (result.seconds, name))
    if not best:
        raise InputError("no algorithm that NCCL has was compared", hint=f"compare {', '.join(NCCL_NAMES)}")
    sizes = sorted(best)
    rows: list[TunerRow] = []
    for size, end in zip(sizes, [after - 1 for after in sizes[1:]] + [sizes[-1]], strict=True):
        algorithm = best[size][1]
        if rows and rows[-1].algorithm == algorithm:
            size = rows.pop().min_bytes
        rows.append(TunerRow(collective, size, end, algorithm, protocol, nodes=nodes, ranks=ranks))
    return tuple(rows)


def write_tuner(rows: Sequence[TunerRow], path: str | Path) -> None:
    """Write the file, whole or not at all; the two last columns only where they say something.

    Raises:
        InputError: no rows, a row that an earlier one covers, or the file cannot be written.
    """
    if not rows:
        raise InputError(
            "no rows to write", where=str(path), hint="the plugin then leaves everything to NCCL: use no file"
        )
    text = "# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n"
    for row in rows:
        cells = [row.collective, row.min_bytes, row.max_bytes, row.algorithm, row.protocol]
        cells += [row.channels, row.nodes, row.ranks]
        if (row.pipe_ops, row.reg_buff) != (ANY, ANY):
            cells += [row.pipe_ops, row.reg_buff]
        text += ",".join(map(str, cells)) + "\n"
    findings = check_tuner(text.encode(), str(path))
    if findings:
        raise InputError(findings[0])
    atomic_write(path, text)


def read_tuner(path: str | Path) -> tuple[TunerRow, ...]:
    """The rows of a file.

    Raises:
        InputError: a line that the plugin would skip, or read as something else than it says; with file and line.
    """
    rows = []
    for number, line in _lines(read_bytes(path), str(path)):
        where = f"{path}:{number}"
        cells = [cell.strip(" \t\r") for cell in line.split(",")]
        if not 8 <= len(cells) <= 10:
            raise InputError(f"{len(cells)} cells, where the plugin takes 8 to 10", where=where)
        if len(line) > MAX_LINE:
            raise InputError(f"a line of {len(line)} characters, where the plugin takes {MAX_LINE}", where=where)
        places = (1, 2, 5, 6, 7, 8, 9)
        numbers = [_number(cells[i], where) if i < len(cells) else ANY for i in places]
        values = dict(zip(_NUMBERS, numbers, strict=True))
        try:
            rows.append(TunerRow(collective=cells[0], algorithm=cells[3], protocol=cells[4], **values))
        except InputError as error:
            raise error.within(where) from None
    if not rows:
        raise InputError("it has no rows", where=str(path))
    return tuple(rows)


def check_tuner(data: bytes, where: str) -> tuple[str, ...]:
    """What the plugin would silently take otherwise than the file says, one sentence each; empty if nothing.

    The lines are cut as the plugin cuts them (``strtok``, ``strtoull``, ``atoi``), apart from the reader.
    """
    findings: list[str] = []
    before: list[tuple[int, str, int, int, tuple[int, ...]]] = []
    for number, line in _lines(data, where):
        place = f"{where}:{number}: "
        cells = [cell.strip(" \t") for cell in line.split(",") if cell]  # strtok drops empty cells
        if line.count(",") + 1 != len(cells):
            findings.append(f"{place}the plugin drops empty cells, so that later ones move forward")
        if len(cells) < 8:
            findings.append(f"{place}the plugin skips a line of {len(cells)} cells")
            continue
        for cell, known, instead in zip(
            (cells[0], cells[3], cells[4]),
            (COLLECTIVES, ALGORITHMS, PROTOCOLS),
            ("allreduce", "ring", "simple"),
            strict=True,
        ):
            if cell not in known:
                findings.append(f"{place}the plugin takes {cell[:60]!r} for {instead!r}")
        least, most = _unsigned(cells[1]), _unsigned(cells[2])
        if least > most:
            findings.append(f"{place}no size is from {least} to {most}")
        asks = tuple(int(re.match(r"\s*[+-]?\d+|", cell)[0] or 0) for cell in cells[6:10])  # type: ignore[index]
        asks += (ANY,) * (4 - len(asks))
        for earlier, collective, low, high, asked in before:
            covers = all(a in (ANY, b) for a, b in zip(asked, asks, strict=True))
            if collective == cells[0] and covers and low <= least and most <= high:
                findings.append(f"{place}never used: line {earlier} fits all that it fits")
                break
        before.append((number, cells[0], least, most, asks))
    return tuple(findings)


def _lines(data: bytes, where: str) -> list[tuple[int, str]]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InputError("it is not UTF-8 text", where=where) from None
    return [(i, line) for i, line in enumerate(text.split("\n"), 1) if line.strip() and not line.startswith("#")]


def _number(cell: str, where: str) -> int:
    if not re.fullmatch(r"-1|[0-9]{1,20}", cell):
        raise InputError(f"{cell[:60]!r} is not a whole number", where=where, hint="use -1 for any")
    return int(cell)


def _unsigned(cell: str) -> int:
    found = re.match(r"[+]?\d+", cell)
    return min(int(found[0]), MOST_BYTES) if found else 0
