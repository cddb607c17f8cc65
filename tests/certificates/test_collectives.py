"""Every collective, objective and routing model: what is off by one unit is refused, in words (docs/model.md §3 to §8)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from dualcoll.certificates import check_plan
from dualcoll.collectives.workload import Objective
from dualcoll.errors import CheckFailed
from dualcoll.plans.document import GroupRecord, PlanDocument, TreeRecord
from dualcoll.plans.model import Phase
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.topology.model import Topology
from tests.certificates.by_hand import gpus, hashed, make_fabric, make_plan, make_send, priced

Plans = dict[str, PlanDocument]


def _findings(document: PlanDocument, topology: Topology | None = None) -> list[str]:
    with pytest.raises(CheckFailed) as failed:
        check_plan(document, topology)
    return list(failed.value.findings)


def _with_tree(document: PlanDocument, i: int, **changes: Any) -> PlanDocument:
    trees = list(document.trees)
    trees[i] = replace(trees[i], **changes)
    return replace(document, trees=tuple(trees))


def _claiming(document: PlanDocument, **claims: float) -> PlanDocument:
    return replace(document, claims=replace(document.claims, **claims))


def _without_cut(document: PlanDocument, **claims: float) -> PlanDocument:
    claimed = replace(document.claims, in_network_bound=None, **claims)
    return replace(document, claims=claimed, in_network_cut=None)


def _among(document: PlanDocument, i: int, **group: Any) -> PlanDocument:
    groups = list(document.groups)
    groups[i] = replace(groups[i], **group)
    return replace(document, groups=tuple(groups))


CARRIED = {
    "allgather": "the broadcast from g2",
    "reduce_scatter": "the reduction to g0",
    "broadcast": "the broadcast from g0",
    "reduce": "the reduction to g0",
    "gather": "the data of g0 for g1",
    "scatter": "the data of g1 for g0",
    "alltoall": "the data of g0 for g1",
    "alltoallv": "the data of g1 for g2",
    "mix": "the AllReduce in group tp",
}


def test_claims_off_by_one_ulp(plan: PlanDocument) -> None:
    """A rate one unit in the last place too high, and bounds one too low, are each the only finding."""
    up, down = math.nextafter(plan.claims.rate, math.inf), math.nextafter(plan.claims.bound, 0)
    (rate,) = _findings(_claiming(plan, rate=up))
    assert rate.startswith("claimed rate ")
    (bound,) = _findings(_claiming(plan, bound=down))
    assert bound.startswith("claimed bound ")
    assert bound.endswith("B/s (docs/model.md §5)")
    if plan.claims.in_network_bound is not None:
        (cut,) = _findings(_claiming(plan, in_network_bound=math.nextafter(plan.claims.in_network_bound, 0)))
        assert cut.startswith("claimed in-network bound ")


def test_rate_off_by_one_ulp(plan: PlanDocument) -> None:
    """The first tree's rate one unit in the last place higher overloads a link, whatever the routing model."""
    forged = _with_tree(plan, 0, rate=math.nextafter(plan.trees[0].rate, math.inf))
    assert any(" carries " in finding and "a difference of" in finding for finding in _findings(forged))


@pytest.mark.parametrize("name", CARRIED)
def test_bytes_off_by_one(plans: Plans, name: str) -> None:
    """One byte too much is said with the demand that it belongs to."""
    plan = plans[name]
    size = plan.trees[0].size
    (finding,) = _findings(_with_tree(plan, 0, size=size + 1))
    assert finding == f"the bytes of {CARRIED[name]} sum to {size + 1} over its trees, not to {size} (docs/model.md §4)"


@pytest.mark.parametrize("name", CARRIED)
def test_a_demand_that_nothing_carries(plans: Plans, name: str) -> None:
    """Without its only tree a demand is named, and so is the claim that fails with it."""
    plan = plans[name]
    assert _findings(replace(plan, trees=plan.trees[1:]))[:2] == [
        f"nothing carries {CARRIED[name]}: its trees' rates sum to 0 (docs/model.md §4)",
        f"claimed rate {plan.claims.rate / 1e9:g} GB/s is above 0 B/s, as fast as {CARRIED[name]} is carried "
        "(docs/model.md §4)",
    ]


def test_an_edge_less(plan: PlanDocument) -> None:
    """A tree without its last edge does not carry its demand any more."""
    tree = plan.trees[0]
    routes = None if tree.routes is None else tree.routes[:-1]
    assert _findings(_with_tree(plan, 0, edges=tree.edges[:-1], routes=routes))[0].startswith("trees[0]")


@pytest.mark.parametrize(
    ("name", "tree", "edges", "finding"),
    [
        ("broadcast", 0, [("g0", "g1", Phase.BROADCAST)], "trees[0]: no broadcast edge enters g2, so nothing reaches it"),
        ("broadcast", 0, [("g1", "g0", Phase.REDUCE)], "trees[0].edges[0]: a reduce edge has no place in the broadcast from"),
        ("reduce", 0, [("g1", "g0", Phase.REDUCE)], "trees[0]: no reduce edge leaves g2, so its data never reaches the"),
        ("allgather", 1, [("g1", "g2", Phase.SEND)], "trees[1] (the broadcast from g1).edges[0]: a send edge has no place in"),
        ("alltoall", 1, [("g0", "g1", Phase.SEND)], "trees[1] (the data of g0 for g2): its path from g0 stops at g1, so"),
        ("alltoall", 1, [], "trees[1] (the data of g0 for g2): its path from g0 stops at g0, so nothing reaches g2"),
        ("alltoall", 0, [("g0", "g1", Phase.SEND), ("g1", "g2", Phase.SEND)],
         "trees[0] (the data of g0 for g1): its edge from g1 to g2 is not on the path from g0 to g1"),
        ("alltoall", 1, [("g0", "g1", Phase.SEND), ("g0", "g2", Phase.SEND)],
         "trees[1] (the data of g0 for g2): more than one send edge leaves g0"),
        ("alltoall", 1, [("g0", "g1", Phase.SEND), ("g1", "g0", Phase.SEND)],
         "trees[1] (the data of g0 for g2): its path from g0 stops at g0, so nothing reaches g2"),
        ("mix", 0, [("g0", "g2", Phase.REDUCE)], "trees[0] (the AllReduce in group tp).edges[0]: g2 does not take part"),
    ],
)  # fmt: skip
def test_wrong_edges(plans: Plans, name: str, tree: int, edges: list[tuple[str, str, Phase]], finding: str) -> None:
    """What keeps a tree from carrying its demand is said with the demand."""
    found = _findings(_with_tree(plans[name], tree, edges=tuple(edges)))
    assert any(sentence.startswith(finding) for sentence in found), found


def test_relaying_must_be_allowed(plans: Plans) -> None:
    """A path over a rank in between is refused where the plan says that ranks do not relay, and the bound is another."""
    found = _findings(replace(plans["alltoall"], relay=False))
    passes = "its path passes through {}, but the plan says that no rank relays"
    assert found[:3] == [
        f"trees[1] (the data of g0 for g2): {passes.format('g1')}",
        f"trees[3] (the data of g1 for g0): {passes.format('g2')}",
        f"trees[5] (the data of g2 for g1): {passes.format('g0')}",
    ]
    assert found[3:] == ["no route that may be used leads from g0 to g2"]


def test_trees_of_no_demand(plans: Plans) -> None:
    """A tree whose group, root and target name no demand is refused, and so is what then has no tree."""
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("allgather", {"root": "sw"}, "trees[0]: group all has no demand with root sw"),
        ("broadcast", {"root": "g1"}, "trees[0]: group all has no demand with root g1"),
        ("allgather", {"target": "g1"}, "trees[0]: group all has no demand with root g2 and target g1"),
        ("alltoallv", {"target": "g0"}, "trees[0]: group all has no demand with root g1 and target g0"),
        ("alltoallv", {"target": None}, "trees[0]: group all has no demand with root g1"),
        ("mix", {"group": "ep"}, "trees[0]: group ep has no demand with root g1"),
        ("ring", {"root": "g9"}, "trees[0]: its root g9 does not take part"),
    ]
    for name, change, finding in cases:
        assert _findings(_with_tree(plans[name], 0, **change))[0] == finding


def test_unusable_groups(plans: Plans) -> None:
    """What a group cannot be is found before anything else."""
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("broadcast", {"root": "sw"}, "groups[0]: its root sw is not one of its ranks"),
        ("alltoallv", {"size": 500}, "groups[0]: its size 500 is not 600, the most that a rank sends or receives"),
        (
            "alltoallv",
            {"size": 7, "parts": (7, 0, 0) + (0,) * 6},
            "groups[0]: none of its ranks has anything for another",
        ),
    ]
    for name, change, finding in cases:
        assert _findings(_among(plans[name], 0, **change)) == [finding]
    nobody = _among(plans["mix"], 1, ranks=("g0", "g7"), root="g7")
    assert _findings(nobody) == ["groups[1].ranks[1]: the fabric has no node g7"]


def test_parts_change_what_is_proved(plans: Plans) -> None:
    """The same trees do not support the same claims for other shards."""
    found = _findings(_among(plans["allgather"], 0, parts=()))
    assert found == [
        "claimed rate 6 GB/s is above 3 GB/s, as fast as the broadcast from g0 is carried (docs/model.md §4)",
        *(
            f"the bytes of the broadcast from g{i} sum to {size} over its trees, not to 333 (docs/model.md §4)"
            for i, size in ((0, 166), (2, 500))
        ),
        *(
            f"trees[{2 - i}] (the broadcast from g{i}): its {size} bytes are not within one byte of 333.0, "
            "its part in proportion to the rates (docs/model.md §4)"
            for i, size in ((2, 500), (0, 166))
        ),
        "claimed bound 6 GB/s is below 7.5 GB/s, the best that the prices prove (docs/model.md §5)",
        "claimed in-network bound 6 GB/s is below 7.5 GB/s, what leaves the cut allows (docs/model.md §6)",
    ]


def test_slowest_and_total_differ(plans: Plans) -> None:
    """Two groups that share a link: as fast as the slower in one plan, one of them alone in the other."""
    mix, total = check_plan(plans["mix"]), check_plan(plans["total"])
    assert [mix.rate, *mix.group_rates] == [2 * 10**9, 2 * 10**9, 10**9]
    assert [total.rate, *total.group_rates] == [3 * 10**9, 3 * 10**9, 0]
    assert total.in_network_bound is None
    shared = _without_cut(replace(plans["mix"], objective=Objective.TOTAL), rate=3e9, bound=3e9)
    assert list(check_plan(shared).group_rates) == [2 * 10**9, 10**9]


def test_nothing_is_claimed_of_a_total_by_a_cut(plans: Plans) -> None:
    """A cut limits each group, not the sum of their rates, so no bound by one is accepted."""
    forged = replace(plans["mix"], objective=Objective.TOTAL)
    assert _findings(_claiming(forged, rate=3e9, bound=3e9)) == [
        "in_network_cut: no cut bounds the total of the groups' rates (docs/model.md §6)"
    ]


def test_a_total_of_nothing(plans: Plans) -> None:
    """A plan that carries no group whole has no rate to claim."""
    forged = _claiming(_with_tree(plans["total"], 0, rate=0.0), rate=0.0, gap=1.0)
    assert _findings(forged) == [
        "nothing is carried whole: every group has a demand whose trees' rates sum to 0 (docs/model.md §4)"
    ]


def test_a_slowest_plan_may_claim_no_cut(plans: Plans) -> None:
    """What is not claimed need not be proved."""
    assert check_plan(_without_cut(plans["ring"])).in_network_bound is None


def test_cut_counts_what_must_cross(plans: Plans) -> None:
    """The same cut proves less for a collective of which less must leave it, and nothing where nothing must."""
    assert check_plan(plans["alltoall"]).in_network_bound == 4_500_000_000  # two of three parts leave g0 at 3 GB/s
    away = replace(plans["broadcast"], in_network_cut=("g1", "sw"))
    assert _findings(away) == ["in_network_cut: no data has to leave it (docs/model.md §6)"]


def test_one_way_fabrics(plans: Plans) -> None:
    """A broadcast is proved although nothing leads back, and refused where it cannot arrive."""
    plan = plans["broadcast"]
    assert check_plan(plan).bound == 10**9
    links = tuple(link for link in plan.topology.links if link.head != plan.topology.index["g2"])
    found = _findings(plan, replace(plan.topology, links=links))
    assert found[-1] == "no route that may be used leads from g0 to g2, directly or over other ranks"


def test_shares_follow_the_fabric(plans: Plans) -> None:
    """Without the cables to s0 everything is sprayed over those to s1, which carry it no more than before they did."""
    plan = plans["spray"]
    links = tuple(link for link in plan.topology.links if "s0" not in _ends(plan.topology, link.tail, link.head))
    fabric = replace(plan.topology, links=links)
    assert [finding for finding in _findings(_with_tree(plan, 0, rate=2.5e9), fabric) if "carries" in finding] == [
        f"link {link} carries 1.25 GB/s of 1 GB/s (docs/model.md §3)"
        for link in (
            *("g0 -> s1", "s1 -> g0", "g0 -> s1 (cable 1)", "s1 -> g0 (cable 1)"),
            *("g1 -> s1", "s1 -> g1", "g1 -> s1 (cable 1)", "s1 -> g1 (cable 1)"),
        )
    ]


def _ends(topology: Topology, *nodes: int) -> list[str]:
    return [topology.nodes[node].name for node in nodes]


def test_the_routing_model_is_part_of_the_claim(plans: Plans) -> None:
    """The same tree under another model loads other links and proves another bound."""
    cables = replace(plans["spray_cables"], routing=Routing(RoutingKind.SPRAY))
    overloaded = [finding for finding in _findings(cables) if "carries" in finding]
    assert overloaded == [
        f"link {link} carries 1.5 GB/s of 1 GB/s (docs/model.md §3)"
        for link in ("g0 -> s0", "s0 -> g0", "g1 -> s0", "s0 -> g1")
    ]
    hops = replace(plans["spray_hops"], routing=Routing(RoutingKind.SPRAY))
    assert _findings(hops)[0] == "no route leads from g0 to g3 as the network routes (docs/model.md §8)"


def test_hash_is_the_documented_one(plans: Plans) -> None:
    """The path of each seed is the one that the documented text gives, and another seed may overload another cable."""
    plan = plans["ecmp"]
    cables = ("s0", "s1", "s1 (cable 1)")
    seen = set()
    for seed in range(12):
        fast = replace(_with_tree(plan, 0, rate=1.5e9), routing=Routing(RoutingKind.ECMP, seed))
        chosen = cables[hashed(seed, "g0", "g1", "g0", 3)]
        overloaded = [finding for finding in _findings(fast) if "carries" in finding and "link g0" in finding]
        assert overloaded == [f"link g0 -> {chosen} carries 1.5 GB/s of 1 GB/s (docs/model.md §3)"]
        seen.add(chosen)
    assert seen == set(cables)
    assert hashed(7, "g0", "g1", "g0", 2**64) == 15962374046707621767  # the example of docs/model.md §8


def test_an_edge_between_no_ranks_is_no_crash(plans: Plans) -> None:
    """Where the network routes, edges to itself, to outsiders and to nowhere are findings like any other."""
    for ends in (("g0", "g0"), ("g0", "s0"), ("nowhere", "g1")):
        edges = ((*ends, Phase.REDUCE), plans["spray"].trees[0].edges[1])
        assert _findings(_with_tree(plans["spray"], 0, edges=edges))


def test_many_demands_are_proved_together() -> None:
    """Groups that overlap are each proved over their own ranks: a third rank does not relay for two others."""
    topology = make_fabric(gpus(3), ["g0 g1", "g1 g2", "g0 g2"], 1e9, oneway=True)
    groups = [
        GroupRecord("small", "alltoallv", ("g0", "g2"), 100, parts=(0, 100, 0, 0)),
        GroupRecord("large", "scatter", ("g0", "g1", "g2"), 300, root="g0", parts=(1, 1, 1)),
    ]
    trees: list[TreeRecord] = [
        replace(make_send(0.5e9, ("g0", "g2"), group="small"), size=100),
        replace(make_send(0.5e9, ("g0", "g1"), group="large"), size=100),
        replace(make_send(0.5e9, ("g0", "g2"), group="large"), size=100),
    ]
    plan = make_plan(topology, groups, trees, priced(("g0", "g2")), 1.5e9, "g0", 2e9, relay=True)
    # the large group could send over g1 for nothing, the small one cannot
    assert _findings(plan)[-1].startswith("claimed bound 1.5 GB/s is below 3 GB/s")
    assert check_plan(replace(_claiming(plan, bound=2e9, gap=0.25), prices=tuple(priced(("g0", "g1"), ("g0", "g2")))))
