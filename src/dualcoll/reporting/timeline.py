"""A schedule rank by rank: what each sends, receives, reduces and owns, round by round or over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.contract import ALL, NOWHERE
from dualcoll.errors import InputError
from dualcoll.schedules.ir import NONE, Schedule, previous_on_channel
from dualcoll.schedules.ops import Op
from dualcoll.schedules.order import running_order
from dualcoll.simulation import Trace
from dualcoll.units import format_time

__all__ = ["Cell", "Received", "Sent", "Timeline", "steps_of", "timeline"]

Ints = NDArray[np.int64]

RANKS, COLUMNS = 32, 32  # shown where nobody says otherwise
BINS = 12  # of time
FEW_CHUNKS = 16  # up to which every slot is followed


@dataclass(frozen=True, slots=True)
class Sent:
    """A chunk that leaves for another rank (or, from a rank to itself, another slot)."""

    chunk: int
    to: int


@dataclass(frozen=True, slots=True)
class Received:
    """What is delivered to a slot.

    Attributes:
        chunk: the slot. source: the rank that sent it. op: what happened to the slot.
        holds: ranks whose contributions the slot holds after it.
    """

    chunk: int
    source: int
    op: Op
    holds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One rank in one column.

    Attributes:
        sent, received: in the order in which they happen.
        owned: chunks that the rank holds whole at the end of the column, ascending.
        held: how many contributions each slot holds then, (C,); empty where chunks are more than a few.
    """

    sent: tuple[Sent, ...]
    received: tuple[Received, ...]
    owned: tuple[int, ...]
    held: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Rows are ranks, columns are rounds, steps, or spans of time.

    Attributes:
        schedule: what is shown. ranks: the ranks shown, one row each.
        word: what a column is: round, step or span. columns: what to call each. all_columns: how many there are with those
            that are not shown.
        before: each row before the first column. cells: (rows, columns).
        needed: how many contributions make each chunk whole, (C,).
    """

    schedule: Schedule
    ranks: tuple[int, ...]
    word: str
    columns: tuple[str, ...]
    all_columns: int
    before: tuple[Cell, ...]
    cells: tuple[tuple[Cell, ...], ...]
    needed: tuple[int, ...]


def timeline(
    schedule: Schedule,
    trace: Trace | None = None,
    *,
    ranks: Sequence[int] | None = None,
    first: int = 0,
    columns: int | None = None,
) -> Timeline:
    """Follow a schedule that is valid.

    Args:
        schedule: the sends. trace: a run of it; then columns are equal spans of its time. Without, columns are rounds, or, if
            not every send has one, steps: a send is one step after the last that it waits for.
        ranks: rank numbers to show, the first 32 by default.
        first: the first column to show. columns: how many at most, 32 by default; of time, how many there are, 12 by default.

    Raises:
        InputError: a rank or column that there is not.
        CheckFailed: the schedule cannot run.
    """
    shown = tuple(range(min(schedule.ranks, RANKS)) if ranks is None else ranks)
    wrong = [rank for rank in shown if not 0 <= rank < schedule.ranks]
    if wrong:
        raise InputError(f"rank {wrong[0]} is not within 0 to {schedule.ranks - 1}", where="ranks")
    if columns is not None and columns < 1:
        raise InputError(f"{columns} columns", where="columns", hint="use 1 or more")
    order = running_order(schedule).astype(np.int64)
    if trace is None:
        word, sent_in = "round" if np.all(schedule.round != NONE) else "step", steps_of(schedule)
        received_in = sent_in
        names = [f"{word} {k}" for k in range(int(sent_in.max(initial=-1)) + 1)]
        order = order[np.argsort(sent_in[order], kind="stable")]
    else:
        word = "span"
        names, sent_in, received_in = _spans(trace, columns or BINS)
        order = order[np.argsort(trace.end[order], kind="stable")]
    if first and not 0 <= first < len(names):
        raise InputError(f"column {first} is not within 0 to {len(names) - 1}", where="first")
    walk = _Walk(schedule, shown)
    walk.deliver(order[received_in[order] < first])
    before = tuple(replace(cell, received=()) for cell in walk.cells())
    rows: list[list[Cell]] = [[] for _ in shown]
    last = min(first + (columns or COLUMNS), len(names))
    for k in range(first, last):
        walk.deliver(order[received_in[order] == k])
        walk.note_sent(np.flatnonzero(sent_in == k))
        for row, cell in zip(rows, walk.cells(), strict=True):
            row.append(cell)
    cells = tuple(map(tuple, rows))
    return Timeline(schedule, shown, word, tuple(names[first:last]), len(names), before, cells, tuple(walk.needed))


def _spans(trace: Trace, count: int) -> tuple[list[str], Ints, Ints]:
    """What the columns are called, and the columns where each send starts and is delivered, int64 (S,)."""
    edges = np.linspace(0, trace.finish, count + 1)
    starts = np.searchsorted(edges, trace.start, "right") - 1
    ends = np.searchsorted(edges, trace.end, "left") - 1
    names = [f"{format_time(a)} to {format_time(b)}" for a, b in pairwise(edges.tolist())]
    return names, np.clip(starts, 0, count - 1), np.clip(ends, 0, count - 1)


def steps_of(schedule: Schedule) -> Ints:
    """The column of each send, int64 (S,): its round, or, if one has none, one more than that of what it waits for."""
    if np.all(schedule.round != NONE):
        return schedule.round.astype(np.int64)
    previous = previous_on_channel(schedule).tolist()
    ptr, depends = schedule.depends_ptr.tolist(), schedule.depends.tolist()
    step = [0] * schedule.sends
    for send in running_order(schedule).tolist():
        waits = depends[ptr[send] : ptr[send + 1]]
        step[send] = 1 + max((step[other] for other in waits), default=-1)
        if previous[send] != NONE:
            step[send] = max(step[send], step[previous[send]])
    return np.array(step, np.int64)


class _Walk:
    """Carries out sends on sets of contributions, each set as bits of a number."""

    def __init__(self, schedule: Schedule, shown: Sequence[int]) -> None:
        contract = schedule.contract
        self.schedule, self.shown = schedule, shown
        self.members = [sum(1 << rank for rank in group) for group in contract.groups]
        self.source, self.group = contract.source.tolist(), contract.group.tolist()
        origin = contract.origin().tolist()
        self.whole = [
            self.members[group] if source == ALL else 1 << source
            for source, group in zip(origin, self.group, strict=True)
        ]
        self.needed = [contributions.bit_count() for contributions in self.whole]
        self.promised = (contract.target != NOWHERE).tolist()
        self.slots: dict[tuple[int, int], int] = {}  # those that have been written
        self.owned = {
            rank: {c for c in range(schedule.chunks) if self.promised[c] and self.holds(rank, c) == self.whole[c]}
            for rank in shown
        }
        self.sent: dict[int, list[Sent]] = {rank: [] for rank in shown}
        self.received: dict[int, list[Received]] = {rank: [] for rank in shown}

    def holds(self, rank: int, chunk: int) -> int:
        """Contributions that the slot holds now."""
        written = self.slots.get((rank, chunk))
        if written is not None:
            return written
        source = self.source[chunk]
        begins = source == rank or (source == ALL and self.members[self.group[chunk]] >> rank & 1)
        return 1 << rank if begins else 0

    def deliver(self, sends: Ints) -> None:
        """These are delivered, in this order."""
        columns = (getattr(self.schedule, name)[sends].tolist() for name in ("src", "dst", "chunk", "into", "op"))
        for src, dst, chunk, into, op in zip(*columns, strict=True):
            merged = self.holds(src, chunk) | (self.holds(dst, into) if op == Op.REDUCE else 0)
            self.slots[dst, into] = merged
            if dst in self.owned:
                self.received[dst].append(Received(into, src, Op(op), _ranks(merged)))
                (
                    self.owned[dst].add
                    if merged == self.whole[into] and self.promised[into]
                    else self.owned[dst].discard
                )(into)

    def note_sent(self, sends: Ints) -> None:
        """These have started."""
        columns = (getattr(self.schedule, name)[sends].tolist() for name in ("src", "dst", "chunk"))
        for src, dst, chunk in zip(*columns, strict=True):
            if src in self.sent:
                self.sent[src].append(Sent(chunk, dst))

    def cells(self) -> tuple[Cell, ...]:
        """The rows as they are now, with what has happened since the last call."""
        followed = range(self.schedule.chunks if self.schedule.chunks <= FEW_CHUNKS else 0)
        found = tuple(
            Cell(
                tuple(self.sent[rank]),
                tuple(self.received[rank]),
                tuple(sorted(self.owned[rank])),
                tuple(self.holds(rank, chunk).bit_count() for chunk in followed),
            )
            for rank in self.shown
        )
        for rank in self.shown:
            self.sent[rank], self.received[rank] = [], []
        return found


def _ranks(contributions: int) -> tuple[int, ...]:
    return tuple(rank for rank in range(contributions.bit_length()) if contributions >> rank & 1)
