"""The proof accepts what is supported and refuses what is not, with the reason (docs/model.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dualcoll.certificates import Proof, check_plan
from dualcoll.errors import CheckFailed
from dualcoll.plans.document import PlanDocument, Price, TreeRecord
from dualcoll.plans.file import document_from_dict
from dualcoll.plans.model import Phase
from dualcoll.topology.model import Forwarding, Kind, Link, Topology

Plans = dict[str, PlanDocument]


def _findings(document: PlanDocument, topology: Topology | None = None) -> list[str]:
    with pytest.raises(CheckFailed) as failed:
        check_plan(document, topology)
    return list(failed.value.findings)


def _with_tree(document: PlanDocument, i: int, change: Callable[[TreeRecord], TreeRecord]) -> PlanDocument:
    trees = list(document.trees)
    trees[i] = change(trees[i])
    return replace(document, trees=tuple(trees))


def _without_edge(tree: TreeRecord, j: int) -> TreeRecord:
    routes = None if tree.routes is None else tree.routes[:j] + tree.routes[j + 1 :]
    return replace(tree, edges=tree.edges[:j] + tree.edges[j + 1 :], routes=routes)


def _rerouted(tree: TreeRecord, j: int, *route: Any) -> TreeRecord:
    assert tree.routes is not None
    return replace(tree, routes=(*tree.routes[:j], route, *tree.routes[j + 1 :]))


def _claiming(document: PlanDocument, **claims: float) -> PlanDocument:
    return replace(document, claims=replace(document.claims, **claims))


def _among(document: PlanDocument, **group: Any) -> PlanDocument:
    return replace(document, groups=(replace(document.groups[0], **group), *document.groups[1:]))


def _with_capacity(topology: Topology, tail: str, head: str, capacity: float) -> Topology:
    ends = topology.index[tail], topology.index[head]
    links = (replace(link, capacity=capacity) if (link.tail, link.head) == ends else link for link in topology.links)
    return replace(topology, links=tuple(links))


def test_optimal_plans_are_proved_exactly(plan: PlanDocument) -> None:
    """Every plan made by hand is proved optimal, with no rounding anywhere."""
    proof = check_plan(plan)
    assert proof.rate == proof.bound == Fraction(plan.claims.rate)
    assert proof.gap == 0
    assert proof.utilisation == 1
    assert proof.in_network_bound == plan.claims.in_network_bound


def test_proof_names_the_busiest_link(plans: Plans) -> None:
    """The proof reports the exact utilisation of the most loaded capacity and which one that is."""
    half = _with_tree(plans["bus"], 0, lambda tree: replace(tree, rate=1e9))
    assert check_plan(_claiming(half, rate=1e9, gap=0.5)) == Proof(
        rate=Fraction(10**9),
        group_rates=(Fraction(10**9),),
        bound=Fraction(2 * 10**9),
        gap=Fraction(1, 2),
        in_network_bound=Fraction(3 * 10**9),
        utilisation=Fraction(1, 2),
        busiest="shared capacity 0",
    )


def test_raised_rate(plans: Plans) -> None:
    """A tree's rate raised above what its links carry is refused with each overloaded link."""
    forged = _with_tree(plans["ring"], 0, lambda tree: replace(tree, rate=1.5e9))
    findings = _findings(forged)
    assert findings[0] == "link g0 -> g1 carries 3.5 GB/s of 3 GB/s (docs/model.md §3)"
    assert sum("carries" in finding for finding in findings) == 6


def test_one_ulp_too_much(plans: Plans) -> None:
    """A load one unit in the last place above its capacity is refused; one equal to it is not."""
    forged = _with_tree(plans["ring"], 0, lambda tree: replace(tree, rate=math.nextafter(1e9, 2e9)))
    by = math.nextafter(1e9, 2e9) - 1e9
    assert f"link g0 -> g1 carries 3 GB/s of 3 GB/s, a difference of {by:.6g} B/s (docs/model.md §3)" in _findings(
        forged
    )
    check_plan(plans["ring"])


def test_overloaded_shared_capacity(plans: Plans) -> None:
    """A shared capacity binds even where each of its links has room."""
    forged = _with_tree(plans["bus"], 0, lambda tree: replace(tree, rate=2.5e9))
    assert _findings(forged) == ["shared capacity 0 carries 5 GB/s of 4 GB/s (docs/model.md §3)"]


def test_lowered_capacity_under_load(plans: Plans) -> None:
    """A capacity lowered in the plan's own topology no longer carries its load."""
    star = plans["star"]
    forged = replace(star, topology=_with_capacity(star.topology, "g0", "sw", 3.5e9))
    assert _findings(forged) == ["link g0 -> sw carries 4 GB/s of 3.5 GB/s (docs/model.md §3)"]


def test_raised_capacity_on_a_priced_link(plans: Plans) -> None:
    """A capacity raised on a priced link makes the prices prove less than is claimed."""
    boxes = plans["boxes"]
    forged = replace(boxes, topology=_with_capacity(boxes.topology, "gpu0", "pci0", 4e9))
    assert _findings(forged) == [
        "claimed bound 3 GB/s is below 4 GB/s, the best that the prices prove (docs/model.md §5)",
        "claimed in-network bound 3 GB/s is below 4 GB/s, what leaves the cut allows (docs/model.md §6)",
    ]


@pytest.mark.parametrize(
    ("edge", "finding"),
    [
        (0, "trees[0]: no reduce edge leaves g1, so its data never reaches the root g0"),
        (3, "trees[0]: no broadcast edge enters g2, so nothing reaches it from the root g0"),
    ],
)
def test_removed_edge(plans: Plans, edge: int, finding: str) -> None:
    """A tree that no longer spans is refused, with the participant that is left out."""
    assert finding in _findings(_with_tree(plans["star"], 0, lambda tree: _without_edge(tree, edge)))


def test_removed_edge_but_not_its_route(plans: Plans) -> None:
    """Edges and routes that do not pair up are a finding, not a misreading."""
    forged = _with_tree(plans["star"], 0, lambda tree: replace(tree, edges=tree.edges[1:]))
    assert "trees[0]: it has 3 edges but 4 routes" in _findings(forged)


@pytest.mark.parametrize(
    ("route", "problem"),
    [
        (("g1", "g3", "g0"), "passes through gpu g3, which may not forward"),
        (("g1", "sw", "g2", "sw", "g0"), "visits sw twice"),
        (("g1", "g2", "g0"), "needs a link g1 -> g2, which the fabric does not have"),
        (("g1", ("sw", 1), "g0"), "needs a link g1 -> sw (cable 1), which the fabric does not have"),
        (("g1", "tor", "g0"), "passes through tor, which the fabric does not have"),
        (("g1", "\x1b[2J", "g0"), "passes through '\\x1b[2J', which the fabric does not have"),
        (("g2", "sw", "g0"), "starts at g2"),
        (("g1", "sw", "g2"), "ends at g2"),
        (("g1",), "has no link"),
        ((), "has no link"),
    ],
)
def test_bad_route(plans: Plans, route: tuple[Any, ...], problem: str) -> None:
    """A route that is no path, is not its edge's, or breaks the forwarding policy is refused with its witness."""
    forged = _with_tree(plans["star"], 0, lambda tree: _rerouted(tree, 0, *route))
    assert _findings(forged)[0] == f"trees[0]: its route from g1 to g0 {problem} (docs/model.md §2)"


def test_outsider_may_forward_only_when_the_plan_says_so(plans: Plans) -> None:
    """The same detour over a GPU outside the group is an allowed route under ``forward: all``, and the bound then differs."""
    forged = _with_tree(plans["star"], 0, lambda tree: _rerouted(tree, 0, "g1", "g3", "g0"))
    assert _findings(replace(forged, forwarding=Forwarding.ALL)) == [
        "claimed bound 3 GB/s is below 6 GB/s, the best that the prices prove (docs/model.md §5)"
    ]


def test_transit_through_a_foreign_nic(plans: Plans) -> None:
    """A NIC carries nothing between other boxes, so a path through it that goes on is refused with the NIC named."""
    boxes = plans["boxes"]
    nodes = (*boxes.topology.nodes, *(replace(boxes.topology.nodes[2], name=f"nic{i}", box=f"b{i}") for i in (2, 3)))
    index = {node.name: i for i, node in enumerate(nodes)}
    links = [Link(index[a], index[b], 3e9) for a, b in (("nic0", "nic2"), ("nic2", "nic1"))]
    topology = replace(boxes.topology, nodes=nodes, links=(*boxes.topology.links, *links))
    route = ("gpu0", "pci0", "nic0", "nic2", "nic1", "pci1", "gpu1")
    forged = _with_tree(replace(boxes, topology=topology), 0, lambda tree: _rerouted(tree, 0, *route))
    assert _findings(forged) == [
        "trees[0]: its route from gpu0 to gpu1 leaves box b2, which it entered through nic nic2, for nic nic1 "
        "(docs/model.md §2)"
    ]


def test_wrong_trees(plans: Plans) -> None:
    """Edges that run in a circle, double edges, edges at the root and strangers are each named."""
    ring = plans["ring"]

    def edges(tree: TreeRecord, *changed: tuple[str, str, Phase]) -> TreeRecord:
        return replace(tree, edges=(*changed, *tree.edges[len(changed) :]))

    reduce = Phase.REDUCE
    cases: list[tuple[tuple[tuple[str, str, Phase], ...], str]] = [
        (
            (("g3", "g2", reduce), ("g2", "g3", reduce), ("g1", "g0", reduce)),
            "trees[0]: the reduce edges at g2 run in a circle, so its data never reaches the root g0",
        ),
        ((("g2", "g1", reduce),), "trees[0]: more than one reduce edge leaves g2"),
        ((("g0", "g1", reduce),), "trees[0]: a reduce edge leaves the root g0"),
        ((("g9", "g1", reduce),), "trees[0].edges[0]: g9 does not take part"),
    ]
    for changed, finding in cases:
        forged = _with_tree(ring, 0, lambda tree, changed=changed: edges(tree, *changed))  # type: ignore[misc]
        assert finding in _findings(forged)
    stray = _with_tree(ring, 0, lambda tree: replace(tree, root="g9"))
    assert _findings(stray) == ["trees[0]: its root g9 does not take part"]


def test_lowered_bound(plans: Plans) -> None:
    """A bound claimed below what the prices prove is refused, down to the last digit."""
    low = _findings(_claiming(plans["one_way_ring"], bound=3.9e9, rate=3.9e9))
    assert low == ["claimed bound 3.9 GB/s is below 4 GB/s, the best that the prices prove (docs/model.md §5)"]
    close = math.nextafter(4e9, 0)
    assert _findings(_claiming(plans["one_way_ring"], bound=close)) == [
        f"claimed bound 4 GB/s is below 4 GB/s, the best that the prices prove, a difference of {4e9 - close:.6g} B/s "
        "(docs/model.md §5)"
    ]


def test_raised_claims(plans: Plans) -> None:
    """A rate above the trees', a gap below what rate and bound leave, and a lowered in-network bound are refused."""
    forged = _claiming(plans["ring"], rate=4.5e9, bound=5e9, gap=0.05, in_network_bound=5e9)
    assert _findings(forged) == [
        "claimed rate 4.5 GB/s is above 4 GB/s, as fast as the AllReduce is carried (docs/model.md §4)",
        "claimed gap 0.05 is below 0.1, what the claimed rate and bound leave",
        "claimed in-network bound 5 GB/s is below 6 GB/s, what leaves the cut allows (docs/model.md §6)",
    ]


def test_shares_that_do_not_sum(plans: Plans) -> None:
    """The trees' bytes must sum to the message and each be in proportion to the tree's rate."""
    forged = _with_tree(plans["ring"], 0, lambda tree: replace(tree, size=248))
    assert _findings(forged) == [
        "the bytes of the AllReduce sum to 998 over its trees, not to 1000 (docs/model.md §4)",
        "trees[0]: its 248 bytes are not within one byte of 250.0, its part in proportion to the rates (docs/model.md §4)",
    ]


def test_changed_prices_that_still_support_the_claim(plan: PlanDocument) -> None:
    """Prices in any unit prove the same bound, as do slightly different ones where the claim leaves room."""
    for factor in (1e-12, 3.0, 1e200):
        prices = tuple(replace(entry, price=entry.price * factor) for entry in plan.prices)
        assert check_plan(replace(plan, prices=prices)).bound == Fraction(plan.claims.bound)
    first = replace(plan.prices[0], price=1.001)
    roomy = _claiming(plan, bound=plan.claims.bound * 1.01, gap=0.01)
    assert check_plan(replace(roomy, prices=(first, *plan.prices[1:]))).bound <= Fraction(plan.claims.bound) * 2


def test_prices_beyond_any_range_are_rounded_down(plans: Plans) -> None:
    """A price below 2**-192 of the largest counts as none, and what is left is still a proof."""
    bus = plans["bus"]
    wide = replace(bus, prices=(*bus.prices, Price(("g0", "g1"), 1e-300)))
    assert check_plan(wide).bound == Fraction(bus.claims.bound)


def test_unusable_prices(plans: Plans) -> None:
    """Prices that prove nothing, are given twice, or lie on what is not there are refused."""
    ring = plans["ring"]
    assert _findings(replace(ring, prices=())) == [
        "the prices prove no bound: some tree uses no priced link (docs/model.md §5)"
    ]
    twice = replace(ring, prices=(*ring.prices, ring.prices[0], Price(0, 1.0), Price(("g0", "g2"), 1.0)))
    assert _findings(twice) == [
        "prices[8]: link g0 -> g1 has a price already",
        "prices[9]: the fabric has no shared capacity 0",
        "prices[10]: the fabric has no link g0 -> g2",
    ]


@pytest.mark.parametrize(
    ("ranks", "finding"),
    [
        (("g0", "g1", "g1"), "groups[0].ranks[2]: g1 is named twice"),
        (("g0", "g1", "g9"), "groups[0].ranks[2]: the fabric has no node g9"),
        (("g0",), "groups[0]: a collective takes two or more ranks, not 1"),
    ],
)
def test_unusable_ranks(plans: Plans, ranks: tuple[str, ...], finding: str) -> None:
    """Participants must be two or more different nodes of the fabric."""
    assert _findings(_among(plans["bus"], ranks=ranks)) == [finding]


def test_unusable_cut(plans: Plans) -> None:
    """The in-network cut must exist and have participants on both sides."""
    assert _findings(replace(plans["bus"], in_network_cut=("g0", "g1", "g9"))) == [
        "in_network_cut: the fabric has no node g9",
        "in_network_cut: no data has to leave it (docs/model.md §6)",
    ]


def test_cut_counts_shared_capacity_once(plans: Plans) -> None:
    """What leaves a cut under one shared capacity is no more than that capacity."""
    bus = plans["bus"]
    narrow = replace(bus.topology, shared=(replace(bus.topology.shared[0], capacity=2e9),))
    slow = _with_tree(replace(bus, topology=narrow), 0, lambda tree: replace(tree, rate=1e9))
    assert check_plan(_claiming(slow, rate=1e9, bound=1e9, in_network_bound=2e9)).in_network_bound == 2 * 10**9


def test_no_rate_at_all(plans: Plans) -> None:
    """A plan whose trees carry nothing is refused, however consistent its claims are."""
    idle = _with_tree(plans["bus"], 0, lambda tree: replace(tree, rate=0.0))
    assert _findings(_claiming(idle, rate=0.0, gap=1.0)) == [
        "nothing carries the AllReduce: its trees' rates sum to 0 (docs/model.md §4)"
    ]


def test_participants_that_cannot_reach_each_other(plans: Plans) -> None:
    """Where no allowed route joins two participants, that is the finding."""
    bus = plans["bus"]
    cut_off = replace(bus.topology, links=bus.topology.links[:1], shared=())
    assert "no route that may be used leads from g1 to g0, directly or over other ranks" in _findings(
        replace(bus, prices=(Price(("g0", "g1"), 1.0),)), cut_off
    )


def test_against_another_fabric(plans: Plans) -> None:
    """A plan can be held against another fabric, whose nodes are matched by name: equal is proved, less is refused."""
    star = plans["star"]
    order = list(reversed(range(len(star.topology.nodes))))
    moved = Topology(
        tuple(star.topology.nodes[i] for i in order),
        tuple(replace(e, tail=order.index(e.tail), head=order.index(e.head)) for e in star.topology.links),
    )
    assert check_plan(star, moved) == check_plan(star)
    unplugged = replace(moved, links=tuple(e for e in moved.links if e.head != moved.index["g2"]))
    missing = "needs a link sw -> g2, which the fabric does not have (docs/model.md §2)"
    assert _findings(star, unplugged) == [
        *(f"trees[{i}]: its route from {route} {missing}" for i, route in enumerate(["g0 to g2", "g1 to g2"])),
        *(f"trees[2]: its route from {route} {missing}" for route in ["g0 to g2", "g1 to g2"]),
        "prices[5]: the fabric has no link sw -> g2",
        "no route that may be used leads from g0 to g2, directly or over other ranks",
    ]


def test_many_findings_are_counted(plans: Plans) -> None:
    """At most twenty findings are listed; the rest are counted."""
    ring = plans["ring"]
    forged = replace(ring, trees=tuple(replace(tree, routes=((),) * 6) for tree in ring.trees))
    findings = _findings(forged)
    assert (len(findings), findings[-1]) == (21, "and 4 more")


def test_hosts_and_switches_can_take_part(plans: Plans) -> None:
    """Who takes part is the plan's choice: the kind of a participant decides only what it forwards."""
    star = plans["star"]
    nodes = tuple(replace(node, kind=Kind.HOST) if node.name == "g2" else node for node in star.topology.nodes)
    assert check_plan(star, replace(star.topology, nodes=nodes)) == check_plan(star)


def test_documented_example_is_proved() -> None:
    """The example of docs/plan-file.md, written by hand, is proved optimal."""
    page = (Path(__file__).parents[2] / "docs" / "plan-file.md").read_text()
    example = page.split("```json\n")[1].split("```")[0]
    proof = check_plan(document_from_dict(json.loads(example), "example"))
    assert proof.rate == proof.bound == 50 * 10**9
