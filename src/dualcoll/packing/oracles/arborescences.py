"""Arborescences: out-trees that broadcast, in-trees that reduce, and pairs of both with a common root.

The cheapest ones are minimum arborescences of the projected digraph, whatever the routing model (DualColl, Theorems 4.1 and 5.1,
sections 6.1 and 6.2). One root-independent contraction each way serves all roots: a projection and O(n²), and O(n) for each
root.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.workload import Pattern
from dualcoll.kernels.arborescence import contract, expand, expand_all, expand_costs
from dualcoll.packing.problem import Column, Offer, RoutedTree, Steering, column_depth
from dualcoll.plans.model import Phase
from dualcoll.routing.routers import Projection, Router

__all__ = ["ArborescenceOracle"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Contraction = tuple[int, Ints, Ints, Ints]


class ArborescenceOracle:
    """Demands of one group, each an out-tree, an in-tree or a pair.

    Args:
        router: logical edges between the group's ranks, who can all reach each other as far as the patterns need it.
        participants: node indices (n,).
        patterns: of each demand (J,). roots: int64 (J,), numbers of participants; of a pair it is not read.
    """

    def __init__(
        self, router: Router, participants: tuple[int, ...], patterns: tuple[Pattern, ...], roots: Ints
    ) -> None:
        self._router = router
        self._nodes = np.array(participants, np.int64)
        self._patterns = patterns
        self._roots = roots
        self.batches = tuple(np.array([j]) for j in range(len(patterns)))

    def price(self, link_prices: Floats) -> Offer:
        """Minimum arborescences for all demands."""
        return _Arborescences(self._router.project(link_prices), self._nodes, self._patterns, self._roots)

    def spread(self, batch: int, link_prices: Floats, steering: Steering) -> list[Column]:
        """The cheapest; its loads are spread from tree to tree only."""
        columns = self.price(link_prices).columns(self.batches[batch])
        return [column for column in columns if column_depth(column) <= steering.shape.max_depth]


class _Arborescences:
    """What one projection leads to."""

    def __init__(self, projection: Projection, nodes: Ints, patterns: tuple[Pattern, ...], roots: Ints) -> None:
        self._projection = projection
        self._nodes = nodes
        self._patterns = patterns
        self._weight = _bridged(projection.weight)
        pairs = Pattern.ALLREDUCE in patterns
        self._outward = contract(self._weight) if pairs or Pattern.BROADCAST in patterns else None
        reverse = np.ascontiguousarray(self._weight.T)
        self._inward = contract(reverse) if pairs or Pattern.REDUCE in patterns else None
        out = _costs(self._weight, self._outward)
        into = _costs(reverse, self._inward)
        kind = np.array([str(pattern) for pattern in patterns])
        both = out + into
        self._roots = np.where(kind == Pattern.ALLREDUCE, int(np.argmin(both)), roots)
        of_kind = [(Pattern.ALLREDUCE, both), (Pattern.BROADCAST, out), (Pattern.REDUCE, into)]
        self.costs: Floats = np.select([kind == pattern for pattern, _ in of_kind], [c[self._roots] for _, c in of_kind])
        self._sends = (kind != Pattern.BROADCAST, self._inward), (kind != Pattern.REDUCE, self._outward)

    def loads(self, amounts: Floats) -> Floats:
        """Loads of the links, in bulk."""
        n = self._nodes.size
        counts = [np.zeros((n, n)), np.zeros((n, n))]
        for into, (mine, contraction) in zip(counts, self._sends, strict=True):
            if contraction is not None:
                expand_all(n, *contraction, self._roots, np.where(mine, amounts, 0.0), into)
        return self._projection.loads(counts[0].T + counts[1])

    def columns(self, demands: Ints) -> list[Column]:
        """Trees with routes."""
        return [self._column(int(j)) for j in demands]

    def _column(self, demand: int) -> Column:
        n, root = self._nodes.size, int(self._roots[demand])
        others = np.flatnonzero(np.arange(n) != root)
        edges, phases = [], []
        for (mine, contraction), phase in zip(self._sends, (Phase.REDUCE, Phase.BROADCAST), strict=True):
            if mine[demand] and contraction is not None:
                above = _parents(n, root, contraction)[others]
                ends = (others, above) if phase is Phase.REDUCE else (above, others)
                edges.append(np.column_stack(ends))
                phases.append(np.full(n - 1, phase, np.int8))
        logical = np.concatenate(edges)
        ptr, links, share = self._projection.routes(logical)
        tree = RoutedTree(
            int(self._nodes[root]), self._nodes[logical], np.concatenate(phases), ptr, links, share
        )
        return Column.of(demand, float(self.costs[demand]), tree)


def _bridged(weight: Floats) -> Floats:
    """The weights with a dear arc where there is none: contraction wants a strongly connected graph.

    An arborescence that can do without such arcs does.
    """
    weight = weight.copy()
    np.fill_diagonal(weight, 0.0)
    finite = np.isfinite(weight)
    if not finite.all():
        weight[~finite] = (weight.shape[0] + 1) * (float(weight[finite].max()) or 1.0)
    np.fill_diagonal(weight, np.inf)
    return weight


def _costs(weight: Floats, contraction: Contraction | None) -> Floats:
    return np.zeros(weight.shape[0]) if contraction is None else expand_costs(weight, *contraction)


def _parents(n: int, root: int, contraction: Contraction) -> Ints:
    up = np.empty(n, np.int64)
    expand(n, *contraction, root, np.empty(2 * n, np.bool_), up)
    return up
