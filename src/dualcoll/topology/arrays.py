"""The fabric as arrays, for kernels and solvers.

Shape letters: V nodes, E directed links, S shared capacities, M = E + S capacity rows.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.topology.model import Topology

__all__ = ["FabricArrays", "fabric_arrays", "reversal"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FabricArrays:
    """Read-only columns of a topology.

    Attributes:
        tail, head: int64 (E,).
        latency: float64 (E,), seconds.
        capacity: float64 (M,), bytes/s: the links, then the shared capacities.
        shared_ptr, shared_link: CSR of the links under each shared capacity, int64 (S+1,) and (nnz,).
    """

    tail: Ints
    head: Ints
    latency: Floats
    capacity: Floats
    shared_ptr: Ints
    shared_link: Ints

    @property
    def links(self) -> int:
        """E, the number of directed links."""
        return int(self.tail.size)

    def row_loads(self, link_loads: Floats) -> Floats:
        """Loads of all capacity rows (M,) from the loads of the links (E,)."""
        if self.shared_link.size == 0:
            return link_loads
        sums = np.add.reduceat(link_loads[self.shared_link], self.shared_ptr[:-1])
        return np.concatenate([link_loads, sums])

    def link_prices(self, row_prices: Floats) -> Floats:
        """What one unit on each link costs (E,): its own price and that of every shared capacity over it."""
        prices = row_prices[: self.links].copy()
        per_entry = np.repeat(row_prices[self.links :], np.diff(self.shared_ptr))
        np.add.at(prices, self.shared_link, per_entry)
        return prices


def fabric_arrays(topology: Topology) -> FabricArrays:
    """The topology's columns, read-only."""
    links = topology.links
    sizes = [len(row.links) for row in topology.shared]
    columns = FabricArrays(
        tail=np.array([link.tail for link in links], dtype=np.int64),
        head=np.array([link.head for link in links], dtype=np.int64),
        latency=np.array([link.latency for link in links], dtype=np.float64),
        capacity=np.array(
            [link.capacity for link in links] + [row.capacity for row in topology.shared], dtype=np.float64
        ),
        shared_ptr=np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64),
        shared_link=np.array([link for row in topology.shared for link in row.links], dtype=np.int64),
    )
    for name in columns.__slots__:
        getattr(columns, name).setflags(write=False)
    return columns


def reversal(topology: Topology) -> Ints | None:
    """For each link the index of its reverse (E,), or None where the fabric is not symmetric.

    The pairing is an involution between links of equal capacity that maps the set of shared capacities onto itself; it is what
    Theorem 2.1 and Lemma 3.6 of the DualColl paper assume. It is verified, never assumed.
    """
    rows_of: dict[int, list[int]] = defaultdict(list)
    for i, row in enumerate(topology.shared):
        for e in row.links:
            rows_of[e].append(i)
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for e, link in enumerate(topology.links):
        groups[link.tail, link.head].append(e)
    partner = np.full(len(topology.links), -1, dtype=np.int64)

    def order(e: int) -> tuple[float, str, int, list[int], int]:
        # alike cables pair by name, then by the rows they share
        return topology.links[e].capacity, topology.links[e].id, len(rows_of[e]), rows_of[e], e

    for (tail, head), forward in groups.items():
        backward = groups.get((head, tail), [])
        if len(forward) != len(backward):
            return None
        for e, back in zip(sorted(forward, key=order), sorted(backward, key=order), strict=True):
            if topology.links[e].capacity != topology.links[back].capacity:
                return None
            partner[e] = back
    rows = sorted((sorted(row.links), row.capacity) for row in topology.shared)
    mirrored = sorted((sorted(int(partner[e]) for e in row.links), row.capacity) for row in topology.shared)
    return partner if rows == mirrored else None
