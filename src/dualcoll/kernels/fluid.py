"""The fluid simulation: sends under way share the rows by max-min (docs/simulation.md §4).

Rates change whenever a send begins or ends. What happens within a relative 1e-11 of one moment happens at that moment. Shape
letters as in :mod:`dualcoll.kernels.alpha_beta`, and B bins of time.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.dispatch import LAND, MOVE, READY, Desks, Rules, Sends, begin_all, land, passed_on, take_up
from dualcoll.kernels.event_queue import Queue, pop, push
from dualcoll.kernels.shared_rates import Flows, Rows, Units, Uses, join, part, settle

__all__ = ["fluid"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Floats = NDArray[np.float64]

AT_ONCE = 1e-11


@nb.njit(cache=True)
def fluid(
    sends: Sends,
    desks: Desks,
    queue: Queue,
    rules: Rules,
    delivered_ptr: Ints,
    delivered: Shorts,
    started_ptr: Ints,
    started: Shorts,
    flows: Flows,
    uses: Uses,
    units: Units,
    rows: Rows,
    delay: Floats,
    usage: Floats,
    width: float,
) -> tuple[float, Shorts]:
    """Run all sends that can run, which fills in their times.

    Args:
        sends, desks, queue, rules, delivered_ptr, delivered, started_ptr, started: see :mod:`dualcoll.kernels.dispatch`.
        flows: FLOW (S,), of which ``left`` is the size. uses, units, rows: see :mod:`dualcoll.kernels.shared_rates`.
        delay: float64 (S,), seconds from the last byte's leaving the source to its arrival.
        usage: output, float64 (K, B), the seconds for which each row is in use in each bin of time, as if at full speed; an
            even number of bins.
        width: first guess of the seconds of a bin; doubled while B bins do not last.

    Returns:
        Seconds of a bin, and int32 (S,) the row that held each send in the end, -1 for none.
    """
    total = sends.size
    held_by = np.full(total, -1, np.int32)
    active = np.empty(total, np.int32)
    picked = np.zeros(units.size + 1, np.int32)
    touched = np.zeros(rows.size + 1, np.int32)
    count = 0
    now = 0.0
    begin_all(sends, queue, rules)
    while True:
        while queue[0].number > 0 and queue[1].time <= now * (1 + AT_ONCE):
            event = queue[1].number
            send = event - MOVE * total
            pop(queue)
            if event < READY * total:
                land(sends, desks, queue, rules, delivered_ptr, delivered, started_ptr, started, event, now)
            elif event < MOVE * total:
                take_up(sends, desks, queue, rules, started_ptr, started, event - READY * total, now)
            elif flows[send].left == 0:
                _leave(sends, queue, rules, send, now, delay[send])
            else:
                flows[send].since = now
                join(flows, uses, units, rows, send, picked, touched)
                active[count] = send
                count += 1
        if touched[0] > 0:
            width = _fold(usage, now, width)
            used = settle(flows, uses, units, rows, picked, touched, now)
            for j in range(used.size):
                row = touched[j + 1]
                _book(usage[row], rows[row].used, rows[row].since, now, width)
                rows[row].used = used[j]
                rows[row].since = now
                rows[row].mark = -1
            touched[0] = 0
        following = queue[1].time if queue[0].number > 0 else np.inf
        for k in range(count):
            following = min(following, flows[active[k]].finish)
        if following == np.inf:
            break
        now = following
        kept = 0
        for k in range(count):
            send = active[k]
            if flows[send].finish > now * (1 + AT_ONCE):
                active[kept] = send
                kept += 1
                continue
            held_by[send] = units[flows[send].unit].held
            part(flows, uses, units, rows, send, picked, touched)
            _leave(sends, queue, rules, send, now, delay[send])
        count = kept
    return _fold(usage, now, width), held_by


@nb.njit(cache=True)
def _leave(sends: Sends, queue: Queue, rules: Rules, send: int, now: float, delay: float) -> None:
    """The last byte of a send leaves its source."""
    passed_on(sends, queue, rules, send, now, now)
    push(queue, now + delay, LAND * sends.size + send)


@nb.njit(cache=True)
def _fold(usage: Floats, now: float, width: float) -> float:
    """Make bins wide enough to reach that far, by joining every two; returns their width."""
    bins = usage.shape[1]
    while now > bins * width:
        for row in range(usage.shape[0]):
            for b in range(bins // 2):
                usage[row, b] = usage[row, 2 * b] + usage[row, 2 * b + 1]
            usage[row, bins // 2 :] = 0.0
        width *= 2
    return width


@nb.njit(cache=True)
def _book(usage: Floats, used: float, since: float, now: float, width: float) -> None:
    """Add the use of one row to its bins (B,)."""
    for b in range(int(since / width), min(usage.size - 1, int(now / width)) + 1):
        usage[b] += used * max(0.0, min(now, (b + 1) * width) - max(since, b * width))
