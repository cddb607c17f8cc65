"""The trees of a plan, so many at a time that numpy is kept busy and memory is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dualcoll.plans.model import Tree

__all__ = ["batches"]

MANY_HOPS = 1_000_000  # looked at together


def batches(trees: Iterable[Tree]) -> Iterator[list[Tree]]:
    """A few large trees or many small ones at a time, in order."""
    some: list[Tree] = []
    hops = 0
    for tree in trees:
        some.append(tree)
        hops += tree.route_links.size
        if hops >= MANY_HOPS:
            yield some
            some, hops = [], 0
    if some:
        yield some
