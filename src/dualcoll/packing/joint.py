"""AllGather trees and ReduceScatter trees at the same time: a packing problem with one more row for what they share.

Let a set of trees reach the AllGather's optimum ``a``. Run with its reverse, it loads a link with what it puts on the link and
on the link's reverse. If that is at most ``τ`` times the capacity everywhere, the two make an AllReduce of rate ``a / τ``. So
the best set for an AllReduce is the one of least ``τ``, and for a given ``τ`` the question whether there is one is an AllGather
on a fabric where both directions of a cable together carry ``τ`` times its capacity.

Newton's method finds the least ``τ``: prices that prove the rate at some ``τ`` to be below ``a`` prove that ``τ`` has to be
larger, and how much. It ends where a packing reaches ``a`` again; the prices of the step before prove its ``τ`` to be least.

Where a fabric has no reverse (asymmetric, or routes that the network chooses) the ReduceScatter is packed by itself, on links
of its own that are tied to the AllGather's by the same rows. On a symmetric fabric this gives nothing better: the average of
a set and the other's reverse does as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.packing.oracles.joined import JoinedOracle
from dualcoll.packing.pool import Packing
from dualcoll.packing.problem import Column, Offer, Oracle, PackingProblem, Steering
from dualcoll.topology.arrays import FabricArrays

__all__ = ["Joint", "Witness"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Witness:
    """Prices that limit overlaps, summed up.

    Attributes:
        own: worth of the rows of AllGather and ReduceScatter alone. both: worth, at ``τ = 1``, of the rows that they share.
        cost: of the cheapest trees at a rate of 1.
    """

    own: float
    both: float
    cost: float

    def crowding(self, rate: float) -> float:
        """No trees of this AllGather rate have a smaller ``τ``."""
        return (rate * self.cost - self.own) / self.both if self.both > 0 else 0.0


class Joint:
    """AllGather and ReduceScatter that share their links.

    Args:
        halves: the packing problem of an AllGather whose reverse is the ReduceScatter, or those of both, without folded rows.
        speeds: optimal rate of each, bytes/s.
        partner: int64 (E,), the reverse of each link; None with two halves.

    Attributes:
        fabric: the fabric that they share.
    """

    def __init__(self, halves: Sequence[PackingProblem], speeds: Sequence[float], partner: Ints | None) -> None:
        self._halves = halves
        self.fabric = fabric = halves[0].fabric
        self._links = fabric.links
        reverse = fabric.links + np.arange(fabric.links) if partner is None else partner
        tied, limit = _tied_rows(fabric, reverse)
        scale = [speeds[0] / speed for speed in speeds]
        alone = [_under(fabric, k * fabric.links) for k in range(len(halves))]
        self._fabric = FabricArrays(
            tail=np.tile(fabric.tail, len(halves)),
            head=np.tile(fabric.head, len(halves)),
            latency=np.tile(fabric.latency, len(halves)),
            capacity=np.concatenate(
                [factor * fabric.capacity[: fabric.links] for factor in scale]
                + [factor * fabric.capacity[fabric.links :] for factor in scale]
                + [limit]
            ),
            shared_ptr=_ptr([row for rows in alone for row in rows] + tied),
            shared_link=np.concatenate([row for rows in alone for row in rows] + tied).astype(np.int64),
        )
        self._own = self._fabric.capacity.size - limit.size
        moved = [
            _Elsewhere(half.oracle, k * self._links, self._links, self._fabric.links) for k, half in enumerate(halves)
        ]
        self._oracle = JoinedOracle([(oracle, half.part.size) for oracle, half in zip(moved, halves, strict=True)])
        self._classes = tuple(
            self._classed(list(classes), tied) for classes in zip(*(half.classes for half in halves), strict=False)
        )

    def problem(self, crowding: float) -> PackingProblem:
        """What to pack where the two together may load a link with ``crowding`` times its capacity."""
        capacity = self._fabric.capacity.copy()
        capacity[self._own :] *= crowding
        part = np.concatenate([half.part for half in self._halves])
        fabric = replace(self._fabric, capacity=capacity)
        goal = np.zeros(part.size, np.int64)
        return PackingProblem.of(fabric, np.arange(capacity.size), self._oracle, part, goal, self._classes)

    def witness(self, problem: PackingProblem, packing: Packing, crowding: float) -> Witness:
        """What the packing's prices prove."""
        worth = problem.capacity * packing.prices
        own, both = float(worth[: self._own].sum()), float(worth[self._own :].sum())
        return Witness(own, both / crowding, (own + both) / packing.bound)

    def _classed(self, classes: list[Ints], tied: list[Ints]) -> Ints:
        """Classes of all rows, int64 (M',), from those of the halves' rows."""
        steps = np.cumsum([0] + [int(one.max()) + 1 for one in classes])
        apart = [one + step for one, step in zip(classes, steps[:-1], strict=True)]
        links = np.concatenate([one[: self._links] for one in apart])
        number: dict[object, int] = {}
        capacity = self._fabric.capacity[self._own :].tolist()
        ties = [
            steps[-1] + number.setdefault((limit, tuple(sorted(links[row].tolist()))), len(number))
            for row, limit in zip(tied, capacity, strict=True)
        ]
        return np.concatenate([links, *(one[self._links :] for one in apart), np.array(ties, np.int64)])


def _tied_rows(fabric: FabricArrays, reverse: Ints) -> tuple[list[Ints], Floats]:
    """The links that each row and its reverse are over, and what they may carry together at ``τ = 1``."""
    rows: dict[tuple[int, ...], float] = {}
    below = [np.array([e]) for e in range(fabric.links)] + _under(fabric, 0)
    for links, capacity in zip(below, fabric.capacity.tolist(), strict=True):
        together = np.union1d(links, reverse[links])
        # a row that is its own reverse carries everything twice
        limit = capacity if together.size > links.size else capacity / 2
        key = tuple(together.tolist())
        rows[key] = min(limit, rows.get(key, limit))
    return [np.array(row, np.int64) for row in rows], np.array(list(rows.values()))


def _under(fabric: FabricArrays, offset: int) -> list[Ints]:
    """The links under each shared capacity."""
    return (
        [row + offset for row in np.split(fabric.shared_link, fabric.shared_ptr[1:-1])]
        if fabric.shared_link.size
        else []
    )


def _ptr(rows: list[Ints]) -> Ints:
    return np.concatenate([[0], np.cumsum([row.size for row in rows])]).astype(np.int64)


class _Elsewhere:
    """An oracle whose links are a run of a longer list; its trees keep the fabric's numbers.

    Args:
        first: where its links begin. links: how many it has. total: how long the list is.
    """

    def __init__(self, oracle: Oracle, first: int, links: int, total: int) -> None:
        self._oracle = oracle
        self._mine = slice(first, first + links)
        self._total = total
        self.batches = oracle.batches

    def price(self, link_prices: Floats) -> Offer:
        """The oracle's offer at the prices of its own links."""
        return _OfferElsewhere(self._oracle.price(link_prices[self._mine]), self._mine, self._total)

    def spread(self, batch: int, link_prices: Floats, steering: Steering) -> list[Column]:
        """The oracle's columns at the prices of its own links."""
        steering = replace(steering, room=steering.room[self._mine])
        columns = self._oracle.spread(batch, link_prices[self._mine], steering)
        return [replace(column, links=column.links + self._mine.start) for column in columns]


class _OfferElsewhere:
    def __init__(self, offer: Offer, mine: slice, total: int) -> None:
        self._offer = offer
        self._mine = mine
        self._total = total
        self.costs = offer.costs

    def loads(self, amounts: Floats) -> Floats:
        loads = np.zeros(self._total)
        loads[self._mine] = self._offer.loads(amounts)
        return loads

    def columns(self, demands: Ints) -> list[Column]:
        return [replace(column, links=column.links + self._mine.start) for column in self._offer.columns(demands)]
