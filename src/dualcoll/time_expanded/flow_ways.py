"""The ways of a flow, and how many whole chunks take each: as balanced over the links as single exchanges make it.

Shape letters: D demands, P ways, H their arcs, M capacity rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.time_expanded.flow_demands import Demands
from dualcoll.time_expanded.flow_model import relays
from dualcoll.time_expanded.flow_paths import EpochFlow
from dualcoll.time_expanded.network import Network
from dualcoll.time_expanded.problem import FOREVER
from dualcoll.time_expanded.static_flow import cheapest_ways, way_back

__all__ = ["Ways", "balanced", "pace_of", "ways_of"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ROUNDS = 50  # of moves between ways


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """Distinct ways of each demand.

    Attributes:
        demand: int64 (P,), sorted. volume: float64 (P,), chunks of flow. leaves: float64 (P,), their mean epoch of departure.
        quickest: float64 (P,), 1 for one way of each demand, if ranks relay, else 0.
        ptr, arc: int64 (P+1,), (H,), in order of travel.
    """

    demand: Ints
    volume: Floats
    quickest: Floats
    leaves: Floats
    ptr: Ints
    arc: Ints


def ways_of(flow: EpochFlow) -> Ways:
    """The ways of a flow; where ranks relay also the quickest way of every demand, of no volume if the flow does not use it."""
    demands, network = flow.demands, flow.demands.problem.network
    number: dict[tuple[int, bytes], int] = {}
    of = np.empty(flow.paths, np.int64)
    for p, (j, begin, end) in enumerate(zip(flow.demand.tolist(), flow.ptr[:-1], flow.ptr[1:], strict=True)):
        of[p] = number.setdefault((j, flow.arc[begin:end].tobytes()), len(number))
    quickest_ways = []
    if relays(network):
        _, arrival = cheapest_ways(network, network.delay.astype(np.float64))
        for j, (g, target) in enumerate(zip(demands.commodity.tolist(), demands.target.tolist(), strict=True)):
            quickest = np.array(way_back(network, arrival[demands.source[g]], target), np.int64)
            quickest_ways.append(number.setdefault((j, quickest.tobytes()), len(number)))
    volume = np.bincount(of, flow.volume, len(number)).astype(np.float64)
    middle = np.bincount(of, flow.volume * (flow.epoch[flow.ptr[:-1]] + (flow.times - 1) / 2), len(number))
    leaves = np.divide(middle, volume, out=np.zeros(volume.size), where=volume > 0)
    order = np.argsort([j for j, _ in number], kind="stable")
    arcs = [np.frombuffer(text, np.int64) for _, text in number]
    hops = np.array([arcs[w].size for w in order.tolist()])
    return Ways(
        np.array([j for j, _ in number], np.int64)[order],
        volume[order],
        np.isin(order, quickest_ways).astype(np.float64),
        leaves[order],
        np.concatenate([[0], np.cumsum(hops)]),
        np.concatenate([arcs[w] for w in order.tolist()]),
    )


def balanced(ways: Ways, demands: Demands, bound: int) -> Ints:
    """Whole chunks on each way, int64 (P,), so that rows are loaded alike: from the flow's volumes or the quickest ways, what
    fills no row more, and is shorter then.
    """
    from dualcoll.kernels.path_schedule import balance

    network = demands.problem.network
    width = np.diff(network.row_ptr)
    rows = np.concatenate([network.rows_of(a) for a in ways.arc.tolist()]).astype(np.int64)
    counts = np.concatenate([[0], np.cumsum(width[ways.arc])])[ways.ptr]
    ptr = np.searchsorted(ways.demand, np.arange(demands.count.size + 1))
    pace = pace_of(network) * bound
    found = []
    starts = [ways.volume]
    if np.all(demands.deadline == FOREVER):
        starts.insert(0, ways.quickest * demands.count[ways.demand])
    for volume in starts:
        chosen = np.asarray(balance(ptr, demands.count, volume, counts, rows, pace, ROUNDS))
        loads = np.bincount(rows, np.repeat(chosen, np.diff(counts)), pace.size) / pace
        found.append((float(loads.max()), int((chosen * np.diff(ways.ptr)).sum()), chosen))
    return min(found, key=lambda choice: choice[:2])[2]


def pace_of(network: Network) -> Floats:
    """Whole chunks per epoch that each row can start in the long run, float64 (M,)."""
    return np.array([min((most / length for length, most in pairs), default=np.inf) for pairs in network.starts])
