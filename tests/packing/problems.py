"""Packing problems and columns of tests, in a line each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.catalogue import ROOTED
from dualcoll.collectives.workload import Group, Workload
from dualcoll.packing.collective import Columns, packing_problem
from dualcoll.packing.pool import Packing
from dualcoll.packing.problem import Column, PackingProblem, Shape, Steering
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["allreduce_problem", "cheapest", "loads", "one_group", "packing_of", "spread_one"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def one_group(
    ranks: Sequence[int], collective: str = "allreduce", size: int = 2**20, root: int | None = None
) -> Workload:
    """A workload of one group, its first rank the root where none is given."""
    if collective in ROOTED and root is None:
        root = ranks[0]
    return Workload((Group("all", collective, tuple(ranks), size, root),))


def allreduce_problem(
    topology: Topology,
    ranks: Sequence[int],
    forwarding: Forwarding = Forwarding.SWITCHES,
    columns: Columns = Columns.AUTO,
) -> PackingProblem:
    """AllReduce of these node indices."""
    return packing_problem(topology, one_group(ranks), forwarding, columns=columns)


def cheapest(problem: PackingProblem, link_prices: Floats, demand: int = 0) -> Column:
    """The cheapest column of a demand."""
    (column,) = problem.oracle.price(link_prices).columns(np.array([demand]))
    return column


def loads(column: Column, links: int) -> Floats:
    """Loads of all links per unit rate, float64 (E,)."""
    dense = np.zeros(links)
    dense[column.links] = column.loads
    return dense


def spread_one(
    problem: PackingProblem, link_prices: Floats, bump: float, room: Ints, shape: Shape, random: np.random.Generator
) -> Column | None:
    """A spread column of the first batch, if there is one."""
    columns = problem.oracle.spread(0, link_prices, Steering(bump, room, 100.0, shape, random))
    return columns[0] if columns else None


def packing_of(problem: PackingProblem, columns: Sequence[Column], rates: Sequence[float], bound: float) -> Packing:
    """A packing at these rates, with equal prices."""
    prices = np.ones(problem.capacity.size)
    return Packing(tuple(columns), np.array(rates), float(sum(rates)), prices, bound)
