"""Better schedules from a schedule: parts of it are taken out and entered again around the rest, over and over.

Large neighbourhood search (Shaw 1998; Pisinger and Ropke 2010). A part is some chunks, late ones more often than others; or all
that starts from some epoch on; the kind that succeeds is tried more often. What is no worse is kept
(:class:`dualcoll.time_expanded.greedy.Cost`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dualcoll.progress import Meter
from dualcoll.time_expanded.feeds import feeds
from dualcoll.time_expanded.greedy import Lister, cost_of
from dualcoll.time_expanded.problem import EpochSchedule

__all__ = ["improve", "prefix"]

Flags = NDArray[np.bool_]

PATIENCE = 1000  # tries on end without success that end a search
SHARES = (0.02, 0.3)  # of the chunks, taken out at once
SHARPNESS = (1.0, 4.0, 1e9)  # epochs by which a chunk has to be earlier to be taken out e times less often
SLACKS = (0, 0, 1, 2)
BREADTHS = (1, 4, 16, 64, 1024)
NOISES = (0.0, 0.1, 0.3)
FADING = 0.9  # of the record of a kind of part, per try


def prefix(schedule: EpochSchedule, epoch: int) -> EpochSchedule:
    """The hops from holder to holder that start before an epoch."""
    network = schedule.problem.network
    fed, _ = feeds(schedule)
    begun = schedule.epoch.astype(np.int64)
    for s in np.flatnonzero(~network.holds[network.tail[schedule.arc]]).tolist():  # by epoch, but for hops at once
        way = s
        while fed[way] >= 0 and not network.holds[network.tail[schedule.arc[way]]]:
            way = int(fed[way])
        begun[s] = schedule.epoch[way]
    return _only(schedule, begun < epoch)


def improve(
    schedule: EpochSchedule,
    *,
    meter: Meter,
    bound: int,
    seed: int = 0,
    on_improvement: Callable[[EpochSchedule], None] | None = None,
) -> EpochSchedule:
    """Search until the meter ends it, the bound is met, or nothing has come of it for long.

    Args:
        schedule: whole and valid.
        meter: of the search; its values are 1 / epochs.
        bound: epochs that every schedule takes.
        seed: of the choices.
        on_improvement: called with every schedule of less makespan.
    """
    search = _Search(schedule, bound, seed)
    failures = 0
    while (
        failures < PATIENCE and meter.outcome(search.tries, 1 / max(1, search.cost.finish), 1 / max(1, bound)) is None
    ):
        before = search.cost
        search.step()
        failures = 0 if search.cost < before else failures + 1
        if search.cost.finish < before.finish and on_improvement is not None:
            on_improvement(search.best)
    return search.best


class _Search:
    """The state of the search."""

    def __init__(self, schedule: EpochSchedule, bound: int, seed: int) -> None:
        self.best, self.bound = schedule, bound
        self.lister = Lister(schedule.problem)
        self.rng = np.random.default_rng(seed)
        self.wants = schedule.problem.wants()
        self.busy = np.flatnonzero(self.wants.any(axis=1))
        self.cost = cost_of(schedule, self.wants, bound)
        self.tries = 0
        self.record = np.ones(2)  # of chunks taken out, and of tails
        self.whole = schedule.problem.network.clock.copy  # a tail leaves whole ways only where ranks copy

    def step(self) -> None:
        """Take out a part, enter it again, and keep what is no worse."""
        rng = self.rng
        self.tries += 1
        kind = int(rng.random() * self.record.sum() >= self.record[0]) if self.whole else 0
        if kind:
            floor = int(rng.integers(max(1, self.best.finish)))
            rest = prefix(self.best, floor)
        else:
            floor, rest = 0, self._without_some()
        found = self.lister.run(
            int(rng.integers(2**31)),
            given=rest,
            floor=floor,
            slack=int(rng.choice(SLACKS)),
            breadth=int(rng.choice(BREADTHS)),
            noise=float(rng.choice(NOISES)),
        )
        cost = cost_of(found, self.wants, self.bound)
        self.record[kind] = max(0.02, FADING * self.record[kind] + (1 - FADING) * (cost < self.cost))
        if cost <= self.cost:
            self.best, self.cost = found, cost

    def _without_some(self) -> EpochSchedule:
        rng = self.rng
        done = np.where(self.wants, self.best.delivered(), 0).max(axis=1)[self.busy]
        count = max(1, round(rng.uniform(*SHARES) * self.busy.size))
        # the largest of weight + Gumbel noise are a draw without replacement by exp(weight)
        lateness = (done - done.max(initial=0)) / rng.choice(SHARPNESS) + rng.gumbel(size=done.size)
        gone = np.zeros(self.best.problem.chunks, bool)
        gone[self.busy[np.argsort(-lateness)[:count]]] = True
        return _only(self.best, ~gone[self.best.chunk])


def _only(schedule: EpochSchedule, kept: Flags) -> EpochSchedule:
    return EpochSchedule(schedule.problem, schedule.arc[kept], schedule.epoch[kept], schedule.chunk[kept])
