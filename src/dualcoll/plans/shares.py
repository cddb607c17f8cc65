"""Shares of the data: whole bytes in proportion to rates (docs/model.md §4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from dualcoll.errors import InputError

__all__ = ["split_bytes"]


def split_bytes(size: int, rates: Sequence[float]) -> list[int]:
    """Divide ``size`` bytes in proportion to ``rates``, by largest remainder in exact arithmetic.

    Each share is less than one byte from its proportional part and all sum to ``size``. Of equal remainders the first
    comes first.

    Raises:
        InputError: a negative size, a rate that is negative or not finite, or rates that sum to zero.
    """
    if size < 0:
        raise InputError(f"size {size} is negative")
    for i, rate in enumerate(rates):
        if not (math.isfinite(rate) and rate >= 0):
            raise InputError(f"rate {rate!r} is not a finite number >= 0", where=f"rates[{i}]")
    exact = [Fraction(rate) for rate in rates]
    scale = max((rate.denominator for rate in exact), default=1)  # rates are dyadic: the largest denominator serves all
    weights = [rate.numerator * (scale // rate.denominator) for rate in exact]
    total = sum(weights)
    if total == 0:
        raise InputError("the rates sum to zero", hint="at least one rate must be positive")
    shares = [size * weight // total for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(size * weights[i] % total), i))
    for i in by_remainder[: size - sum(shares)]:
        shares[i] += 1
    return shares
