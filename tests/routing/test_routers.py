from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.routing.routers import Projection, make_router
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Forwarding, Topology
from tests.packing.exact import cheapest_distances, routes
from tests.packing.fabrics import fabric
from tests.routing.reference import ANY_FABRIC, case, fixed_shares

FIXED = [kind for kind in RoutingKind if kind is not RoutingKind.SINGLE]
SEEDS = st.integers(0, 25)
Edge = tuple[int, int]


def _prices(seed: int, links: int) -> np.ndarray:
    """Whole ones with zeros and ties, or real ones."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 4, links).astype(float) if seed % 2 else rng.random(links)


def _dense(projection: Projection, edges: np.ndarray, links: int) -> np.ndarray:
    """The shares of each edge on each link (A, E)."""
    ptr, used, share = projection.routes(edges)
    assert ptr.dtype == used.dtype == np.int64
    table = np.zeros((len(edges), links))
    for k in range(len(edges)):
        mine = slice(ptr[k], ptr[k + 1])
        assert np.unique(used[mine]).size == used[mine].size > 0
        table[k, used[mine]] = 1.0 if share is None else share[mine]
    assert ptr[-1] == used.size
    return table


def _edges(projection: Projection) -> np.ndarray:
    return np.argwhere(np.isfinite(projection.weight))


@pytest.mark.parametrize("routing", FIXED)
@pytest.mark.parametrize("fabric_kind", ANY_FABRIC)
@settings(max_examples=30)
@given(seed=SEEDS, forwarding=st.sampled_from(Forwarding), hash_seed=st.integers(0, 3))
def test_shares_are_those_that_all_routes_listed_lead_to(
    fabric_kind: str, routing: RoutingKind, seed: int, forwarding: Forwarding, hash_seed: int
) -> None:
    """Every edge that has an allowed route is there, and the shares are the exact fractions to 1e-12."""
    topology, participants = case(fabric_kind, seed)
    model = Routing(routing, hash_seed)
    expected = fixed_shares(topology, participants, forwarding, model)
    links = len(topology.links)
    projection = make_router(topology, participants, forwarding, model).project(np.ones(links))
    edges = _edges(projection)
    assert {(u, v) for u, v in edges.tolist()} == set(expected)
    exact = [[float(expected[u, v].get(e, 0)) for e in range(links)] for u, v in edges.tolist()]
    np.testing.assert_allclose(_dense(projection, edges, links), np.reshape(exact, (-1, links)), rtol=1e-12)


@pytest.mark.parametrize("routing", RoutingKind)
@pytest.mark.parametrize("fabric_kind", ANY_FABRIC)
@settings(max_examples=30)
@given(seed=SEEDS, forwarding=st.sampled_from(Forwarding))
def test_weights_and_loads_are_sums_over_the_routes(
    fabric_kind: str, routing: RoutingKind, seed: int, forwarding: Forwarding
) -> None:
    """Weight = Σ price x share = the mean cost D_v(u); loads in bulk = Σ count x share, edge by edge."""
    topology, participants = case(fabric_kind, seed)
    prices = _prices(seed, len(topology.links))
    projection = make_router(topology, participants, forwarding, Routing(routing)).project(prices)
    edges = _edges(projection)
    table = _dense(projection, edges, prices.size)
    np.testing.assert_allclose(projection.weight[tuple(edges.T)], table @ prices, rtol=1e-12, atol=1e-12)
    assert np.isinf(projection.weight.diagonal()).all()
    counts = np.zeros(projection.weight.shape)
    counts[tuple(edges.T)] = np.random.default_rng(seed).integers(0, 4, len(edges))
    loads = projection.loads(counts)
    np.testing.assert_allclose(loads, counts[tuple(edges.T)] @ table, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fabric_kind", ANY_FABRIC)
@settings(max_examples=30)
@given(seed=SEEDS, forwarding=st.sampled_from(Forwarding))
def test_single_paths_are_cheapest_allowed_routes(fabric_kind: str, seed: int, forwarding: Forwarding) -> None:
    """Weights are the least over all routes listed, and the routes given are among them, link by link."""
    topology, participants = case(fabric_kind, seed)
    prices = _prices(seed, len(topology.links))
    ways = routes(topology, participants, forwarding)
    projection = make_router(topology, participants, forwarding, Routing()).project(prices)
    edges = _edges(projection)
    found = {(u, v): float(projection.weight[u, v]) for u, v in edges.tolist()}
    assert found == pytest.approx(cheapest_distances(ways, prices), rel=1e-12)
    ptr, used, share = projection.routes(edges)
    assert share is None
    for k, (u, v) in enumerate(edges.tolist()):
        assert tuple(used[ptr[k] : ptr[k + 1]].tolist()) in ways[u, v]


@pytest.mark.parametrize("routing", RoutingKind)
def test_routes_are_given_in_the_order_asked(routing: RoutingKind) -> None:
    """Edges may repeat and come in any order; none at all is fine."""
    topology = fabric("g0-s0:1, g1-s0:1, g2-s1:1, s0-s1:1, s0-s2:1, s2-s1:1, s0-s1:1")
    projection = _project(topology, routing)
    edges = np.array([[2, 0], [0, 1], [2, 0], [1, 2]])
    table = _dense(projection, edges, len(topology.links))
    one_by_one = [_dense(projection, edge[None, :], len(topology.links))[0] for edge in edges]
    np.testing.assert_array_equal(table, one_by_one)
    ptr, used, _ = projection.routes(np.empty((0, 2), np.int64))
    assert (ptr.tolist(), used.size) == ([0], 0)


@pytest.mark.parametrize("routing", RoutingKind)
def test_ranks_without_any_way_have_no_edges(routing: RoutingKind) -> None:
    """Also where there is not one link."""
    for topology in (fabric("g0-s0:1, g1-s1:1"), fabric("g0-s0:1, g1>s0:1"), _linkless()):
        projection = _project(topology, routing)
        assert np.isinf(projection.weight[0, 1])
        assert projection.loads(np.zeros((2, 2))).tolist() == [0.0] * len(topology.links)


def _project(topology: Topology, routing: RoutingKind) -> Projection:
    router = make_router(topology, topology.ranks, Forwarding.SWITCHES, Routing(routing))
    assert router.graph.starts.size == len(topology.ranks)
    return router.project(np.ones(len(topology.links)))


def _linkless() -> Topology:
    return Topology(fabric("g0-g1:1").nodes, ())


@pytest.mark.parametrize("routing", RoutingKind)
def test_a_thousand_hosts_are_within_reach(routing: RoutingKind) -> None:
    """A fat tree of 1,024 hosts: bulk loads cost what the weights say."""
    topology = catalog("fat-tree:k=16")
    prices = np.random.default_rng(0).random(len(topology.links))
    projection = make_router(topology, topology.ranks, Forwarding.SWITCHES, Routing(routing)).project(prices)
    counts = np.random.default_rng(1).random(projection.weight.shape)
    np.fill_diagonal(counts, 0.0)
    edges = counts > 0
    paid = float(projection.weight[edges] @ counts[edges])
    assert float(prices @ projection.loads(counts)) == pytest.approx(paid, rel=1e-10)
