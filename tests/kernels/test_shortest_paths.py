from __future__ import annotations

import heapq

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.kernels.shortest_paths import heap_pop, heap_push, shortest_paths
from tests.kernels.graphs import Digraph, random_digraph

SEEDS = range(200)


def _search(graph: Digraph) -> tuple[np.ndarray, np.ndarray]:
    shape = graph.vertices, graph.vertices
    distance, arrival = np.empty(shape), np.empty(shape, np.int64)
    sources = np.arange(graph.vertices)
    shortest_paths(graph.ptr, graph.head[graph.order], graph.order, graph.price, sources, distance, arrival)
    return distance, arrival


@pytest.mark.parametrize("seed", SEEDS)
def test_distances_are_networkx_distances(seed: int) -> None:
    """From every source to every vertex, over parallel and free arcs, with inf where there is no way."""
    graph = random_digraph(seed)
    distance, _ = _search(graph)
    expected = np.full_like(distance, np.inf)
    for source, reached in nx.all_pairs_dijkstra_path_length(graph.networkx()):
        for vertex, cost in reached.items():
            expected[source, vertex] = cost
    np.testing.assert_allclose(distance, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_arrival_arcs_lead_back_to_the_source_at_the_distance(seed: int) -> None:
    """Each vertex is entered by an arc whose price makes up the difference; unreached vertices and the source have none."""
    graph = random_digraph(seed)
    distance, arrival = _search(graph)
    for source in range(graph.vertices):
        for vertex in range(graph.vertices):
            if vertex == source or np.isinf(distance[source, vertex]):
                assert arrival[source, vertex] == -1
                continue
            arc = graph.order[arrival[source, vertex]]
            assert graph.head[arc] == vertex
            assert distance[source, graph.tail[arc]] + graph.price[arc] == distance[source, vertex]


@given(st.lists(st.floats(0, 1e300), max_size=40), st.data())
def test_the_heap_pops_in_order(keys: list[float], data: st.DataObject) -> None:
    """Pushes and pops in any order give what heapq gives."""
    heap_keys, heap_items = np.empty(len(keys) + 1), np.empty(len(keys) + 1, np.int64)
    reference: list[float] = []
    size = 0
    for item, key in enumerate(keys):
        size = heap_push(heap_keys, heap_items, size, key, item)
        heapq.heappush(reference, key)
        if data.draw(st.booleans()):
            assert keys[heap_items[0]] == heap_keys[0] == heapq.heappop(reference)
            size = heap_pop(heap_keys, heap_items, size)
    while size:
        assert heap_keys[0] == heapq.heappop(reference)
        size = heap_pop(heap_keys, heap_items, size)
    assert not reference
