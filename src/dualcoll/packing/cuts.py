"""The in-network bound: no schedule at all, multicast and reduction in the network included, beats the least directed cut
between two participants, every node forwarding (docs/model.md §6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.max_flow import max_flow
from dualcoll.packing.problem import PackingProblem
from dualcoll.plans.model import Cut
from dualcoll.topology.arrays import FabricArrays

__all__ = ["cut_prices", "least_cut"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def least_cut(fabric: FabricArrays, nodes: int, participants: tuple[int, ...]) -> Cut:
    """The least capacity that leaves a node set holding some participants but not all.

    A cut between any two participants cuts the ring of all of them somewhere from its inside to its outside, so n maximum flows
    around the ring find it, each stopped as soon as it reaches the best cut so far.
    """
    tail, head = fabric.tail, fabric.head
    capacity = fabric.capacity[: fabric.links]
    arc_tail = np.column_stack([tail, head]).ravel()
    arc_head = np.column_stack([head, tail]).ravel()
    arcs = np.argsort(arc_tail, kind="stable")
    ptr = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(arc_tail, minlength=nodes), out=ptr[1:])
    residual = np.column_stack([capacity, np.zeros_like(capacity)]).ravel()

    def leaving(side: NDArray[np.bool_]) -> float:
        return float(capacity[side[tail] & ~side[head]].sum())

    best, least = _single_nodes(fabric, nodes, participants)
    for source, sink in zip(participants, (*participants[1:], participants[0]), strict=True):
        _, side = max_flow(ptr, arcs, arc_head, residual.copy(), source, sink, least * (1 - 1e-12))
        if side[source] and not side[sink] and leaving(side) < least:
            best, least = side, leaving(side)
    # one step up, so that the sum in exact arithmetic is not above it
    return Cut(float(np.nextafter(least * (1 + 1e-14), np.inf)), tuple(int(i) for i in np.flatnonzero(best)))


def cut_prices(problem: PackingProblem, cut: Cut) -> Floats:
    """Equal prices on the links that leave the cut, float64 (M,): every column crosses it, so its capacity bounds them all."""
    inside = np.zeros(int(max(problem.fabric.tail.max(), problem.fabric.head.max())) + 1, bool)
    inside[list(cut.side)] = True
    rows = np.zeros(problem.fold.size)
    rows[: problem.fabric.links] = inside[problem.fabric.tail] & ~inside[problem.fabric.head]
    return np.asarray(np.bincount(problem.fold, rows, minlength=problem.capacity.size) / problem.weight)


def _single_nodes(fabric: FabricArrays, nodes: int, participants: tuple[int, ...]) -> tuple[NDArray[np.bool_], float]:
    """The best cut around one participant, outward or inward: where the search starts."""
    capacity = fabric.capacity[: fabric.links]
    outward = np.bincount(fabric.tail, capacity, minlength=nodes)
    inward = np.bincount(fabric.head, capacity, minlength=nodes)
    node = min(participants, key=lambda i: min(outward[i], inward[i]))
    side = np.arange(nodes) == node
    return (side, float(outward[node])) if outward[node] <= inward[node] else (~side, float(inward[node]))
