"""Whole numbers of equal chunks for a plan's trees, and what they cost.

Executors cut a message into chunks of one size, a plan has trees of any rate. If tree t of a demand that is cut into k chunks
gets n_t of them, its part of the demand is n_t / k instead of its part of the rates. The rate is then the message's bytes over
the time that the busiest link takes, and the loss is what it lacks against the plan's, which is proved. Of all k up to a limit
the one that loses least is taken: chunks are given out by largest remainder, and for the best few k then moved between trees of
one demand as long as that takes load off the busiest link. A candidate costs O(H) for H hops of all routes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.catalogue import title
from dualcoll.errors import InputError
from dualcoll.plans.model import Plan
from dualcoll.plans.shares import split_bytes
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.pipeline import ALIGNMENT, pipelined
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.units import format_bandwidth

__all__ = ["MAX_CHUNKS", "ChunkCounts", "chunk_counts", "equal_chunks"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_CHUNKS = 128  # of the message
MOVES = 64  # of chunks from tree to tree, for one number of chunks
TRIED = 4  # numbers of chunks for which chunks are moved, the best after giving them out
EQUAL = 1e-6  # losses that differ by less are the same: then more chunks are better, as they overlap


@dataclass(frozen=True, slots=True)
class ChunkCounts:
    """How many chunks each tree carries.

    Attributes:
        of_tree: chunks of each tree of the plan; 0 for those that are left out.
        total: chunks of the message as nccl-tests counts it, what ranks keep for themselves included.
        rate: bytes/s that the links allow with these shares. planned: the plan's.
    """

    of_tree: tuple[int, ...]
    total: int
    rate: float
    planned: float

    @property
    def loss(self) -> float:
        """``1 - rate / planned``, or 0."""
        return max(0.0, 1 - self.rate / self.planned)

    @property
    def text(self) -> str:
        """The same in a sentence."""
        out = sum(count == 0 for count in self.of_tree)
        left = f", {out} of {len(self.of_tree)} trees left out" if out else ""
        rates = f"{format_bandwidth(self.rate)} of the plan's {format_bandwidth(self.planned)}"
        return f"{self.total} equal chunks{left}: {rates}, a loss of {100 * self.loss:.3g} %"


def chunk_counts(plan: Plan, max_chunks: int = MAX_CHUNKS) -> ChunkCounts:
    """The numbers of chunks, at most ``max_chunks`` of the whole message, with which the plan loses least.

    Raises:
        InputError: several groups, parts of the message that differ in size, or fewer chunks than parts.
    """
    shards = _shards(plan)
    most = max_chunks // shards
    if most < 1:
        problem = f"{max_chunks} chunks for {shards} parts of the message"
        raise InputError(problem, where="max_chunks", hint=f"use {shards} or more")
    search = _Search(plan)
    rounded = [(search.time(counts := search.rounded(k), k), k, counts) for k in range(1, most + 1)]
    moved = [search.moved(counts, k) for _, k, counts in sorted(rounded, key=lambda found: found[0])[:TRIED]]
    found = [*((time, k, counts) for time, k, counts in rounded), *moved]
    least = min(time for time, *_ in found)
    within = [entry for entry in found if entry[0] <= least * (1 + EQUAL)]
    _, k, counts = max(within, key=lambda entry: (most // entry[1] * entry[1], entry[1]))
    k, counts = most // k * k, most // k * counts  # shares stay what they are
    rate = plan.size / search.time(counts, k)
    return ChunkCounts(tuple(counts.tolist()), k * shards, rate, plan.value)


def equal_chunks(plan: Plan, max_chunks: int = MAX_CHUNKS, *, size: int | None = None) -> tuple[Schedule, ChunkCounts]:
    """The plan as sends of equal chunks, those of a tree one after the other, and what that costs.

    Args:
        plan: its trees, rates and routes. max_chunks: of the whole message.
        size: bytes of the message, the plan's by default; rounded down to chunks of whole multiples of 16 bytes.

    Raises:
        InputError: as :func:`chunk_counts`, or a size below 16 bytes for each chunk.
    """
    counts = chunk_counts(plan, max_chunks)
    given = plan.size if size is None else size
    whole = given // (counts.total * ALIGNMENT) * counts.total * ALIGNMENT
    if whole == 0:
        problem = f"{given} bytes for {counts.total} chunks of at least {ALIGNMENT}"
        raise InputError(problem, where="size", hint=f"use {counts.total * ALIGNMENT} bytes or more, or fewer chunks")
    used = [(tree, count) for tree, count in zip(plan.trees, counts.of_tree, strict=True) if count]
    rated = replace(plan, trees=tuple(replace(tree, rate=float(count)) for tree, count in used))
    return pipelined(rated, chunks=[count for _, count in used], size=whole), counts


def _shards(plan: Plan) -> int:
    """Equal parts that the message has as nccl-tests counts it."""
    groups = plan.workload.groups
    if len(groups) > 1:
        raise InputError(f"{len(groups)} groups", where="plan", hint="equal chunks are for one collective at a time")
    demands = plan.workload.demands()
    if len({demand.part for demand in demands}) > 1:
        problem = f"the parts of {title(groups[0].collective)} differ in size"
        raise InputError(problem, where="plan", hint="equal chunks are for equal parts")
    return round(groups[0].size / demands[0].part)


class _Search:
    """Loads of the capacity rows for numbers of chunks."""

    def __init__(self, plan: Plan) -> None:
        fabric = fabric_arrays(plan.topology)
        trees, demands = plan.trees, plan.workload.demands()
        self._links = fabric.links
        self._fabric = fabric
        self._hop = np.concatenate([tree.route_links for tree in trees])
        self._tree = np.repeat(np.arange(len(trees)), [tree.route_links.size for tree in trees])
        self._part = np.concatenate(
            [np.ones(tree.route_links.size) if tree.route_share is None else tree.route_share for tree in trees]
        )
        self._bytes = float(demands[0].part)
        self._of_demand: list[list[int]] = [[] for _ in demands]
        for t, tree in enumerate(trees):
            self._of_demand[tree.demand].append(t)
        self._rates = [tree.rate for tree in trees]
        self._demand = [tree.demand for tree in trees]
        self._known: dict[int, Floats] = {}

    def rounded(self, k: int) -> Ints:
        """Chunks of each tree by largest remainder, int64 (T,)."""
        counts = np.zeros(len(self._rates), np.int64)
        for trees in self._of_demand:
            counts[trees] = split_bytes(k, [self._rates[t] for t in trees])
        return counts

    def time(self, counts: Ints, k: int) -> float:
        """Seconds that the busiest row takes."""
        return float(self._times(counts, k).max())

    def moved(self, counts: Ints, k: int) -> tuple[float, int, Ints]:
        """The time, k, and the numbers of chunks after moving some between trees of one demand."""
        best = self.time(counts, k)
        for _ in range(MOVES):
            better = self._one_moved(counts, k, best)
            if better is None:
                break
            counts, best = better
        return best, k, counts

    def _one_moved(self, counts: Ints, k: int, best: float) -> tuple[Ints, float] | None:
        """The best move of one chunk off the busiest row, if it helps."""
        times = self._times(counts, k)
        found, least = None, best * (1 - EQUAL)
        on_row = np.unique(self._tree[np.isin(self._hop, self._links_of(int(times.argmax())))])
        for giver in on_row[counts[on_row] > 0][:TRIED].tolist():
            without = times - self._whole(giver) / k
            for taker in self._of_demand[self._demand[giver]]:
                time = float((without + self._whole(taker) / k).max())
                if time < least:
                    found, least = (giver, taker), time
        if found is None:
            return None
        moved = counts.copy()
        np.add.at(moved, list(found), (-1, 1))
        return moved, least

    def _whole(self, tree: int) -> Floats:
        """Seconds that each row takes if the tree carries all of its demand, float64 (M,)."""
        if tree not in self._known:
            mine = self._tree == tree
            loads = np.bincount(self._hop[mine], self._part[mine], self._links).astype(np.float64)
            self._known[tree] = self._fabric.row_loads(loads) * (self._bytes / self._fabric.capacity)
        return self._known[tree]

    def _links_of(self, row: int) -> Ints:
        if row < self._links:
            return np.array([row])
        shared = row - self._links
        return self._fabric.shared_link[self._fabric.shared_ptr[shared] : self._fabric.shared_ptr[shared + 1]]

    def _times(self, counts: Ints, k: int) -> Floats:
        """Seconds that each row takes, float64 (M,)."""
        weight = self._part * (counts * (self._bytes / k))[self._tree]
        loads = np.bincount(self._hop, weight, self._links).astype(np.float64)
        times: Floats = self._fabric.row_loads(loads) / self._fabric.capacity
        return times
