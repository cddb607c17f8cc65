"""Node sets and what can leave them: least cuts by maximum flow, and sweeps over orders of the nodes.

Everybody forwards here, whatever the policy: a cut that holds for such a fabric holds for any.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.max_flow import max_flow
from dualcoll.kernels.shortest_paths import shortest_paths
from dualcoll.topology.arrays import FabricArrays

__all__ = ["Side", "Sides"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Side = NDArray[np.bool_]

SEEDS = 16  # ranks from which distances make an order
WAVES = 3  # slow ones, of which each makes an order
ROUNDS, SMOOTH = 20, 10  # of averaging; between two rounds the waves are made unlike each other


class Sides:
    """The node sets of a fabric.

    Args:
        nodes: V. ranks: node indices (R,) of those who take part.
    """

    def __init__(self, fabric: FabricArrays, nodes: int, ranks: tuple[int, ...]) -> None:
        self.fabric = fabric
        self.nodes = nodes
        self.ranks = np.array(ranks, np.int64)
        self.capacity = fabric.capacity[: fabric.links]
        weight = np.bincount(fabric.head, self.capacity, nodes) + np.bincount(fabric.tail, self.capacity, nodes)
        self._weight = np.where(weight > 0, weight, 1.0)
        self._networks: dict[bool, tuple[Ints, Ints, Ints]] = {}

    def limits(self, side: Side) -> Ints:
        """The capacity rows that limit what leaves the side.

        They are the links out of it; but where those under a shared capacity have more than it, it counts instead. Shared
        capacities are taken in order, as a check takes them.
        """
        fabric = self.fabric
        out = side[fabric.tail] & ~side[fabric.head]
        shared = []
        for row in range(fabric.links, fabric.capacity.size):
            under = fabric.shared_link[slice(*fabric.shared_ptr[row - fabric.links : row - fabric.links + 2])]
            under = under[out[under]]
            if fabric.capacity[row] < self.capacity[under].sum():
                shared.append(row)
                out[under] = False
        return np.concatenate([np.flatnonzero(out), np.array(shared, np.int64)])

    def leaving(self, side: Side) -> float:
        """Bytes/s that can leave the side."""
        return float(self.fabric.capacity[self.limits(side)].sum())

    def least_cut(self, supply: Floats, drain: Floats, enough: float, *, reverse: bool = False) -> Side:
        """The sources' side of a least cut, links counting by themselves; of no use where a flow of ``enough`` exists.

        Args:
            supply, drain: float64 (R,), bytes/s that enter and leave the flow at each rank; may be inf.
            reverse: turn all links round; the side is then the drains' one, what leaves it being the same.
        """
        if reverse not in self._networks:
            self._networks[reverse] = self._network(reverse=reverse)
        ptr, arcs, head = self._networks[reverse]
        capacity = np.concatenate([self.capacity, supply, drain])
        residual = np.column_stack([capacity, np.zeros_like(capacity)]).ravel()
        side = max_flow(ptr, arcs, head, residual, self.nodes, self.nodes + 1, enough)[1][: self.nodes]
        return ~side if reverse else side

    def _network(self, *, reverse: bool) -> tuple[Ints, Ints, Ints]:
        """CSR of the links, of an arc from one source of everything to each rank, and of one from each rank to one sink."""
        fabric, ranks = self.fabric, self.ranks
        tail, head = (fabric.head, fabric.tail) if reverse else (fabric.tail, fabric.head)
        tails = np.concatenate([tail, np.full(ranks.size, self.nodes), ranks])
        heads = np.concatenate([head, ranks, np.full(ranks.size, self.nodes + 1)])
        arc_tail, arc_head = np.column_stack([tails, heads]).ravel(), np.column_stack([heads, tails]).ravel()
        ptr = np.zeros(self.nodes + 3, np.int64)
        np.cumsum(np.bincount(arc_tail, minlength=self.nodes + 2), out=ptr[1:])
        return ptr, np.argsort(arc_tail, kind="stable"), arc_head

    def closest(self, inside: Side) -> Side:
        """The node set with just these ranks, bool (R,), that the least can leave."""
        supply, drain = np.where(inside, np.inf, 0.0), np.where(inside, 0.0, np.inf)
        return self.least_cut(supply, drain, np.inf)

    def leaving_prefixes(self, order: Ints) -> Floats:
        """What can leave the first p nodes of an order int64 (V,), float64 (V+1,), links counting by themselves."""
        place = _inverse(order)
        return over_intervals(place[self.fabric.tail], place[self.fabric.head], self.capacity, self.nodes)

    def orders(self, prices: Floats | None = None) -> Iterator[Ints]:
        """Orders of the nodes, int64 (V,) each, whose prefixes are likely to be tight sides.

        By distance from a rank, where a link is as long as it is narrow, or as its price float64 (E,) says; as the ranks are
        listed, switches between theirs; and along the slowest waves of the fabric.
        """
        for length in [1.0 / self.capacity] + ([] if prices is None else [prices]):
            for distance in self._distances(length):
                yield np.argsort(distance, kind="stable")
        yield np.argsort(self._listed(), kind="stable")
        for wave in self._waves():
            yield np.argsort(wave, kind="stable")

    def _distances(self, length: Floats) -> Floats:
        fabric = self.fabric
        order = np.argsort(fabric.tail, kind="stable")
        ptr = np.zeros(self.nodes + 1, np.int64)
        np.cumsum(np.bincount(fabric.tail, minlength=self.nodes), out=ptr[1:])
        seeds = self.ranks[:: max(1, self.ranks.size // SEEDS)]
        distance = np.empty((seeds.size, self.nodes))
        shortest_paths(ptr, fabric.head[order], order, length, seeds, distance, np.empty(distance.shape, np.int64))
        return distance

    def _listed(self) -> Floats:
        """A place for each node: ranks as they are listed, the others amid their neighbours."""
        fixed = np.zeros(self.nodes, bool)
        fixed[self.ranks] = True
        place = np.full(self.nodes, self.ranks.size / 2)
        place[self.ranks] = np.arange(self.ranks.size)
        for _ in range(SMOOTH):
            place = np.where(fixed, place, self._averaged(place))
        return place

    def _averaged(self, place: Floats) -> Floats:
        """The mean place of each node's neighbours, float64 (V,), weighed by capacity."""
        tail, head = self.fabric.tail, self.fabric.head
        pull = np.bincount(head, self.capacity * place[tail], self.nodes)
        pull += np.bincount(tail, self.capacity * place[head], self.nodes)
        return np.asarray(pull / self._weight)

    def _waves(self) -> Floats:
        """Places of the nodes, float64 (WAVES, V), that change slowly from neighbour to neighbour, and are unlike each other.

        Random ones at first, then averaged with their neighbours' again and again: a power iteration.
        """
        places = np.random.default_rng(0).standard_normal((WAVES, self.nodes))
        for _ in range(ROUNDS):
            for _ in range(SMOOTH):
                places = (places + np.array([self._averaged(place) for place in places])) / 2
            places -= places @ self._weight[:, None] / self._weight.sum()
            places = np.linalg.qr(places.T)[0].T
        return np.asarray(places)


def over_intervals(first: Ints, last: Ints, amount: Floats, size: int) -> Floats:
    """At each p from 0 to ``size``, the amounts with ``first < p <= last``, summed: float64 (size+1,)."""
    there = first < last
    steps = np.bincount(first[there] + 1, amount[there], size + 2) - np.bincount(
        last[there] + 1, amount[there], size + 2
    )
    return np.asarray(np.cumsum(steps)[: size + 1])


def _inverse(order: Ints) -> Ints:
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return place
