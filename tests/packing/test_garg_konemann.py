"""The paper's algorithm keeps its two promises: (1-ε)² of the optimum, within m ⌈(1/ε) log_{1+ε} m⌉ oracle calls."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualcoll._api import check, plan
from dualcoll.errors import InputError
from dualcoll.packing.garg_konemann import epsilon_for, garg_konemann, iteration_limit
from dualcoll.packing.pool import Packing
from dualcoll.packing.prices import PriceLoop
from dualcoll.packing.problem import PackingProblem
from dualcoll.progress import Gap, Meter, Outcome, Seconds
from dualcoll.topology.catalog import catalog
from tests.packing.exact import FABRIC_KINDS, random_case, random_optimum
from tests.packing.problems import allreduce_problem, loads

EPSILON = {0: 0.5, 1: 0.3, 2: 0.2, 3: 0.1}


def _congestion(problem: PackingProblem, packing: Packing) -> float:
    total = sum(
        rate * problem.fabric.row_loads(loads(column, problem.fabric.links))
        for rate, column in zip(packing.rates, packing.columns, strict=True)
    )
    return float((total / problem.fabric.capacity).max())


@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(30))
def test_scaled_packing_is_feasible_and_near_the_optimum_in_time(seed: int, kind: str) -> None:
    """On 210 random fabrics, by the a-priori scaling alone, against the optimum by flows."""
    epsilon = EPSILON[seed % 4]
    topology = random_case(kind, seed)
    problem = allreduce_problem(topology, topology.ranks)
    packing, outcome, calls = garg_konemann(problem, epsilon, Meter(Gap(0.0)))
    rows = len(topology.links) + len(topology.shared)
    optimum = random_optimum(kind, seed)
    assert outcome is Outcome.GAP
    assert _congestion(problem, packing) <= 1 + 1e-9
    assert (1 - epsilon) ** 2 * optimum * (1 - 1e-9) <= packing.value <= optimum * (1 + 1e-9)
    assert packing.bound >= optimum * (1 - 1e-9)
    assert calls <= iteration_limit(rows, epsilon) == rows * math.ceil(math.log(rows, 1 + epsilon) / epsilon)


@pytest.mark.parametrize("gap", [0.1, 0.3])
def test_a_plan_by_it_has_the_gap_asked_for(gap: float) -> None:
    """ε follows from the gap, the outcome says gap, and the exact proof agrees."""
    made = plan(catalog("dgx-1v"), stop=Gap(gap), method="garg-konemann")
    assert made.outcome == "gap"
    assert check(made).gap <= made.gap <= gap
    assert made.method == "garg-konemann"


def test_epsilon_is_what_the_gap_needs() -> None:
    """(1-ε)² = 1 - gap."""
    assert (1 - epsilon_for(0.01)) ** 2 == pytest.approx(0.99)


def test_a_gap_out_of_reach_is_refused() -> None:
    """The exact optimum would take billions of oracle calls: an error with the way out, not a wrong outcome."""
    with pytest.raises(InputError) as caught:
        plan(catalog("ring:4"), method="garg-konemann")
    assert str(caught.value) == (
        "a gap of 0 % is out of reach for garg-konemann; ask for 0.2 % or more, or use the method auto"
    )


def test_prices_of_many_rows_and_a_small_epsilon_do_not_vanish() -> None:
    """γ is about 1e-362 here, below every float: the logarithm holds it and the loop goes on."""
    topology = catalog("torus:32x33")
    problem = allreduce_problem(topology, topology.ranks)
    epsilon, rows = 0.01, float(problem.weight.sum())
    assert rows == 4224
    log_gamma = math.log1p(epsilon) - (math.log1p(epsilon) + math.log(rows)) / epsilon
    assert log_gamma / math.log(10) < -362
    loop = PriceLoop(problem, epsilon, log_gamma - np.log(problem.capacity))
    assert loop.log_worth == pytest.approx(log_gamma + math.log(rows))
    for _ in range(5):
        loop.step()
    assert -830 < loop.log_worth < -820
    assert 0 < loop.value <= loop.bound < np.inf
    assert (loop.prices > 0).all()


def test_limits_give_the_rounds_so_far() -> None:
    """A time limit or an interrupt ends it after one round with a packing that fits and a bound."""
    topology = catalog("dgx-1v")
    problem = allreduce_problem(topology, topology.ranks)
    hurried = Meter(Seconds(1e-9))
    stopped = Meter(Gap(0.0))
    stopped.interrupt()
    for meter, expected in ((hurried, Outcome.TIME), (stopped, Outcome.INTERRUPTED)):
        packing, outcome, calls = garg_konemann(problem, 0.01, meter)
        assert outcome is expected
        assert calls == 1
        assert _congestion(problem, packing) == pytest.approx(1.0)
        assert 0 < packing.value <= packing.bound
