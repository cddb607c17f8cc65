"""Every classical algorithm by name, laid on a fabric: what ``compare`` tries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dualcoll.classical import all_to_all, bruck, halving_doubling, hierarchical, ring, tree
from dualcoll.classical.form import hierarchy
from dualcoll.classical.place import Place, box_orders, chain_pieces, grid_rows, place_on, ring_orders, tree_pieces
from dualcoll.collectives.catalogue import title
from dualcoll.errors import InputError
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.routed import routed
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["ALGORITHMS", "algorithms_for", "build", "draw"]

Builder = Callable[[Place], Schedule]

_RINGS: dict[str, Callable[..., Schedule]] = {
    "allreduce": ring.ring_all_reduce,
    "reducescatter": ring.ring_reduce_scatter,
    "allgather": ring.ring_all_gather,
}


def _in_rings(collective: str, *, both: bool = False) -> Builder:
    def made(place: Place) -> Schedule:
        orders = ring_orders(place)
        return _RINGS[collective](place.ranks, place.size, _both_ways(orders) if both else orders)

    return made


def _both_ways(orders: list[list[int]]) -> list[list[int]]:
    """The rings and those in the other direction that are not among them already."""
    have = {tuple(order) for order in orders}
    return orders + [back for order in orders if tuple(back := [order[0], *order[:0:-1]]) not in have]


def _in_chains(make: Callable[..., Schedule]) -> Builder:
    def made(place: Place) -> Schedule:
        orders = ring_orders(place)
        return make(place.ranks, place.size, place.root, chain_pieces(place, len(orders)), orders)

    return made


def _tree(place: Place) -> Schedule:
    return tree.tree_all_reduce(place.ranks, place.size, _binary_pieces(place))


def _binary_pieces(place: Place) -> int:
    return tree_pieces(place, 1, tree.binary_depth(place.ranks))


def _double_tree(place: Place) -> Schedule:
    """Of boxes with chains inside, as NCCL lays it, where boxes are of one size or cables decide who is next; else of ranks."""
    if (place.is_hierarchy and place.is_even) or place.cycles:
        parents = tree.box_parents(place.boxes, box_orders(place))
    else:
        parents = list(tree.double_parents(place.ranks))
    depth = max(int(tree.depths(up).max()) for up in parents)
    return tree.tree_all_reduce(place.ranks, place.size, tree_pieces(place, len(parents), depth), parents)


def _rooted_tree(make: Callable[..., Schedule]) -> Builder:
    return lambda place: make(place.ranks, place.size, place.root, _binary_pieces(place))


def _flat(make: Callable[[int, int], Schedule]) -> Builder:
    return lambda place: make(place.ranks, place.size)


def _of_matrix(make: Callable[[int, int, NDArray[np.int64]], Schedule]) -> Builder:
    return lambda place: make(place.ranks, place.size, _matrix(place))


def _matrix(place: Place) -> NDArray[np.int64]:
    if place.matrix is None or place.matrix.shape != (place.ranks, place.ranks):
        shape = "no matrix" if place.matrix is None else f"a matrix of shape {place.matrix.shape}"
        raise InputError(f"{shape} for an AllToAllv of {place.ranks} ranks")
    return place.matrix


def _rooted(make: Callable[[int, int, int], Schedule]) -> Builder:
    return lambda place: make(place.ranks, place.size, place.root)


def _boxed(make: Callable[[Place], Schedule]) -> Builder:
    def made(place: Place) -> Schedule:
        hierarchy(place)
        return make(place)

    return made


def _along_cables(place: Place) -> list[list[int]]:
    """The ranks of each box in the order of a ring through it."""
    order = place.cycles[0] if place.cycles else range(len(place.boxes[0]))
    return [[box[i] for i in order] for box in place.boxes] if place.is_even else list(map(list, place.boxes))


ALGORITHMS: dict[str, dict[str, Builder]] = {
    "ring": {name: _in_rings(name) for name in _RINGS},
    "ring-both-ways": {name: _in_rings(name, both=True) for name in _RINGS},
    "chain": {"broadcast": _in_chains(ring.chain_broadcast), "reduce": _in_chains(ring.chain_reduce)},
    "tree": {
        "allreduce": _tree,
        "broadcast": _rooted_tree(tree.tree_broadcast),
        "reduce": _rooted_tree(tree.tree_reduce),
    },
    "double-tree": {"allreduce": _double_tree},
    "halving-doubling": {
        "allreduce": _flat(halving_doubling.halving_doubling_all_reduce),
        "reducescatter": _flat(halving_doubling.halving_reduce_scatter),
        "allgather": _flat(halving_doubling.doubling_all_gather),
    },
    "bruck": {"allgather": _flat(bruck.bruck_all_gather), "alltoall": _flat(bruck.bruck_all_to_all)},
    "direct": {
        "alltoall": _flat(all_to_all.direct_all_to_all),
        "alltoallv": _of_matrix(all_to_all.direct_all_to_all),
        "gather": _rooted(all_to_all.direct_gather),
        "scatter": _rooted(all_to_all.direct_scatter),
    },
    "pairwise": {
        "alltoall": _flat(all_to_all.pairwise_all_to_all),
        "alltoallv": _of_matrix(all_to_all.pairwise_all_to_all),
    },
    "binomial": {"gather": _rooted(all_to_all.binomial_gather), "scatter": _rooted(all_to_all.binomial_scatter)},
    "rail": {
        "alltoall": _boxed(lambda place: all_to_all.rail_all_to_all(place.boxes, place.size)),
        "alltoallv": _boxed(lambda place: all_to_all.rail_all_to_all(place.boxes, place.size, _matrix(place))),
    },
    "balanced": {"allreduce": _boxed(lambda place: hierarchical.balanced_all_reduce(_along_cables(place), place.size))},
    "leader": {"allreduce": _boxed(lambda place: hierarchical.leader_all_reduce(place.boxes, place.size))},
    "torus": {
        "allreduce": lambda place: hierarchical.torus_all_reduce(
            _along_cables(place) if place.is_hierarchy else grid_rows(place), place.size
        )
    },
}


def algorithms_for(collective: str) -> list[str]:
    """Names of the algorithms that serve a collective."""
    return [name for name, served in ALGORITHMS.items() if collective in served]


def draw(name: str, collective: str, place: Place) -> Schedule:
    """An algorithm's schedule without routes.

    Args:
        name: of :data:`ALGORITHMS`. collective: canonical name. place: the ranks.

    Raises:
        InputError: no such algorithm for the collective, or the ranks do not suit it.
    """
    served = ALGORITHMS.get(name, {})
    if collective not in served:
        known = ", ".join(algorithms_for(collective))
        raise InputError(f"{title(collective)} has no algorithm {name!r}", hint=f"use one of {known}")
    try:
        return served[collective](place)
    except InputError as error:
        raise error.within(f"algorithm {name}") from None


def build(
    name: str,
    collective: str,
    topology: Topology,
    ranks: tuple[int, ...],
    size: int,
    *,
    root: int = 0,
    pieces: int | None = None,
    matrix: NDArray[np.int64] | None = None,
    forwarding: Forwarding = Forwarding.SWITCHES,
) -> Schedule:
    """An algorithm's schedule on a fabric.

    Args:
        name: of :data:`ALGORITHMS`. collective: canonical name. ranks: node indices, in rank order.
        size: bytes of the message. root: rank number, where the collective has a root.
        pieces: that chains and trees cut their data into, of each ring or tree; None for a number that serves the size.
        matrix: int64 (P, P), bytes from each rank to each, of an AllToAllv.

    Raises:
        InputError: no such algorithm for the collective, the ranks do not suit it, or two that send to each other have no
            route.
    """
    place = place_on(topology, ranks, size, root=root, pieces=pieces, matrix=matrix)
    drawn = draw(name, collective, place)
    try:
        return routed(drawn, topology, ranks, forwarding=forwarding)
    except InputError as error:
        raise error.within(f"algorithm {name}") from None
