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
# first int64 (T,), extra float64 (T,), route int32 (S,), size float64 (S,), service_ptr int64 (S+1,), tick. See
# dualcoll.simulation.prepare.Way. (A plain tuple, for a class of its own would have to stay where compiled code looks for it.)
WayColumns = tuple[Ints, Ints, Shorts, Floats, Floats, Ints, Floats, Shorts, Floats, Ints, float]


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
) -> tuple[Floats, Floats]:
    """Run all sends that can run, which fills in their times.

    Args:
        sends, desks, queue, rules, delivered_ptr, delivered, started_ptr, started: see :mod:`dualcoll.kernels.dispatch`.
        way: see there. rows: K.
        cut_through: whether a byte goes on before the send's last byte has come.

    Returns:
        Begin and end of every service, float64 (N,), seconds.
    """
    stage_ptr, place_ptr, row_of, cost, latency, first, extra, routes, size, service_ptr, tick = way
    total = sends.size
    free = np.zeros(rows)
    begun = np.full(service_ptr[total], np.nan)
    done = np.full(service_ptr[total], np.nan)
    stage = np.zeros(total, np.int32)
    tail = np.zeros(total)
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
        head = now
        last = tail[send]
        left = now
        for place in range(place_ptr[at], place_ptr[at + 1]):
            row = row_of[place]
            begin = max(now, free[row])
            end = begin + np.rint(cost[place] * size[send] / tick) * tick
            free[row] = end
            begun[shift + place] = begin
            done[shift + place] = end
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
    return begun, done


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
