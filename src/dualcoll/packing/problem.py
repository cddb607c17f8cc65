"""The one packing problem behind every collective (docs/model.md §3).

    maximise  Σ_c λ_c   subject to   Σ_c A[m, c] λ_c ≤ C_m  for every capacity row m,   λ ≥ 0

A column is one routed communication structure. A collective is an oracle: the cheapest column under row prices. Solvers know
neither trees nor routes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.trees import root_distances
from dualcoll.plans.model import Phase
from dualcoll.topology.arrays import FabricArrays

__all__ = [
    "UNLIMITED",
    "Column",
    "ColumnPool",
    "Oracle",
    "Packing",
    "PackingProblem",
    "RoutedTree",
    "Shape",
    "SpreadingOracle",
    "column_depth",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


UNLIMITED = 2**31  # logical edges


@dataclass(frozen=True, slots=True)
class RoutedTree:
    """Directed logical edges with routes: edges int64 (A, 2) participant numbers, CSR routes of link indices."""

    root: int
    edges: Ints
    phase: NDArray[np.int8]
    route_ptr: Ints
    route_links: Ints


@dataclass(frozen=True, slots=True)
class Column:
    """A routed structure, the links it loads per unit rate float64 (E,), and what it costs at the prices asked about."""

    cost: float
    link_loads: Floats
    tree: RoutedTree


def column_depth(column: Column) -> int:
    """The most logical edges between the column's root and a participant, in either phase."""
    tree = column.tree
    deepest = 0.0
    for phase in Phase:
        edges = tree.edges[tree.phase == phase]
        child, parent = (edges[:, 0], edges[:, 1]) if phase is Phase.REDUCE else (edges[:, 1], edges[:, 0])
        steps = root_distances(child, parent, np.ones(child.size), tree.root, child.size + 1)
        deepest = max(deepest, float(steps.max()))
    return int(deepest)


class Oracle(Protocol):
    """Finds a cheapest column.

    Attributes:
        roots: how many participants there are, and so possible roots.
    """

    roots: int

    def cheapest(self, link_prices: Floats) -> Column:
        """A column of least cost under link prices float64 (E,), all positive."""
        ...

    def star(self, link_prices: Floats, root: int) -> Column | None:
        """The column in which everybody talks to the root directly, over cheapest routes; None where somebody cannot."""
        ...


@dataclass(frozen=True, slots=True)
class Shape:
    """What a spread column should look like.

    Attributes:
        flatness: how much dearer a place one logical edge farther from the root counts, relative.
        max_depth: the most logical edges between a rank and the root.
    """

    flatness: float = 0.0
    max_depth: int = UNLIMITED


@runtime_checkable
class SpreadingOracle(Oracle, Protocol):
    """Finds nearly cheapest columns that do not hang everything on the link that is cheapest at first."""

    def spread(
        self, link_prices: Floats, bump: float, room: Ints, penalty: float, shape: Shape, random: np.random.Generator
    ) -> Column | None:
        """A column whose links get dearer while it is built; None where the shape allows none.

        Args:
            link_prices: float64 (E,), positive.
            bump: the factor by which one use raises a link's price.
            room: int64 (E,), uses before a link is full. penalty: factor from then on.
            shape: of the column.
            random: picks the root.
        """
        ...


@dataclass(frozen=True, slots=True)
class PackingProblem:
    """Capacity rows and an oracle.

    Rows that every column loads alike (the two directions of a cable under simple trees) are folded into one; ``weight`` counts
    them, so that prices, iteration counts and bounds are those of the unfolded problem.

    Attributes:
        fabric: the links and shared capacities.
        fold: int64 (E+S,), the folded row of each capacity row.
        capacity: float64 (M,), bytes/s of each folded row.
        weight: float64 (M,), how many capacity rows it stands for.
        oracle: cheapest columns.
        classes: proposals of rows that look alike, int64 (E+S,) each; see :mod:`dualcoll.packing.class_prices`.
    """

    fabric: FabricArrays
    fold: Ints
    capacity: Floats
    weight: Floats
    oracle: Oracle
    classes: tuple[Ints, ...] = ()

    @classmethod
    def of(cls, fabric: FabricArrays, fold: Ints, oracle: Oracle, classes: tuple[Ints, ...] = ()) -> PackingProblem:
        """Number the folded rows and take their capacities over; rows folded together have equal ones."""
        labels, first, fold = np.unique(fold, return_index=True, return_inverse=True)
        weight = np.bincount(fold, minlength=labels.size).astype(np.float64)
        return cls(fabric, fold.astype(np.int64), fabric.capacity[first], weight, oracle, classes)

    def price(self, row_prices: Floats) -> tuple[Column, Floats, float]:
        """Ask the oracle.

        Args:
            row_prices: float64 (M,), positive; each capacity row under the folded row has this price.

        Returns:
            column: a cheapest one; loads: float64 (M,), its load on each folded row; bound: bytes/s, what the prices prove.
        """
        column = self.oracle.cheapest(self.fabric.link_prices(row_prices[self.fold]))
        return column, self.loads(column), self.worth(row_prices) / column.cost

    def loads(self, column: Column) -> Floats:
        """What the column loads each folded row with per unit rate, float64 (M,)."""
        loads = np.zeros(self.capacity.size)
        np.maximum.at(loads, self.fold, self.fabric.row_loads(column.link_loads))
        return loads

    def try_out(self) -> None:
        """Ask the oracle once for everything, so that its kernels are compiled before a clock starts."""
        flat = 1.0 / self.capacity
        self.price(flat / self.worth(flat))
        if self.classes and isinstance(self.oracle, SpreadingOracle):
            room = np.ones(self.fabric.links, np.int64)
            self.oracle.spread(np.ones(self.fabric.links), 1.0, room, 1.0, Shape(), np.random.default_rng(0))

    def worth(self, row_prices: Floats) -> float:
        """``D(y) = Σ C y`` over the unfolded rows."""
        return float(np.dot(self.weight * self.capacity, row_prices))


@dataclass(frozen=True, slots=True)
class Packing:
    """A feasible packing with its proof.

    Attributes:
        columns: T of them. rates: float64 (T,), bytes/s; some may be 0.
        prices: float64 (M,), the best found. bound: bytes/s, what they prove.
    """

    columns: tuple[Column, ...]
    rates: Floats
    prices: Floats
    bound: float

    @property
    def value(self) -> float:
        """Sum of the rates, bytes/s."""
        return float(self.rates.sum())


class ColumnPool:
    """Distinct columns found so far; columns with the same loads are the same to the packing, and the first is kept."""

    def __init__(self, problem: PackingProblem) -> None:
        self.problem = problem
        self.columns: list[Column] = []
        self.rows: list[Ints] = []
        self.relative: list[Floats] = []
        self._index: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.columns)

    def add(self, column: Column, loads: Floats) -> tuple[int, bool]:
        """The column's number, and whether it is new. ``loads`` is float64 (M,)."""
        key = loads.astype(np.float32).tobytes()
        known = self._index.get(key)
        if known is not None:
            return known, False
        rows = np.flatnonzero(loads)
        self._index[key] = len(self.columns)
        self.columns.append(column)
        self.rows.append(rows)
        self.relative.append(loads[rows] / self.problem.capacity[rows])
        return len(self.columns) - 1, True

    def take(self, other: ColumnPool, number: int) -> None:
        """Add a column of another pool of the same problem."""
        loads = np.zeros(self.problem.capacity.size)
        loads[other.rows[number]] = other.relative[number] * self.problem.capacity[other.rows[number]]
        self.add(other.columns[number], loads)

    def congestion(self, rates: Floats) -> float:
        """The largest load over capacity of any row if the columns run at these rates (T,)."""
        total = np.zeros(self.problem.capacity.size)
        for t in np.flatnonzero(rates):
            total[self.rows[t]] += rates[t] * self.relative[t]
        return float(total.max())
