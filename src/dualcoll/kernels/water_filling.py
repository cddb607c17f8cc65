"""Max-min fair rates by water-filling: raise all rates together, and fix those on each row as it fills."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.shortest_paths import heap_pop, heap_push

__all__ = ["fill"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@nb.njit(cache=True)
def _share(row: int, ptr: Ints, user: Ints, load: Floats, room: float, rate: Floats) -> float:
    """The rate at which a row fills, if the rates fixed so far stay; inf where all of its users are fixed."""
    rising = 0.0
    for k in range(ptr[row], ptr[row + 1]):
        fixed = rate[user[k]]
        if fixed == np.inf:
            rising += load[k]
        else:
            room -= load[k] * fixed
    return room / rising if rising > 0 else np.inf


@nb.njit(cache=True)
def fill(ptr: Ints, user: Ints, load: Floats, capacity: Floats, users: int) -> tuple[Floats, Ints, Ints, Floats]:
    """Max-min fair rates of users that load capacity rows in proportion to their rate.

    The rate at which a row fills only rises as others fill, so the head of a heap of rows is computed anew until it stays at
    the head. Every sum is made from scratch: nothing is lost by subtracting one user after the other.

    Args:
        ptr, user, load: CSR of the users of each row, int64 (M+1,) and (nnz,), and what they put on it per unit of rate,
            float64 (nnz,), positive.
        capacity: float64 (M,), not negative.
        users: their number T.

    Returns:
        rate: float64 (T,), inf for those that load nothing. step: int64 (T,), the iteration that fixed it, -1 if none did.
        row, level: int64 and float64 (K,), of each iteration the row that was full and the rate then; never falling.
    """
    rows = capacity.size
    rate = np.full(users, np.inf)
    step = np.full(users, -1, np.int64)
    full = np.empty(rows, np.int64)
    level = np.empty(rows)
    keys = np.empty(rows)
    items = np.empty(rows, np.int64)
    waiting = 0
    for e in range(rows):
        key = _share(e, ptr, user, load, capacity[e], rate)
        if key < np.inf:
            waiting = heap_push(keys, items, waiting, key, e)
    steps = 0
    water = 0.0
    while waiting > 0:
        e = items[0]
        before = keys[0]
        now = _share(e, ptr, user, load, capacity[e], rate)
        if now > before:
            waiting = heap_pop(keys, items, waiting)
            if now < np.inf:
                waiting = heap_push(keys, items, waiting, now, e)
            continue
        waiting = heap_pop(keys, items, waiting)
        water = max(water, now)  # rounding alone could let it fall
        for k in range(ptr[e], ptr[e + 1]):
            if rate[user[k]] == np.inf:
                rate[user[k]] = water
                step[user[k]] = steps
        full[steps] = e
        level[steps] = water
        steps += 1
    return rate, step, full[:steps], level[:steps]
