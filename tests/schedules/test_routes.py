"""Routes: what a validation says of them, against an enumeration of their ways, and laying schedules on fabrics."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dualcoll.certificates.policy import Policy
from dualcoll.collectives.contract import make_contract
from dualcoll.errors import InputError
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.routed import routed
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Forwarding, Kind, Link, Node, Topology, duplex
from tests.schedules.samples import all_to_all, findings, loop, ring, star

MESH = {"a0": ("a1", "an", "as"), "a1": ("as",), "an": ("as", "net"), "b0": ("bn",), "bn": ("net",), "net": ("net2",)}


def boxes() -> Topology:
    """Box a: two GPUs, a NIC and a switch, all cabled; box b: a GPU behind a NIC; and a network of two switches."""
    kinds = {"n": Kind.NIC, "s": Kind.SWITCH, "0": Kind.GPU, "1": Kind.GPU}
    names = ["a0", "a1", "an", "as", "b0", "bn"]
    nodes = [Node(name, kinds[name[1]], box=name[0]) for name in names]
    nodes += [Node("net", Kind.SWITCH), Node("net2", Kind.SWITCH)]
    index = {node.name: i for i, node in enumerate(nodes)}
    pairs = [*((u, v) for u, ends in MESH.items() for v in ends), ("net2", "bn")]
    return Topology(tuple(nodes), tuple(x for u, v in pairs for x in duplex(Link(index[u], index[v], 1e9))))


def one_send(topology: Topology, ends: tuple[int, int], links: list[int], shares: list[float], policy: str) -> Schedule:
    """A broadcast from one node to another over one route."""
    forwarding = None if policy == "none" else Forwarding(policy)
    contract = make_contract("broadcast", 2)
    builder = ScheduleBuilder(contract, 8, topology=topology, nodes=ends, forwarding=forwarding)
    builder.send(0, 1, 0, route=builder.route(links, shares))
    return builder.build()


def walk(draw: st.DrawFn, topology: Topology, start: int, most: int) -> list[int]:
    """Links of a random walk."""
    links: list[int] = []
    at = start
    for _ in range(draw(st.integers(1, most))):
        links.append(draw(st.sampled_from([e for e, link in enumerate(topology.links) if link.tail == at])))
        at = topology.links[links[-1]].head
    return links


@st.composite
def uses(draw: st.DrawFn) -> tuple[Schedule, bool]:
    """One send over a path or over a bundle of two, most of them wrong, and whether it is right by enumeration."""
    topology = boxes()
    ends = tuple(draw(st.permutations([0, 1, 4]))[:2])
    policy = draw(st.sampled_from(["switches", "all", "none"]))
    graph = nx.DiGraph([(link.tail, link.head) for link in topology.links])
    link_of = {(link.tail, link.head): e for e, link in enumerate(topology.links)}
    paths = [[link_of[pair] for pair in pairwise(path)] for path in nx.all_simple_paths(graph, *ends)]
    aimed = draw(st.integers(0, 3)) > 0
    ways = [
        draw(st.sampled_from(paths)) if aimed else walk(draw, topology, ends[0], 5)
        for _ in range(draw(st.integers(1, 2)))
    ]
    share: dict[int, float] = defaultdict(float)
    for way in ways:
        for e in way:
            share[e] += 1 / len(ways)
    if len(ways) == 2:
        assume(all(len(set(way)) == len(way) for way in ways))
    links, shares = (ways[0], []) if len(ways) == 1 else (list(share), list(share.values()))
    right = is_right(topology, ends, ways, policy)
    return one_send(topology, (ends[0], ends[1]), links, shares, policy), right


def is_right(topology: Topology, ends: tuple[int, ...], ways: list[list[int]], policy: str) -> bool:
    """§9: both ways end where they should, and every way along their links is a path that the policy allows."""
    if any(topology.links[way[-1]].head != ends[1] for way in ways):
        return False
    graph = nx.DiGraph([(topology.links[e].tail, topology.links[e].head) for way in ways for e in way])
    if not nx.is_directed_acyclic_graph(graph) or graph.in_degree(ends[0]) or graph.out_degree(ends[1]):
        return False
    if policy == "none":
        return True
    judge = Policy(topology, Forwarding(policy))
    return all(judge.objection(path) is None for path in nx.all_simple_paths(graph, *ends))


@given(uses())
@settings(max_examples=300)
def test_routes_are_right_where_all_their_ways_are(use: tuple[Schedule, bool]) -> None:
    """A route is accepted exactly if enumeration finds nothing but allowed paths from end to end."""
    schedule, right = use
    assert (findings(schedule) == ()) == right


def links_between(topology: Topology, *names: str) -> list[int]:
    """The links of a walk by names."""
    index = {(topology.nodes[x.tail].name, topology.nodes[x.head].name): e for e, x in enumerate(topology.links)}
    return [index[pair] for pair in pairwise(names)]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["a0", "a1", "as", "an", "net", "bn", "b0"], "its route passes through gpu a1, which may not forward"),
        (["a0", "as", "an", "net"], "its route is no path: it is at net and goes on at b0"),
        (["a0", "as", "a0", "an", "net", "bn", "b0"], "its route comes back to its source"),
        (["a0", "as", "an", "as", "an", "net", "bn", "b0"], "its route runs in a circle"),
        (["a0", "an", "net", "bn", "b0", "bn", "b0"], "its route goes on from its destination"),
        (["a0", "an", "net", "bn", "net2", "bn", "b0"], "its route runs in a circle"),
        ([], "its route has no links"),
    ],
)
def test_words_about_a_path(names: list[str], problem: str) -> None:
    """What is wrong with a path is said in its own terms."""
    topology = boxes()
    schedule = one_send(topology, (0, 4), links_between(topology, *names), [], "switches")
    assert findings(schedule) == (f"send 0 (rank a0 -> b0, chunk 0): {problem} (§9)",)


def test_words_about_a_bundle() -> None:
    """A bundle that loses bytes, and one of whose ways is forbidden."""
    topology = boxes()
    first = links_between(topology, "a0", "an", "net", "bn", "b0")
    second = links_between(topology, "a0", "a1", "as", "an", "net", "bn", "b0")
    shares = {e: (e in first) * 0.5 + (e in second) * 0.5 for e in [*first, *second]}
    schedule = one_send(topology, (0, 4), list(shares), list(shares.values()), "switches")
    text = "send 0 (rank a0 -> b0, chunk 0): its route passes through gpu a1, which may not forward (§9)"
    assert findings(schedule) == (text,)
    shares[first[1]] = 0.75
    schedule = one_send(topology, (0, 4), list(shares), list(shares.values()), "all")
    text = "send 0 (rank a0 -> b0, chunk 0): its route does not carry all bytes from its source to its destination (§9)"
    assert findings(schedule) == (text,)


def test_routes_where_none_belong() -> None:
    """A send between ranks of a fabric has a route, a local one has none."""
    builder = ScheduleBuilder(make_contract("broadcast", 2), 8, topology=star(2), nodes=(0, 1))
    spare = builder.scratch(0)
    route = builder.route([0, 3])
    builder.send(0, 1, 0)
    builder.send(0, 0, 0, into=spare, route=route)
    assert findings(builder.build()) == (
        "send 1 (rank g0, local, chunk 0 into 1): it has a route, yet never leaves its rank (§9)",
        "send 0 (rank g0 -> g1, chunk 0): it has no route (§9)",
    )


@pytest.mark.parametrize("kind", list(RoutingKind))
def test_laid_routes_are_right(kind: RoutingKind) -> None:
    """Every routing model gives routes that validation accepts, one for each pair of ranks that send."""
    topology = catalog("dgx-h100", boxes=2)
    for schedule, pairs in ((ring(16), 16), (all_to_all(16), 240)):
        laid = routed(schedule, topology, routing=Routing(kind, seed=3))
        assert len(laid.routes) == pairs
        assert findings(laid) == ()


def test_prices_choose_the_path() -> None:
    """A single path is the cheapest under the caller's prices, by default the fastest."""
    topology = loop(4)
    schedule = ScheduleBuilder(make_contract("broadcast", 2), 8)
    schedule.send(0, 1, 0)
    laid = routed(schedule.build(), topology, (0, 2), forwarding=Forwarding.ALL, prices=np.array([9.0] * 4 + [1.0] * 4))
    assert [topology.describe_link(e) for e in laid.routes.of(0)] == ["g0 -> g3", "g3 -> g2"]
    assert laid.nodes == (0, 2)
    assert laid.rank_name(1) == "g2"


def test_ranks_out_of_reach() -> None:
    """A fabric that cannot carry a send is named with the two ranks; so is a wrong number of ranks."""
    with pytest.raises(InputError) as caught:
        routed(ring(3), loop(4), (0, 1, 3))
    assert str(caught.value) == "rank g1 has no route to rank g3; see `forward` and the links between them"
    with pytest.raises(InputError) as caught:
        routed(ring(3), loop(4))
    assert str(caught.value) == "4 ranks of the fabric for a schedule over 3; name the ranks"
