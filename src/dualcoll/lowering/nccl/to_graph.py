"""The rings or chains of a plan or schedule, as channels of an NCCL graph; a refusal where it is something else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from dualcoll.collectives.catalogue import title
from dualcoll.errors import InputError
from dualcoll.lowering.nccl.graph import Graph, Shape
from dualcoll.plans.model import Phase, Plan, Tree
from dualcoll.schedules.ir import NONE, Schedule
from dualcoll.schedules.ops import Op
from dualcoll.topology.model import Kind, Topology

__all__ = ["graph_of_plan", "graph_of_schedule"]

Pairs = set[tuple[int, int]]
Order = tuple[int, ...]
MOST = 16  # channels; NCCL doubles them, and old versions have 32
ALIKE = 1e-6  # relative, rates that count as equal
_HINT = "use MSCCL XML or an MSCCL++ plan for it"


def graph_of_schedule(schedule: Schedule, *, speed: float | None = None, path: str | None = None) -> Graph:
    """The graph of a schedule whose channels are rings (AllReduce, ReduceScatter, AllGather) or chains.

    Args:
        speed: bytes/s of each channel on every link; by default what the fabric leaves each, by the schedule's routes.
        path: as in :class:`Graph`; by default by what the routes pass.

    Raises:
        InputError: another collective, several boxes, a channel that is neither, or no fabric and no speed.
    """
    contract = schedule.contract
    if len(contract.groups) > 1:
        raise InputError(f"{len(contract.groups)} groups", where="schedule", hint="a graph is for one")
    _check_box(schedule.topology, schedule.nodes)
    moved = np.flatnonzero(schedule.src != schedule.dst)
    found: list[tuple[Shape, Order, float]] = []
    for channel in np.unique(schedule.channel[moved]):
        mine = moved[schedule.channel[moved] == channel]
        pairs: dict[Op, Pairs] = {op: set() for op in Op}
        for send in mine:
            pairs[Op(schedule.op[send])].add((int(schedule.src[send]), int(schedule.dst[send])))
        shape, order = _shape(contract.collective, schedule.ranks, contract.root, pairs, f"channel {channel}")
        found.append((shape, order, float(schedule.send_size[mine].sum())))
    links: dict[tuple[int, int], Sequence[int]] = {}
    for send in moved[schedule.route[moved] != NONE]:
        links[int(schedule.src[send]), int(schedule.dst[send])] = schedule.routes.of(int(schedule.route[send])).tolist()
    return _graph(found, schedule.topology, links, speed, path)


def graph_of_plan(plan: Plan, *, speed: float | None = None, path: str | None = None) -> Graph:
    """The graph of a plan whose trees are chains: rings where a chain begins or ends at each rank in turn.

    Arguments and errors are those of :func:`graph_of_schedule`; a GPU number is the rank's place in the plan's group.
    """
    groups = plan.workload.groups
    if len(groups) > 1:
        raise InputError(f"{len(groups)} groups", where="plan", hint="a graph is for one")
    group = groups[0]
    _check_box(plan.topology, group.ranks)
    rank = {node: i for i, node in enumerate(group.ranks)}
    root = rank[group.root] if group.root is not None else None
    found: list[tuple[Shape, Order, float]] = []
    turns: dict[Order, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    links: dict[tuple[int, int], Sequence[int]] = {}
    for t, tree in enumerate(plan.trees):
        pairs = _tree_pairs(tree, rank, f"tree {t}")
        for edge, (tail, head) in enumerate(tree.edges.tolist()):
            links[rank[tail], rank[head]] = tree.route(edge).tolist()
        if group.collective in ("allgather", "reducescatter"):
            start = rank[tree.root] if group.collective == "allgather" else None
            order = _path(pairs[Op.REDUCE] | pairs[Op.COPY], len(rank), f"tree {t}", start)
            first = order.index(0)
            turns[order[first:] + order[:first]][rank[tree.root]] += tree.rate
        else:
            shape, order = _shape(group.collective, len(rank), root, pairs, f"tree {t}")
            found.append((shape, order, tree.rate))
    for ring, rates in turns.items():
        if len(rates) < len(rank) or max(rates.values()) - min(rates.values()) > ALIKE * max(rates.values()):
            problem = f"the chains along {' '.join(map(str, ring))} do not carry the same from every rank, so they are no ring"
            raise InputError(problem, where="plan", hint=_HINT)
        found.append((Shape.RING, ring, sum(rates.values())))
    return _graph(found, plan.topology, links, speed, path)


def _check_box(topology: Topology | None, nodes: Iterable[int]) -> None:
    if topology is None:
        return
    boxes = {topology.nodes[node].box for node in nodes}
    if len(boxes) > 1:
        problem = f"the ranks are in {len(boxes)} boxes"
        raise InputError(problem, hint="a graph of one box is written; plan for the ranks of one")


def _tree_pairs(tree: Tree, rank: Mapping[int, int], where: str) -> dict[Op, Pairs]:
    pairs: dict[Op, Pairs] = {op: set() for op in Op}
    for (tail, head), phase in zip(tree.edges.tolist(), tree.phase.tolist(), strict=True):
        if tail not in rank or head not in rank:
            raise InputError("it passes through a rank that takes no part", where=where, hint=_HINT)
        pairs[Op.REDUCE if phase == Phase.REDUCE else Op.COPY].add((rank[tail], rank[head]))
    return pairs


def _shape(collective: str, ranks: int, root: int | None, pairs: dict[Op, Pairs], where: str) -> tuple[Shape, Order]:
    """Whether the pairs are a ring or a chain, and in which order."""
    both = pairs[Op.REDUCE] | pairs[Op.COPY]
    if collective in ("allreduce", "reducescatter", "allgather"):
        ahead = dict(both)
        if len(both) == len(ahead) == ranks and (collective != "allreduce" or pairs[Op.REDUCE] == pairs[Op.COPY]):
            order = _walk(ahead, 0)
            if len(order) == ranks:
                return Shape.RING, order
        if collective == "allreduce":
            order = _path(pairs[Op.COPY], ranks, where)
            if pairs[Op.REDUCE] != {(b, a) for a, b in pairs[Op.COPY]}:
                raise InputError("it reduces by another way than it copies back", where=where, hint=_HINT)
            return Shape.CHAIN, order
        raise InputError(f"its sends are no ring of all {ranks} ranks", where=where, hint=_HINT)
    if collective == "broadcast":
        return Shape.RING, _path(both, ranks, where, root)
    if collective == "reduce":
        order = _path(both, ranks, where)
        if order[-1] != root:
            raise InputError("the chain does not end at the root", where=where, hint=_HINT)
        return Shape.RING, order
    raise InputError(f"NCCL runs {title(collective)} over neither rings nor chains", hint=_HINT)


def _path(pairs: Pairs, ranks: int, where: str, start: int | None = None) -> Order:
    """The order of a chain through all ranks."""
    ahead = dict(pairs)
    heads = {head for _, head in pairs}
    first = [rank for rank in range(ranks) if rank not in heads]
    order = _walk(ahead, first[0]) if len(first) == 1 else ()
    if len(pairs) != ranks - 1 or len(ahead) != len(pairs) or len(order) != ranks or start not in (None, order[0]):
        raise InputError(f"its sends are neither a ring nor a chain of all {ranks} ranks", where=where, hint=_HINT)
    return order


def _walk(ahead: Mapping[int, int], start: int) -> Order:
    order = [start]
    seen = {start}
    while (rank := ahead.get(order[-1], start)) not in seen:
        order.append(rank)
        seen.add(rank)
    return tuple(order)


def _graph(
    found: list[tuple[Shape, Order, float]],
    topology: Topology | None,
    links: Mapping[tuple[int, int], Sequence[int]],
    speed: float | None,
    path: str | None,
) -> Graph:
    shapes = {shape for shape, _, _ in found}
    if len(shapes) != 1:
        problem = "rings and chains are mixed" if shapes else "nothing is sent"
        raise InputError(problem, hint="a graph has channels of one shape")
    weights: dict[Order, float] = defaultdict(float)
    for _, order, weight in found:
        weights[order] += weight
    shape = shapes.pop()
    channels = _shared_out(weights)
    if speed is None:
        speed = _speed(shape, channels, topology, links)
    return Graph(shape, channels, speed, path or _worst(topology, links))


def _shared_out(weights: Mapping[Order, float]) -> tuple[Order, ...]:
    """Channels such that each order has its share of them: NCCL gives each channel the same. Best of up to 16 channels."""
    if len(weights) > MOST:
        problem = f"{len(weights)} different rings or chains"
        raise InputError(problem, hint=f"plan with at most {MOST} trees (--max-trees)")
    total = sum(weights.values())
    best: tuple[float, tuple[int, ...]] = (0.0, ())
    for count in range(len(weights), MOST + 1):
        counts = [max(1, round(weight / total * count)) for weight in weights.values()]
        used = sum(counts)
        kept = min(weight / total * used / n for weight, n in zip(weights.values(), counts, strict=True))
        if used <= MOST and kept > best[0] + 1e-9:
            best = kept, tuple(counts)
    if best[0] < 0.95:
        problem = f"rates so uneven that {MOST} equal channels keep {best[0]:.0%} of them"
        raise InputError(problem, hint=_HINT)
    return tuple(order for order, n in zip(weights, best[1], strict=True) for _ in range(n))


def _speed(
    shape: Shape, channels: Sequence[Order], topology: Topology | None, links: Mapping[tuple[int, int], Sequence[int]]
) -> float:
    """Bytes/s for each channel at once: the least capacity over the channels that use it."""
    if topology is None or not links:
        raise InputError("what a channel can carry is not known", where="speed", hint="give it, or routes on a fabric")
    load = np.zeros(len(topology.links))
    for order in channels:
        hops = list(pairwise(order))
        hops += [(order[-1], order[0])] if shape is Shape.RING else [(b, a) for a, b in hops]
        for hop in hops:
            for link in links.get(hop, ()):
                load[link] += 1
    rates = [link.capacity / n for link, n in zip(topology.links, load, strict=True) if n]
    rates += [row.capacity / n for row in topology.shared if (n := load[list(row.links)].sum())]
    return float(min(rates))


def _worst(topology: Topology | None, links: Mapping[tuple[int, int], Sequence[int]]) -> str:
    """NCCL's name for the worst connection among the routes."""
    names = ["NVL"]
    order = ("NVL", "NVB", "PIX", "PXB", "PHB", "SYS")
    for route in links.values() if topology is not None else ():
        assert topology is not None
        between = [topology.nodes[topology.links[link].head].kind for link in route][:-1]
        cpus, bridges = between.count(Kind.CPU), between.count(Kind.PCI)
        if cpus:
            names.append("PHB" if cpus == 1 else "SYS")
        elif bridges:
            names.append("PIX" if bridges == 1 else "PXB")
        elif Kind.GPU in between:
            names.append("NVB")
    return max(names, key=order.index)
