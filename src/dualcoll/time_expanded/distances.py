"""How far chunks are from where they begin and from where they are wanted, in epochs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.shortest_paths import shortest_paths
from dualcoll.time_expanded.network import FAR, Network
from dualcoll.time_expanded.problem import Problem

__all__ = ["Distances", "to_ranks"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """Quickest ways on an empty network; ``FAR`` where there is none.

    Attributes:
        ready: int64 (C, V), the epoch before which a chunk can be at no vertex: its release, and the way from its source.
        to_rank: int64 (R, V), epochs from each vertex to each rank.
        to_wanted: int64 (C, V), to the nearest rank that wants the chunk.
    """

    ready: Ints
    to_rank: Ints
    to_wanted: Ints

    @classmethod
    def of(cls, problem: Problem) -> Distances:
        """The distances of a problem."""
        network = problem.network
        ready = np.full((problem.chunks, network.vertices), FAR)
        own = np.flatnonzero(problem.source >= 0)
        ready[own] = problem.release[own, None] + network.distances()[problem.source[own]]
        to_rank = to_ranks(network)
        to_wanted = np.full(ready.shape, FAR)
        for chunk, wants in enumerate(problem.wants()):
            if wants.any():
                to_wanted[chunk] = to_rank[wants].min(axis=0)
        return cls(np.minimum(ready, FAR), to_rank, to_wanted)


def to_ranks(network: Network) -> Ints:
    """Epochs of the quickest way from each vertex to each rank, int64 (R, V)."""
    order = np.argsort(network.head, kind="stable")
    ptr = np.searchsorted(network.head[order], np.arange(network.vertices + 1))
    distance = np.empty((network.ranks, network.vertices))
    arrival = np.empty(distance.shape, np.int64)
    tail = network.tail[order].astype(np.int64)
    delay = network.delay.astype(np.float64)
    shortest_paths(ptr, tail, order, delay, np.arange(network.ranks), distance, arrival)
    return np.where(np.isinf(distance), FAR, distance).astype(np.int64)
