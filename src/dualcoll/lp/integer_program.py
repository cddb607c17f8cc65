"""Integer programs with small whole numbers, as every engine takes them, and what comes back.

    maximise  gain·x   subject to   low ≤ A x ≤ high,   0 ≤ x ≤ upper,   x whole

Without a gain any solution will do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["UNBOUNDED", "IntegerProgram", "IntegerSolution", "Limits", "Solver", "Status"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

UNBOUNDED = 2**40  # of a row's low (negated) or high: no bound


class Status(StrEnum):
    """What came out. FEASIBLE: a solution, perhaps not the best; UNKNOWN: neither a solution nor a proof that there is none."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, eq=False)
class IntegerProgram:
    """Columns and rows; the matrix's entries in any order, each place once.

    Attributes:
        upper: int64 (n,), the most of each column; the least is 0.
        low, high: int64 (m,), bounds of the rows, :data:`UNBOUNDED` for none.
        row, column, value: int64 (nnz,), the matrix. gain: float64 (n,), or None.
    """

    upper: Ints
    low: Ints
    high: Ints
    row: Ints
    column: Ints
    value: Ints
    gain: Floats | None = None

    @property
    def columns(self) -> int:
        """n, the number of columns."""
        return int(self.upper.size)

    @property
    def rows(self) -> int:
        """m, the number of rows."""
        return int(self.low.size)

    def by_row(self) -> tuple[Ints, Ints, Ints]:
        """The matrix as CSR: ptr (m+1,), column and value (nnz,)."""
        order = np.lexsort((self.column, self.row))
        ptr = np.zeros(self.rows + 1, np.int64)
        np.cumsum(np.bincount(self.row, minlength=self.rows), out=ptr[1:])
        return ptr, self.column[order], self.value[order]

    def holds(self, x: Ints) -> bool:
        """Whether whole numbers are a solution."""
        sums = np.zeros(self.rows, np.int64)
        np.add.at(sums, self.row, self.value * x[self.column])
        within = (sums >= self.low) & (sums <= self.high)
        return bool(np.all((x >= 0) & (x <= self.upper)) and np.all(within))


@dataclass(frozen=True, slots=True, eq=False)
class IntegerSolution:
    """What an engine found.

    Attributes:
        status: what the rest is worth.
        columns: int64 (n,), the best solution; empty where there is none.
        value: its gain. bound: no solution gains more.
    """

    status: Status
    columns: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    value: float = float("-inf")
    bound: float = float("inf")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a search may take. With one worker and without a limit that it runs into, the same seed finds the same solution.

    Attributes:
        seconds: of the clock. stopped: asked now and then whether to give up.
        workers: threads, for engines that can use them. seed: of everything random.
    """

    seconds: float = float("inf")
    stopped: Callable[[], bool] = lambda: False
    workers: int = 1
    seed: int = 0


class Solver(Protocol):
    """An engine at work."""

    def __call__(
        self,
        program: IntegerProgram,
        limits: Limits,
        start: Ints | None = None,
        on_solution: Callable[[Ints, float, float], None] | None = None,
    ) -> IntegerSolution:
        """Solve.

        Args:
            program: what to solve. limits: what it may take.
            start: numbers to start from, a solution or nearly one.
            on_solution: called with every better solution, its gain and the bound, from a thread of the engine's.
        """
        ...
