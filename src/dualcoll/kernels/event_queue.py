"""A queue of timed events as a binary heap: the earliest first, of those at one time the one of the least number.

Also a counting sort into CSR form. Both are what simulators need.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["Queue", "empty_queue", "grouped", "pop", "push"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Queue = NDArray[Any]  # of EVENT; event 0 has the number of events for its number, and the heap begins at 1

EVENT = np.dtype([("time", np.float64), ("number", np.int64)])


def empty_queue(room: int) -> Queue:
    """A queue for this many events at most."""
    return np.zeros(room + 1, EVENT)


@nb.njit(cache=True)
def push(queue: Queue, time: float, number: int) -> None:
    """Add an event."""
    queue[0].number += 1
    j = queue[0].number
    while j > 1:
        up = j >> 1
        if queue[up].time < time or (queue[up].time == time and queue[up].number <= number):
            break
        queue[j] = queue[up]
        j = up
    queue[j].time = time
    queue[j].number = number


@nb.njit(cache=True)
def pop(queue: Queue) -> None:
    """Remove the first event, which stands at position 1 before the call."""
    size = queue[0].number - 1
    queue[0].number = size
    time = queue[size + 1].time
    number = queue[size + 1].number
    i = 1
    while True:
        child = 2 * i
        if child > size:
            break
        if child < size and (
            queue[child + 1].time < queue[child].time
            or (queue[child + 1].time == queue[child].time and queue[child + 1].number < queue[child].number)
        ):
            child += 1
        if queue[child].time > time or (queue[child].time == time and queue[child].number >= number):
            break
        queue[i] = queue[child]
        i = child
    queue[i].time = time
    queue[i].number = number


@nb.njit(cache=True)
def grouped(keys: Shorts, values: Shorts, groups: int) -> tuple[Ints, Shorts]:
    """The values of each key 0 .. groups-1, in the order given: CSR int64 (groups+1,), int32. Keys are int32 (n,)."""
    ptr = np.zeros(groups + 1, np.int64)
    for key in keys:
        ptr[key + 1] += 1
    for key in range(groups):
        ptr[key + 1] += ptr[key]
    by_key = np.empty(values.size, np.int32)
    free = ptr[:-1].copy()
    for i in range(keys.size):
        by_key[free[keys[i]]] = values[i]
        free[keys[i]] += 1
    return ptr, by_key
