"""What one rank does of a schedule: sends, receives and local steps on runs of elements, in an order in which no rank waits
for ever.

Every send belongs to a wave (:func:`~dualcoll.kernels.waves.send_waves`), the same at both ends. All ranks take their steps by
wave and within a wave in one common order. So a rank that posts what it receives before it waits for what stands later cannot
be part of a circle of ranks that wait. Switches, routes and channels vanish, a multicast is a send to each of its ranks, and
neighbouring chunks that leave for one peer in one wave are one message.

Shape letters: R ranks, C chunks, S sends, K steps of the rank, D dependencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.contract import ALL
from dualcoll.errors import InputError
from dualcoll.execution.transfers import Transfers, transfers
from dualcoll.kernels.hazards import slot_dependencies
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op

__all__ = ["RankProgram", "Step", "rank_program"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

TAGS = 2**15


class Step(IntEnum):
    """What a step does with the elements ``offset .. offset + count`` of the work buffer."""

    SEND = 0  # to the peer
    RECEIVE = 1  # from the peer, in their place
    REDUCE = 2  # received from the peer and added to them
    LOCAL_COPY = 3  # from ``read`` on, in their place
    LOCAL_REDUCE = 4  # from ``read`` on, added to them


@dataclass(frozen=True, slots=True, eq=False)
class RankProgram:
    """The steps of one rank, on a work buffer of ``elements`` elements.

    Attributes:
        rank, ranks: this rank and R.
        kind: int8 (K,), :class:`Step`.
        peer: int32 (K,), the other rank; this one for local steps.
        offset, count: int64 (K,), elements of the work buffer; counts are at least 1.
        read: int64 (K,), the first element that a local step reads; 0 for others.
        tag: int32 (K,), how many messages went from the one to the other before, modulo 2**15; 0 for local steps.
        wave: int32 (K,), ascending.
        depends_ptr, depends: CSR of earlier steps of this rank that must be complete before a step touches the work buffer,
            int64 (K+1,), int32 (D,). What is received to be added may arrive before.
        elements: of the work buffer.
        inputs: int64 (i, 3), runs (first element of the rank's input, of the work buffer, number) to begin with.
        outputs: int64 (o, 3), runs (first of the work buffer, of the rank's output, number) in the end.
    """

    rank: int
    ranks: int
    kind: NDArray[np.int8]
    peer: Shorts
    offset: Ints
    count: Ints
    read: Ints
    tag: Shorts
    wave: Shorts
    depends_ptr: Ints
    depends: Shorts
    elements: int
    inputs: Ints
    outputs: Ints

    @property
    def steps(self) -> int:
        """K."""
        return int(self.kind.size)

    @property
    def input_elements(self) -> int:
        """Elements that the rank begins with."""
        return int(self.inputs[:, 2].sum())

    @property
    def output_elements(self) -> int:
        """Elements that the rank ends with."""
        return int(self.outputs[:, 2].sum())


def rank_program(schedule: Schedule | Transfers, rank: int, counts: Ints | None = None) -> RankProgram:
    """The steps of one rank.

    Args:
        schedule: valid sends, or what :func:`transfers` made of them, for whoever asks more than once.
        rank: 0 .. R-1.
        counts: int64 (C,), elements of each chunk, of :func:`chunk_elements`; one a byte by default. The same at all ranks.

    Raises:
        InputError: no such rank. CheckFailed: the schedule cannot run.
    """
    ordered = schedule if isinstance(schedule, Transfers) else transfers(schedule)
    schedule = ordered.schedule
    if not 0 <= rank < schedule.ranks:
        raise InputError(f"rank {rank} of a schedule for {schedule.ranks}", hint=f"use 0 to {schedule.ranks - 1}")
    counts = schedule.chunk_size if counts is None else np.asarray(counts, np.int64)
    mine = ordered.order[(schedule.src[ordered.order] == rank) | (schedule.dst[ordered.order] == rank)]
    mine = mine[counts[schedule.chunk[mine]] > 0]
    start, elements, inputs, outputs = _layout(ordered, rank, counts, mine)
    first = _messages(ordered, mine, counts)
    at = mine[first]
    sent, reduces = schedule.src[at] == rank, schedule.op[at] == Op.REDUCE
    local = schedule.src[at] == schedule.dst[at]
    received = np.where(reduces, Step.REDUCE, Step.RECEIVE)
    kind = np.where(local, np.where(reduces, Step.LOCAL_REDUCE, Step.LOCAL_COPY), np.where(sent, Step.SEND, received))
    read, written = start[schedule.chunk[at]], start[schedule.into[at]]
    peer = np.where(sent, schedule.dst[at], schedule.src[at])
    ptr, depends = _dependencies(schedule, rank, mine, first)
    return RankProgram(
        rank=rank,
        ranks=schedule.ranks,
        kind=kind.astype(np.int8),
        peer=peer.astype(np.int32),
        offset=np.where(sent & ~local, read, written),
        count=np.add.reduceat(counts[schedule.chunk[mine]], first) if first.size else first,
        read=np.where(local, read, 0),
        tag=_tags(peer, sent, local),
        wave=ordered.wave[at],
        depends_ptr=ptr,
        depends=depends,
        elements=elements,
        inputs=inputs,
        outputs=outputs,
    )


def _layout(ordered: Transfers, rank: int, counts: Ints, mine: Shorts) -> tuple[Ints, int, Ints, Ints]:
    """The work buffer: where each chunk begins that the rank ever holds, int64 (C,); elements; runs of input and output."""
    schedule, contract = ordered.schedule, ordered.schedule.contract
    member = np.array([rank in group for group in contract.groups])[contract.group]
    held = (contract.source == rank) | ((contract.source == ALL) & member)
    wanted = (contract.target == rank) | ((contract.target == ALL) & member)
    used = held | wanted
    used[schedule.chunk[mine[schedule.src[mine] == rank]]] = True
    used[schedule.into[mine[schedule.dst[mine] == rank]]] = True
    chunks = ordered.place[used[ordered.place]]
    start = np.full(schedule.chunks, -1, np.int64)
    start[chunks] = np.cumsum(counts[chunks]) - counts[chunks]
    position = np.empty(schedule.chunks, np.int64)
    position[ordered.place] = np.arange(schedule.chunks)
    begun, ended = np.flatnonzero(held), np.flatnonzero(wanted)
    begun, ended = begun[np.argsort(position[begun])], ended[np.argsort(position[contract.data[ended]])]
    inputs, outputs = _runs(begun, start, counts), _runs(ended, start, counts)
    return start, int(counts[chunks].sum()), inputs, outputs[:, [1, 0, 2]]


def _runs(chunks: Ints, start: Ints, counts: Ints) -> Ints:
    """Runs (first element of these chunks one after the other, first of the work buffer, number), int64 (n, 3)."""
    chunks = chunks[counts[chunks] > 0]
    size = counts[chunks]
    outside, work = np.cumsum(size) - size, start[chunks]
    first = np.flatnonzero(np.append(True, work[1:] != work[:-1] + size[:-1])[: chunks.size])
    number = np.add.reduceat(size, first) if first.size else size
    return np.stack([outside[first], work[first], number], axis=1)


def _messages(ordered: Transfers, mine: Shorts, counts: Ints) -> Ints:
    """The first send of each message, by place in ``mine``: neighbours that leave for one peer in one wave are one."""
    schedule = ordered.schedule
    begin = np.empty(schedule.chunks, np.int64)
    begin[ordered.place] = np.cumsum(counts[ordered.place]) - counts[ordered.place]
    ahead, behind = mine[:-1], mine[1:]
    same = ordered.wave[ahead] == ordered.wave[behind]
    for column in (schedule.src, schedule.dst, schedule.op):
        same &= column[ahead] == column[behind]
    for slot in (schedule.chunk, schedule.into):
        same &= begin[slot[ahead]] + counts[slot[ahead]] == begin[slot[behind]]
    return np.flatnonzero(np.append(True, ~same)[: mine.size])


def _dependencies(schedule: Schedule, rank: int, mine: Shorts, first: Ints) -> tuple[Ints, Shorts]:
    """CSR of the earlier steps that each step follows at this rank: for its slots' sake, and the schedule's word."""
    sent, got = schedule.src[mine] == rank, schedule.dst[mine] == rank
    elsewhere = schedule.chunks + np.arange(mine.size)  # a slot of its own for what happens at the other rank
    extra_ptr = np.zeros(mine.size + 1, np.int64)
    number = np.full(schedule.sends, -1, np.int32)
    number[mine] = np.arange(mine.size)
    leaving = mine[sent]
    length = np.diff(schedule.depends_ptr)[leaving]
    begin = np.repeat(schedule.depends_ptr[leaving] - (np.cumsum(length) - length), length)
    extra = number[schedule.depends[begin + np.arange(begin.size)]]
    row = np.repeat(np.flatnonzero(sent), length)
    row, extra = row[extra >= 0], extra[extra >= 0]
    extra_ptr[1:] = np.cumsum(np.bincount(row, minlength=mine.size))
    ptr, found = slot_dependencies(
        np.where(sent, schedule.chunk[mine], elsewhere),
        np.where(got, schedule.into[mine], elsewhere + mine.size),
        (schedule.op[mine] == Op.REDUCE) & got,
        schedule.chunks + 2 * mine.size,
        extra_ptr,
        extra,
    )
    step = np.searchsorted(first, np.arange(mine.size), side="right") - 1
    pairs = np.unique(np.stack([np.repeat(step, np.diff(ptr)), step[found]], axis=1), axis=0)
    ends = np.searchsorted(pairs[:, 0], np.arange(first.size + 1))
    return ends.astype(np.int64), pairs[:, 1].astype(np.int32)


def _tags(peer: Ints, sent: NDArray[np.bool_], local: NDArray[np.bool_]) -> Shorts:
    """How many messages went the same way before each, modulo ``TAGS``; 0 for local steps."""
    way = np.where(local, -1, 2 * peer.astype(np.int64) + sent)
    order = np.argsort(way, kind="stable")
    begin = np.searchsorted(way[order], way)
    place = np.empty(way.size, np.int64)
    place[order] = np.arange(way.size)
    return np.where(local, 0, (place - begin) % TAGS).astype(np.int32)
