"""What is to be scheduled, and a schedule on the time-expanded network.

Shape letters: R ranks, V vertices, A arcs, C chunks, K epochs, S starts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.contract import Contract
from dualcoll.errors import InputError
from dualcoll.time_expanded.network import FAR, Network

__all__ = ["FOREVER", "Count", "EpochSchedule", "Problem", "kept_arrival"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

FOREVER = 2**31 - 1  # a deadline that is none


class Count(NamedTuple):
    """Variables of the whole model, before what cannot be used is left out: flows F, buffers B and reads R (§3.1)."""

    flows: int
    buffers: int
    reads: int


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Chunks that each begin at one rank and are wanted by some, on a network.

    Attributes:
        network: where. contract: what; its slots for other chunks' data take no part.
        release: int32 (C,), the epoch from which the source has the chunk.
        deadline: int32 (C,), the epoch by which all who want it must have it; ``FOREVER`` for the horizon.

    Raises:
        InputError: a chunk that begins everywhere (a reduction), one that cannot reach a rank, or columns of different length.
    """

    network: Network
    contract: Contract
    release: Shorts = None  # type: ignore[assignment]
    deadline: Shorts = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        contract = self.contract
        if contract.ranks != self.network.ranks:
            raise InputError(f"a contract over {contract.ranks} ranks on {self.network.ranks}", where="ranks")
        for name, default in (("release", 0), ("deadline", FOREVER)):
            given = getattr(self, name)
            column = np.full(contract.chunks, default) if given is None else np.asarray(given)
            if column.shape != (contract.chunks,):
                raise InputError(f"{column.size} numbers for {contract.chunks} chunks", where=name)
            column = column.astype(np.int32)
            column.setflags(write=False)
            object.__setattr__(self, name, column)
        if np.any(contract.source[contract.data] < 0):
            raise InputError("chunks that begin everywhere are reduced, not copied", where=contract.collective)
        self._check_ways()

    def _check_ways(self) -> None:
        far = self.network.distances()[:, : self.network.ranks] >= FAR
        if not far.any():
            return
        for chunk in range(self.chunks):
            for rank in self.wanted(chunk):
                if far[self.source[chunk], rank]:
                    source = self.network.name(int(self.source[chunk]))
                    raise InputError(
                        f"rank {self.network.name(rank)} cannot be reached from {source}",
                        where=self.network.topology.name,
                        hint="GPUs and hosts that are no ranks forward nothing (see --forward): check the links",
                    )

    @property
    def chunks(self) -> int:
        """C, the number of chunks."""
        return self.contract.chunks

    @property
    def source(self) -> Shorts:
        """The rank where each chunk begins, int32 (C,)."""
        return self.contract.source

    def wanted(self, chunk: int) -> tuple[int, ...]:
        """Ranks that want the chunk and do not begin with it."""
        return tuple(r for r in self.contract.receivers(chunk) if r != self.contract.source[chunk])

    def wants(self) -> NDArray[np.bool_]:
        """Whether each rank wants each chunk and does not begin with it, bool (C, R)."""
        wants = np.zeros((self.chunks, self.network.ranks), bool)
        for chunk in range(self.chunks):
            wants[chunk, list(self.wanted(chunk))] = True
        return wants

    def count(self, horizon: int) -> Count:
        """Variables of the paper's model over so many epochs: one flow per chunk, arc and epoch, one buffer per chunk, vertex
        and epoch, one read per chunk, rank that wants it and epoch.
        """
        busy = [c for c in range(self.chunks) if self.wanted(c)]
        reads = sum(len(self.wanted(c)) for c in busy)
        size = len(busy) * horizon
        return Count(size * self.network.arcs, size * self.network.vertices, reads * horizon)


@dataclass(frozen=True, slots=True, eq=False)
class EpochSchedule:
    """Starts of whole chunks: chunk ``chunk[s]`` starts on arc ``arc[s]`` in epoch ``epoch[s]``. Sorted by epoch.

    Attributes:
        problem: what it solves.
        arc, epoch, chunk: int32 (S,).
    """

    problem: Problem
    arc: Shorts
    epoch: Shorts
    chunk: Shorts

    def __post_init__(self) -> None:
        order = np.lexsort((self.chunk, self.arc, self.epoch))
        for name in ("arc", "epoch", "chunk"):
            column = np.asarray(getattr(self, name), dtype=np.int32)[order]
            column.setflags(write=False)
            object.__setattr__(self, name, column)

    @property
    def arrival(self) -> Shorts:
        """The epoch from which each start's chunk can leave the arc's head, int32 (S,)."""
        return self.epoch + self.problem.network.delay[self.arc]

    def delivered(self) -> Ints:
        """The epoch from which each rank has each chunk for good, int64 (C, R); -1 where it never does.

        A rank that does not copy has what it passes on only until then: for one that wants the chunk, the arrival that it keeps
        counts.
        """
        problem = self.problem
        far = np.iinfo(np.int64).max
        first = np.full((problem.chunks, problem.network.ranks), far)
        own = np.flatnonzero(problem.source >= 0)
        first[own, problem.source[own]] = problem.release[own]
        head = problem.network.head[self.arc]
        ends = np.flatnonzero(head < problem.network.ranks)
        np.minimum.at(first, (self.chunk[ends], head[ends]), self.arrival[ends].astype(np.int64))
        for (chunk, rank), came, left in self._passed_on():
            kept = kept_arrival(came, left)
            first[chunk, rank] = came[kept] if kept < len(came) else far
        return np.where(first == far, -1, first)

    def _passed_on(self) -> list[tuple[tuple[int, int], list[int], list[int]]]:
        """What a rank wants, does not copy, and sends all the same: (chunk, rank), arrivals and starts in order of time."""
        problem, network = self.problem, self.problem.network
        if network.copies[: network.ranks].all():
            return []
        wants = problem.wants() & ~network.copies[: network.ranks]
        tail, head = network.tail[self.arc].tolist(), network.head[self.arc].tolist()
        came: dict[tuple[int, int], list[int]] = defaultdict(list)
        left: dict[tuple[int, int], list[int]] = defaultdict(list)
        for s, chunk in enumerate(self.chunk.tolist()):
            if tail[s] < network.ranks and wants[chunk, tail[s]]:
                left[chunk, tail[s]].append(int(self.epoch[s]))
            if head[s] < network.ranks and wants[chunk, head[s]]:
                came[chunk, head[s]].append(int(self.arrival[s]))
        return [(place, sorted(came[place]), left[place]) for place in left]

    @property
    def finish(self) -> int:
        """The epoch by which everybody has what it wants: the makespan in epochs. What is never delivered does not count."""
        got = self.delivered()
        return int(np.where(self.problem.wants(), got, 0).max(initial=0))

    @property
    def seconds(self) -> float:
        """The makespan in seconds."""
        return self.finish * self.problem.network.epoch


def kept_arrival(came: Sequence[int], left: Sequence[int]) -> int:
    """Which arrival a vertex that does not copy keeps: the first that can stay, so that every start still has one by its epoch.

    Args:
        came, left: epochs of arrivals and of starts, in order of time.

    Returns:
        Its position; the number of arrivals where the only one has left.
    """
    kept = 0
    for j, epoch in enumerate(left[: max(0, len(came) - 1)]):
        if came[j + 1] > epoch:
            kept = j + 1
    return max(kept, len(left) + 1 - len(came)) if len(left) >= len(came) else kept
