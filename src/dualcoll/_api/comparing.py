"""Every method that applies, simulated at every size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dualcoll._api.planning import plan as make_plan
from dualcoll._api.scheduling import best_schedule
from dualcoll.classical.registry import algorithms_for, build
from dualcoll.collectives.catalogue import ROOTED, canonical_name, title
from dualcoll.collectives.request import make_workload
from dualcoll.collectives.workload import Objective
from dualcoll.diagnosis.comparison import Comparison, Result
from dualcoll.diagnosis.timing import latency_bound
from dualcoll.errors import InputError
from dualcoll.plans.model import Plan
from dualcoll.progress import Gap, Meter, Seconds, Stop
from dualcoll.routing.model import RoutingKind
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.routed import routed
from dualcoll.schedules.validate import validate
from dualcoll.simulation import Options, simulate
from dualcoll.topology.model import Forwarding, Topology
from dualcoll.units import format_size, parse_size

__all__ = ["Entrant", "compare", "sizes_of", "usual_choice"]

MOST_SENDS = 400_000  # of a schedule that is tried for its number of chunks
MANY_SENDS = 3_000_000  # of a classical algorithm: beyond it, simulating takes too long to be worth it
LIBRARY = ("ring", "tree", "double-tree", "chain", "direct", "pairwise")  # what the usual libraries choose from


@dataclass(frozen=True, slots=True)
class Entrant:
    """A schedule of anybody's that is ranked with the others, its chunks as much larger or smaller as the message.

    Attributes:
        name: for people. schedule: its sends, laid on the fabric if they are on none or on another.
        low, high: bytes of the smallest and the largest message that it is for; 0 as the upper end is no limit.
    """

    name: str
    schedule: Schedule
    low: int = 0
    high: int = 0


def compare(
    topology: Topology,
    collective: str = "allreduce",
    *,
    sizes: str | Sequence[int | str] = "1K:1G",
    ranks: str | Sequence[int | str] | None = None,
    root: int | str | None = None,
    forward: str = "switches",
    seed: int = 0,
    stop: Stop | None = None,
    options: Options | None = None,
    report: Callable[[str], None] | None = None,
    meter: Meter | None = None,
    entrants: Sequence[Entrant] = (),
) -> Comparison:
    """Simulate the proved plan and every classical algorithm that serves the collective.

    Args:
        topology, ranks, root, forward, seed: as for :func:`plan`.
        collective: any but AllToAllv.
        sizes: ``"1K:8G"`` (doubling), or a list.
        stop: for the plan; within 1 % or 30 s by default.
        options: of the simulation.
        report: told what is simulated next.
        meter: a clock of the caller's own for the plan instead of ``stop``; once it is interrupted, no more sizes are tried.
        entrants: schedules or programs that are compared, too.

    Raises:
        InputError: an unusable argument, or ranks that cannot reach each other.
        CheckFailed: an entrant does not keep its contract.
    """
    name = canonical_name(collective)
    if name == "alltoallv":
        raise InputError(
            "an AllToAllv has one size, that of its matrix", hint="compare an alltoall, or plan the matrix"
        )
    points = sizes_of(sizes)
    work = make_workload(topology, name, size=points[-1], ranks=ranks, root=root)
    ready = [_ready(entrant, name, topology, work.groups[0].ranks, Forwarding(forward)) for entrant in entrants]
    clock = meter or Meter(stop or (Gap(0.01) | Seconds(30)))
    made = make_plan(topology, work, forward=forward, seed=seed, meter=clock)
    results: list[Result] = []
    skipped: list[tuple[str, str]] = []
    group = work.groups[0]
    place = group.ranks.index(group.root) if group.root is not None and name in ROOTED else 0
    for size in points:
        if clock.interrupted and results:
            skipped.append((f"sizes from {format_size(size)} on", "stopped by the user"))
            break
        if report is not None:
            report(f"simulating {title(name)} of {format_size(size)} (Ctrl-C keeps the sizes so far)")
        results.append(Result("trees", size, best_schedule(made, size, options, MOST_SENDS)[1].finish))
        for entrant in ready:
            if entrant.low <= size <= (entrant.high or size):
                results.append(Result(entrant.name, size, simulate(_scaled(entrant.schedule, size), options).finish))
            else:
                skipped.append((f"{entrant.name} at {format_size(size)}", "it is not for messages of that size"))
        for method in algorithms_for(name):
            if method in dict(skipped):
                continue
            try:
                drawn = _classical(method, name, topology, group.ranks, size, place, Forwarding(forward))
                results.append(Result(method, size, simulate(drawn, options).finish))
            except InputError as error:
                skipped.append((method, str(error)))
    assert work.objective is Objective.SLOWEST
    return Comparison(name, len(group.ranks), made.bound, latency_bound(topology, work), tuple(results), tuple(skipped))


def _ready(
    entrant: Entrant, collective: str, topology: Topology, ranks: tuple[int, ...], forwarding: Forwarding
) -> Entrant:
    """The entrant on the fabric; its own routes are kept where they are on these ranks of the same fabric."""
    made = entrant.schedule
    if made.contract.collective != collective:
        problem = f"it is {title(made.contract.collective)}, and {title(collective)} is compared"
        raise InputError(problem, where=entrant.name)
    if made.ranks != len(ranks):
        problem = f"it is for {made.ranks} ranks, and {len(ranks)} take part"
        raise InputError(problem, where=entrant.name, hint="name the ranks (--ranks)")
    if made.size == 0:
        raise InputError("it moves no bytes", where=entrant.name)
    validate(made, depth=None)
    if made.topology != topology or made.nodes != ranks:
        made = routed(made, topology, ranks, forwarding=forwarding)
    return replace(entrant, schedule=made)


def _scaled(schedule: Schedule, size: int) -> Schedule:
    """The same sends of a message of so many bytes, chunks rounded up to whole bytes."""
    whole = schedule.size
    return replace(
        schedule, chunk_size=np.array([-(-int(chunk) * size // whole) for chunk in schedule.chunk_size], np.int64)
    )


def usual_choice(plan: Plan, options: Options | None = None) -> Result | None:
    """The best that a library's usual algorithms would do with the plan's message; None where none applies."""
    groups = plan.workload.groups
    if len(groups) > 1 or groups[0].parts or plan.routing.kind is not RoutingKind.SINGLE:
        return None  # they have one message, equal shards, and routes that are chosen
    group = groups[0]
    place = group.ranks.index(group.root) if group.root is not None else 0
    found: list[Result] = []
    for method in algorithms_for(group.collective):
        if method in LIBRARY:
            try:
                drawn = _classical(
                    method, group.collective, plan.topology, group.ranks, group.size, place, plan.forwarding, MOST_SENDS
                )
                found.append(Result(method, group.size, simulate(drawn, options).finish))
            except InputError:
                continue
    return min(found, key=lambda result: result.seconds, default=None)


def _classical(
    method: str,
    collective: str,
    topology: Topology,
    ranks: tuple[int, ...],
    size: int,
    root: int,
    forwarding: Forwarding,
    most: int = MANY_SENDS,
) -> Schedule:
    expected = len(ranks) ** 2 * (8 if method.startswith("ring") else 1)
    if expected > most:
        raise InputError(f"about {expected} sends are too many to simulate here", where=f"algorithm {method}")
    return build(method, collective, topology, ranks, size, root=root, forwarding=forwarding)


def sizes_of(sizes: str | Sequence[int | str]) -> list[int]:
    """Bytes of each size, ascending: ``"1K:8G"`` doubles from the first as far as the last.

    Raises:
        InputError: no size, one that cannot be read, or a range that descends.
    """
    try:
        if isinstance(sizes, str):
            first, colon, last = sizes.partition(":")
            if colon:
                return list(_doubling(parse_size(first), parse_size(last)))
            sizes = sizes.split(",")
        if not sizes:
            raise InputError("no size is given")
        return sorted({parse_size(size) for size in sizes})
    except InputError as error:
        raise error.within("sizes") from None


def _doubling(low: int, high: int) -> Iterator[int]:
    if low > high:
        raise InputError(f"{low} to {high} descends", hint="write the smaller size first")
    for power in range(int(math.log2(high / low)) + 1):
        yield low << power
