"""Rows of an integer program, gathered block by block."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.lp.integer_program import IntegerProgram

__all__ = ["SparseRows", "expanded", "matches"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class SparseRows:
    """Columns with their upper bounds, and rows over them.

    Args:
        upper: int64 (n,), of the first columns.

    Attributes:
        upper: of all columns so far.
    """

    def __init__(self, upper: Ints) -> None:
        self.upper = upper
        self._low: list[Ints] = []
        self._high: list[Ints] = []
        self._entries: list[tuple[Ints, Ints, Ints]] = []
        self._rows = 0

    @property
    def width(self) -> int:
        """n, the number of columns so far."""
        return int(self.upper.size)

    def columns(self, upper: Ints) -> Ints:
        """More columns: their numbers, int64 (n,)."""
        numbers = np.arange(self.width, self.width + upper.size)
        self.upper = np.concatenate([self.upper, upper])
        return numbers

    def add(self, low: Ints, high: int, *entries: tuple[Ints, Ints, Ints | int]) -> None:
        """More rows.

        Args:
            low: int64 (m,), the least of each. high: the most of all.
            entries: rows, counted from 0 here, columns, and values of each entry or of all.
        """
        for row, column, value in entries:
            self._entries.append((row + self._rows, column, np.broadcast_to(value, row.shape)))
        self._low.append(low)
        self._high.append(np.full(low.size, high))
        self._rows += low.size

    def program(self, gain: Floats | None) -> IntegerProgram:
        """The program of all rows."""
        row, column, value = (
            np.concatenate([np.zeros(0, np.int64), *parts]) for parts in zip(*self._entries, strict=True)
        )
        return IntegerProgram(
            self.upper, np.concatenate(self._low), np.concatenate(self._high), row, column, value, gain
        )


def expanded(count: Ints) -> tuple[Ints, Ints]:
    """Each number i, ``count[i]`` times, and for each time how many came before it."""
    which = np.repeat(np.arange(count.size), count)
    return which, np.arange(which.size) - np.repeat(np.cumsum(count) - count, count)


def matches(wanted: Ints, keys: Ints) -> tuple[Ints, Ints]:
    """All pairs of equal numbers: where in ``wanted``, and where in ``keys``, which are sorted."""
    first = np.searchsorted(keys, wanted, "left")
    which, step = expanded(np.searchsorted(keys, wanted, "right") - first)
    return which, first[which] + step
