from __future__ import annotations

import tracemalloc

import networkx as nx
import numpy as np
import pytest

from dualcoll.errors import InputError
from dualcoll.routing.policy_graph import PolicyGraph, policy_graph, require_connected
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Forwarding, Kind, Link, Node, Topology
from tests.packing.exact import allowed, cheapest_distances, routes
from tests.packing.fabrics import fabric
from tests.routing.reference import anything

SWITCHES, ALL = Forwarding.SWITCHES, Forwarding.ALL


def _distances(graph: PolicyGraph, prices: np.ndarray) -> dict[tuple[int, int], float]:
    cost = graph.distances(prices)[0][:, graph.ends]
    return {(i, j): float(cost[i, j]) for i, j in np.argwhere(np.isfinite(cost)).tolist() if i != j}


@pytest.mark.parametrize("forwarding", Forwarding)
@pytest.mark.parametrize("seed", range(150))
def test_distances_are_those_of_the_best_simple_route_that_the_policy_allows(seed: int, forwarding: Forwarding) -> None:
    """Against all routes, enumerated and judged by the policy in words, for participants of every kind."""
    topology = anything(seed)
    rng = np.random.default_rng(seed)
    participants = tuple(rng.permutation(len(topology.nodes))[:4].tolist())
    prices = rng.random(len(topology.links))
    expected = cheapest_distances(routes(topology, participants, forwarding), prices)
    assert _distances(policy_graph(topology, participants, forwarding), prices) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("route", "forwarding", "may"),
    [
        ("g0 s0 s1 g1", SWITCHES, True),
        ("g0 g1 g2", SWITCHES, False),
        ("g0 g1 g2", ALL, True),
        ("g0 h0 g2", SWITCHES, False),
        ("g0 pa na s0 nb pb g1", SWITCHES, True),
        ("g0 pa pb g1", SWITCHES, True),
        ("g0 s0 nb s1 g1", SWITCHES, False),
        ("g0 s0 na s1 g1", SWITCHES, False),
        ("pa na s0 ma g0", SWITCHES, True),
        ("g0 s0 nb g1", SWITCHES, True),
        ("g0 s0 nb na", SWITCHES, False),
        ("g0 na nb s0 g1", SWITCHES, False),
        ("g0 na g1", SWITCHES, True),
        ("g0 nb pa", SWITCHES, False),
    ],
)
def test_the_reference_judges_routes_as_the_policy_is_meant(route: str, forwarding: Forwarding, may: bool) -> None:
    """Box a holds g0, na, ma, pa; box b holds g1, g2, nb, pb: leave the own box, cross by switches, enter the last box."""
    names = ["g0", "na", "ma", "pa", "h0", "g1", "g2", "nb", "pb", "s0", "s1"]
    kinds = {"g": Kind.GPU, "n": Kind.NIC, "m": Kind.NIC, "p": Kind.PCI, "h": Kind.HOST, "s": Kind.SWITCH}
    boxes = dict.fromkeys(names[:5], "a") | dict.fromkeys(names[5:9], "b")
    nodes = tuple(Node(name, kinds[name[0]], box=boxes.get(name)) for name in names)
    topology = Topology(nodes, ())
    assert allowed(topology, [names.index(name) for name in route.split()], forwarding) is may


@pytest.mark.parametrize("seed", range(40))
def test_reversed_routes_are_allowed_too(seed: int) -> None:
    """On a symmetric fabric of boxes, distances are the same both ways: simple trees depend on it."""
    topology = anything(seed)
    both = topology.links + tuple(Link(link.head, link.tail, link.capacity) for link in topology.links)
    topology = Topology(topology.nodes, both)
    prices = np.tile(np.random.default_rng(seed).random(len(both) // 2), 2)
    found = _distances(policy_graph(topology, topology.ranks, SWITCHES), prices)
    assert found == pytest.approx({(j, i): cost for (i, j), cost in found.items()}, rel=1e-12)


def test_plain_fabrics_need_one_state_per_switch_and_two_per_rank() -> None:
    """Without NIC, CPU and PCIe nodes no state is spent on boxes, and other GPUs have none."""
    topology = fabric("g0-s0:1, s0-s1:1, s1-g1:1, x0-s0:1, x0-s1:1")
    graph = policy_graph(topology, topology.ranks, SWITCHES)
    assert graph.unconditional
    assert graph.ptr.size - 1 == 2 * 2 + 2
    assert not policy_graph(fabric("g0-n0:1, n0-s0:1, s0-g1:1"), (0, 3), SWITCHES).unconditional


def _refused(topology: Topology, forwarding: Forwarding = SWITCHES) -> str:
    graph = policy_graph(topology, topology.ranks, forwarding)
    with pytest.raises(InputError) as caught:
        require_connected(topology, topology.ranks, graph)
    return str(caught.value)


HINT = (
    "GPUs and hosts forward nothing (see --forward), and a nic, cpu or pci node serves only its own box: "
    "check the links and the nodes' boxes"
)


def test_a_rank_that_hears_nothing_is_named() -> None:
    """One-way links out of a rank leave it deaf."""
    topology = fabric("g0-s0:1, g1-s0:1, g2>s0:1", name="deaf")
    assert _refused(topology) == f"deaf: rank g2 cannot be reached from g0; {HINT}"


def test_a_rank_that_says_nothing_is_named() -> None:
    """One-way links into a rank leave it mute."""
    topology = fabric("g0-s0:1, g1-s0:1, s0>g2:1", name="mute")
    assert _refused(topology) == f"mute: rank g2 cannot reach g0; {HINT}"


def test_many_lost_ranks_are_counted() -> None:
    """Eight are named and the rest counted."""
    topology = fabric("g0-s0:1, g1-s0:1, " + ", ".join(f"g{i}-s1:1" for i in range(2, 12)), name="split")
    assert _refused(topology) == (
        f"split: rank g2, g3, g4, g5, g6, g7, g8, g9 and 2 more cannot be reached from g0; {HINT}"
    )


def test_a_way_over_an_outsider_needs_forwarding() -> None:
    """An idle GPU between two ranks carries nothing by default, and everything under "all"."""
    topology = fabric("g0-x0:1, x0-g1:1")
    assert _refused(topology) == f"rank g1 cannot be reached from g0; {HINT}"
    require_connected(topology, topology.ranks, policy_graph(topology, topology.ranks, ALL))


def test_a_way_over_another_rank_is_a_way() -> None:
    """Ranks reach each other along a line of ranks: the one between is a tree vertex, not a forwarder."""
    topology = fabric("g0-g1:1, g1-g2:1")
    require_connected(topology, topology.ranks, policy_graph(topology, topology.ranks, SWITCHES))


@pytest.mark.parametrize("seed", range(60))
def test_connected_means_strongly_connected_by_routes(seed: int) -> None:
    """The check passes exactly where networkx finds the digraph of allowed routes strongly connected."""
    topology = anything(seed, 0.15 + 0.05 * (seed % 8))
    participants = topology.ranks
    arcs = routes(topology, participants)
    digraph: nx.DiGraph[int] = nx.DiGraph(list(arcs))
    digraph.add_nodes_from(range(len(participants)))
    graph = policy_graph(topology, participants, SWITCHES)
    if nx.is_strongly_connected(digraph):
        require_connected(topology, participants, graph)
    else:
        with pytest.raises(InputError, match="cannot"):
            require_connected(topology, participants, graph)


def test_memory_of_the_connectivity_check_grows_with_the_links() -> None:
    """Four thousand ranks need no table of ranks by ranks, which would take 128 MB."""
    topology = catalog("star:4000")
    graph = policy_graph(topology, topology.ranks, SWITCHES)
    require_connected(topology, topology.ranks, graph)  # compiled by now
    tracemalloc.start()
    require_connected(topology, topology.ranks, graph)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6
