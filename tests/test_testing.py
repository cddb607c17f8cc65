"""Degraded and random fabrics."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.testing import degrade, network_cables, random_fabric
from dualcoll.topology.arrays import reversal
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Kind, Link, Node, Topology, duplex

BOXES = catalog("dgx-h100", boxes=16)


def test_network_cables_are_those_outside_boxes() -> None:
    """GPU-leaf and leaf-spine cables count, GPU-NVSwitch ones do not, each with its two directions."""
    cables = network_cables(BOXES)
    assert len(cables) == 16 * 8 + 8 * 4
    names = {
        tuple(sorted(BOXES.nodes[end].name for end in (BOXES.links[c[0]].tail, BOXES.links[c[0]].head))) for c in cables
    }
    assert not any("nvswitch" in name for pair in names for name in pair)
    assert all(len(cable) == 2 for cable in cables)


def test_cables_between_boxes_need_no_switch() -> None:
    """A direct cable from box to box is a network cable; one-way links and unlike directions find their partners."""
    nodes = tuple(Node(name, Kind.GPU, box=name) for name in "ab")
    links = (Link(0, 1, 2.0), Link(0, 1, 1.0), Link(1, 0, 1.5), Link(1, 0, 2.5), Link(0, 1, 9.0))
    assert network_cables(Topology(nodes, links)) == ((0, 3), (1, 2), (4,))


def test_degraded_by_the_law() -> None:
    """A tenth of the cables, factors from [0.2, 1], drawn in link order from the seed; both directions alike."""
    slow = degrade(BOXES, 0)
    ratios = [new.capacity / old.capacity for new, old in zip(slow.links, BOXES.links, strict=True)]
    changed = [cable for cable in network_cables(BOXES) if ratios[cable[0]] != 1]
    assert 5 <= len(changed) <= 30
    assert all(0.2 <= ratios[e] < 1 for cable in changed for e in cable)
    assert sum(ratio != 1 for ratio in ratios) == 2 * len(changed)
    assert reversal(slow) is not None
    before = BOXES.links[changed[0][0]].source
    assert slow.links[changed[0][0]].source == f"degraded to {100 * ratios[changed[0][0]]:.3g} %: {before}"


def test_degraded_fabrics_follow_from_the_seed() -> None:
    """The same seed gives the same fabric, another seed another."""
    assert degrade(BOXES, 5) == degrade(BOXES, 5)
    assert degrade(BOXES, 5) != degrade(BOXES, 6)
    assert degrade(BOXES, 5, fraction=0.0) == BOXES


def test_directions_drawn_apart() -> None:
    """Without symmetry each direction has its own draw."""
    slow = degrade(BOXES, 0, symmetric=False)
    assert reversal(slow) is None


def test_unusable_laws() -> None:
    """Probabilities and factors out of range are refused."""
    with pytest.raises(InputError) as caught:
        degrade(BOXES, 0, fraction=1.5)
    assert str(caught.value) == "fraction 1.5 is not in [0, 1]"
    with pytest.raises(InputError) as caught:
        degrade(BOXES, 0, low=0.0)
    assert str(caught.value) == "low 0.0 is not in (0, 1]"


def projected_reach(topology: Topology) -> nx.DiGraph[int]:
    """Which rank can send straight to which: over switches, and over other nodes of its own box or the receiver's."""
    reach: nx.DiGraph[int] = nx.DiGraph()
    reach.add_nodes_from(topology.ranks)
    out: dict[int, set[int]] = {}
    for link in topology.links:
        out.setdefault(link.tail, set()).add(link.head)
    for source in topology.ranks:
        home = topology.nodes[source].box
        # phase 0 leaves the source's box, 1 is between boxes, 2 enters the target's
        seen, stack = {(source, 0)}, [(source, 0)]
        while stack:
            node, phase = stack.pop()
            for head in out.get(node, ()):
                target = topology.nodes[head]
                if target.kind is Kind.GPU:
                    if target.is_rank and head != source:
                        reach.add_edge(source, head)
                    continue
                at_home = phase == 0 and target.box == home
                after = 0 if at_home else 1 if target.kind is Kind.SWITCH and phase < 2 else 2
                if (head, after) not in seen:
                    seen.add((head, after))
                    stack.append((head, after))
    return reach


@given(st.integers(0, 10**6), st.booleans(), st.booleans(), st.integers(2, 9), st.integers(1, 4))
def test_random_fabrics_connect_their_ranks(
    seed: int, symmetric: bool, conditional: bool, ranks: int, switches: int
) -> None:
    """Every rank reaches every other, directly or over ranks in between, under the default policy."""
    topology = random_fabric(seed, ranks, switches, symmetric=symmetric, conditional=conditional)
    assert len(topology.ranks) == ranks
    assert nx.is_strongly_connected(projected_reach(topology))


def test_random_fabrics_vary() -> None:
    """Parallel links, bystanders, one-way links, shared capacities and box parts all occur; the seed decides."""
    plain = [random_fabric(seed) for seed in range(30)]
    assert any(len({(e.tail, e.head) for e in t.links}) < len(t.links) for t in plain)
    assert any(len(t.ranks) < sum(node.kind is Kind.GPU for node in t.nodes) for t in plain)
    assert all(reversal(t) is not None for t in plain)
    assert any(reversal(random_fabric(seed, symmetric=False)) is None for seed in range(5))
    assert any(random_fabric(seed, shared=True).shared for seed in range(5))
    kinds = {node.kind for seed in range(5) for node in random_fabric(seed, conditional=True).nodes}
    assert kinds == {Kind.GPU, Kind.SWITCH, Kind.NIC, Kind.PCI, Kind.CPU}
    assert random_fabric(7) == random_fabric(7) != random_fabric(8)
    assert random_fabric(1, 2, 0).links


def test_too_small_random_fabrics() -> None:
    """A fabric needs two ranks, and boxes need a switch."""
    with pytest.raises(InputError) as caught:
        random_fabric(0, 1)
    assert str(caught.value) == "1 ranks and 3 switches are too few"
    with pytest.raises(InputError):
        random_fabric(0, 4, 0, conditional=True)


def test_a_link_of_every_cable_is_found_once() -> None:
    """The cables of a fabric partition its network links."""
    topology = Topology((Node("g", Kind.GPU), Node("s", Kind.SWITCH)), tuple(duplex(Link(0, 1, 1.0)) * 3))
    assert network_cables(topology) == ((0, 1), (2, 3), (4, 5))
