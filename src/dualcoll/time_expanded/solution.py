"""What a search on the time-expanded network has found: starts of what spreads and of what gathers, and what is proved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.progress import Outcome, relative_gap
from dualcoll.time_expanded.problem import EpochSchedule
from dualcoll.time_expanded.task import Task

__all__ = ["Solution"]


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A schedule for a task.

    Attributes:
        task: what it solves.
        copying: what spreads, if anything does. reducing: what gathers, on the transposed network.
        turn: an arrival of ``reducing`` in epoch ``k`` stands for a start in epoch ``turn - k``, and a start for an arrival.
        bound: epochs that every schedule takes. reason: why.
        outcome: why the search ended; None while it goes on, or of a schedule by hand.
        method: how it was found, in words.
        seconds: of the search.
    """

    task: Task
    copying: EpochSchedule | None
    reducing: EpochSchedule | None
    turn: int = 0
    bound: int = 0
    reason: str = ""
    outcome: Outcome | None = None
    method: str = ""
    seconds: float = 0.0

    def delivered(self) -> NDArray[np.int64]:
        """The epoch in which each chunk has arrived at all who want it, int64 (C,); 0 for those that nobody wants."""
        last = np.zeros(self.task.contract.chunks, np.int64)
        if self.reducing is not None and self.task.reducing is not None:
            first = np.full(last.size, np.iinfo(np.int64).max)
            np.minimum.at(first, self.reducing.chunk, self.reducing.epoch)
            busy = self.task.reducing.wants().any(axis=1)
            last[busy] = self.turn - first[busy]
        if self.copying is not None and self.task.copying is not None:
            wants = self.task.copying.wants()
            np.maximum(last, np.where(wants, self.copying.delivered(), 0).max(axis=1), out=last)
        return last

    @property
    def finish(self) -> int:
        """The makespan in epochs."""
        return int(self.delivered().max(initial=0))

    @property
    def makespan(self) -> float:
        """The makespan in seconds."""
        return self.finish * self.task.network.epoch

    @property
    def gap(self) -> float:
        """The proved relative gap."""
        return relative_gap(self.bound, self.finish) if self.finish else 0.0

    def group_finish(self) -> NDArray[np.int64]:
        """The epoch by which each group is done, int64 (groups,)."""
        last = np.zeros(len(self.task.contract.groups), np.int64)
        np.maximum.at(last, self.task.contract.group, self.delivered())
        return last
