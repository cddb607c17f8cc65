"""Where the slots of a schedule stand in the buffers of an MSCCL++ plan."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.catalogue import title
from dualcoll.collectives.contract import ALL, NOWHERE, Contract
from dualcoll.errors import InputError
from dualcoll.schedules.ir import Schedule
from dualcoll.units import format_size

__all__ = ["Places", "places_of"]

COLLECTIVES = ("allreduce", "allgather", "reducescatter", "broadcast", "alltoall")
CLOSE = 0.005  # shares are rounded by so much at most, if they can be
FINEST = 64  # chunks of a plan for each of the schedule's

Ints = NDArray[np.int64]


@dataclass(slots=True)
class Places:
    """Buffers and places of slots; scratch space is given out as it is asked for.

    Attributes:
        in_place: whether input and output overlap. inputs, outputs: chunks of the buffers of a GPU.
        units: int64 (C,), the plan's chunks in each chunk of the schedule. begin, end: int64 (C,), the first of them in the
            input and in the output. excess: part by which rounding makes a chunk larger than it is, at most.
        scratch: chunks of each GPU's scratch buffer so far.
    """

    contract: Contract
    in_place: bool
    inputs: int
    outputs: int
    units: Ints
    begin: Ints
    end: Ints
    excess: float
    scratch: list[int]
    given: dict[tuple[int, int], int] = field(default_factory=dict)

    def of(self, rank: int, chunk: int) -> tuple[str, int]:
        """Buffer and first chunk of a slot."""
        contract, name = self.contract, self.contract.collective
        if self.in_place and contract.source[chunk] != NOWHERE:
            if name == "allgather":
                return "o", int(self.end[chunk])
            return "i", int(self.begin[chunk])
        if contract.source[chunk] in (ALL, rank):
            return "i", int(self.begin[chunk])
        if contract.target[chunk] in (ALL, rank):
            return "o", int(self.end[chunk])
        if (rank, chunk) not in self.given:
            self.given[rank, chunk] = self.spare(rank, chunk)
        return "s", self.given[rank, chunk]

    def spare(self, rank: int, chunk: int) -> int:
        """Scratch space for as much as the chunk."""
        first = self.scratch[rank]
        self.scratch[rank] += int(self.units[chunk])
        return first

    def kept(self) -> list[tuple[int, int]]:
        """What stays at a rank and has to go from its input to its output: (rank, chunk)."""
        contract = self.contract
        if self.in_place:
            return []
        stays = (contract.source >= 0) & (contract.source == contract.target) & (self.units > 0)
        return [(int(contract.source[chunk]), int(chunk)) for chunk in np.flatnonzero(stays)]


def places_of(schedule: Schedule) -> Places:
    """The layout that MSCCL++ has for the schedule's collective.

    Raises:
        InputError: a collective or contract that it has no buffers for, or shards that differ in size.
    """
    contract = schedule.contract
    name = contract.collective
    if name not in COLLECTIVES or len(contract.groups) > 1:
        what = "several groups" if len(contract.groups) > 1 else title(name)
        hint = f"it has {', '.join(title(known) for known in COLLECTIVES)}, among all ranks"
        raise InputError(f"MSCCL++ plans have no buffers for {what}", where="collective", hint=hint)
    origins = np.flatnonzero(contract.source != NOWHERE)
    results = np.flatnonzero(contract.target != NOWHERE)
    if not np.array_equal(contract.data[results], np.unique(contract.data[results])):
        raise InputError("MSCCL++ plans have one output, and the contract promises some data twice", where="contract")
    result_of = np.full(contract.chunks, -1)
    result_of[contract.data[results]] = results
    source, target = contract.source[origins], contract.target[result_of[origins]]
    shard, shards = {
        "allgather": (source, contract.ranks),
        "reducescatter": (target, contract.ranks),
        "alltoall": (source * contract.ranks + target, contract.ranks**2),
    }.get(name, (np.zeros(origins.size, np.int64), 1))
    shares, width, excess = _shares(schedule.chunk_size[origins], np.asarray(shard, np.int64), shards)
    units = np.zeros(contract.chunks, np.int64)
    units[origins] = shares
    units = units[contract.data]
    order = np.argsort(shard, kind="stable")
    offset = np.cumsum(units[origins][order]) - units[origins][order] - shard[order] * width
    within = np.empty(origins.size, np.int64)
    within[order] = offset
    first = {"reducescatter": target, "alltoall": target}.get(name, np.zeros(origins.size, np.int64)) * width
    last = {"allgather": source, "alltoall": source}.get(name, np.zeros(origins.size, np.int64)) * width
    begin, end = np.zeros(contract.chunks, np.int64), np.zeros(contract.chunks, np.int64)
    begin[origins] = first + within
    end[result_of[origins]] = last + within
    in_place = name != "alltoall" and np.array_equal(result_of[origins], origins)
    wide = contract.ranks * width
    inputs = wide if name in ("reducescatter", "alltoall") else width
    outputs = wide if name in ("allgather", "alltoall") else width
    return Places(contract, in_place, inputs, outputs, units, begin, end, excess, [0] * contract.ranks)


def _shares(sizes: Ints, shard: Ints, shards: int) -> tuple[Ints, int, float]:
    """How many equal chunks each chunk is, how many each shard is, and by how much a chunk exceeds its share at most.

    Where sizes have no common measure that is not tiny, they are rounded to few chunks.
    """
    room = np.bincount(shard, sizes, shards)
    if room.min() < (1 - CLOSE) * room.max() or not room.max():
        text = f"{format_size(int(room.min()))} to {format_size(int(room.max()))}"
        raise InputError(f"shards of {text}", where="contract", hint="MSCCL++ plans have shards of one size")
    measure = int(np.gcd.reduce(sizes))
    most = int(np.bincount(shard[sizes > 0], minlength=shards).max())
    width = int(room[0]) // measure
    if np.all(room == room[0]) and width <= FINEST * most:
        return sizes // measure, width, 0.0
    ideal = sizes / room[shard]
    best = (np.inf, 0, sizes)
    for quarters in range(4, 4 * FINEST + 1):
        width = -(-most * quarters // 4)
        shares = _rounded(ideal * width, shard, width)
        excess = float(np.max(shares[sizes > 0] / (ideal[sizes > 0] * width))) - 1
        if excess < best[0]:
            best = excess, width, shares
        if excess <= CLOSE:
            break
    excess, width, shares = best
    return shares, width, excess


def _rounded(ideal: NDArray[np.float64], shard: Ints, width: int) -> Ints:
    """Whole numbers near the ideal ones that add up to the width in each shard; none that is above 0 becomes 0."""
    shares = np.where(ideal > 0, np.maximum(np.floor(ideal), 1), 0).astype(np.int64)
    for which in range(int(shard.max()) + 1):
        mine = np.flatnonzero((shard == which) & (ideal > 0))
        while (short := width - int(shares[mine].sum())) != 0:
            over = (shares[mine] + (short > 0)) / ideal[mine]
            over[(short < 0) & (shares[mine] == 1)] = 0
            shares[mine[int(np.argmin(over) if short > 0 else np.argmax(over))]] += 1 if short > 0 else -1
    return shares
