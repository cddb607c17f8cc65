from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from dualcoll.kernels.arborescence import contract, expand, expand_costs
from tests.kernels.graphs import Ints, least_arborescence, random_digraph

SEEDS = range(150)


def _weights(seed: int) -> np.ndarray:
    """A strongly connected digraph as a matrix: sparse (inf), complete, with ties, or with negative weights."""
    graph = random_digraph(seed, connected=True)
    weight = np.full((graph.vertices, graph.vertices), np.inf)
    if seed % 3 == 0:
        weight = np.random.default_rng(seed).integers(-2, 4, weight.shape).astype(float)
    np.minimum.at(weight, (graph.tail, graph.head), graph.price)
    np.fill_diagonal(weight, np.inf)
    return weight


def _parents(weight: np.ndarray, root: int) -> Ints:
    n = len(weight)
    up = np.empty(n, np.int64)
    expand(n, *contract(weight), root, np.empty(2 * n, np.bool_), up)
    return up


@pytest.mark.parametrize("seed", SEEDS)
def test_every_root_has_its_minimum_arborescence(seed: int) -> None:
    """One contraction serves all roots: each cost is what networkx finds for that root alone."""
    weight = _weights(seed)
    costs = expand_costs(weight, *contract(weight))
    arcs = {(int(u), int(v)): float(weight[u, v]) for u, v in np.argwhere(np.isfinite(weight))}
    for root in range(len(weight)):
        expected = sum(arcs[arc] for arc in least_arborescence(arcs, root))
        assert costs[root] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_parents_form_an_arborescence_of_that_cost(seed: int) -> None:
    """Every vertex but the root has one arc from above, all arcs exist, and together they cost what was said."""
    weight = _weights(seed)
    costs = expand_costs(weight, *contract(weight))
    for root in range(len(weight)):
        up = _parents(weight, root)
        assert up[root] == -1
        arcs = [(int(up[v]), v) for v in range(len(weight)) if v != root]
        assert nx.is_arborescence(nx.DiGraph(arcs))
        assert sum(weight[arc] for arc in arcs) == pytest.approx(costs[root], abs=1e-12)


def test_the_weights_stay_as_they_were() -> None:
    """Contraction works on a copy."""
    weight = _weights(0)
    before = weight.copy()
    contract(weight)
    np.testing.assert_array_equal(weight, before)
