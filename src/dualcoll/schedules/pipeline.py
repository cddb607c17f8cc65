"""From a plan to a schedule: each tree's share is cut into pieces that follow one another through the tree.

Pieces overlap: while one is broadcast the next is reduced. Every tree has a channel of its own.

Nothing below a schedule knows rates. Where pieces are many, every tree has the same number of them, which makes their sizes
proportional to the rates: channels that take turns on a link then share it as the plan says. Where pieces are few, they are of
one size, so that the largest trees are as deep in pieces as possible, and another means is at hand: the pieces of all trees are
put in one order, each at its due time if all trees keep their rates, and a rank takes up a new piece only once it has got the
one that is ``window`` places earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.cutting import cut_contract
from dualcoll.collectives.workload import Demand, Workload
from dualcoll.errors import InputError
from dualcoll.kernels.trees import root_distances
from dualcoll.plans.model import Phase, Plan, Tree
from dualcoll.plans.shares import split_bytes
from dualcoll.routing.model import RoutingKind
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Routes, Schedule
from dualcoll.schedules.ops import Op

__all__ = ["ALIGNMENT", "pipelined", "resized"]

Ints = NDArray[np.int64]

ALIGNMENT = 16  # bytes; pieces are multiples of it, but for the last of a tree
MAX_CHUNKS = 2**22
MANY_PIECES = 32  # of each tree


def pipelined(
    plan: Plan, *, chunks: int | Sequence[int] = 64, window: int | None = None, size: int | None = None
) -> Schedule:
    """The plan as sends.

    Args:
        plan: its trees, rates and routes.
        chunks: about how many pieces the data is cut into, all trees together; every tree has at least one. Or how many each
            tree is cut into.
        window: pieces under way at once, all trees together; None for as many as there are.
        size: bytes of the message, if not the plan's. Only for groups whose messages have one size.

    Raises:
        InputError: fewer than one chunk, more than 2**22, not a number for each tree, an empty window, or a size that the
            workload cannot have.
    """
    if window is not None and window < 1:
        raise InputError(f"a window of {window} pieces", hint="use 1 or more")
    least, most = (chunks, chunks) if isinstance(chunks, int) else (min(chunks, default=1), sum(chunks))
    if not 1 <= least <= most <= MAX_CHUNKS:
        raise InputError(f"{least if least < 1 else most} chunks", hint=f"use 1 to {MAX_CHUNKS}")
    if not isinstance(chunks, int) and len(chunks) != len(plan.trees):
        raise InputError(f"{len(chunks)} numbers of chunks for {len(plan.trees)} trees")
    workload = plan.workload if size is None else resized(plan.workload, size)
    demands = workload.demands()
    shares = _shares(plan.trees, demands)
    pieces = _pieces(shares, chunks) if isinstance(chunks, int) else list(chunks)
    number = {node: i for i, node in enumerate(workload.ranks)}
    sizes = [_cut(share, count) for share, count in zip(shares, pieces, strict=True)]
    demand_of = [tree.demand for tree in plan.trees]
    contract, kept = cut_contract(workload, list(zip(demand_of, pieces, strict=True)))
    sizes.append(kept)
    builder = ScheduleBuilder(contract, np.concatenate(sizes), name="trees")
    parts = [_Part.of(tree, count, number) for tree, count in zip(plan.trees, pieces, strict=True)]
    first_route, first_chunk = 0, 0
    routes: list[Ints] = []
    for t, part in enumerate(parts):
        src, dst = np.tile(part.ends, (part.pieces, 1)).T
        chunk = first_chunk + np.repeat(np.arange(part.pieces), part.order.size)
        builder.extend(src, dst, chunk, np.tile(part.op, part.pieces), channel=t)
        routes.append(np.tile(first_route + part.order, part.pieces))
        first_route += part.order.size
        first_chunk += part.pieces
    shared = any(tree.route_share is not None for tree in plan.trees)
    made = replace(
        builder.build(),
        route=np.concatenate(routes).astype(np.int32),
        routes=Routes(
            np.concatenate([[0], np.cumsum(np.concatenate([np.diff(tree.route_ptr) for tree in plan.trees]))]),
            np.concatenate([tree.route_links for tree in plan.trees]).astype(np.int32),
            np.concatenate([_all_shares(tree) for tree in plan.trees]) if shared else None,
        ),
        topology=plan.topology,
        nodes=workload.ranks,
        forwarding=None if plan.routing.kind is RoutingKind.SPRAY_HOPS else plan.forwarding,
    )
    return made if window is None else _paced(made, parts, window)


@dataclass(frozen=True, slots=True)
class _Part:
    """A tree's sends of one piece, in an order in which data can pass.

    Attributes:
        order: int64 (A,), the tree's edges. ends: int64 (A, 2), rank numbers. op: int8 (A,).
        pieces: how many follow one another.
        begins: int64, places of the sends that wait for no other of the piece.
        arrival: int64 (R,), the place of the last send to each rank, -1 for none.
    """

    order: Ints
    ends: Ints
    op: NDArray[np.int8]
    pieces: int
    begins: Ints
    arrival: Ints

    @classmethod
    def of(cls, tree: Tree, pieces: int, number: dict[int, int]) -> _Part:
        order = _in_order(tree)
        ends = np.vectorize(number.__getitem__, otypes=[np.int64])(tree.edges[order])
        op = np.where(tree.phase[order] == Phase.REDUCE, Op.REDUCE, Op.COPY).astype(np.int8)
        arrival = np.full(len(number), -1, np.int64)
        arrival[ends[:, 1]] = np.arange(order.size)  # of equal indices the last stays
        first = np.full(len(number), order.size, np.int64)
        np.minimum.at(first, ends[:, 1], np.arange(order.size))
        return cls(order, ends, op, pieces, np.flatnonzero(first[ends[:, 0]] > np.arange(order.size)), arrival)


def _paced(schedule: Schedule, parts: Sequence[_Part], window: int) -> Schedule:
    """Let the first sends of each piece follow what their ranks get of the piece that is ``window`` places earlier."""
    pieces = np.array([part.pieces for part in parts])
    tree = np.repeat(np.arange(pieces.size), pieces)
    place = np.arange(tree.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    due = np.lexsort([tree, (place + 0.5) / pieces[tree]])
    first = np.cumsum([0, *(part.pieces * part.order.size for part in parts)])
    later, earlier = [], []
    for new, old in zip(due[window:].tolist(), due.tolist(), strict=False):
        part, before = parts[tree[new]], parts[tree[old]]
        heard = before.arrival[part.ends[part.begins, 0]]
        there = heard >= 0
        later.append(first[tree[new]] + place[new] * part.order.size + part.begins[there])
        earlier.append(first[tree[old]] + place[old] * before.order.size + heard[there])
    if not later:
        return schedule
    count = np.diff(schedule.depends_ptr)
    follows = np.concatenate([np.repeat(np.arange(schedule.sends), count), *later])
    on = np.concatenate([schedule.depends, *earlier])
    ptr = np.concatenate([[0], np.cumsum(np.bincount(follows, minlength=schedule.sends))])
    return replace(schedule, depends_ptr=ptr, depends=on[np.argsort(follows, kind="stable")].astype(np.int32))


def resized(workload: Workload, size: int) -> Workload:
    """The same workload with another message size.

    Raises:
        InputError: messages of several sizes, an AllToAllv, whose matrix says what it carries, or less than a byte.
    """
    if size < 1:
        raise InputError(f"size {size} is less than a byte")
    odd = next((group for group in workload.groups if group.collective == "alltoallv"), None)
    if odd is not None:
        raise InputError("the matrix of an AllToAllv says its size", where=odd.name, hint="plan another matrix")
    if len({group.size for group in workload.groups}) > 1:
        raise InputError("the groups' messages differ in size", hint="plan a mix of the sizes that you want")
    return replace(workload, groups=tuple(replace(group, size=size) for group in workload.groups))


def _shares(trees: Sequence[Tree], demands: Sequence[Demand]) -> list[int]:
    """Whole bytes of each tree, multiples of the alignment but for one tree of a demand; trees of a demand stand together."""
    of_demand: dict[int, list[float]] = {}
    for tree in trees:
        of_demand.setdefault(tree.demand, []).append(tree.rate)
    left: dict[int, Iterator[int]] = {}
    for j, rates in of_demand.items():
        blocks, rest = divmod(demands[j].size, ALIGNMENT)
        shares = [ALIGNMENT * share for share in split_bytes(blocks, rates)]
        shares[0] += rest
        left[j] = iter(shares)
    return [next(left[tree.demand]) for tree in trees]


def _pieces(shares: list[int], chunks: int) -> list[int]:
    """How many pieces each tree is cut into: as many as any other, or of one size where they are few."""
    each, total = chunks / len(shares), max(sum(shares), 1)
    wanted = (each if each >= MANY_PIECES else chunks * share / total for share in shares)
    return [max(1, min(round(count), share // ALIGNMENT)) for count, share in zip(wanted, shares, strict=True)]


def _cut(share: int, pieces: int) -> Ints:
    """Bytes of each piece: as even as the alignment allows, the rest in the last."""
    blocks = share // ALIGNMENT
    sizes = ALIGNMENT * (blocks * (np.arange(pieces) + 1) // pieces - blocks * np.arange(pieces) // pieces)
    sizes[-1] += share % ALIGNMENT
    return np.asarray(sizes, dtype=np.int64)


def _in_order(tree: Tree) -> Ints:
    """The tree's edges in an order in which data can pass: leaves first towards the root, then from the root outwards."""
    key = np.zeros(tree.phase.size)
    vertices = int(tree.edges.max()) + 1
    for phase in Phase:
        mine = tree.phase == phase
        if mine.any():
            tail, head = tree.edges[mine, 0], tree.edges[mine, 1]
            child, parent = (tail, head) if phase is Phase.REDUCE else (head, tail)
            depth = root_distances(child, parent, np.ones(child.size), tree.root, vertices)[child]
            key[mine] = -depth if phase is Phase.REDUCE else depth
    return np.argsort(key, kind="stable")


def _all_shares(tree: Tree) -> NDArray[np.float64]:
    return np.ones(tree.route_links.size) if tree.route_share is None else tree.route_share
