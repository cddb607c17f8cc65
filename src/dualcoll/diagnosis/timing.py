"""How long a plan takes: the steady state, what filling its trees adds, and the latency that no schedule can beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.shortest_paths import shortest_paths
from dualcoll.kernels.trees import root_distances
from dualcoll.plans.model import Phase, Plan, Tree
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.model import Topology

__all__ = ["Timing", "latency_bound", "timing", "tree_depth"]

Floats = NDArray[np.float64]

MANY_RANKS = 128
SMALL = 0.5  # a message is small once latency takes this share of its time


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds.

    Attributes:
        steady: message bytes over the plan's rate.
        fill: the longest way, in link latencies, from a leaf to a root and on to a leaf.
        total: steady + fill, the time predicted for the message (store-and-forward of chunks is not in it).
        latency_bound: no schedule of any kind ends sooner: some rank's data needs this long to reach another.
        depth: the most logical edges between a root and a rank.
    """

    steady: float
    fill: float
    latency_bound: float
    depth: int

    @property
    def total(self) -> float:
        """Predicted seconds for the message."""
        return self.steady + self.fill

    @property
    def small(self) -> bool:
        """Whether latency, not the rate, decides the time of this message."""
        return self.fill >= SMALL * self.total


def timing(plan: Plan) -> Timing:
    """The plan's times for its message."""
    latency = fabric_arrays(plan.topology).latency
    nodes = len(plan.topology.nodes)
    fill = max(sum(_reach(tree, phase, _route_sums(tree, latency), nodes) for phase in Phase) for tree in plan.trees)
    depth = max(tree_depth(tree, nodes) for tree in plan.trees)
    return Timing(plan.size / plan.value, fill, latency_bound(plan.topology, plan.participants), depth)


def tree_depth(tree: Tree, nodes: int) -> int:
    """The most logical edges between the root and any rank, in either phase."""
    return int(max(_reach(tree, phase, np.ones(tree.phase.size), nodes) for phase in Phase))


def latency_bound(topology: Topology, participants: tuple[int, ...]) -> float:
    """The longest of all shortest latencies between participants, every node forwarding; seconds.

    Of many participants only some are tried as senders, which can only make the bound lower.
    """
    fabric = fabric_arrays(topology)
    order = np.argsort(fabric.tail, kind="stable")
    ptr = np.zeros(len(topology.nodes) + 1, np.int64)
    np.cumsum(np.bincount(fabric.tail, minlength=len(topology.nodes)), out=ptr[1:])
    ranks = np.array(participants, np.int64)
    senders = ranks[:: max(1, ranks.size // MANY_RANKS)]
    distance = np.empty((senders.size, len(topology.nodes)))
    arrival = np.empty(distance.shape, np.int64)
    shortest_paths(ptr, fabric.head[order], order, fabric.latency, senders, distance, arrival)
    return float(distance[:, ranks].max())


def _route_sums(tree: Tree, latency: Floats) -> Floats:
    return np.add.reduceat(latency[tree.route_links], tree.route_ptr[:-1])


def _reach(tree: Tree, phase: Phase, weight: Floats, nodes: int) -> float:
    mine = tree.phase == phase
    tail, head = tree.edges[mine, 0], tree.edges[mine, 1]
    child, parent = (tail, head) if phase is Phase.REDUCE else (head, tail)
    return float(np.nanmax(root_distances(child, parent, weight[mine], tree.root, nodes)))
