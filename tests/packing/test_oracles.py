from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from dualcoll.packing.collective import Columns
from dualcoll.packing.oracles.arborescences import ArborescenceOracle
from dualcoll.packing.oracles.spanning_tree import ProjectedTreeOracle, VoronoiTreeOracle
from dualcoll.packing.problem import PackingProblem
from dualcoll.plans.model import Phase
from dualcoll.topology.arrays import reversal
from dualcoll.topology.model import Forwarding, Topology
from tests.kernels.graphs import least_arborescence
from tests.packing.exact import cheapest_distances, random_case, routes
from tests.packing.problems import allreduce_problem, cheapest
from tests.packing.sound import assert_sound

Arcs = dict[tuple[int, int], float]


def _asked(
    seed: int, kind: str, forwarding: Forwarding, columns: Columns
) -> tuple[Topology, PackingProblem, np.ndarray]:
    """A random fabric, its problem, and prices with ties, zeros among them, or without."""
    topology = random_case(kind, seed)
    rng = np.random.default_rng(seed)
    prices = rng.random(len(topology.links))
    if seed % 4 == 0:
        prices = rng.integers(0, 3, prices.size).astype(float)
    return topology, allreduce_problem(topology, topology.ranks, forwarding, columns), prices


def _spanning_cost(weight: Arcs) -> float:
    """What a minimum spanning tree costs by networkx, an edge both ways."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_weighted_edges_from((i, j, weight[i, j] + weight[j, i]) for i, j in weight if i < j)
    return float(nx.minimum_spanning_tree(graph).size(weight="weight"))


@pytest.mark.parametrize("forwarding", Forwarding)
@pytest.mark.parametrize("seed", range(200))
def test_the_voronoi_oracle_equals_the_projected_spanning_tree(seed: int, forwarding: Forwarding) -> None:
    """Non-participants, parallel cables, free and tied prices: networkx on distances over enumerated routes agrees."""
    topology, problem, prices = _asked(seed, "switched", forwarding, Columns.SIMPLE)
    assert isinstance(problem.oracle, VoronoiTreeOracle)
    column = cheapest(problem, prices)
    partner = reversal(topology)
    assert partner is not None
    distances = cheapest_distances(routes(topology, topology.ranks, forwarding), (prices + prices[partner]) / 2)
    assert column.cost == pytest.approx(_spanning_cost(distances), rel=1e-12)
    assert_sound(topology, column, prices, forwarding)


@pytest.mark.parametrize("seed", range(200))
def test_the_projected_oracle_equals_the_projected_spanning_tree(seed: int) -> None:
    """The same where NIC, CPU and PCIe nodes serve their own box only."""
    forwarding = Forwarding.SWITCHES
    topology, problem, prices = _asked(seed, "boxes", forwarding, Columns.SIMPLE)
    assert isinstance(problem.oracle, ProjectedTreeOracle)
    column = cheapest(problem, prices)
    partner = reversal(topology)
    assert partner is not None
    distances = cheapest_distances(routes(topology, topology.ranks), (prices + prices[partner]) / 2)
    assert column.cost == pytest.approx(_spanning_cost(distances), rel=1e-12)
    assert_sound(topology, column, prices, forwarding)


@pytest.mark.parametrize("kind", ["one-way", "one-way boxes", "switched"])
@pytest.mark.parametrize("seed", range(100))
def test_the_pair_oracle_equals_the_best_root_of_networkx(seed: int, kind: str) -> None:
    """In- and out-arborescence for every root, over distances of enumerated routes: the best sum."""
    topology, problem, prices = _asked(seed, kind, Forwarding.SWITCHES, Columns.PAIR)
    assert isinstance(problem.oracle, ArborescenceOracle)
    column = cheapest(problem, prices)
    outward = cheapest_distances(routes(topology, topology.ranks), prices)
    inward = {(j, i): cost for (i, j), cost in outward.items()}
    best = min(
        sum(weight[arc] for weight in (outward, inward) for arc in least_arborescence(weight, root))
        for root in range(len(topology.ranks))
    )
    assert column.cost == pytest.approx(best, rel=1e-12)
    assert_sound(topology, column, prices)


@pytest.mark.parametrize("kind", ["switched", "boxes"])
@pytest.mark.parametrize("seed", range(50))
def test_a_simple_tree_hangs_from_its_centre(seed: int, kind: str) -> None:
    """No other root would make the simple tree shallower."""
    _, problem, prices = _asked(seed, kind, Forwarding.SWITCHES, Columns.AUTO)
    tree = cheapest(problem, prices).tree
    graph: nx.Graph[int] = nx.Graph(tree.edges[tree.phase == Phase.REDUCE].tolist())
    assert tree.root in nx.center(graph)
