"""Minimum spanning arborescences for every root at once (Edmonds 1967, Tarjan 1977: path growing and contraction).

On a strongly connected graph the contraction does not depend on the root: contract once in O(n²), then expand for each root in
O(n).
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["contract", "expand", "expand_all", "expand_costs"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@nb.njit(cache=True)
def contract(weight: Floats) -> tuple[int, Ints, Ints, Ints]:
    """Contract a strongly connected digraph to one vertex.

    Args:
        weight: float64 (n, n); ``weight[u, v]`` of arc u -> v, inf where there is none and on the diagonal.

    Returns:
        members: number of members of the hierarchy: vertices 0..n-1, then one per contracted cycle.
        parent: int64 (2n,), the cycle that a member was contracted into, -1 at the top.
        arc_tail, arc_head: int64 (2n,), the original arc that entered the member when it was contracted.
    """
    n = weight.shape[0]
    reduced = weight.copy()
    tail = np.empty((n, n), np.int64)
    head = np.empty((n, n), np.int64)
    for i in range(n):
        tail[i, :] = i
        head[:, i] = i
        reduced[i, i] = np.inf
    member = np.arange(n)
    parent = np.full(2 * n, -1, np.int64)
    arc_tail = np.full(2 * n, -1, np.int64)
    arc_head = np.full(2 * n, -1, np.int64)
    alive = np.ones(n, np.bool_)
    on_path = np.zeros(n, np.bool_)
    path = np.empty(n, np.int64)
    entering = np.zeros(n)
    path[0] = 0
    on_path[0] = True
    length = 1
    members = n
    left = n
    while left > 1:
        b = path[length - 1]
        a = -1
        for i in range(n):
            if alive[i] and i != b and (a < 0 or reduced[i, b] < reduced[a, b]):
                a = i
        arc_tail[member[b]] = tail[a, b]
        arc_head[member[b]] = head[a, b]
        entering[b] = reduced[a, b]
        if not on_path[a]:
            path[length] = a
            on_path[a] = True
            length += 1
            continue
        first = length - 1
        while path[first] != a:
            first -= 1
        keep = path[first]
        for q in range(first, length):
            x = path[q]
            parent[member[x]] = members
            for i in range(n):
                if alive[i]:
                    reduced[i, x] -= entering[x]
        for q in range(first + 1, length):
            x = path[q]
            for i in range(n):
                if not alive[i] or i in (keep, x):
                    continue
                if reduced[i, x] < reduced[i, keep]:
                    reduced[i, keep] = reduced[i, x]
                    tail[i, keep] = tail[i, x]
                    head[i, keep] = head[i, x]
                if reduced[x, i] < reduced[keep, i]:
                    reduced[keep, i] = reduced[x, i]
                    tail[keep, i] = tail[x, i]
                    head[keep, i] = head[x, i]
            alive[x] = False
            on_path[x] = False
            left -= 1
        reduced[keep, keep] = np.inf
        member[keep] = members
        members += 1
        length = first + 1
    return members, parent, arc_tail, arc_head


@nb.njit(cache=True)
def expand(
    n: int, members: int, parent: Ints, arc_tail: Ints, arc_head: Ints, root: int, opened: NDArray[np.bool_], up: Ints
) -> None:
    """The minimum arborescence out of ``root``: ``up[v]`` (n,) becomes the tail of the arc into v, -1 at the root.

    ``opened`` is scratch space of at least ``members`` entries.
    """
    opened[:members] = False
    up[root] = -1
    x = root
    while x != -1:
        opened[x] = True
        x = parent[x]
    # members were numbered when their cycle closed, so every container comes later than what it contains
    for c in range(members - 1, -1, -1):
        if opened[c]:
            continue
        v = arc_head[c]
        up[v] = arc_tail[c]
        x = v
        while x != c:
            opened[x] = True
            x = parent[x]
        opened[c] = True


@nb.njit(cache=True)
def expand_costs(weight: Floats, members: int, parent: Ints, arc_tail: Ints, arc_head: Ints) -> Floats:
    """Cost of the minimum arborescence out of every root, float64 (n,)."""
    n = weight.shape[0]
    opened = np.empty(2 * n, np.bool_)
    up = np.empty(n, np.int64)
    costs = np.zeros(n)
    for root in range(n):
        expand(n, members, parent, arc_tail, arc_head, root, opened, up)
        for v in range(n):
            if v != root:
                costs[root] += weight[up[v], v]
    return costs


@nb.njit(cache=True)
def expand_all(
    n: int, members: int, parent: Ints, arc_tail: Ints, arc_head: Ints, roots: Ints, amounts: Floats, counts: Floats
) -> None:
    """Add ``amounts[i]`` to ``counts[u, v]`` (n, n) for every arc of the minimum arborescence out of ``roots[i]``."""
    opened = np.empty(2 * n, np.bool_)
    up = np.empty(n, np.int64)
    for i in range(roots.size):
        if amounts[i] != 0.0:
            expand(n, members, parent, arc_tail, arc_head, roots[i], opened, up)
            for v in range(n):
                if v != roots[i]:
                    counts[up[v], v] += amounts[i]
