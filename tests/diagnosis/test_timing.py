from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

from dualcoll._api import plan
from dualcoll.diagnosis.timing import latency_bound, timing, tree_depth
from dualcoll.plans.model import Phase, Plan, Tree
from dualcoll.topology.catalog import catalog
from tests.packing.exact import random_case
from tests.packing.fabrics import fabric


def _farthest(made: Plan, tree: Tree, phase: Phase, weigh: Callable[[np.ndarray], float]) -> float:
    """The longest way between the root and a rank in one phase, by networkx, edges weighed by their routes."""
    graph: nx.Graph[int] = nx.Graph()
    for k in np.flatnonzero(tree.phase == phase).tolist():
        graph.add_edge(*tree.edges[k].tolist(), weight=weigh(tree.route(k)))
    return float(max(nx.single_source_dijkstra_path_length(graph, tree.root).values()))


@pytest.mark.parametrize("kind", ["switched", "one-way", "boxes"])
@pytest.mark.parametrize("seed", range(10))
def test_fill_and_depth_are_the_longest_ways_of_any_tree(seed: int, kind: str) -> None:
    """Up to the root and down again, in latencies and in logical edges."""
    made = plan(random_case(kind, seed))
    latency = np.array([link.latency for link in made.topology.links])
    found = timing(made)
    ways = [
        [_farthest(made, tree, phase, lambda route: float(latency[route].sum())) for phase in Phase]
        for tree in made.trees
    ]
    edges = [[_farthest(made, tree, phase, lambda route: 1.0) for phase in Phase] for tree in made.trees]
    assert found.fill == pytest.approx(max(sum(pair) for pair in ways))
    assert found.depth == max(max(pair) for pair in edges)
    assert [tree_depth(tree, len(made.topology.nodes)) for tree in made.trees] == [max(pair) for pair in edges]


def test_times_of_a_line() -> None:
    """Four ranks in a line, rooted in its middle: 2 hops up, 2 down; the bound is the 3 hops from end to end."""
    made = plan(catalog("line:4,bandwidth=1GB/s,latency=2us"), size="1GB")
    found = timing(made)
    assert found.steady == pytest.approx(1.0)
    assert found.fill == pytest.approx(8e-6)
    assert found.total == pytest.approx(1.0 + 8e-6)
    assert found.latency_bound == pytest.approx(6e-6)
    assert found.depth == 2
    assert not found.small


@pytest.mark.parametrize(("size", "small"), [(4_000, True), (7_900, True), (8_100, False), ("1MB", False)])
def test_a_message_is_small_once_latency_takes_half_its_time(size: int | str, small: bool) -> None:
    """8 us of latency against size over 1 GB/s."""
    made = plan(catalog("line:4,bandwidth=1GB/s,latency=2us"), size=size)
    assert timing(made).small is small


def test_latency_bound_lets_everything_forward_and_takes_the_worst_pair() -> None:
    """The quick way over an idle GPU counts; the slowest of all ordered pairs decides."""
    topology = fabric("g0-x0:1, x0-g1:1, g0>s0:9, s0>g1:9, g1>g2:1, g2-s0:1", latency=1e-6)
    # g0 -> g1 takes 2, g1 -> g2 takes 1, g2 -> g0 takes s0, g1, x0 on the way: 4
    assert latency_bound(topology, topology.ranks) == pytest.approx(4e-6)
    assert latency_bound(topology, topology.ranks[:2]) == pytest.approx(2e-6)


@pytest.mark.parametrize("kind", ["switched", "one-way", "boxes"])
@pytest.mark.parametrize("seed", range(10))
def test_no_plan_fills_faster_than_the_latency_bound(seed: int, kind: str) -> None:
    """Reduce and broadcast together pass every pair."""
    found = timing(plan(random_case(kind, seed)))
    assert found.fill >= found.latency_bound * (1 - 1e-12)
