"""Cuts: what must leave a node set, over what can (docs/model.md §6).

Whatever the schedule, even if switches multicast and reduce, the data of every demand that crosses a node set has to leave it.
The set that limits the most is found exactly for AllReduce, for collectives of broadcasts or of reductions, and for one root's
sends (Newton's method on maximum flows); elsewhere the best of the obvious sets is taken. Every set is a valid bound.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.workload import Objective, Pattern, Workload
from dualcoll.kernels.max_flow import max_flow
from dualcoll.packing.problem import PackingProblem
from dualcoll.plans.model import Cut
from dualcoll.topology.arrays import FabricArrays
from dualcoll.topology.model import Topology

__all__ = ["cut_prices", "least_cut"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Side = NDArray[np.bool_]

MOST_SINKS = 128  # tried for each group, those with the least capacity first
CLOSER = 1e-12  # relative; a better cut is better by more


class _Crossing:
    """What must leave a side, bytes per byte of the plan's message."""

    def __init__(self, workload: Workload) -> None:
        demands = workload.demands()
        self.part = np.array([float(demand.part / workload.size) for demand in demands])
        self.group = np.array([demand.group for demand in demands])
        self.pattern = np.array([str(demand.pattern) for demand in demands])
        self.root = np.array([-1 if demand.root is None else demand.root for demand in demands])
        self.target = np.array([-1 if demand.target is None else demand.target for demand in demands])
        self.ranks = [np.array(group.ranks) for group in workload.groups]

    def __call__(self, side: Side) -> float:
        inside = np.array([int(side[ranks].sum()) for ranks in self.ranks])[self.group]
        of_group = np.array([ranks.size for ranks in self.ranks])[self.group]
        within = np.append(side, False)[self.root]
        crosses = np.select(
            [self.pattern == Pattern.ALLREDUCE, self.pattern == Pattern.BROADCAST, self.pattern == Pattern.REDUCE],
            [(inside > 0) & (inside < of_group), within & (inside < of_group), ~within & (inside > 0)],
            within & ~np.append(side, False)[self.target],
        )
        return float(self.part[crosses].sum())


class _Search:
    """The best side so far, and the flow network."""

    def __init__(self, fabric: FabricArrays, nodes: int, workload: Workload) -> None:
        self.fabric = fabric
        self.nodes = nodes
        self.crossing = _Crossing(workload)
        self.side: Side = np.zeros(nodes, bool)
        self.rate = float("inf")
        self._capacity = fabric.capacity[: fabric.links]
        self._ranks = np.array(workload.ranks, np.int64)
        self._networks: dict[bool, tuple[Ints, Ints, Ints]] = {}

    def leaving(self, side: Side) -> float:
        """Capacity from the side to the rest; links under a shared capacity count no more than it has, as a check counts."""
        out = side[self.fabric.tail] & ~side[self.fabric.head]
        total = 0.0
        for row in range(self.fabric.capacity.size - self.fabric.links):
            under = self.fabric.shared_link[self.fabric.shared_ptr[row] : self.fabric.shared_ptr[row + 1]]
            under = under[out[under]]
            limit = float(self.fabric.capacity[self.fabric.links + row])
            if limit < self._capacity[under].sum():
                total += limit
                out[under] = False
        return total + float(self._capacity[out].sum())

    def offer(self, side: Side) -> bool:
        """Take the side over if it limits more."""
        needed = self.crossing(side)
        if needed <= 0 or self.leaving(side) / needed >= self.rate * (1 - CLOSER):
            return False
        self.side, self.rate = side, self.leaving(side) / needed
        return True

    def flow(self, supply: Floats, sink: int, enough: float, *, reverse: bool = False) -> Side:
        """The sources' side of a least cut between supplies float64 (V,) and a sink, links turned round on request."""
        if enough <= 0:
            return np.zeros(self.nodes, bool)
        if reverse not in self._networks:
            self._networks[reverse] = self._network(reverse=reverse)
        ptr, arcs, arc_head = self._networks[reverse]
        capacity = np.concatenate([self._capacity, supply[self._ranks]])
        residual = np.column_stack([capacity, np.zeros_like(capacity)]).ravel()
        side = max_flow(ptr, arcs, arc_head, residual, self.nodes, sink, enough)[1][: self.nodes]
        return ~side if reverse else side

    def _network(self, *, reverse: bool) -> tuple[Ints, Ints, Ints]:
        """CSR of the links and of an arc from one source of everything to each rank."""
        tail, head = (self.fabric.head, self.fabric.tail) if reverse else (self.fabric.tail, self.fabric.head)
        tails = np.concatenate([tail, np.full(self._ranks.size, self.nodes)])
        heads = np.concatenate([head, self._ranks])
        arc_tail, arc_head = np.column_stack([tails, heads]).ravel(), np.column_stack([heads, tails]).ravel()
        ptr = np.zeros(self.nodes + 2, np.int64)
        np.cumsum(np.bincount(arc_tail, minlength=self.nodes + 1), out=ptr[1:])
        return ptr, np.argsort(arc_tail, kind="stable"), arc_head


def least_cut(topology: Topology, fabric: FabricArrays, workload: Workload) -> Cut | None:
    """The side that limits the workload the most, as far as it was found; None for a total, which no single cut limits."""
    if workload.objective is Objective.TOTAL:
        return None
    search = _Search(fabric, len(topology.nodes), workload)
    for side in _obvious(topology, workload):
        search.offer(side)
    for number, group in enumerate(workload.groups):
        mine = search.crossing.group == number
        patterns = set(search.crossing.pattern[mine])
        if Pattern.ALLREDUCE in patterns:
            _between_ranks(search, group.ranks)
        elif Pattern.SEND not in patterns:
            reverse = Pattern.REDUCE in patterns
            _to_sinks(search, mine, search.crossing.root, group.ranks, reverse=reverse)
        elif len(set(search.crossing.target[mine])) == 1:
            _to_sinks(search, mine, search.crossing.root, search.crossing.target[mine][:1].tolist(), reverse=False)
        elif len(set(search.crossing.root[mine])) == 1:
            _to_sinks(search, mine, search.crossing.target, search.crossing.root[mine][:1].tolist(), reverse=True)
    # one step up, so that what exact arithmetic finds is not above it
    rate = float(np.nextafter(search.rate * (1 + 1e-14), np.inf))
    return Cut(rate, tuple(int(i) for i in np.flatnonzero(search.side)))


def _obvious(topology: Topology, workload: Workload) -> Iterator[Side]:
    """Single ranks and whole boxes, and all but them."""
    nodes = len(topology.nodes)
    for rank in workload.ranks:
        yield np.arange(nodes) == rank
        yield np.arange(nodes) != rank
    boxes = np.array([node.box or "" for node in topology.nodes])
    for box in sorted({topology.nodes[rank].box or "" for rank in workload.ranks} - {""}):
        yield boxes == box
        yield boxes != box


def _between_ranks(search: _Search, ranks: tuple[int, ...]) -> None:
    """A cut between any two ranks cuts the ring of all of them somewhere from its inside to its outside."""
    for source, sink in zip(ranks, (*ranks[1:], ranks[0]), strict=True):
        supply = np.zeros(search.nodes)
        supply[source] = np.inf
        search.offer(search.flow(supply, sink, search.rate * (1 - CLOSER)))


def _to_sinks(search: _Search, mine: Side, ends: Ints, sinks: tuple[int, ...] | list[int], *, reverse: bool) -> None:
    """Newton's method (Dinkelbach): at the best rate so far, is there a sink that cannot take what it needs?"""
    part = np.bincount(ends[mine], search.crossing.part[mine], search.nodes).astype(np.float64)
    near = search.fabric.tail if reverse else search.fabric.head
    capacity = np.bincount(near, search.fabric.capacity[: search.fabric.links], search.nodes)
    for sink in sorted(sinks, key=lambda rank: capacity[rank])[:MOST_SINKS]:
        while True:
            supply = part * search.rate
            supply[sink] = 0.0
            side = search.flow(supply, sink, float(supply.sum()) * (1 - CLOSER), reverse=reverse)
            if not search.offer(side):
                break


def cut_prices(problem: PackingProblem, cut: Cut) -> Floats:
    """Equal prices on the links that leave the cut, float64 (M,): what crosses it bounds the rate."""
    inside = np.zeros(int(max(problem.fabric.tail.max(), problem.fabric.head.max())) + 1, bool)
    inside[list(cut.side)] = True
    rows = np.zeros(problem.fold.size)
    rows[: problem.fabric.links] = inside[problem.fabric.tail] & ~inside[problem.fabric.head]
    return np.asarray(np.bincount(problem.fold, rows, minlength=problem.capacity.size) / problem.weight)
