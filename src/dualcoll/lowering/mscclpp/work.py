"""What thread blocks of a plan have to do, before it is put into ops."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Act", "BlockKey", "Part"]

BlockKey = tuple[int, int]  # GPU, number of the thread block


class Part(StrEnum):
    """What is done for a send: at its source, at its destination, or within a rank."""

    PUT = "put"
    TAKE = "take"
    LOCAL = "local"


@dataclass(slots=True)
class Act:
    """One send's part of one thread block.

    Attributes:
        part: which. send: number in the schedule; -1 for what a rank keeps. rank: the GPU.
        block: the thread block that does it, which may change. other: the block at the send's other end.
        after: thread blocks that it waits for besides, and that wait for it: ``before``.
    """

    part: Part
    send: int
    rank: int
    block: BlockKey = (0, 0)
    other: BlockKey = (0, 0)
    after: list[BlockKey] = field(default_factory=list)
    before: list[BlockKey] = field(default_factory=list)
