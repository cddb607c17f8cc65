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
from dualcoll.progress import Outcome, Progress, relative_gap
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["Bottleneck", "Cut", "Phase", "Plan", "Tradeoff", "Tree"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Phase(IntEnum):
    """Which half of an AllReduce a logical edge belongs to."""

    REDUCE = 0
    BROADCAST = 1


@dataclass(frozen=True, slots=True)
class Tree:
    """One column of the packing: data is reduced along an in-tree to the root, then broadcast along an out-tree.

    Attributes:
        rate: bytes/s of reduced data.
        root: node index of the common root.
        size: bytes of the message that this tree carries.
        edges: int64 (A, 2), node indices (from, to) of each logical edge; traffic flows from -> to.
        phase: int8 (A,), :class:`Phase` of each edge.
        route_ptr, route_links: CSR of the physical route of each edge, int64 (A+1,) and (H,) link indices.
    """

    rate: float
    root: int
    size: int
    edges: Ints
    phase: NDArray[np.int8]
    route_ptr: Ints
    route_links: Ints

    def route(self, edge: int) -> Ints:
        """Link indices of one edge's route."""
        return self.route_links[self.route_ptr[edge] : self.route_ptr[edge + 1]]


@dataclass(frozen=True, slots=True)
class Cut:
    """A bound with its witness: no more than ``capacity`` bytes/s leave the node set ``side``."""

    capacity: float
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
class Plan:
    """A certified packing.

    Attributes:
        topology: the fabric it was made for.
        collective: canonical name, ``"allreduce"``.
        participants: node indices of the ranks that take part, in rank order.
        forwarding: the forwarding policy.
        size: bytes of the message.
        trees: the packing.
        link_prices: float64 (E,); shared_prices: float64 (S,). Together with the capacities they prove ``bound``.
        value: sum of the rates, bytes/s (never above what the trees carry).
        bound: no schedule without in-network computing is faster, bytes/s.
        in_network: no schedule at all is faster than this cut allows.
        outcome: why the solver stopped; seconds, iterations: what it took; method: which solver.
        history: its progress reports.
        bottleneck: what limits it, the dearest first.
        frontier: the rates of packings with fewer trees, if they were asked for.
    """

    topology: Topology
    collective: str
    participants: tuple[int, ...]
    forwarding: Forwarding
    size: int
    trees: tuple[Tree, ...]
    link_prices: Floats
    shared_prices: Floats
    value: float
    bound: float
    in_network: Cut
    outcome: Outcome
    seconds: float = 0.0
    iterations: int = 0
    method: str = ""
    history: tuple[Progress, ...] = ()
    bottleneck: tuple[Bottleneck, ...] = ()
    frontier: tuple[Tradeoff, ...] = ()

    @property
    def algbw(self) -> float:
        """Algorithm bandwidth, bytes/s: message bytes over time."""
        return self.value

    @property
    def busbw(self) -> float:
        """Bus bandwidth, bytes/s, as nccl-tests defines it."""
        return busbw(self.collective, len(self.participants), self.value)

    @property
    def gap(self) -> float:
        """``1 - value / bound``."""
        return relative_gap(self.value, self.bound)
