"""What a send does at its destination, and with which arithmetic."""

from __future__ import annotations

from enum import IntEnum, StrEnum

__all__ = ["Op", "Reduction"]


class Op(IntEnum):
    """What a send does to the slot that it is delivered to (docs/semantics.md §4)."""

    COPY = 0  # replaces what the slot holds
    REDUCE = 1  # merges into what the slot holds; the two sets of contributions must be disjoint


class Reduction(StrEnum):
    """The arithmetic that merges contributions; ``avg`` is the sum over the number of contributions."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    AVG = "avg"
