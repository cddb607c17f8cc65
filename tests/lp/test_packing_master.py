from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from dualcoll.lp.packing_master import MasterSolution, PackingMaster

SEEDS = range(40)


def _columns(seed: int) -> np.ndarray:
    """A sparse matrix of loads (M, T); every column loads some row."""
    rng = np.random.default_rng(seed)
    rows, count = int(rng.integers(1, 12)), int(rng.integers(1, 25))
    loads = rng.integers(1, 4, (rows, count)) * (rng.random((rows, count)) < 0.4).astype(float)
    loads[rng.integers(rows, size=count), np.arange(count)] += 1.0
    return np.asarray(loads * 10.0 ** rng.uniform(-3, 3, (rows, 1)))


def _add(master: PackingMaster, loads: np.ndarray) -> None:
    for column in loads.T:
        rows = np.flatnonzero(column)
        master.add(rows, column[rows])


def _assert_optimal(solution: MasterSolution, loads: np.ndarray) -> None:
    """Primal and dual are feasible and meet: rates fit in every row, every column is covered by the duals."""
    assert solution.solved
    assert (solution.rates >= 0).all()
    assert (solution.duals >= 0).all()
    assert (loads @ solution.rates).max() <= 1 + 1e-8
    assert (solution.duals @ loads).min() >= 1 - 1e-8
    assert solution.rates.sum() == pytest.approx(solution.duals.sum(), rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_optimum_is_that_of_scipy_and_proved_by_duality(seed: int) -> None:
    """One solve over all columns."""
    loads = _columns(seed)
    master = PackingMaster(len(loads))
    _add(master, loads)
    solution = master.solve(float("inf"))
    _assert_optimal(solution, loads)
    reference: Any = linprog(-np.ones(loads.shape[1]), A_ub=loads, b_ub=np.ones(len(loads)))
    assert solution.rates.sum() == pytest.approx(-reference.fun, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_may_come_later(seed: int) -> None:
    """A solve after each few columns is optimal for those so far, and at the end for all; the value never falls."""
    loads = _columns(seed)
    master = PackingMaster(len(loads))
    value = 0.0
    for start in range(0, loads.shape[1], 4):
        _add(master, loads[:, start : start + 4])
        solution = master.solve(10.0)
        _assert_optimal(solution, loads[:, : start + 4])
        assert solution.rates.sum() >= value * (1 - 1e-9)
        value = solution.rates.sum()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_solution_is_basic(seed: int) -> None:
    """No more positive rates than rows."""
    loads = _columns(seed)
    master = PackingMaster(len(loads))
    _add(master, loads)
    assert np.count_nonzero(master.solve(1.0).rates) <= len(loads)


def test_no_time_left_is_said() -> None:
    """A large program with hardly any time is not called solved; what comes back can still be used."""
    rng = np.random.default_rng(0)
    loads = rng.random((400, 800)) * (rng.random((400, 800)) < 0.3)
    loads[0] += 0.1
    master = PackingMaster(400)
    _add(master, loads)
    solution = master.solve(0.0)
    assert not solution.solved
    assert solution.rates.shape == (800,)
    assert solution.duals.shape == (400,)
    assert np.isfinite(solution.rates).all()
    _assert_optimal(master.solve(float("inf")), loads)


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_and_duals_fit_each_other(seed: int) -> None:
    """A row with a price is full, and a column with a rate costs exactly 1: what goes wrong where a sign is wrong."""
    loads = _columns(seed)
    master = PackingMaster(len(loads))
    _add(master, loads)
    solution = master.solve(float("inf"))
    np.testing.assert_allclose((loads @ solution.rates)[solution.duals > 1e-9], 1.0, rtol=1e-7)
    np.testing.assert_allclose((solution.duals @ loads)[solution.rates > 1e-9], 1.0, rtol=1e-7)


@pytest.mark.parametrize("seed", range(20))
def test_a_fabric_has_many_rows_and_few_columns(seed: int) -> None:
    """Hundreds of rows, many of them alike: equal to scipy, with no more rates than columns or rows."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 12))
    loads = np.repeat(rng.integers(0, 4, (40, count)).astype(float), 8, axis=0)
    loads[0] += 1.0
    master = PackingMaster(len(loads))
    _add(master, loads)
    solution = master.solve(float("inf"))
    _assert_optimal(solution, loads)
    reference: Any = linprog(-np.ones(count), A_ub=loads, b_ub=np.ones(len(loads)))
    assert solution.rates.sum() == pytest.approx(-reference.fun, rel=1e-9)
    assert solution.rates.shape == (count,)
    assert solution.duals.shape == (len(loads),)


def test_columns_that_are_added_keep_those_that_are_there() -> None:
    """A solve between does not renumber: rates stand in the order of adding."""
    master = PackingMaster(2)
    master.add(np.array([0]), np.array([1.0]))
    np.testing.assert_allclose(master.solve(1.0).rates, [1.0])
    master.add(np.array([1]), np.array([0.5]))
    master.add(np.array([0, 1]), np.array([1.0, 1.0]))
    solution = master.solve(1.0)
    np.testing.assert_allclose(solution.rates, [1.0, 2.0, 0.0])
    np.testing.assert_allclose(solution.duals, [1.0, 2.0])
