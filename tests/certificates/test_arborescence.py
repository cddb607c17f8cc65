"""The least arborescences from all roots at once, against enumeration and networkx."""

from __future__ import annotations

import random
from itertools import product

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.certificates.arborescence import arborescence_costs

Weights = list[list[int | None]]


def _enumerated(into: Weights, root: int) -> int | None:
    """The least cost over every choice of one arc into each other vertex that reaches the root."""
    others = [v for v in range(len(into)) if v != root]
    best: int | None = None
    for sources in product(range(len(into)), repeat=len(others)):
        parent = dict(zip(others, sources, strict=True))
        weights = [into[v][u] for v, u in parent.items() if u != v]
        if len(weights) < len(others) or not all(_reaches(v, root, parent) for v in others):
            continue
        finite = [w for w in weights if w is not None]
        if len(finite) == len(weights):
            best = sum(finite) if best is None else min(best, sum(finite))
    return best


def _reaches(vertex: int, root: int, parent: dict[int, int]) -> bool:
    for _ in parent:
        vertex = parent.get(vertex, root)
    return vertex == root


@given(st.data())
def test_every_root_on_complete_graphs(data: st.DataObject) -> None:
    """All roots' costs equal the enumerated ones, with many ties and zeros and with weights beyond 64 bits."""
    n = data.draw(st.integers(1, 4))
    weight = st.one_of(st.integers(0, 3), st.integers(0, 2**80))
    into: Weights = [[data.draw(weight) for _ in range(n)] for _ in range(n)]
    assert arborescence_costs(into) == [_enumerated(into, root) for root in range(n)]


@given(st.data())
def test_every_root_with_missing_arcs(data: st.DataObject) -> None:
    """Missing arcs are never used as long as the graph stays strongly connected (here by a cycle)."""
    n = data.draw(st.integers(2, 4))
    into: Weights = [[data.draw(st.none() | st.integers(0, 5)) for _ in range(n)] for _ in range(n)]
    for v in range(n):
        into[v][v - 1] = data.draw(st.integers(0, 50))
    assert arborescence_costs(into) == [_enumerated(into, root) for root in range(n)]


@pytest.mark.parametrize("seed", range(5))
def test_against_networkx(seed: int) -> None:
    """On larger graphs the costs equal those of networkx's Edmonds, root by root."""
    rng = random.Random(seed)
    n = 12
    into: Weights = [[rng.randrange(100 if seed % 2 else 6) for _ in range(n)] for _ in range(n)]
    costs = arborescence_costs(into)
    for root in (0, 5, 11):
        graph: nx.DiGraph[int] = nx.DiGraph()
        for v, u in product(range(n), repeat=2):
            if u != v and v != root:
                graph.add_edge(u, v, weight=into[v][u])
        tree = nx.minimum_spanning_arborescence(graph)
        assert costs[root] == int(tree.size(weight="weight"))


def test_symmetric_weights_give_the_minimum_spanning_tree() -> None:
    """With symmetric weights every root's arborescence costs what the minimum spanning tree costs."""
    rng = random.Random(0)
    n = 40
    into: Weights = [[0] * n for _ in range(n)]
    graph: nx.Graph[int] = nx.Graph()
    for v in range(n):
        for u in range(v):
            into[v][u] = into[u][v] = rng.randrange(1000)
            graph.add_edge(u, v, weight=into[v][u])
    tree = nx.minimum_spanning_tree(graph)
    assert arborescence_costs(into) == [int(tree.size(weight="weight"))] * n
