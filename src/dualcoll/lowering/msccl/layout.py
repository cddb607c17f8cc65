"""Where a schedule's chunks stand in the buffers of an MSCCL program.

Chunks of a program are of one size, those of a schedule need not be: each is a whole number of them. The chunks of one shard
stand one after the other in order of their numbers, and shards in order of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.catalogue import title
from dualcoll.collectives.contract import ALL, NOWHERE, Contract
from dualcoll.errors import InputError
from dualcoll.lowering.msccl.program import Buffer
from dualcoll.lowering.msccl.targets import Target
from dualcoll.schedules.ir import Schedule

__all__ = ["Layout", "Place", "layout_of"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Place = tuple[Buffer, int]

ROOT = 0
MAX_CHUNKS = 2**15  # of a buffer: executors keep offsets in 16 bits
SLACK = 16  # bytes by which equal chunks may differ, since sizes are rounded to whole blocks of so many

# Which rank's number says the shard's place in the input and in the output; None where there is one shard.
_SHARDS: dict[str, tuple[str | None, str | None]] = {
    "allreduce": (None, None),
    "broadcast": (None, None),
    "reduce": (None, None),
    "allgather": (None, "source"),
    "reducescatter": ("target", None),
    "alltoall": ("target", "source"),
}


@dataclass(slots=True)
class Layout:
    """Places of slots. Those in scratch are given out by :meth:`take_scratch`.

    Attributes:
        contract: of the schedule. collective: canonical name. in_place: one buffer for input and output.
        count: int64 (C,), program chunks of each chunk. pieces: of each shard. total: nchunksperloop.
        before, after: int64 (C,), offset of each chunk in the input and in the output buffer; in place both are offsets in
            ``whole``, the one buffer.
        scratch: offset of each (rank, chunk) there. scratch_chunks: of each rank.
    """

    contract: Contract
    collective: str
    in_place: bool
    count: Ints
    pieces: int
    total: int
    before: Ints
    after: Ints
    whole: Buffer
    scratch: dict[tuple[int, int], int] = field(default_factory=dict)
    scratch_chunks: list[int] = field(default_factory=list)

    def begins_at(self, rank: int, chunk: int) -> bool:
        """Whether the slot holds something before the first step."""
        return int(self.contract.source[chunk]) in (ALL, rank)

    def ends_at(self, rank: int, chunk: int) -> bool:
        """Whether the slot is promised."""
        return int(self.contract.target[chunk]) in (ALL, rank)

    def start(self, chunk: int) -> Place:
        """Where a slot that holds something at first stands then."""
        return (self.whole if self.in_place else Buffer.INPUT), int(self.before[chunk])

    def is_scratch(self, rank: int, chunk: int) -> bool:
        """Whether what is written to the slot must stand in scratch."""
        if self.in_place:
            return int(self.contract.source[chunk]) == NOWHERE
        return not self.ends_at(rank, chunk)

    def home(self, rank: int, chunk: int) -> Place:
        """Where what is written to the slot stands."""
        if self.is_scratch(rank, chunk):
            return Buffer.SCRATCH, self.scratch[rank, chunk]
        return (self.whole if self.in_place else Buffer.OUTPUT), int(self.after[chunk])

    def take_scratch(self, written: set[tuple[int, int]]) -> None:
        """Give out scratch for all slots that are written and need some, in order of ranks and chunks."""
        self.scratch.clear()
        self.scratch_chunks = [0] * self.contract.ranks
        for rank, chunk in sorted(written):
            if self.is_scratch(rank, chunk):
                self.scratch[rank, chunk] = self.scratch_chunks[rank]
                self.scratch_chunks[rank] += int(self.count[chunk])

    def buffer_chunks(self, rank: int) -> tuple[int, int, int]:
        """Chunks of the input, output and scratch buffer of a rank; 0 for one that it does not have or need not name."""
        scratch = self.scratch_chunks[rank]
        if self.in_place:
            chunks = (self.total, 0) if self.whole is Buffer.INPUT else (0, self.total)
            return *chunks, scratch
        shards = _SHARDS[self.collective]
        has_input = self.collective != "broadcast" or rank == ROOT
        has_output = self.collective != "reduce" or rank == ROOT
        inputs = self.pieces if self.collective == "allgather" else self.total
        outputs = self.total if shards[1] or self.collective != "reducescatter" else self.pieces
        return inputs * has_input, outputs * has_output, scratch


def layout_of(schedule: Schedule, target: Target, in_place: bool | None) -> Layout:
    """The places of all slots.

    Args:
        schedule: whose chunks. target: the executor. in_place: None for in place where that can be.

    Raises:
        InputError: a collective that the format has no word for, shards of different size, chunk sizes that are no small
            multiples of one another, or a call in place where input would be overwritten before it is read.
    """
    contract = schedule.contract
    collective = _collective(contract)
    count = _counts(schedule, target)
    ends = _ends(contract)
    apart = bool(np.any((contract.source == NOWHERE) & (contract.target != NOWHERE)))
    if in_place is None:
        in_place = collective != "alltoall" and not apart
    if in_place and (apart or collective == "alltoall"):
        why = "AllToAll would overwrite what is yet to be sent" if not apart else "its output has slots of its own"
        raise InputError(f"in place: {why}", where="inplace", hint="write it out of place")
    offset, pieces = _offsets(collective, contract.ranks, contract.data, *ends, count)
    total = pieces * (contract.ranks if any(_SHARDS[collective]) else 1)
    if total > MAX_CHUNKS:
        hint = "use fewer chunks"
        raise InputError(f"the message has {total} chunks; executors count up to {MAX_CHUNKS}", hint=hint)
    rank_of = dict(zip(("source", "target"), ends, strict=True))
    first, second = (offset + (pieces * np.maximum(rank_of[who], 0) if who else 0) for who in _SHARDS[collective])
    whole = Buffer.OUTPUT if collective == "allgather" else Buffer.INPUT
    if in_place:
        first = second = second if collective == "allgather" else first
    return Layout(contract, collective, in_place, count, pieces, total, first, second, whole)


def _collective(contract: Contract) -> str:
    name = "alltoall" if contract.collective == "alltoallv" else contract.collective
    if len(contract.groups) != 1 or sorted(contract.groups[0]) != list(range(contract.ranks)):
        problem = f"{len(contract.groups)} groups; a file is one collective over all ranks"
        raise InputError(problem, where="contract", hint="lower each group's schedule by itself")
    if name not in _SHARDS:
        hint = f"files can say {', '.join(map(title, _SHARDS))}"
        raise InputError(f"MSCCL XML has no contract for {title(name)}", where="contract", hint=hint)
    if contract.root not in (None, ROOT):
        problem = (
            f"the root is rank {contract.root}; the format has no place for a root, and executors take rank {ROOT}"
        )
        raise InputError(problem, where="contract", hint="name the root first among the ranks")
    return name


def _counts(schedule: Schedule, target: Target) -> Ints:
    """Program chunks of each chunk, int64 (C,): the least whole numbers in the ratio of the sizes."""
    size = schedule.chunk_size
    if not size.size or size.min() == 0:
        where = f"chunk {int(np.argmin(size))}" if size.size else "schedule"
        raise InputError("it has no bytes", where=where, hint="take a larger message")
    least = int(size.min())
    for parts in range(1, target.count + 1):
        unit = least / parts
        count = np.rint(size / unit)
        unit = float(size.sum() / count.sum())
        if np.all(np.abs(size - count * unit) <= min(SLACK, unit / 16)):
            return count.astype(np.int64)
    problem = f"chunks of {least} to {int(size.max())} bytes are no multiples of one size up to {target.count} times"
    raise InputError(
        problem, where="chunk_size", hint="cut the plan into equal chunks (dualcoll.lowering.chunk_counts.equal_chunks)"
    )


def _ends(contract: Contract) -> tuple[Ints, Ints]:
    """Where each chunk's data begins and ends, int64 (C,)."""
    target = np.full(contract.chunks, NOWHERE, np.int64)
    promised = np.flatnonzero(contract.target != NOWHERE)
    target[contract.data[promised]] = contract.target[promised]
    return contract.origin().astype(np.int64), target[contract.data]


def _offsets(collective: str, ranks: int, data: Shorts, source: Ints, target: Ints, count: Ints) -> tuple[Ints, int]:
    """Offset of each chunk within its shard, int64 (C,), and the chunks of a shard."""
    own = np.flatnonzero(data == np.arange(data.size))
    by_source, by_target = (side in _SHARDS[collective] for side in ("source", "target"))
    shards = (ranks if by_source else 1) * (ranks if by_target else 1)
    shard = (source * by_source * (ranks if by_target else 1) + target * by_target)[own]
    size = np.bincount(shard, count[own], shards).astype(np.int64)
    if size.min() != size.max():
        problem = f"shards of {int(size.min())} to {int(size.max())} chunks; those of a file are equal"
        raise InputError(problem, where="contract", hint="use a collective with equal shards")
    pieces = int(size[0])
    offset = np.zeros(source.size, np.int64)
    by_shard = own[np.argsort(shard, kind="stable")]
    offset[by_shard] = (np.cumsum(count[by_shard]) - count[by_shard]) % pieces
    return offset[data], pieces
