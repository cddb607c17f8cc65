"""Rings and chains: every rank sends to its next neighbour only.

A ring all-reduce is a reduce-scatter and an all-gather of P - 1 rounds each, in which every rank sends (P - 1) N / P bytes
(Patarasuk and Yuan 2009). Several rings, other orders or the reverse direction carry parts of the data side by side, each on
a channel of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualcoll.classical.parts import even_sizes, shard_sizes
from dualcoll.collectives.contract import make_contract
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op

__all__ = [
    "chain_broadcast",
    "chain_reduce",
    "ring_all_gather",
    "ring_all_reduce",
    "ring_reduce_scatter",
    "rounds_of_ring",
]

Ints = NDArray[np.int64]


def ring_all_reduce(ranks: int, size: int, orders: Sequence[Sequence[int]] | None = None) -> Schedule:
    """Reduce-scatter, then all-gather, around each ring.

    Args:
        ranks: P. size: bytes of the message, divided evenly among rings and their P chunks.
        orders: the ranks in the order of each ring; one ring in rank order by default.
    """
    rings = _rings(ranks, orders)
    builder = ScheduleBuilder(
        make_contract("allreduce", ranks, pieces=len(rings) * ranks), even_sizes(size, len(rings) * ranks), name="ring"
    )
    shards = np.arange(ranks)
    for reduce in (True, False):
        rounds_of_ring(builder, rings, [k * ranks + shards for k in range(len(rings))], reduce=reduce)
    return builder.build()


def ring_reduce_scatter(ranks: int, size: int, orders: Sequence[Sequence[int]] | None = None) -> Schedule:
    """P - 1 rounds of reduction; the arguments are those of :func:`ring_all_reduce`."""
    return _half("reducescatter", ranks, size, orders)


def ring_all_gather(ranks: int, size: int, orders: Sequence[Sequence[int]] | None = None) -> Schedule:
    """P - 1 rounds of copies; the arguments are those of :func:`ring_all_reduce`."""
    return _half("allgather", ranks, size, orders)


def _half(collective: str, ranks: int, size: int, orders: Sequence[Sequence[int]] | None) -> Schedule:
    rings = _rings(ranks, orders)
    contract = make_contract(collective, ranks, pieces=len(rings))
    builder = ScheduleBuilder(contract, shard_sizes(size, ranks, len(rings)), name="ring")
    chunks = [ring * len(rings) + k for k, ring in enumerate(rings)]
    rounds_of_ring(builder, rings, chunks, reduce=collective == "reducescatter")
    return builder.build()


def rounds_of_ring(
    builder: ScheduleBuilder,
    rings: Sequence[Ints],
    chunks: Sequence[Ints],
    *,
    reduce: bool,
    first_round: int = -1,
    channel: int = 0,
) -> None:
    """Add the rounds of a reduce-scatter or an all-gather around rings.

    Args:
        rings: int64 (P,) each, ranks in ring order. chunks: int64 (P,) each, the chunk that ends (reduce-scatter) or begins
            (all-gather) at each place of the ring.
        first_round: -1 continues after the rounds so far. channel: of the first ring.
    """
    ranks = rings[0].size
    if ranks < 2:
        return
    start = builder.rounds if first_round < 0 else first_round
    step, place = np.divmod(np.arange((ranks - 1) * ranks), ranks)
    shard = (place - step - (1 if reduce else 0)) % ranks
    columns = [
        np.stack(
            [ring[place], ring[(place + 1) % ranks], chunk[shard], np.full(place.size, channel + k), start + step],
            axis=1,
        )
        for k, (ring, chunk) in enumerate(zip(rings, chunks, strict=True))
    ]
    # round by round, ring by ring
    table = np.stack(columns, axis=1).reshape(ranks - 1, ranks, len(rings), 5).transpose(0, 2, 1, 3).reshape(-1, 5)
    op = Op.REDUCE if reduce else Op.COPY
    builder.extend(table[:, 0], table[:, 1], table[:, 2], op, channel=table[:, 3], round=table[:, 4])


def chain_broadcast(
    ranks: int, size: int, root: int = 0, pieces: int = 16, order: Sequence[int] | None = None
) -> Schedule:
    """Pieces that follow one another down the ring from the root."""
    return _chain("broadcast", ranks, size, root, pieces, order)


def chain_reduce(
    ranks: int, size: int, root: int = 0, pieces: int = 16, order: Sequence[int] | None = None
) -> Schedule:
    """Pieces that are reduced on their way up the ring to the root."""
    return _chain("reduce", ranks, size, root, pieces, order)


def _chain(collective: str, ranks: int, size: int, root: int, pieces: int, order: Sequence[int] | None) -> Schedule:
    builder = ScheduleBuilder(
        make_contract(collective, ranks, pieces=pieces, root=root), even_sizes(size, pieces), name="chain"
    )
    (ring,) = _rings(ranks, None if order is None else [order])
    ring = np.roll(ring, -int(np.flatnonzero(ring == root)[0]))
    if ranks > 1:
        # in the order of rounds, so that pieces overlap
        hop, piece = np.divmod(np.arange((ranks - 1) * pieces), pieces)
        by_round = np.lexsort([piece, hop + piece])
        hop, piece = hop[by_round], piece[by_round]
        if collective == "broadcast":
            builder.extend(ring[hop], ring[hop + 1], piece, Op.COPY, round=hop + piece)
        else:
            builder.extend(ring[ranks - 1 - hop], ring[ranks - 2 - hop], piece, Op.REDUCE, round=hop + piece)
    return builder.build()


def _rings(ranks: int, orders: Sequence[Sequence[int]] | None) -> list[Ints]:
    return [np.array(order, np.int64) for order in (orders or [range(ranks)])]
