"""Networks under boxes: what is cabled to what, and how wide."""

from __future__ import annotations

import time
from collections import Counter

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.topology.arrays import reversal
from dualcoll.topology.catalog import box, catalog
from dualcoll.topology.catalog.boxes import BOXES
from dualcoll.topology.draft import Draft
from dualcoll.topology.model import Kind, Topology
from dualcoll.topology.networks import Network, NetworkKind, Port, wire


def hosts(count: int, network: Network) -> Topology:
    """GPUs of one port of 1 GB/s each on the network."""
    draft = Draft()
    for i in range(count):
        draft.node(f"g{i}", Kind.GPU, f"b{i}")
    wire(draft, [Port((i,), i, 0, 1e9, "given") for i in range(count)], network)
    return draft.topology("")


def pairs(topology: Topology) -> Counter[tuple[str, str]]:
    """Cables from every node to every other."""
    return Counter((topology.nodes[link.tail].name, topology.nodes[link.head].name) for link in topology.links)


def leaving(topology: Topology, chassis: str) -> float:
    """Bytes/s from a box into the network, where what shares a capacity counts once."""
    nodes = topology.nodes
    out = {
        e for e, link in enumerate(topology.links) if nodes[link.tail].box == chassis and nodes[link.head].box is None
    }
    total = 0.0
    for row in topology.shared:
        if out >= set(row.links):
            out -= set(row.links)
            total += row.capacity
    return total + sum(topology.links[e].capacity for e in out)


def test_the_example_of_the_dragonfly_paper() -> None:
    """p = h = 2, a = 4: 72 hosts in nine groups, one cable between any two, router i's links in turn."""
    topology = hosts(72, Network(NetworkKind.DRAGONFLY))
    found = pairs(topology)
    routers = [node.name for node in topology.nodes if node.kind is Kind.SWITCH]
    assert routers == [f"group{g}.router{r}" for g in range(9) for r in range(4)]
    assert found["g7", "group0.router3"] == found["g8", "group1.router0"] == 1
    assert found["group4.router0", "group4.router3"] == 1
    assert found["group0.router0", "group1.router3"] == found["group0.router3", "group8.router0"] == 1
    assert {link.capacity for link in topology.links} == {1e9}
    assert {link.source for link in topology.links} == {
        "given",
        "derived: a local link, as fast as the fastest port",
        "derived: a global link, as fast as the fastest port",
    }


@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3), st.data())
def test_dragonflies_are_even(a: int, p: int, h: int, data: st.DataObject) -> None:
    """Every two groups have as many cables as every two others, and no router more than h or two more than another's."""
    count = data.draw(st.integers(2, a * p * (a * h + 1)))
    topology = hosts(count, Network(NetworkKind.DRAGONFLY, a=a, p=p, h=h))
    groups = -(-count // (a * p))
    between: Counter[tuple[str, str]] = Counter()
    used = Counter({f"group{g}.router{r}": 0 for g in range(groups) for r in range(a)})
    terminals: Counter[str] = Counter()
    for (tail, head), cables in pairs(topology).items():
        one, other = tail.partition(".")[0], head.partition(".")[0]
        if tail.startswith("g") and "." not in tail:
            terminals[head] += cables
        elif "." in head and one != other:
            between[one, other] += cables
            used[tail] += cables
        elif "." in head:
            assert cables == 1
    assert max(terminals.values()) <= p
    assert len(between) == groups * (groups - 1)
    assert set(between.values()) <= {a * h // max(groups - 1, 1)}
    assert max(used.values()) <= h
    assert max(used.values()) - min(used.values()) <= 1
    assert reversal(topology) is not None


@pytest.mark.parametrize(
    ("ports", "network", "routers"),
    [
        (6, {}, 3 * 2),
        (7, {}, 1 * 4),
        (16384, {}, 128 * 16),
        (100, {"p": 4}, 4 * 8),
        (100, {"a": 8}, 7 * 8),
        (100, {"a": 2, "h": 1}, 3 * 2),
    ],
)
def test_sizes_of_a_dragonfly(ports: int, network: dict[str, int], routers: int) -> None:
    """What is not given is balanced, a = 2p = 2h, and as small as fits."""
    topology = hosts(ports, Network(NetworkKind.DRAGONFLY, **network))
    assert sum(node.kind is Kind.SWITCH for node in topology.nodes) == routers


def test_two_planes_do_not_meet() -> None:
    """Each NIC has half its rate in each plane, and the planes join only at the GPUs."""
    topology = catalog("dgx-h100:boxes=4,network=dual-plane,spines=2,oversubscription=2")
    found = pairs(topology)
    assert found["b3.g5", "plane0.leaf5"] == found["b3.g5", "plane1.leaf5"] == 1
    assert not any(
        tail[:6] != head[:6] for tail, head in found if tail.startswith("plane") and head.startswith("plane")
    )
    assert sum(name.startswith("plane1.") for name in topology.index) == 8 + 2
    widths = {
        (link.capacity, link.source) for link in topology.links if topology.nodes[link.tail].name == "plane1.leaf0"
    }
    assert widths == {
        (25e9, "a 400 Gb/s NIC for each GPU, nominal; NVIDIA DGX H100 datasheet; half of it in each plane"),
        (4 * 25e9 / 2 / 2, "derived: a leaf's ports / oversubscription 2 / 2 spines"),
    }


NUMBERS = {"spines": 3, "boxes_per_leaf": 2, "k": 8, "a": 4, "p": 3, "h": 2}


@settings(max_examples=60)
@given(
    st.sampled_from([entry.name for entry in BOXES]),
    st.integers(1, 3),
    st.sampled_from(list(NetworkKind)),
    st.fixed_dictionaries({}, optional={key: st.integers(0, most) for key, most in NUMBERS.items()}),
    st.sampled_from([None, 0.5, 1, 3]),
)
def test_any_options_are_built_or_refused(
    name: str, count: int, kind: NetworkKind, numbers: dict[str, int], ratio: float | None
) -> None:
    """Whatever is built is connected and symmetric, and every box has all of its NICs in the network."""
    ratios = {} if ratio is None else {"oversubscription": ratio}
    try:
        topology = catalog(name, boxes=count, network=kind, **numbers, **ratios)
    except InputError:
        return
    assert len(topology.ranks) == count * len(catalog(name).ranks)
    assert nx.is_strongly_connected(nx.DiGraph(topology.to_networkx()))
    assert reversal(topology) is not None
    if count > 1:
        free = sum(rate for _, rate in box(name).ports())
        assert [leaving(topology, f"b{i}") for i in range(count)] == pytest.approx([free] * count, rel=1e-12)
        assert not any(node.ports for node in topology.nodes)


@pytest.mark.parametrize("kind", list(NetworkKind))
def test_sixteen_thousand_gpus(kind: NetworkKind) -> None:
    """A large cluster is built in seconds."""
    start = time.perf_counter()
    assert len(catalog("dgx-h100", boxes=2048, network=kind).ranks) == 16384
    assert time.perf_counter() - start < 60
