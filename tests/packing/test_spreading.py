from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dualcoll.packing.pool import ColumnPool
from dualcoll.packing.problem import PackingProblem, Shape, column_depth
from dualcoll.packing.spreading import Schedule, spread_packing
from dualcoll.topology.catalog import catalog
from tests.packing.exact import random_case, random_optimum
from tests.packing.problems import allreduce_problem, cheapest, spread_one
from tests.packing.sound import assert_sound

Floats = np.ndarray


def _flat_prices(problem: PackingProblem) -> Floats:
    prices = 1.0 / problem.capacity
    return prices / problem.worth(prices)


@pytest.mark.parametrize("seed", range(60))
def test_a_spread_packing_fits_and_is_below_the_optimum(seed: int) -> None:
    """Aimed at the optimum, below or above it: fitted it is never above the optimum, nor far off where the aim is true."""
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
        value = pool.fitted(rates)[1]
        assert 0.5 * optimum * (aim == 1.0) < value <= optimum * (1 + 1e-9)


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
    rng = np.random.default_rng(seed)
    prices = rng.random(len(topology.links)) + 0.01
    room = rng.integers(0, 4, prices.size)
    column = spread_one(problem, prices, 1.3, room, Shape(), rng)
    assert column is not None
    assert_sound(topology, column, prices)
    assert column.cost >= cheapest(problem, prices).cost * (1 - 1e-12)


@pytest.mark.parametrize("most", [2, 3, 4, 8])
def test_a_shape_bounds_the_depth(most: int) -> None:
    """No rank is more logical edges below the root that grew the tree; the tree is rooted at its centre, never deeper."""
    topology = catalog("torus:4x4")
    problem = allreduce_problem(topology, topology.ranks)
    prices, room = np.ones(len(topology.links)), np.full(len(topology.links), 9)
    for seed in range(8):
        column = spread_one(problem, prices, 1.3, room, Shape(max_depth=most), np.random.default_rng(seed))
        # the farthest rank is 4 hops away; just then a greedy tree may miss
        assert (column is None) is (most < 4) or most == 4
        assert column is None or column_depth(column) <= most


def test_flat_shapes_make_flatter_trees() -> None:
    """On rails of 64 ranks, where any rank may be next to any."""
    topology = catalog("dgx-h100:boxes=8")
    problem = allreduce_problem(topology, topology.ranks)
    prices, room = np.ones(len(topology.links)), np.full(len(topology.links), 9)
    depths = []
    for flatness in (0.0, 0.02, 0.3):
        column = spread_one(problem, prices, 1.35, room, Shape(flatness), np.random.default_rng(0))
        assert column is not None
        depths.append(column_depth(column))
    assert depths == sorted(depths, reverse=True)
    assert depths[-1] < depths[0]


def test_the_packing_ends_when_told_to() -> None:
    """After a column."""
    topology = catalog("torus:4x4")
    problem = allreduce_problem(topology, topology.ranks)
    values: list[float] = []

    def over(value: float) -> bool:
        values.append(value)
        return len(values) == 3

    rates = _packed(problem, 1e11, over=over)
    assert len(values) == 3
    assert np.count_nonzero(rates) <= 3
    assert values == sorted(values)


def test_a_packing_that_must_end_at_once_has_a_column() -> None:
    """Even one that does not fit at the first rate: a star loads its root's cable with every rank."""
    topology = catalog("star:400")
    problem = allreduce_problem(topology, topology.ranks)
    rates = _packed(problem, 25e9, Shape(max_depth=1), lambda _: True)
    assert rates.sum() == pytest.approx(50e9 / 399)


def test_a_shape_that_cannot_be_gives_no_columns_and_asks_the_clock() -> None:
    """A torus has no star: after a few roots the clock decides, and nothing comes back."""
    topology = catalog("torus:4x4")
    problem = allreduce_problem(topology, topology.ranks)
    values: list[float] = []

    def over(value: float) -> bool:
        values.append(value)
        return True

    assert _packed(problem, 1e11, Shape(max_depth=1), over).size == 0
    assert values == [0.0]


def _packed(
    problem: PackingProblem,
    target: float,
    shape: Shape | None = None,
    over: Callable[[float], bool] = lambda _: False,
) -> Floats:
    pool = ColumnPool(problem)
    schedule, random = Schedule(), np.random.default_rng(0)
    rates = spread_packing(problem, _flat_prices(problem), target, pool, schedule, shape or Shape(), random, over)
    return pool.fitted(rates)[0]
