"""From a packing to a plan: trees with node indices and byte shares, and claims that exact arithmetic will support."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.packing.problem import Packing, PackingProblem, RoutedTree
from dualcoll.plans.model import Tree
from dualcoll.plans.shares import split_bytes
from dualcoll.topology.arrays import FabricArrays

__all__ = ["claims", "plan_trees", "tidied"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TIDY = 1e-9  # relative; how much of the bound tidy prices may cost
DUST = 1e-7  # of the prices' worth; a row that is worth less limits nothing
SAFETY = 1e-12  # relative; far above what rounding does to a sum of loads or to a route's price


def plan_trees(problem: PackingProblem, packing: Packing, participants: tuple[int, ...], size: int) -> tuple[Tree, ...]:
    """The trees with a positive rate, scaled until their true worst congestion is just below 1, fastest first."""
    used = np.flatnonzero(packing.rates > 1e-9 * packing.rates.sum())
    rates = packing.rates[used]
    trees = [_without_detours(packing.columns[t].tree, problem.fabric) for t in used]
    loads = np.zeros(problem.fabric.links)
    for tree, rate in zip(trees, rates, strict=True):
        loads += rate * np.bincount(tree.route_links, minlength=loads.size)
    congestion = float((problem.fabric.row_loads(loads) / problem.fabric.capacity).max())
    rates = rates * ((1 - SAFETY) / congestion)
    order = np.argsort(-rates, kind="stable")
    shares = split_bytes(size, rates[order].tolist())
    ranks = np.array(participants, np.int64)
    return tuple(
        Tree(
            rate=float(rates[t]),
            root=int(ranks[trees[t].root]),
            size=share,
            edges=ranks[trees[t].edges],
            phase=trees[t].phase,
            route_ptr=trees[t].route_ptr,
            route_links=trees[t].route_links,
        )
        for t, share in zip(order.tolist(), shares, strict=True)
    )


def tidied(problem: PackingProblem, packing: Packing, row_classes: Ints) -> Packing:
    """The same packing with prices that are easier to read, where they prove as much: equal on alike rows, and no dust.

    Args:
        row_classes: int64 (E+S,), a class for every capacity row.
    """
    labels = np.zeros(problem.capacity.size, np.int64)
    labels[problem.fold] = row_classes
    mean = np.bincount(labels, problem.weight * packing.prices) / np.maximum(np.bincount(labels, problem.weight), 1.0)
    prices, bound = packing.prices, packing.bound
    for proposal in (
        lambda y: mean[labels],
        lambda y: np.where(y * problem.capacity > DUST * problem.worth(y), y, 0.0),
    ):
        proposed = proposal(prices)
        column, _, proved = problem.price(proposed)
        if column.cost > 0 and proved <= bound * (1 + TIDY):
            prices, bound = proposed, proved
    return replace(packing, prices=prices, bound=bound)


def claims(problem: PackingProblem, packing: Packing, trees: tuple[Tree, ...]) -> tuple[float, float, Floats]:
    """What may be claimed.

    Returns:
        value: bytes/s, not above the exact sum of the trees' rates; bound: bytes/s, not below what the prices prove;
        prices: float64 (E+S,), of every capacity row, in 1/(bytes/s) with ``D(y) = 1``.
    """
    value = math.nextafter(math.fsum(tree.rate for tree in trees), 0.0)
    bound = packing.bound * (1 + SAFETY)
    prices = packing.prices / problem.worth(packing.prices)
    return value, bound, prices[problem.fold]


def _without_detours(tree: RoutedTree, fabric: FabricArrays) -> RoutedTree:
    """Cut out any loop of a route.

    Prices so small that adding them changes nothing can make a shortest path visit a node twice; the policy allows the
    shortcut, because a later part of a route is never freer than an earlier one.
    """
    starts = tree.route_ptr[:-1]
    route = np.repeat(np.arange(starts.size), np.diff(tree.route_ptr))
    visits = np.concatenate(
        [
            np.column_stack([route, fabric.head[tree.route_links]]),
            np.column_stack([route[starts], fabric.tail[tree.route_links[starts]]]),
        ]
    )
    visits = visits[np.lexsort(visits.T)]
    if not (visits[1:] == visits[:-1]).all(axis=1).any():
        return tree
    routes = [tree.route_links[a:b].tolist() for a, b in zip(tree.route_ptr[:-1], tree.route_ptr[1:], strict=True)]
    simple = [_cut_loops(route, fabric) for route in routes]
    ptr = np.concatenate([[0], np.cumsum([len(route) for route in simple])]).astype(np.int64)
    links = np.array([link for route in simple for link in route], np.int64)
    return RoutedTree(tree.root, tree.edges, tree.phase, ptr, links)


def _cut_loops(route: list[int], fabric: FabricArrays) -> list[int]:
    kept: list[int] = []
    seen = {int(fabric.tail[route[0]]): 0}
    for link in route:
        head = int(fabric.head[link])
        if head in seen:
            for dropped in kept[seen[head] :]:
                del seen[int(fabric.head[dropped])]
            kept = kept[: seen[head]]
        else:
            kept.append(link)
            seen[head] = len(kept)
    return kept
