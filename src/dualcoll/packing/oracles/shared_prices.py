"""What all logical edges of a rank share: its own links."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.routing.policy_graph import PolicyGraph

__all__ = ["shared_prices"]

Floats = NDArray[np.float64]


def shared_prices(graph: PolicyGraph, link_prices: Floats) -> tuple[Floats, Floats]:
    """The least price of a link out of, and of one into, each participant, float64 (n,)."""
    price = link_prices[graph.link]
    out, into = np.full(graph.ptr.size - 1, np.inf), np.full(graph.ptr.size - 1, np.inf)
    np.minimum.at(out, graph.tail, price)
    np.minimum.at(into, graph.head, price)
    return out[graph.starts], into[graph.ends]
