"""Whole chunks on given paths: which path each takes, and in which epochs it starts (docs/time-expanded.md, rule 3).

Paths are chosen so that no row is loaded much more than another: one by one, then by moves that lower Σ_m (load_m / rate_m)^8.
Epochs are filled one after the other, the chunk first whose fullest remaining row has most work left (longest remaining work).
Shape letters: J jobs (chunks to deliver), P paths, L legs (from holder to holder), H hops of legs, M rows, K epochs.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.start_windows import Windows, fits, take

__all__ = ["Legs", "balance", "path_schedule"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

POWER = 8.0


class Legs(NamedTuple):
    """Jobs' legs and their hops' rows as CSR, int64 (J+1,), (L+1,), (H,); epochs from a leg's start to each hop (H,) and to its
    end (L,).
    """

    leg_ptr: Ints
    hop_ptr: Ints
    row: Ints
    offset: Ints
    delay: Ints


@nb.njit(cache=True)
def _rise(loads: Floats, rate: Floats, row: Ints, begin: int, end: int, amount: float) -> float:
    """By how much the potential rises with so much more on the rows of one path."""
    rise = 0.0
    for i in range(begin, end):
        m = row[i]
        rise += ((loads[m] + amount) / rate[m]) ** POWER - (loads[m] / rate[m]) ** POWER
    return rise


@nb.njit(cache=True)
def _load(loads: Floats, row: Ints, begin: int, end: int, amount: float) -> None:
    for i in range(begin, end):
        loads[row[i]] += amount


@nb.njit(cache=True)
def balance(ptr: Ints, count: Ints, volume: Floats, row_ptr: Ints, row: Ints, rate: Floats, rounds: int) -> Ints:
    """Whole chunks on each path, int64 (P,).

    Args:
        ptr: paths of each demand, int64 (D+1,). count: int64 (D,), its chunks.
        volume: float64 (P,), the fractional solution; only its whole parts and its paths count.
        row_ptr, row: the rows of each path as often as it uses them, int64 (P+1,), (nnz,).
        rate: float64 (M,), scaled so that loads over rates are about 1. rounds: most rounds of moves.
    """
    chosen = np.zeros(volume.size, np.int64)
    loads = np.zeros(rate.size)
    for p in range(volume.size):
        chosen[p] = int(volume[p] + 1e-6)
        _load(loads, row, row_ptr[p], row_ptr[p + 1], chosen[p])
    for d in range(count.size):
        while chosen[ptr[d] : ptr[d + 1]].sum() < count[d]:
            best, least = ptr[d], np.inf
            for p in range(ptr[d], ptr[d + 1]):
                rise = _rise(loads, rate, row, row_ptr[p], row_ptr[p + 1], 1.0)
                if rise < least:
                    best, least = p, rise
            chosen[best] += 1
            _load(loads, row, row_ptr[best], row_ptr[best + 1], 1.0)
    for _ in range(rounds):
        moved = False
        for d in range(count.size):
            for p in range(ptr[d], ptr[d + 1]):
                if chosen[p] == 0 or ptr[d + 1] - ptr[d] == 1:
                    continue
                falls = _rise(loads, rate, row, row_ptr[p], row_ptr[p + 1], -1.0)
                _load(loads, row, row_ptr[p], row_ptr[p + 1], -1.0)
                best, least = p, -falls * (1 - 1e-9)
                for q in range(ptr[d], ptr[d + 1]):
                    rise = _rise(loads, rate, row, row_ptr[q], row_ptr[q + 1], 1.0) if q != p else np.inf
                    if rise < least:
                        best, least = q, rise
                _load(loads, row, row_ptr[best], row_ptr[best + 1], 1.0)
                chosen[p] -= 1
                chosen[best] += 1
                moved = moved or best != p
        if not moved:
            break
    return chosen


@nb.njit(cache=True)
def _may_start(windows: Windows, legs: Legs, leg: int, epoch: int) -> bool:
    begin, end = legs.hop_ptr[leg], legs.hop_ptr[leg + 1]
    for h in range(begin, end):
        if windows.closed[legs.row[h], epoch + legs.offset[h]]:
            return False
    for h in range(begin + 1, end):
        again = False
        for earlier in range(begin, h):
            again = again or legs.row[earlier] == legs.row[h]
        if not again:
            continue
        for earlier in range(begin, h):
            windows.starts[legs.row[earlier], epoch + legs.offset[earlier]] += 1
        good = fits(windows, legs.row[h], epoch + legs.offset[h])
        for earlier in range(begin, h):
            windows.starts[legs.row[earlier], epoch + legs.offset[earlier]] -= 1
        if not good:
            return False
    return True


@nb.njit(cache=True)
def _rank(legs: Legs, at: Ints, work: Floats, order: Ints, active: Ints, due: Ints) -> Ints:
    """Active jobs, the first due first, then by the most work left on any row still to use, then in the given order."""
    key = np.empty(active.size)
    spread = 1.0 / (1.0 + order.size)
    for i in range(active.size):
        job = active[i]
        most = 0.0
        for h in range(legs.hop_ptr[at[job]], legs.hop_ptr[legs.leg_ptr[job + 1]]):
            most = max(most, work[legs.row[h]])
        key[i] = -np.floor(most + 0.5) + spread * order[job] + 1e6 * due[job]
    return active[np.argsort(key, kind="mergesort")]


@nb.njit(cache=True)
def path_schedule(
    legs: Legs,
    windows: Windows,
    pace: Floats,
    release: Ints,
    due: Ints,
    order: Ints,
    every: int,
    start: Ints,
) -> int:
    """Fill epochs in turn.

    Args:
        legs: of every job. windows: empty, over K epochs and the longest leg.
        pace: float64 (M,), starts per epoch on each row.
        release, due, order: int64 (J,), the first epoch, class of urgency (a small number first), and place among equals.
        every: epochs between two rankings of the jobs by the work left; 0 for the given order alone.
        start: output int64 (L,), the epoch in which each leg starts.

    Returns:
        The makespan in epochs, or -1 where K is too short.
    """
    jobs = release.size
    at = legs.leg_ptr[:-1].copy()
    ready = release.copy()
    work = np.zeros(pace.size)
    for h in range(legs.row.size):
        work[legs.row[h]] += 1.0 / pace[legs.row[h]]
    active = np.argsort(order, kind="mergesort")
    longest = 0
    for h in range(legs.offset.size):
        longest = max(longest, legs.offset[h])
    finish = 0
    for k in range(windows.closed.shape[1] - longest):
        if every > 0 and k % every == 0:
            active = _rank(legs, at, work, order, active, due)
        kept = 0
        for i in range(active.size):
            job = active[i]
            leg = at[job]
            if ready[job] <= k and _may_start(windows, legs, leg, k):
                for h in range(legs.hop_ptr[leg], legs.hop_ptr[leg + 1]):
                    take(windows, legs.row[h], k + legs.offset[h])
                    work[legs.row[h]] -= 1.0 / pace[legs.row[h]]
                start[leg] = k
                ready[job] = k + legs.delay[leg]
                at[job] += 1
                if at[job] == legs.leg_ptr[job + 1]:
                    finish = max(finish, ready[job])
                    continue
            active[kept] = job
            kept += 1
        active = active[:kept]
        if kept == 0:
            return finish
    return 0 if jobs == 0 else -1
