"""Explicit rates by copies of trees: whoever has twice the copies gets twice the rate (DualColl, section 5.5, Algorithm 3).

In fractions, because rates that are multiples of each other are common, and the number of copies jumps there.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heapreplace

from dualcoll.errors import InputError

__all__ = ["Duplication", "duplicate", "scale_for"]


@dataclass(frozen=True, slots=True)
class Duplication:
    """How many copies of each tree run.

    Attributes:
        scale: y; at least ``scale`` times as many copies as trees run.
        trees: k, those with a rate.
        rate: X*, which every copy can have at once, bytes/s.
        copies: of each tree (T,): how often ``rate`` goes into the tree's rate.
    """

    scale: int
    trees: int
    rate: Fraction
    copies: tuple[int, ...]

    @property
    def guaranteed(self) -> Fraction:
        """``y k X*``, bytes/s: what all copies carry together at least, wherever the network shares by max-min."""
        return self.scale * self.trees * self.rate


def scale_for(accuracy: float, trees: int, demands: int = 1) -> int:
    """The least scale y that the theorem says is enough for every demand to keep ``1 / (1 + accuracy)`` of its rate.

    With one demand that is Theorem 5.6. With several, the rate of a copy is set by one of them, and a demand of k trees falls
    short by less than k copies of at least y k, so that ``1 / y`` takes the place of ``(k - 1) / (y k)``.

    Args:
        accuracy: μ > 0, read as the decimal number that it is written as.
        trees: k >= 1, those with a rate. demands: those with a tree.

    Raises:
        InputError: an accuracy that is not positive and finite.
    """
    if not (math.isfinite(accuracy) and accuracy > 0):
        raise InputError(f"accuracy {accuracy!r} is not a finite number > 0", hint="0.1 keeps 1/1.1 of the rate")
    loss = Fraction(trees - 1, trees) if demands == 1 else Fraction(1)
    return max(1, math.ceil(loss / Fraction(repr(float(accuracy)))))


def duplicate(rates: Sequence[float | Fraction], scale: int, demands: Sequence[int] = ()) -> Duplication:
    """The largest rate X* of a copy at which every demand has ``scale`` times as many copies as trees, and the copies.

    Args:
        rates: of each tree (T,), bytes/s; trees without a rate get no copies.
        scale: y >= 1.
        demands: the demand of each tree (T,), if there are several.

    Raises:
        InputError: a scale below 1, a rate that is negative or not finite, or no tree with a rate.
    """
    if scale < 1:
        raise InputError(f"{scale} copies a tree are too few", hint="ask for 1 or more")
    for i, rate in enumerate(rates):
        if not (math.isfinite(rate) and rate >= 0):
            raise InputError(f"rate {rate!r} is not a finite number >= 0", where=f"rates[{i}]")
    exact = [Fraction(rate) for rate in rates]
    of_demand: dict[int, list[Fraction]] = defaultdict(list)
    for rate, demand in zip(exact, demands or [0] * len(exact), strict=True):
        if rate > 0:
            of_demand[demand].append(rate)
    if not of_demand:
        raise InputError("no tree carries anything", hint="at least one rate must be positive")
    copy_rate = min(_copy_rate(members, scale) for members in of_demand.values())
    copies = tuple(rate // copy_rate for rate in exact)
    return Duplication(scale, sum(map(len, of_demand.values())), copy_rate, copies)


def _copy_rate(rates: list[Fraction], scale: int) -> Fraction:
    """Algorithm 3: the largest X with ``sum(rate // X) >= scale * len(rates)``, for positive rates. O(k log k).

    The sweep over the breakpoints ``rate / copies`` starts at the mean copy's rate: no larger X leaves that many copies.
    """
    wanted = scale * len(rates)
    x = sum(rates, Fraction(0)) / wanted
    copies = [rate // x for rate in rates]
    missing = wanted - sum(copies)
    heap = [(-rate / (have + 1), i) for i, (rate, have) in enumerate(zip(rates, copies, strict=True))]
    heapify(heap)
    while missing > 0:
        x = -heap[0][0]
        while heap[0][0] == -x:
            i = heap[0][1]
            copies[i] += 1
            missing -= 1
            heapreplace(heap, (-rates[i] / (copies[i] + 1), i))
    return x
