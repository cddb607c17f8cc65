"""Trees with rates or a schedule in epochs: whichever takes less simulated time at this size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dualcoll._api.scheduling import best_schedule
from dualcoll._api.time_expanding import plan_epochs, replay, task_for
from dualcoll.diagnosis.timing import timing
from dualcoll.errors import InputError
from dualcoll.plans.model import Plan
from dualcoll.progress import Meter
from dualcoll.routing.model import RoutingKind
from dualcoll.schedules.ir import Schedule
from dualcoll.time_expanded.network import Clock
from dualcoll.time_expanded.solution import Solution
from dualcoll.units import format_time

__all__ = ["Choice", "choose"]

MOST_RANKS = 32
MOST_SENDS = 100_000  # of a schedule of trees that is tried
CHUNKS = (1, 2, 4)  # per rank, one after the other
MOST_EPOCHS = 64  # until the trees would be done; longer epochs serve longer messages
COARSER = (1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, and why.

    Attributes:
        text: why, in words.
        schedule: in epochs, if that is faster. solution: the same, in epochs.
        seconds: simulated, of the faster one. trees: simulated, of the trees.
    """

    text: str
    schedule: Schedule | None
    solution: Solution | None
    seconds: float
    trees: float


def choose(plan: Plan, clock: Callable[[float], Meter], *, seed: int = 0) -> Choice | None:
    """Hold a plan's trees against schedules in epochs, where latency decides; None where the rate does.

    Args:
        plan: its trees.
        clock: makes the meter of each search, given its share of the time.
        seed: of the searches.
    """
    if not timing(plan).small:
        return None
    _, trace = best_schedule(plan, None, most_sends=MOST_SENDS)
    trees = trace.finish
    refused = _refused(plan)
    if refused:
        return Choice(
            f"trees, {format_time(trees)} simulated; epochs are not tried: {refused}", None, None, trees, trees
        )
    best: tuple[float, Schedule, Solution] | None = None
    for chunks in CHUNKS:
        made = _tried(plan, chunks, trees, clock(1 / len(CHUNKS)), seed)
        if made is None or (best is not None and made[0] >= best[0]):
            break
        best = made
    if best is None or best[0] >= trees:
        other = "" if best is None else f", {format_time(best[0])} in epochs"
        return Choice(f"trees: {format_time(trees)} simulated{other}", None, None, trees, trees)
    seconds, schedule, solution = best
    text = f"epochs: {format_time(seconds)} simulated, {format_time(trees)} with trees; latency decides at this size"
    return Choice(text, schedule, solution, seconds, trees)


def _refused(plan: Plan) -> str:
    if len(plan.participants) > MOST_RANKS:
        return f"more than {MOST_RANKS} ranks"
    if plan.routing.kind is not RoutingKind.SINGLE:
        return "the network chooses the routes"
    return ""


def _tried(plan: Plan, chunks: int, trees: float, meter: Meter, seed: int) -> tuple[float, Schedule, Solution] | None:
    """The search with so many chunks a rank, in epochs as fine as can be; None where it finds nothing."""
    try:
        for multiplier in COARSER:
            clock = Clock(multiplier=multiplier, relay=plan.relay)
            task = task_for(
                plan.topology, plan.workload, forward=str(plan.forwarding), chunks_per_rank=chunks, clock=clock
            )
            if trees / task.network.epoch <= MOST_EPOCHS:
                break
        solution = plan_epochs(task, seed=seed, meter=meter)
    except InputError:
        return None  # more chunks than bytes, or too large for this machine
    schedule, trace = replay(solution)
    return trace.finish, schedule, solution
