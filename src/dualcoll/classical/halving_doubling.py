"""Recursive halving and doubling (Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005).

Partners are a power of two apart, so log2 P rounds suffice with the bytes of a ring. Of other numbers of ranks those beyond
the largest power of two hand their data to a partner before and get the result after. Every round has a channel of its own,
since one rank talks to another in several.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.classical.parts import even_sizes, shard_sizes
from dualcoll.collectives.contract import make_contract
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op

__all__ = ["doubling_all_gather", "halving_doubling_all_reduce", "halving_reduce_scatter"]

Ints = NDArray[np.int64]


def halving_doubling_all_reduce(ranks: int, size: int) -> Schedule:
    """Reduce-scatter by halving, all-gather by doubling: 2 log2 P rounds, 2 (P - 1) N / P bytes sent per rank.

    Args:
        ranks: P. size: N, bytes of the message.
    """
    core = _core(ranks)
    builder = ScheduleBuilder(
        make_contract("allreduce", ranks, pieces=core), even_sizes(size, core), name="halving-doubling"
    )
    everything = np.arange(core)
    _to_core(builder, ranks, core, everything, Op.REDUCE)
    _halving(builder, core, everything[:, None])
    _doubling(builder, core, everything[:, None])
    _from_core(builder, ranks, core, np.tile(everything, (ranks - core, 1)))
    return builder.build()


def halving_reduce_scatter(ranks: int, size: int) -> Schedule:
    """log2 P rounds; every rank ends with its shard."""
    core = _core(ranks)
    builder = ScheduleBuilder(
        make_contract("reducescatter", ranks), shard_sizes(size, ranks, 1), name="halving-doubling"
    )
    _to_core(builder, ranks, core, np.arange(ranks), Op.REDUCE)
    _halving(builder, core, _owned(ranks, core))
    _from_core(builder, ranks, core, np.arange(core, ranks)[:, None])
    return builder.build()


def doubling_all_gather(ranks: int, size: int) -> Schedule:
    """log2 P rounds; every rank begins with its shard."""
    core = _core(ranks)
    builder = ScheduleBuilder(make_contract("allgather", ranks), shard_sizes(size, ranks, 1), name="halving-doubling")
    extra = np.arange(core, ranks)
    if extra.size:
        builder.extend(extra, extra - core, extra, Op.COPY, round=0)
    _doubling(builder, core, _owned(ranks, core))
    everything = np.arange(ranks)
    _from_core(builder, ranks, core, np.stack([everything[everything != e] for e in extra]) if extra.size else extra)
    return builder.build()


def _core(ranks: int) -> int:
    return 1 << (ranks.bit_length() - 1)


def _owned(ranks: int, core: int) -> Ints:
    """The shards that each rank of the core answers for: its own and that of the rank beyond it, -1 for none; (core, 2)."""
    beyond = np.arange(core) + core
    return np.stack([np.arange(core), np.where(beyond < ranks, beyond, -1)], axis=1)


def _halving(builder: ScheduleBuilder, core: int, owned: Ints) -> None:
    distance = core // 2
    while distance:
        _exchange(builder, core, owned, distance, halving=True)
        distance //= 2


def _doubling(builder: ScheduleBuilder, core: int, owned: Ints) -> None:
    distance = 1
    while distance < core:
        _exchange(builder, core, owned, distance, halving=False)
        distance *= 2


def _exchange(builder: ScheduleBuilder, core: int, owned: Ints, distance: int, *, halving: bool) -> None:
    """One round of the core: to the partner goes what it will answer for, or what has been gathered so far."""
    rank, place = np.divmod(np.arange(core * core), core)
    differ = rank ^ place
    mine = (differ & ~(2 * distance - 1)) == 0 if halving else differ < distance
    mine &= (differ & distance) > 0 if halving else True
    rank, place = rank[mine], place[mine]
    chunks = owned[place]
    there = chunks >= 0
    src = np.broadcast_to(rank[:, None], chunks.shape)[there]
    op = Op.REDUCE if halving else Op.COPY
    builder.extend(src, src ^ distance, chunks[there], op, channel=builder.rounds, round=builder.rounds)


def _to_core(builder: ScheduleBuilder, ranks: int, core: int, chunks: Ints, op: Op) -> None:
    extra, chunk = np.meshgrid(np.arange(core, ranks), chunks, indexing="ij")
    if extra.size:
        builder.extend(
            extra.ravel(), extra.ravel() - core, chunk.ravel(), op, channel=builder.rounds, round=builder.rounds
        )


def _from_core(builder: ScheduleBuilder, ranks: int, core: int, chunks: Ints) -> None:
    """``chunks`` int64 (ranks - core, k) for each rank beyond the core."""
    if ranks > core:
        extra = np.broadcast_to(np.arange(core, ranks)[:, None], chunks.shape).ravel()
        builder.extend(extra - core, extra, chunks.ravel(), Op.COPY, channel=builder.rounds, round=builder.rounds)
