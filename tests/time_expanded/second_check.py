"""A second check of schedules: chunks are followed epoch by epoch, and links serve them in fractions of epochs."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction

from dualcoll.time_expanded.problem import EpochSchedule

__all__ = ["faults", "late_links", "undelivered"]


def faults(schedule: EpochSchedule) -> list[str]:
    """What is sent that is not there: starts in the order of time; of one moment, those that lead into switches first."""
    problem, network = schedule.problem, schedule.problem.network
    there: Counter[tuple[int, int]] = Counter()  # chunks held (chunk, vertex); with copies, any number counts as one
    lands: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    for c in range(problem.chunks):
        if problem.source[c] >= 0:
            lands[int(problem.release[c])][c, int(problem.source[c])] = 10**9
    found = []
    rows = sorted(zip(schedule.epoch.tolist(), schedule.arc.tolist(), schedule.chunk.tolist(), strict=True))
    for k in range(int(schedule.arrival.max(initial=0)) + 1):
        there = Counter({key: n for key, n in there.items() if network.holds[key[1]]})  # switches let go
        there.update(lands.pop(k, Counter()))
        todo = [(a, c) for epoch, a, c in rows if epoch == k]
        while todo:
            able = [(a, c) for a, c in todo if there[c, int(network.tail[a])] > 0]
            if not able:
                found += [f"chunk {c} is not at {network.tail[a]} in epoch {k}" for a, c in todo]
                break
            a, c = able[0]
            todo.remove((a, c))
            tail, head = int(network.tail[a]), int(network.head[a])
            if not network.copies[tail]:
                there[c, tail] -= 1
            (there if network.delay[a] == 0 else lands[k + int(network.delay[a])])[c, head] += 1
    return found


def late_links(schedule: EpochSchedule) -> list[str]:
    """Rows that, serving in order of starts, have not sent a chunk when it is delivered by the epoch model."""
    network = schedule.problem.network
    by_row: dict[int, list[int]] = defaultdict(list)
    for s, a in enumerate(schedule.arc.tolist()):
        for row in network.rows_of(a).tolist():
            by_row[row].append(s)
    found = []
    for row, starts in by_row.items():
        cost = 1 / Fraction(float(network.rate[row])).limit_denominator(10**6)
        free = Fraction(0)
        for s in sorted(starts, key=lambda s: int(schedule.epoch[s])):
            begin = int(schedule.epoch[s])
            free = max(free, Fraction(begin)) + cost
            if free > begin + -(-cost.numerator // cost.denominator):
                found.append(f"row {row} is late with chunk {schedule.chunk[s]} of epoch {begin}")
    return found


def undelivered(schedule: EpochSchedule) -> int:
    """How many (chunk, rank) are wanted and never come."""
    return int((schedule.problem.wants() & (schedule.delivered() < 0)).sum())
