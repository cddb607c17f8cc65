"""Linear programs on HiGHS, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dualcoll.lp.linear import LinearMethod, LinearProgram, LinearStatus, solve_linear


def packing(matrix: np.ndarray, cost: np.ndarray, room: np.ndarray) -> LinearProgram:
    rows, columns = matrix.shape
    row, column = np.indices(matrix.shape).reshape(2, -1)
    none = np.full(rows, -np.inf)
    return LinearProgram(cost, np.zeros(columns), np.full(columns, 9.0), none, room, row, column, matrix.ravel())


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(LinearMethod))
def test_optimum_and_duals(seed: int, method: LinearMethod) -> None:
    """Both methods reach scipy's optimum, and their duals prove it."""
    random = np.random.default_rng(seed)
    matrix, cost, room = random.integers(0, 5, (3, 4)).astype(float), random.random(4), random.random(3) + 1
    found = solve_linear(packing(matrix, cost, room), method)
    assert found.status is LinearStatus.OPTIMAL
    known = linprog(-cost, matrix, room, bounds=[(0, 9)] * 4)
    assert found.value == pytest.approx(-known.fun, abs=1e-6)
    assert found.value == pytest.approx(cost @ found.columns, abs=1e-6)
    reduced = np.maximum(0.0, cost - found.duals @ matrix)
    assert np.all(found.duals >= -1e-9)
    assert found.value == pytest.approx(found.duals @ room + 9 * reduced.sum(), abs=1e-6)


def test_entries_of_one_place_add_up() -> None:
    """Two entries of 1 in one place are one of 2."""
    one = np.ones(1)
    twice = np.zeros(2, np.int64)
    program = LinearProgram(one, np.zeros(1), 9 * one, -np.inf * one, 4 * one, twice, twice, np.ones(2))
    assert solve_linear(program).columns.tolist() == [2.0]


def test_no_solution() -> None:
    """A row that no column reaches is told, and nothing else is claimed."""
    one, zero = np.ones(1), np.zeros(1)
    program = LinearProgram(one, zero, one, 2 * one, 3 * one, np.zeros(1, np.int64), np.zeros(1, np.int64), one)
    found = solve_linear(program)
    assert (found.status, found.value, found.columns.size) == (LinearStatus.INFEASIBLE, float("-inf"), 0)


@pytest.mark.parametrize("method", LinearMethod)
def test_stopped(method: LinearMethod) -> None:
    """Who asks for the end gets it, by either method."""
    random = np.random.default_rng(0)
    program = packing(random.random((60, 80)), random.random(80), random.random(60) + 1)
    assert solve_linear(program, method, stopped=lambda: True).status is LinearStatus.STOPPED
