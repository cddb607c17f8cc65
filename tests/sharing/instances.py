"""Small networks in fractions, and second methods for their max-min fair rates that share no code with what they check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from dualcoll.sharing.max_min import Clamp, Loads

__all__ = ["Instance", "instances", "progressive_filling", "rates_of", "successive_programs"]

Floats = NDArray[np.float64]

PARTS = [
    Fraction(0),
    Fraction(0),
    Fraction(1, 4),
    Fraction(1, 3),
    Fraction(1, 2),
    Fraction(1),
    Fraction(1),
    Fraction(2),
]


@dataclass(frozen=True)
class Instance:
    """Loads by user and row, (T, M), of which every user has one; capacities (M,)."""

    loads: tuple[tuple[Fraction, ...], ...]
    capacity: tuple[Fraction, ...]

    def sparse(self) -> list[dict[int, Fraction]]:
        """As the exact method takes them."""
        return [dict(enumerate(on)) for on in self.loads]

    def arrays(self) -> tuple[Loads, Floats]:
        """As the fast method takes them."""
        dense = np.array(self.loads, np.float64)
        user, row = np.indices(dense.shape)
        loads = Loads.of(row.ravel(), user.ravel(), dense.ravel(), dense.shape[1], dense.shape[0])
        return loads, np.array(self.capacity, np.float64)

    def used(self, rates: Sequence[Fraction]) -> list[Fraction]:
        """What the rows carry at these rates."""
        return [sum((on[e] * x for on, x in zip(self.loads, rates, strict=True)), Fraction(0)) for e in self.rows]

    @property
    def rows(self) -> range:
        """Numbers of the rows."""
        return range(len(self.capacity))


@st.composite
def instances(draw: Callable[..., object], most_users: int = 5, most_rows: int = 5) -> Instance:
    """Few values of loads and capacities, so that ties are common."""
    rows = draw(st.integers(1, most_rows))
    assert isinstance(rows, int)
    on = st.lists(st.sampled_from(PARTS), min_size=rows, max_size=rows).filter(any).map(tuple)
    loads = draw(st.lists(on, min_size=1, max_size=most_users).map(tuple))
    capacity = draw(st.lists(st.integers(1, 8).map(Fraction), min_size=rows, max_size=rows).map(tuple))
    return Instance(loads, capacity)  # type: ignore[arg-type]


def rates_of(clamps: Sequence[Clamp]) -> list[Fraction]:
    """The rate of every user, each of whom is clamped once."""
    rates = {i: clamp.rate for clamp in clamps for i in clamp.users}
    assert sum(len(clamp.users) for clamp in clamps) == len(rates)
    return [rates[i] for i in range(len(rates))]


def progressive_filling(instance: Instance) -> list[Fraction]:
    """All rates grow together in small time; whoever is on a row that is full stops growing."""
    rates = [Fraction(0)] * len(instance.loads)
    growing = set(range(len(rates)))
    while growing:
        used = instance.used(rates)
        speed = instance.used([Fraction(i in growing) for i in range(len(rates))])
        time = min((instance.capacity[e] - used[e]) / speed[e] for e in instance.rows if speed[e])
        for i in growing:
            rates[i] += time
        used = instance.used(rates)
        full = [e for e in instance.rows if used[e] == instance.capacity[e]]
        growing -= {i for i in growing if any(instance.loads[i][e] for e in full)}
    return rates


def successive_programs(instance: Instance) -> Floats:
    """By definition: the largest least rate, fixed for those who cannot have more, then the largest least of the others."""
    A = np.array(instance.loads, np.float64).T
    capacity = np.array(instance.capacity, np.float64)
    fixed: dict[int, float] = {}
    users = A.shape[1]
    while len(fixed) < users:
        free = [i for i in range(users) if i not in fixed]
        least = _maximise(A, capacity, fixed, free, None)
        stuck = [i for i in free if _maximise(A, capacity, fixed, free, (i, least)) < least + 1e-6]
        assert stuck
        fixed |= dict.fromkeys(stuck, least)
    return np.array([fixed[i] for i in range(users)])


def _maximise(
    A: Floats, capacity: Floats, fixed: dict[int, float], free: list[int], alone: tuple[int, float] | None
) -> float:
    """The most that the least of the free users can get, or that one of them can while the others keep a rate."""
    rows, users = A.shape
    cost = np.zeros(users + 1)
    cost[users if alone is None else alone[0]] = -1
    above = np.zeros((len(free), users + 1))
    above[range(len(free)), free] = -1
    above[:, users] = 1
    level = (0, None) if alone is None else (alone[1] - 1e-9, alone[1] - 1e-9)
    bounds = [(fixed[i] - 1e-9, fixed[i]) if i in fixed else (0, None) for i in range(users)]
    found: Any = linprog(
        cost,
        np.vstack([np.column_stack([A, np.zeros(rows)]), above]),
        np.concatenate([capacity, np.zeros(len(free))]),
        bounds=[*bounds, level],
    )
    assert found.success
    return -float(found.fun)
