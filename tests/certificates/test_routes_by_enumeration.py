"""Routes and shares of every routing model, against enumeration of all routes (docs/model.md §2 and §8)."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.certificates.findings import Findings
from dualcoll.certificates.next_hops import HashedRoutes, NetworkRoutes, SprayedRoutes
from dualcoll.certificates.policy import Policy
from dualcoll.certificates.walks import cheapest_routes
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.routing.routers import make_router
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Forwarding, Topology
from tests.certificates.by_hand import hashed
from tests.certificates.enumeration import all_routes, allowed, cheapest_route, fabrics, shares

FORWARDING = st.sampled_from(list(Forwarding))


@settings(max_examples=150)
@given(fabrics(), FORWARDING)
def test_policy_is_what_the_words_say(topology: Topology, forwarding: Forwarding) -> None:
    """The automaton accepts exactly the node sequences that the definition describes, connected or not."""
    policy = Policy(topology, forwarding)
    nodes = range(len(topology.nodes))
    for length in range(2, 5):
        for route in permutations(nodes, length):
            assert (policy.objection(route) is None) == allowed(route, topology.nodes, forwarding), route


@settings(max_examples=150)
@given(fabrics(), FORWARDING, st.data())
def test_cheapest_routes(topology: Topology, forwarding: Forwarding, data: st.DataObject) -> None:
    """Costs of the cheapest allowed walks equal those over all simple routes."""
    on_link = data.draw(st.lists(st.integers(0, 4), min_size=len(topology.links), max_size=len(topology.links)))
    ranks = _some_ranks(topology, data)
    expected = [[cheapest_route(topology, forwarding, on_link, u, v) for v in ranks] for u in ranks]
    assert cheapest_routes(on_link, topology, Policy(topology, forwarding), ranks) == expected


@settings(max_examples=150)
@given(fabrics(), FORWARDING, st.sampled_from(["spray", "spray-cables", "spray-hops"]), st.data())
def test_sprayed_shares(topology: Topology, forwarding: Forwarding, kind: str, data: st.DataObject) -> None:
    """Loads are the shares that dividing over the list of all shortest routes gives, and costs are loads times prices."""
    ranks = _some_ranks(topology, data)
    hops_only = kind == "spray-hops"
    policy = Policy(topology, forwarding, everyone_forwards=hops_only)
    network = SprayedRoutes(topology, policy, ranks, over_cables=kind == "spray-cables")
    prices = data.draw(st.lists(st.integers(0, 9), min_size=len(topology.links), max_size=len(topology.links)))
    costs, cost_scale = network.costs(prices)
    for i, u in enumerate(ranks):
        for j, v in enumerate(ranks):
            wanted = shares(topology, None if hops_only else forwarding, u, v, over_cables=kind == "spray-cables")
            loads = _loads_of_one(network, topology, u, v) if u != v else None
            if loads is None:
                assert not wanted or u == v
                assert costs[i][j] is None
                continue
            on_link, scale = loads
            assert on_link == [scale * wanted.get(e, 0) for e in range(len(topology.links))]
            cost = costs[i][j]
            assert cost is not None
            assert cost * scale == cost_scale * sum(n * price for n, price in zip(on_link, prices, strict=True))


@settings(max_examples=150)
@given(fabrics(), FORWARDING, st.integers(0, 2**64), st.data())
def test_hashed_paths(topology: Topology, forwarding: Forwarding, seed: int, data: st.DataObject) -> None:
    """The path is the one found by walking the list of all shortest routes with the documented hash."""
    ranks = _some_ranks(topology, data)
    network = HashedRoutes(topology, Policy(topology, forwarding), ranks, seed=seed)
    names = [node.name for node in topology.nodes]
    for u, v in permutations(ranks, 2):
        routes = all_routes(topology, forwarding, u, v)
        rest = [route for route in routes if len(route) == min(map(len, routes))]
        loads = _loads_of_one(network, topology, u, v)
        assert (loads is None) == (not rest)
        path = []
        for at in range(len(rest[0]) - 1 if rest else 0):
            here = rest[0][at]
            following = {route[at + 1] for route in rest}
            cables = [
                (names[k.head], e) for e, k in enumerate(topology.links) if k.tail == here and k.head in following
            ]
            picked = sorted(cables)[hashed(seed, names[u], names[v], names[here], len(cables))][1]
            path.append(picked)
            rest = [route for route in rest if route[at + 1] == topology.links[picked].head]
        if loads is not None:
            assert loads == ([path.count(e) for e in range(len(topology.links))], 1)


@settings(max_examples=60)
@given(fabrics(), FORWARDING, st.sampled_from(list(RoutingKind)), st.data())
def test_solver_and_proof_agree_on_small_fabrics(
    topology: Topology, forwarding: Forwarding, kind: RoutingKind, data: st.DataObject
) -> None:
    """The routing models of the solver and of the proof, written apart, give the same costs and loads."""
    prices = data.draw(st.lists(st.integers(0, 9), min_size=len(topology.links), max_size=len(topology.links)))
    _agree(topology, tuple(_some_ranks(topology, data)), forwarding, Routing(kind, 5), prices)


@pytest.mark.parametrize("kind", list(RoutingKind))
@pytest.mark.parametrize("fabric", ["dgx-h100:boxes=2", "fat-tree:k=4", "torus:4x4"])
def test_solver_and_proof_agree_on_real_fabrics(fabric: str, kind: RoutingKind) -> None:
    """The same on fabrics with boxes, parallel links and many equal routes."""
    topology = catalog(fabric)
    prices = np.random.default_rng(3).integers(0, 50, len(topology.links)).tolist()
    _agree(topology, topology.ranks, Forwarding.ALL, Routing(kind, 11), prices)


def _agree(
    topology: Topology, ranks: tuple[int, ...], forwarding: Forwarding, routing: Routing, prices: list[int]
) -> None:
    policy = Policy(topology, forwarding, everyone_forwards=routing.kind is RoutingKind.SPRAY_HOPS)
    projection = make_router(topology, ranks, forwarding, routing).project(np.array(prices, float))
    network: NetworkRoutes | None = None
    costs, scale = cheapest_routes(prices, topology, policy, list(ranks)), 1
    if routing.kind is RoutingKind.ECMP:
        network = HashedRoutes(topology, policy, list(ranks), seed=routing.seed)
    elif routing.kind is not RoutingKind.SINGLE:
        over_cables = routing.kind is RoutingKind.SPRAY_CABLES
        network = SprayedRoutes(topology, policy, list(ranks), over_cables=over_cables)
    if network is not None:
        costs, scale = network.costs(prices)
    exact = np.array([[np.inf if w is None else w / scale for w in row] for row in costs])
    np.testing.assert_allclose(projection.weight, exact, rtol=1e-12)
    if network is not None:
        counts = np.where(np.isfinite(exact), np.arange(exact.size).reshape(exact.shape) % 7, 0)
        names = [topology.nodes[rank].name for rank in ranks]
        flows = {(names[u], names[v]): int(counts[u, v]) for u, v in np.argwhere(counts)}
        findings = Findings()
        on_link, scale = network.loads(flows, findings)
        assert not findings
        np.testing.assert_allclose(projection.loads(counts.astype(float)), [n / scale for n in on_link], rtol=1e-12)


def _some_ranks(topology: Topology, data: st.DataObject) -> list[int]:
    nodes = st.sampled_from(range(len(topology.nodes)))
    return data.draw(st.lists(nodes, min_size=2, max_size=4, unique=True))


def _loads_of_one(network: NetworkRoutes, topology: Topology, u: int, v: int) -> tuple[list[int], int] | None:
    """What one unit on one logical edge loads; None where it has no route."""
    findings = Findings()
    loads = network.loads({(topology.nodes[u].name, topology.nodes[v].name): 1}, findings)
    return None if findings else loads
