"""Accesses of one chunk that nothing orders, found with vector clocks (Mattern 1989; last accesses as in FastTrack, 2009).

Blocks are ordered by messages and semaphores. That a full connection makes a sender wait is no order to rely on: executors
differ in its depth. O(steps · blocks).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualcoll.certificates.findings import Findings
from dualcoll.lowering.msccl.flow import NONE, Flow
from dualcoll.lowering.msccl.memory import Cell, Memory

__all__ = ["Clocks", "Ints", "check_races"]

Ints = NDArray[np.int32]


class Clocks:
    """For each step in turn the steps that are known to have run before it."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._now = np.zeros((flow.blocks, flow.blocks), np.int32)  # by block: steps of each block known to have run
        self._ticks = np.zeros(flow.blocks, np.int32)
        self._kept: dict[int, Ints] = {}
        self._readers = [0] * len(flow.steps)  # who still needs what was known at this step
        for n in range(len(flow.steps)):
            for other in self._heard(n):
                self._readers[other] += 1
        self.tick = [0] * len(flow.steps)  # place of each step in its block, from 1; 0 before it ran

    def known_at(self, n: int) -> Ints:
        """As :meth:`run` gave it for a sending step whose message has not been taken yet, that step included."""
        return self._kept[n]

    def run(self, n: int) -> Ints:
        """Run one step.

        Returns:
            int32 (blocks,), for each block the number of its steps known to have run before this one: a view.
        """
        block = self._flow.block[n]
        known: Ints = self._now[block]
        for other in self._heard(n):
            np.maximum(known, self._kept[other], out=known)
            self._readers[other] -= 1
            if not self._readers[other]:
                del self._kept[other]
        self._ticks[block] += 1
        self.tick[n] = known[block] = int(self._ticks[block])
        if self._readers[n]:
            self._kept[n] = known.copy()
        return known

    def _heard(self, n: int) -> tuple[int, ...]:
        sender = self._flow.sender[n]
        return self._flow.waits[n] if sender == NONE else (*self._flow.waits[n], sender)


@dataclass(slots=True)
class _Accesses:
    """The last write of a cell, and of each block the last read since then."""

    write: int = NONE
    reads: dict[int, int] = field(default_factory=dict)


def check_races(flow: Flow, order: list[int], memory: Memory, findings: Findings) -> bool:
    """Record, for each step, the first access of another block that conflicts with one of its own; whether there is none."""
    free = True
    clocks = Clocks(flow)
    cells: dict[Cell, _Accesses] = {}
    for n in order:
        known, block = clocks.run(n), flow.block[n]
        reads, writes = memory.accesses(flow.place[n][0], flow.steps[n])
        if reads != writes and not set(reads).isdisjoint(writes):
            findings.add(f"{flow.describe(n)}: the chunks that it reads and writes overlap")
            free = False
        racing = ""
        for cell in reads:
            last = cells.setdefault(cell, _Accesses())
            if _unordered(flow, clocks, known, last.write):
                racing = racing or _race("reads", "writes", flow, n, last.write)
            last.reads[block] = n
        for cell in writes:
            last = cells.setdefault(cell, _Accesses())
            if _unordered(flow, clocks, known, last.write):
                racing = racing or _race("writes", "writes", flow, n, last.write)
            for other in last.reads.values():
                if _unordered(flow, clocks, known, other):
                    racing = racing or _race("writes", "reads", flow, n, other)
            cells[cell] = _Accesses(n)
        if racing:
            findings.add(racing)
            free = False
    return free


def _unordered(flow: Flow, clocks: Clocks, known: Ints, other: int) -> bool:
    return other != NONE and bool(known[flow.block[other]] < clocks.tick[other])


def _race(own: str, theirs: str, flow: Flow, n: int, other: int) -> str:
    return f"{flow.describe(n)}: it {own} what {flow.describe(other)} {theirs}, and nothing orders them: a data race"
