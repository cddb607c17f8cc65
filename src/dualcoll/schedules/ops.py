"""What a send does at its destination, and with which arithmetic: one table of each, for readers, writers and docs."""

from __future__ import annotations

from enum import IntEnum, StrEnum

__all__ = ["MEANING", "Op", "Reduction"]


class Op(IntEnum):
    """What happens to the destination's slot when a send is delivered (docs/semantics.md §4)."""

    COPY = 0
    REDUCE = 1


MEANING = {
    Op.COPY: "replaces what the slot holds",
    Op.REDUCE: "merges into what the slot holds; the two sets of contributions must be disjoint",
}


class Reduction(StrEnum):
    """The arithmetic that merges contributions; ``avg`` is the sum over the number of contributions."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    AVG = "avg"
