"""From arrival arcs to the routes of logical edges, shared by the oracles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.trees import trace
from dualcoll.routing.policy_graph import PolicyGraph

__all__ = ["trace_routes"]

Ints = NDArray[np.int64]


def trace_routes(graph: PolicyGraph, arrival: Ints, edges: Ints) -> tuple[Ints, Ints]:
    """CSR of the cheapest route of each logical edge (A, 2), as link indices in travelling order.

    Args:
        arrival: int64 (R, V'), as :meth:`PolicyGraph.distances` returns it.
    """
    return trace(arrival, graph.tail, graph.link, graph.starts, graph.ends, edges)
