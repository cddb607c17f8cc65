"""AllGather trees and ReduceScatter trees at the same time make an AllReduce: pairs of an in-tree and an out-tree.

Both phases of a pair have one root, which reduces and passes on what the trees carry.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.packing.problem import Column, RoutedTree
from dualcoll.plans.model import Phase, Tree
from dualcoll.topology.arrays import FabricArrays, fabric_arrays, reversal
from dualcoll.topology.model import Topology

__all__ = ["Overlap", "RatedTree", "overlap", "overlap_with_reverse", "reversed_trees"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
RatedTree = tuple[RoutedTree, float]  # with its rate, bytes/s

BUSIEST = 1e-8  # relative; rows this close to the busiest are as busy
DUST = 1e-12  # of a tree's rate


@dataclass(frozen=True, slots=True)
class Overlap:
    """AllGather trees and ReduceScatter trees at the same time.

    Attributes:
        rate: algbw of the AllReduce, bytes/s. bound: no such trees reach more, bytes/s.
        allgather: algbw of the AllGather's trees alone.
        crowding: τ, load over capacity of the busiest row when both run at the rate that they reach alone; from 1 to 2.
        worst: the capacity rows where it is so.
        columns, rates: the same as pairs of an in-tree and an out-tree, float64 (T,), bytes/s; they sum to ``rate``.
    """

    rate: float
    bound: float
    allgather: float
    crowding: float
    worst: tuple[int, ...]
    columns: tuple[Column, ...]
    rates: Floats


def overlap(gathers: list[RatedTree], scatters: list[RatedTree], fabric: FabricArrays) -> Overlap:
    """What out-trees and in-trees reach together; those of each root carry as much, and all out-trees the algbw."""
    on_link = np.zeros(fabric.links)
    for tree, rate in gathers + scatters:
        on_link += rate * np.bincount(tree.route_links, tree.route_share, fabric.links)
    used = fabric.row_loads(on_link) / fabric.capacity
    crowding = float(used.max())
    pairs = _pairs(gathers, scatters)
    allgather = sum(rate for _, rate in gathers)
    return Overlap(
        rate=allgather / crowding,
        bound=allgather / crowding,
        allgather=allgather,
        crowding=crowding,
        worst=tuple(np.flatnonzero(used >= crowding * (1 - BUSIEST)).tolist()),
        columns=tuple(Column.of(0, 0.0, tree) for tree, _ in pairs),
        rates=np.array([rate for _, rate in pairs]) / crowding,
    )


def overlap_with_reverse(topology: Topology, trees: Sequence[Tree]) -> Overlap | None:
    """AllGather trees, as they are, and their reverse at the same time.

    Args:
        trees: of an AllGather plan, or any others that broadcast.

    Returns:
        What they reach as an AllReduce; None where they have no reverse: the fabric is not symmetric, or packets are sprayed.
    """
    partner = reversal(topology)
    if partner is None or any(tree.route_share is not None for tree in trees):
        return None
    routed = [RoutedTree(tree.root, tree.edges, tree.phase, tree.route_ptr, tree.route_links) for tree in trees]
    rated = [(tree, made.rate) for tree, made in zip(routed, trees, strict=True)]
    return overlap(rated, reversed_trees(rated, partner), fabric_arrays(topology))


def reversed_trees(trees: list[RatedTree], partner: Ints) -> list[RatedTree]:
    """Every tree run backwards over the reverse links."""
    return [(_reverse(tree, partner), rate) for tree, rate in trees]


def _reverse(tree: RoutedTree, partner: Ints) -> RoutedTree:
    routes = np.split(tree.route_links, tree.route_ptr[1:-1])
    links = np.concatenate([partner[route[::-1]] for route in routes])
    return RoutedTree(tree.root, tree.edges[:, ::-1], np.full_like(tree.phase, Phase.REDUCE), tree.route_ptr, links)


def _pairs(gathers: list[RatedTree], scatters: list[RatedTree]) -> list[RatedTree]:
    """In-trees and out-trees of a root, matched in order until both are used up."""
    waiting: dict[int, list[RatedTree]] = defaultdict(list)
    for tree, rate in reversed(scatters):
        waiting[tree.root].append((tree, rate))
    pairs: list[RatedTree] = []
    for out_tree, rate in gathers:
        left = rate
        while left > DUST * rate and waiting[out_tree.root]:
            in_tree, other = waiting[out_tree.root].pop()
            taken = min(left, other)
            pairs.append((_pair(in_tree, out_tree), taken))
            left -= taken
            if other - taken > DUST * other:
                waiting[out_tree.root].append((in_tree, other - taken))
    return pairs


def _pair(in_tree: RoutedTree, out_tree: RoutedTree) -> RoutedTree:
    share = None
    if in_tree.route_share is not None and out_tree.route_share is not None:
        share = np.concatenate([in_tree.route_share, out_tree.route_share])
    return RoutedTree(
        root=out_tree.root,
        edges=np.concatenate([in_tree.edges, out_tree.edges]),
        phase=np.concatenate([in_tree.phase, out_tree.phase]),
        route_ptr=np.concatenate([in_tree.route_ptr, out_tree.route_ptr[1:] + in_tree.route_ptr[-1]]),
        route_links=np.concatenate([in_tree.route_links, out_tree.route_links]),
        route_share=share,
    )
