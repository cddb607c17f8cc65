"""Integer programs: every engine that is installed, on the same small programs, against enumeration."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.lp.engines import ENGINES, Engine, Feature, get_engine
from dualcoll.lp.integer_program import UNBOUNDED, IntegerProgram, Limits, Status

INSTALLED = [engine for engine in ENGINES.values() if engine.installed]
each_engine = pytest.mark.parametrize("engine", INSTALLED, ids=lambda engine: engine.name)


@st.composite
def programs(draw: st.DrawFn) -> IntegerProgram:
    """Programs of a few columns with every kind of row that engines treat by its kind."""
    n = draw(st.integers(1, 5))
    rows = draw(st.integers(0, 4))
    upper = draw(st.lists(st.sampled_from((1, 1, 1, 2)), min_size=n, max_size=n))
    entries = draw(
        st.lists(st.lists(st.sampled_from((-2, -1, -1, 0, 1, 1)), min_size=n, max_size=n), min_size=rows, max_size=rows)
    )
    low = draw(st.lists(st.sampled_from((-UNBOUNDED, -1, 0, 1)), min_size=rows, max_size=rows))
    width = draw(st.lists(st.sampled_from((0, 1, 2 * UNBOUNDED)), min_size=rows, max_size=rows))
    matrix = np.array(entries, np.int64).reshape(rows, n)
    row, column = np.nonzero(matrix)
    gains = draw(st.none() | st.lists(st.integers(-3, 3), min_size=n, max_size=n))
    return IntegerProgram(
        np.array(upper, np.int64),
        np.array(low, np.int64).reshape(rows),
        np.minimum(np.array(low, np.int64).reshape(rows) + np.array(width, np.int64).reshape(rows), UNBOUNDED),
        row.astype(np.int64),
        column.astype(np.int64),
        matrix[row, column],
        None if gains is None else np.array(gains, np.float64),
    )


def enumerated(program: IntegerProgram) -> float | None:
    """The most that any solution gains; None if there is none."""
    gain = np.zeros(program.columns) if program.gain is None else program.gain
    values = [
        float(gain @ np.array(x))
        for x in itertools.product(*(range(upper + 1) for upper in program.upper.tolist()))
        if program.holds(np.array(x, np.int64))
    ]
    return max(values, default=None)


@each_engine
@settings(max_examples=60, deadline=None)
@given(program=programs())
def test_small_programs(engine: Engine, program: IntegerProgram) -> None:
    """Every engine finds the optimum that enumeration finds, or that there is no solution."""
    best = enumerated(program)
    told: list[float] = []
    found = engine.load()(program, Limits(seed=1), None, lambda x, value, bound: told.append(value))
    if best is None:
        assert found.status is Status.INFEASIBLE
        return
    assert found.status is Status.OPTIMAL
    assert program.holds(found.columns)
    assert found.value == pytest.approx(best)
    assert found.bound == pytest.approx(best, abs=1e-6)
    assert all(value <= best + 1e-6 for value in told)


def market_split(size: int = 5) -> IntegerProgram:
    """Equations over 0/1 columns that nothing but long enumeration settles (Cornuéjols and Dawande, 1998)."""
    rng = np.random.default_rng(0)
    columns = 10 * (size - 1)
    matrix = rng.integers(1, 100, (size, columns))
    row, column = np.nonzero(matrix)
    half = matrix.sum(axis=1) // 2
    return IntegerProgram(
        np.ones(columns, np.int64), half, half, row.astype(np.int64), column.astype(np.int64), matrix[row, column]
    )


@each_engine
def test_time_limit(engine: Engine) -> None:
    """A search ends at its time limit without an answer."""
    before = time.perf_counter()
    assert engine.load()(market_split(), Limits(seconds=0.3)).status is Status.UNKNOWN
    assert time.perf_counter() - before < 3


@each_engine
def test_interruption(engine: Engine) -> None:
    """A search ends soon after somebody asks it to."""
    asked = threading.Event()
    threading.Timer(0.3, asked.set).start()
    before = time.perf_counter()
    assert engine.load()(market_split(), Limits(seconds=60, stopped=asked.is_set)).status is Status.UNKNOWN
    assert time.perf_counter() - before < 3


@each_engine
def test_an_exception_of_the_question_ends_the_search(engine: Engine) -> None:
    """What the caller's question raises (Ctrl-C without a handler) comes out, and the engine's thread ends."""

    def stopped() -> bool:
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        engine.load()(market_split(), Limits(seconds=60, stopped=stopped))
    assert threading.active_count() == before


@each_engine
def test_starts(engine: Engine) -> None:
    """A start that is no solution does no harm, whatever the engine makes of it."""
    program = IntegerProgram(
        np.ones(3, np.int64),
        np.array([2]),
        np.array([2]),
        np.zeros(3, np.int64),
        np.arange(3),
        np.ones(3, np.int64),
        np.array([1.0, 2.0, 3.0]),
    )
    for start in ((0, 0, 0), (1, 1, 0), (0, 1, 1)):
        found = engine.load()(program, Limits(), np.array(start, np.int64))
        assert found.columns.tolist() == [0, 1, 1]


@each_engine
def test_same_seed_same_solution(engine: Engine) -> None:
    """With one worker the same seed finds the same of many solutions."""
    rng = np.random.default_rng(3)
    row, column = np.nonzero(rng.random((30, 60)) < 0.2)
    most = np.full(30, 4)
    program = IntegerProgram(
        np.ones(60, np.int64),
        most // 2,
        most,
        row.astype(np.int64),
        column.astype(np.int64),
        np.ones(row.size, np.int64),
    )
    found = [engine.load()(program, Limits(seed=5)).columns.tolist() for _ in range(2)]
    assert found[0] == found[1]
    assert program.holds(np.array(found[0]))


def test_unknown_engine() -> None:
    """An engine that does not exist is named, with those that do."""
    message = "engine 'cplex' is not known; use one of cp-sat, highs, gurobi"
    with pytest.raises(InputError, match=re.escape(message) + "$"):
        get_engine("cplex")


def test_engine_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user is told how to install what is missing."""
    monkeypatch.setattr(Engine, "installed", False)
    message = "engine cp-sat: OR-tools CP-SAT is not installed; pip install 'dualcoll[exact]', or use the engine highs"
    with pytest.raises(InputError, match=re.escape(message) + "$"):
        get_engine("cp-sat")


def test_features() -> None:
    """Engines declare what they can do, HiGHS no second thread and no whole numbers."""
    assert ENGINES["cp-sat"].features == set(Feature)
    assert not ENGINES["highs"].features & {Feature.WORKERS, Feature.WHOLE}
    assert Feature.WORKERS in ENGINES["gurobi"].features


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    """The registry loads no solver."""
    code = (
        "import sys, dualcoll.lp.engines as e; e.get_engine('cp-sat');"
        "sys.exit(any(m in sys.modules for m in ('ortools', 'highspy')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
