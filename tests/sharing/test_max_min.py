from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.sharing.max_min import Clamp, Loads, max_min, max_min_exact
from tests.sharing.instances import Instance, instances, progressive_filling, rates_of, successive_programs

F = Fraction


@given(instances(4, 4))
@settings(max_examples=40)
def test_rates_are_those_of_successive_linear_programs(instance: Instance) -> None:
    """Theorem 5.2: the algorithm's rates are max-min fair by the definition."""
    rates = rates_of(max_min_exact(instance.sparse(), instance.capacity))
    assert np.array(rates, np.float64) == pytest.approx(successive_programs(instance), abs=1e-5)


@given(instances())
def test_rates_are_those_of_progressive_filling(instance: Instance) -> None:
    """Growing all rates in time and stopping those on full rows ends at the same rates, exactly."""
    assert rates_of(max_min_exact(instance.sparse(), instance.capacity)) == progressive_filling(instance)


@given(instances())
def test_every_user_is_held_by_a_full_row_where_nobody_has_more(instance: Instance) -> None:
    """Theorem 5.2, the optimality condition: whoever got more would take it from one that has no more."""
    rates = rates_of(max_min_exact(instance.sparse(), instance.capacity))
    used = instance.used(rates)
    assert all(load <= room for load, room in zip(used, instance.capacity, strict=True))
    for on, rate in zip(instance.loads, rates, strict=True):
        assert any(
            on[e]
            and used[e] == instance.capacity[e]
            and all(rates[j] <= rate for j, other in enumerate(instance.loads) if other[e])
            for e in instance.rows
        )


@given(instances(8, 8))
def test_fast_rates_are_the_exact_ones(instance: Instance) -> None:
    """Floating point gives the same rates to rounding, and each user's limit is a full row that it loads."""
    exact = np.array(rates_of(max_min_exact(instance.sparse(), instance.capacity)), np.float64)
    loads, capacity = instance.arrays()
    found = max_min(loads, capacity)
    assert found.rate == pytest.approx(exact, rel=1e-12)
    assert found.level[found.step].tolist() == found.rate.tolist()
    limit = found.limit()
    assert (np.array(instance.loads, np.float64)[np.arange(limit.size), limit] > 0).all()
    assert loads.total(found.rate)[limit] == pytest.approx(capacity[limit], rel=1e-12)


@given(instances())
def test_clamp_rates_never_fall(instance: Instance) -> None:
    """Lemma 5.4, exactly and in floating point."""
    levels = [clamp.rate for clamp in max_min_exact(instance.sparse(), instance.capacity)]
    assert levels == sorted(levels)
    assert (np.diff(max_min(*instance.arrays()).level) >= 0).all()


def test_sub_flow_rates_may_fall() -> None:
    """What Lemma 5.4 does not say: a tree clamped later, at 3, may put less on its row (half of 3) than an earlier one at 2."""
    loads = [{0: F(1)}, {1: F(1, 2)}]
    clamps = max_min_exact(loads, [F(2), F(3, 2)])
    assert clamps == (Clamp(F(2), 0, (0,)), Clamp(F(3), 1, (1,)))
    assert [clamp.rate * loads[clamp.users[0]][clamp.row] for clamp in clamps] == [F(2), F(3, 2)]


@given(instances(), st.lists(st.fractions(0, 1), min_size=5, max_size=5), st.integers(0, 4), st.fractions(0, 1))
def test_what_is_feasible_stays_so_if_one_takes_less(
    instance: Instance, parts: list[Fraction], i: int, kept: Fraction
) -> None:
    """Lemma 5.3: from any feasible rates, lowering one coordinate to any rate >= 0 overloads nothing."""
    feasible = [x * part for x, part in zip(progressive_filling(instance), parts, strict=False)]
    lowered = list(feasible)
    lowered[i % len(lowered)] *= kept
    used = instance.used(lowered)
    assert all(load <= room for load, room in zip(used, instance.capacity, strict=True))


@given(instances())
def test_everybody_gets_what_everybody_could_have(instance: Instance) -> None:
    """Lemma 5.5: the largest rate that all could have at once is a floor of max-min, and the first clamp."""
    total = instance.used([F(1)] * len(instance.loads))
    common = min(room / load for room, load in zip(instance.capacity, total, strict=True) if load)
    clamps = max_min_exact(instance.sparse(), instance.capacity)
    assert min(rates_of(clamps)) == clamps[0].rate == common


@given(instances(), st.lists(st.integers(0, 3), min_size=5, max_size=5).filter(any))
def test_scaled_loads_are_copies(instance: Instance, copies: list[int]) -> None:
    """A user counted several times gets the rate that each of so many equal users gets, and one counted never gets none."""
    loads, capacity = instance.arrays()
    counts = copies[: len(instance.loads)]
    owner = [i for i, count in enumerate(counts) for _ in range(count)]
    scaled = max_min(loads.scaled(np.array(counts)), capacity)
    if owner:
        apart = Instance(tuple(instance.loads[i] for i in owner), instance.capacity)
        assert scaled.rate[owner] == pytest.approx(max_min(*apart.arrays()).rate, rel=1e-12)
    absent = [i for i, count in enumerate(counts) if count == 0]
    assert (scaled.step[absent] == -1).all()
    assert (scaled.limit()[absent] == -1).all()


@given(instances())
def test_merged_users_load_what_their_parts_do(instance: Instance) -> None:
    """Two users made one put the sum of their loads on every row."""
    loads, _ = instance.arrays()
    owner = np.arange(loads.users) // 2
    merged = loads.merged(owner, int(owner[-1]) + 1)
    rate = np.arange(1.0, merged.users + 1)
    assert merged.total(rate) == pytest.approx(loads.total(rate[owner]))
    assert np.unique(merged.row_of() * merged.users + merged.user).size == merged.user.size


def test_rows_that_fill_at_once_are_taken_in_order() -> None:
    """A tie: both rows fill at 2, the user on both is clamped with the first, and the other's rate is the same."""
    clamps = max_min_exact([{0: F(1), 1: F(1)}, {1: F(1)}, {0: F(1, 3)}], [F(8, 3), F(4)])
    assert clamps == (Clamp(F(2), 0, (0, 2)), Clamp(F(2), 1, (1,)))


def test_whoever_loads_nothing_is_not_limited() -> None:
    """No row holds it: an infinite rate, no iteration, no limit."""
    assert max_min_exact([{}, {0: F(0)}], [F(1)]) == ()
    found = max_min(Loads.of([0], [0], [0], 1, 2), np.ones(1))
    assert found.rate.tolist() == [np.inf, np.inf]
    assert found.step.tolist() == found.limit().tolist() == [-1, -1]
    assert found.row.size == found.level.size == 0


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ((0, 0, -1.0), "entry 1: load -1.0 is not a finite number >= 0"),
        ((0, 0, np.nan), "entry 1: load nan is not a finite number >= 0"),
        ((2, 0, 1.0), "entry 1: there is no row 2"),
        ((0, 3, 1.0), "entry 1: there is no user 3"),
        ((-1, 0, 1.0), "entry 1: there is no row -1"),
    ],
)
def test_loads_that_are_none_are_refused(entry: tuple[int, int, float], message: str) -> None:
    """The first wrong entry is named with its value."""
    row, user, load = ([first, second] for first, second in zip((1, 2, 1.0), entry, strict=True))
    with pytest.raises(InputError) as caught:
        Loads.of(row, user, load, 2, 3)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("capacity", "message"),
    [
        ([1.0], "1 capacities for 2 rows"),
        ([1.0, -2.0], "row 1: capacity -2.0 is not a finite number >= 0"),
        ([np.inf, 1.0], "row 0: capacity inf is not a finite number >= 0"),
    ],
)
def test_capacities_that_are_none_are_refused(capacity: list[float], message: str) -> None:
    """One finite capacity >= 0 for each row."""
    with pytest.raises(InputError) as caught:
        max_min(Loads.of([0, 1], [0, 0], [1, 1], 2, 1), np.array(capacity))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("loads", "capacity", "message"),
    [
        ([{0: F(1)}, {0: F(-1, 2)}], [F(1)], "user 1: load -1/2 on row 0 is negative or on no row"),
        ([{1: F(1)}], [F(1)], "user 0: load 1 on row 1 is negative or on no row"),
        ([{0: F(1)}], [F(-3)], "capacity -3 is negative"),
    ],
)
def test_exact_input_is_checked_too(
    loads: list[Mapping[int, Fraction]], capacity: list[Fraction], message: str
) -> None:
    """The exact method names what it cannot use."""
    with pytest.raises(InputError) as caught:
        max_min_exact(loads, capacity)
    assert str(caught.value) == message
