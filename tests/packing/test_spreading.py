from __future__ import annotations

import numpy as np
import pytest

from dualcoll.packing.allreduce import allreduce_problem
from dualcoll.packing.problem import ColumnPool, PackingProblem, Shape, SpreadingOracle
from dualcoll.packing.spreading import Schedule, spread_packing
from dualcoll.plans.model import Phase
from dualcoll.topology.catalog import catalog
from tests.packing.exact import random_case, random_optimum
from tests.packing.sound import assert_sound

Floats = np.ndarray


def _flat_prices(problem: PackingProblem) -> Floats:
    prices = 1.0 / problem.capacity
    return prices / problem.worth(prices)


@pytest.mark.parametrize("seed", range(60))
def test_a_spread_packing_fits_and_is_below_the_optimum(seed: int) -> None:
    """Aimed at the optimum, below it or above it: what comes back is feasible, and not far off where the aim is true."""
    topology = random_case("switched", seed)
    problem = allreduce_problem(topology, topology.ranks)
    optimum = random_optimum("switched", seed)
    for aim in (0.5, 1.0, 3.0):
        pool = ColumnPool(problem)
        rates = spread_packing(
            problem, _flat_prices(problem), aim * optimum, pool, Schedule(), Shape(), np.random.default_rng(seed)
        )
        assert rates.size == len(pool)
        assert (rates >= 0).all()
        assert pool.congestion(rates) == pytest.approx(1.0)
        assert 0.5 * optimum * (aim == 1.0) <= rates.sum() <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("spec", ["dgx-h100:boxes=16", "torus:8x8", "fat-tree:k=8"])
def test_regular_fabrics_are_packed_within_a_hundredth(spec: str) -> None:
    """From equal prices, without any LP."""
    optimum = {"dgx-h100:boxes=16": 213.3333333e9, "torus:8x8": 101.5873016e9, "fat-tree:k=8": 25.1968504e9}[spec]
    topology = catalog(spec)
    problem = allreduce_problem(topology, topology.ranks)
    pool = ColumnPool(problem)
    rates = spread_packing(problem, _flat_prices(problem), optimum, pool, Schedule(), Shape(), np.random.default_rng(0))
    assert 0.99 * optimum <= rates.sum() <= optimum


@pytest.mark.parametrize("seed", range(60))
def test_spread_columns_are_sound(seed: int) -> None:
    """Spanning trees over allowed routes whose loads add up, whatever the prices, the bump and the room."""
    topology = random_case("switched", seed)
    problem = allreduce_problem(topology, topology.ranks)
    assert isinstance(problem.oracle, SpreadingOracle)
    rng = np.random.default_rng(seed)
    prices = rng.random(len(topology.links)) + 0.01
    room = rng.integers(0, 4, prices.size)
    column = problem.oracle.spread(prices, 1.3, room, 100.0, Shape(), rng)
    assert column is not None
    assert_sound(topology, column, prices)
    assert column.cost >= problem.oracle.cheapest(prices).cost * (1 - 1e-12)


def test_a_shape_bounds_the_depth() -> None:
    """No rank more logical edges below the root than allowed; none where that cannot be."""
    topology = catalog("torus:4x4")
    problem = allreduce_problem(topology, topology.ranks)
    assert isinstance(problem.oracle, SpreadingOracle)
    prices, room = np.ones(len(topology.links)), np.full(len(topology.links), 9)
    column = problem.oracle.spread(prices, 1.3, room, 100.0, Shape(max_depth=4), np.random.default_rng(0))
    if column is not None:
        assert (column.tree.phase == Phase.REDUCE).sum() == 15
    assert problem.oracle.spread(prices, 1.3, room, 100.0, Shape(max_depth=1), np.random.default_rng(0)) is None


def test_the_packing_ends_when_told_to() -> None:
    """After a column, with its value."""
    topology = catalog("torus:4x4")
    problem = allreduce_problem(topology, topology.ranks)
    values: list[float] = []

    def over(value: float) -> bool:
        values.append(value)
        return len(values) == 3

    rates = spread_packing(
        problem, _flat_prices(problem), 1e11, ColumnPool(problem), Schedule(), Shape(), np.random.default_rng(0), over
    )
    assert len(values) == 3
    assert rates.sum() == pytest.approx(values[-1])
