"""The alpha-beta simulation: links serve one send after the other (docs/simulation.md §3). O((S + D + N) log S).

Shape letters: S sends, D dependencies, T routes, G stages of all routes, H places of all stages, K rows, N services.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.dispatch import LAND, MOVE, READY, Desks, Rules, Sends, begin_all, land, passed_on, take_up
from dualcoll.kernels.event_queue import Queue, pop, push

__all__ = ["WayColumns", "alpha_beta", "booked"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Floats = NDArray[np.float64]


# How sends travel: stage_ptr int64 (T+1,), place_ptr int64 (G+1,), row int32 (H,), cost float64 (H,), latency float64 (H,),
# first int64 (T,), extra float64 (T,), route int32 (S,), size float64 (S,), service_ptr int64 (S+1,), leader int32 (N,),
# turn_ptr int64 (K+1,), turns int32, tick. See dualcoll.simulation.prepare.Way. (A plain tuple, for a class of its own would
# have to stay where compiled code looks for it.)
WayColumns = tuple[Ints, Ints, Shorts, Floats, Floats, Ints, Floats, Shorts, Floats, Ints, Shorts, Ints, Shorts, float]


@nb.njit(cache=True)
def alpha_beta(
    sends: Sends,
    desks: Desks,
    queue: Queue,
    rules: Rules,
    delivered_ptr: Ints,
    delivered: Shorts,
    started_ptr: Ints,
    started: Shorts,
    way: WayColumns,
    rows: int,
    cut_through: bool,
) -> tuple[Floats, Floats, Shorts]:
    """Run all sends that can run, which fills in their times.

    Args:
        sends, desks, queue, rules, delivered_ptr, delivered, started_ptr, started: see :mod:`dualcoll.kernels.dispatch`.
        way: see there. rows: K.
        cut_through: whether a byte goes on before the send's last byte has come.

    Returns:
        Begin and end of every service, float64 (N,), seconds, and for each leader the service that was first to come and serves
        for all that it leads, int32 (N,), or nothing where services have no leaders.
    """
    (
        stage_ptr,
        place_ptr,
        row_of,
        cost,
        latency,
        first,
        extra,
        routes,
        size,
        service_ptr,
        leader,
        turn_ptr,
        turns,
        tick,
    ) = way
    total = sends.size
    free = np.zeros(rows)
    begun = np.full(service_ptr[total], np.nan)
    done = np.full(service_ptr[total], np.nan)
    stage = np.zeros(total, np.int32)
    tail = np.zeros(total)
    led = leader.size > 0  # the common case, links that serve whom they can and no copies, should pay for neither
    ordered = turns.size > 0
    taken = np.full(leader.size, -1, np.int32)
    served = np.zeros(rows, np.int64)  # turns taken
    parked = np.full(leader.size if ordered else 0, -1, np.int32)  # the last send that waits for the turn of a service
    behind = np.full(total if ordered else 0, -1, np.int32)  # the one that waits with it
    begin_all(sends, queue, rules)
    while queue[0].number > 0:
        now = queue[1].time
        event = queue[1].number
        pop(queue)
        if event < READY * total:
            land(sends, desks, queue, rules, delivered_ptr, delivered, started_ptr, started, event, now)
            continue
        if event < MOVE * total:
            take_up(sends, desks, queue, rules, started_ptr, started, event - READY * total, now)
            continue
        send = event - MOVE * total
        route = routes[send]
        at = stage_ptr[route] + stage[send]
        shift = service_ptr[send] - place_ptr[stage_ptr[route]]
        if ordered:
            waits = _not_yet(place_ptr[at], place_ptr[at + 1], shift, row_of, leader, turn_ptr, turns, served, taken)
            if waits >= 0:
                behind[send] = parked[waits]
                parked[waits] = send
                continue
        head = now
        last = tail[send]
        left = now
        for place in range(place_ptr[at], place_ptr[at + 1]):
            row = row_of[place]
            service = shift + place
            if led and taken[leader[service]] >= 0:
                begin = max(now, begun[taken[leader[service]]])
                end = max(now, done[taken[leader[service]]])
            else:
                begin = max(now, free[row])
                end = begin + np.rint(cost[place] * size[send] / tick) * tick
                free[row] = end
                if led:
                    taken[leader[service]] = service
                if ordered:
                    _next_turn(queue, row, turn_ptr, turns, served, parked, behind, now, MOVE * total)
            begun[service] = begin
            done[service] = end
            out = max(end, tail[send])  # the last byte is not out before it is in
            left = max(left, out)
            head = max(head, begin + latency[place])
            last = max(last, out + latency[place])
        tail[send] = last
        if stage[send] == first[route]:
            passed_on(sends, queue, rules, send, now, left)
        stage[send] += 1
        if at + 1 == stage_ptr[route + 1]:
            push(queue, last + extra[route], LAND * total + send)
        else:
            push(queue, head if cut_through else last, MOVE * total + send)
    return begun, done, taken


@nb.njit(cache=True)
def _not_yet(
    first: int,
    last: int,
    shift: int,
    row_of: Shorts,
    leader: Shorts,
    turn_ptr: Ints,
    turns: Shorts,
    served: Ints,
    taken: Shorts,
) -> int:
    """The service at one of the places first .. last - 1 of a send whose turn has not come yet, or -1."""
    for place in range(first, last):
        lead = leader[shift + place]
        if taken[lead] < 0 and turns[turn_ptr[row_of[place]] + served[row_of[place]]] != lead:
            return int(lead)
    return -1


@nb.njit(cache=True)
def _next_turn(
    queue: Queue,
    row: int,
    turn_ptr: Ints,
    turns: Shorts,
    served: Ints,
    parked: Shorts,
    behind: Shorts,
    now: float,
    move: int,
) -> None:
    """A turn of the row has been taken: who waits for the next one looks again; ``move`` is the first number of such events."""
    served[row] += 1
    if turn_ptr[row] + served[row] == turn_ptr[row + 1]:
        return
    turn = turns[turn_ptr[row] + served[row]]
    send = parked[turn]
    parked[turn] = -1
    while send >= 0:
        push(queue, now, move + send)
        send = behind[send]


@nb.njit(cache=True)
def booked(row: Shorts, begin: Floats, end: Floats, rows: int, bins: int, width: float) -> Floats:
    """The seconds for which each row serves in each bin of time, float64 (rows, bins).

    Args:
        row, begin, end: of each service, int32 and float64 (N,).
        rows, bins, width: number of rows and bins, seconds of a bin; all services are over by ``bins * width``.
    """
    spent = np.zeros((rows, bins))
    for i in range(row.size):
        b = min(bins - 1, int(begin[i] / width)) if width > 0 else bins
        while b < bins and end[i] > b * width:
            spent[row[i], b] += max(0.0, min(end[i], (b + 1) * width) - max(begin[i], b * width))
            b += 1
    return spent
