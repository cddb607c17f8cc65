"""The least cost of an out-arborescence from every root at once.

Edmonds' contraction, grown along a path (Gabow, Galil, Spencer and Tarjan 1986), does not depend on the root on a strongly
connected graph: O(n²) on a complete one. Every vertex set that it forms gets, once, the weight of the cheapest arc into it
after what the sets inside it have taken. These weights are a feasible dual of the arborescence program, so for each root the
weights of the sets without it add up to a lower bound on every arborescence, and Edmonds' expansion attains it. The proof of
a plan's bound needs only the lower bound (docs/model.md §5).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["arborescence_costs"]


def arborescence_costs(into: Sequence[Sequence[int | None]]) -> list[int]:
    """Cost of the cheapest out-arborescence from each root, shape (n,).

    Args:
        into: ``into[v][u] >= 0`` is the weight of the arc u -> v, None where there is none; the diagonal is not read. The
            graph must be strongly connected.
    """
    n = len(into)
    heaviest = max((w for row in into for w in row if w is not None), default=0)
    far = (n + 2) * heaviest + 1  # stays above every true weight: fewer than n + 1 reductions of at most heaviest each
    rows = [[far if w is None or u == v else w for u, w in enumerate(row)] for v, row in enumerate(into)]
    members = [[v] for v in range(n)]
    set_of = list(range(n))  # the outermost set around each vertex
    weight, parent = [0] * n, [-1] * n  # of each set; the whole graph, formed last, keeps these
    path = [0]
    while len(members[path[-1]]) < n:
        end = path[-1]
        weight[end] = min(rows[end])
        source = set_of[rows[end].index(weight[end])]
        if source not in path:
            path.append(source)
            continue
        start = path.index(source)
        cycle, new = path[start:], len(rows)
        path[start:] = [new]
        merged = [far] * n
        for inner in cycle:
            parent[inner] = new
            merged = [min(a, b - weight[inner]) for a, b in zip(merged, rows[inner], strict=True)]
            rows[inner] = []
        members.append([v for inner in cycle for v in members[inner]])
        for v in members[new]:
            set_of[v] = new
            merged[v] = far
        rows.append(merged)
        weight.append(0)
        parent.append(-1)
    total = sum(weight)
    around = [0] * len(weight)  # what the sets around each set, and it, weigh; an outer set has the larger index
    for inner in reversed(range(len(weight))):
        around[inner] = weight[inner] + (around[parent[inner]] if parent[inner] >= 0 else 0)
    return [total - around[root] for root in range(n)]
