"""Maximum flow (Dinic 1970) in floating point, with an early stop once the flow is large enough. O(V² A) at worst."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["max_flow"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@nb.njit(cache=True)
def max_flow(
    ptr: Ints, arcs: Ints, head: Ints, residual: Floats, source: int, sink: int, enough: float
) -> tuple[float, NDArray[np.bool_]]:
    """Flow from source to sink, stopped at ``enough``.

    Args:
        ptr, arcs: CSR of arc ids by tail, int64 (V+1,) and (2A,); arc ``2k`` and ``2k+1`` are each other's reverse.
        head: int64 (2A,), head of each arc.
        residual: float64 (2A,), residual capacities; changed in place.
        source, sink: vertices.
        enough: stop as soon as the flow is at least this.

    Returns:
        value: the flow; side: bool (V,), the source's side of a minimum cut, meaningful where ``value < enough``.
    """
    vertices = ptr.size - 1
    level = np.empty(vertices, np.int64)
    queue = np.empty(vertices, np.int64)
    pointer = np.empty(vertices, np.int64)
    trail = np.empty(vertices, np.int64)
    value = 0.0
    while value < enough:
        level[:] = -1
        level[source] = 0
        queue[0] = source
        first, last = 0, 1
        while first < last and level[sink] < 0:
            x = queue[first]
            first += 1
            for k in range(ptr[x], ptr[x + 1]):
                a = arcs[k]
                if residual[a] > 0 and level[head[a]] < 0:
                    level[head[a]] = level[x] + 1
                    queue[last] = head[a]
                    last += 1
        if level[sink] < 0:
            break
        pointer[:] = ptr[:-1]
        depth = 0
        x = source
        while True:
            if x == sink:
                push = np.inf
                for i in range(depth):
                    push = min(push, residual[trail[i]])
                back = depth
                for i in range(depth - 1, -1, -1):
                    residual[trail[i]] -= push
                    residual[trail[i] ^ 1] += push
                    if residual[trail[i]] <= 0:
                        back = i
                value += push
                if value >= enough:
                    break
                depth = back
                x = head[trail[depth] ^ 1]
                continue
            advanced = False
            while pointer[x] < ptr[x + 1]:
                a = arcs[pointer[x]]
                if residual[a] > 0 and level[head[a]] == level[x] + 1:
                    trail[depth] = a
                    depth += 1
                    x = head[a]
                    advanced = True
                    break
                pointer[x] += 1
            if advanced:
                continue
            if depth == 0:
                break
            level[x] = -1
            depth -= 1
            x = head[trail[depth] ^ 1]
            pointer[x] += 1
    return value, level >= 0
