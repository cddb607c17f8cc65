"""Large instances: round after round, each a few epochs solved as an integer program, the rest listed (TE-CCL §4.2).

A round is longer than the longest hop. Its program rewards progress (:mod:`dualcoll.time_expanded.round_program`). What it
starts is completed to a whole schedule by the list scheduler, and so are some random ways to go on from the same epoch
(rollouts: Bertsekas, Tsitsiklis and Wu 1997). The best of all whole schedules is what the next round goes on from. So there is
a whole schedule at any time, none is worse than the one before, and a round that finds nothing costs nothing but its time.
TE-CCL goes on from where the last round ended; here a round begins a quarter of its length after the last.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dualcoll.lp.engines import get_engine
from dualcoll.lp.integer_program import Limits
from dualcoll.progress import Meter
from dualcoll.time_expanded.greedy import Lister, cost_of
from dualcoll.time_expanded.improve import prefix
from dualcoll.time_expanded.network import FAR, Network
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from dualcoll.time_expanded.round_program import make_round

__all__ = ["longest_hop", "solve"]

PER_ROUND = 4  # rounds begin this often in the length of one
TRIES = 8  # random ways to go on from each round's begin
SECONDS = 5.0  # of an engine for each round, at most
BREADTHS = (16, 64, 1024)
NOISES = (0.0, 0.1, 0.3)


def solve(
    problem: Problem,
    *,
    engine: str = "cp-sat",
    meter: Meter,
    bound: int,
    seed: int = 0,
    start: EpochSchedule | None = None,
    epochs_per_round: int | None = None,
    on_improvement: Callable[[EpochSchedule], None] | None = None,
) -> EpochSchedule:
    """A whole schedule, better with every round, until the meter ends it or the rounds have come to the schedule's end.

    Args:
        problem: what is to be scheduled.
        engine: of integer programs, see :mod:`dualcoll.lp.engines`.
        meter: of the search; its values are 1 / epochs.
        bound: epochs that every schedule takes.
        seed: of the choices and of the engine.
        start: a schedule to go on from: a whole one, or a beginning, which is kept.
        epochs_per_round: length of a round; by default one more than the longest hop takes.
        on_improvement: called with every schedule of less makespan.

    Raises:
        InputError: an engine that is not there, or chunks that cannot reach who wants them.
    """
    length = longest_hop(problem.network) + 1 if epochs_per_round is None else epochs_per_round
    search = _Search(problem, engine, bound, seed, start, on_improvement)
    step = max(1, length // PER_ROUND)
    begin = search.begin
    count = 0
    while begin < search.best.finish:
        if meter.outcome(count, 1 / max(1, search.cost.finish), 1 / max(1, bound)) is not None:
            break
        share = meter.remaining * step / max(step, search.best.finish - begin)
        search.round(begin, begin + length, share, meter)
        begin += step
        count += 1
    return search.best


def longest_hop(network: Network) -> int:
    """The longest that a chunk takes from holder to holder, by the shortest way to the last switch."""
    into = np.where(network.holds, 0, FAR)
    while True:
        better = into.copy()
        np.minimum.at(better, network.head, into[network.tail] + network.delay)
        better[network.holds] = 0
        if np.array_equal(better, into):
            break
        into = better
    hop = (into[network.tail] + network.delay)[network.holds[network.head]]
    return int(hop[hop < FAR].max(initial=1))


class _Search:
    """The best whole schedule so far."""

    def __init__(
        self,
        problem: Problem,
        engine: str,
        bound: int,
        seed: int,
        start: EpochSchedule | None,
        on_improvement: Callable[[EpochSchedule], None] | None,
    ) -> None:
        self.solver = get_engine(engine).load()
        self.lister = Lister(problem)
        self.bound = bound
        self.rng = np.random.default_rng(seed)
        self.wants = problem.wants()
        self.tell = on_improvement
        whole = start is not None and not np.any(self.wants & (start.delivered() < 0))
        self.begin = 0 if start is None or whole else int(start.epoch.max(initial=-1)) + 1
        self.best = start if start is not None and whole else self.lister.run(seed, given=start, floor=self.begin)
        self.cost = cost_of(self.best, self.wants, bound)
        if on_improvement is not None:
            on_improvement(self.best)

    def round(self, begin: int, end: int, seconds: float, meter: Meter) -> None:
        """Try to do better from an epoch on, in about so many seconds."""
        until = meter.seconds + seconds
        before = prefix(self.best, begin)
        self._solve(before, begin, end, min(SECONDS, seconds / 2), meter)
        for _ in range(TRIES):
            if meter.spent or meter.seconds > until:
                break
            self._list(before, begin)

    def _solve(self, before: EpochSchedule, begin: int, end: int, seconds: float, meter: Meter) -> None:
        so_far = prefix(self.best, end)
        made = make_round(before, so_far, begin, end, self.rng)
        if made is None:
            return
        limits = Limits(seconds, lambda: meter.spent, 1, int(self.rng.integers(2**31)))
        columns = self.solver(made.program, limits, made.hint(so_far)).columns
        if columns.size:
            self._list(made.schedule(columns), end)

    def _list(self, given: EpochSchedule, floor: int) -> None:
        """Complete a schedule, and keep it if it is better."""
        rng = self.rng
        found = self.lister.run(
            int(rng.integers(2**31)),
            given=given,
            floor=floor,
            slack=int(rng.integers(2)),
            breadth=int(rng.choice(BREADTHS)),
            noise=float(rng.choice(NOISES)),
        )
        cost = cost_of(found, self.wants, self.bound)
        if cost > self.cost:
            return
        shorter = cost.finish < self.cost.finish
        self.best, self.cost = found, cost
        if shorter and self.tell is not None:
            self.tell(found)
