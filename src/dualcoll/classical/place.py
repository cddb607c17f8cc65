"""Where a classical algorithm is to run: what it wants to know of a fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.classical.parts import good_pieces
from dualcoll.classical.ring_search import Cycle, box_cycles, torus_rows
from dualcoll.errors import InputError
from dualcoll.topology.model import Topology

__all__ = ["Place", "box_orders", "chain_pieces", "grid_rows", "place_on", "ring_orders", "tree_pieces"]


LARGE = 128  # places of a box, beyond which one cycle serves all


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A set of ranks.

    Attributes:
        boxes: rank numbers of each box, in rank order; a rank that stands alone is a box.
        size: bytes of the message. root: rank number, where the collective has a root.
        pieces: that chains and trees cut their data into, of each ring or tree; None for a number that serves the size.
        cycles: rings through a box as places in it, all boxes alike; none for the order of the places.
        rows: rank numbers of each row, where the ranks of a single box form a torus.
        matrix: int64 (P, P), bytes from each rank to each, of an AllToAllv.
    """

    boxes: tuple[tuple[int, ...], ...]
    size: int
    root: int = 0
    pieces: int | None = None
    cycles: tuple[tuple[int, ...], ...] = ()
    rows: tuple[tuple[int, ...], ...] = ()
    matrix: NDArray[np.int64] | None = None

    @property
    def ranks(self) -> int:
        """P."""
        return sum(map(len, self.boxes))

    @property
    def is_hierarchy(self) -> bool:
        """Whether there are several boxes, and several ranks in one of them."""
        return 1 < len(self.boxes) < self.ranks

    @property
    def is_even(self) -> bool:
        """Whether all boxes have the same number of ranks."""
        return len({len(box) for box in self.boxes}) == 1


def place_on(
    topology: Topology,
    ranks: Sequence[int],
    size: int,
    *,
    root: int = 0,
    pieces: int | None = None,
    matrix: NDArray[np.int64] | None = None,
) -> Place:
    """The place that these nodes are; the arguments are those of :class:`Place`.

    Args:
        topology: the fabric. ranks: node indices, in rank order.
    """
    boxes: dict[str | int, list[int]] = {}
    for number, node in enumerate(ranks):
        box = topology.nodes[node].box
        boxes.setdefault(number if box is None else box, []).append(number)
    found = tuple(map(tuple, boxes.values()))
    nodes = [[ranks[rank] for rank in box] for box in found]
    return Place(
        found,
        size,
        root,
        pieces,
        box_cycles(topology, nodes),
        torus_rows(topology, ranks) if len(found) == 1 else (),
        matrix,
    )


def box_orders(place: Place) -> list[tuple[int, ...]]:
    """Places of a box in the order of rings through it: each cycle of a single box; of several boxes one from each place,
    no two ending at the same place.
    """
    count = len(place.boxes[0])
    cycles = place.cycles or (tuple(range(count)),)
    if len(place.boxes) == 1:
        return list(cycles)
    turned = [cycles[i] for i in _with_different_ends(cycles)]
    return [cycle[cycle.index(k) :] + cycle[: cycle.index(k)] for k, cycle in enumerate(turned)]


def _with_different_ends(cycles: Sequence[Cycle]) -> list[int]:
    """For each place a cycle, so that the places before them in these all differ; many cycles are used (Kuhn's matching)."""
    count = len(cycles[0])
    if count > LARGE:
        return [0] * count
    before = [{cycle[i]: cycle[i - 1] for i in range(count)} for cycle in cycles]
    owner: dict[int, int] = {}
    chosen = [0] * count

    def settle(place: int, seen: set[int]) -> bool:
        """Whether the place got a cycle, others having moved if need be."""
        for shift in range(len(cycles)):
            number = (place + shift) % len(cycles)
            end = before[number][place]
            if end not in seen:
                seen.add(end)
                if end not in owner or settle(owner[end], seen):
                    owner[end], chosen[place] = place, number
                    return True
        return False

    for place in range(count):
        settle(place, set())
    return chosen


def ring_orders(place: Place) -> list[list[int]]:
    """Rings as NCCL lays them: through each box whole, one ring for each place in the box, entering and leaving on one rail.

    Ring k enters a box at place k and runs up the box's cycle to the place before k, where it enters the next box and runs
    down to place k. No two rings leave a box at one place. With an odd number of boxes each changes rails once. Boxes of
    different size get one ring in rank order, and a single box one ring for each of its cycles.
    """
    if not place.is_even:
        return [[rank for box in place.boxes for rank in box]]
    return [
        [box[i] for q, box in enumerate(place.boxes) for i in (order if q % 2 == 0 else order[::-1])]
        for order in box_orders(place)
    ]


def grid_rows(place: Place) -> tuple[tuple[int, ...], ...]:
    """The boxes as rows of a grid, or the rows of a torus.

    Raises:
        InputError: neither is there.
    """
    rows = place.boxes if place.is_hierarchy else place.rows
    if not rows:
        raise InputError("it needs several boxes of several ranks, or ranks that form a torus of two dimensions")
    return rows


def chain_pieces(place: Place, rings: int) -> int:
    """Pieces of each ring's part of the message."""
    return place.pieces or good_pieces(place.size // rings, place.ranks, place.ranks * rings)


def tree_pieces(place: Place, trees: int, depth: int) -> int:
    """Pieces of each tree's part of the message."""
    return place.pieces or good_pieces(place.size // trees, 2 * depth, 2 * place.ranks * trees)
