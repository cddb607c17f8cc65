"""A plan: trees with rates and routes, the data's shares, prices of the links, and the claims they support.

A plan is continuous (rates); cutting it into sends of chunks is a schedule's business. Shape letters: A logical edges of one
tree, H hops of its routes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.catalogue import busbw
from dualcoll.collectives.workload import Objective, Workload
from dualcoll.progress import Outcome, Progress, relative_gap
from dualcoll.routing.model import Routing
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["Alternative", "Bottleneck", "Cut", "Phase", "Plan", "Tradeoff", "Tree"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Phase(IntEnum):
    """What a logical edge does."""

    REDUCE = 0  # carries a partial result towards a root
    BROADCAST = 1  # carries data that is complete away from a root
    SEND = 2  # carries one rank's data to another


@dataclass(frozen=True, slots=True)
class Tree:
    """One column of the packing: carries part of one demand, as the demand's pattern says.

    Attributes:
        rate: bytes/s of the demand's data.
        demand: number of the demand among those of the plan's workload.
        root: node index; of an AllReduce the common root of both phases, else that of the demand.
        size: bytes of the demand that this tree carries.
        edges: int64 (A, 2), node indices (from, to) of each logical edge; traffic flows from -> to.
        phase: int8 (A,), :class:`Phase` of each edge.
        route_ptr, route_links: CSR of the links that each edge uses, int64 (A+1,) and (H,) link indices; in travelling
            order unless packets are sprayed.
        route_share: float64 (H,), the part of the edge's traffic on each link; None means all of it.
    """

    rate: float
    demand: int
    root: int
    size: int
    edges: Ints
    phase: NDArray[np.int8]
    route_ptr: Ints
    route_links: Ints
    route_share: Floats | None = None

    def route(self, edge: int) -> Ints:
        """Link indices of one edge's route."""
        return self.route_links[self.route_ptr[edge] : self.route_ptr[edge + 1]]

    def loads(self, links: int) -> Floats:
        """What the tree puts on each link per unit rate, float64 (E,)."""
        return np.bincount(self.route_links, self.route_share, links).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Cut:
    """A bound with its witness: what must leave the node set ``side`` keeps the rate at or below ``rate`` bytes/s."""

    rate: float
    side: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Links that limit the plan together, one kind of link or one shared capacity.

    Attributes:
        links: link indices. price_share: their part of the bound's price, in (0, 1]; the parts of a plan sum to 1.
        utilisation: least and most load over capacity among them. text: the same in words.
    """

    links: tuple[int, ...]
    price_share: float
    utilisation: tuple[float, float]
    text: str


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """What so many trees of that depth can reach: rate in bytes/s, depth in logical edges."""

    trees: int
    rate: float
    depth: int


@dataclass(frozen=True, slots=True)
class Alternative:
    """What another way would reach: rate in bytes/s of the message, and what it is, in words."""

    rate: float
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A certified packing.

    Attributes:
        topology: the fabric it was made for.
        workload: what it carries.
        forwarding: the forwarding policy. relay: whether ranks of a group pass on the data of a SEND.
        routing: who chooses the links of a logical edge.
        trees: the packing.
        link_prices: float64 (E,); shared_prices: float64 (S,). Together with the capacities they prove ``bound``.
        value: bytes/s, never above what the trees carry. Of the slowest group: bytes of the largest message over the time
            until everything is done. In total: the sum of the groups' rates.
        bound: no schedule without in-network computing is faster, bytes/s.
        in_network: no schedule at all is faster than this cut allows; None where no single cut limits the total.
        outcome: why the solver stopped; seconds, iterations: what it took; method: which solver.
        history: its progress reports.
        bottleneck: what limits it, the dearest first.
        frontier: the rates of packings with fewer trees, if they were asked for.
        alternatives: what was found beside it; nothing is proved about them.
    """

    topology: Topology
    workload: Workload
    forwarding: Forwarding
    relay: bool
    routing: Routing
    trees: tuple[Tree, ...]
    link_prices: Floats
    shared_prices: Floats
    value: float
    bound: float
    in_network: Cut | None
    outcome: Outcome
    seconds: float = 0.0
    iterations: int = 0
    method: str = ""
    history: tuple[Progress, ...] = ()
    bottleneck: tuple[Bottleneck, ...] = ()
    frontier: tuple[Tradeoff, ...] = ()
    alternatives: tuple[Alternative, ...] = ()

    @property
    def collective(self) -> str:
        """Canonical name of the collective, or ``mix``."""
        return self.workload.collective

    @property
    def participants(self) -> tuple[int, ...]:
        """Node indices of the ranks that take part."""
        return self.workload.ranks

    @property
    def size(self) -> int:
        """Bytes of the largest message."""
        return self.workload.size

    @property
    def algbw(self) -> float:
        """Algorithm bandwidth, bytes/s: message bytes over time."""
        return self.value

    @property
    def busbw(self) -> float | None:
        """Bus bandwidth, bytes/s, as nccl-tests defines it; None where groups differ in it, or for their total."""
        kinds = {(group.collective, len(group.ranks)) for group in self.workload.groups}
        if len(kinds) > 1 or self.workload.objective is Objective.TOTAL:
            return None
        return busbw(*kinds.pop(), self.value)

    @property
    def gap(self) -> float:
        """``1 - value / bound``."""
        return relative_gap(self.value, self.bound)

    def group_rates(self) -> tuple[float, ...]:
        """Bytes/s of each group: its message over the time that its slowest demand takes."""
        carried = np.zeros(len(demands := self.workload.demands()))
        for tree in self.trees:
            carried[tree.demand] += tree.rate
        rates = [float("inf")] * len(self.workload.groups)
        for demand, rate in zip(demands, carried.tolist(), strict=True):
            group = self.workload.groups[demand.group]
            rates[demand.group] = min(rates[demand.group], rate * float(group.size / demand.part))
        return tuple(rates)
