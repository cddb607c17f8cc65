"""Planning from a plan of a similar fabric: the same optimum, whatever changed, and nothing taken on trust."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dualcoll._api import check, plan
from dualcoll.errors import InputError
from dualcoll.plans.file import read_plan, write_plan
from dualcoll.plans.model import Plan, Tree
from dualcoll.progress import Gap, Outcome, Seconds
from dualcoll.testing import degrade
from dualcoll.topology.catalog import catalog
from dualcoll.topology.file import read_topology
from dualcoll.topology.model import Forwarding, Kind, Node, Topology
from tests.packing.exact import FABRIC_KINDS, random_case
from tests.packing.fabrics import fabric
from tests.packing.problems import allreduce_problem

CHANGES = ("failed", "slower", "added")


def _cables(topology: Topology) -> list[tuple[int, ...]]:
    """Link indices of each cable: two directions, or one of a one-way link."""
    ways: dict[tuple[int, int], list[int]] = defaultdict(list)
    for e, link in enumerate(topology.links):
        ways[link.tail, link.head].append(e)
    cables = []
    for (tail, head), there in ways.items():
        back = ways.get((head, tail), [])
        if tail < head or not back:
            for i in range(max(len(there), len(back))):
                cables.append(tuple(way[i] for way in (there, back) if i < len(way)))
    return cables


def _changed(topology: Topology, cable: tuple[int, ...], change: str) -> Topology:
    """The fabric with the cable gone, at 0.4 of its speed, or doubled by a parallel one."""
    links = topology.links
    if change == "slower":
        slow = (replace(link, capacity=0.4 * link.capacity) if e in cable else link for e, link in enumerate(links))
        return replace(topology, links=tuple(slow))
    if change == "added":
        return replace(topology, links=links + tuple(links[e] for e in cable))
    left = [e for e in range(len(links)) if e not in cable]
    place = {e: i for i, e in enumerate(left)}
    rows = (replace(row, links=tuple(place[e] for e in row.links if e in place)) for row in topology.shared)
    return replace(topology, links=tuple(links[e] for e in left), shared=tuple(row for row in rows if row.links))


def _assert_same(topology: Topology, previous: Plan) -> None:
    """From the previous plan as from scratch: value, bound, outcome, proof, or the same refusal."""
    try:
        scratch = plan(topology)
    except InputError as error:
        with pytest.raises(InputError) as caught:
            plan(topology, start=previous)
        assert str(caught.value) == str(error)  # noqa: PT017
        return
    made = plan(topology, start=previous)
    check(made)
    assert made.value == pytest.approx(scratch.value, rel=1e-6)
    assert made.bound == pytest.approx(scratch.bound, rel=1e-6)
    assert made.outcome is scratch.outcome is Outcome.OPTIMAL


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_of_a_changed_fabric_is_that_from_scratch(seed: int, kind: str, change: str) -> None:
    """A random cable of a random fabric, of every kind, parallel cables among them; cut off ranks are refused as ever."""
    topology = random_case(kind, seed)
    cables = _cables(topology)
    cable = cables[int(np.random.default_rng(seed).integers(len(cables)))]
    _assert_same(_changed(topology, cable, change), plan(topology))


LARGER: dict[str, Topology] = {
    "rails": degrade(catalog("rail:4x8"), 1),
    "pairs": degrade(catalog("rail:2x8"), 1, symmetric=False),
    "shared": degrade(catalog("p4d:boxes=4"), 1),
    "imported": read_topology("examples/h100-nccl-topo.xml"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", LARGER)
def test_larger_fabrics_are_planned_again_to_the_same_optimum(name: str, change: str) -> None:
    """The first cable that can fail without cutting off a rank."""
    topology = LARGER[name]
    previous = plan(topology)
    for cable in _cables(topology):
        try:
            changed = _changed(topology, cable, change)
            allreduce_problem(changed, changed.ranks)
        except InputError:
            continue
        _assert_same(changed, previous)
        return
    raise AssertionError("every cable cuts off a rank")


def test_a_failed_cable_that_cuts_off_a_rank_is_refused() -> None:
    """With the message of any plan."""
    before = fabric("g0-s0:1, g1-s0:1, g2-s0:1, g2-s1:1")
    after = fabric("g0-s0:1, g1-s0:1, g2-s1:1")
    with pytest.raises(InputError) as caught:
        plan(after, start=plan(before))
    assert str(caught.value) == (
        "rank g2 cannot be reached from g0; GPUs and hosts forward nothing (see --forward), and a nic, cpu or pci node "
        "serves only its own box: check the links and the nodes' boxes"
    )


@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_routes_that_today_s_policy_forbids_are_not_carried_over(seed: int, kind: str) -> None:
    """From a plan in which every GPU forwards to one in which none may, and back."""
    topology = random_case(kind, seed)
    free, strict = plan(topology, forward="all"), plan(topology)
    for made, same in ((plan(topology, start=free), strict), (plan(topology, forward="all", start=strict), free)):
        check(made)
        assert made.value == pytest.approx(same.value, rel=1e-6)


def test_a_node_that_became_another_kind_is_no_way_any_more() -> None:
    """A switch that is replaced by a GPU of the same name forwards nothing."""
    cables = "g0-v0:5, g1-v0:5, g0-s1:2/1, g1-s1:2, g2-s1:1, g2-v0:3"
    text = fabric(cables.replace("v0", "s0"))
    switched = Topology(tuple(replace(n, name="v0") if n.name == "s0" else n for n in text.nodes), text.links)
    nodes = tuple(Node("v0", Kind.GPU, rank=False, box="b") if n.name == "v0" else n for n in switched.nodes)
    _assert_same(Topology(nodes, switched.links), plan(switched))


def _forged(made: Plan, how: str) -> Plan:
    """The plan with its first tree broken in one way."""
    tree = made.trees[0]
    edges, phase, ptr, links = tree.edges.copy(), tree.phase, tree.route_ptr, tree.route_links
    if how == "circle":
        edges[0] = edges[0, ::-1]
    elif how == "twice":
        edges[1] = edges[0]
    elif how == "root":
        root = next(i for i, node in enumerate(made.topology.nodes) if not node.is_rank)
        return replace(made, trees=(replace(tree, root=root), *made.trees[1:]))
    elif how == "short":
        edges, phase = edges[:-1], phase[:-1]
        ptr, links = ptr[:-1], links[: ptr[-2]]
    elif how == "elsewhere":
        links = np.roll(links, 1)
    elif how == "no routes":
        ptr, links = np.zeros_like(ptr), links[:0]
    broken = Tree(tree.rate, tree.demand, tree.root, tree.size, edges, phase, ptr, links)
    return replace(made, trees=(broken, *made.trees[1:]))


@pytest.mark.parametrize("how", ["circle", "twice", "root", "short", "elsewhere", "no routes"])
@pytest.mark.parametrize("kind", ["one-way", "shared boxes"])
@pytest.mark.parametrize("seed", range(4))
def test_a_forged_plan_does_no_harm(seed: int, kind: str, how: str) -> None:
    """A plan file is anybody's: trees that are none and routes that lead elsewhere never get into the new plan."""
    topology = random_case(kind, seed)
    _assert_same(topology, _forged(plan(topology), how))


def test_other_ranks_are_refused() -> None:
    """Naming those that only one of the two has, five at most."""
    eight, six = catalog("star:8"), catalog("star:6")
    with pytest.raises(InputError) as caught:
        plan(six, start=plan(eight))
    assert str(caught.value) == (
        "the previous plan is for other ranks: it also has g6, g7; start from a plan of the same ranks, or from none"
    )
    with pytest.raises(InputError) as caught:
        plan(eight, ranks="0-1", start=plan(eight))
    assert str(caught.value) == (
        "the previous plan is for other ranks: it also has g2, g3, g4, g5, g6, …; "
        "start from a plan of the same ranks, or from none"
    )


@pytest.mark.parametrize("kind", ["switched", "one-way", "boxes"])
def test_ranks_and_nodes_in_another_order_are_the_same(kind: str) -> None:
    """Nodes go by name: a shuffled fabric and reordered ranks make no difference."""
    topology = random_case(kind, 2)
    order = np.random.default_rng(0).permutation(len(topology.nodes)).tolist()
    place = {old: new for new, old in enumerate(order)}
    links = tuple(replace(link, tail=place[link.tail], head=place[link.head]) for link in topology.links)
    shuffled = Topology(tuple(topology.nodes[i] for i in order), links)
    previous = plan(topology)
    _assert_same(shuffled, previous)
    names = [topology.nodes[i].name for i in reversed(previous.participants)]
    assert check(plan(topology, ranks=names, start=previous)).gap <= 1e-6


@pytest.mark.parametrize("kind", ["switched", "one-way", "shared boxes"])
def test_a_plan_from_a_file_serves_as_well(kind: str, tmp_path: Path) -> None:
    """Written, read, and started from."""
    topology = random_case(kind, 1)
    write_plan(plan(topology), tmp_path / "plan.json")
    _assert_same(topology, read_plan(tmp_path / "plan.json"))


def test_parallel_cables_go_by_order() -> None:
    """Two of three parallel cables fail; the routes over them move to what is left."""
    three = fabric("g0-g1:4/3, g0-g1:4/3, g0-g1:4/3, g1-g2:5, g2-g0:1")
    one = fabric("g0-g1:4/3, g1-g2:5, g2-g0:1")
    _assert_same(one, plan(three))
    _assert_same(three, plan(one))


def test_a_start_is_worth_something_at_once() -> None:
    """With no time at all, the old prices prove more than a first step from scratch."""
    topology = LARGER["pairs"]
    previous = plan(topology)
    changed = _changed(topology, _cables(topology)[-1], "slower")
    at_once = Gap(0.0) | Seconds(1e-9)
    for fabric_now in (topology, changed):
        started = plan(fabric_now, start=previous, stop=at_once)
        check(started)
        assert started.bound < plan(fabric_now, stop=at_once).bound


def test_limits_hold_from_a_start_too() -> None:
    """Deep trees of the previous plan are left out, and few trees stay few."""
    topology = LARGER["imported"]
    previous = plan(topology)
    shallow = plan(topology, start=previous, max_depth=1)
    check(shallow)
    assert all(tree.edges.shape[0] == 14 and (tree.edges == tree.root).any(axis=1).all() for tree in shallow.trees)
    assert len(plan(topology, start=previous, max_trees=3).trees) <= 3


def test_a_start_serves_every_policy_and_size() -> None:
    """Another message size, another forwarding: nothing but the fabric and the ranks ties a plan to its start."""
    topology = LARGER["rails"]
    made = plan(topology, size="1K", forward=str(Forwarding.ALL), start=plan(topology, size="1G"))
    check(made)
    assert made.value == pytest.approx(plan(topology, forward="all").value, rel=1e-6)
