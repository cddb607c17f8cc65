"""Bruck's algorithms (Bruck, Ho, Kipnis, Upfal and Weathersby 1997): ⌈log2 P⌉ rounds for any number of ranks."""

from __future__ import annotations

import numpy as np

from dualcoll.classical.parts import pair_sizes, shard_sizes
from dualcoll.collectives.contract import make_contract
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op

__all__ = ["bruck_all_gather", "bruck_all_to_all"]


def bruck_all_gather(ranks: int, size: int) -> Schedule:
    """In round k every rank passes all it has 2^k places down, up to P shards in all."""
    builder = ScheduleBuilder(make_contract("allgather", ranks), shard_sizes(size, ranks, 1), name="bruck")
    have = 1
    while have < ranks:
        rank, ahead = np.meshgrid(np.arange(ranks), np.arange(min(have, ranks - have)), indexing="ij")
        src, chunk = rank.ravel(), ((rank + ahead) % ranks).ravel()
        builder.extend(src, (src - have) % ranks, chunk, Op.COPY, channel=builder.rounds, round=builder.rounds)
        have *= 2
    return builder.build()


def bruck_all_to_all(ranks: int, size: int) -> Schedule:
    """What has to go d places up moves by 2^k in round k if d has that bit: fewer messages, more bytes."""
    builder = ScheduleBuilder(make_contract("alltoall", ranks), pair_sizes(size, ranks), name="bruck")
    step = 1
    src, dst = np.divmod(np.arange(ranks * ranks), ranks)
    apart = (dst - src) % ranks
    while step < ranks:
        moving = np.flatnonzero(apart & step)
        here = (src + (apart & (step - 1))) % ranks
        builder.extend(
            here[moving], (here[moving] + step) % ranks, moving, Op.COPY, channel=builder.rounds, round=builder.rounds
        )
        step *= 2
    return builder.build()
