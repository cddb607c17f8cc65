"""Every classical algorithm by name, laid on a fabric: what ``compare`` tries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dualcoll.classical import all_to_all, bruck, halving_doubling, hierarchical, ring, tree
from dualcoll.collectives.catalogue import title
from dualcoll.errors import InputError
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.routed import routed
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["ALGORITHMS", "Place", "algorithms_for", "build", "ring_orders"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a schedule is to run.

    Attributes:
        boxes: rank numbers of each box, in rank order; a rank that stands alone is a box.
        size: bytes of the message. root: rank number.
    """

    boxes: tuple[tuple[int, ...], ...]
    size: int
    root: int = 0

    @property
    def ranks(self) -> int:
        """P."""
        return sum(map(len, self.boxes))


Builder = Callable[[Place], Schedule]


def ring_orders(boxes: Sequence[Sequence[int]]) -> list[list[int]]:
    """Rings as NCCL lays them: through each box whole, one ring for each place in the box, entering and leaving on one rail.

    Ring k enters a box at place k and runs up to place k - 1, where it enters the next box and runs down to place k. With an
    odd number of boxes it changes rails once. Boxes of different size get one ring in rank order.
    """
    places = {len(box) for box in boxes}
    if len(boxes) < 2 or len(places) > 1 or places == {1}:
        return [[rank for box in boxes for rank in box]]
    count = places.pop()
    orders = []
    for k in range(count):
        upward = [(k + i) % count for i in range(count)]
        orders.append([box[i] for q, box in enumerate(boxes) for i in (upward if q % 2 == 0 else upward[::-1])])
    return orders


def _both_ways(orders: list[list[int]]) -> list[list[int]]:
    return orders + [order[::-1] for order in orders]


_RINGS: dict[str, Callable[..., Schedule]] = {
    "allreduce": ring.ring_all_reduce,
    "reducescatter": ring.ring_reduce_scatter,
    "allgather": ring.ring_all_gather,
}


def _in_rings(collective: str, *, both: bool = False) -> Builder:
    def made(place: Place) -> Schedule:
        orders = ring_orders(place.boxes)
        return _RINGS[collective](place.ranks, place.size, _both_ways(orders) if both else orders)

    return made


def _flat(make: Callable[[int, int], Schedule]) -> Builder:
    return lambda place: make(place.ranks, place.size)


def _rooted(make: Callable[[int, int, int], Schedule]) -> Builder:
    return lambda place: make(place.ranks, place.size, place.root)


def _boxed(make: Callable[[Sequence[Sequence[int]], int], Schedule]) -> Builder:
    def made(place: Place) -> Schedule:
        if len(place.boxes) < 2 or place.ranks == len(place.boxes):
            raise InputError("it needs several boxes of several ranks")
        return make(place.boxes, place.size)

    return made


ALGORITHMS: dict[str, dict[str, Builder]] = {
    "ring": {name: _in_rings(name) for name in _RINGS},
    "ring-both-ways": {name: _in_rings(name, both=True) for name in _RINGS},
    "chain": {"broadcast": _rooted(ring.chain_broadcast), "reduce": _rooted(ring.chain_reduce)},
    "tree": {
        "allreduce": _flat(tree.tree_all_reduce),
        "broadcast": _rooted(tree.tree_broadcast),
        "reduce": _rooted(tree.tree_reduce),
    },
    "double-tree": {"allreduce": _flat(tree.double_tree_all_reduce)},
    "halving-doubling": {
        "allreduce": _flat(halving_doubling.halving_doubling_all_reduce),
        "reducescatter": _flat(halving_doubling.halving_reduce_scatter),
        "allgather": _flat(halving_doubling.doubling_all_gather),
    },
    "bruck": {"allgather": _flat(bruck.bruck_all_gather), "alltoall": _flat(bruck.bruck_all_to_all)},
    "direct": {
        "alltoall": _flat(all_to_all.direct_all_to_all),
        "gather": _rooted(all_to_all.direct_gather),
        "scatter": _rooted(all_to_all.direct_scatter),
    },
    "pairwise": {"alltoall": _flat(all_to_all.pairwise_all_to_all)},
    "binomial": {"gather": _rooted(all_to_all.binomial_gather), "scatter": _rooted(all_to_all.binomial_scatter)},
    "rail": {"alltoall": _boxed(all_to_all.rail_all_to_all)},
    "balanced": {"allreduce": _boxed(hierarchical.balanced_all_reduce)},
    "leader": {"allreduce": _boxed(hierarchical.leader_all_reduce)},
    "torus": {"allreduce": _boxed(hierarchical.torus_all_reduce)},
}


def algorithms_for(collective: str) -> list[str]:
    """Names of the algorithms that serve a collective."""
    return [name for name, served in ALGORITHMS.items() if collective in served]


def build(
    name: str,
    collective: str,
    topology: Topology,
    ranks: tuple[int, ...],
    size: int,
    *,
    root: int = 0,
    forwarding: Forwarding = Forwarding.SWITCHES,
) -> Schedule:
    """An algorithm's schedule on a fabric.

    Args:
        name: of :data:`ALGORITHMS`. collective: canonical name. ranks: node indices, in rank order.
        size: bytes of the message. root: rank number, where the collective has a root.

    Raises:
        InputError: no such algorithm for the collective, or the ranks do not suit it.
    """
    served = ALGORITHMS.get(name, {})
    if collective not in served:
        known = ", ".join(algorithms_for(collective))
        raise InputError(f"{title(collective)} has no algorithm {name!r}", hint=f"use one of {known}")
    boxes: dict[str, list[int]] = {}
    for number, node in enumerate(ranks):
        box = topology.nodes[node].box
        boxes.setdefault(f"rank {number}" if box is None else f"box {box}", []).append(number)
    try:
        drawn = served[collective](Place(tuple(map(tuple, boxes.values())), size, root))
    except InputError as error:
        raise error.within(f"algorithm {name}") from None
    return routed(drawn, topology, ranks, forwarding=forwarding)
