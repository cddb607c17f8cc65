"""Meshes, tori and hypercubes recognised from their cables, and where their nodes stand in a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator

__all__ = ["grid_positions", "grid_sides"]

Pair = tuple[int, int]
Point = tuple[float, float]

FLAT = 40  # a longer chain does not fit one row


def grid_positions(count: int, pairs: set[Pair]) -> list[Point] | None:
    """Columns and rows of nodes that are wired as a grid of two or more dimensions, or as a short chain; else None.

    Args:
        count: nodes, numbered row by row if they are a grid.
        pairs: (lower, higher) node numbers of each cable.
    """
    found = grid_sides(count, pairs)
    if found is None:
        return None
    sides, wrapped = found
    if len(sides) == 1 and (wrapped or count > FLAT):
        return None
    steps = _steps(sides)
    spots = [(0.0, 0.0)]
    for side, (right, down) in zip(sides, steps, strict=True):
        spots = [(x + i * right, y + i * down) for x, y in spots for i in range(side)]
    left, top = min(x for x, _ in spots), min(y for _, y in spots)
    return [(x - left, y - top) for x, y in spots]


def grid_sides(count: int, pairs: set[Pair]) -> tuple[tuple[int, ...], bool] | None:
    """Sides, slowest first, and whether it closes, of the grid that these cables form; None if they form none."""
    for sides in sorted(_factorisations(count), key=len):
        for wrap in (False, True):
            if _cables(sides, wrap) == len(pairs) and _edges(sides, wrap) == pairs:
                return sides, wrap
    return None


def _factorisations(count: int) -> Iterator[tuple[int, ...]]:
    if count > 1:
        yield (count,)
    for side in range(2, count // 2 + 1):
        if count % side == 0:
            for rest in _factorisations(count // side):
                yield (side, *rest)


def _cables(sides: tuple[int, ...], wrap: bool) -> int:
    count = math.prod(sides)
    return sum(count if wrap and side > 2 else count - count // side for side in sides)


def _edges(sides: tuple[int, ...], wrap: bool) -> set[Pair]:
    count, stride = math.prod(sides), math.prod(sides)
    edges: set[Pair] = set()
    for side in sides:
        stride //= side
        for node in range(count):
            place = node // stride % side
            if place + 1 < side:
                edges.add((node, node + stride))
            elif wrap and side > 2:
                edges.add((node - place * stride, node))
    return edges


def _steps(sides: tuple[int, ...]) -> list[Point]:
    """What one step along each dimension moves: right, down, slantwise, then right and down past all before."""
    steps: list[Point] = [(1.0, 0.0), (0.0, 1.0)]
    fast = sides[::-1]
    width, height = float(fast[0]), float(fast[1]) if len(fast) > 1 else 1.0
    for i, side in enumerate(fast[2:]):
        if i == 0:
            steps.append((0.8 / side, -0.7 / side))
            width, height = width + 0.8, height + 0.7
        elif i % 2:
            steps.append((width + 0.4, 0.0))
            width = side * (width + 0.4)
        else:
            steps.append((0.0, height + 0.4))
            height = side * (height + 0.4)
    return steps[: len(fast)][::-1]
