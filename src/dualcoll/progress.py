"""Clocks, stop criteria and outcomes of long computations. The only module that reads a clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from dualcoll.errors import InputError

__all__ = ["OPTIMAL_GAP", "Gap", "Meter", "Outcome", "Progress", "Seconds", "Stop", "relative_gap"]


class Outcome(StrEnum):
    """Why a computation ended."""

    OPTIMAL = "optimal"
    GAP = "gap"
    TIME = "time"
    INTERRUPTED = "interrupted"
    LIMITED = "limited"
    STALLED = "stalled"

    @property
    def advice(self) -> str:
        """What it means and what to do about it."""
        return {
            Outcome.OPTIMAL: "proved optimal to the arithmetic's precision",
            Outcome.GAP: "proved to be within the gap asked for",
            Outcome.TIME: "the time limit came first: this is the best so far with its proved gap; allow more --seconds",
            Outcome.LIMITED: "the best found of the kind asked for (few, shallow, composed, given); the bound is that of any",
            Outcome.STALLED: "the search finds nothing better: this is the best with its proved gap",
            Outcome.INTERRUPTED: "stopped by the user: this is the best so far with its proved gap",
        }[self]


OPTIMAL_GAP = 1e-9  # relative; below this a float solver cannot be asked for more


def relative_gap(value: float, bound: float) -> float:
    """``1 - value / bound``, not below 0."""
    return max(0.0, 1.0 - value / bound) if bound > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Progress:
    """One report of a running computation: seconds since its start, iterations, best value and bound (bytes/s)."""

    seconds: float
    iterations: int
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """The proved relative gap."""
        return relative_gap(self.value, self.bound)


@dataclass(frozen=True, slots=True)
class Stop:
    """When to stop: at the gap or after the seconds, whichever comes first. Combine with ``|``."""

    gap: float = OPTIMAL_GAP
    seconds: float = float("inf")

    def __post_init__(self) -> None:
        if not 0 <= self.gap < 1:
            raise InputError(f"gap {self.gap!r} is not in [0, 1)")
        if not self.seconds > 0:
            raise InputError(f"time limit {self.seconds!r} s is not positive")

    def __or__(self, other: Stop) -> Stop:
        return Stop(max(self.gap, other.gap), min(self.seconds, other.seconds))


def Gap(gap: float) -> Stop:  # noqa: N802 - reads as a criterion: Gap(0.01) | Seconds(30)
    """Stop once the proved relative gap is at most this."""
    return Stop(gap=gap)


def Seconds(seconds: float) -> Stop:  # noqa: N802
    """Stop after this many seconds with the best so far."""
    return Stop(seconds=seconds)


class Meter:
    """The clock of one computation: decides when it is over and tells who asked how it goes.

    Args:
        stop: the criteria.
        report: called with a :class:`Progress` at most ten times a second and at the end.

    Attributes:
        history: reports so far, the last one included, thinned out as they age.
    """

    def __init__(self, stop: Stop, report: Callable[[Progress], None] | None = None) -> None:
        self.stop = stop
        self.history: list[Progress] = []
        self._interrupted = False
        self._whole: Meter | None = None
        self._report = report
        self._start = time.perf_counter()
        self._next = 0.0

    def begin(self) -> None:
        """Start the clock again: compiling kernels and building a problem are not the search."""
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the computation began."""
        return time.perf_counter() - self._start

    def part(self, share: float) -> Meter:
        """The clock of a part of the computation: it may take this share of the time that is left, aims at the same gap, and
        ends when the whole does.
        """
        clock = Meter(Stop(self.stop.gap, max(1e-3, share * self.remaining)), self._report)
        clock._whole = self
        return clock

    @property
    def interrupted(self) -> bool:
        """Whether somebody asked for the end."""
        return self._interrupted or (self._whole is not None and self._whole.interrupted)

    @property
    def remaining(self) -> float:
        """Seconds left of the time limit, at least 0."""
        return max(0.0, self.stop.seconds - self.seconds)

    @property
    def spent(self) -> bool:
        """Whether the time is over or somebody asked for the end."""
        return self.interrupted or self.seconds >= self.stop.seconds or (self._whole is not None and self._whole.spent)

    def interrupt(self) -> None:
        """Ask the computation to end after its current step (what Ctrl-C does on the command line)."""
        self._interrupted = True

    def outcome(self, iterations: int, value: float, bound: float) -> Outcome | None:
        """Record one step; the outcome if the computation is over, else None."""
        now = Progress(self.seconds, iterations, value, bound)
        ended: Outcome | None = None
        if now.gap <= OPTIMAL_GAP:
            ended = Outcome.OPTIMAL
        elif now.gap <= self.stop.gap:
            ended = Outcome.GAP
        elif self.interrupted:
            ended = Outcome.INTERRUPTED
        elif now.seconds >= self.stop.seconds:
            ended = Outcome.TIME
        # a millisecond apart at first and ever wider, so that long runs keep a short history
        if ended is not None or not self.history or now.seconds > 1.005 * self.history[-1].seconds + 0.001:
            self.history.append(now)
        if self._report is not None and (ended is not None or now.seconds >= self._next):
            self._next = now.seconds + 0.1
            self._report(now)
        return ended
