from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dualcoll.errors import InputError
from dualcoll.sharing.duplication import Duplication, duplicate, scale_for
from dualcoll.sharing.max_min import max_min, max_min_exact
from tests.sharing.instances import Instance, instances, progressive_filling

F = Fraction

RATES = st.lists(
    st.one_of(st.integers(1, 6).map(F), st.fractions(F(1, 20), 20, max_denominator=30)), min_size=1, max_size=6
)
SCALES = st.integers(1, 6)


def _sweep(rates: list[Fraction], scale: int, demands: list[int]) -> Fraction:
    """The largest breakpoint with enough copies for every demand, by trying them all."""
    points = {rate / count for rate in rates for count in range(1, scale * len(rates) + 1)}
    return max(
        x
        for x in points
        if all(
            sum(rate // x for rate, other in zip(rates, demands, strict=True) if other == demand)
            >= scale * demands.count(demand)
            for demand in demands
        )
    )


def test_twice_the_rate_is_twice_the_copies() -> None:
    """Section 5.5: rates of 100 and 50 are two copies and one, at 50 each."""
    found = duplicate([100.0, 50.0], 1)
    assert found == Duplication(1, 2, F(50), (2, 1))
    assert found.guaranteed == 100


@given(RATES, SCALES)
def test_the_rate_is_the_largest_that_leaves_enough_copies(rates: list[Fraction], scale: int) -> None:
    """Equation 12: X* against all breakpoints, and the copies are how often it goes into the rates."""
    found = duplicate(rates, scale)
    assert found.rate == _sweep(rates, scale, [0] * len(rates))
    assert found.copies == tuple(rate // found.rate for rate in rates)
    assert (found.scale, found.trees) == (scale, len(rates))


@given(RATES, SCALES)
def test_copies_are_within_a_tree_each_of_what_was_asked(rates: list[Fraction], scale: int) -> None:
    """Equation 13: from y k to y k + k - 1 copies."""
    wanted = scale * len(rates)
    assert wanted <= sum(duplicate(rates, scale).copies) <= wanted + len(rates) - 1


@given(RATES, SCALES)
def test_the_guarantee_is_within_its_factor(rates: list[Fraction], scale: int) -> None:
    """Equation 14: the rates' sum is at most 1 + (k - 1) / (y k) times y k X*."""
    wanted = scale * len(rates)
    assert sum(rates) <= duplicate(rates, scale).guaranteed * (1 + F(len(rates) - 1, wanted))


@given(RATES, SCALES, st.data())
def test_every_demand_keeps_its_rate_but_for_a_part_in_the_scale(
    rates: list[Fraction], scale: int, data: st.DataObject
) -> None:
    """Several demands: the largest X that leaves each enough copies, so that none loses more than its y-th part."""
    demands = data.draw(st.lists(st.integers(0, 2), min_size=len(rates), max_size=len(rates)))
    found = duplicate(rates, scale, demands)
    assert found.rate == _sweep(rates, scale, demands)
    for demand in set(demands):
        mine = [i for i, other in enumerate(demands) if other == demand]
        kept = found.rate * sum(found.copies[i] for i in mine)
        assert sum(rates[i] for i in mine) <= kept * (1 + F(1, scale))


def test_one_small_demand_is_not_left_without_copies() -> None:
    """Pooled, three copies at 100 would leave the demand of rate 1 with nothing; apart, each has at least its one."""
    assert duplicate([100, 100, 1], 1).copies == (2, 2, 0)
    found = duplicate([100, 100, 1], 1, [0, 0, 7])
    assert found == Duplication(1, 3, F(1), (100, 100, 1))


def test_doubles_that_tie_are_told_apart_from_those_that_nearly_do() -> None:
    """0.3 is not three times 0.1 in doubles: the copies are those of the exact values."""
    assert duplicate([0.3, 0.1], 2).copies == (3, 1)
    assert duplicate([0.3, 0.1], 2).rate == F(0.3) / 3
    assert duplicate([0.5, 0.25], 1).copies == (2, 1)


def test_a_tree_without_rate_gets_no_copies_and_does_not_count() -> None:
    """k counts the trees that carry something."""
    found = duplicate([2.0, 0.0, 1.0], 1)
    assert found == Duplication(1, 2, F(1), (2, 0, 1))
    assert found.guaranteed == 2


def test_time_does_not_grow_with_the_scale() -> None:
    """A thousand million copies of 2,000 trees are counted at once, not one by one."""
    rates = np.random.default_rng(0).random(2000).tolist()
    began = time.perf_counter()
    found = duplicate(rates, 1_000_000)
    assert time.perf_counter() - began < 5
    assert 2_000_000_000 <= sum(found.copies) <= 2_000_001_999


@given(st.floats(1e-6, 10), st.integers(1, 50))
def test_the_scale_is_the_least_that_is_accurate_enough(accuracy: float, trees: int) -> None:
    """Section 5.5: (k - 1) / (y k) is at most the accuracy, and with one less it is not."""
    scale = scale_for(accuracy, trees)
    decimal = F(repr(accuracy))
    assert F(trees - 1, scale * trees) <= decimal
    assert scale == 1 or F(trees - 1, (scale - 1) * trees) > decimal


def test_accuracy_is_the_decimal_number_that_is_written() -> None:
    """The double nearest to 0.3 is below it; 9/10 over 0.3 is nevertheless 3."""
    assert scale_for(0.3, 10) == 3
    assert scale_for(0.3, 10, demands=2) == 4
    assert scale_for(0.5, 1) == 1


@given(instances(5, 5), st.integers(1, 5), st.lists(st.fractions(F(1, 10), 1), min_size=5, max_size=5))
def test_max_min_gives_every_copy_the_common_rate(instance: Instance, scale: int, parts: list[Fraction]) -> None:
    """Lemma 5.5 on copies of a feasible packing: each gets X* or more, exactly, so together y k X* or more."""
    rates = [x * part for x, part in zip(progressive_filling(instance), parts, strict=False)]
    found = duplicate(rates, scale)
    copies = [on for on, count in zip(instance.sparse(), found.copies, strict=True) for _ in range(count)]
    clamps = max_min_exact(copies, instance.capacity)
    assert clamps[0].rate >= found.rate
    assert sum(clamp.rate * len(clamp.users) for clamp in clamps) >= found.guaranteed


@given(instances(6, 5), st.sampled_from([0.02, 0.1, 0.3, 0.7]), st.lists(st.floats(0, 1), min_size=6, max_size=6))
@settings(max_examples=60)
def test_end_to_end_nothing_is_lost_but_three_factors(instance: Instance, epsilon: float, lost: list[float]) -> None:
    """Theorem 5.7: of a packing within (1 - ε)² of the optimum, copies of accuracy ε deliver (1 - ε)³ of it."""
    loads, capacity = instance.arrays()
    dense = np.array(instance.loads, np.float64).T
    best: Any = linprog(-np.ones(loads.users), dense, capacity)
    optimum = -best.fun
    part = 1 - np.array(lost[: loads.users]) * (1 - (1 - epsilon) ** 2)
    rates = np.maximum(best.x, 0) * part * (1 - 1e-9)
    scale = scale_for(epsilon, int((rates > 0).sum()))
    found = duplicate(rates.tolist(), scale)
    counts = np.array(found.copies)
    shared = max_min(loads.scaled(counts), capacity)
    delivered = float((counts[counts > 0] * shared.rate[counts > 0]).sum())
    assert delivered >= float(found.guaranteed) * (1 - 1e-7)
    assert delivered >= (1 - epsilon) ** 3 * optimum * (1 - 1e-7)


@pytest.mark.parametrize(
    ("rates", "scale", "message"),
    [
        ([1.0], 0, "0 copies a tree are too few; ask for 1 or more"),
        ([1.0, -1.0], 1, "rates[1]: rate -1.0 is not a finite number >= 0"),
        ([float("nan")], 1, "rates[0]: rate nan is not a finite number >= 0"),
        ([0.0, 0.0], 1, "no tree carries anything; at least one rate must be positive"),
        ([], 1, "no tree carries anything; at least one rate must be positive"),
    ],
)
def test_rates_that_cannot_be_copied_are_refused(rates: list[float], scale: int, message: str) -> None:
    """What is wrong is named with its value."""
    with pytest.raises(InputError) as caught:
        duplicate(rates, scale)
    assert str(caught.value) == message


@pytest.mark.parametrize("accuracy", [0.0, -0.1, float("inf"), float("nan")])
def test_accuracy_is_positive(accuracy: float) -> None:
    """No number of copies is exact, and none is too coarse for infinity."""
    with pytest.raises(InputError) as caught:
        scale_for(accuracy, 3)
    assert str(caught.value) == f"accuracy {accuracy!r} is not a finite number > 0; 0.1 keeps 1/1.1 of the rate"
