"""A workload from what a caller asks for, checked whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dualcoll.collectives.catalogue import ROOTED, SHARDED, canonical_name, title
from dualcoll.collectives.demand_matrix import DemandMatrix
from dualcoll.collectives.group_sets import read_groups
from dualcoll.collectives.groups import participants_of
from dualcoll.collectives.workload import Group, Objective, Workload
from dualcoll.errors import InputError
from dualcoll.topology.model import Topology
from dualcoll.units import MAX_SIZE, parse_size

__all__ = ["checked_objective", "make_groups", "make_workload"]

Ranks = str | Sequence[int | str]
Sets = str | Path | Sequence[Ranks]


def make_workload(
    topology: Topology,
    collective: str,
    *,
    size: int | str,
    ranks: Ranks | None = None,
    root: int | str | None = None,
    weights: Sequence[int] | None = None,
    demand: DemandMatrix | None = None,
    groups: Sets | None = None,
    objective: str = "slowest",
) -> Workload:
    """One collective on one set of ranks, or on several at once.

    Args:
        topology: its ranks are numbered in node order, from 0.
        collective: any spelling that :func:`canonical_name` knows.
        size: bytes of the message as nccl-tests counts them, or text such as ``"1GiB"``. Not read for AllToAllv, whose matrix
            says it.
        ranks: who takes part, as :func:`participants_of` reads it; by default the ranks that ``demand`` names, or all.
        root: number or name of a rank that takes part; the first of each group by default.
        weights: relative sizes of the shards of AllGather, ReduceScatter, Gather and Scatter, one for each rank; a shard of
            weight 0 is left out. Equal by default.
        demand: what an AllToAllv carries.
        groups: several sets of ranks instead of ``ranks``, as :func:`read_groups` reads them. Each runs the collective.
        objective: with several groups ``"slowest"`` (the time until all are done) or ``"total"`` (the sum of their rates).

    Raises:
        InputError: anything above that cannot be used, or that the collective does not take.
    """
    made = make_groups(
        topology,
        collective,
        size=size,
        ranks=ranks,
        root=root,
        weights=weights,
        demand=demand,
        groups=groups,
    )
    return Workload(made, checked_objective(objective, made))


def checked_objective(objective: str, groups: Sequence[Group]) -> Objective:
    """The objective of that name.

    Raises:
        InputError: no such objective, or a total of a single group.
    """
    if objective not in tuple(Objective):
        known = ", ".join(Objective)
        raise InputError(f"{objective!r} is not known", where="objective", hint=f"use one of {known}")
    if objective == Objective.TOTAL and len(groups) == 1:
        raise InputError("a total needs several groups", where="objective", hint="give groups or a mix")
    return Objective(objective)


def make_groups(
    topology: Topology,
    collective: str,
    *,
    size: int | str | None,
    ranks: Ranks | None = None,
    root: int | str | None = None,
    weights: Sequence[int] | None = None,
    demand: DemandMatrix | None = None,
    groups: Sets | None = None,
    name: str = "",
) -> tuple[Group, ...]:
    """The groups of :func:`make_workload`: ``name`` (``all``), or ``name[3]`` (``group[3]``) for each of several."""
    kind = canonical_name(collective)
    _check_wishes(kind, root, weights, demand)
    if groups is None:
        named = demand.names if demand is not None and ranks is None else ()
        place = "ranks" if demand is None or not named else demand.where
        sets = [(name or "all", participants_of(topology, named or ranks, place))]
    elif ranks is not None:
        raise InputError("ranks and groups exclude each other", where="groups", hint="name the ranks of each group")
    else:
        prefix = name or "group"
        sets = [(f"{prefix}[{key}]", nodes) for key, nodes in read_groups(topology, groups)]
    nbytes = 0 if demand is not None else parse_size(size)
    return tuple(_group(topology, kind, label, nodes, nbytes, root, weights, demand) for label, nodes in sets)


def _check_wishes(
    kind: str, root: int | str | None, weights: Sequence[int] | None, demand: DemandMatrix | None
) -> None:
    if root is not None and kind not in ROOTED:
        names = ", ".join(map(title, ROOTED))
        raise InputError(f"{title(kind)} has no root", where="root", hint=f"leave it out; {names} have one")
    if weights is not None and kind not in SHARDED:
        names = ", ".join(map(title, SHARDED))
        raise InputError(f"{title(kind)} has no shards to weigh", where="weights", hint=f"{names} have; leave it out")
    if demand is not None and kind != "alltoallv":
        raise InputError(f"{title(kind)} takes no demand matrix", where="demand", hint="use AllToAllv, or leave it out")
    if demand is None and kind == "alltoallv":
        hint = "give a file of bytes from each rank to each, or use AllToAll for equal parts"
        raise InputError("AllToAllv needs a demand matrix", where="demand", hint=hint)


def _group(
    topology: Topology,
    kind: str,
    label: str,
    nodes: tuple[int, ...],
    size: int,
    root: int | str | None,
    weights: Sequence[int] | None,
    demand: DemandMatrix | None,
) -> Group:
    place = "ranks" if "[" not in label else label
    if len(nodes) < 2:
        count = "1 rank" if nodes else "no ranks"
        raise InputError(f"{title(kind)} of {count}", where=place, hint="two or more take part")
    if demand is not None:
        cells = _by_rank(topology, demand, nodes)
        return Group(label, kind, nodes, demand.size, parts=tuple(cells))
    at = _root(topology, nodes, root, place) if kind in ROOTED else None
    parts = () if weights is None else _weights(weights, len(nodes))
    if kind in ("gather", "scatter") and parts and at is not None and sum(parts) == parts[nodes.index(at)]:
        who = topology.nodes[at].name
        raise InputError("nothing to send: all weight is at the root", where="weights", hint=f"weigh others than {who}")
    return Group(label, kind, nodes, size, at, parts)


def _root(topology: Topology, nodes: tuple[int, ...], root: int | str | None, place: str) -> int:
    if root is None:
        return nodes[0]
    found = participants_of(topology, [root], "root")
    if len(found) != 1:
        raise InputError(f"{root} is not one rank", where="root", hint="give a number or a name")
    if found[0] not in nodes:
        among = "the ranks that take part" if place == "ranks" else f"the ranks of {place}"
        hint = "leave it out for the first of each group" if place != "ranks" else "name one that does"
        raise InputError(f"{topology.nodes[found[0]].name} is not among {among}", where="root", hint=hint)
    return found[0]


def _weights(weights: Sequence[int], n: int) -> tuple[int, ...]:
    for weight in weights:
        if isinstance(weight, bool) or not isinstance(weight, int | np.integer) or not 0 <= weight <= MAX_SIZE:
            problem = f"{str(weight)[:60]!r} is not a whole number from 0 to 2**63 - 1"
            raise InputError(
                problem, where="weights", hint="weights say how large each rank's shard is, such as 1,1,2,2"
            )
    if len(weights) != n:
        raise InputError(f"{len(weights)} weights for {n} ranks", where="weights", hint="give one for each rank")
    if not any(weights):
        raise InputError("nothing to send: all weights are 0", where="weights", hint="make one of them positive")
    return tuple(int(weight) for weight in weights)


def _by_rank(topology: Topology, demand: DemandMatrix, nodes: tuple[int, ...]) -> list[int]:
    """Its cells for these ranks in their order, row by row (n * n,)."""
    n = len(demand.cells)
    if not demand.names:
        if n != len(nodes):
            hint = f"name the {n} ranks that it means" if n < len(nodes) else "cut the matrix, or use a larger fabric"
            raise InputError(f"a matrix of {n} by {n} for {len(nodes)} ranks", where=demand.where, hint=hint)
        return [int(cell) for cell in demand.cells.ravel().tolist()]
    named = participants_of(topology, demand.names, demand.where)
    if len(named) != n:
        problem = f"{', '.join(demand.names)[:60]} are not the names of {n} ranks"
        raise InputError(problem, where=demand.where, hint="name each rank by itself")
    unlike = Counter(named)
    unlike.subtract(nodes)
    for node, surplus in unlike.items():
        if surplus:
            here, there = ("names", "does not take part") if surplus > 0 else ("does not name", "takes part")
            problem = f"the matrix {here} {topology.nodes[node].name}, which {there}"
            raise InputError(problem, where=demand.where, hint="let ranks and matrix name the same")
    position = {node: i for i, node in enumerate(named)}
    order = np.array([position[node] for node in nodes])
    return [int(cell) for cell in demand.cells[np.ix_(order, order)].ravel().tolist()]
