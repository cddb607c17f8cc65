"""The cheapest column of every demand of a group, from the costs of logical edges (docs/model.md §5).

O(n²) for trees, whatever their number; O(n²) for each root of relayed sends, or for each target if they are fewer.
"""

from __future__ import annotations

from dualcoll.certificates.arborescence import arborescence_costs
from dualcoll.certificates.walks import Costs
from dualcoll.collectives.workload import Demand, Pattern

__all__ = ["cheapest_columns", "unreached"]


def cheapest_columns(demands: list[Demand], ranks: tuple[int, ...], costs: Costs, *, relay: bool) -> list[int | None]:
    """Costs of the demands' cheapest columns, None where there is no column.

    Args:
        demands: of one group, so of one pattern. ranks: of the group, node indices (n,).
        costs: of the logical edges between the ranks, (n, n). relay: whether a send may go over further ranks.
    """
    place: dict[int | None, int] = {rank: i for i, rank in enumerate(ranks)}
    pattern = demands[0].pattern
    if pattern is Pattern.SEND:
        ends = [(place[demand.root], place[demand.target]) for demand in demands]
        return _relayed(ends, costs) if relay else [costs[u][v] for u, v in ends]
    if pattern is Pattern.BROADCAST:
        outward = _arborescences(_transposed(costs))
        return [outward[place[demand.root]] for demand in demands]
    inward = _arborescences(costs)
    if pattern is Pattern.REDUCE:
        return [inward[place[demand.root]] for demand in demands]
    pairs = zip(_arborescences(_transposed(costs)), inward, strict=True)
    cheapest = min((out + into for out, into in pairs if out is not None and into is not None), default=None)
    return [cheapest] * len(demands)


def _arborescences(into: Costs) -> list[int | None]:
    """Costs of the cheapest out-arborescence from every root (n,), arcs as in :func:`arborescence_costs`.

    A missing arc gets a weight that no arborescence without one can reach, which makes any graph strongly connected.
    """
    n = len(into)
    missing = n * max((w for row in into for w in row if w is not None), default=0) + 1
    full = [[missing if w is None else w for w in row] for row in into]
    return [None if cost >= missing else cost for cost in arborescence_costs(full)]


def _relayed(ends: list[tuple[int, int]], costs: Costs) -> list[int | None]:
    """Costs of shortest paths between the ends over any vertices."""
    if len({v for _, v in ends}) < len({u for u, _ in ends}):
        return _relayed([(v, u) for u, v in ends], _transposed(costs))
    far = len(costs) * max((w for row in costs for w in row if w is not None), default=0) + 1
    rows = [[far if w is None else w for w in row] for row in costs]
    paths = {source: _shortest_paths(source, rows, far) for source in {u for u, _ in ends}}
    found = [paths[u][v] for u, v in ends]
    return [None if cost >= far else cost for cost in found]


def _shortest_paths(source: int, rows: list[list[int]], far: int) -> list[int]:
    """Dijkstra's algorithm on a complete graph; ``far`` or more where only missing arcs lead."""
    best = list(rows[source])
    best[source] = 0
    waiting = set(range(len(rows))) - {source}
    while waiting:
        near = min(waiting, key=best.__getitem__)
        reached = best[near]
        if reached >= far:
            break
        waiting.remove(near)
        best = [known if known <= reached + w else reached + w for known, w in zip(best, rows[near], strict=True)]
    return best


def unreached(demand: Demand, ranks: tuple[int, ...], costs: Costs) -> tuple[int, int]:
    """Two ranks (node indices), of a demand without a column, such that nothing leads from the first to the second."""
    if demand.pattern is Pattern.SEND:
        assert demand.root is not None
        assert demand.target is not None
        return demand.root, demand.target
    begin = 0 if demand.root is None else ranks.index(demand.root)
    for backward in (False, True):
        if demand.pattern is (Pattern.BROADCAST if backward else Pattern.REDUCE):
            continue
        table = _transposed(costs) if backward else costs
        reached, fresh = {begin}, [begin]
        while fresh:
            node = fresh.pop()
            found = {i for i, cost in enumerate(table[node]) if cost is not None} - reached
            reached |= found
            fresh += found
        missing = min(set(range(len(ranks))) - reached, default=None)
        if missing is not None:
            return (ranks[missing], ranks[begin]) if backward else (ranks[begin], ranks[missing])
    raise AssertionError("every rank can be reached")


def _transposed(costs: Costs) -> Costs:
    return [list(column) for column in zip(*costs, strict=True)]
