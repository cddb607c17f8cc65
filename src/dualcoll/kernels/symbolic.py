"""Symbolic execution of a schedule: an order in which it can run, races, and sets of contributions (docs/semantics.md).

Shape letters: S sends, D dependencies, C chunks, R ranks, W words of a set of ranks.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["DOUBLE", "EMPTY", "LOST", "MISSING", "UNFOUNDED", "contents", "linear_order", "unordered"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Words = NDArray[np.uint64]

EMPTY = 0  # a send of what is not there
UNFOUNDED = 1  # a reduction into a slot that holds nothing
DOUBLE = 2  # a contribution counted twice
LOST = 3  # a promised slot that holds nothing in the end
MISSING = 4  # a promised slot that lacks a contribution


@nb.njit(cache=True)
def linear_order(ptr: Ints, depends: Shorts, earlier: Shorts, opens: Shorts) -> Shorts:
    """An order of the sends that all conditions allow, int32; shorter than S where there is none for all. O(S + D).

    Args:
        ptr, depends: CSR of dependencies, int64 (S+1,), int32 (D,).
        earlier: int32 (S,), a send that must come before each, or -1.
        opens: int32 (D,), for each dependency the send that may start only after the row's send has started, or -1.
    """
    sends = ptr.size - 1
    waiting = np.zeros(sends, np.int32)
    followers = np.zeros(sends + 1, np.int64)
    for send in range(sends):
        waiting[send] += ptr[send + 1] - ptr[send]
        for i in range(ptr[send], ptr[send + 1]):
            followers[depends[i] + 1] += 1
            if opens[i] >= 0:
                waiting[opens[i]] += 1
                followers[send + 1] += 1
        if earlier[send] >= 0:
            waiting[send] += 1
            followers[earlier[send] + 1] += 1
    for send in range(sends):
        followers[send + 1] += followers[send]
    follower = np.empty(followers[-1], np.int32)
    free = followers[:-1].copy()
    for send in range(sends):
        for i in range(ptr[send], ptr[send + 1]):
            follower[free[depends[i]]] = send
            free[depends[i]] += 1
            if opens[i] >= 0:
                follower[free[send]] = opens[i]
                free[send] += 1
        if earlier[send] >= 0:
            follower[free[earlier[send]]] = send
            free[earlier[send]] += 1
    order = np.empty(sends, np.int32)
    done = 0
    for send in range(sends):
        if waiting[send] == 0:
            order[done] = send
            done += 1
    at = 0
    while at < done:
        for i in range(followers[order[at]], followers[order[at] + 1]):
            waiting[follower[i]] -= 1
            if waiting[follower[i]] == 0:
                order[done] = follower[i]
                done += 1
        at += 1
    return order[:done].copy()


@nb.njit(cache=True)
def unordered(
    order: Shorts,
    ptr: Ints,
    depends: Shorts,
    earlier: Shorts,
    needed_ptr: Ints,
    needed: Shorts,
    reads: Ints,
    writes: Ints,
    limit: int,
    budget: int,
) -> tuple[Shorts, bool]:
    """Pairs of sends that conflict over a slot and that nothing orders.

    A pair is looked for among the dependencies, then by a search backwards from the later send through all that has happened
    before it, which leaves out what comes before the earlier one in ``order``.

    Args:
        order: int32 (S,), an order in which the sends can run. ptr, depends, earlier: as for :func:`linear_order`.
        needed_ptr, needed: CSR of the sends that each must follow because of the slots; both by place in ``order``.
        reads, writes: int64 (S,), slots.
        limit: number of pairs to report at most. budget: steps of all searches together.

    Returns:
        Pairs (later, earlier) int32 (n, 2), and whether the budget sufficed; once it is used up, pairs count as unordered.
    """
    sends = order.size
    place = np.empty(sends, np.int32)
    for at in range(sends):
        place[order[at]] = at
    pairs = np.empty((limit, 2), np.int32)
    found = 0
    wanted = np.full(sends, -1, np.int32)  # the send that must be shown to follow this one
    seen = np.full(2 * sends, -1, np.int32)  # event 2 s: start of send s; 2 s + 1: its delivery
    stack = np.empty(2 * sends + 2, np.int64)
    for at in range(sends):
        send = order[at]
        if needed_ptr[at] == needed_ptr[at + 1]:
            continue
        for i in range(ptr[send], ptr[send + 1]):
            seen[2 * depends[i] + 1] = send
        missing = 0
        first = at
        for i in range(needed_ptr[at], needed_ptr[at + 1]):
            other = order[needed[i]]
            if seen[2 * other + 1] != send:
                wanted[other] = send
                missing += 1
                first = min(first, needed[i])
        for stage in range(2):  # what happens before the start; what else happens before the delivery
            top = 0
            if missing > 0:
                if earlier[send] >= 0 and place[earlier[send]] >= first:
                    before = 2 * earlier[send] + stage
                    if seen[before] != send:
                        seen[before] = send
                        stack[top] = before
                        top += 1
                        missing -= stage == 1 and wanted[earlier[send]] == send
                for i in range(ptr[send] if stage == 0 else ptr[send + 1], ptr[send + 1]):
                    if place[depends[i]] >= first:  # on top: data dependencies lead to the target soonest
                        stack[top] = 2 * depends[i] + 1
                        top += 1
            while top > 0 and missing > 0 and budget > 0:
                budget -= 1
                top -= 1
                inner, delivery = stack[top] >> 1, stack[top] & 1
                if earlier[inner] >= 0 and place[earlier[inner]] >= first:
                    before = 2 * earlier[inner] + delivery
                    if seen[before] != send:
                        seen[before] = send
                        stack[top] = before
                        top += 1
                        missing -= delivery == 1 and wanted[earlier[inner]] == send
                if delivery == 1 and seen[2 * inner] != send:
                    seen[2 * inner] = send
                    stack[top] = 2 * inner
                    top += 1
                for i in range(ptr[inner + 1] if delivery == 1 else ptr[inner], ptr[inner + 1]):
                    before = 2 * depends[i] + 1
                    if place[depends[i]] >= first and seen[before] != send:
                        seen[before] = send
                        stack[top] = before
                        top += 1
                        missing -= wanted[depends[i]] == send
            for i in range(needed_ptr[at], needed_ptr[at + 1] if missing > 0 else needed_ptr[at]):
                other = order[needed[i]]
                at_once = writes[other] == reads[send]  # it reads what the other wrote: that must be there at its start
                if at_once == (stage == 0) and seen[2 * other + 1] != send:
                    pairs[found] = send, other
                    found += 1
                    if found == limit:
                        return pairs, budget > 0
    return pairs[:found].copy(), budget > 0


@nb.njit(cache=True)
def _lowest(word: np.uint64) -> int:
    """Position of the lowest bit of a word that is not 0."""
    at = 0
    while not word >> np.uint64(at) & np.uint64(1):
        at += 1
    return at


@nb.njit(cache=True)
def contents(
    send_ptr: Ints,
    sends: Shorts,
    src_slot: Ints,
    dst_slot: Ints,
    merges: NDArray[np.bool_],
    source: Shorts,
    members: Words,
    group: Shorts,
    slot_ptr: Ints,
    promise_ptr: Ints,
    promises: Ints,
    ranks: int,
    limit: int,
) -> tuple[Ints, int]:
    """Run the sends on sets of contributions, the data of one chunk after the other. O(S W + R C W).

    Slots are numbered within their data: ``k * ranks + rank`` for the k-th chunk that takes the data, the chunk where it
    begins being the 0-th. After the first wrong send of some data the rest of it is not looked at.

    Args:
        send_ptr, sends: CSR of the sends of each data, in an order in which they can run.
        src_slot, dst_slot, merges: (S,), slots read and written, and whether it reduces.
        source: int32 (n,), the rank where each data begins, or -1 for all of its group.
        members: uint64 (G, W), the ranks of each group as bits. group: int32 (n,), the group of each data.
        slot_ptr: int64 (n+1,), numbers of slots summed up.
        promise_ptr, promises: CSR of the slots promised for each data.
        ranks: R. limit: number of errors to report in full.

    Returns:
        Errors int64 (k, 5) of (kind, send or last send into the slot, data, slot, rank counted twice or missing), and the
        number of all errors.
    """
    words = members.shape[1]
    errors = np.empty((limit, 5), np.int64)
    count = 0
    most = 0
    for data in range(source.size):
        most = max(most, slot_ptr[data + 1] - slot_ptr[data])
    held = np.zeros((most, words), np.uint64)
    filled = np.full(most, -1, np.int64)  # the data for which a slot holds something
    last = np.full(most, -1, np.int64)
    touched = np.full(most, -1, np.int64)
    one = np.uint64(1)
    for data in range(source.size):
        every = source[data] < 0
        width = words if every else 1  # a set of one source needs one bit
        for rank in range(ranks if every else 0):
            if members[group[data], rank >> 6] >> np.uint64(rank & 63) & one:
                filled[rank] = data
                held[rank, :] = 0
                held[rank, rank >> 6] = one << np.uint64(rank & 63)
        if not every:
            filled[source[data]] = data
            held[source[data], 0] = one
        sound = True
        for i in range(send_ptr[data], send_ptr[data + 1]):
            send = sends[i]
            source_slot, target = src_slot[send], dst_slot[send]
            kind = -1
            witness = 0
            if filled[source_slot] != data:
                kind = EMPTY
            elif merges[send] and filled[target] != data:
                kind = UNFOUNDED
            elif merges[send]:
                for word in range(width):
                    both = held[source_slot, word] & held[target, word]
                    if both != 0 and kind < 0:
                        kind = DOUBLE
                        witness = 64 * word + _lowest(both) if every else source[data]
                    held[target, word] |= held[source_slot, word]
            else:
                filled[target] = data
                for word in range(width):
                    held[target, word] = held[source_slot, word]
            last[target] = send
            touched[target] = data
            if kind >= 0:
                if count < limit:
                    errors[count] = np.array([kind, send, data, target, witness])
                count += 1
                sound = False
                break
        for i in range(promise_ptr[data], promise_ptr[data + 1] if sound else promise_ptr[data]):
            slot = promises[i]
            kind = LOST if filled[slot] != data else -1
            witness = 0
            for word in range(width if every and kind < 0 else 0):
                lacks = members[group[data], word] & ~held[slot, word]
                if lacks != 0 and kind < 0:
                    kind = MISSING
                    witness = 64 * word + _lowest(lacks)
            if kind >= 0:
                if count < limit:
                    errors[count] = np.array([kind, last[slot] if touched[slot] == data else -1, data, slot, witness])
                count += 1
    return errors[: min(count, limit)].copy(), count
