"""How long a plan takes: the steady state, what filling its trees adds, and the latency that no schedule can beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.workload import Workload
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
        steady: message bytes over the rate, of the slowest group that has any.
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
    fill = max(_fill(tree, latency, nodes) for tree in plan.trees)
    depth = max(tree_depth(tree, nodes) for tree in plan.trees)
    steady = max(
        (group.size / rate for group, rate in zip(plan.workload.groups, plan.group_rates(), strict=True) if rate > 0),
        default=0.0,
    )
    return Timing(steady, fill, latency_bound(plan.topology, plan.workload), depth)


def tree_depth(tree: Tree, nodes: int) -> int:
    """The most logical edges between the root and any rank, in either phase."""
    return int(max(_reach(tree, phase, np.ones(tree.phase.size), nodes) for phase in Phase))


def latency_bound(topology: Topology, workload: Workload) -> float:
    """The longest of the shortest latencies that some group's data has to cross, every node forwarding; seconds.

    Of many senders only some are tried, which can only make the bound lower.
    """
    fabric = fabric_arrays(topology)
    order = np.argsort(fabric.tail, kind="stable")
    ptr = np.zeros(len(topology.nodes) + 1, np.int64)
    np.cumsum(np.bincount(fabric.tail, minlength=len(topology.nodes)), out=ptr[1:])
    longest = 0.0
    for group in workload.groups:
        ranks = np.arange(len(group.ranks))
        place = 0 if group.root is None else group.ranks.index(group.root)
        senders = ranks[[place]] if group.collective in ("broadcast", "scatter") else ranks
        senders = senders[:: max(1, senders.size // MANY_RANKS)]
        needed = np.ones((senders.size, ranks.size), bool)
        if group.collective in ("reduce", "gather"):
            needed[:, ranks != place] = False
        if group.collective == "alltoallv":
            needed = np.array(group.parts).reshape(ranks.size, ranks.size)[senders] > 0
        nodes = np.array(group.ranks, np.int64)
        distance = np.empty((senders.size, len(topology.nodes)))
        arrival = np.empty(distance.shape, np.int64)
        shortest_paths(ptr, fabric.head[order], order, fabric.latency, nodes[senders], distance, arrival)
        longest = max(longest, float(distance[:, nodes][needed].max(initial=0.0)))
    return longest


def _route_sums(tree: Tree, latency: Floats) -> Floats:
    share = 1.0 if tree.route_share is None else tree.route_share  # of sprayed packets the mean
    return np.asarray(np.add.reduceat(latency[tree.route_links] * share, tree.route_ptr[:-1]))


def _fill(tree: Tree, latency: Floats, nodes: int) -> float:
    weight = _route_sums(tree, latency)
    return sum(_reach(tree, phase, weight, nodes) for phase in Phase)


def _reach(tree: Tree, phase: Phase, weight: Floats, nodes: int) -> float:
    mine = tree.phase == phase
    if not mine.any():
        return 0.0
    if phase is Phase.SEND:
        return float(weight.sum())  # a path
    tail, head = tree.edges[mine, 0], tree.edges[mine, 1]
    child, parent = (tail, head) if phase is Phase.REDUCE else (head, tail)
    return float(np.nanmax(root_distances(child, parent, weight[mine], tree.root, nodes)))
