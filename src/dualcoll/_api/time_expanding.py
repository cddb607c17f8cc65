"""Time-expanded schedules: wiring only."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dualcoll._api.planning import plan as make_plan
from dualcoll.collectives.demand_matrix import DemandMatrix
from dualcoll.collectives.request import make_workload
from dualcoll.collectives.workload import Workload
from dualcoll.errors import InputError
from dualcoll.lp.engines import default_engine, get_engine
from dualcoll.progress import Gap, Meter, Progress, Seconds, Stop
from dualcoll.schedules.ir import Schedule
from dualcoll.simulation import Options, Trace, simulate
from dualcoll.time_expanded.network import Clock
from dualcoll.time_expanded.solution import Solution
from dualcoll.time_expanded.solve import Search, solve
from dualcoll.time_expanded.task import Task, make_task, with_copy
from dualcoll.time_expanded.to_schedule import to_schedule
from dualcoll.topology.failed import without
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["Tenants", "after_failure", "best_possible", "plan_epochs", "replay", "task_for", "tenants"]

BOUND_SHARE = 0.1  # of the time, for the bound of packing


def task_for(
    topology: Topology,
    collective: str | Workload = "allgather",
    *,
    size: int | str = "1M",
    ranks: str | Sequence[int | str] | None = None,
    root: int | str | None = None,
    weights: Sequence[int] | None = None,
    demand: DemandMatrix | None = None,
    groups: str | Sequence[str] | None = None,
    forward: str = "switches",
    chunks_per_rank: int = 1,
    clock: Clock | None = None,
) -> Task:
    """What is to be scheduled in epochs.

    Args:
        topology: the fabric.
        collective: any spelling of a collective, or a workload; then ``size`` to ``groups`` are not read.
        size, ranks, root, weights, demand, groups, forward: as of :func:`dualcoll.plan`.
        chunks_per_rank: chunks that the largest shard is cut into.
        clock: how time is cut, and what switches and ranks may do.

    Raises:
        InputError: an unusable argument.
    """
    work = collective
    if not isinstance(work, Workload):
        given = {"size": size, "ranks": ranks, "root": root, "weights": weights, "demand": demand, "groups": groups}
        work = make_workload(topology, work, **given)  # type: ignore[arg-type]
    if forward not in tuple(Forwarding):
        raise InputError(f"forward {forward!r} is not known", hint='use "switches" or "all"')
    return make_task(topology, work, chunks_per_rank=chunks_per_rank, forwarding=Forwarding(forward), clock=clock)


def plan_epochs(
    task: Task,
    *,
    engine: str | None = None,
    seed: int = 0,
    earliest: bool = False,
    priorities: Sequence[int] = (),
    start: Solution | None = None,
    stop: Stop | None = None,
    progress: Callable[[Progress], None] | None = None,
    meter: Meter | None = None,
    tell: Callable[[Solution], None] = lambda _: None,
) -> Solution:
    """Schedule in epochs: which chunk crosses which link when, proved as far as time allows (docs/time-expanded.md).

    Args:
        task: from :func:`task_for`.
        engine: ``"cp-sat"``, ``"highs"`` or ``"gurobi"``; by default the first that is installed.
        seed: of everything random.
        earliest: among schedules of least makespan, one that delivers early: the paper's objective.
        priorities: of each group of the workload, higher first.
        start: a solution of the same task, to go on from.
        stop, progress, meter: as of :func:`dualcoll.plan`; progress is told in 1 / epochs.
        tell: called with every better solution and bound.

    Returns:
        The solution; :func:`dualcoll.schedule` makes sends of it.

    Raises:
        InputError: an unusable argument, or a problem too large for this machine.
    """
    clock = meter or Meter(stop or Gap(0.0), progress)
    clock.begin()
    name = default_engine() if engine is None else engine
    get_engine(name)  # said at once, also where the search needs none
    search = Search(clock, name, seed, earliest, tell)
    return solve(task, search, start=start, bound=_rate_bound(task, clock), priorities=priorities)


def _rate_bound(task: Task, clock: Meter) -> tuple[int, str]:
    """Epochs that the bound of packing proves, for what spreads and gathers at once."""
    workload = task.workload
    if workload is None or task.copying is None or task.reducing is None:
        return 0, ""  # of one part, the solvers' own bounds know more
    found = make_plan(
        task.network.topology,
        workload,
        stop=Gap(0.01) | Seconds(max(1.0, BOUND_SHARE * min(clock.remaining, 100.0))),
        forward=str(task.network.forwarding),
    )
    rate = found.in_network.rate if task.network.clock.switch_copy and found.in_network is not None else found.bound
    seconds = workload.size / rate
    return math.ceil(seconds / task.network.epoch * (1 - 1e-9)), "the rate that tree packing proves"


@dataclass(frozen=True, slots=True)
class Tenants:
    """Groups that share a fabric, beside each alone and one after the other.

    Attributes:
        together: epoch by which each group is done, (groups,). alone: the same if it had the fabric to itself.
        in_turn: epochs of all, one group after the other.
    """

    together: tuple[int, ...]
    alone: tuple[int, ...]
    in_turn: int


def tenants(found: Solution, *, stop: Stop, engine: str | None = None) -> Tenants:
    """Hold a solution for several groups against each group alone and in turn, by searches of their own.

    Args:
        found: the solution of a workload; every group keeps its epoch and chunk.
        stop: of each search. engine: of all.
    """
    workload = found.task.workload
    assert workload is not None
    network = found.task.network
    clock = replace(network.clock, epoch=network.epoch, multiplier=1.0)
    alone = []
    for group in workload.groups:
        task = make_task(
            network.topology,
            Workload((group,)),
            chunk=network.chunk,
            forwarding=network.forwarding,
            clock=clock,
        )
        alone.append(plan_epochs(task, engine=engine, stop=stop).finish)
    return Tenants(tuple(found.group_finish().tolist()), tuple(alone), sum(alone))


def after_failure(
    found: Solution, failed: Sequence[str], *, stop: Stop, engine: str | None = None, seed: int = 0
) -> Solution:
    """The same workload, in the same epochs and chunks, on what is left of its fabric.

    A GPU that fails takes its part of the data with it.

    Args:
        found: the solution of a workload on the whole fabric.
        failed: nodes and links, as :func:`dualcoll.topology.failed.without` takes them.
        stop, engine, seed: of the search.

    Raises:
        InputError: a name that names nothing, a root or a rank with a part of its own that failed, or ranks cut off.
    """
    network, workload = found.task.network, found.task.workload
    assert workload is not None
    names = [node.name for node in network.topology.nodes]
    left = without(network.topology, failed)
    groups = []
    for group in workload.groups:
        alive = [names[rank] for rank in group.ranks if names[rank] in left.index]
        root = None if group.root is None else left.index.get(names[group.root])
        if len(alive) < len(group.ranks) and (group.parts or (group.root is not None and root is None)):
            lost = next(names[rank] for rank in group.ranks if names[rank] not in left.index)
            raise InputError(f"nobody can take the part of {lost}", where=f"group {group.name}")
        ranks = tuple(left.index[name] for name in alive)
        groups.append(replace(group, ranks=ranks, root=root, size=group.size * len(alive) // len(group.ranks)))
    clock = replace(network.clock, epoch=network.epoch, multiplier=1.0)
    task = make_task(left, Workload(tuple(groups)), chunk=network.chunk, forwarding=network.forwarding, clock=clock)
    return plan_epochs(task, engine=engine, seed=seed, stop=stop)


def best_possible(task: Task, *, stop: Stop, engine: str | None = None) -> list[tuple[str, Solution | None]]:
    """The best schedules of a task where ranks copy, and where they do not; None for what is not found in time."""
    found: list[tuple[str, Solution | None]] = []
    for name, copy in (("with copy", True), ("without", False)):
        if task.reducing is not None and task.network.clock.copy != copy:
            continue  # what is reduced is sent once, and what was reduced is to be spread
        try:
            found.append((name, plan_epochs(with_copy(task, copy=copy), engine=engine, stop=stop)))
        except InputError:
            found.append((name, None))
    return found


def replay(found: Solution) -> tuple[Schedule, Trace]:
    """Its sends, and how long they take in the alpha-beta model when each is sent when it is ready, in the schedule's order on
    every link.
    """
    made = to_schedule(found)
    speed = found.task.network.clock.reduction_speed
    return made, simulate(made, Options(in_order=True, reduction_speed=speed))
