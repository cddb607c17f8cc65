"""Rings and chains: every rank sends to its next neighbour only.

A ring all-reduce is a reduce-scatter and an all-gather of P - 1 rounds each, in which every rank sends (P - 1) N / P bytes
(Patarasuk and Yuan 2009). Several rings, other orders or the reverse direction carry parts of the data side by side, each on
a channel of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualcoll.classical.parts import PIECES, even_sizes, shard_sizes
from dualcoll.collectives.contract import make_contract
from dualcoll.errors import InputError
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

    Raises:
        InputError: an order that is not all ranks once.
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
    ranks: int, size: int, root: int = 0, pieces: int = PIECES, orders: Sequence[Sequence[int]] | None = None
) -> Schedule:
    """Pieces that follow one another from the root around each ring.

    Args:
        ranks, size, orders: as for :func:`ring_all_reduce`. root: rank number. pieces: of each ring.
    """
    return _chain("broadcast", ranks, size, root, pieces, orders)


def chain_reduce(
    ranks: int, size: int, root: int = 0, pieces: int = PIECES, orders: Sequence[Sequence[int]] | None = None
) -> Schedule:
    """Pieces that are reduced on their way back to the root; the arguments are those of :func:`chain_broadcast`."""
    return _chain("reduce", ranks, size, root, pieces, orders)


def _chain(
    collective: str, ranks: int, size: int, root: int, pieces: int, orders: Sequence[Sequence[int]] | None
) -> Schedule:
    rings = _rings(ranks, orders)
    count = len(rings) * pieces
    builder = ScheduleBuilder(
        make_contract(collective, ranks, pieces=count, root=root), even_sizes(size, count), name="chain"
    )
    hop, ring, piece = (grid.ravel() for grid in np.indices((ranks - 1, len(rings), pieces)))
    by_round = np.argsort(hop + piece, kind="stable")  # so that pieces overlap
    hop, ring, piece = hop[by_round], ring[by_round], piece[by_round]
    table = np.stack([np.roll(order, -int(np.flatnonzero(order == root)[0])) for order in rings])
    if collective == "broadcast":
        op, src, dst = Op.COPY, table[ring, hop], table[ring, hop + 1]
    else:
        op, src, dst = Op.REDUCE, table[ring, ranks - 1 - hop], table[ring, ranks - 2 - hop]
    builder.extend(src, dst, ring * pieces + piece, op, channel=ring, round=hop + piece)
    return builder.build()


def _rings(ranks: int, orders: Sequence[Sequence[int]] | None) -> list[Ints]:
    """Each order as an array, int64 (P,)."""
    rings = [np.array(order, np.int64) for order in ([range(ranks)] if orders is None else orders)]
    for k, ring in enumerate(rings):
        if not np.array_equal(np.sort(ring), np.arange(ranks)):
            raise InputError(f"the order is not ranks 0 to {ranks - 1}, each once", where=f"ring {k}")
    if not rings:
        raise InputError("no ring is given", where="orders", hint="leave it out for one ring in rank order")
    return rings
