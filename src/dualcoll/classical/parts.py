"""Sizes of chunks, and boxes as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError

__all__ = ["PIECES", "equal_boxes", "even_sizes", "good_pieces", "pair_sizes", "shard_sizes"]

Ints = NDArray[np.int64]

PIECES = 16  # that data is cut into to follow one another, where nobody says otherwise
IN_FLIGHT = 100_000  # bytes under way on a typical link: 2 us at 50 GB/s
MOST_SENDS = 2**20


def even_sizes(size: int, parts: int) -> Ints:
    """``size`` bytes in consecutive parts that differ by a byte at most, int64 (parts,)."""
    ends = size * np.arange(parts + 1, dtype=object) // parts
    return np.diff(ends).astype(np.int64)


def shard_sizes(size: int, shards: int, pieces: int) -> Ints:
    """The same for shards that are cut into pieces each, int64 (shards * pieces,)."""
    return np.concatenate([even_sizes(int(shard), pieces) for shard in even_sizes(size, shards)])


def pair_sizes(size: int, ranks: int) -> Ints:
    """What each rank has for each, int64 (ranks * ranks,): so that every rank sends, and gets, ``size`` bytes in all."""
    src, dst = np.divmod(np.arange(ranks * ranks), ranks)
    return np.asarray(even_sizes(size, ranks)[(dst - src) % ranks])


def equal_boxes(boxes: Sequence[Sequence[int]]) -> Ints:
    """Rank numbers of boxes, int64 (Q, G).

    Raises:
        InputError: boxes of different size.
    """
    sizes = sorted({len(box) for box in boxes})
    if len(sizes) != 1:
        raise InputError(f"boxes of {', '.join(map(str, sizes))} ranks", hint="it needs boxes of one size")
    return np.array(boxes, np.int64)


def good_pieces(size: int, hops: int, sends: int) -> int:
    """How many pieces serve a pipeline well: sqrt(hops times the time of all bytes over the latency of a hop).

    Args:
        size: bytes that go through it. hops: that the last piece makes before it is at its end. sends: that each piece takes.
    """
    best = round(math.sqrt(size / IN_FLIGHT * max(hops, 1)))
    return max(1, min(best, MOST_SENDS // max(sends, 1)))
