"""Binary trees and the double binary tree (Sanders, Speck and Träff 2009), as NCCL numbers them.

In one in-order tree every odd rank is a leaf. Its mirror image has the even ones as leaves, so two trees that each carry half
of the data use every rank's links evenly. With an odd number of ranks the last one is a leaf of both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.classical.parts import even_sizes
from dualcoll.collectives.contract import make_contract
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op

__all__ = [
    "binary_parents",
    "depths",
    "double_parents",
    "double_tree_all_reduce",
    "tree_all_reduce",
    "tree_broadcast",
    "tree_reduce",
]

Ints = NDArray[np.int64]

PIECES = 16


def binary_parents(ranks: int) -> Ints:
    """The parent of each rank in the in-order binary tree with root 0, int64 (P,); -1 at the root."""
    up = np.full(ranks, -1, np.int64)
    for rank in range(1, ranks):
        bit = rank & -rank
        parent = (rank ^ bit) | (bit << 1)
        up[rank] = parent if parent < ranks else rank ^ bit
    return up


def double_parents(ranks: int) -> tuple[Ints, Ints]:
    """Parents in two trees of which no rank is an inner node of both, int64 (P,) each."""
    even = ranks - ranks % 2
    if even < 2:
        return binary_parents(ranks), binary_parents(ranks)
    first = binary_parents(even)
    second = np.where(first >= 0, even - 1 - first, -1)[::-1]
    if ranks > even:
        return np.append(first, 0), np.append(second, even - 1)
    return first, second


def depths(parents: Ints) -> Ints:
    """How far each rank is below the root, int64 (P,)."""
    depth = np.zeros(parents.size, np.int64)
    for rank in range(parents.size):
        above = parents[rank]
        while above >= 0:
            depth[rank] += 1
            above = parents[above]
    return depth


def tree_all_reduce(ranks: int, size: int, pieces: int = PIECES) -> Schedule:
    """Reduce up one binary tree and broadcast down, piece by piece."""
    return _all_reduce([binary_parents(ranks)], ranks, size, pieces, "tree")


def double_tree_all_reduce(ranks: int, size: int, pieces: int = PIECES) -> Schedule:
    """Half of the data on each of two complementary trees."""
    return _all_reduce(list(double_parents(ranks)), ranks, size, pieces, "double-tree")


def tree_broadcast(ranks: int, size: int, root: int = 0, pieces: int = PIECES) -> Schedule:
    """Down a binary tree of the ranks counted from the root."""
    builder = ScheduleBuilder(
        make_contract("broadcast", ranks, pieces=pieces, root=root), even_sizes(size, pieces), name="tree"
    )
    _add(builder, [_from_root(ranks, root)], pieces, up=False, down=True)
    return builder.build()


def tree_reduce(ranks: int, size: int, root: int = 0, pieces: int = PIECES) -> Schedule:
    """Up a binary tree of the ranks counted from the root."""
    builder = ScheduleBuilder(
        make_contract("reduce", ranks, pieces=pieces, root=root), even_sizes(size, pieces), name="tree"
    )
    _add(builder, [_from_root(ranks, root)], pieces, up=True, down=False)
    return builder.build()


def _all_reduce(trees: list[Ints], ranks: int, size: int, pieces: int, name: str) -> Schedule:
    count = pieces * len(trees)
    builder = ScheduleBuilder(make_contract("allreduce", ranks, pieces=count), even_sizes(size, count), name=name)
    _add(builder, trees, pieces, up=True, down=True)
    return builder.build()


def _from_root(ranks: int, root: int) -> Ints:
    parents = binary_parents(ranks)
    turned = np.full(ranks, -1, np.int64)
    child = np.flatnonzero(parents >= 0)
    turned[(child + root) % ranks] = (parents[child] + root) % ranks
    return turned


def _add(builder: ScheduleBuilder, trees: list[Ints], pieces: int, *, up: bool, down: bool) -> None:
    """Pieces 0, 1, … of tree 0, then of tree 1, as chunks; a piece is one round behind the one before it."""
    rows = []
    for number, parents in enumerate(trees):
        depth = depths(parents)
        most = int(depth.max(initial=0))
        child = np.flatnonzero(parents >= 0)
        for piece in range(pieces):
            chunk = number * pieces + piece
            if up:
                for rank in child:
                    rows.append((most - depth[rank] + piece, number, rank, parents[rank], chunk, Op.REDUCE))
            if down:
                for rank in child:
                    when = (most if up else 0) + depth[rank] - 1 + piece
                    rows.append((when, number, parents[rank], rank, chunk, Op.COPY))
    if rows:
        table = np.array(rows, np.int64)
        table = table[np.argsort(table[:, 0], kind="stable")]
        builder.extend(table[:, 2], table[:, 3], table[:, 4], table[:, 5], channel=table[:, 1], round=table[:, 0])
