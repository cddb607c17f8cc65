"""Dependencies of sends from the slots they read and write, in one pass over the sends. O(S + D)."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["slot_dependencies"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]


@nb.njit(cache=True)
def slot_dependencies(
    reads: Ints, writes: Ints, merges: NDArray[np.bool_], slots: int, extra_ptr: Ints, extra: Shorts
) -> tuple[Ints, Shorts]:
    """For each send the earlier ones that it must follow, given what each reads and writes.

    Accesses of a slot form groups that follow one another: reads, a copy, or reductions that commute. Whoever joins a group
    follows all of the group before it; groups further back are followed through that one.

    Args:
        reads, writes: int64 (S,), the slot that each send reads and writes, 0 .. slots-1. merges: bool (S,), whether it
            reduces into the slot it writes.
        slots: number of slots.
        extra_ptr, extra: CSR of further sends to follow, int64 (S+1,), int32.

    Returns:
        CSR ptr int64 (S+1,), int32 (D,); each row ascending, without repetition.
    """
    sends = reads.size
    writers = np.full(slots, -1, np.int32)  # head of the list of the last group of writes
    readers = np.full(slots, -1, np.int32)  # head of the list of reads since then
    before = np.full(slots, -1, np.int32)  # what the last group of writes follows
    before_reads = np.zeros(slots, np.bool_)  # whether that is a list of reads
    next_writer = np.full(sends, -1, np.int32)
    next_reader = np.full(sends, -1, np.int32)
    listed = np.full(sends, -1, np.int32)
    ptr = np.zeros(sends + 1, np.int64)
    found = np.empty(max(16, 2 * sends), np.int32)
    used = 0
    for send in range(sends):
        start = used
        source, target = reads[send], writes[send]
        joins = merges[send] and readers[target] < 0 and writers[target] >= 0 and merges[writers[target]]
        if not joins:
            before_reads[target] = readers[target] >= 0
            before[target] = readers[target] if before_reads[target] else writers[target]
            writers[target] = -1
            readers[target] = -1
        for turn in range(2):
            through_reads = turn == 1 and before_reads[target]
            other = writers[source] if turn == 0 else before[target]
            while other >= 0:
                if listed[other] != send:
                    listed[other] = send
                    if used == found.size:
                        found = np.concatenate((found, np.empty(found.size, np.int32)))
                    found[used] = other
                    used += 1
                other = next_reader[other] if through_reads else next_writer[other]
        for i in range(extra_ptr[send], extra_ptr[send + 1]):
            if listed[extra[i]] != send:
                listed[extra[i]] = send
                if used == found.size:
                    found = np.concatenate((found, np.empty(found.size, np.int32)))
                found[used] = extra[i]
                used += 1
        found[start:used].sort()
        next_writer[send] = writers[target]
        writers[target] = send
        next_reader[send] = readers[source]
        readers[source] = send
        ptr[send + 1] = used
    return ptr, found[:used].copy()
