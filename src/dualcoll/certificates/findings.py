"""What a check found, in words."""

from __future__ import annotations

from fractions import Fraction

from dualcoll.errors import CheckFailed
from dualcoll.units import format_bandwidth

__all__ = ["Findings", "excess", "rate_text", "shown"]

SHOWN = 20  # a forged file can break a million claims in the same way


class Findings:
    """Collects one sentence per unsupported claim, the first ``SHOWN`` of them in full."""

    def __init__(self) -> None:
        self._sentences: list[str] = []
        self._unlisted = 0

    def add(self, sentence: str) -> None:
        """Record one unsupported claim."""
        if len(self._sentences) < SHOWN:
            self._sentences.append(sentence)
        else:
            self._unlisted += 1

    def __bool__(self) -> bool:
        return bool(self._sentences)

    def error(self) -> CheckFailed:
        """All of them as the exception to raise."""
        more = (f"and {self._unlisted} more",) if self._unlisted else ()
        return CheckFailed((*self._sentences, *more))


def shown(text: str) -> str:
    """A name for a message: as it is, unless it is empty, long or unprintable."""
    return text if 0 < len(text) <= 60 and text.isprintable() else f"{text[:57]!r}"


def rate_text(rate: Fraction) -> str:
    """The rate rounded for reading."""
    return format_bandwidth(_rounded(rate))


def excess(more: Fraction, less: Fraction) -> str:
    """Nothing where the two read differently; else by how much they differ, to go after them."""
    return "" if rate_text(more) != rate_text(less) else f", a difference of {rate_text(more - less)}"


def _rounded(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")
