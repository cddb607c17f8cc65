"""What is measured of schedules: validating, simulating, and what simulation makes of a plan's rate."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Run:
    """Something done with a schedule.

    Attributes:
        name: unique. do: called with True for the small form; gives sends, seconds and the figure, in words.
        reach: the figure to reach.
    """

    name: str
    do: Callable[[bool], tuple[int, float, str]]
    reach: str


def _validate_ring(small: bool) -> tuple[int, float, str]:
    ring = ring_all_reduce(8 if small else 1024, GIB)
    start = time.perf_counter()
    validate(ring)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return ring.sends, seconds, f"{seconds:.1f} s, {peak:.2f} GiB"


def _simulate_ring(small: bool) -> tuple[int, float, str]:
    boxes = 2 if small else 128
    fabric = catalog(f"dgx-h100:boxes={boxes},network=rail")
    ring = routed(ring_all_reduce(8 * boxes, GIB), fabric, fabric.ranks)
    start = time.perf_counter()
    simulate(ring)
    seconds = time.perf_counter() - start
    return ring.sends, seconds, f"{ring.sends / seconds / 1e6:.2f} M sends/s"


def _plan_of(boxes: int) -> Plan:
    return plan(catalog(f"dgx-h100:boxes={boxes},network=rail"), size=GIB, stop=Gap(1e-3))


def _simulate_fluid(small: bool) -> tuple[int, float, str]:
    schedule = pipelined(_plan_of(2 if small else 16), chunks=64)
    start = time.perf_counter()
    simulate(schedule, Options(mode=Mode.FLUID))
    seconds = time.perf_counter() - start
    return schedule.sends, seconds, f"{seconds:.1f} s"


def _share(boxes: int) -> Callable[[bool], tuple[int, float, str]]:
    def do(small: bool) -> tuple[int, float, str]:
        made = _plan_of(2 if small else boxes)
        start = time.perf_counter()
        schedule, trace = best_schedule(made, None, None, FEW_SENDS if small else MOST_SENDS)
        seconds = time.perf_counter() - start
        share = GIB / trace.finish / made.value
        return schedule.sends, seconds, f"{100 * share:.1f} % of the plan's rate"

    return do


RUNS = (
    Run("validate-ring-1024", _validate_ring, "20 s, 4 GiB"),
    Run("alpha-beta-ring-1024", _simulate_ring, "1 M sends/s"),
    Run("fluid-h100-x16", _simulate_fluid, "30 s"),
    Run("share-h100-x4", _share(4), "95 %"),
    Run("share-h100-x128", _share(128), "80 %"),
)
