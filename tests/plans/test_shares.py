"""Shares of the data in proportion to rates (docs/model.md §4)."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.plans.shares import split_bytes

RATES = st.lists(st.floats(0, 1e18), min_size=1, max_size=30).filter(any)


@given(st.integers(0, 2**63 - 1), RATES)
def test_shares_sum_and_stay_within_a_byte(size: int, rates: list[float]) -> None:
    """Shares are whole, sum to the size exactly, and each is less than one byte from its proportional part."""
    shares = split_bytes(size, rates)
    total = sum(map(Fraction, rates))
    assert sum(shares) == size
    assert all(abs(share - size * Fraction(rate) / total) < 1 for share, rate in zip(shares, rates, strict=True))


def test_largest_remainders_get_the_rest_and_ties_go_to_the_first() -> None:
    """What rounding down leaves goes to the largest remainders, equal ones in order."""
    assert split_bytes(10, [1.0, 1.0, 1.0]) == [4, 3, 3]
    assert split_bytes(10, [1.0, 2.0, 4.0]) == [1, 3, 6]
    assert split_bytes(2, [1.0, 1.0, 0.0, 1.0]) == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("size", "rates", "message"),
    [
        (-1, [1.0], "size -1 is negative"),
        (1, [1.0, math.nan], "rates[1]: rate nan is not a finite number >= 0"),
        (1, [-1.0], "rates[0]: rate -1.0 is not a finite number >= 0"),
        (1, [0.0, 0.0], "the rates sum to zero; at least one rate must be positive"),
        (1, [], "the rates sum to zero; at least one rate must be positive"),
    ],
)
def test_unusable_rates(size: int, rates: list[float], message: str) -> None:
    """Sizes and rates that define no shares are refused with the value."""
    with pytest.raises(InputError) as error:
        split_bytes(size, rates)
    assert str(error.value) == message
