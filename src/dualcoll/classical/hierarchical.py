"""Two hierarchies for boxes of ranks, which move different bytes, and the torus, which is one of them twice.

*Balanced*: reduce-scatter inside each box, all-reduce of the shards between corresponding ranks, all-gather inside. Each of
the G ranks of a box sends ``2 (Q - 1) / Q * N / G`` bytes to other boxes.

*Leader-based*: reduce to one leader per box, all-reduce among leaders, broadcast. A leader sends ``2 (Q - 1) / Q * N`` bytes
to other boxes and its fellows none, but everything inside its box goes through it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualcoll.classical.parts import equal_boxes, even_sizes
from dualcoll.classical.ring import rounds_of_ring
from dualcoll.collectives.contract import make_contract
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op

__all__ = ["balanced_all_reduce", "leader_all_reduce", "torus_all_reduce"]

Ints = NDArray[np.int64]


def balanced_all_reduce(boxes: Sequence[Sequence[int]], size: int) -> Schedule:
    """Rings inside the boxes and rings between them, one per place in the box.

    Args:
        boxes: rank numbers of each box, all as many (G); Q boxes. size: bytes of the message.

    Raises:
        InputError: boxes of different size.
    """
    table = equal_boxes(boxes)
    count = table.size
    builder = ScheduleBuilder(make_contract("allreduce", count, pieces=count), even_sizes(size, count), name="balanced")
    _balanced(builder, table, np.arange(count).reshape(table.shape[1], table.shape[0]))
    return builder.build()


def torus_all_reduce(rows: Sequence[Sequence[int]], size: int) -> Schedule:
    """Half of the data along rows first, half along columns first, at the same time.

    Args:
        rows: rank numbers of each row of a two-dimensional torus or mesh of rings.

    Raises:
        InputError: rows of different length.
    """
    table = equal_boxes(rows)
    count = table.size
    contract = make_contract("allreduce", count, pieces=2 * count)
    builder = ScheduleBuilder(contract, even_sizes(size, 2 * count), name="torus")
    _balanced(builder, table, np.arange(count).reshape(table.shape[1], table.shape[0]))
    _balanced(
        builder, table.T, count + np.arange(count).reshape(table.shape), first_round=0, channel=2 * table.size + 2
    )
    return builder.build()


def leader_all_reduce(boxes: Sequence[Sequence[int]], size: int) -> Schedule:
    """Everybody to the leader, a ring of leaders, everybody from the leader; the first rank of each box leads.

    Args:
        boxes: rank numbers of each box, of any sizes. size: bytes of the message.
    """
    leaders = np.array([box[0] for box in boxes], np.int64)
    others = np.array([rank for box in boxes for rank in box[1:]], np.int64)
    leader_of = np.array([box[0] for box in boxes for _ in box[1:]], np.int64)
    ranks, chunks = leaders.size + others.size, np.arange(leaders.size)
    contract = make_contract("allreduce", ranks, pieces=leaders.size)
    builder = ScheduleBuilder(contract, even_sizes(size, leaders.size), name="leader")
    src, chunk = np.repeat(others, chunks.size), np.tile(chunks, others.size)
    dst = np.repeat(leader_of, chunks.size)
    if others.size:
        builder.extend(src, dst, chunk, Op.REDUCE, channel=chunk + 1, round=0)
    for reduce in (True, False):
        rounds_of_ring(builder, [leaders], [chunks], reduce=reduce)
    if others.size:
        builder.extend(dst, src, chunk, Op.COPY, channel=chunks.size + 1 + chunk, round=builder.rounds)
    return builder.build()


def _balanced(builder: ScheduleBuilder, table: Ints, chunks: Ints, first_round: int = -1, channel: int = 0) -> None:
    """Channels: one per chunk inside, one per place between boxes, one per chunk inside again.

    ``table`` int64 (Q, G) of ranks; ``chunks`` int64 (G, Q): chunk q of the shard of place g.
    """
    boxes, places = table.shape
    start = builder.rounds if first_round < 0 else first_round
    start = _inside(builder, table, chunks, start, channel, reduce=True)
    for half in (True, False):
        for g in range(places):
            between = channel + boxes + g
            rounds_of_ring(builder, [table[:, g]], [chunks[g]], reduce=half, first_round=start, channel=between)
        start += boxes - 1
    _inside(builder, table, chunks, start, channel + boxes + places, reduce=False)


def _inside(builder: ScheduleBuilder, table: Ints, chunks: Ints, start: int, channel: int, *, reduce: bool) -> int:
    """One half inside every box; returns the next round."""
    for box in table:
        for q in range(table.shape[0]):
            rounds_of_ring(builder, [box], [chunks[:, q]], reduce=reduce, first_round=start, channel=channel + q)
    return start + int(table.shape[1]) - 1
