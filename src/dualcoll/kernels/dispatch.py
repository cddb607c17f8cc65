"""When sends begin and when they count as delivered, whatever the network does in between (docs/simulation.md §2).

Both simulators keep one queue of events, kind * S + send. A send has at most one event in it at a time. At one instant
deliveries come first, then sends that have become ready, then those whose data comes to a link; within each kind the order is
that of the sends' numbers. Records are arrays, because tuples of arrays are slow to pass. Shape letters: S sends, R ranks.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.event_queue import Queue, push

__all__ = [
    "DESK",
    "LAND",
    "MOVE",
    "READY",
    "SEND",
    "Desks",
    "Rules",
    "Sends",
    "begin_all",
    "land",
    "passed_on",
    "take_up",
]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

LAND = 0  # the last byte is in, or its reduction is done
READY = 1  # everything that the send waits for has happened
MOVE = 2  # its first byte comes to the next link

SEND = np.dtype(
    [
        ("src", np.int32),
        ("dst", np.int32),
        ("previous", np.int32),  # the send before it on its channel, or -1
        ("following", np.int32),  # the one after it
        ("waiting", np.int32),  # conditions not met yet
        ("behind", np.int32),  # the next in the line in which it waits for a place; then who gave it one, or -1
        ("ahead", np.int32),  # the reduction at its target that is to be taken up before it and has not been, or -1
        ("next", np.int32),  # the one to be taken up after it, or -1
        ("reduction", np.float64),  # seconds that it takes to reduce; 0 for a copy
        ("start", np.float64),  # seconds, as are all below; nan until known
        ("left", np.float64),
        ("arrived", np.float64),
        ("reduced", np.float64),
        ("end", np.float64),
    ]
)
# who may send at the same time: place r is for sends out of rank r, place R + r for sends into it
DESK = np.dtype(
    [
        ("room", np.int32),  # sends that may still begin
        ("first", np.int32),  # ends of the line of those that wait, or -1
        ("last", np.int32),
        ("reducing", np.float64),  # at R + r: when the reductions that rank r has taken up are done
    ]
)
Sends = NDArray[Any]  # SEND (S,)
Desks = NDArray[Any]  # DESK (2 R,)
# seconds that a channel spends on a send before its first byte moves; whether anything but the network minds when one starts
Rules = tuple[float, bool]


@nb.njit(cache=True)
def begin_all(sends: Sends, queue: Queue, rules: Rules) -> None:
    """Take up what waits for nothing."""
    for send in range(sends.size):
        if sends[send].waiting == 0:
            _ready(sends, queue, rules, send, 0.0)


@nb.njit(cache=True)
def take_up(
    sends: Sends, desks: Desks, queue: Queue, rules: Rules, started_ptr: Ints, started: Shorts, send: int, now: float
) -> None:
    """A ready send starts, once it has a place among the sends out of its source and then one among those into its target.

    ``started_ptr``, ``started`` is the CSR of the sends that wait for the start of each, int64 (S+1,), int32.
    """
    if _has_place(sends, desks, send, sends[send].src):
        _go_on(sends, desks, queue, rules, started_ptr, started, send, sends[send].src, now)


@nb.njit(cache=True)
def passed_on(sends: Sends, queue: Queue, rules: Rules, send: int, now: float, left: float) -> None:
    """The last byte leaves the source at ``left``, now or later: the channel is free for the next send from then on."""
    sends[send].left = left
    if sends[send].following >= 0:
        _less(sends, queue, rules, sends[send].following, now)


@nb.njit(cache=True)
def land(
    sends: Sends,
    desks: Desks,
    queue: Queue,
    rules: Rules,
    delivered_ptr: Ints,
    delivered: Shorts,
    started_ptr: Ints,
    started: Shorts,
    send: int,
    now: float,
) -> None:
    """The last byte is in, or has been reduced: reduce it, or deliver it and what it has kept waiting in its channel.

    ``delivered_ptr``, ``delivered`` is the CSR of the sends that wait for the delivery of each, int64 (S+1,), int32.
    """
    watched = rules[1]
    ranks = desks.size // 2
    if np.isnan(sends[send].arrived):
        sends[send].arrived = now
        if sends[send].reduction > 0:
            _reduce(sends, desks, queue, send, now)
            return
    sends[send].reduced = now
    if sends[send].previous >= 0 and np.isnan(sends[sends[send].previous].end):
        return
    while send >= 0 and not np.isnan(sends[send].reduced):
        sends[send].end = now
        for i in range(delivered_ptr[send], delivered_ptr[send + 1]):
            _less(sends, queue, rules, delivered[i], now)
        if watched and sends[send].src != sends[send].dst:
            _give_place(sends, desks, queue, rules, started_ptr, started, sends[send].src, send, now)
            _give_place(sends, desks, queue, rules, started_ptr, started, ranks + sends[send].dst, send, now)
        send = sends[send].following


@nb.njit(cache=True)
def _reduce(sends: Sends, desks: Desks, queue: Queue, send: int, now: float) -> None:
    """Take up the reduction of what has arrived, if that may be, and then those that it was ahead of."""
    desk = desks.size // 2 + sends[send].dst
    while send >= 0 and sends[send].ahead < 0 and not np.isnan(sends[send].arrived):
        desks[desk].reducing = max(now, desks[desk].reducing) + sends[send].reduction
        push(queue, desks[desk].reducing, LAND * sends.size + send)
        send = sends[send].next
        if send >= 0:
            sends[send].ahead = -1


@nb.njit(cache=True)
def _less(sends: Sends, queue: Queue, rules: Rules, send: int, now: float) -> None:
    """One condition of the send is met."""
    sends[send].waiting -= 1
    if sends[send].waiting == 0:
        _ready(sends, queue, rules, send, now)


@nb.njit(cache=True)
def _ready(sends: Sends, queue: Queue, rules: Rules, send: int, now: float) -> None:
    overhead, watched = rules
    if sends[send].previous >= 0:
        now = max(now, sends[sends[send].previous].left)
    if sends[send].src == sends[send].dst:
        sends[send].start = now
        push(queue, now, LAND * sends.size + send)
    elif watched:
        push(queue, now, READY * sends.size + send)
    else:
        sends[send].start = now
        push(queue, now + overhead, MOVE * sends.size + send)


@nb.njit(cache=True)
def _has_place(sends: Sends, desks: Desks, send: int, desk: int) -> bool:
    """Take a place at a desk if there is one, else get in line."""
    if desks[desk].room > 0:
        desks[desk].room -= 1
        return True
    if desks[desk].first < 0:
        desks[desk].first = send
    else:
        sends[desks[desk].last].behind = send
    desks[desk].last = send
    sends[send].behind = -1
    return False


@nb.njit(cache=True)
def _go_on(
    sends: Sends,
    desks: Desks,
    queue: Queue,
    rules: Rules,
    started_ptr: Ints,
    started: Shorts,
    send: int,
    desk: int,
    now: float,
) -> None:
    """With a place at this desk, go to the next one; after the last the send starts."""
    ranks = desks.size // 2
    if desk < ranks and not _has_place(sends, desks, send, ranks + sends[send].dst):
        return
    sends[send].start = now
    for i in range(started_ptr[send], started_ptr[send + 1]):
        _less(sends, queue, rules, started[i], now)
    push(queue, now + rules[0], MOVE * sends.size + send)


@nb.njit(cache=True)
def _give_place(
    sends: Sends,
    desks: Desks,
    queue: Queue,
    rules: Rules,
    started_ptr: Ints,
    started: Shorts,
    desk: int,
    giver: int,
    now: float,
) -> None:
    """Give a place to the first in line."""
    send = desks[desk].first
    if send < 0:
        desks[desk].room += 1
        return
    desks[desk].first = sends[send].behind
    sends[send].behind = giver
    _go_on(sends, desks, queue, rules, started_ptr, started, send, desk, now)
