from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from dualcoll.kernels.shortest_paths import shortest_paths
from dualcoll.kernels.trees import root_distances, trace, tree_centre
from tests.kernels.graphs import random_digraph, random_tree

SEEDS = range(100)


@pytest.mark.parametrize("seed", SEEDS)
def test_traced_routes_are_walks_of_the_cheapest_cost(seed: int) -> None:
    """Each route leads from the source's start to the target's end, link by link, and costs the distance."""
    graph = random_digraph(seed, connected=True)
    rng = np.random.default_rng(seed)
    starts = rng.permutation(graph.vertices)
    ends = rng.permutation(graph.vertices)
    distance = np.empty((graph.vertices, graph.vertices))
    arrival = np.empty(distance.shape, np.int64)
    shortest_paths(graph.ptr, graph.head[graph.order], graph.order, graph.price, starts, distance, arrival)
    pairs = rng.integers(graph.vertices, size=(7, 2))
    ptr, links = trace(arrival, graph.tail[graph.order], graph.order, starts, ends, pairs)
    for k, (source, target) in enumerate(pairs.tolist()):
        place = int(starts[source])
        route = links[ptr[k] : ptr[k + 1]].tolist()
        for link in route:
            assert graph.tail[link] == place
            place = int(graph.head[link])
        assert place == ends[target]
        assert graph.price[route].sum() == pytest.approx(distance[source, ends[target]])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_centre_is_a_centre(seed: int) -> None:
    """networkx counts it among the vertices of least eccentricity, and parents lead to it along the tree."""
    n, edges = random_tree(seed)
    centre, parent = tree_centre(edges, n)
    tree: nx.Graph[int] = nx.Graph(edges.tolist())
    tree.add_nodes_from(range(n))
    assert centre in nx.center(tree)
    assert {v: above for v, above in enumerate(parent.tolist()) if above >= 0} == dict(
        nx.bfs_predecessors(tree, centre)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_root_distances_sum_the_weights_to_the_root(seed: int) -> None:
    """Children in any order, vertices with gaps in their numbers: networkx path lengths, nan off the tree."""
    n, edges = random_tree(seed)
    rng = np.random.default_rng(seed)
    number = rng.permutation(2 * n)[:n]
    root = int(rng.integers(n))
    weight = rng.random(n - 1)
    tree: nx.Graph[int] = nx.Graph()
    tree.add_node(root)
    tree.add_weighted_edges_from((int(u), int(v), w) for (u, v), w in zip(edges, weight, strict=True))
    above = dict(nx.bfs_predecessors(tree, root))
    child = np.array([u if v == above.get(u) else v for u, v in edges.tolist()], np.int64)
    parent = np.array([above[c] for c in child.tolist()], np.int64)
    distance = root_distances(number[child], number[parent], weight, int(number[root]), 2 * n)
    expected = np.full(2 * n, np.nan)
    for v, length in nx.single_source_dijkstra_path_length(tree, root).items():
        expected[number[v]] = length
    np.testing.assert_allclose(distance, expected)
