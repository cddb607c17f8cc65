from __future__ import annotations

import numpy as np

from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.routing.routers import Projection, make_router
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Forwarding, Topology
from tests.packing.fabrics import fabric


def _project(topology: Topology, seed: int, kind: RoutingKind = RoutingKind.ECMP) -> Projection:
    router = make_router(topology, topology.ranks, Forwarding.SWITCHES, Routing(kind, seed))
    return router.project(np.ones(len(topology.links)))


def _route(topology: Topology, seed: int) -> str:
    """The nodes in the interior of the route from the first rank to the second."""
    _, links, share = _project(topology, seed).routes(np.array([[0, 1]]))
    assert share is None
    return " ".join(topology.nodes[topology.links[e].tail].name for e in links.tolist()[1:])


def test_the_hash_is_the_documented_one() -> None:
    """Picks at s0 among s1, s10, s2, in this order, by the first 8 bytes of SHA-256 of "seed/g0/g1/s0" modulo 3."""
    topology = fabric("g0-s0:1, s0-s2:1, s0-s10:1, s0-s1:1, s2-g1:1, s10-g1:1, s1-g1:1")
    picks = [_route(topology, seed).removeprefix("s0 ") for seed in range(8)]
    assert picks == ["s1", "s1", "s10", "s1", "s1", "s2", "s10", "s10"]


def test_each_parallel_cable_is_a_choice_of_its_own() -> None:
    """Three cables to s1 and one to s2, all of which some seed picks."""
    topology = fabric("g0-s0:1, s0-s1:1, s0-s2:1, s0-s1:1, s0-s1:1, s1-g1:1, s2-g1:1")
    taken = {_project(topology, seed).routes(np.array([[0, 1]]))[1].tolist()[1] for seed in range(40)}
    assert taken == {2, 4, 6, 8}


def test_seeds_collide_differently_and_each_always_alike() -> None:
    """A shift by half on a 16-host fat tree: spraying loads every cable once; hashing piles two or more flows on some."""
    topology = catalog("fat-tree:k=4")
    shift = np.roll(np.eye(16), 8, axis=1)
    assert _project(topology, 0, RoutingKind.SPRAY).loads(shift).max() == 1
    loads = [_project(topology, seed).loads(shift) for seed in range(4)]
    assert all(load.max() >= 2 for load in loads)
    assert len({load.tobytes() for load in loads}) == 4
    assert _project(topology, 2).loads(shift).tobytes() == loads[2].tobytes()


def test_the_two_directions_of_an_edge_are_hashed_apart() -> None:
    """Some pair of hosts goes out over other switches than it comes back."""
    topology = catalog("fat-tree:k=4")
    projection = _project(topology, 0)
    _, out, _ = projection.routes(np.array([[0, 15]]))
    _, back, _ = projection.routes(np.array([[15, 0]]))
    there = [topology.links[e].tail for e in out.tolist()[1:]]
    home = [topology.links[e].tail for e in back.tolist()[1:]]
    assert there != home[::-1]
