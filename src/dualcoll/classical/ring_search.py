"""Rings along the cables between the ranks of a box, as NCCL searches for them, and ranks that form a torus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dualcoll.topology.model import Topology

__all__ = ["Cycle", "box_cycles", "torus_rows"]

Cycle = tuple[int, ...]

WORK = 1_000_000  # cables looked at by a search, after which what has been found is taken


def box_cycles(topology: Topology, boxes: Sequence[Sequence[int]]) -> tuple[Cycle, ...]:
    """Cycles through all places of a box along cables between its ranks, each in both directions.

    Cycles share no cable, or no more than its capacity allows at one speed for all. Of all speeds the one is taken at which
    they carry most together.

    Args:
        topology: the fabric. boxes: node indices of each box.

    Returns:
        Places in ring order; nothing for boxes that differ in size or have no such cycle, as where ranks meet at a switch.
    """
    sizes = {len(box) for box in boxes}
    if len(sizes) != 1 or min(sizes) < 3:
        return ()
    capacity = _capacities(topology, boxes)
    best: tuple[float, list[Cycle]] = 0.0, []
    for speed in sorted(set(capacity.values()), reverse=True):
        cables = {pair: int(most / speed) for pair, most in capacity.items() if most >= speed}
        found = _disjoint_cycles(cables, min(sizes))
        if speed * len(found) > best[0]:
            best = speed * len(found), found
    return tuple(way for cycle in best[1] for way in (cycle, (cycle[0], *cycle[:0:-1])))


def torus_rows(topology: Topology, ranks: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Rank numbers row by row, if ranks in their order form a two-dimensional torus of cables; else nothing.

    Args:
        topology: the fabric. ranks: node indices, in rank order.
    """
    joined = {(link.tail, link.head) for link in topology.links}
    count = len(ranks)
    for width in range(2, count // 2 + 1):
        if count % width == 0:
            right = (i - i % width + (i + 1) % width for i in range(count))
            down = ((i + width) % count for i in range(count))
            if all((ranks[a], ranks[b]) in joined for ends in (right, down) for a, b in enumerate(ends)):
                return tuple(tuple(range(i, i + width)) for i in range(0, count, width))
    return ()


def _capacities(topology: Topology, boxes: Sequence[Sequence[int]]) -> dict[tuple[int, int], float]:
    """Bytes/s both ways between places a < b that have a cable in every box: the least of all boxes and directions."""
    spot = {node: (number, place) for number, box in enumerate(boxes) for place, node in enumerate(box)}
    ways: Counter[tuple[int, int, int]] = Counter()
    for link in topology.links:
        if link.tail in spot and link.head in spot and spot[link.tail][0] == spot[link.head][0]:
            ways[(*spot[link.tail], spot[link.head][1])] += link.capacity  # type: ignore[assignment]
    pairs = {(a, b) for number, a, b in ways if number == 0 and a < b}
    least = {
        (a, b): min(ways[number, *ends] for number in range(len(boxes)) for ends in ((a, b), (b, a))) for a, b in pairs
    }
    return {pair: float(most) for pair, most in sorted(least.items()) if most > 0}


def _disjoint_cycles(cables: dict[tuple[int, int], int], count: int) -> list[Cycle]:
    """As many Hamiltonian cycles as a search of limited length finds that together use each pair no more often than given."""
    free = {ends: most for (a, b), most in cables.items() for ends in ((a, b), (b, a))}
    beside: list[list[int]] = [[] for _ in range(count)]
    for a, b in free:
        beside[a].append(b)
    best: list[int] = [0]
    walk = [0]  # one cycle after the other, each from place 0 back to it
    open_ways = [_ways(free, beside, walk, count)]
    work = 0
    while open_ways and work < WORK:
        work += len(beside[walk[-1]]) ** 2
        if not open_ways[-1]:
            open_ways.pop()
            back = walk.pop()
            if walk:
                _use(free, walk[-1], back, 1)
            continue
        following = open_ways[-1].pop()
        _use(free, walk[-1], following, -1)
        walk.append(following)
        if len(walk) % count == 1 and len(walk) > len(best):
            best = walk.copy()
            if min(sum(free[a, b] for b in beside[a]) for a in range(count)) < 2:
                break
        open_ways.append(_ways(free, beside, walk, count))
    return [tuple(best[i : i + count]) for i in range(0, len(best) - 1, count)]


def _ways(free: dict[tuple[int, int], int], beside: list[list[int]], walk: list[int], count: int) -> list[int]:
    """Where a walk may go on, the best last: to the place with the fewest ways on (Warnsdorff)."""
    here = walk[-1]
    seen = set(walk[(len(walk) - 1) // count * count :])
    if len(seen) == count:
        return [0] if free.get((here, 0)) else []
    ways = [b for b in beside[here] if free[here, b] and b not in seen]
    return sorted(ways, key=lambda b: (-sum(free[b, c] > 0 and c not in seen for c in beside[b]), -b))


def _use(free: dict[tuple[int, int], int], a: int, b: int, change: int) -> None:
    free[a, b] += change
    free[b, a] += change
