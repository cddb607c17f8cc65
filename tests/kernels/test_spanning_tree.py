from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from dualcoll.kernels.spanning_tree import prim, voronoi_spanning_tree
from tests.kernels.graphs import random_digraph

SEEDS = range(200)


def _cost(tree: nx.Graph[int]) -> float:
    return float(tree.size(weight="weight"))


@pytest.mark.parametrize("seed", SEEDS)
def test_voronoi_tree_costs_what_the_tree_of_the_metric_closure_costs(seed: int) -> None:
    """Terminals among other vertices, parallel, free and tied cables: Mehlhorn's tree against networkx, and its walks."""
    graph = random_digraph(seed, connected=True)
    terminals = 2 + seed % (graph.vertices - 1)
    ends = np.concatenate([graph.tail, graph.head])
    order = np.argsort(ends, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=graph.vertices))])
    head = np.concatenate([graph.head, graph.tail])[order]
    cable = np.tile(np.arange(graph.tail.size), 2)[order]
    cost, edges, path_ptr, path = voronoi_spanning_tree(
        ptr, head, cable, graph.tail, graph.head, graph.price, terminals
    )

    both_ways = graph.networkx()
    for tail, end, data in graph.networkx().edges(data=True):
        back = both_ways.get_edge_data(end, tail, {"weight": np.inf})["weight"]
        both_ways.add_edge(end, tail, weight=min(back, data["weight"]))
    closure: nx.Graph[int] = nx.Graph()
    for source, reached in nx.all_pairs_dijkstra_path_length(both_ways):
        closure.add_weighted_edges_from(
            (source, vertex, price) for vertex, price in reached.items() if max(source, vertex) < terminals
        )
    closure.remove_edges_from([(v, v) for v in range(terminals)])
    assert cost == pytest.approx(_cost(nx.minimum_spanning_tree(closure)), rel=1e-12)

    assert nx.is_tree(nx.Graph(edges.tolist()))
    assert sorted(nx.Graph(edges.tolist())) == list(range(terminals))
    walked = 0.0
    for k, (start, end) in enumerate(edges.tolist()):
        place = start
        for step in path[path_ptr[k] : path_ptr[k + 1]].tolist():
            first, second = (graph.tail, graph.head) if step % 2 == 0 else (graph.head, graph.tail)
            assert first[step >> 1] == place
            place = int(second[step >> 1])
            walked += graph.price[step >> 1]
        assert place == end
    assert cost == pytest.approx(walked, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_prim_is_the_minimum_spanning_tree(seed: int) -> None:
    """Dense and sparse weights, ties included, against networkx."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 10))
    weight = np.full((n, n), np.inf)
    graph: nx.Graph[int] = nx.Graph()
    for i in range(n):
        for j in range(i):
            if j == i - 1 or rng.random() < 0.6:
                weight[i, j] = weight[j, i] = rng.integers(5) if seed % 2 else rng.random()
                graph.add_edge(i, j, weight=weight[i, j])
    cost, edges = prim(weight)
    assert cost == pytest.approx(_cost(nx.minimum_spanning_tree(graph)))
    assert nx.is_tree(nx.Graph(edges.tolist()))
    assert cost == pytest.approx(weight[edges[:, 0], edges[:, 1]].sum())
