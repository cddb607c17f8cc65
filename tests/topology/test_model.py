"""The topology model: what it refuses, how boxes and ranks are resolved, and the round trip through networkx."""

from __future__ import annotations

import math
from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.testing import random_fabric
from dualcoll.topology.model import (
    Forwarding,
    Kind,
    Link,
    Node,
    SharedCapacity,
    Topology,
    Transit,
    duplex,
    transit,
)

GPUS = (Node("a", Kind.GPU), Node("b", Kind.GPU))
CABLE = tuple(duplex(Link(0, 1, 1e9)))


def refusal(nodes: tuple[Node, ...], links: tuple[Link, ...] = (), shared: tuple[SharedCapacity, ...] = ()) -> str:
    with pytest.raises(InputError) as caught:
        Topology(nodes, links, shared)
    return str(caught.value)


def test_unusable_nodes() -> None:
    """No nodes, a name used twice, and names that cannot be shown are refused."""
    assert refusal(()) == "the topology has no nodes"
    assert refusal((*GPUS, Node("a", Kind.SWITCH))) == "node name 'a' is used 2 times; names must be unique"
    assert refusal((Node("", Kind.GPU),)) == "node name '' is not usable; use 1 to 255 printable characters"
    assert refusal((Node("a\nb", Kind.GPU),)) == "node name 'a\\nb' is not usable; use 1 to 255 printable characters"
    assert refusal((Node("a", Kind.GPU, ports=(0.0,)),)) == (
        "node a: port rate 0.0 bytes/s is not a finite number > 0; leave a dead link out instead of giving it no capacity"
    )


@pytest.mark.parametrize("capacity", [0.0, -1.0, math.nan, math.inf])
def test_unusable_capacities(capacity: float) -> None:
    """A capacity that is not a positive number is refused with its link."""
    assert refusal(GPUS, (Link(0, 1, capacity),)) == (
        f"link a -> b: capacity {capacity!r} bytes/s is not a finite number > 0; "
        "leave a dead link out instead of giving it no capacity"
    )


def test_unusable_links() -> None:
    """Links to nowhere and to the same node, and latencies below zero, are refused."""
    assert refusal(GPUS, (Link(0, 2, 1e9),)) == "links: link 0 -> 2 has no such end"
    assert (
        refusal(GPUS, (Link(1, 1, 1e9),)) == "link b -> b: a link from a node to itself; remove it: it carries nothing"
    )
    assert refusal(GPUS, (Link(0, 1, 1e9, -1.0),)) == "link a -> b: latency -1.0 s is not a finite number >= 0"
    assert refusal(GPUS, (Link(0, 1, 1e9, math.nan),)) == "link a -> b: latency nan s is not a finite number >= 0"


def test_unusable_shared_capacities() -> None:
    """A shared capacity needs existing links, each once, and a positive capacity."""
    none = "shared capacity 0: its links must be one or more, without repetition"
    assert refusal(GPUS, CABLE, (SharedCapacity((), 1e9),)) == none
    assert refusal(GPUS, CABLE, (SharedCapacity((0, 0), 1e9),)) == none
    missing = "shared capacity 0: it names a link that does not exist"
    assert refusal(GPUS, CABLE, (SharedCapacity((0, 2), 1e9),)) == missing
    assert refusal(GPUS, CABLE, (SharedCapacity((0,), 0.0),)).startswith("shared capacity 0: capacity 0.0 bytes/s")


def test_ranks_are_gpus_and_hosts_unless_said_otherwise() -> None:
    """``rank`` overrules the kind both ways, and ranks keep node order."""
    nodes = (
        Node("s", Kind.SWITCH),
        Node("h", Kind.HOST),
        Node("g", Kind.GPU, rank=False),
        Node("n", Kind.NIC, rank=True),
        Node("p", Kind.GPU),
    )
    topology = Topology(nodes, ())
    assert topology.ranks == (1, 3, 4)
    assert [node.rank for node in topology.nodes] == [False, True, False, True, True]


def test_boxes_are_what_stays_connected_without_switches() -> None:
    """Unnamed boxes are found, named ones spread over their component, and switches stay in the network."""
    nodes = tuple(
        Node(name, kind, box=box)
        for name, kind, box in [
            ("g0", Kind.GPU, None),
            ("p0", Kind.PCI, "left"),
            ("g1", Kind.GPU, None),
            ("g2", Kind.GPU, None),
            ("sw", Kind.SWITCH, None),
            ("g3", Kind.GPU, None),
        ]
    )
    links = tuple(Link(tail, head, 1e9) for tail, head in [(0, 1), (2, 3), (0, 4), (2, 4), (5, 4)])
    assert [n.box for n in Topology(nodes, links).nodes] == ["left", "left", "box0", "box0", None, "box1"]


def test_an_invented_box_takes_no_existing_name() -> None:
    """A derived box is not merged with one that happens to be called alike."""
    topology = Topology((Node("a", Kind.GPU, box="box0"), Node("b", Kind.GPU)), ())
    assert [node.box for node in topology.nodes] == ["box0", "box1"]


def test_an_ambiguous_box_is_refused() -> None:
    """A node connected to two named boxes must say where it stands."""
    nodes = (Node("a", Kind.GPU, box="x"), Node("b", Kind.GPU, box="y"), Node("c", Kind.NIC))
    links = (Link(0, 2, 1e9), Link(1, 2, 1e9))
    assert refusal(nodes, links) == "node c: its box could be any of x, y; give it a box"


def test_who_lets_what_pass() -> None:
    """Switches forward anything, box parts only for their box, GPUs and hosts only if all may."""
    assert transit(Kind.SWITCH, Forwarding.SWITCHES) is Transit.ANY
    assert {transit(kind, Forwarding.ALL) for kind in (Kind.NIC, Kind.CPU, Kind.PCI)} == {Transit.OWN_BOX}
    assert {transit(kind, Forwarding.SWITCHES) for kind in (Kind.GPU, Kind.HOST)} == {Transit.NONE}
    assert {transit(kind, Forwarding.ALL) for kind in (Kind.GPU, Kind.HOST)} == {Transit.ANY}


def test_links_are_described_by_their_ends() -> None:
    """Parallel links are told apart by position."""
    topology = Topology(GPUS, (*CABLE, Link(0, 1, 2e9)))
    assert [topology.describe_link(e) for e in range(3)] == ["a -> b (cable 0)", "b -> a", "a -> b (cable 1)"]


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_networkx_round_trip(seed: int, symmetric: bool, conditional: bool) -> None:
    """A topology survives networkx unchanged, parallel links and shared capacities included."""
    topology = random_fabric(seed, symmetric=symmetric, conditional=conditional, shared=True)
    topology = replace(topology, notes=("a note",))
    assert Topology.from_networkx(topology.to_networkx()) == topology


def test_an_undirected_graph_becomes_duplex() -> None:
    """Each edge of a plain graph is a cable."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_node("a", kind="gpu")
    graph.add_node("b", kind="gpu", rank=False)
    graph.add_edge("a", "b", capacity=1e9, latency=1e-6)
    topology = Topology.from_networkx(graph)
    assert topology.links == tuple(duplex(Link(0, 1, 1e9, 1e-6)))
    assert topology.ranks == (0,)


def test_unusable_graphs() -> None:
    """A node without kind or an edge without capacity is named."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_node("a")
    with pytest.raises(InputError) as caught:
        Topology.from_networkx(graph)
    assert str(caught.value) == "node a: kind None is not known; use one of gpu, switch, nic, cpu, pci, host"
    graph.add_node("a", kind="gpu")
    graph.add_node("b", kind="gpu")
    graph.add_edge("a", "b")
    with pytest.raises(InputError) as caught:
        Topology.from_networkx(graph)
    assert str(caught.value) == "edge a -> b: the edge has no capacity; give bytes/s"
