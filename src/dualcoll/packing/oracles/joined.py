"""Several oracles as one: each has the demands of some group, and all share the links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.packing.problem import Column, Offer, Oracle, Steering

__all__ = ["JoinedOracle", "OneColumn"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class OneColumn:
    """The offer of an oracle with one demand that has made its column already."""

    def __init__(self, column: Column, links: int) -> None:
        self.costs: Floats = np.array([column.cost])
        self._column = column
        self._links = links

    def loads(self, amounts: Floats) -> Floats:
        """Loads of the links with this much of the column."""
        loads = np.zeros(self._links)
        loads[self._column.links] = amounts[0] * self._column.loads
        return loads

    def columns(self, demands: Ints) -> list[Column]:
        """The column, if it is asked for."""
        return [self._column] if demands.size else []


class JoinedOracle:
    """Demands are numbered oracle by oracle.

    Args:
        oracles: each with its number of demands.
    """

    def __init__(self, oracles: Sequence[tuple[Oracle, int]]) -> None:
        self._oracles = [oracle for oracle, _ in oracles]
        self._first = np.concatenate([[0], np.cumsum([count for _, count in oracles])])
        self._place = [(i, b) for i, oracle in enumerate(self._oracles) for b in range(len(oracle.batches))]
        self.batches: Sequence[Ints] = [self._oracles[i].batches[b] + self._first[i] for i, b in self._place]

    def price(self, link_prices: Floats) -> Offer:
        """The offers of all."""
        return _JoinedOffer([oracle.price(link_prices) for oracle in self._oracles], self._first)

    def spread(self, batch: int, link_prices: Floats, steering: Steering) -> list[Column]:
        """A column for each demand of a batch."""
        i, b = self._place[batch]
        columns = self._oracles[i].spread(b, link_prices, steering)
        return [replace(column, demand=column.demand + int(self._first[i])) for column in columns]


class _JoinedOffer:
    def __init__(self, offers: list[Offer], first: Ints) -> None:
        self._offers = offers
        self._first = first
        self.costs: Floats = np.concatenate([offer.costs for offer in offers])

    def loads(self, amounts: Floats) -> Floats:
        parts = np.split(amounts, self._first[1:-1])
        return np.asarray(sum(offer.loads(part) for offer, part in zip(self._offers, parts, strict=True)))

    def columns(self, demands: Ints) -> list[Column]:
        found: list[Column] = []
        for offer, first, end in zip(self._offers, self._first[:-1].tolist(), self._first[1:].tolist(), strict=True):
            mine = demands[(demands >= first) & (demands < end)] - first
            found += [replace(column, demand=column.demand + first) for column in offer.columns(mine)]
        return found
