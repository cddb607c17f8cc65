from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.routing.packet_spray import spray_router
from dualcoll.routing.policy_graph import policy_graph
from dualcoll.routing.routers import make_router
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Forwarding, Topology
from tests.packing.exact import Route
from tests.packing.fabrics import GB, fabric
from tests.routing.reference import fixed_shares, route_shares

SPRAY, CABLES, HOPS = RoutingKind.SPRAY, RoutingKind.SPRAY_CABLES, RoutingKind.SPRAY_HOPS

# two ways out of s0, three ways out of st; every cable between them fits one unit from g0 to g1, and 2 GB/s go around elsewhere
UNEVEN = fabric(
    "g0-s0:2, s0-sa:1, s0-sb:1, sa-sc:0.5, sa-sd:0.5, sb-se:1, sc-st:0.5, sd-st:0.5, se-st:1, st-g1:2, g1-g2:2, g2-g0:2"
)


def _shares(topology: Topology, edge: tuple[int, int], kind: RoutingKind = SPRAY) -> dict[str, float]:
    """The share of a logical edge's traffic on each link that it uses, by the link's text."""
    router = make_router(topology, topology.ranks, Forwarding.SWITCHES, Routing(kind))
    _, links, share = router.project(np.ones(len(topology.links))).routes(np.array([edge]))
    assert share is not None
    texts = topology.describe_links()
    return {texts[e]: part for e, part in zip(links.tolist(), share.tolist(), strict=True)}


def test_hops_are_equally_likely_but_whole_paths_are_not() -> None:
    """Of three shortest paths one carries half: its first hop is one of two, and it does not branch again."""
    shares = _shares(UNEVEN, (0, 1))
    assert [shares[link] for link in ("s0 -> sa", "s0 -> sb")] == [0.5, 0.5]
    assert [shares[link] for link in ("sc -> st", "sd -> st", "se -> st")] == [0.25, 0.25, 0.5]
    ways: list[Route] = [(0, 2, 6, 12, 18), (0, 2, 8, 14, 18), (0, 4, 10, 16, 18)]
    whole = dict(route_shares(UNEVEN, ways, Routing(SPRAY), ("g0", "g1")))
    assert list(whole.values()) == [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]


def test_the_way_back_is_not_the_way_out_reversed() -> None:
    """Toward g0 the first hop is one of three, so two thirds come through sa, where half went out."""
    back = _shares(UNEVEN, (1, 0))
    assert back["st -> se"] == pytest.approx(1 / 3)
    assert back["sa -> s0"] == pytest.approx(2 / 3)


def test_a_sprayed_allgather_fits_but_its_reversal_breaks_a_capacity() -> None:
    """Rings 0 -> 1 -> 2 -> 0 gather 1 GB/s from every root; backwards, sa -> s0 would need 4/3 of the 1 GB/s it has.

    A ReduceScatter whose in-trees go around the same way as the gathering trees fits.
    """
    ring = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
    out_trees = sum(ring * (np.arange(3) != (root - 1) % 3)[:, None] for root in range(3))
    in_trees = sum(ring * (np.arange(3) != root)[:, None] for root in range(3))
    capacity = fabric_arrays(UNEVEN).capacity
    router = make_router(UNEVEN, UNEVEN.ranks, Forwarding.SWITCHES, Routing(SPRAY))
    projection = router.project(np.ones(capacity.size))
    assert (projection.loads(GB * out_trees) <= capacity).all()
    assert (projection.loads(GB * in_trees) <= capacity).all()
    over = projection.loads(GB * out_trees.T) / capacity
    texts = UNEVEN.describe_links()
    assert texts[int(np.argmax(over))] in ("sa -> s0", "st -> sc", "st -> sd")
    assert over.max() == pytest.approx(4 / 3)


def test_parallel_cables_count_as_one_neighbour_or_as_many() -> None:
    """Two cables to s1 and one to s2: halves by neighbour, thirds by cable."""
    topology = fabric("g0-s0:1, s0-s1:1, s0-s1:1, s0-s2:1, s1-g1:1, s2-g1:1")
    by_neighbour, by_cable = _shares(topology, (0, 1)), _shares(topology, (0, 1), CABLES)
    first_hops = ("s0 -> s1 (cable 0)", "s0 -> s1 (cable 1)", "s0 -> s2")
    assert [by_neighbour[link] for link in first_hops] == [0.25, 0.25, 0.5]
    assert [by_cable[link] for link in first_hops] == pytest.approx([1 / 3] * 3)


def test_by_hops_alone_packets_pass_through_what_does_not_forward() -> None:
    """An idle GPU is the shortest way, and the plain variant takes it; the policy goes around over two switches."""
    topology = fabric("g0-x0:1, x0-g1:1, g0-s0:1, s0-s1:1, s1-g1:1")
    assert _shares(topology, (0, 1), HOPS) == {"g0 -> x0": 1.0, "x0 -> g1": 1.0}
    assert _shares(topology, (0, 1)) == {"g0 -> s0": 1.0, "s0 -> s1": 1.0, "s1 -> g1": 1.0}


def test_a_link_used_in_the_box_and_on_the_way_through_it_is_listed_once() -> None:
    """Half comes to the box's switch s2 from inside and half from the network, and all leaves over one cable."""
    topology = fabric("g0-s0:1, g0-s1:1, s0-s2:1, s1-s2:1, s2-s3:1, s3-g1:1, g0-n0:1", boxes="b0: g0 s0 s2 n0")
    shares = _shares(topology, (0, 1))
    assert shares == {
        "g0 -> s0": 0.5,
        "g0 -> s1": 0.5,
        "s0 -> s2": 0.5,
        "s1 -> s2": 0.5,
        "s2 -> s3": 1.0,
        "s3 -> g1": 1.0,
    }


def test_a_nic_of_another_box_is_no_way_through() -> None:
    """The shortest way by hops leads through the middle box's NIC; packets take the longer one that the policy allows."""
    topology = fabric("g0-s0:1, s0-n1:1, n1-s1:1, s1-g1:1, s0-s2:1, s2-s3:1, s3-s1:1, n1-g2:1", boxes="b1: n1 g2")
    assert "n1 -> s1" not in _shares(topology, (0, 1))
    assert "n1 -> s1" in _shares(topology, (0, 1), HOPS)


@pytest.mark.parametrize("kind", [SPRAY, CABLES, HOPS])
def test_every_edge_of_a_fat_tree_spreads_over_all_its_paths(kind: RoutingKind) -> None:
    """16 hosts: within an edge switch one path, within a pod two, and four between pods, each hop equally loaded."""
    topology = catalog("fat-tree:k=4")
    router = make_router(topology, topology.ranks, Forwarding.SWITCHES, Routing(kind))
    projection = router.project(np.ones(len(topology.links)))
    for u, v in ((0, 1), (0, 2), (0, 15)):
        _, _, share = projection.routes(np.array([[u, v]]))
        assert share is not None
        paths = {1: [1.0] * 2, 2: [1.0, *[0.5] * 4, 1.0], 15: [1.0, *[0.5] * 2, *[0.25] * 8, *[0.5] * 2, 1.0]}[v]
        assert sorted(share.tolist()) == sorted(paths)
        assert projection.weight[u, v] == sum(paths)


def test_shares_with_doubled_cables_between_tiers_are_exact() -> None:
    """Two pods, one with a doubled uplink: shares are halves and quarters, equal to the fractions to the last bit."""
    topology = fabric(
        "g0-s0:1, g1-s0:1, g2-s1:1, s0-sa:1, s0-sb:1, s1-sa:1, s1-sb:1, sa-sc:1, sa-sc:1, sb-sd:1, sc-s2:1, sd-s2:1, s2-g3:1"
    )
    texts = topology.describe_links()
    for edge, shares in fixed_shares(topology, topology.ranks, Forwarding.SWITCHES, Routing(SPRAY)).items():
        assert _shares(topology, edge) == {texts[e]: float(share) for e, share in shares.items()}


def test_next_hops_of_a_thousand_hosts_take_tens_of_megabytes() -> None:
    """A fat tree of 1,024 hosts: 8 bytes for each of three million next hops, 12 for each of a million rows."""
    topology = catalog("fat-tree:k=16")
    graph = policy_graph(topology, topology.ranks, Forwarding.SWITCHES)
    router = spray_router(topology, graph, over_cables=False)
    assert sum(part.nbytes for part in (*router.hops[1:], router.divisor)) < 64e6
