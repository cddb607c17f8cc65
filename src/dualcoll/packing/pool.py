"""Columns found so far, and packings of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.packing.problem import Column, PackingProblem

__all__ = ["ColumnPool", "Packing"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Packing:
    """A feasible packing with its proof.

    Attributes:
        columns: T of them. rates: float64 (T,), bytes/s; some may be 0.
        value: bytes/s, the sum of the goals' rates.
        prices: float64 (M,), the best found. bound: bytes/s, what they prove.
    """

    columns: tuple[Column, ...]
    rates: Floats
    value: float
    prices: Floats
    bound: float


class ColumnPool:
    """Distinct columns; columns of one demand with the same loads are the same to the packing, and the first is kept."""

    def __init__(self, problem: PackingProblem) -> None:
        self.problem = problem
        self.columns: list[Column] = []
        self.rows: list[Ints] = []
        self.relative: list[Floats] = []
        self._index: dict[tuple[int, bytes, bytes], int] = {}

    def __len__(self) -> int:
        return len(self.columns)

    def add(self, column: Column, loads: Floats | None = None) -> tuple[int, bool]:
        """The column's number, and whether it is new. ``loads`` float64 (M,), if they are known already."""
        key = column.demand, column.links.tobytes(), column.loads.astype(np.float32).tobytes()
        known = self._index.get(key)
        if known is not None:
            return known, False
        if loads is None:
            loads = self.problem.loads(column)
        rows = np.flatnonzero(loads)
        self._index[key] = len(self.columns)
        self.columns.append(column)
        self.rows.append(rows)
        self.relative.append(loads[rows] / self.problem.capacity[rows])
        return len(self.columns) - 1, True

    def congestion(self, rates: Floats) -> float:
        """The largest load over capacity of any row if the columns run at these rates (T,)."""
        used = np.flatnonzero(rates)
        if not used.size:
            return 0.0
        rows = np.concatenate([self.rows[t] for t in used])
        amounts = np.concatenate([rates[t] * self.relative[t] for t in used])
        return float(np.bincount(rows, amounts).max())

    def carried(self, rates: Floats) -> Floats:
        """Rates of the demands, float64 (J,), if the columns run at these rates (T,)."""
        demand = np.fromiter((column.demand for column in self.columns), np.int64, len(self.columns))
        return np.bincount(demand[: rates.size], rates, self.problem.part.size).astype(np.float64)

    def fitted(self, rates: Floats) -> tuple[Floats, float]:
        """Rates (T,) scaled to fill the busiest row, and their value, bytes/s; nothing is worth 0."""
        congestion = self.congestion(rates)
        if congestion <= 0:
            return rates, 0.0
        fitted = rates / congestion
        return fitted, self.problem.value(self.carried(fitted))
