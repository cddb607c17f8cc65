"""How long a plan takes: the steady state, what filling its trees adds, and the latency that no schedule can beat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.workload import Demand, Pattern, Workload
from dualcoll.diagnosis.batches import batches
from dualcoll.kernels.shortest_paths import shortest_paths
from dualcoll.kernels.trees import root_distances
from dualcoll.plans.model import Phase, Plan, Tree
from dualcoll.topology.arrays import FabricArrays, fabric_arrays
from dualcoll.topology.model import Topology

__all__ = ["Timing", "latency_bound", "timing", "tree_depth"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SEND = int(Phase.SEND)
MANY_RANKS = 128
SMALL = 0.5  # a message is small once latency takes this share of its time


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds.

    Attributes:
        steady: until everything is carried at the plan's rates. Where the groups' total counts: until the slowest of those
            that have a rate is done.
        fill: the longest way of any data, in link latencies: down an out-tree, up an in-tree, both where a tree reduces
            and broadcasts, or along a path. Of sprayed packets the slowest counts.
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
    fabric = fabric_arrays(plan.topology)
    nodes = len(plan.topology.nodes)
    fill, depth = 0.0, 0
    for some in batches(tree for tree in plan.trees if _is_path(tree)):
        lengths = np.array([tree.phase.size for tree in some])
        ways = np.add.reduceat(_edge_latencies(some, fabric), np.cumsum(lengths) - lengths)
        fill, depth = max(fill, float(ways.max())), max(depth, int(lengths.max()))
    for some in batches(tree for tree in plan.trees if not _is_path(tree)):
        ends = np.cumsum([tree.phase.size for tree in some])[:-1]
        for tree, latencies in zip(some, np.split(_edge_latencies(some, fabric), ends), strict=True):
            fill = max(fill, sum(_reaches(tree, latencies, nodes)))
            depth = max(depth, tree_depth(tree, nodes))
    groups = zip(plan.workload.groups, plan.group_rates(), strict=True)
    steady = max((group.size / rate for group, rate in groups if rate > 0), default=0.0)
    return Timing(steady, fill, latency_bound(plan.topology, plan.workload), depth)


def tree_depth(tree: Tree, nodes: int) -> int:
    """The most logical edges between the root and any rank, in either phase."""
    return int(max(_reaches(tree, np.ones(tree.phase.size), nodes)))


def _is_path(tree: Tree) -> bool:
    return int(tree.phase[0]) == SEND


def _reaches(tree: Tree, weight: Floats, nodes: int) -> Iterator[float]:
    """The farthest way between the root and a rank in each phase that there is, edges counting float64 (A,)."""
    if _is_path(tree):
        yield float(weight.sum())
        return
    for phase in (Phase.REDUCE, Phase.BROADCAST):
        mine = tree.phase == phase
        if mine.any():
            tail, head = tree.edges[mine, 0], tree.edges[mine, 1]
            child, parent = (tail, head) if phase is Phase.REDUCE else (head, tail)
            yield float(np.nanmax(root_distances(child, parent, weight[mine], tree.root, nodes)))


def _edge_latencies(trees: list[Tree], fabric: FabricArrays) -> Floats:
    """Seconds that the logical edges of the trees take, one tree after the other."""
    between = np.cumsum([tree.route_ptr.size for tree in trees])[:-1] - 1
    lengths = np.delete(np.diff(np.concatenate([tree.route_ptr for tree in trees])), between)
    links = np.concatenate([tree.route_links for tree in trees])
    if trees[0].route_share is None:
        return np.asarray(np.add.reduceat(fabric.latency[links], np.cumsum(lengths) - lengths))
    edges = np.concatenate([tree.edges for tree in trees])
    return _slowest_ways(edges, np.repeat(np.arange(lengths.size), lengths), links, fabric)


def _slowest_ways(edges: Ints, edge: Ints, links: Ints, fabric: FabricArrays) -> Floats:
    """The latency of the slowest way from each edge's tail to its head over the links given for it, float64 (A,).

    Args:
        edges: int64 (A, 2). edge, links: int64 (H,), a number of an edge and a link that it uses; they form no cycle.
    """
    nodes = int(max(fabric.tail.max(), fabric.head.max())) + 1
    begin, end = np.arange(len(edges)) * nodes + edges[:, 0], np.arange(len(edges)) * nodes + edges[:, 1]
    tail, head = edge * nodes + fabric.tail[links], edge * nodes + fabric.head[links]
    places, number = np.unique(np.concatenate([begin, end, tail, head]), return_inverse=True)
    begin, end, tail, head = np.split(number, np.cumsum([begin.size, end.size, tail.size]))
    arrival = np.full(places.size, -np.inf)
    arrival[begin] = 0.0
    while True:
        later = arrival.copy()
        np.maximum.at(later, head, arrival[tail] + fabric.latency[links])
        if (later == arrival).all():
            return np.asarray(arrival[end])
        arrival = later


def latency_bound(topology: Topology, workload: Workload) -> float:
    """The longest of all shortest latencies from a rank to one that needs its data, every node forwarding; seconds.

    Of many senders and receivers only some of the fewer are tried, which can only make the bound lower.
    """
    fabric = fabric_arrays(topology)
    demands = workload.demands()
    ends = [_ends(demand, workload.groups[demand.group].ranks) for demand in demands]
    senders, receivers = (sorted({node for side in sides for node in side}) for sides in zip(*ends, strict=True))
    tail, head = fabric.tail, fabric.head
    if len(receivers) < len(senders):
        ends, senders, tail, head = [(to, of) for of, to in ends], receivers, head, tail
    tried = senders[:: max(1, len(senders) // MANY_RANKS)]
    needs = np.zeros((len(tried), len(topology.nodes)), bool)
    row = {node: i for i, node in enumerate(tried)}
    for sources, targets in ends:
        rows = [row[node] for node in sources if node in row]
        if len(rows) == len(targets) == 1:
            needs[rows[0], targets[0]] = True
        elif rows:
            needs[np.ix_(rows, targets)] = True
    order = np.argsort(tail, kind="stable")
    ptr = np.zeros(len(topology.nodes) + 1, np.int64)
    np.cumsum(np.bincount(tail, minlength=len(topology.nodes)), out=ptr[1:])
    distance = np.empty(needs.shape)
    arrival = np.empty(distance.shape, np.int64)
    shortest_paths(ptr, head[order], order, fabric.latency, np.array(tried), distance, arrival)
    return float(distance[needs].max(initial=0.0))


def _ends(demand: Demand, ranks: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Who has data, and who needs it."""
    root = ranks if demand.root is None else (demand.root,)
    if demand.pattern is Pattern.REDUCE:
        return ranks, root
    return root, ranks if demand.target is None else (demand.target,)
