"""Element types and reductions: data to try, how two values merge, the exact answer, and how far off any order may be.

bfloat16 has no numpy type; its values are held as float32 and rounded to bfloat16 after every operation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualcoll.schedules.ops import Reduction

__all__ = ["Answer", "Element", "answer", "finish", "merge", "sample", "spacing"]

Values = NDArray[Any]
Floats = NDArray[np.float64]


class Element(StrEnum):
    """The type of the elements that are moved."""

    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    INT32 = "int32"
    INT64 = "int64"

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return 2 if self is Element.BFLOAT16 else self.storage.itemsize

    @property
    def storage(self) -> np.dtype[Any]:
        """The numpy type that holds it here."""
        return np.dtype("float32" if self is Element.BFLOAT16 else str(self))

    @property
    def is_float(self) -> bool:
        """Whether results depend on the order of reductions."""
        return self.storage.kind == "f"

    @property
    def unit(self) -> float:
        """Unit roundoff: the largest relative error of one operation; 0 for integers."""
        if self is Element.BFLOAT16:
            return 2.0**-8 * (1 + 2.0**-14)  # rounded to float32 first
        return float(np.finfo(self.storage).eps) / 2 if self.is_float else 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the result should be.

    Attributes:
        value: the exact answer, as float64 for floats (correct to within about one unit of float64), else the integers.
        slack: how far the result of any order of merging may be from it, by the error bound of floating-point sums and
            products; 0 where the answer must be met exactly.
    """

    value: Values
    slack: Floats


def sample(element: Element, reduction: Reduction, ranks: int, elements: int, rng: np.random.Generator) -> Values:
    """Data of each rank, (ranks, elements): floats of both signs whose sum and product stay in range; integers that only a
    product takes beyond the type's range, where it wraps.
    """
    if not element.is_float:
        limit = 2**30 // max(ranks, 1)
        return rng.integers(-limit, limit, (ranks, elements), endpoint=True).astype(element.storage)
    if reduction is Reduction.PROD:
        size = np.exp(rng.uniform(-1.0, 1.0, (ranks, elements)) / np.sqrt(max(ranks, 1)))
        return _rounded(element, size * rng.choice((-1.0, 1.0), (ranks, elements)))
    return _rounded(element, rng.uniform(-1.0, 1.0, (ranks, elements)))


def merge(element: Element, reduction: Reduction, held: Values, received: Values) -> Values:
    """One reduction, rounded as the type rounds."""
    if reduction is Reduction.MAX:
        return np.maximum(held, received)
    if reduction is Reduction.MIN:
        return np.minimum(held, received)
    return _rounded(element, held * received if reduction is Reduction.PROD else held + received)


def finish(element: Element, reduction: Reduction, value: Values, ranks: int) -> Values:
    """What is left to do when all contributions are in: ``avg`` divides; integers towards zero."""
    if reduction is not Reduction.AVG:
        return value
    if element.is_float:
        return _rounded(element, value / element.storage.type(ranks))
    return np.asarray(np.sign(value) * (np.abs(value) // ranks), value.dtype)


def answer(element: Element, reduction: Reduction, data: Values) -> Answer:
    """The exact result over all ranks' data (ranks, elements)."""
    ranks = len(data)
    exact = np.zeros(data.shape[1])
    if reduction in (Reduction.MAX, Reduction.MIN):
        best = data.max(axis=0) if reduction is Reduction.MAX else data.min(axis=0)
        return Answer(best.astype(np.float64) if element.is_float else best, exact)
    if not element.is_float:
        whole = (
            data.prod(axis=0, dtype=data.dtype) if reduction is Reduction.PROD else data.sum(axis=0, dtype=data.dtype)
        )
        return Answer(finish(element, reduction, whole, ranks), exact)
    wide = data.astype(np.float64)
    growth = np.expm1((ranks - 1 + (reduction is Reduction.AVG)) * np.log1p(element.unit))
    growth += 2.0**-52 if ranks > 1 else 0.0  # the exact answer is rounded, too
    if reduction is Reduction.PROD:
        value = _exact_product(wide)
        return Answer(value, growth * np.abs(value))
    value, scale = _exact_sum(wide), np.abs(wide).sum(axis=0)
    if reduction is Reduction.AVG:
        value, scale = value / ranks, scale / ranks
    return Answer(value, growth * scale)


def spacing(element: Element, value: Floats) -> Floats:
    """One unit in the last place of the type at these values, float64."""
    if element is Element.BFLOAT16:
        return np.spacing(np.abs(value).astype(np.float32)).astype(np.float64) * 2.0**16
    return np.asarray(np.spacing(np.abs(value).astype(element.storage)), np.float64)


def _rounded(element: Element, values: Values) -> Values:
    """The nearest values of the type, ties to even."""
    values = np.asarray(values, element.storage)
    if element is not Element.BFLOAT16:
        return values
    bits = values.view(np.uint32)
    bits = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return np.asarray((bits & np.uint32(0xFFFF0000)).view(np.float32))


def _exact_sum(data: Floats) -> Floats:
    """Sum over the rows with twice the digits (Dekker 1971), rounded once."""
    high, low = np.zeros(data.shape[1]), np.zeros(data.shape[1])
    for row in data:
        total = high + row
        part = total - high
        low += (high - (total - part)) + (row - part)
        high = total
    return high + low


def _exact_product(data: Floats) -> Floats:
    """Product over the rows with about twice the digits, rounded once."""
    high, low = np.ones(data.shape[1]), np.zeros(data.shape[1])
    for row in data:
        total = high * row
        (high_a, high_b), (row_a, row_b) = _halves(high), _halves(row)
        error = row_b * high_b - (((total - high_a * row_a) - high_b * row_a) - high_a * row_b)
        low = low * row + error
        high = total
    return high + low


def _halves(value: Floats) -> tuple[Floats, Floats]:
    """The value as a sum of two of at most 26 bits (Veltkamp)."""
    scaled = value * (2.0**27 + 1)
    upper = scaled - (scaled - value)
    return upper, value - upper
