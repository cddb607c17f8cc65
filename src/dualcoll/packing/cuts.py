"""Cuts: what must leave a node set, over what can (docs/model.md §6).

Whatever the schedule, even if switches multicast and reduce, the data of every demand that crosses a node set has to leave it.
The set that limits the most is found exactly for AllReduce, for collectives of broadcasts or of reductions, and for sends
with one end in common (Newton's method on maximum flows), and for whatever else a handful of ranks does (all their subsets).
Elsewhere the best of many likely sets is taken. Every set is a valid bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.workload import Demand, Objective, Pattern, Workload
from dualcoll.packing.problem import PackingProblem
from dualcoll.packing.sides import Side, Sides, over_intervals
from dualcoll.plans.model import Cut
from dualcoll.topology.arrays import FabricArrays
from dualcoll.topology.model import Topology

__all__ = ["cut_prices", "least_cut"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_SINKS = 128  # tried for each group, those with the least capacity first
FEW_RANKS = 8  # whose subsets are all tried where nothing better is known
CLOSER = 1e-12  # relative; a better cut is better by more


class _Crossing:
    """What must leave a side, bytes per byte of the plan's message."""

    def __init__(self, demands: Sequence[Demand], workload: Workload, nodes: int) -> None:
        self.part = np.array([float(demand.part) for demand in demands]) / workload.size
        self.group = np.array([demand.group for demand in demands])
        self.pattern = np.array([str(demand.pattern) for demand in demands])
        self.root = np.array([-1 if demand.root is None else demand.root for demand in demands])
        self.target = np.array([-1 if demand.target is None else demand.target for demand in demands])
        self._nodes = nodes
        self._ranks = [np.array(group.ranks) for group in workload.groups]
        self._kinds = [self.pattern == pattern for pattern in (Pattern.ALLREDUCE, Pattern.BROADCAST, Pattern.REDUCE)]
        send = np.flatnonzero(self.pattern == Pattern.SEND)
        self._senders, row = np.unique(self.root[send], return_inverse=True)
        self._hearers, column = np.unique(self.target[send], return_inverse=True)
        self._sent = np.zeros((self._senders.size, self._hearers.size))
        np.add.at(self._sent, (row, column), self.part[send])
        self._whole = np.flatnonzero(self.pattern != Pattern.SEND)

    def needed(self, side: Side) -> float:
        """What must leave this side."""
        sent = float(side[self._senders] @ self._sent @ ~side[self._hearers])
        return sent + float(self.part[self._whole][self.which(side, self._whole)].sum())

    def which(self, side: Side, demands: Ints) -> Side:
        """Which of these demands cross the side."""
        inside = np.array([int(side[ranks].sum()) for ranks in self._ranks])[self.group[demands]]
        everybody = np.array([ranks.size for ranks in self._ranks])[self.group[demands]]
        within, beyond = side[self.root[demands]], ~side[self.target[demands]]
        some, all_of_them = inside > 0, inside == everybody
        kinds = [kind[demands] for kind in self._kinds]
        return np.select(kinds, [some & ~all_of_them, within & ~all_of_them, ~within & some], within & beyond)

    def needed_prefixes(self, order: Ints) -> Floats:
        """What must leave the first p nodes of an order int64 (V,), float64 (V+1,)."""
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        first = np.array([place[ranks].min() for ranks in self._ranks])[self.group]
        last = np.array([place[ranks].max() for ranks in self._ranks])[self.group]
        root, target = place[self.root], place[self.target]
        begin = np.select(self._kinds, [first, root, first], root)
        end = np.select(self._kinds, [last, last, root], target)
        return over_intervals(begin, end, self.part, self._nodes)


class _Search:
    """The best side so far."""

    def __init__(self, fabric: FabricArrays, nodes: int, workload: Workload) -> None:
        self.sides = Sides(fabric, nodes, workload.ranks)
        self.demands = workload.demands()
        self.crossing = _Crossing(self.demands, workload, nodes)
        self.side: Side = np.zeros(nodes, bool)
        self.rate = float("inf")
        self._index = np.zeros(nodes, np.int64)
        self._index[self.sides.ranks] = np.arange(self.sides.ranks.size)

    def offer(self, side: Side) -> bool:
        """Take the side over if it limits more."""
        needed = self.crossing.needed(side)
        if needed <= 0:
            return False
        rate = self.sides.leaving(side) / needed
        if rate >= self.rate * (1 - CLOSER):
            return False
        self.side, self.rate = side, rate
        return True

    def between(self, sources: dict[int, float], sink: int, *, reverse: bool = False) -> Side:
        """The side of a least cut between what these nodes supply, bytes/s, and a sink."""
        supply, drain = np.zeros(self.sides.ranks.size), np.zeros(self.sides.ranks.size)
        supply[self._index[list(sources)]] = list(sources.values())
        supply[self._index[sink]] = 0.0
        drain[self._index[sink]] = np.inf
        enough = min(float(supply.sum()), self.rate) if np.isinf(supply).any() else float(supply.sum())
        if enough <= 0:
            return np.zeros(self.sides.nodes, bool)
        return self.sides.least_cut(supply, drain, enough * (1 - CLOSER), reverse=reverse)

    def cut(self, workload: Workload) -> Cut:
        """The best side with its rate, rounded up."""
        crossing = np.flatnonzero(self.crossing.which(self.side, np.arange(len(self.demands))))
        parts = Counter(self.demands[j].part for j in crossing.tolist())
        needed = sum((count * part for part, count in parts.items()), Fraction(0))
        limits = self.sides.fabric.capacity[self.sides.limits(self.side)].tolist()
        rate = workload.size * sum(map(Fraction, limits), Fraction(0)) / needed
        rounded = float(rate)
        if Fraction(rounded) < rate:
            rounded = float(np.nextafter(rounded, np.inf))
        return Cut(rounded, tuple(np.flatnonzero(self.side).tolist()))


def least_cut(topology: Topology, fabric: FabricArrays, workload: Workload) -> Cut | None:
    """The side that limits the workload the most, as far as it was found.

    None for a total, which no single cut limits, and where there is nothing to carry.
    """
    search = _Search(fabric, len(topology.nodes), workload)
    if workload.objective is Objective.TOTAL or not search.demands:
        return None
    for side in _obvious(topology, workload):
        search.offer(side)
    exact = len(workload.groups) == 1
    for number, group in enumerate(workload.groups):
        exact &= _by_flows(search, search.crossing.group == number, group.ranks)
    if not exact and len(workload.ranks) <= FEW_RANKS:
        _by_subsets(search)
    elif not exact:
        _by_sweeps(search)
    return search.cut(workload)


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


def _by_flows(search: _Search, mine: Side, ranks: tuple[int, ...]) -> bool:
    """The best side for the demands of a group, if flows can find it; whether they can."""
    crossing = search.crossing
    patterns, roots, targets = set(crossing.pattern[mine]), crossing.root[mine], crossing.target[mine]
    if Pattern.ALLREDUCE in patterns:
        # a cut between any two ranks cuts the ring of all of them somewhere from its inside to its outside
        for source, sink in zip(ranks, (*ranks[1:], ranks[0]), strict=True):
            search.offer(search.between({source: np.inf}, sink))
        return True
    if Pattern.SEND not in patterns:
        _to_sinks(search, mine, crossing.root, ranks, reverse=Pattern.REDUCE in patterns)
        return True
    if np.unique(targets).size == 1:
        _to_sinks(search, mine, crossing.root, targets[:1].tolist(), reverse=False)
        return True
    if np.unique(roots).size == 1:
        _to_sinks(search, mine, crossing.target, roots[:1].tolist(), reverse=True)
        return True
    return False


def _to_sinks(search: _Search, mine: Side, ends: Ints, sinks: Sequence[int], *, reverse: bool) -> None:
    """Newton's method (Dinkelbach): at the best rate so far, is there a sink that cannot take what it needs?"""
    fabric, nodes = search.sides.fabric, search.sides.nodes
    part = np.bincount(ends[mine], search.crossing.part[mine], nodes)
    sources = np.flatnonzero(part)
    capacity = np.bincount(fabric.tail if reverse else fabric.head, search.sides.capacity, nodes)
    for sink in sorted(sinks, key=lambda rank: capacity[rank])[:MOST_SINKS]:
        while True:
            supply = dict(zip(sources.tolist(), (part[sources] * search.rate).tolist(), strict=True))
            if not search.offer(search.between(supply, sink, reverse=reverse)):
                break


def _by_subsets(search: _Search) -> None:
    ranks = search.sides.ranks.size
    for number in range(1, 2**ranks - 1):
        search.offer(search.sides.closest((number >> np.arange(ranks)) % 2 == 1))


def _by_sweeps(search: _Search) -> None:
    """The best prefix of every order of the nodes, both ways; what is not a rank then stands where it is best."""
    for some_order in search.sides.orders():
        for order in (some_order, some_order[::-1]):
            needed = search.crossing.needed_prefixes(order)
            leaving = search.sides.leaving_prefixes(order)
            rates = np.divide(leaving, needed, out=np.full_like(leaving, np.inf), where=needed > CLOSER)
            prefix = int(np.argmin(rates))
            side = np.zeros(search.sides.nodes, bool)
            side[order[:prefix]] = True
            search.offer(side)
            search.offer(search.sides.closest(side[search.sides.ranks]))


def cut_prices(problem: PackingProblem, cut: Cut) -> Floats:
    """Equal prices on the rows that limit what leaves the cut, float64 (M,): what crosses it bounds the rate."""
    fabric = problem.fabric
    nodes = int(max(fabric.tail.max(), fabric.head.max())) + 1
    inside = np.zeros(max(nodes, 1 + max(cut.side, default=0)), bool)
    inside[list(cut.side)] = True
    rows = np.zeros(problem.fold.size)
    rows[Sides(fabric, inside.size, ()).limits(inside)] = 1.0
    return np.asarray(np.bincount(problem.fold, rows, minlength=problem.capacity.size) / problem.weight)
