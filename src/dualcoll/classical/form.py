"""What formulas of one algorithm say."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dualcoll.classical.place import Place
from dualcoll.errors import InputError

__all__ = ["ZERO", "Form", "even", "hierarchy"]

ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class Form:
    """Formulas of one algorithm.

    Attributes:
        rounds, sent, received, read, written, reduced, across, box: as in :class:`Costs`, boxes being several and of several
            ranks.
        serial: bytes one after the other: in each round the most that a rank sends or hears, over all rounds. None where
            pieces follow one another.
        pieces: of each ring or tree, where they do; ``rounds`` includes them.
    """

    rounds: int
    sent: Fraction
    received: Fraction
    read: Fraction
    written: Fraction
    reduced: Fraction = ZERO
    across: Fraction | None = None
    box: Fraction | None = None
    serial: Fraction | None = None
    pieces: int = 1


def even(
    rounds: int,
    sent: Fraction,
    reduced: Fraction = ZERO,
    *,
    across: Fraction | None = None,
    box: Fraction | None = None,
) -> Form:
    """Every rank sends and hears the same in every round, and reduces so many of the bytes that it hears."""
    return Form(rounds, sent, sent, sent + reduced, sent, reduced, across, box, serial=sent)


def hierarchy(place: Place) -> None:
    """Pass for several boxes of several ranks.

    Raises:
        InputError: the place has none.
    """
    if not place.is_hierarchy:
        raise InputError("it needs several boxes of several ranks")
