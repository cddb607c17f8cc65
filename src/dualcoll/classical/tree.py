"""Binary trees and the double binary tree (Sanders, Speck and Träff 2009).

In one in-order tree every odd rank is a leaf. Its mirror image has the even ones as leaves, so two trees that each carry half
of the data use every rank's links evenly. These are NCCL's trees for an even number of ranks; with an odd number the last rank
is a leaf of both here. Among boxes of several ranks NCCL joins boxes by such trees and the ranks of a box by a chain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualcoll.classical.parts import PIECES, even_sizes
from dualcoll.collectives.contract import make_contract
from dualcoll.errors import InputError
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op

__all__ = [
    "binary_depth",
    "binary_parents",
    "box_parents",
    "depths",
    "double_parents",
    "double_tree_all_reduce",
    "tree_all_reduce",
    "tree_broadcast",
    "tree_reduce",
]

Ints = NDArray[np.int64]


def binary_parents(ranks: int) -> Ints:
    """The parent of each rank in the in-order binary tree with root 0, int64 (P,); -1 at the root."""
    up = np.full(ranks, -1, np.int64)
    for rank in range(1, ranks):
        bit = rank & -rank
        parent = (rank ^ bit) | (bit << 1)
        up[rank] = parent if parent < ranks else rank ^ bit
    return up


def binary_depth(ranks: int) -> int:
    """Depth of that tree: ceil(log2 P), the least for a root with one child and at most two below every other rank."""
    return (ranks - 1).bit_length()


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


def box_parents(boxes: Sequence[Sequence[int]], orders: Sequence[Sequence[int]]) -> list[Ints]:
    """Parents in trees of all ranks, int64 (P,) each: for each order a double binary tree of boxes with a chain inside each.

    A single box has one tree for each order, the chain.

    Args:
        boxes: rank numbers of each box, all as many.
        orders: places of a box; a chain runs down one of them, from the rank that is joined to other boxes.
    """
    table = np.array(boxes, np.int64)
    trees = []
    for order in orders:
        chain = table[:, list(order)]
        for above in double_parents(len(boxes))[: len(boxes)]:
            up = np.full(table.size, -1, np.int64)
            up[chain[:, 1:]] = chain[:, :-1]
            child = np.flatnonzero(above >= 0)
            up[chain[child, 0]] = chain[above[child], 0]
            trees.append(up)
    return trees


def depths(parents: Ints) -> Ints:
    """How far each rank is below the root, int64 (P,).

    Raises:
        InputError: the parents form a circle.
    """
    depth = np.zeros(parents.size, np.int64)
    above = parents
    while np.any(above >= 0):
        if depth.max() == parents.size:
            raise InputError("the parents form a circle", where="parents")
        depth += above >= 0
        above = np.where(above >= 0, parents[above], -1)
    return depth


def tree_all_reduce(ranks: int, size: int, pieces: int = PIECES, parents: Sequence[Ints] | None = None) -> Schedule:
    """Reduce up and broadcast down trees, piece by piece.

    Args:
        ranks: P. size: bytes of the message, divided evenly among trees and their pieces. pieces: of each tree.
        parents: of each rank in each tree, int64 (P,), -1 at the root; one binary tree by default.
    """
    trees = [binary_parents(ranks)] if parents is None else list(parents)
    count = pieces * len(trees)
    name = "tree" if len(trees) == 1 else "double-tree"
    builder = ScheduleBuilder(make_contract("allreduce", ranks, pieces=count), even_sizes(size, count), name=name)
    _add(builder, trees, pieces, up=True, down=True)
    return builder.build()


def double_tree_all_reduce(ranks: int, size: int, pieces: int = PIECES) -> Schedule:
    """Half of the data on each of two complementary trees."""
    return tree_all_reduce(ranks, size, pieces, double_parents(ranks))


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


def _from_root(ranks: int, root: int) -> Ints:
    parents = binary_parents(ranks)
    turned = np.full(ranks, -1, np.int64)
    child = np.flatnonzero(parents >= 0)
    turned[(child + root) % ranks] = (parents[child] + root) % ranks
    return turned


def _add(builder: ScheduleBuilder, trees: Sequence[Ints], pieces: int, *, up: bool, down: bool) -> None:
    """Pieces 0, 1, … of tree 0, then of tree 1, as chunks; a piece is one round behind the one before it."""
    rows = []
    for number, parents in enumerate(trees):
        depth = depths(parents)
        most = int(depth.max(initial=0))
        child = np.flatnonzero(parents >= 0)
        piece = np.repeat(np.arange(pieces), child.size)
        child = np.tile(child, pieces)
        same = np.ones_like(child)
        common = number * same, number * pieces + piece
        if up:
            rows.append([most - depth[child] + piece, child, parents[child], Op.REDUCE * same, *common])
        if down:
            first = most if up else 0
            rows.append([first + depth[child] - 1 + piece, parents[child], child, Op.COPY * same, *common])
    table = np.concatenate(rows, axis=1)
    when, src, dst, op, channel, chunk = table[:, np.argsort(table[0], kind="stable")]
    builder.extend(src, dst, chunk, op, channel=channel, round=when)
