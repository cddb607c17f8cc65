"""AllReduce composed of ReduceScatter and AllGather: the baselines of the DualColl paper (appendices A and B).

There are three of them, and they differ: one collective after the other; the trees at hand together with their reverse; and
the best that any optimal trees can do together. The direct AllReduce may beat them all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.workload import Group, Workload
from dualcoll.errors import InputError
from dualcoll.packing.collective import packing_problem
from dualcoll.packing.column_generation import FLAT, column_generation
from dualcoll.packing.cuts import cut_prices, least_cut
from dualcoll.packing.joint import Joint, Witness
from dualcoll.packing.overlap import Overlap, RatedTree, overlap, reversed_trees
from dualcoll.packing.pool import Packing
from dualcoll.packing.problem import PackingProblem
from dualcoll.plans.model import Phase
from dualcoll.progress import OPTIMAL_GAP, Meter, Outcome, Stop
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.topology.arrays import FabricArrays, reversal
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["Composed", "composed", "composed_packing"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_STEPS = 32  # of Newton's method; three are many
PRECISE = 1e-8  # relative; trees this close to the optimum are optimal


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
    """Solves one problem after another on one clock, which begins now."""

    def __init__(self, meter: Meter, seed: int) -> None:
        self.meter = meter
        self.calls = 0
        self._seed = seed
        meter.begin()

    def solve(self, problem: PackingProblem, known: Sequence[Floats], left: int) -> Packing:
        """The optimum, with ``left`` problems to be solved in the time that is left."""

        def heed(_: object) -> None:
            if self.meter.interrupted:
                clock.interrupt()

        clock = Meter(Stop(self.meter.stop.gap, max(self.meter.remaining / left, 1e-3)), heed)
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
        raise InputError(
            "only an AllReduce of one group is composed of ReduceScatter and AllGather", where="method composed"
        )
    routing = routing or Routing()
    partner = _partner(topology, routing)
    group = workload.groups[0]
    names = ("allreduce", "allgather", "reducescatter")[: 2 if partner is not None else 3]
    works = [Workload((replace(group, collective=name),)) for name in names]
    problems = [packing_problem(topology, work, forwarding, routing) for work in works]
    for problem in problems:
        problem.try_out()
    solver = _Solver(meter or Meter(Stop()), seed)
    packings: list[Packing] = []
    for problem, work in zip(problems, works, strict=True):
        cut = least_cut(topology, problem.fabric, work)
        known = [] if cut is None else [cut_prices(problem, cut)]
        packings.append(solver.solve(problem, known, len(problems) - len(packings) + 1))
    direct, *halves = packings
    given = _of_packings(halves, halves[0].value, problems[1].fabric, partner)
    joint = Joint(problems[1:], [half.value for half in halves], partner)
    best = _best(solver, joint, given, direct.bound, partner)
    gather, scatter = halves[0], halves[-1]
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
    return problems[0], packing, found, outcome, solver.calls


def _partner(topology: Topology, routing: Routing) -> Ints | None:
    """The reverse of each link, where trees can be run backwards over them."""
    partner = reversal(topology) if routing.kind is RoutingKind.SINGLE else None
    if partner is not None:
        for row in topology.shared:
            common = set(row.links).intersection(partner[list(row.links)].tolist())
            if common and len(common) < len(row.links):
                return None  # part of what it is over would count twice
    return partner


def _best(solver: _Solver, joint: Joint, given: Overlap, most: float, partner: Ints | None) -> Overlap:
    """The optimal trees with the least crowding, ``most`` being a bound on every AllReduce; the given ones if time is up."""
    rate = given.allgather
    enough = rate * (1 - max(2 * solver.meter.stop.gap, PRECISE))
    crowding = rate / most
    best = given
    known: list[Floats] = []
    witnesses: list[Witness] = []
    while not solver.meter.spent and len(witnesses) < MOST_STEPS:
        problem = joint.problem(crowding)
        packing = solver.solve(problem, known, 1)
        witnesses.append(joint.witness(problem, packing, crowding))
        known = [packing.prices]
        if packing.value >= enough:
            best = max(given, _of_packings([packing], packing.value, joint.fabric, partner), key=lambda one: one.rate)
            break
        least = witnesses[-1].crowding(rate)
        if least <= crowding * (1 + OPTIMAL_GAP):
            break
        crowding = least
    limits = (witness.crowding(best.allgather) for witness in witnesses)
    return replace(best, bound=min([most, *(best.allgather / limit for limit in limits if limit > 0)]))


def _of_packings(packings: Sequence[Packing], rate: float, fabric: FabricArrays, partner: Ints | None) -> Overlap:
    """The overlap of packings of an AllGather and, unless it is the reverse, a ReduceScatter, all at this algbw."""
    gathers: list[RatedTree] = []
    scatters: list[RatedTree] = []
    for packing in packings:
        for t in np.flatnonzero(packing.rates).tolist():
            tree = packing.columns[t].tree
            (scatters if tree.phase[0] == Phase.REDUCE else gathers).append((tree, float(packing.rates[t])))
    gathers = _evened(gathers, rate)
    scatters = _evened(scatters, rate) if partner is None else reversed_trees(gathers, partner)
    return overlap(gathers, scatters, fabric)


def _evened(trees: list[RatedTree], rate: float) -> list[RatedTree]:
    """The trees at rates that give every root an equal part of the algbw."""
    carried: dict[int, float] = defaultdict(float)
    for tree, of_tree in trees:
        carried[tree.root] += of_tree
    return [(tree, of_tree * rate / len(carried) / carried[tree.root]) for tree, of_tree in trees]
