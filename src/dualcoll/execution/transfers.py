"""A schedule's sends in an order for all ranks, and its chunks' sizes for a message of any size.

Shape letters: R ranks, C chunks, S sends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.catalogue import title
from dualcoll.collectives.contract import ALL, Contract
from dualcoll.errors import InputError
from dualcoll.kernels.waves import send_waves
from dualcoll.schedules.ir import NONE, Schedule, previous_on_channel
from dualcoll.schedules.ops import Op
from dualcoll.schedules.order import running_order

__all__ = ["Transfers", "chunk_elements", "transfers"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Transfers:
    """A schedule's sends in the order of all ranks, whatever the size of the message.

    Attributes:
        schedule: where they come from.
        order: int32 (S,), by wave, and within a wave by pair of ranks and place of the chunk.
        wave: int32 (S,), of each send, by its number.
        place: int64 (C,), chunks in the order of the message: shard by shard, pieces by number; other slots for the same data
            follow.
    """

    schedule: Schedule
    order: Shorts
    wave: Shorts
    place: Ints


def transfers(schedule: Schedule) -> Transfers:
    """Put the sends of a schedule in an order for all ranks. O(S log S); once per schedule.

    Raises:
        CheckFailed: there is none (§5, §6).
    """
    order = running_order(schedule)
    reads = schedule.src.astype(np.int64) * schedule.chunks + schedule.chunk
    writes = schedule.dst.astype(np.int64) * schedule.chunks + schedule.into
    earlier = previous_on_channel(schedule)
    beside = (earlier != NONE) & (schedule.round != NONE) & (schedule.round == schedule.round[earlier])
    used, slots = np.unique(np.concatenate([reads, writes]), return_inverse=True)
    slots = slots.astype(np.int64)
    wave = send_waves(
        order,
        slots[: schedule.sends],
        slots[schedule.sends :],
        schedule.op == Op.REDUCE,
        used.size,
        schedule.depends_ptr,
        schedule.depends,
        earlier,
        beside,
    )
    contract = schedule.contract
    own = contract.data == np.arange(schedule.chunks)
    place = np.lexsort([_targets(contract)[contract.data], contract.origin(), contract.group, ~own])
    position = np.empty(schedule.chunks, np.int64)
    position[place] = np.arange(schedule.chunks)
    rows = np.stack([position[schedule.chunk], schedule.op, schedule.dst, schedule.src, wave])
    return Transfers(schedule, order[np.lexsort(rows[:, order])], wave, place)


def chunk_elements(schedule: Schedule, elements: int | Ints) -> Ints:
    """How many elements each chunk has, where the message is of another size than the schedule's.

    Args:
        schedule: whose chunks' bytes say how a shard divides among them. Where all are empty, they are even.
        elements: of every shard: of the message (broadcast, reduce, all-reduce), of one rank's part (all-gather,
            reduce-scatter, gather, scatter), of what one rank has for another (all-to-all); or, int64 (R, R), of what each
            rank has for each.

    Returns:
        int64 (C,). Bounds between chunks are rounded; a chunk may get none.

    Raises:
        InputError: fewer than 0 elements, a matrix for what has none, or elements that no chunk carries.
    """
    contract = schedule.contract
    own = np.flatnonzero(contract.data == np.arange(schedule.chunks))
    ends = np.stack([contract.group[own], contract.source[own], _targets(contract)[own]], axis=1).astype(np.int64)
    shards, shard = np.unique(ends, axis=0, return_inverse=True)
    shard = shard.reshape(-1)
    totals = _shard_elements(shards, elements, schedule)
    counts = np.zeros(schedule.chunks, np.int64)
    order = np.argsort(shard, kind="stable")
    bounds = np.searchsorted(shard[order], np.arange(len(shards) + 1))
    for i, total in enumerate(totals.tolist()):
        pieces = own[order[bounds[i] : bounds[i + 1]]]
        counts[pieces] = _split(total, schedule.chunk_size[pieces])
    return np.asarray(counts[contract.data])


def _targets(contract: Contract) -> Shorts:
    """Where the data of each chunk ends, int32 (C,), by the chunk that it begins as."""
    target = contract.target.copy()
    ended = np.flatnonzero((contract.data != np.arange(contract.chunks)) & (contract.target >= ALL))
    target[contract.data[ended]] = contract.target[ended]  # an output apart from the input
    return target


def _shard_elements(shards: Ints, elements: int | Ints, schedule: Schedule) -> Ints:
    """Elements of each (group, source, target), int64 (n,)."""
    if isinstance(elements, int):
        if elements < 0:
            raise InputError(f"{elements} elements", hint="use 0 or more")
        return np.full(len(shards), elements)
    source, target = shards[:, 1], shards[:, 2]
    matrix = np.asarray(elements, np.int64)
    if schedule.contract.collective not in ("alltoall", "alltoallv"):
        raise InputError(f"a matrix of elements for {title(schedule.contract.collective)}", hint="give one number")
    if matrix.shape != (schedule.ranks, schedule.ranks) or np.any(matrix < 0):
        raise InputError(
            f"a matrix of shape {matrix.shape}, least entry {matrix.min(initial=0)}",
            hint=f"give what each of {schedule.ranks} ranks has for each, 0 or more",
        )
    carried = np.zeros(matrix.shape, bool)
    carried[source, target] = True
    missing = np.argwhere((matrix > 0) & ~carried)
    if missing.size:
        a, b = missing[0].tolist()
        problem = f"{matrix[a, b]} elements from rank {a} to rank {b}, between which the plan carries nothing"
        raise InputError(problem, hint="plan a matrix with all the pairs that have something to send")
    return np.asarray(matrix[source, target])


def _split(total: int, weights: Ints) -> Ints:
    """As many whole numbers as weights, in proportion to them, that add up to the total, int64 (n,)."""
    ends = np.cumsum(weights if weights.any() else np.ones_like(weights))
    whole: Ints = np.diff(np.rint(ends / ends[-1] * total).astype(np.int64), prepend=0)
    return whole
