"""The verbs: wiring only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dualcoll.certificates import Proof, check_plan
from dualcoll.collectives.demand_matrix import DemandMatrix
from dualcoll.collectives.request import make_workload
from dualcoll.collectives.workload import Workload
from dualcoll.diagnosis.bottleneck import bottlenecks
from dualcoll.errors import InputError
from dualcoll.packing.collective import alike_rows, packing_problem
from dualcoll.packing.column_generation import FLAT, column_generation
from dualcoll.packing.composed import composed_packing
from dualcoll.packing.cuts import cut_prices, least_cut
from dualcoll.packing.few_trees import fewer, frontier, most_of_one_demand
from dualcoll.packing.finish import claims, plan_trees, tidied
from dualcoll.packing.garg_konemann import epsilon_for, garg_konemann
from dualcoll.packing.pool import Packing
from dualcoll.packing.problem import UNLIMITED, PackingProblem, Shape
from dualcoll.packing.warm_start import prices_from
from dualcoll.plans.conversion import plan_to_document
from dualcoll.plans.document import PlanDocument
from dualcoll.plans.file import read_document
from dualcoll.plans.model import Alternative, Cut, Plan, Tradeoff
from dualcoll.progress import OPTIMAL_GAP, Gap, Meter, Outcome, Progress, Stop, relative_gap
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["METHODS", "check", "plan"]

METHODS = ("auto", "garg-konemann", "composed")


def plan(
    topology: Topology,
    collective: str | Workload = "allreduce",
    *,
    size: int | str = "1G",
    stop: Stop | None = None,
    ranks: str | Sequence[int | str] | None = None,
    root: int | str | None = None,
    weights: Sequence[int] | None = None,
    demand: DemandMatrix | None = None,
    groups: str | Sequence[str] | None = None,
    objective: str = "slowest",
    forward: str = "switches",
    relay: bool = True,
    routing: str = "single",
    method: str = "auto",
    seed: int = 0,
    max_trees: int | None = None,
    max_depth: int | None = None,
    start: Plan | None = None,
    pareto: bool = False,
    progress: Callable[[Progress], None] | None = None,
    meter: Meter | None = None,
) -> Plan:
    """Plan a collective and prove how good the plan is.

    Args:
        topology: the fabric.
        collective: any spelling of a collective, or a workload of groups and mixes made by :func:`workload` or
            :func:`read_mix`; then ``size`` to ``objective`` are not read.
        size: bytes of the message as nccl-tests counts them, or text such as ``"1GiB"``.
        stop: when to stop, such as ``Gap(0.01) | Seconds(30)``; the default is the exact optimum. The seconds are those of
            the search, without compiling kernels and building the problem.
        ranks: who takes part: ``"0-7,12"``, names, or a list of either; all ranks by default.
        root: of a Broadcast, Reduce, Gather or Scatter; the first rank by default.
        weights: relative sizes of the shards, by rank.
        demand: bytes from each rank to each, of an AllToAllv.
        groups: several groups at once instead of ``ranks``, such as ``"8 groups of stride 8"``.
        objective: ``"slowest"`` or ``"total"``.
        forward: ``"switches"``, or ``"all"`` to let every GPU and host forward for others.
        relay: whether ranks pass on what one of them sends another.
        routing: ``"single"``, ``"spray"``, ``"spray-cables"``, ``"spray-hops"`` or ``"ecmp"``.
        method: ``"auto"`` (column generation), ``"garg-konemann"`` (the paper's algorithm; its ε follows from the gap) or
            ``"composed"`` (an AllReduce out of the best AllGather trees, the baseline of the paper).
        seed: breaks ties between equally cheap trees; also of the hash of ``ecmp``.
        max_trees: at most this many trees for each demand; the best packing found with so few, its loss proved by the bound.
        max_depth: at most this many logical edges from a root to a rank.
        start: a plan of the same ranks on a similar fabric, to start from its prices.
        pareto: also say what fewer trees reach, in ``Plan.frontier``.
        progress: called with each report.
        meter: a clock of the caller's own instead of ``stop`` and ``progress``, for interrupting from outside.

    Returns:
        The plan; :func:`check` proves it.

    Raises:
        InputError: an unusable argument, or ranks that cannot reach each other.
    """
    if isinstance(collective, Workload):
        work = collective
    else:
        work = make_workload(
            topology,
            collective,
            size=size,
            ranks=ranks,
            root=root,
            weights=weights,
            demand=demand,
            groups=groups,
            objective=objective,
        )
    if any(group.priority for group in work.groups):
        hint = "schedule in epochs (method time-expanded), or leave them out"
        raise InputError("rates know no priority", where="priority", hint=hint)
    _check_wishes(forward, routing, method, {"max_trees": max_trees, "max_depth": max_depth}, start, pareto)
    forwarding, routes = Forwarding(forward), Routing(RoutingKind(routing), seed if routing == "ecmp" else 0)
    clock = meter or Meter(stop or Gap(0.0), progress)
    if method == "composed":
        return _composed(topology, work, forwarding, routes, clock, seed)
    problem = packing_problem(topology, work, forwarding, routes, relay=relay)
    cut = least_cut(topology, problem.fabric, work)
    shape = Shape(FLAT.flatness, UNLIMITED if max_depth is None else max_depth)
    problem.try_out()
    clock.begin()
    if method == "auto":
        known = [] if cut is None else [cut_prices(problem, cut)]
        if start is not None:
            known.append(prices_from(start, topology, work.ranks, problem))
        packing, outcome, calls = column_generation(problem, clock, seed, shape, known)
    else:
        packing, outcome, calls = garg_konemann(problem, epsilon_for(clock.stop.gap), clock)
    random = np.random.default_rng(seed)
    full = packing
    if max_trees is not None and most_of_one_demand(packing) > max_trees:
        packing = fewer(problem, full, max_trees, shape, random, lambda: clock.spent)
        outcome = _outcome_of_few(packing, outcome, clock)
    tradeoffs: tuple[Tradeoff, ...] = ()
    if pareto:
        most = max_trees or UNLIMITED
        tradeoffs = frontier(problem, full, most, shape.max_depth, random, lambda: clock.spent)
    made = _finished(topology, work, problem, packing, (forwarding, relay, routes), cut, outcome, clock, calls)
    return replace(made, method=method, frontier=tradeoffs)


def _finished(
    topology: Topology,
    work: Workload,
    problem: PackingProblem,
    packing: Packing,
    travel: tuple[Forwarding, bool, Routing],
    cut: Cut | None,
    outcome: Outcome,
    clock: Meter,
    calls: int,
) -> Plan:
    """The packing as a plan, with claims that exact arithmetic will support."""
    packing = tidied(problem, packing, alike_rows(topology, work))
    trees = plan_trees(problem, packing, work.demands())
    value, bound, prices = claims(problem, packing, work, trees)
    links = problem.fabric.links
    forwarding, relay, routing = travel
    made = Plan(
        topology=topology,
        workload=work,
        forwarding=forwarding,
        relay=relay,
        routing=routing,
        trees=trees,
        link_prices=prices[:links],
        shared_prices=prices[links:],
        value=value,
        bound=bound,
        in_network=cut,
        outcome=outcome,
        seconds=clock.seconds,
        iterations=calls,
        history=tuple(clock.history),
    )
    return replace(made, bottleneck=bottlenecks(made))


def _composed(
    topology: Topology, work: Workload, forwarding: Forwarding, routing: Routing, clock: Meter, seed: int
) -> Plan:
    problem, packing, found, outcome, calls = composed_packing(topology, work, forwarding, routing, clock, seed)
    cut = least_cut(topology, problem.fabric, work)
    made = _finished(topology, work, problem, packing, (forwarding, True, routing), cut, outcome, clock, calls)
    reverse = "their reverse" if found.reversed else "ReduceScatter trees of its own"
    ways = (
        (found.sequential, "ReduceScatter, then AllGather"),
        (found.given.rate, f"the AllGather's trees as they were found and {reverse} at the same time"),
        (found.best.rate, f"the best optimal AllGather trees and {reverse} at the same time: this plan"),
        (found.direct, "an AllReduce that is not composed (method auto)"),
    )
    return replace(made, method="composed", alternatives=tuple(Alternative(rate, text) for rate, text in ways))


def _check_wishes(
    forward: str, routing: str, method: str, limits: dict[str, int | None], start: Plan | None, pareto: bool
) -> None:
    if routing not in tuple(RoutingKind):
        raise InputError(f"routing {routing!r} is not known", hint=f"use one of {', '.join(RoutingKind)}")
    if forward not in tuple(Forwarding):
        raise InputError(f"forward {forward!r} is not known", hint='use "switches" or "all"')
    if method not in METHODS:
        raise InputError(f"method {method!r} is not known", hint=f"use one of {', '.join(METHODS)}")
    for limit, most in limits.items():
        if most is not None and most < 1:
            raise InputError(f"{limit} {most} is not a positive number")
        if most is not None and method != "auto":
            raise InputError(f"{limit} needs the method auto", where=f"method {method}")
    if pareto and method != "auto":
        raise InputError("the table of fewer trees needs the method auto", where=f"method {method}")
    if start is not None and method != "auto":
        raise InputError("starting from a plan needs the method auto", where=f"method {method}")


def _outcome_of_few(packing: Packing, outcome: Outcome, clock: Meter) -> Outcome:
    gap = relative_gap(packing.value, packing.bound)
    if gap > max(clock.stop.gap, OPTIMAL_GAP):
        if clock.spent:
            return Outcome.INTERRUPTED if clock.interrupted else Outcome.TIME
        return Outcome.LIMITED
    return Outcome.GAP if gap > OPTIMAL_GAP and outcome is Outcome.OPTIMAL else outcome


def check(plan: Plan | PlanDocument | str | Path, topology: Topology | None = None) -> Proof:
    """Prove a plan's claims exactly, or say which is not supported.

    Args:
        plan: a plan, or a plan file that anybody wrote.
        topology: another fabric to hold it against; its own by default.

    Raises:
        CheckFailed: with every unsupported claim and its witness.
        InputError: a file that is no plan.
    """
    if isinstance(plan, Plan):
        plan = plan_to_document(plan)
    elif not isinstance(plan, PlanDocument):
        plan = read_document(Path(plan))
    return check_plan(plan, topology)
