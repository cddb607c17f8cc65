"""The bisection bandwidth of a fabric, as a by-product of an AllToAll.

The least capacity between two halves of the ranks is hard to find; it is bracketed. An AllToAll that gives every ordered pair
a rate ``f`` carries ``f · |A| · |B|`` from any half A to the other, so each cut has at least that. Above, the best halves
found: half of every likely order of the ranks, then ranks swapped in passes as Kernighan and Lin (1970) do it. What is not a
rank stands where a least cut puts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.packing.sides import Side, Sides
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.model import Topology

__all__ = ["Bisection", "bisection"]

Floats = NDArray[np.float64]

REFINED = 3  # of the halves found, the best are refined
PASSES = 8
MOST_NODES = 3000  # beyond it nothing is refined
CLOSER = 1e-9  # relative
TIGHT = 1e-6


@dataclass(frozen=True, slots=True)
class Bisection:
    """Bytes/s from one half of the ranks to the other, where it is least; of an odd number one half has one more.

    Attributes:
        lower, upper: the bisection bandwidth is between them.
        side: node indices that ``upper`` can leave, with one half of the ranks.
    """

    lower: float
    upper: float
    side: tuple[int, ...]

    @property
    def tight(self) -> bool:
        """Whether the bracket has closed."""
        return self.lower >= self.upper * (1 - TIGHT)


def bisection(topology: Topology, ranks: Sequence[int], pair_rate: float, prices: Floats | None = None) -> Bisection:
    """Bracket the bisection bandwidth.

    Args:
        ranks: node indices, two or more.
        pair_rate: bytes/s that an AllToAll of these ranks gives every ordered pair: a plan's algbw over their number.
        prices: float64 (E,), of the AllToAll plan's links; they tell where the fabric is narrow.
    """
    sides = Sides(fabric_arrays(topology), len(topology.nodes), tuple(ranks))
    half = len(ranks) // 2
    found = _Best(sides)
    for order in sides.orders(prices):
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        inside = np.zeros(len(ranks), bool)
        inside[np.argsort(place[sides.ranks], kind="stable")[:half]] = True
        found.offer(inside)
    if len(topology.nodes) <= MOST_NODES:
        swaps = _Swaps(sides)
        for _, side in sorted(found.sides.values(), key=lambda one: one[0])[:REFINED]:
            swaps.refine(side, found)
    upper, side = min(found.sides.values(), key=lambda one: one[0])
    lower = pair_rate * half * (len(ranks) - half)
    return Bisection(min(lower, upper), upper, tuple(np.flatnonzero(side).tolist()))


class _Best:
    """Sides found, by which ranks they hold."""

    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        self.sides: dict[bytes, tuple[float, Side]] = {}

    def offer(self, inside: Side) -> float:
        """What can leave these ranks, bool (R,), or enter them, whichever is less."""
        least = np.inf
        for half in (inside, ~inside):
            key = half.tobytes()
            if key not in self.sides:
                side = self._sides.closest(half)
                self.sides[key] = self._sides.leaving(side), side
            least = min(least, self.sides[key][0])
        return float(least)


class _Swaps:
    """Passes of swaps: the best rank out, the best one in, again and again, however bad; the best moment counts."""

    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        fabric = sides.fabric
        self._capacity = np.zeros((sides.nodes, sides.nodes))
        np.add.at(self._capacity, (fabric.tail, fabric.head), sides.capacity)
        self._is_rank = np.zeros(sides.nodes, bool)
        self._is_rank[sides.ranks] = True

    def refine(self, side: Side, found: _Best) -> None:
        """Offer ever better sides, as long as a pass finds one."""
        least = self._sides.leaving(side)
        for _ in range(PASSES):
            inside = self._pass(side)[self._sides.ranks]
            now = found.offer(inside)
            if now >= least * (1 - CLOSER):
                return
            least = now
            side = min((found.sides[half.tobytes()] for half in (inside, ~inside)), key=lambda one: one[0])[1]

    def _pass(self, side: Side) -> Side:
        """The best side that a pass comes by."""
        self._side = side.copy()
        self._heard = self._side @ self._capacity  # by each node from the side
        self._sent = self._capacity @ ~self._side  # by each node to the rest
        leaving = best = float(self._sent[self._side].sum())
        winner = side
        waiting = self._is_rank.copy()
        for _ in range(min(int(side[self._is_rank].sum()), int((~side[self._is_rank]).sum()))):
            for within in (True, False):
                gain = np.where(waiting & (self._side == within), self._gains(), -np.inf)
                node = int(np.argmax(gain))
                waiting[node] = False
                leaving -= self._flip(node, float(gain[node]))
                leaving -= self._settle()
            if leaving < best * (1 - CLOSER):
                best, winner = leaving, self._side.copy()
        return winner

    def _gains(self) -> Floats:
        """By how much less can leave once a node is on the other side, float64 (V,)."""
        gain = self._sent - self._heard
        return np.where(self._side, gain, -gain)

    def _flip(self, node: int, gain: float) -> float:
        sign = -1.0 if self._side[node] else 1.0
        self._heard += sign * self._capacity[node]
        self._sent -= sign * self._capacity[:, node]
        self._side[node] = not self._side[node]
        return gain

    def _settle(self) -> float:
        """Let switches and the like follow their neighbours; by how much less can leave then."""
        total = 0.0
        for _ in range(self._side.size):
            gain = np.where(self._is_rank, -np.inf, self._gains())
            node = int(np.argmax(gain))
            if gain[node] <= CLOSER * self._capacity.max():
                break
            total += self._flip(node, float(gain[node]))
        return total
