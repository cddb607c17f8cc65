"""Sums of rates stay exact while the unit that they are counted in shrinks."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dualcoll.certificates.loads import Tally

RATE = st.floats(0, 1e18) | st.sampled_from([1.0, 0.5, 0.1, 5e-324, 1e308])


@given(st.lists(st.tuples(RATE, st.integers(0, 2)), max_size=20))
def test_sums_are_exact(rates: list[tuple[float, int]]) -> None:
    """Whatever the order in which finer rates arrive, every sum is that of the fractions."""
    tally = Tally(3, 3)
    wanted = [Fraction(0)] * 3
    for rate, place in rates:
        amount = tally.amount(rate)
        tally.on_link[place] += amount
        tally.of_demand[place] += amount
        tally.on_edge["g0", f"g{place}"] += amount
        wanted[place] += Fraction(rate)
    on_edge = [tally.on_edge["g0", f"g{place}"] for place in range(3)]
    for sums in (tally.on_link, tally.of_demand, on_edge):
        assert [Fraction(total, tally.scale) for total in sums] == wanted
