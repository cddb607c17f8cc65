"""Which epochs are still open for a start on each capacity row (docs/time-expanded.md, rule 3).

A row's pairs (window, most) say that any ``window`` epochs one after the other hold at most so many starts. Shape letters: M
rows, K epochs, P pairs of all rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["Windows", "first_open", "fits", "take"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Flags = NDArray[np.bool_]


class Windows(NamedTuple):
    """The pairs of each row as CSR: int64 (M+1,), (P,), (P,); starts on each row by epoch int32 (M, K), closed bool (M, K)."""

    ptr: Ints
    length: Ints
    most: Ints
    starts: Shorts
    closed: Flags


@nb.njit(cache=True)
def take(windows: Windows, row: int, epoch: int) -> None:
    """Enter a start, and close the epochs of every window that it fills. O(sum of the row's windows)."""
    starts = windows.starts[row]
    closed = windows.closed[row]
    end = starts.size
    starts[epoch] += 1
    for pair in range(windows.ptr[row], windows.ptr[row + 1]):
        length = windows.length[pair]
        first = max(0, epoch - length + 1)
        held = 0
        for k in range(first, min(end, first + length)):
            held += starts[k]
        done = first
        for begin in range(first, epoch + 1):
            if held >= windows.most[pair]:
                for k in range(max(done, begin), min(end, begin + length)):
                    closed[k] = True
                done = min(end, begin + length)
            held -= starts[begin]
            if begin + length < end:
                held += starts[begin + length]


@nb.njit(cache=True)
def fits(windows: Windows, row: int, epoch: int) -> bool:
    """Whether one more start fits by the numbers of starts alone, whatever is marked as closed."""
    starts = windows.starts[row]
    end = starts.size
    for pair in range(windows.ptr[row], windows.ptr[row + 1]):
        length = windows.length[pair]
        first = max(0, epoch - length + 1)
        held = 0
        for k in range(first, min(end, first + length)):
            held += starts[k]
        for begin in range(first, epoch + 1):
            if held >= windows.most[pair]:
                return False
            held -= starts[begin]
            if begin + length < end:
                held += starts[begin + length]
    return True


@nb.njit(cache=True, inline="always")
def first_open(closed: Flags, row: int, epoch: int) -> int:
    """The first epoch from this one on that is not closed (M, K); one past the last if all are."""
    while epoch < closed.shape[1] and closed[row, epoch]:
        epoch += 1
    return epoch
