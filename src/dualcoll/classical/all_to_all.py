"""AllToAll and AllToAllv: direct, pairwise, and along rails; gather and scatter, direct and binomial.

Every rank injects (P - 1) N / P bytes for others whatever the order; what differs is how many peers it has at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualcoll.classical.parts import equal_boxes, pair_sizes, shard_sizes
from dualcoll.collectives.contract import make_contract
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op

__all__ = [
    "binomial_gather",
    "binomial_scatter",
    "direct_all_to_all",
    "direct_gather",
    "direct_scatter",
    "pairwise_all_to_all",
    "rail_all_to_all",
]

Ints = NDArray[np.int64]


def direct_all_to_all(ranks: int, size: int, matrix: Ints | None = None) -> Schedule:
    """Everybody to everybody at once, one round.

    Args:
        ranks: P. size: bytes of a rank's buffer. matrix: int64 (P, P) bytes from each to each, instead (AllToAllv).
    """
    builder = _builder(ranks, size, matrix, "direct")
    src, dst, chunk = _moved(ranks)
    builder.extend(src, dst, chunk, Op.COPY, round=0)
    return builder.build()


def pairwise_all_to_all(ranks: int, size: int, matrix: Ints | None = None) -> Schedule:
    """P - 1 rounds; in round t every rank sends t places up and hears from t places down."""
    builder = _builder(ranks, size, matrix, "pairwise")
    src, dst, chunk = _moved(ranks)
    apart = (dst - src) % ranks
    order = np.argsort(apart, kind="stable")
    builder.extend(src[order], dst[order], chunk[order], Op.COPY, round=apart[order] - 1)
    return builder.build()


def rail_all_to_all(boxes: Sequence[Sequence[int]], size: int, matrix: Ints | None = None) -> Schedule:
    """First inside the box to the rank on the target's rail, then along the rail.

    Args:
        boxes: rank numbers of each box, all as many; the i-th rank of each box is on rail i.

    Raises:
        InputError: boxes of different size.
    """
    table = equal_boxes(boxes)
    ranks = table.size
    rail_of, box_of = np.empty(ranks, np.int64), np.empty(ranks, np.int64)
    rail_of[table], box_of[table] = np.arange(table.shape[1])[None, :], np.arange(table.shape[0])[:, None]
    builder = _builder(ranks, size, matrix, "rail")
    src, dst, chunk = _moved(ranks)
    via = table[box_of[src], rail_of[dst]]
    inside = np.flatnonzero(via != src)
    builder.extend(src[inside], via[inside], chunk[inside], Op.COPY, round=0)
    across = np.flatnonzero(via != dst)
    builder.extend(via[across], dst[across], chunk[across], Op.COPY, round=1)
    return builder.build()


def direct_gather(ranks: int, size: int, root: int = 0) -> Schedule:
    """Everybody sends to the root at once."""
    return _rooted("gather", ranks, size, root)


def direct_scatter(ranks: int, size: int, root: int = 0) -> Schedule:
    """The root sends to everybody at once."""
    return _rooted("scatter", ranks, size, root)


def binomial_gather(ranks: int, size: int, root: int = 0) -> Schedule:
    """Up a binomial tree: shards travel together, ⌈log2 P⌉ rounds."""
    return _binomial("gather", ranks, size, root)


def binomial_scatter(ranks: int, size: int, root: int = 0) -> Schedule:
    """Down a binomial tree: shards part on the way, ⌈log2 P⌉ rounds."""
    return _binomial("scatter", ranks, size, root)


def _builder(ranks: int, size: int, matrix: Ints | None, name: str) -> ScheduleBuilder:
    if matrix is None:
        return ScheduleBuilder(make_contract("alltoall", ranks), pair_sizes(size, ranks), name=name)
    return ScheduleBuilder(make_contract("alltoallv", ranks), matrix.ravel(), name=name)


def _moved(ranks: int) -> tuple[Ints, Ints, Ints]:
    """Source, target and chunk of everything that changes its rank."""
    chunk = np.arange(ranks * ranks)
    src, dst = np.divmod(chunk, ranks)
    moved = src != dst
    return src[moved], dst[moved], chunk[moved]


def _rooted(collective: str, ranks: int, size: int, root: int) -> Schedule:
    builder = ScheduleBuilder(make_contract(collective, ranks, root=root), shard_sizes(size, ranks, 1), name="direct")
    others = np.flatnonzero(np.arange(ranks) != root)
    at_root = np.full(others.size, root)
    src, dst = (others, at_root) if collective == "gather" else (at_root, others)
    if others.size:
        builder.extend(src, dst, others, Op.COPY, round=0)
    return builder.build()


def _binomial(collective: str, ranks: int, size: int, root: int) -> Schedule:
    builder = ScheduleBuilder(make_contract(collective, ranks, root=root), shard_sizes(size, ranks, 1), name="binomial")
    place = np.arange(1, ranks)  # of each shard, counted from the root
    bits = [1 << k for k in range((ranks - 1).bit_length())]
    for bit in bits if collective == "gather" else reversed(bits):
        moving = place[(place & bit) > 0]
        upper, lower = moving & ~(bit - 1), moving & ~(2 * bit - 1)
        ends = (upper, lower) if collective == "gather" else (lower, upper)
        src, dst = ((end + root) % ranks for end in ends)
        if moving.size:
            builder.extend(src, dst, (moving + root) % ranks, Op.COPY, round=builder.rounds)
    return builder.build()
