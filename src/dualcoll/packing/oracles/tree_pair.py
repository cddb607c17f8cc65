"""Pairs: an in-tree that reduces to a root and an out-tree that broadcasts from it, chosen apart.

Optimal for AllReduce on any fabric (DualColl, Lemmas 3.4 and 3.5). The cheapest pair is, for the best common root, a minimum
in-arborescence and a minimum out-arborescence of the projected digraph of cheapest allowed routes. One root-independent
contraction each way serves all roots: O(n E log V + n²).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.kernels.arborescence import contract, expand, expand_costs
from dualcoll.packing.oracles.routes import trace_routes
from dualcoll.packing.problem import Column, RoutedTree
from dualcoll.plans.model import Phase
from dualcoll.routing.policy_graph import PolicyGraph
from dualcoll.topology.arrays import FabricArrays

__all__ = ["TreePairOracle"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class TreePairOracle:
    """Minimum in- and out-arborescence with the best common root.

    Args:
        graph: allowed routes between the participants, who can all reach each other.
        fabric: the links.
    """

    def __init__(self, graph: PolicyGraph, fabric: FabricArrays) -> None:
        self._graph = graph
        self._fabric = fabric
        self.roots = int(graph.starts.size)

    def cheapest(self, link_prices: Floats) -> Column:
        """The cheapest pair over all roots."""
        distance, arrival = self._graph.distances(link_prices)
        weight = np.ascontiguousarray(distance[:, self._graph.ends])
        np.fill_diagonal(weight, np.inf)
        reverse = np.ascontiguousarray(weight.T)
        outward, inward = contract(weight), contract(reverse)
        costs = expand_costs(weight, *outward) + expand_costs(reverse, *inward)
        root = int(np.argmin(costs))
        above_out, above_in = _parents(self.roots, root, *outward), _parents(self.roots, root, *inward)
        return self._column(root, above_in, above_out, weight, arrival)

    def star(self, link_prices: Floats, root: int) -> Column | None:
        """Everybody sends to the root and hears from it directly."""
        distance, arrival = self._graph.distances(link_prices)
        weight = distance[:, self._graph.ends]
        np.fill_diagonal(weight, 0.0)
        if not (np.isfinite(weight[root]).all() and np.isfinite(weight[:, root]).all()):
            return None
        above = np.full(self.roots, root)
        return self._column(root, above, above, weight, arrival)

    def _column(self, root: int, above_in: Ints, above_out: Ints, weight: Floats, arrival: Ints) -> Column:
        """The pair of trees in which each rank sends to ``above_in`` and hears from ``above_out``, int64 (n,)."""
        others = np.flatnonzero(np.arange(self.roots) != root)
        up = np.column_stack([others, above_in[others]])
        down = np.column_stack([above_out[others], others])
        edges = np.concatenate([up, down])
        ptr, links = trace_routes(self._graph, arrival, edges)
        phase = np.repeat(np.array([Phase.REDUCE, Phase.BROADCAST], np.int8), self.roots - 1)
        loads = np.bincount(links, minlength=self._fabric.links).astype(np.float64)
        cost = float(weight[edges[:, 0], edges[:, 1]].sum())
        return Column(cost, loads, RoutedTree(root, edges, phase, ptr, links))


def _parents(n: int, root: int, members: int, parent: Ints, arc_tail: Ints, arc_head: Ints) -> Ints:
    up = np.empty(n, np.int64)
    expand(n, members, parent, arc_tail, arc_head, root, np.empty(2 * n, np.bool_), up)
    return up
