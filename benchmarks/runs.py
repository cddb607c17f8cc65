"""What is measured of schedules: validating, simulating, and what simulation makes of a plan's rate."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from dualcoll import Gap, plan
from dualcoll._api.scheduling import best_schedule
from dualcoll.classical.ring import ring_all_reduce
from dualcoll.plans.model import Plan
from dualcoll.schedules.pipeline import pipelined
from dualcoll.schedules.routed import routed
from dualcoll.schedules.validate import validate
from dualcoll.simulation import Mode, Options, simulate
from dualcoll.topology.catalog import catalog

__all__ = ["RUNS", "Run"]

GIB = 2**30
MOST_SENDS = 4_500_000
FEW_SENDS = 20_000  # of a small form

T = TypeVar("T")
Done = tuple[int, float, float, str]


@dataclass(frozen=True, slots=True)
class Run:
    """Something done with a schedule.

    Attributes:
        name: unique. do: called with True for the small form; gives sends, seconds of the clock and of the processors, and
            the figure, in words.
        reach: the figure to reach.
    """

    name: str
    do: Callable[[bool], Done]
    reach: str


def _timed(action: Callable[[], T]) -> tuple[T, float, float]:
    wall, spent = time.perf_counter(), time.process_time()
    result = action()
    return result, time.perf_counter() - wall, time.process_time() - spent


def _validate_ring(small: bool) -> Done:
    ring = ring_all_reduce(8 if small else 1024, GIB)
    _, seconds, spent = _timed(lambda: validate(ring))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return ring.sends, seconds, spent, f"{seconds:.1f} s, {peak:.2f} GiB"


def _simulate_ring(small: bool) -> Done:
    boxes = 2 if small else 128
    fabric = catalog(f"dgx-h100:boxes={boxes},network=rail")
    ring = routed(ring_all_reduce(8 * boxes, GIB), fabric, fabric.ranks)
    _, seconds, spent = _timed(lambda: simulate(ring))
    return (
        ring.sends,
        seconds,
        spent,
        f"{ring.sends / seconds / 1e6:.2f} M sends/s, {ring.sends / spent / 1e6:.2f} a CPU s",
    )


def _plan_of(boxes: int) -> Plan:
    return plan(catalog(f"dgx-h100:boxes={boxes},network=rail"), size=GIB, stop=Gap(1e-3))


def _simulate_fluid(small: bool) -> Done:
    schedule = pipelined(_plan_of(2 if small else 16), chunks=64)
    _, seconds, spent = _timed(lambda: simulate(schedule, Options(mode=Mode.FLUID)))
    return schedule.sends, seconds, spent, f"{seconds:.1f} s"


def _share(boxes: int) -> Callable[[bool], Done]:
    def do(small: bool) -> Done:
        made = _plan_of(2 if small else boxes)
        most = FEW_SENDS if small else MOST_SENDS
        (schedule, trace), seconds, spent = _timed(lambda: best_schedule(made, None, None, most))
        share = GIB / trace.finish / made.value
        return schedule.sends, seconds, spent, f"{100 * share:.1f} % of the plan's rate"

    return do


RUNS = (
    Run("validate-ring-1024", _validate_ring, "20 s, 4 GiB"),
    Run("alpha-beta-ring-1024", _simulate_ring, "1 M sends/s"),
    Run("fluid-h100-x16", _simulate_fluid, "30 s"),
    Run("share-h100-x4", _share(4), "95 %"),
    Run("share-h100-x128", _share(128), "80 %"),
)
