"""Max-min rates of flows that come and go: after each change only those are filled anew whose rates it moves.

Rates are max-min fair if and only if every unit is *held* by a row: one that is full and on which nobody has more. A change
concerns the units that gained or lost a flow, and those held by a row that lost one. They are filled with all others fixed. On
the rows that they use others may then no longer be held, or have more than someone who is held there: those join, and the
filling is repeated until nobody does. What comes out is the max-min allocation up to a relative 1e-9 of rates. A row is full
at 1, and loads are parts of it per unit of rate. Lists have their length at position 0.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.water_filling import fill

__all__ = ["FLOW", "ROW", "UNIT", "USE", "Flows", "Rows", "Units", "Uses", "join", "part", "settle"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Floats = NDArray[np.float64]

SLACK = 1e-9

FLOW = np.dtype(
    [
        ("unit", np.int32),
        ("before", np.int32),  # its neighbours among the flows of its unit, or -1
        ("after", np.int32),
        ("first_use", np.int64),  # its uses are first_use .. last_use - 1
        ("last_use", np.int64),
        ("left", np.float64),  # bytes that were to go at that second
        ("since", np.float64),
        ("finish", np.float64),  # the second when none will be left at this rate
    ]
)
# what a flow puts on a row per unit of rate
USE = np.dtype([("unit", np.int32), ("row", np.int32), ("before", np.int32), ("after", np.int32), ("load", np.float64)])
# what has one rate: its first flow, the row that holds it, its position among those being filled or -1
UNIT = np.dtype([("first", np.int32), ("held", np.int32), ("mark", np.int32), ("rate", np.float64)])
# its first use, its position among the rows being filled or -1, how full it has been since when
ROW = np.dtype([("first", np.int32), ("mark", np.int32), ("used", np.float64), ("since", np.float64)])
Flows = NDArray[Any]
Uses = NDArray[Any]
Units = NDArray[Any]
Rows = NDArray[Any]


@nb.njit(cache=True)
def join(flows: Flows, uses: Uses, units: Units, rows: Rows, flow: int, picked: Shorts, touched: Shorts) -> None:
    """A flow comes. Its unit is picked, to be filled anew, and its rows are touched."""
    unit = flows[flow].unit
    flows[flow].before = -1
    flows[flow].after = units[unit].first
    if units[unit].first >= 0:
        flows[units[unit].first].before = flow
    units[unit].first = flow
    _pick(units, unit, picked)
    for use in range(flows[flow].first_use, flows[flow].last_use):
        row = uses[use].row
        uses[use].before = -1
        uses[use].after = rows[row].first
        if rows[row].first >= 0:
            uses[rows[row].first].before = use
        rows[row].first = use
        _touch(rows, row, touched)


@nb.njit(cache=True)
def part(flows: Flows, uses: Uses, units: Units, rows: Rows, flow: int, picked: Shorts, touched: Shorts) -> None:
    """A flow goes. Its unit and all that its rows hold are picked, and its rows are touched."""
    unit = flows[flow].unit
    before, after = flows[flow].before, flows[flow].after
    if before >= 0:
        flows[before].after = after
    else:
        units[unit].first = after
    if after >= 0:
        flows[after].before = before
    _pick(units, unit, picked)
    for use in range(flows[flow].first_use, flows[flow].last_use):
        row = uses[use].row
        before, after = uses[use].before, uses[use].after
        if before >= 0:
            uses[before].after = after
        else:
            rows[row].first = after
        if after >= 0:
            uses[after].before = before
        _touch(rows, row, touched)
        other = rows[row].first
        while other >= 0:
            if units[uses[other].unit].held == row:
                _pick(units, uses[other].unit, picked)
            other = uses[other].after


@nb.njit(cache=True)
def settle(flows: Flows, uses: Uses, units: Units, rows: Rows, picked: Shorts, touched: Shorts, now: float) -> Floats:
    """Give those picked their rates from now on, and whoever else these move; the list of those picked is empty then.

    Returns:
        How full each row touched is from now on, float64. The caller books how full it was, and empties the list.
    """
    kept = 0
    for i in range(1, picked[0] + 1):
        unit = picked[i]
        units[unit].mark = -1
        if units[unit].first >= 0:
            kept += 1
            picked[kept] = unit
    picked[0] = kept
    reached = 0
    while True:
        for i in range(reached, picked[0]):
            unit = picked[i + 1]
            units[unit].mark = i
            flow = units[unit].first
            while flow >= 0:
                for use in range(flows[flow].first_use, flows[flow].last_use):
                    _touch(rows, uses[use].row, touched)
                flow = flows[flow].after
        reached = picked[0]
        rate, held, used = _fill(uses, units, rows, reached, touched)
        for j in range(touched[0]):
            _pick_moved(uses, units, rows, touched[j + 1], j, rate, held, used[j], picked)
        if picked[0] == reached:
            break
    for i in range(reached):
        unit = picked[i + 1]
        flow = units[unit].first
        while flow >= 0:
            gone = units[unit].rate * (now - flows[flow].since)
            flows[flow].left = max(0.0, flows[flow].left - gone)
            flows[flow].since = now
            flows[flow].finish = now + flows[flow].left / rate[i]
            flow = flows[flow].after
        units[unit].rate = rate[i]
        units[unit].held = touched[held[i] + 1]
        units[unit].mark = -1
    picked[0] = 0
    return used


@nb.njit(cache=True)
def _fill(uses: Uses, units: Units, rows: Rows, count: int, touched: Shorts) -> tuple[Floats, Ints, Floats]:
    """Rates of the marked units, all others fixed; the position of the row that holds each, and how full the rows are."""
    ptr = np.zeros(touched[0] + 1, np.int64)
    for j in range(touched[0]):
        use = rows[touched[j + 1]].first
        ptr[j + 1] = ptr[j]
        while use >= 0:
            ptr[j + 1] += units[uses[use].unit].mark >= 0
            use = uses[use].after
    user = np.empty(ptr[-1], np.int64)
    load = np.empty(ptr[-1])
    fixed = np.zeros(touched[0])
    for j in range(touched[0]):
        use = rows[touched[j + 1]].first
        k = ptr[j]
        while use >= 0:
            unit = uses[use].unit
            if units[unit].mark >= 0:
                user[k] = units[unit].mark
                load[k] = uses[use].load
                k += 1
            else:
                fixed[j] += uses[use].load * units[unit].rate
            use = uses[use].after
    rate, step, full, _ = fill(ptr, user, load, np.maximum(0.0, 1 - fixed), count)
    used = fixed
    for j in range(touched[0]):
        for k in range(ptr[j], ptr[j + 1]):
            used[j] += load[k] * rate[user[k]]
    return rate, full[step], used


@nb.njit(cache=True)
def _pick_moved(
    uses: Uses, units: Units, rows: Rows, row: int, at: int, rate: Floats, held: Ints, used: float, picked: Shorts
) -> None:
    """Pick the fixed units on a row (the ``at``-th touched) that it no longer holds, or that have more than one it holds."""
    most = 0.0
    least = np.inf
    use = rows[row].first
    while use >= 0:
        unit = uses[use].unit
        mark = units[unit].mark
        own = rate[mark] if 0 <= mark < rate.size else units[unit].rate
        most = max(most, own)
        if 0 <= mark < rate.size and held[mark] == at:
            least = min(least, own)
        use = uses[use].after
    use = rows[row].first
    while use >= 0:
        unit = uses[use].unit
        if units[unit].mark < 0:
            loose = used < 1 - SLACK or units[unit].rate < most * (1 - SLACK)
            if units[unit].rate > least * (1 + SLACK) or (units[unit].held == row and loose):
                _pick(units, unit, picked)
        use = uses[use].after


@nb.njit(cache=True)
def _pick(units: Units, unit: int, picked: Shorts) -> None:
    if units[unit].mark < 0:
        units[unit].mark = picked[0]
        picked[0] += 1
        picked[picked[0]] = unit


@nb.njit(cache=True)
def _touch(rows: Rows, row: int, touched: Shorts) -> None:
    if rows[row].mark < 0:
        rows[row].mark = touched[0]
        touched[0] += 1
        touched[touched[0]] = row
