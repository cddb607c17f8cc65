"""Sets of ranks, and every algorithm that serves them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from dualcoll.classical.place import Place, place_on
from dualcoll.classical.registry import ALGORITHMS
from dualcoll.collectives.catalogue import ROOTED
from dualcoll.topology.catalog import catalog

COUNTS = (*range(1, 18), 32, 64)
CASES = [(name, collective) for name, served in ALGORITHMS.items() for collective in served]
HIERARCHIES = ("rail", "balanced", "leader", "torus")


def boxes_of(sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Boxes of these sizes, ranks in order."""
    ends = [sum(sizes[:q]) for q in range(len(sizes) + 1)]
    return tuple(tuple(range(a, b)) for a, b in pairwise(ends))


def divisible(place: Place, pieces: int = 4) -> Place:
    """The same place with a message whose parts all have whole bytes."""
    parts = place.ranks * len(place.boxes) * len(place.boxes[0]) * max(len(place.cycles), 1)
    return replace(place, size=4 * pieces * math.lcm(3, 5, 7) * parts, pieces=pieces)


def boxings(ranks: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Several boxes of two sizes, where this number of ranks has them."""
    for size in (2, 3, 4, 8):
        if ranks % size == 0 and ranks > size:
            yield boxes_of([size] * (ranks // size))


def roots(collective: str, ranks: int) -> tuple[int, ...]:
    """The first rank, and one in the middle of what has a root."""
    return (0, ranks // 2) if collective in ROOTED and ranks > 1 else (0,)


def on(spec: str) -> Place:
    """The ranks of a fabric of the catalogue."""
    topology = catalog(spec)
    return place_on(topology, topology.ranks, 1)
