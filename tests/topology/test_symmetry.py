from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from dualcoll.testing import degrade
from dualcoll.topology import symmetry
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Kind, Link, Node, Topology

KINDS = (Kind.GPU, Kind.SWITCH)


def link_classes(topology: Topology, ranks: Sequence[int], **asked: Any) -> NDArray[np.int64]:
    """Classes where ranks that take part are told apart from other nodes."""
    roles = np.zeros(len(topology.nodes), np.int64)
    roles[list(ranks)] = 1
    return symmetry.link_classes(topology, roles, **asked)


def _random(seed: int) -> Topology:
    """Up to six nodes; links of few capacities, so that there is symmetry to find."""
    rng = np.random.default_rng(seed)
    nodes = tuple(Node(f"n{i}", KINDS[int(rng.integers(2))], box="b") for i in range(int(rng.integers(3, 7))))
    pairs = [pair for pair in itertools.permutations(range(len(nodes)), 2) if rng.random() < 0.5]
    return Topology(nodes, tuple(Link(a, b, float(rng.integers(1, 3))) for a, b in pairs))


@pytest.mark.parametrize("by_capacity", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_links_that_an_automorphism_exchanges_are_in_one_class(seed: int, by_capacity: bool) -> None:
    """Against all node permutations that keep kinds, participation and links (with their capacities where they count)."""
    topology = _random(seed)
    participants = tuple(i for i in topology.ranks if i % 2 or seed % 2)
    classes = link_classes(topology, participants, by_capacity=by_capacity)
    wired = {(link.tail, link.head): link.capacity if by_capacity else 0.0 for link in topology.links}
    number = {(link.tail, link.head): e for e, link in enumerate(topology.links)}
    looks = [(node.kind, i in participants) for i, node in enumerate(topology.nodes)]
    for image in itertools.permutations(range(len(topology.nodes))):
        if any(looks[i] != looks[image[i]] for i in range(len(looks))):
            continue
        if all(wired.get((image[a], image[b])) == capacity for (a, b), capacity in wired.items()):
            for (a, b), e in number.items():
                assert classes[e] == classes[number[image[a], image[b]]]


@pytest.mark.parametrize("seed", range(40))
def test_a_class_has_links_of_one_look(seed: int) -> None:
    """Equal capacities, kinds and participation at both ends."""
    topology = _random(seed)
    classes = link_classes(topology, topology.ranks[:2], by_capacity=True)
    for label in range(int(classes.max(initial=-1)) + 1):
        looks = {
            (
                link.capacity,
                *((topology.nodes[end].kind, end in topology.ranks[:2]) for end in (link.tail, link.head)),
            )
            for link, found in zip(topology.links, classes.tolist(), strict=True)
            if found == label
        }
        assert len(looks) == 1


@pytest.mark.parametrize("seed", range(20))
def test_names_and_order_do_not_matter(seed: int) -> None:
    """Shuffled nodes and links fall into the same classes."""
    topology = _random(seed)
    rng = np.random.default_rng(seed)
    place = rng.permutation(len(topology.nodes)).tolist()
    order = rng.permutation(len(topology.links)).tolist()
    nodes = [node for _, node in sorted(zip(place, topology.nodes, strict=True), key=lambda pair: pair[0])]
    links = [topology.links[e] for e in order]
    shuffled = Topology(tuple(nodes), tuple(Link(place[x.tail], place[x.head], x.capacity) for x in links))
    ranks = tuple(place[i] for i in topology.ranks)
    one = link_classes(topology, topology.ranks, by_capacity=True)[order]
    two = link_classes(shuffled, ranks, by_capacity=True)
    assert len({*zip(one.tolist(), two.tolist(), strict=True)}) == len({*one.tolist()}) == len({*two.tolist()})


def test_regular_fabrics_have_few_classes() -> None:
    """Up and down between GPU and box switch, GPU and leaf, leaf and spine; one class in a torus."""
    boxes = catalog("dgx-h100:boxes=16")
    assert np.unique(link_classes(boxes, boxes.ranks, by_capacity=True)).size == 6
    assert np.unique(link_classes(boxes, boxes.ranks[:-1], by_capacity=True)).size > 6
    torus = catalog("torus:4x4")
    assert np.unique(link_classes(torus, torus.ranks, by_capacity=True)).size == 1


def test_a_limit_on_classes_ends_the_refinement() -> None:
    """Where there are more classes than asked for, none of them is worth refining; where there are fewer, all is as ever."""
    line = catalog("line:40")
    many = link_classes(line, line.ranks, by_capacity=True)
    assert many.max() + 1 == 39
    few = link_classes(line, line.ranks, by_capacity=True, most=8)
    assert few.max() + 1 < many.max() + 1
    np.testing.assert_array_equal(link_classes(line, line.ranks, by_capacity=True, most=100), many)


@pytest.mark.parametrize(("name", "classes"), [("petersen", 1), ("frucht", 1), ("prism and its like", 1)])
def test_a_regular_graph_is_one_class_whether_its_cables_are_orbits_or_not(name: str, classes: int) -> None:
    """Colour refinement sees degrees alone: Petersen's graph is one orbit, Frucht's has no automorphism at all."""
    graph = {
        "petersen": nx.petersen_graph(),
        "frucht": nx.LCF_graph(12, [-5, -2, -4, 2, 5, -2, 2, 5, -2, -5, 4, 2], 1),
        "prism and its like": nx.disjoint_union(nx.circular_ladder_graph(3), nx.complete_bipartite_graph(3, 3)),
    }[name]
    nodes = tuple(Node(f"g{i}", Kind.GPU, box=f"b{i}") for i in range(len(graph)))
    links = tuple(Link(a, b, 1e9) for pair in graph.edges for a, b in (pair, pair[::-1]))
    topology = Topology(nodes, links)
    assert link_classes(topology, topology.ranks, by_capacity=True).max() + 1 == classes


def test_degraded_cables_are_told_apart_only_where_capacity_counts() -> None:
    """Without capacities, the classes of the degraded fabric are those of the fabric; with them there are more."""
    plain, slow = catalog("dgx-h100:boxes=4"), degrade(catalog("dgx-h100:boxes=4"), 1)
    alike = link_classes(plain, plain.ranks, by_capacity=False)
    np.testing.assert_array_equal(link_classes(slow, slow.ranks, by_capacity=False), alike)
    assert link_classes(slow, slow.ranks, by_capacity=True).max() > alike.max()


@pytest.mark.parametrize("seed", range(20))
def test_each_round_refines_the_one_before(seed: int) -> None:
    """No round tells links by their own ends; more rounds only split classes, up to those without a limit."""
    topology = _random(seed)
    found = [link_classes(topology, topology.ranks, by_capacity=True, rounds=r) for r in (0, 1, 2, 8)]
    looks = {(topology.nodes[x.tail].kind, topology.nodes[x.head].kind, x.capacity) for x in topology.links}
    assert np.unique(found[0]).size == len(looks)
    for coarse, fine in itertools.pairwise(found):
        assert len({*zip(coarse.tolist(), fine.tolist(), strict=True)}) == np.unique(fine).size
    np.testing.assert_array_equal(found[-1], link_classes(topology, topology.ranks, by_capacity=True))
