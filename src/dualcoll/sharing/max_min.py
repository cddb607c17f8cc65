"""Who gets what where the network shares fairly: tree-coupled and flow-level max-min (DualColl, section 5.4, Algorithm 2).

A *user* of the network is whatever keeps one rate over all that it loads: a tree in the tree-coupled model, a flow (one logical
edge) in the flow-level model. Both are the same water-filling, on different matrices. Shape letters: T users, M capacity rows
(the links, then the shared capacities), K iterations.

:func:`max_min` is fast, in floating point; :func:`max_min_exact` follows the algorithm line by line in fractions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualcoll.errors import InputError
from dualcoll.kernels.water_filling import fill

__all__ = ["Clamp", "Loads", "MaxMin", "max_min", "max_min_exact"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Loads:
    """What every user puts on every capacity row per unit of its rate: a sparse matrix (M, T), by row.

    Attributes:
        ptr: int64 (M+1,). user: int64 (nnz,), ascending within a row. load: float64 (nnz,), positive.
        users: T.
    """

    ptr: Ints
    user: Ints
    load: Floats
    users: int

    @classmethod
    def of(cls, row: ArrayLike, user: ArrayLike, load: ArrayLike, rows: int, users: int) -> Loads:
        """From entries (row, user, load) in any order; those of one place add up, those of no load are dropped.

        Raises:
            InputError: a load that is negative or not finite, or an entry outside the matrix.
        """
        at = np.asarray(row, np.int64), np.asarray(user, np.int64)
        size = np.asarray(load, np.float64)
        wrong = np.flatnonzero(~(np.isfinite(size) & (size >= 0)))
        if wrong.size:
            raise InputError(f"load {size[wrong[0]]} is not a finite number >= 0", where=f"entry {wrong[0]}")
        for place, limit, what in ((at[0], rows, "row"), (at[1], users, "user")):
            outside = np.flatnonzero((place < 0) | (place >= limit))
            if outside.size:
                raise InputError(f"there is no {what} {place[outside[0]]}", where=f"entry {outside[0]}")
        place, inverse = np.unique(at[0] * users + at[1], return_inverse=True)
        sums: Floats = np.bincount(inverse, size, place.size).astype(np.float64)
        place, sums = place[sums > 0], sums[sums > 0]
        row_of, user_of = np.divmod(place, max(users, 1))
        return cls(np.searchsorted(row_of, np.arange(rows + 1)), user_of, sums, users)

    @property
    def rows(self) -> int:
        """M."""
        return self.ptr.size - 1

    def row_of(self) -> Ints:
        """The row of every entry, int64 (nnz,)."""
        return np.repeat(np.arange(self.rows), np.diff(self.ptr))

    def merged(self, owner: Ints, owners: int) -> Loads:
        """The loads of users that act as one: ``owner`` (T,) says whose part each is."""
        return Loads.of(self.row_of(), owner[self.user], self.load, self.rows, owners)

    def scaled(self, copies: Ints) -> Loads:
        """The loads with ``copies[i]`` copies of user i, as one user at the rate of each copy: equals get equal rates."""
        keep = copies[self.user] > 0
        ptr = np.append(0, np.cumsum(keep))[self.ptr]
        return Loads(ptr, self.user[keep], (self.load * copies[self.user])[keep], self.users)

    def total(self, rate: Floats) -> Floats:
        """What the rows carry at these rates, float64 (M,)."""
        return np.bincount(self.row_of(), self.load * rate[self.user], self.rows).astype(np.float64)


@dataclass(frozen=True, slots=True)
class MaxMin:
    """A max-min fair allocation, and the iterations that led to it.

    Attributes:
        rate: float64 (T,), bytes/s; inf for a user that loads nothing.
        step: int64 (T,), the iteration in which the user was clamped, -1 for one that loads nothing.
        row: int64 (K,), the row that was full in each iteration.
        level: float64 (K,), bytes/s, the rate of those clamped in it; never falling.
    """

    rate: Floats
    step: Ints
    row: Ints
    level: Floats

    def limit(self) -> Ints:
        """The row that holds each user, int64 (T,); -1 for one that loads nothing."""
        return np.append(self.row, -1)[self.step]


def max_min(loads: Loads, capacity: Floats) -> MaxMin:
    """The max-min fair rates: no user can get more without taking from one that has no more (Theorem 5.2).

    Args:
        loads: the matrix; of trees for the tree-coupled model, of flows for the flow-level model.
        capacity: float64 (M,), bytes/s.

    Raises:
        InputError: a capacity that is negative or not finite, or not one per row.
    """
    if capacity.shape != (loads.rows,):
        raise InputError(f"{capacity.size} capacities for {loads.rows} rows")
    wrong = np.flatnonzero(~(np.isfinite(capacity) & (capacity >= 0)))
    if wrong.size:
        raise InputError(f"capacity {capacity[wrong[0]]} is not a finite number >= 0", where=f"row {wrong[0]}")
    return MaxMin(*fill(loads.ptr, loads.user, loads.load, capacity, loads.users))


@dataclass(frozen=True, slots=True)
class Clamp:
    """One iteration of Algorithm 2: ``row`` is full, and the users on it stay at ``rate``."""

    rate: Fraction
    row: int
    users: tuple[int, ...]


def max_min_exact(loads: Sequence[Mapping[int, Fraction]], capacity: Sequence[Fraction]) -> tuple[Clamp, ...]:
    """Algorithm 2 in exact arithmetic; of rows that fill at once the first is taken first. O(T · nnz), for small instances.

    Args:
        loads: for each user (T,), what it puts on rows per unit of rate.
        capacity: of each row (M,), not negative.

    Returns:
        The iterations, in order. A user that loads nothing is in none of them.

    Raises:
        InputError: a load or capacity that is negative, or a load on a row that does not exist.
    """
    for i, on in enumerate(loads):
        for row, load in on.items():
            if load < 0 or not 0 <= row < len(capacity):
                raise InputError(f"load {load} on row {row} is negative or on no row", where=f"user {i}")
    if any(room < 0 for room in capacity):
        raise InputError(f"capacity {min(capacity)} is negative")
    active = {i: on for i, on in enumerate(loads) if any(load > 0 for load in on.values())}
    left = list(capacity)
    clamps: list[Clamp] = []
    while active:
        sums: dict[int, Fraction] = {}
        for on in active.values():
            for row, load in on.items():
                sums[row] = sums.get(row, Fraction(0)) + load
        rate, row = min((left[row] / total, row) for row, total in sums.items() if total > 0)
        users = tuple(i for i, on in active.items() if on.get(row, 0) > 0)
        for i in users:
            for e, load in active.pop(i).items():
                left[e] -= rate * load
        clamps.append(Clamp(rate, row, users))
    return tuple(clamps)
