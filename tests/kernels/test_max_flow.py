from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from dualcoll.kernels.max_flow import max_flow
from tests.kernels.graphs import Digraph, random_digraph

SEEDS = range(200)


def _flow(graph: Digraph, capacity: np.ndarray, source: int, sink: int, enough: float) -> tuple[float, np.ndarray]:
    tail = np.column_stack([graph.tail, graph.head]).ravel()
    head = np.column_stack([graph.head, graph.tail]).ravel()
    arcs = np.argsort(tail, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(tail, minlength=graph.vertices))])
    residual = np.column_stack([capacity, np.zeros_like(capacity)]).ravel()
    return max_flow(ptr, arcs, head, residual, source, sink, enough)


def _capacities(graph: Digraph, seed: int) -> np.ndarray:
    """Whole numbers, or 15 orders of magnitude."""
    rng = np.random.default_rng(seed)
    count = graph.tail.size
    return rng.integers(1, 9, count).astype(float) if seed % 2 else 10.0 ** (15 * rng.random(count))


@pytest.mark.parametrize("seed", SEEDS)
def test_flow_is_networkx_flow_and_equals_its_cut(seed: int) -> None:
    """Value against networkx in whole numbers, and against the capacity that leaves the returned side."""
    graph = random_digraph(seed)
    capacity = _capacities(graph, seed)
    flows: nx.DiGraph[int] = nx.DiGraph()
    flows.add_nodes_from(range(graph.vertices))
    for tail, head, room in zip(graph.tail.tolist(), graph.head.tolist(), capacity.tolist(), strict=True):
        known = flows.get_edge_data(tail, head, {"capacity": 0})["capacity"]
        flows.add_edge(tail, head, capacity=known + round(room))
    source, sink = 0, graph.vertices - 1
    value, side = _flow(graph, capacity, source, sink, np.inf)
    assert value == pytest.approx(
        nx.maximum_flow_value(flows, source, sink), rel=1e-9, abs=0.5 * graph.tail.size * (seed % 2 == 0)
    )
    assert side[source]
    assert not side[sink]
    assert value == pytest.approx(capacity[side[graph.tail] & ~side[graph.head]].sum(), rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_stops_once_the_flow_is_enough(seed: int) -> None:
    """With half the maximum asked for, the value lies between the half and the whole."""
    graph = random_digraph(seed, connected=True)
    capacity = _capacities(graph, seed)
    most, _ = _flow(graph, capacity, 0, graph.vertices - 1, np.inf)
    value, _ = _flow(graph, capacity, 0, graph.vertices - 1, most / 2)
    assert most / 2 <= value <= most * (1 + 1e-12)
