"""The traffic matrix of nccl-tests' ``alltoallv_perf`` (``NCCL_TESTS_ALLTOALLV_MATRIX_FILE``).

Numbers apart by blanks, one line for each rank: cell (i, j) is what rank i sends to rank j, in bytes. The tool rounds each
cell down to whole multiples of 16 bytes, and wants ``-b`` and ``-e`` alike and no smaller than any row or column.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.demand_matrix import DemandMatrix
from dualcoll.errors import InputError
from dualcoll.files import atomic_write, read_bytes
from dualcoll.plans.model import Plan

__all__ = ["alltoallv_flags", "check_alltoallv", "plan_matrix", "read_alltoallv", "write_alltoallv"]

STEP = 16  # bytes that the tool rounds down to
Matrix = NDArray[np.int64]


def plan_matrix(plan: Plan) -> DemandMatrix:
    """Bytes from each rank to each of a plan's AllToAll or AllToAllv.

    Raises:
        InputError: another collective, or several groups.
    """
    groups = plan.workload.groups
    if len(groups) != 1 or groups[0].collective not in ("alltoall", "alltoallv"):
        raise InputError(
            f"a matrix is for one AllToAllv, not for {plan.workload.collective}", where="plan", hint="plan an alltoallv"
        )
    group = groups[0]
    n = len(group.ranks)
    if group.parts:
        return DemandMatrix(np.array(group.parts, np.int64).reshape(n, n), where="plan")
    return DemandMatrix(np.full((n, n), group.size // n, np.int64), where="plan")


def write_alltoallv(matrix: DemandMatrix, path: str | Path) -> None:
    """Write the file, whole or not at all; names of ranks are left out, as the tool has none.

    Raises:
        InputError: the tool would send nothing between ranks, or the file cannot be written.
    """
    floored = matrix.cells // STEP * STEP
    if not np.any(floored[~np.eye(len(floored), dtype=bool)]):
        raise InputError(
            f"every cell is below {STEP} bytes, which the tool rounds down to nothing",
            where=str(path),
            hint="send more",
        )
    atomic_write(path, "".join(" ".join(map(str, row)) + "\n" for row in matrix.cells.tolist()))


def read_alltoallv(path: str | Path) -> DemandMatrix:
    """The matrix in a file, as the tool reads it: bytes and nothing else, neither units nor names.

    Raises:
        InputError: a cell that is no whole number of bytes, or rows of unequal length; with file and line.
    """
    try:
        text = read_bytes(path).decode("ascii")
    except UnicodeDecodeError:
        raise InputError("it is not plain text", where=str(path)) from None
    rows: list[list[int]] = []
    for number, line in enumerate(text.split("\n"), 1):
        cells = line.split()
        if wrong := next((cell for cell in cells if not re.fullmatch(r"[0-9]{1,18}(\.0*)?", cell)), None):
            raise InputError(
                f"{wrong[:60]!r} is not a whole number of bytes",
                where=f"{path}:{number}",
                hint="nccl-tests knows no units, names or commas here",
            )
        if cells:
            rows.append([int(cell.partition(".")[0]) for cell in cells])
        if len(rows) > 1 and cells and len(cells) != len(rows[0]):
            raise InputError(f"a row of {len(cells)} cells below one of {len(rows[0])}", where=f"{path}:{number}")
    if not rows or len(rows) != len(rows[0]):
        raise InputError(f"{len(rows)} rows of {len(rows[0]) if rows else 0} cells are not square", where=str(path))
    return DemandMatrix(np.array(rows, np.int64), where=str(path))


def alltoallv_flags(matrix: DemandMatrix) -> str:
    """What to call ``alltoallv_perf`` with: the size, rounded up, and the slowest rank's time."""
    size = -(-matrix.size // STEP) * STEP
    return f"-b {size} -e {size} -a 3"


def check_alltoallv(data: bytes, ranks: int, where: str) -> tuple[str, ...]:
    """What the tool would refuse or change, one sentence each; empty if nothing. Apart from the reader.

    Args:
        ranks: that the tool runs with.
    """
    rows = [line.split() for line in data.decode("latin-1").splitlines() if line.strip()]
    findings = []
    if any(len(row) != len(rows) for row in rows) or not rows:
        findings.append(f"{where}: it is not square")
    if len(rows) < ranks:
        findings.append(f"{where}: {len(rows)} rows for {ranks} ranks")
    elif len(rows) > ranks:
        findings.append(f"{where}: rows and columns from {ranks} on are not used")
    changed = 0
    for row in rows:
        for cell in row:
            try:
                value = float(cell)
            except ValueError:
                findings.append(f"{where}: {cell[:60]!r} is no number")
                return tuple(findings)
            if value < 0:
                findings.append(f"{where}: {cell[:60]} is negative")
            changed += value % STEP != 0
    if changed:
        findings.append(f"{where}: {changed} of {len(rows) ** 2} cells are rounded down to multiples of {STEP} bytes")
    return tuple(findings)
