"""Flows on the time-expanded network, as paths that add up to what is asked for.

The volumes that a linear program puts on arcs and buffers are taken apart from the end: from where something is read, against
the stream, always along the fattest way, until the source is reached; what flows along the whole way is one path (TE-CCL §4.1
does it depth first). O(P K) for P paths over K epochs. Shape letters: P paths, H starts, J demands, M rows, K epochs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.time_expanded.flow_demands import Demands

__all__ = ["DUST", "CommodityFlow", "EpochFlow", "paths_of", "summing_to"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DUST = 1e-9  # chunks; less is what rounding leaves


@dataclass(frozen=True, slots=True, eq=False)
class EpochFlow:
    """Paths through the network and time. A path's volume flows in equal parts in ``times`` epochs one after the other.

    Attributes:
        demands: what is carried.
        demand: int64 (P,), the demand that each path serves. volume: float64 (P,), chunks in all. times: int64 (P,).
        ptr: int64 (P+1,), the starts of each path in order of travel.
        arc, epoch: int64 (H,), where, and in which epoch the first part starts.
    """

    demands: Demands
    demand: Ints
    volume: Floats
    times: Ints
    ptr: Ints
    arc: Ints
    epoch: Ints

    @property
    def paths(self) -> int:
        """P, the number of paths."""
        return int(self.demand.size)

    @property
    def arrival(self) -> Ints:
        """The epoch by which all of each path has arrived, int64 (P,)."""
        last = self.ptr[1:] - 1
        return self.epoch[last] + self.demands.problem.network.delay[self.arc[last]] + self.times - 1

    @property
    def finish(self) -> int:
        """The makespan in epochs."""
        return int(self.arrival.max(initial=0))

    @property
    def seconds(self) -> float:
        """The makespan in seconds."""
        return self.finish * self.demands.problem.network.epoch

    def carried(self) -> Floats:
        """Chunks delivered of each demand, float64 (J,)."""
        found: list[list[float]] = [[] for _ in range(self.demands.count.size)]
        for j, volume in zip(self.demand.tolist(), self.volume.tolist(), strict=True):
            found[j].append(volume)
        return np.array([math.fsum(volumes) for volumes in found])

    def loads(self) -> Floats:
        """Chunks that start on each capacity row in each epoch, float64 (M, K)."""
        network = self.demands.problem.network
        change = np.zeros((network.rate.size, self.finish + 2))
        path = np.repeat(np.arange(self.paths), np.diff(self.ptr))
        width = np.diff(network.row_ptr)[self.arc]
        start = np.repeat(np.arange(self.arc.size), width)
        within = np.arange(start.size) - np.repeat(np.cumsum(width) - width, width)
        row = network.row[network.row_ptr[self.arc[start]] + within]
        part = (self.volume / self.times)[path[start]]
        np.add.at(change, (row, self.epoch[start]), part)
        np.add.at(change, (row, self.epoch[start] + self.times[path[start]]), -part)
        return np.cumsum(change, axis=1)[:, :-1]


@dataclass(frozen=True, slots=True, eq=False)
class CommodityFlow:
    """What flows of one commodity.

    Attributes:
        arc, epoch, volume: starts with a volume > 0, (n,) each.
        vertex, held, kept: what stays at ``vertex`` from epoch ``held`` to the next, (n,) each.
        demand, read, taken: what is read of each demand and when, (n,) each.
    """

    arc: Ints
    epoch: Ints
    volume: Floats
    vertex: Ints
    held: Ints
    kept: Floats
    demand: Ints
    read: Ints
    taken: Floats


def paths_of(demands: Demands, flows: list[CommodityFlow]) -> EpochFlow:
    """Take the flow of every commodity (G of them) apart.

    The volumes of each demand's paths sum to its chunks, to the last digit; what a solver's tolerance leaves of them is spread
    over its paths. A circle, or what leads nowhere, is left out.
    """
    found: list[tuple[int, float, list[tuple[int, int]]]] = []
    for g, flow in enumerate(flows):
        found += _peeled(demands, g, flow)
    found.sort(key=lambda path: path[0])
    demand = np.array([path[0] for path in found], np.int64)
    volume = summing_to(demand, np.array([path[1] for path in found]), demands.count)
    starts = [start for path in found for start in path[2]]
    return EpochFlow(
        demands=demands,
        demand=demand,
        volume=volume,
        times=np.ones(demand.size, np.int64),
        ptr=np.concatenate([[0], np.cumsum([len(path[2]) for path in found])]).astype(np.int64),
        arc=np.array([a for a, _ in starts], np.int64),
        epoch=np.array([k for _, k in starts], np.int64),
    )


def summing_to(demand: Ints, volume: Floats, count: Ints) -> Floats:
    """Volumes (P,), sorted by demand, scaled so that those of each demand sum to its count, to the last digit."""
    scaled = volume * (count / np.bincount(demand, volume, count.size))[demand]
    ends = np.cumsum(np.bincount(demand, minlength=count.size))
    for j, (begin, end) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
        most = begin + int(np.argmax(scaled[begin:end]))
        for _ in range(3):  # what rounding leaves is itself rounded
            scaled[most] += int(count[j]) - math.fsum(scaled[begin:end])
    return scaled


def _peeled(demands: Demands, commodity: int, flow: CommodityFlow) -> list[tuple[int, float, list[tuple[int, int]]]]:
    """The paths of one commodity: demand, volume, and starts (arc, epoch)."""
    network = demands.problem.network
    origin = (int(demands.source[commodity]), int(demands.release[commodity]))
    arrive: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    left: dict[tuple[int, int], float] = {}  # (arc, epoch) -> volume; what waits at v is (-1 - v, epoch)
    for a, k, volume in zip(flow.arc.tolist(), flow.epoch.tolist(), flow.volume.tolist(), strict=True):
        left[a, k] = volume
        arrive[int(network.head[a]), k + int(network.delay[a])].append((a, k))
    for v, k, volume in zip(flow.vertex.tolist(), flow.held.tolist(), flow.kept.tolist(), strict=True):
        left[-1 - v, k] = volume
        arrive[v, k + 1].append((-1 - v, k))
    tails = network.tail.tolist()
    paths = []
    for j, k, volume in zip(flow.demand.tolist(), flow.read.tolist(), flow.taken.tolist(), strict=True):
        wanted = volume
        while wanted > DUST:
            way = _back(left, arrive, (int(demands.target[j]), k), origin, tails)
            amount = min([wanted, *(left[step] for step in way)])
            if not way or amount <= DUST:
                break
            for step in way:
                left[step] -= amount
            wanted -= amount
            paths.append((j, amount, [step for step in reversed(way) if step[0] >= 0]))
    return paths


def _back(
    left: dict[tuple[int, int], float],
    arrive: dict[tuple[int, int], list[tuple[int, int]]],
    place: tuple[int, int],
    origin: tuple[int, int],
    tail: list[int],
) -> list[tuple[int, int]]:
    """The fattest steps from a place back to the origin; none where they do not lead there."""
    way = []
    while place != origin:
        came = arrive.get(place)
        if not came:
            return []
        step = max(came, key=left.__getitem__)
        way.append(step)
        place = (tail[step[0]] if step[0] >= 0 else -1 - step[0], step[1])
    return way
