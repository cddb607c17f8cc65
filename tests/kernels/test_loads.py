from __future__ import annotations

import numpy as np
import pytest

from dualcoll.kernels.loads import forest_loads, path_costs, path_loads
from dualcoll.kernels.shortest_paths import shortest_paths
from dualcoll.kernels.trees import trace
from tests.kernels.graphs import random_digraph

SEEDS = range(100)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_forest_loads_are_those_of_tracing_each_route(seed: int, free: bool) -> None:
    """Uses on the way to every target are counted on every link, also where all arcs are free and distances tie at 0."""
    graph = random_digraph(seed, connected=True)
    rng = np.random.default_rng(seed)
    price = np.zeros(graph.price.size) if free else graph.price
    starts, ends = rng.permutation(graph.vertices), rng.permutation(graph.vertices)
    tail, head, order = graph.tail[graph.order], graph.head[graph.order], graph.order
    distance = np.empty((graph.vertices, graph.vertices))
    arrival = np.empty(distance.shape, np.int64)
    shortest_paths(graph.ptr, head, order, price, starts, distance, arrival)
    counts = rng.integers(0, 3, distance.shape).astype(float)
    loads = forest_loads(arrival, tail, order, ends, counts, price.size)
    pairs = np.argwhere(counts > 0)
    ptr, links = trace(arrival, tail, order, starts, ends, pairs)
    uses = np.repeat(counts[tuple(pairs.T)], np.diff(ptr))
    np.testing.assert_array_equal(loads, np.bincount(links, uses, price.size))


@pytest.mark.parametrize("seed", range(20))
def test_paths_cost_and_load_what_their_links_do(seed: int) -> None:
    """Sums link by link; a path without links costs inf and loads nothing."""
    rng = np.random.default_rng(seed)
    paths = [rng.permutation(7)[: rng.integers(0, 5)].astype(np.int32) for _ in range(rng.integers(1, 9))]
    ptr = np.concatenate([[0], np.cumsum([path.size for path in paths])])
    links = np.concatenate(paths)
    price, counts = rng.random(7), rng.random(len(paths))
    expected = [price[path].sum() if path.size else np.inf for path in paths]
    np.testing.assert_allclose(path_costs(ptr, links, price), expected)
    loads = np.zeros(7)
    for path, count in zip(paths, counts, strict=True):
        loads[path] += count
    np.testing.assert_allclose(path_loads(ptr, links, counts, 7), loads)
