"""What a schedule moves, counted send by send."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op

__all__ = ["Costs", "Counts", "counts"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Costs:
    """What an algorithm takes, in bytes of the rank (or box) that has most of each.

    Attributes:
        rounds: from the first to the last.
        sent, received: bytes that a rank sends to others, hears from others.
        across: bytes that a rank sends to other boxes; None where no formula says.
        box: the same of a box as a whole.
        read, written: bytes of slots that a rank reads and writes: a send reads its chunk; a copy writes it; a reduction
            reads what is there, too, and writes the result.
        reduced: bytes that reductions at a rank put out.
    """

    rounds: int
    sent: Fraction
    received: Fraction
    across: Fraction | None
    box: Fraction | None
    read: Fraction
    written: Fraction
    reduced: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """The same of every rank, int64 (R,) each, and every box, int64 (Q,).

    Attributes:
        rounds, sent, received, across, read, written, reduced: as in :class:`Costs`.
        box_sent, box_received: bytes that leave and enter each box.
        peers: the most ranks that each sends to, or hears from, in one round; sends without a round are side by side.
        serial: bytes one after the other where ranks keep step: in each round the most that a rank sends, or hears, over all
            rounds.
    """

    rounds: int
    sent: Ints
    received: Ints
    across: Ints
    box_sent: Ints
    box_received: Ints
    read: Ints
    written: Ints
    reduced: Ints
    peers: Ints
    serial: int

    @property
    def busiest(self) -> Costs:
        """What the rank, or box, that has most of each has."""
        most = {
            name: Fraction(int(getattr(self, column).max(initial=0)))
            for name, column in (
                ("sent", "sent"),
                ("received", "received"),
                ("across", "across"),
                ("box", "box_sent"),
                ("read", "read"),
                ("written", "written"),
                ("reduced", "reduced"),
            )
        }
        return Costs(rounds=self.rounds, **most)


def counts(schedule: Schedule, boxes: Sequence[Sequence[int]] = ()) -> Counts:
    """Count a schedule, of whatever make.

    Args:
        schedule: the sends.
        boxes: rank numbers of each box, each rank once; all ranks in one by default.

    Raises:
        InputError: boxes that do not hold each rank once.
    """
    boxes = boxes or (range(schedule.ranks),)
    members = np.array([rank for box in boxes for rank in box], np.int64)
    if not np.array_equal(np.sort(members), np.arange(schedule.ranks)):
        raise InputError(f"they do not hold ranks 0 to {schedule.ranks - 1}, each once", where="boxes")
    box_of = np.empty(schedule.ranks, np.int64)
    box_of[members] = np.repeat(np.arange(len(boxes)), [len(box) for box in boxes])
    src, dst, size = schedule.src, schedule.dst, schedule.send_size
    moved, reduces = src != dst, schedule.op == Op.REDUCE
    crosses = box_of[src] != box_of[dst]

    def total(at: NDArray[np.integer], which: NDArray[np.bool_], count: int = schedule.ranks) -> Ints:
        return np.bincount(at[which], size[which], count).astype(np.int64)

    every = np.ones(schedule.sends, bool)
    return Counts(
        rounds=schedule.rounds,
        sent=total(src, moved),
        received=total(dst, moved),
        across=total(src, crosses),
        box_sent=total(box_of[src], crosses, len(boxes)),
        box_received=total(box_of[dst], crosses, len(boxes)),
        read=total(src, every) + total(dst, reduces),
        written=total(dst, every),
        reduced=total(dst, reduces),
        peers=np.maximum(_peers(schedule, src, dst), _peers(schedule, dst, src)),
        serial=_serial(schedule),
    )


def _serial(schedule: Schedule) -> int:
    moved = schedule.src != schedule.dst
    when, size = schedule.round[moved].astype(np.int64) + 1, schedule.send_size[moved]
    most = np.zeros(schedule.rounds + 1)
    for end in (schedule.src[moved], schedule.dst[moved]):
        spots, spot = np.unique(when * schedule.ranks + end, return_inverse=True)
        np.maximum.at(most, spots // schedule.ranks, np.bincount(spot, size, spots.size))
    return int(most.sum())


def _peers(schedule: Schedule, rank: NDArray[np.int32], other: NDArray[np.int32]) -> Ints:
    """The most others of each rank in one round, int64 (R,)."""
    moved = rank != other
    when, near, far = (column[moved].astype(np.int64) for column in (schedule.round, rank, other))
    pairs = np.unique(((when + 1) * schedule.ranks + near) * schedule.ranks + far) // schedule.ranks
    spots, peers = np.unique(pairs, return_counts=True)
    most = np.zeros(schedule.ranks, np.int64)
    np.maximum.at(most, spots % schedule.ranks, peers)
    return most
