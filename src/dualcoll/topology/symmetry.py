"""Links that look alike: colour refinement of the fabric.

Nodes are coloured by kind and role, then again and again by the colours at the other ends of their links, until no
colour splits (1-dimensional Weisfeiler-Leman). Links between equally coloured ends form a class. Classes only propose equal
prices; the oracle proves them, so classes that are coarser than the orbits of automorphisms never make a bound wrong.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.topology.model import Topology

__all__ = ["link_classes"]

Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]


def link_classes(
    topology: Topology,
    roles: Ints,
    *,
    by_capacity: bool,
    rounds: int | None = None,
    most: int | None = None,
) -> Ints:
    """A class number per link, int64 (E,); O((V + E) log V) for each of at most V rounds, a handful in practice.

    Args:
        topology: the fabric.
        roles: int64 (V,); nodes with different ones are told apart.
        by_capacity: whether links of different capacity differ. False gives the classes of the undegraded fabric.
        most: stop once there are more colours than this: on a long chain every node gets one of its own, a round at a time.
        rounds: of refinement at most; 0 tells links apart by their own ends only. None goes on until nothing changes.
    """
    tail = np.array([link.tail for link in topology.links], np.int64)
    head = np.array([link.head for link in topology.links], np.int64)
    labels = np.zeros(tail.size, np.int64)
    if by_capacity:
        labels = _numbered(np.array([link.capacity for link in topology.links]))
    kinds = {kind: i for i, kind in enumerate(sorted({str(node.kind) for node in topology.nodes}))}
    colour = np.array(
        [
            (kinds[str(node.kind)], role, node.box is not None)
            for node, role in zip(topology.nodes, roles.tolist(), strict=True)
        ],
        np.int64,
    )
    colour = _numbered(colour)
    done = 0
    while True:
        if done == rounds:
            return _numbered(np.column_stack([colour[tail], colour[head], labels]))
        done += 1
        seen = np.zeros(colour.size, np.uint64)
        np.add.at(seen, tail, _mixed(labels, colour[head], 1))
        np.add.at(seen, head, _mixed(labels, colour[tail], 2))
        finer = _numbered(np.column_stack([colour.astype(np.uint64), seen]))
        if finer.max() == colour.max() or (most is not None and finer.max() > most):
            return _numbered(np.column_stack([colour[tail], colour[head], labels]))
        colour = finer


def _numbered(values: NDArray[np.generic]) -> Ints:
    """Equal rows get equal numbers, from 0."""
    return np.asarray(np.unique(values, axis=0, return_inverse=True)[1].reshape(-1), dtype=np.int64)


def _mixed(labels: Ints, colours: Ints, direction: int) -> Hashes:
    """A hash per link; sums of them tell multisets apart (splitmix64's finaliser)."""
    with np.errstate(over="ignore"):
        x = labels.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + colours.astype(np.uint64)
        x = (x << np.uint64(2)) + np.uint64(direction)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)), dtype=np.uint64)
