"""A flow that does the same in every epoch: routes run at a constant rate, each part on its way without a stop.

If routes put at most N epochs' worth on every capacity row, their volumes in N equal parts fit, whatever the delays. The
makespan is N - 1 and the longest route's delay, so close to the bound without time, whatever the size of the network.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.time_expanded.flow_demands import Demands
from dualcoll.time_expanded.flow_paths import EpochFlow
from dualcoll.time_expanded.network import SLACK
from dualcoll.time_expanded.static_flow import StaticFlow

__all__ = ["steady_flow"]

Ints = NDArray[np.int64]


def steady_flow(demands: Demands, static: StaticFlow) -> EpochFlow:
    """Routes as a flow over time. Deadlines are not looked at."""
    network = demands.problem.network
    hops = np.diff(static.ptr)
    path = np.repeat(np.arange(hops.size), hops)
    before = np.cumsum(network.delay[static.arc]) - network.delay[static.arc]
    release = demands.release[demands.commodity[static.demand]]
    epoch = release[path] + before - before[static.ptr[:-1]][path]
    epochs = _epochs(static, path, demands)
    times = np.full(hops.size, epochs, np.int64)
    return EpochFlow(demands, static.demand, static.volume, times, static.ptr, static.arc, epoch.astype(np.int64))


def _epochs(static: StaticFlow, path: Ints, demands: Demands) -> int:
    """N: what the fullest row and the fullest buffer take, at least 1."""
    network = demands.problem.network
    through = np.bincount(static.arc, static.volume[path], network.arcs)
    loads = np.zeros(network.rate.size)
    np.add.at(loads, network.row, np.repeat(through, np.diff(network.row_ptr)))
    epochs = float((loads / network.rate).max())
    room = network.clock.buffer
    if room:
        first = np.zeros(static.arc.size, bool)
        first[static.ptr[:-1]] = True
        passing = ~first & network.holds[network.tail[static.arc]]
        held = np.bincount(network.tail[static.arc[passing]], static.volume[path[passing]], network.vertices)
        epochs = max(epochs, float(held.max()) / room)
    return max(1, int(np.ceil(epochs * (1 - SLACK))))
