"""Waves of sends: how many sends must follow one another before each. O(S + D)."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["send_waves"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]


@nb.njit(cache=True)
def send_waves(
    order: Shorts,
    reads: Ints,
    writes: Ints,
    merges: NDArray[np.bool_],
    slots: int,
    ptr: Ints,
    depends: Shorts,
    earlier: Shorts,
    beside: NDArray[np.bool_],
) -> Shorts:
    """The wave of each send: above that of all it depends on, of all whose slots it reads or writes after them, and of the one
    before it on its channel unless they stand side by side.

    Reductions into one slot with nothing between them may be of one wave.

    Args:
        order: int32 (S,), an order in which the sends can run.
        reads, writes: int64 (S,), the slot that each send reads and writes, 0 .. slots-1. merges: bool (S,), whether it
            reduces into the slot it writes.
        slots: number of slots.
        ptr, depends: CSR of dependencies, int64 (S+1,), int32 (D,).
        earlier: int32 (S,), the send before each on its channel, or -1. beside: bool (S,), whether they stand side by side.

    Returns:
        int32 (S,), from 0.
    """
    wave = np.zeros(order.size, np.int32)
    merged = np.full(slots, -1, np.int32)  # the last wave that reduces into the slot
    copied = np.full(slots, -1, np.int32)  # the last wave that copies into the slot
    read = np.full(slots, -1, np.int32)  # the last wave that reads the slot
    for send in order:
        source, target = reads[send], writes[send]
        last = max(merged[source], copied[source], read[target], copied[target])
        if not merges[send]:
            last = max(last, merged[target])
        for i in range(ptr[send], ptr[send + 1]):
            last = max(last, wave[depends[i]])
        if earlier[send] >= 0:
            last = max(last, wave[earlier[send]] - (1 if beside[send] else 0))
        wave[send] = last + 1
        read[source] = max(read[source], last + 1)
        if merges[send]:
            merged[target] = max(merged[target], last + 1)
        else:
            copied[target] = last + 1
    return wave
