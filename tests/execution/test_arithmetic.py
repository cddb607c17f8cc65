"""Element types and reductions against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.execution.arithmetic import Element, answer, finish, merge, sample, spacing
from dualcoll.schedules.ops import Reduction

FLOATS = [element for element in Element if element.is_float]


@pytest.mark.parametrize("element", Element)
def test_sizes(element: Element) -> None:
    """An element has the bytes of its type."""
    assert element.bytes == {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int32": 4, "int64": 8}[element]


@given(st.floats(-(2.0**100), 2.0**100, width=32), st.floats(-(2.0**100), 2.0**100, width=32))
@settings(max_examples=200)
def test_bfloat16_rounds_to_nearest_even(one: float, other: float) -> None:
    """A sum is the multiple of the unit in the last place that is nearest, the even one of two."""
    column = np.array([one]), np.array([other])
    rounded = [merge(Element.BFLOAT16, Reduction.SUM, value, np.zeros(1)) for value in column]
    total = Fraction(float(np.float32(rounded[0][0] + rounded[1][0])))
    got = float(merge(Element.BFLOAT16, Reduction.SUM, *rounded)[0])
    if total:
        unit = Fraction(2) ** max(math.floor(math.log2(abs(total))) - 7, -133)
        near = round(total / unit) * unit  # Python rounds halves to even
        assert Fraction(got) == near
    else:
        assert got == 0


@given(st.sampled_from(FLOATS), st.sampled_from(Reduction), st.integers(1, 9), st.integers(0, 2**32))
@settings(max_examples=60)
def test_the_exact_answer_is_exact(element: Element, reduction: Reduction, ranks: int, seed: int) -> None:
    """The answer is that of fractions, to the last digits of a double."""
    data = sample(element, reduction, ranks, 3, np.random.default_rng(seed))
    found = answer(element, reduction, data).value
    for i in range(3):
        terms = [Fraction(float(x)) for x in data[:, i]]
        exact: Fraction = {
            Reduction.SUM: sum(terms, Fraction(0)),
            Reduction.AVG: sum(terms, Fraction(0)) / ranks,
            Reduction.PROD: math.prod(terms, start=Fraction(1)),
            Reduction.MAX: max(terms),
            Reduction.MIN: min(terms),
        }[reduction]
        assert abs(Fraction(float(found[i])) - exact) <= abs(exact) * Fraction(1, 2**52)


@given(st.sampled_from(FLOATS), st.sampled_from(Reduction), st.integers(1, 9), st.integers(0, 2**32))
@settings(max_examples=60)
def test_any_order_stays_within_the_slack(element: Element, reduction: Reduction, ranks: int, seed: int) -> None:
    """Merging in a random tree ends within the error bound of the answer."""
    rng = np.random.default_rng(seed)
    data = sample(element, reduction, ranks, 50, rng)
    wanted = answer(element, reduction, data)
    parts = list(data)
    while len(parts) > 1:
        one = parts.pop(int(rng.integers(len(parts))))
        other = parts.pop(int(rng.integers(len(parts))))
        parts.append(merge(element, reduction, one, other))
    result = finish(element, reduction, parts[0], ranks).astype(np.float64)
    assert np.all(np.abs(result - wanted.value) <= wanted.slack)


@pytest.mark.parametrize("element", [Element.INT32, Element.INT64])
@pytest.mark.parametrize("reduction", Reduction)
def test_integers_wrap_and_truncate(element: Element, reduction: Reduction) -> None:
    """Products wrap as the type does, averages go towards zero."""
    data = np.array([[7, -7, 2**30], [0, 0, 2**30], [1, -1, 2**30]], element.storage)
    bits = 8 * element.bytes
    product = (2**90 + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    total = (3 * 2**30 + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    expected = {
        Reduction.SUM: [8, -8, total],
        Reduction.PROD: [0, 0, product],
        Reduction.MAX: [7, 0, 2**30],
        Reduction.MIN: [0, -7, 2**30],
        Reduction.AVG: [2, -2, int(total / 3)],
    }[reduction]
    assert answer(element, reduction, data).value.tolist() == expected


@pytest.mark.parametrize(("element", "bits"), [("float16", 11), ("bfloat16", 8), ("float32", 24), ("float64", 53)])
def test_units_in_the_last_place(element: str, bits: int) -> None:
    """One unit in the last place of 1 and of 3, and the unit roundoff."""
    kind = Element(element)
    assert spacing(kind, np.array([1.0, 3.0, -3.0])).tolist() == [
        2.0 ** (1 - bits),
        2.0 ** (2 - bits),
        2.0 ** (2 - bits),
    ]
    assert kind.unit == pytest.approx(2.0**-bits, rel=1e-3)
