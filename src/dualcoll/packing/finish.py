"""From a packing to a plan: trees with node indices and byte shares, and claims that exact arithmetic will support."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.workload import Demand, Objective, Workload
from dualcoll.packing.pool import Packing
from dualcoll.packing.problem import PackingProblem, RoutedTree
from dualcoll.plans.model import Tree
from dualcoll.plans.shares import split_bytes
from dualcoll.topology.arrays import FabricArrays

__all__ = ["claims", "plan_trees", "tidied"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TIDY = 1e-9  # relative; how much of the bound tidy prices may cost
DUST = 1e-7  # of the prices' worth; a row that is worth less limits nothing
SAFETY = 1e-12  # relative; far above what rounding does to a sum of loads or to a route's price


def plan_trees(problem: PackingProblem, packing: Packing, demands: Sequence[Demand]) -> tuple[Tree, ...]:
    """The trees with a positive rate, scaled until their true worst congestion is just below 1; by demand, fastest first."""
    least = 1e-9 * packing.value * problem.part
    used = [t for t in np.flatnonzero(packing.rates) if packing.rates[t] > least[packing.columns[t].demand]]
    demand = np.array([packing.columns[t].demand for t in used], np.int64)
    rates = packing.rates[used] * _excess(problem, demand, packing.rates[used])[demand]
    used = [t for t, rate in zip(used, rates.tolist(), strict=True) if rate > 0]
    demand, rates = demand[rates > 0], rates[rates > 0]
    trees = [_without_detours(packing.columns[t].tree, problem.fabric) for t in used]
    loads = np.zeros(problem.fabric.links)
    for tree, rate in zip(trees, rates.tolist(), strict=True):
        np.add.at(loads, tree.route_links, rate if tree.route_share is None else rate * tree.route_share)
    congestion = float((problem.fabric.row_loads(loads) / problem.fabric.capacity).max())
    rates = rates * ((1 - SAFETY) / congestion)
    order = np.lexsort([np.arange(rates.size), -rates, demand])
    made: list[Tree] = []
    for mine in np.split(order, np.flatnonzero(np.diff(demand[order])) + 1):
        j = int(demand[mine[0]])
        shares = split_bytes(demands[j].size, rates[mine].tolist())
        for t, share in zip(mine.tolist(), shares, strict=True):
            tree = trees[t]
            made.append(
                Tree(
                    rate=float(rates[t]),
                    demand=j,
                    root=tree.root,
                    size=share,
                    edges=tree.edges,
                    phase=tree.phase,
                    route_ptr=tree.route_ptr,
                    route_links=tree.route_links,
                    route_share=tree.route_share,
                )
            )
    return tuple(made)


def _excess(problem: PackingProblem, demand: Ints, rates: Floats) -> Floats:
    """A factor for each demand (J,) that leaves it no faster than its goal: faster would be of no use."""
    carried = np.bincount(demand, rates, problem.part.size) / problem.part
    pace = np.full(problem.goals, np.inf)
    np.minimum.at(pace, problem.goal, carried)
    return np.asarray(np.divide(pace[problem.goal], carried, out=np.zeros_like(carried), where=carried > 0))


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
        proved = problem.price(proposed).bound
        if proved <= bound * (1 + TIDY):
            prices, bound = proposed, proved
    return replace(packing, prices=prices, bound=bound)


def claims(
    problem: PackingProblem, packing: Packing, workload: Workload, trees: tuple[Tree, ...]
) -> tuple[float, float, Floats]:
    """What may be claimed.

    Returns:
        value: bytes/s, not above what the trees carry, exactly; bound: bytes/s, not below what the prices prove;
        prices: float64 (E+S,), of every capacity row, in 1/(bytes/s) with ``D(y) = 1``.
    """
    value = math.nextafter(_exact_value(workload, trees), 0.0)
    bound = packing.bound * (1 + SAFETY)
    prices = packing.prices / problem.worth(packing.prices)
    return value, bound, prices[problem.fold]


def _exact_value(workload: Workload, trees: tuple[Tree, ...]) -> float:
    """The rate of docs/model.md §4, rounded once."""
    demands = workload.demands()
    rates: list[list[float]] = [[] for _ in demands]
    for tree in trees:
        rates[tree.demand].append(tree.rate)
    paces = [sum(map(Fraction, mine), Fraction(0)) / demand.part for mine, demand in zip(rates, demands, strict=True)]
    if workload.objective is Objective.SLOWEST:
        return float(workload.size * min(paces))
    of_group: dict[int, Fraction] = {}
    for pace, demand in zip(paces, demands, strict=True):
        rate = pace * workload.groups[demand.group].size
        of_group[demand.group] = min(rate, of_group.get(demand.group, rate))
    return float(sum(of_group.values()))


def _without_detours(tree: RoutedTree, fabric: FabricArrays) -> RoutedTree:
    """Cut out any loop of a route.

    Prices so small that adding them changes nothing can make a shortest path visit a node twice; the policy allows the
    shortcut, because a later part of a route is never freer than an earlier one.
    """
    if tree.route_share is not None:
        return tree
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
