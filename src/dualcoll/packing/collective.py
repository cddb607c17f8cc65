"""A workload as a packing problem: which columns, which oracles, which rows."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.workload import Demand, Group, Objective, Pattern, Workload
from dualcoll.errors import InputError
from dualcoll.packing.oracles.arborescences import ArborescenceOracle
from dualcoll.packing.oracles.joined import JoinedOracle
from dualcoll.packing.oracles.paths import PathOracle
from dualcoll.packing.oracles.reach import require_reach
from dualcoll.packing.oracles.spanning_tree import ProjectedTreeOracle, VoronoiTreeOracle
from dualcoll.packing.problem import Oracle, PackingProblem
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.routing.policy_graph import policy_graph, require_connected
from dualcoll.routing.routers import make_router
from dualcoll.topology.arrays import fabric_arrays, reversal
from dualcoll.topology.model import Forwarding, Topology
from dualcoll.topology.symmetry import link_classes

__all__ = ["MANY_CLASSES", "Columns", "alike_rows", "packing_problem"]

Ints = NDArray[np.int64]

MANY_CLASSES = 64  # beyond it, prices by class are no shortcut


class Columns(StrEnum):
    """Which structures may carry an AllReduce; AUTO takes simple trees exactly where they are optimal."""

    AUTO = "auto"
    SIMPLE = "simple"
    PAIR = "pair"


def packing_problem(
    topology: Topology,
    workload: Workload,
    forwarding: Forwarding = Forwarding.SWITCHES,
    routing: Routing | None = None,
    *,
    relay: bool = True,
    columns: Columns = Columns.AUTO,
) -> PackingProblem:
    """The packing problem of a workload.

    Args:
        relay: whether ranks of a group pass on what one of them sends another.

    Raises:
        InputError: nothing to carry, a rank that cannot be reached, or simple trees asked for where they are not optimal.
    """
    routing = routing or Routing()
    demands = workload.demands()
    if not demands:
        raise InputError("there is nothing to send", where=topology.name, hint="give a demand of one byte or more")
    fabric = fabric_arrays(topology)
    only_allreduce = all(demand.pattern is Pattern.ALLREDUCE for demand in demands)
    may_be_simple = only_allreduce and routing.kind is RoutingKind.SINGLE and columns is not Columns.PAIR
    partner = reversal(topology) if may_be_simple else None
    if columns is Columns.SIMPLE and partner is None:
        raise InputError(
            "simple trees need equal capacity in both directions of every cable", where=topology.name, hint="use pairs"
        )
    if partner is not None:
        rows = _mirrored_rows(topology, partner)
        oracles = [(_simple_trees(topology, group, forwarding, partner), 1) for group in workload.groups]
    else:
        rows = np.arange(fabric.capacity.size)
        of_group = [[demand for demand in demands if demand.group == g] for g in range(len(workload.groups))]
        oracles = [
            (_oracle(topology, group, mine, forwarding, routing, relay=relay), len(mine))
            for group, mine in zip(workload.groups, of_group, strict=True)
            if mine
        ]
    part, goal = _needs(workload, demands)
    oracle = oracles[0][0] if len(oracles) == 1 else JoinedOracle(oracles)
    return PackingProblem.of(fabric, rows, oracle, part, goal, _alike(topology, workload))


def _needs(workload: Workload, demands: Sequence[Demand]) -> tuple[NDArray[np.float64], Ints]:
    """p_j and the goal of each demand, (J,)."""
    group = np.array([demand.group for demand in demands])
    if workload.objective is Objective.TOTAL:
        part = [float(demand.part / workload.groups[demand.group].size) for demand in demands]
        return np.array(part), np.unique(group, return_inverse=True)[1].astype(np.int64)
    return np.array([float(demand.part / workload.size) for demand in demands]), np.zeros(group.size, np.int64)


def _simple_trees(topology: Topology, group: Group, forwarding: Forwarding, partner: Ints) -> Oracle:
    graph = policy_graph(topology, group.ranks, forwarding)
    require_connected(topology, group.ranks, graph)
    if graph.unconditional:
        return VoronoiTreeOracle(topology, partner, group.ranks, forwarding)
    router = make_router(topology, group.ranks, forwarding, Routing())
    return ProjectedTreeOracle(router, group.ranks, partner)


def _oracle(
    topology: Topology, group: Group, demands: list[Demand], forwarding: Forwarding, routing: Routing, *, relay: bool
) -> Oracle:
    router = make_router(topology, group.ranks, forwarding, routing)
    number = {node: i for i, node in enumerate(group.ranks)}
    roots = np.array([number.get(demand.root, 0) if demand.root is not None else 0 for demand in demands], np.int64)
    patterns = tuple(demand.pattern for demand in demands)
    targets = np.array([number[demand.target] if demand.target is not None else -1 for demand in demands], np.int64)
    require_reach(topology, group.ranks, router, patterns, roots, targets, relay=relay)
    if patterns[0] is Pattern.SEND:
        part = np.array([float(demand.part) for demand in demands])
        return PathOracle(router, group.ranks, roots, targets, part, len(topology.links), relay=relay)
    return ArborescenceOracle(router, group.ranks, patterns, roots)


def _roles(topology: Topology, workload: Workload) -> Ints:
    """A number per node (V,), equal for nodes that play the same parts in the workload, whatever the group."""
    played: list[list[tuple[object, ...]]] = [[] for _ in topology.nodes]
    for group in workload.groups:
        n = len(group.ranks)
        for i, rank in enumerate(group.ranks):
            parts: tuple[int, ...] = group.parts[i : i + 1]
            if len(group.parts) > n:
                parts = (sum(group.parts[i * n : (i + 1) * n]), sum(group.parts[i::n]), group.parts[i * (n + 1)])
            played[rank].append((group.collective, group.size, n, rank == group.root, parts))
    number: dict[object, int] = {}
    return np.array([number.setdefault(tuple(sorted(parts)), len(number)) for parts in played], np.int64)


def alike_rows(topology: Topology, workload: Workload) -> Ints:
    """A class for every capacity row (E+S,): links that look alike share one, and so do shared capacities over alike links."""
    roles = _roles(topology, workload)
    return _with_shared(topology, link_classes(topology, roles, by_capacity=True, most=MANY_CLASSES))


def _alike(topology: Topology, workload: Workload) -> tuple[Ints, ...]:
    """Proposals of classes, coarse ones first: by the kinds of the ends, as if nothing were degraded, and as it is.

    None so fine that they are no shortcut.
    """
    roles = _roles(topology, workload)
    if roles.max() >= MANY_CLASSES:
        return ()
    kinds = link_classes(topology, roles, by_capacity=False, rounds=0)
    plain = link_classes(topology, roles, by_capacity=False, most=MANY_CLASSES)
    exact = link_classes(topology, roles, by_capacity=True, most=MANY_CLASSES)
    proposals = [_with_shared(topology, kinds)]
    for finer in (plain, exact):
        whole = _with_shared(topology, finer)
        if proposals[-1].max() < whole.max() < MANY_CLASSES:
            proposals.append(whole)
    return tuple(proposals)


def _with_shared(topology: Topology, classes: Ints) -> Ints:
    number: dict[object, int] = {}
    first = int(classes.max()) + 1
    rows = [
        first + number.setdefault((row.capacity, tuple(sorted(classes[list(row.links)].tolist()))), len(number))
        for row in topology.shared
    ]
    return np.concatenate([classes, np.array(rows, np.int64)])


def _mirrored_rows(topology: Topology, partner: Ints) -> Ints:
    """A label per capacity row, equal for a link and its reverse, and for a shared capacity and its equal mirror image."""
    links = np.minimum(np.arange(partner.size), partner)
    labels: dict[tuple[float, tuple[int, ...]], int] = {}
    shared = []
    for row in topology.shared:
        mirror = tuple(sorted(int(partner[e]) for e in row.links))
        key = row.capacity, min(tuple(sorted(row.links)), mirror)
        shared.append(partner.size + labels.setdefault(key, len(labels)))
    return np.concatenate([links, np.array(shared, np.int64)])
