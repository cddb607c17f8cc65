"""The one packing problem behind every collective (docs/model.md §4 and §5).

    maximise  Σ_k z_k   subject to   Σ_{c of demand j} λ_c ≥ p_j z_k(j)  for every demand j,
                                     Σ_c A[m, c] λ_c ≤ C_m  for every capacity row m,   λ ≥ 0

A column is one routed communication structure that carries part of one demand. A collective is an oracle: the cheapest column
of every demand under row prices. A goal k gathers the demands that must keep pace: all of them where the slowest counts, those
of one group where the total does. Solvers know neither trees nor routes.

By Lemma 6.1 of the DualColl paper a goal's columns may be packed one by one instead of as tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.trees import root_distances
from dualcoll.plans.model import Phase
from dualcoll.topology.arrays import FabricArrays

__all__ = [
    "UNLIMITED",
    "Column",
    "Offer",
    "Oracle",
    "PackingProblem",
    "Quote",
    "RoutedTree",
    "Shape",
    "Steering",
    "column_depth",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


UNLIMITED = 2**31  # logical edges


@dataclass(frozen=True, slots=True)
class RoutedTree:
    """Directed logical edges with routes: root and edges int64 (A, 2) are node indices, CSR routes of link indices.

    ``route_share`` float64 (H,) is the part of an edge's traffic on each link; None means all of it.
    """

    root: int
    edges: Ints
    phase: NDArray[np.int8]
    route_ptr: Ints
    route_links: Ints
    route_share: Floats | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A routed structure that carries part of a demand, and what it costs at the prices asked about.

    ``links`` int64 (L,), each once, are loaded with ``loads`` float64 (L,) per unit rate.
    """

    demand: int
    cost: float
    links: Ints
    loads: Floats
    tree: RoutedTree

    @classmethod
    def of(cls, demand: int, cost: float, tree: RoutedTree) -> Column:
        """The column of a routed tree."""
        links, where = np.unique(tree.route_links, return_inverse=True)
        return cls(demand, cost, links, np.bincount(where, tree.route_share, links.size).astype(np.float64), tree)


def column_depth(column: Column) -> int:
    """The most logical edges between the column's root and a rank, in any phase."""
    tree = column.tree
    deepest = 0.0
    for phase in Phase:
        edges = tree.edges[tree.phase == phase]
        if edges.size:
            child, parent = (edges[:, 0], edges[:, 1]) if phase is Phase.REDUCE else (edges[:, 1], edges[:, 0])
            steps = root_distances(child, parent, np.ones(child.size), tree.root, int(edges.max()) + 1)
            deepest = max(deepest, float(np.nanmax(steps)))
    return int(deepest)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a spread column should look like.

    Attributes:
        flatness: how much dearer a place one logical edge farther from the root counts, relative.
        max_depth: the most logical edges between a rank and the root.
    """

    flatness: float = 0.0
    max_depth: int = UNLIMITED


@dataclass(frozen=True, slots=True)
class Steering:
    """How links get dearer while columns are built, so that not everything hangs on the link that is cheapest at first.

    Attributes:
        bump: the factor by which one use raises a link's price.
        room: int64 (E,), uses before a link is full. penalty: factor from then on.
        shape: of the columns. random: picks what the demands leave open.
    """

    bump: float
    room: Ints
    penalty: float
    shape: Shape
    random: np.random.Generator


class Offer(Protocol):
    """The cheapest columns at some prices.

    Attributes:
        costs: float64 (J,), of each demand's.
    """

    costs: Floats

    def loads(self, amounts: Floats) -> Floats:
        """Loads of the links, float64 (E,), with ``amounts`` float64 (J,) of each demand's column."""
        ...

    def columns(self, demands: Ints) -> list[Column]:
        """The columns of these demands."""
        ...


class Oracle(Protocol):
    """Finds the cheapest columns of all demands, and nearly cheapest ones that spread their loads.

    Attributes:
        batches: demands that are best spread together, int64 each; every demand is in one.
    """

    batches: Sequence[Ints]

    def price(self, link_prices: Floats) -> Offer:
        """The cheapest column of each demand under link prices float64 (E,), all positive."""
        ...

    def spread(self, batch: int, link_prices: Floats, steering: Steering) -> list[Column]:
        """A column for each demand of a batch; none where the shape allows none."""
        ...


@dataclass(frozen=True, slots=True)
class Quote:
    """What prices lead to: the offer, the goal that is cheapest to serve, and the bound that is proved, bytes/s."""

    offer: Offer
    goal: int
    bound: float


@dataclass(frozen=True, slots=True)
class PackingProblem:
    """Capacity rows, demands and an oracle.

    Rows that every column loads alike (the two directions of a cable under simple trees) are folded into one; ``weight`` counts
    them, so that prices, iteration counts and bounds are those of the unfolded problem.

    Attributes:
        fabric: the links and shared capacities.
        fold: int64 (E+S,), the folded row of each capacity row.
        capacity: float64 (M,), bytes/s of each folded row.
        weight: float64 (M,), how many capacity rows it stands for.
        oracle: cheapest columns.
        part: float64 (J,), p_j: what a goal's rate of 1 byte/s needs of each of its demands.
        goal: int64 (J,), the goal of each demand, numbered from 0.
        classes: proposals of rows that look alike, int64 (E+S,) each; see :mod:`dualcoll.packing.class_prices`.
    """

    fabric: FabricArrays
    fold: Ints
    capacity: Floats
    weight: Floats
    oracle: Oracle
    part: Floats
    goal: Ints
    classes: tuple[Ints, ...] = ()

    @classmethod
    def of(
        cls, fabric: FabricArrays, fold: Ints, oracle: Oracle, part: Floats, goal: Ints, classes: tuple[Ints, ...] = ()
    ) -> PackingProblem:
        """Number the folded rows and take their capacities over; rows folded together have equal ones."""
        labels, first, fold = np.unique(fold, return_index=True, return_inverse=True)
        weight = np.bincount(fold, minlength=labels.size).astype(np.float64)
        return cls(fabric, fold.astype(np.int64), fabric.capacity[first], weight, oracle, part, goal, classes)

    @property
    def goals(self) -> int:
        """K."""
        return int(self.goal.max()) + 1

    def price(self, row_prices: Floats) -> Quote:
        """Ask the oracle.

        Args:
            row_prices: float64 (M,), positive; each capacity row under the folded row has this price.
        """
        offer = self.oracle.price(self.link_prices(row_prices))
        costs = np.bincount(self.goal, self.part * offer.costs)
        goal = int(np.argmin(costs))
        cost = float(costs[goal])
        return Quote(offer, goal, self.worth(row_prices) / cost if cost > 0 else float("inf"))

    def link_prices(self, row_prices: Floats) -> Floats:
        """What one unit on each link costs, float64 (E,), at prices (M,) of the folded rows."""
        return self.fabric.link_prices(row_prices[self.fold])

    def bundle(self, quote: Quote) -> Floats:
        """What the cheapest goal loads each folded row with at a rate of 1, float64 (M,)."""
        return self._folded(quote.offer.loads(np.where(self.goal == quote.goal, self.part, 0.0)))

    def loads(self, column: Column) -> Floats:
        """What the column loads each folded row with per unit rate, float64 (M,)."""
        on_link = np.zeros(self.fabric.links)
        on_link[column.links] = column.loads
        return self._folded(on_link)

    def value(self, carried: Floats) -> float:
        """The sum of the goals' rates when the demands are carried at these rates, float64 (J,)."""
        paces = np.full(self.goals, np.inf)
        np.minimum.at(paces, self.goal, carried / self.part)
        return float(paces.sum())

    def worth(self, row_prices: Floats) -> float:
        """``D(y) = Σ C y`` over the unfolded rows."""
        return float(np.dot(self.weight * self.capacity, row_prices))

    def try_out(self) -> None:
        """Ask the oracle once for everything, so that its kernels are compiled before a clock starts."""
        flat = 1.0 / self.capacity
        self.bundle(self.price(flat / self.worth(flat)))
        room = np.ones(self.fabric.links, np.int64)
        steering = Steering(1.0, room, 1.0, Shape(), np.random.default_rng(0))
        self.oracle.spread(0, np.ones(self.fabric.links), steering)

    def _folded(self, link_loads: Floats) -> Floats:
        loads = np.zeros(self.capacity.size)
        np.maximum.at(loads, self.fold, self.fabric.row_loads(link_loads))
        return loads
