"""docs/semantics.md in plain Python, for schedules of a few sends: events and their order, the token game, sets."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np

from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op


def happens_before(schedule: Schedule, channels: bool = True) -> np.ndarray:
    """Transitive closure over events, bool (2 S, 2 S): 2 s is the start of send s, 2 s + 1 its delivery."""
    before = np.zeros((2 * schedule.sends, 2 * schedule.sends), bool)
    last: dict[tuple[int, int, int], int] = {}
    for s in range(schedule.sends):
        before[2 * s, 2 * s + 1] = True
        for d in schedule.depends_of(s).tolist():
            before[2 * d + 1, 2 * s] = True
        key = int(schedule.src[s]), int(schedule.dst[s]), int(schedule.channel[s])
        if channels and key[0] != key[1]:
            if key in last:
                before[2 * last[key], 2 * s] = before[2 * last[key] + 1, 2 * s + 1] = True
            last[key] = s
    for middle in range(len(before)):
        before |= before[:, middle, None] & before[middle, None, :]
    return before


def races(schedule: Schedule, before: np.ndarray) -> bool:
    """Whether two accesses of a slot, not both reductions into it and at least one a write, are unordered."""
    for a, b in combinations(range(schedule.sends), 2):
        read, write = (
            [(int(rank[s]), int(chunk[s])) for s in (a, b)]
            for rank, chunk in ((schedule.src, schedule.chunk), (schedule.dst, schedule.into))
        )
        for one, other, r, w in ((a, b, read[1], write[0]), (b, a, read[0], write[1])):
            if r == w and not (before[2 * one + 1, 2 * other] or before[2 * other + 1, 2 * one + 1]):
                return True
        commute = schedule.op[a] == schedule.op[b] == Op.REDUCE
        ordered = before[2 * a + 1, 2 * b + 1] or before[2 * b + 1, 2 * a + 1]
        if write[0] == write[1] and not commute and not ordered:
            return True
    return False


def contents_sections(schedule: Schedule, before: np.ndarray) -> set[int]:
    """Sections that executing the sends on sets violates; after a wrong send the rest of its data is left alone."""
    contract = schedule.contract
    held = {(r, c): {r} for c in range(contract.chunks) for r in contract.holders(c)}
    found: set[int] = set()
    bad: set[int] = set()
    for s in sorted(range(schedule.sends), key=lambda s: before[:, 2 * s].sum()):
        read, write = (int(schedule.src[s]), int(schedule.chunk[s])), (int(schedule.dst[s]), int(schedule.into[s]))
        data = int(contract.data[read[1]])
        if data in bad:
            continue
        merged = schedule.op[s] == Op.REDUCE
        if read not in held or (merged and (write not in held or held[write] & held[read])):
            found.add(4)
            bad.add(data)
            continue
        held[write] = held[read] | (held[write] if merged else set())
    for c in range(contract.chunks):
        if int(contract.data[c]) not in bad:
            wanted = set(contract.contributors(c))
            found |= {7 for r in contract.receivers(c) if held.get((r, c)) != wanted}
    return found


def expected_sections(schedule: Schedule) -> set[int]:
    """Sections that a validation must cite with unbounded channels; a race hides what else there may be."""
    if happens_before(schedule, channels=False).diagonal().any():
        return {6}
    before = happens_before(schedule)
    if before.diagonal().any():
        return {5}
    return {6} if races(schedule, before) else contents_sections(schedule, before)


def runs(schedule: Schedule, depth: int, seed: int) -> bool:
    """The token game of §5: whether all sends start, picking at random among those that may."""
    rng = random.Random(seed)
    moved = schedule.src != schedule.dst
    channel = [
        (int(schedule.src[s]), int(schedule.dst[s]), int(schedule.channel[s])) if moved[s] else None
        for s in range(schedule.sends)
    ]
    line = {key: [s for s in range(schedule.sends) if channel[s] == key] for key in set(channel) if key}
    forwarded = {
        s: [
            f
            for f in range(schedule.sends)
            if s in schedule.depends_of(f)
            and moved[f]
            and schedule.src[f] == schedule.dst[s]
            and schedule.channel[f] == schedule.channel[s]
        ]
        for s in range(schedule.sends)
    }
    started: set[int] = set()

    def taken(key: tuple[int, int, int]) -> int:
        places = [s for s in line[key] if s in started]
        while places and all(f in started for f in forwarded[places[0]]):
            places.pop(0)
        return len(places)

    def may_start(s: int) -> bool:
        if s in started or not all(d in started for d in schedule.depends_of(s).tolist()):
            return False
        key = channel[s]
        if key is None:
            return True
        return next(e for e in line[key] if e not in started) == s and taken(key) < depth

    while ready := [s for s in range(schedule.sends) if may_start(s)]:
        started.add(rng.choice(ready))
    return len(started) == schedule.sends
