"""AllReduce composed of ReduceScatter and AllGather: the baselines of the DualColl paper (appendices A and B).

There are three of them, and they differ: one collective after the other; the trees at hand together with their reverse; and
the best that any optimal trees can do together. The direct AllReduce may beat them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.workload import Group, Workload
from dualcoll.errors import InputError
from dualcoll.packing.collective import packing_problem
from dualcoll.packing.column_generation import FLAT, column_generation
from dualcoll.packing.cuts import cut_prices, least_cut
from dualcoll.packing.overlap import Joint, Witness
from dualcoll.packing.pool import Packing
from dualcoll.packing.problem import Column, PackingProblem, RoutedTree
from dualcoll.plans.model import Phase, Tree
from dualcoll.progress import OPTIMAL_GAP, Meter, Outcome, Stop, relative_gap
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.topology.arrays import FabricArrays, fabric_arrays, reversal
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["Composed", "Overlap", "composed", "composed_packing", "overlap_with_reverse"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_STEPS = 32  # of Newton's method; three are many
PRECISE = 1e-8  # relative; trees this close to the optimum are optimal


@dataclass(frozen=True, slots=True)
class Overlap:
    """AllGather trees and ReduceScatter trees at the same time.

    Attributes:
        rate: algbw of the AllReduce, bytes/s. bound: no such trees reach more, bytes/s.
        allgather: algbw of the AllGather's trees alone.
        crowding: τ, load over capacity of the busiest row when both run at the rate that they reach alone; from 1 to 2.
        worst: the capacity rows where it is so.
        columns, rates: the same as pairs of an in-tree and an out-tree, float64 (T,), bytes/s; they sum to ``rate``.
    """

    rate: float
    bound: float
    allgather: float
    crowding: float
    worst: tuple[int, ...]
    columns: tuple[Column, ...]
    rates: Floats


@dataclass(frozen=True, slots=True)
class Composed:
    """What AllReduce reaches in different ways, as algbw in bytes/s.

    Attributes:
        allgather, reducescatter: algbw of each alone, with what is proved of them (``..._bound``).
        sequential: ReduceScatter, then AllGather.
        given: the AllGather's trees as they were found, and their reverse at the same time.
        best: the best of all optimal trees.
        direct, direct_bound: of an AllReduce that is not composed.
        reversed: whether the ReduceScatter is the AllGather's reverse. Where the fabric is not symmetric, or the network
            chooses the routes, its trees are optimal ones of its own, and "reverse" means these.
    """

    allgather: float
    allgather_bound: float
    reducescatter: float
    reducescatter_bound: float
    given: Overlap
    best: Overlap
    direct: float
    direct_bound: float
    reversed: bool

    @property
    def sequential(self) -> float:
        """One after the other."""
        return 1 / (1 / self.allgather + 1 / self.reducescatter)


class _Solver:
    """Solves one problem after another on one clock."""

    def __init__(self, topology: Topology, workload: Workload, forwarding: Forwarding, routing: Routing, meter: Meter, seed: int) -> None:
        self._topology = topology
        self._group = workload.groups[0]
        self._forwarding = forwarding
        self._routing = routing
        self._seed = seed
        self.meter = meter
        self.calls = 0

    def collective(self, name: str) -> tuple[PackingProblem, Packing]:
        """The collective's problem and optimum."""
        group = self._group
        workload = Workload((Group(group.name, name, group.ranks, group.size),))
        problem = packing_problem(self._topology, workload, self._forwarding, self._routing)
        cut = least_cut(self._topology, problem.fabric, workload)
        return problem, self.solve(problem, [] if cut is None else [cut_prices(problem, cut)])

    def solve(self, problem: PackingProblem, known: Sequence[Floats]) -> Packing:
        def heed(_: object) -> None:
            if self.meter.interrupted:
                clock.interrupt()

        clock = Meter(Stop(self.meter.stop.gap, max(self.meter.remaining, 1e-3)), heed)
        packing, _, calls = column_generation(problem, clock, self._seed, FLAT, known)
        self.calls += calls
        return packing


def composed(
    topology: Topology,
    ranks: Sequence[int],
    forwarding: Forwarding = Forwarding.SWITCHES,
    size: int = 1 << 30,
    routing: Routing | None = None,
    meter: Meter | None = None,
    seed: int = 0,
) -> Composed:
    """All ways to compose an AllReduce, and the direct one.

    Args:
        ranks: node indices. size: bytes of the message.
        meter: its gap is that of every number, its time limit that of all together.

    Raises:
        InputError: ranks that cannot reach each other.
    """
    workload = Workload((Group("all", "allreduce", tuple(ranks), size),))
    return composed_packing(topology, workload, forwarding, routing, meter, seed)[2]


def composed_packing(
    topology: Topology,
    workload: Workload,
    forwarding: Forwarding = Forwarding.SWITCHES,
    routing: Routing | None = None,
    meter: Meter | None = None,
    seed: int = 0,
) -> tuple[PackingProblem, Packing, Composed, Outcome, int]:
    """The best composed AllReduce as a packing of the AllReduce problem, with prices that bound every AllReduce.

    Returns:
        The problem, the packing, what else there is, why it ended, and the number of oracle calls. A composed AllReduce that
        is slower than the bound by more than the gap asked for is LIMITED.

    Raises:
        InputError: a workload that is not one AllReduce, or ranks that cannot reach each other.
    """
    if len(workload.groups) != 1 or workload.collective != "allreduce":
        raise InputError("only an AllReduce of one group is composed of ReduceScatter and AllGather", where="method composed")
    routing = routing or Routing()
    solver = _Solver(topology, workload, forwarding, routing, meter or Meter(Stop()), seed)
    problem, direct = solver.collective("allreduce")
    partner = _partner(topology, routing)
    halves = [solver.collective(name) for name in ("allgather", "reducescatter")[: 1 if partner is not None else 2]]
    given = _overlap([packing for _, packing in halves], halves[0][0], partner)
    best = _best(solver, halves, given, direct.bound, partner)
    gather, scatter = halves[0][1], halves[-1][1]
    found = Composed(
        allgather=gather.value,
        allgather_bound=gather.bound,
        reducescatter=scatter.value,
        reducescatter_bound=scatter.bound,
        given=given,
        best=best,
        direct=direct.value,
        direct_bound=direct.bound,
        reversed=partner is not None,
    )
    packing = Packing(best.columns, best.rates, best.rate, direct.prices, direct.bound)
    outcome = solver.meter.outcome(solver.calls, best.rate, direct.bound) or Outcome.LIMITED
    return problem, packing, found, outcome, solver.calls


def overlap_with_reverse(topology: Topology, trees: Sequence[Tree]) -> Overlap | None:
    """AllGather trees, as they are, and their reverse at the same time.

    Args:
        trees: of an AllGather plan, or of any other with routes in travelling order.

    Returns:
        What they reach as an AllReduce; None where they have no reverse: the fabric is not symmetric, or packets are sprayed.
    """
    partner = reversal(topology)
    if partner is None or any(tree.route_share is not None for tree in trees):
        return None
    fabric = fabric_arrays(topology)
    columns = [
        Column.of(0, 0.0, RoutedTree(tree.root, tree.edges, tree.phase, tree.route_ptr, tree.route_links)) for tree in trees
    ]
    return _together([(columns, np.array([tree.rate for tree in trees]))], fabric, partner)


def _partner(topology: Topology, routing: Routing) -> Ints | None:
    """The reverse of each link, where trees can be run backwards over them."""
    partner = reversal(topology) if routing.kind is RoutingKind.SINGLE else None
    if partner is not None:
        for row in topology.shared:
            common = set(row.links).intersection(partner[list(row.links)].tolist())
            if common and len(common) < len(row.links):
                return None  # half of what it is over would count twice
    return partner


def _best(
    solver: _Solver,
    halves: Sequence[tuple[PackingProblem, Packing]],
    given: Overlap,
    most: float,
    partner: Ints | None,
) -> Overlap:
    """The optimal trees with the least crowding; the given ones if the clock ends the search."""
    joint = Joint([problem for problem, _ in halves], [packing.value for _, packing in halves], partner)
    rate = halves[0][1].value
    enough = rate * (1 - max(2 * solver.meter.stop.gap, PRECISE))
    crowding = rate / most
    found, known = given, []
    witnesses: list[Witness] = []
    for _ in range(MOST_STEPS):
        problem = joint.problem(crowding)
        packing = solver.solve(problem, known)
        witnesses.append(joint.witness(problem, packing, crowding))
        known = [packing.prices]
        if packing.value >= enough:
            overlap = _overlap(_apart(packing, len(halves)), halves[0][0], partner)
            found = max(given, overlap, key=lambda one: one.rate)
            break
        least = witnesses[-1].crowding(rate)
        if solver.meter.spent or least <= crowding * (1 + OPTIMAL_GAP):
            break
        crowding = least
    limits = [found.allgather / limit for w in witnesses if (limit := w.crowding(found.allgather)) > 0]
    return replace(found, bound=min([most, *limits]))


def _apart(packing: Packing, halves: int) -> list[Packing]:
    """The packings of the halves within a joint one, whose demands are numbered half by half."""
    demand = np.array([column.demand for column in packing.columns])
    ...


def _overlap(packings: Sequence[Packing], problem: PackingProblem, partner: Ints | None) -> Overlap:
    """The overlap of an AllGather's packing and a ReduceScatter's, or the reverse of the first."""
    rate = packings[0].value
    trees = [_evened(packing, rate) for packing in packings]
    return _together(trees, problem.fabric, partner)
