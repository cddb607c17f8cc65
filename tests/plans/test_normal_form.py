"""The normal form: a schedule by hand, schedules at random, and what both do to data."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.certificates.check import check_plan
from dualcoll.collectives.workload import Group, Workload
from dualcoll.plans.conversion import plan_to_document
from dualcoll.plans.flow_file import flows_from_dict
from dualcoll.plans.flows import Flow, Shard, natural_results
from dualcoll.plans.model import Plan
from dualcoll.plans.normal_form import NormalForm, normal_form, normal_form_text
from dualcoll.plans.rated_flows import RatedFlows, rate_of
from dualcoll.progress import Outcome
from dualcoll.routing.model import Routing
from dualcoll.topology.arrays import reversal
from dualcoll.topology.model import Forwarding, SharedCapacity
from tests.packing.fabrics import GB, fabric
from tests.plans.random_flows import correct, no_worse, random_data, random_flows, roots, run_tree

SEED = st.integers(0, 10**9)


def trees_correct(result: NormalForm) -> bool:
    """The same of every tree."""
    data = random_data(result.given.ranks, 1)
    total = sum(data.values())
    ends = (run_tree(tree, result.given.ranks, data) for tree in result.trees)
    return all(np.array_equal(end, total) for end_of in ends for end in end_of.values())


def three_roots(cables: str = "g0-s:10, g1-s:10, g2-s:10, g3-s:10") -> RatedFlows:
    """g0, g1 and g2 each get everything in parts; g3 hears from g1. Two flows are of no use, and rates differ."""
    topology = fabric(cables)
    g0, s, g1, g2, g3 = range(5)
    links = {(link.tail, link.head): e for e, link in enumerate(topology.links)}

    def flow(name: str, tail: int, head: int, rate: float, *depends: str, own: bool = True) -> Flow:
        return Flow(name, tail, head, rate * GB, (links[tail, s], links[s, head]), None, depends, own)

    flows = (
        flow("3to0", g3, g0, 2),
        flow("01", g0, g1, 1, "3to0"),  # 0, 3
        flow("02", g0, g2, 3, "3to0"),
        flow("10", g1, g0, 1),
        flow("12", g1, g2, 1),
        flow("20", g2, g0, 2),
        flow("21", g2, g1, 1),
        flow("result", g1, g3, 1, "01", "21"),
        flow("again", g2, g3, 0.5, "02", "12"),
        flow("nothing", g3, g1, 0.25),
    )
    given = {g1: ("01", "21"), g3: ("result",)}
    ranks = g0, g1, g2, g3
    members = {rank: topology.nodes[rank].name for rank in ranks}
    return RatedFlows(topology, ranks, 1000, (Shard("x", 1.0, flows, natural_results(flows, members, given)),))


def test_three_roots_by_hand() -> None:
    """Useless flows go, three roots become one, rates are evened out, and every word of it is said."""
    before = three_roots()
    result = normal_form(before)
    assert roots(before.shards[0]) == 3
    assert normal_form_text(result) == [
        "given: 10 flows of 1 shard over 4 ranks, 1 GB/s",
        "Lemma 3.2: shard x: flows again, nothing dropped, which no result depends on",
        "Lemma 3.4: shard x: root g2 merged into root g0, which sends it the full result over flow 02",
        "Lemma 3.4: shard x: root g1 merged into root g0, which sends it the full result over flow 01",
        "Lemma 3.4: shard x: flows 12, 21 dropped, which no result depends on any more",
        "Lemma 3.2: shard x: flows 3to0, 20, 02 lowered to the rate of flow 10",
        "Lemma 3.6: shard x: one half goes over the reduce tree both ways, the other over the broadcast tree",
        "normal form: 2 trees, 1 GB/s",
        "busiest link before: s -> g0, 50 % of its capacity",
        "busiest link after: g0 -> s, 25 % of its capacity",
    ]
    assert [(tree.rate, tree.root, tree.size) for tree in result.trees] == [(0.5 * GB, 0, 500), (0.5 * GB, 0, 500)]
    assert result.trees[0].edges.tolist() == [[4, 0], [2, 0], [3, 0], [0, 4], [0, 2], [0, 3]]
    assert result.trees[1].edges.tolist() == [[2, 0], [3, 0], [4, 2], [0, 2], [0, 3], [2, 4]]
    assert result.trees[1].phase.tolist() == [0, 0, 0, 1, 1, 1]
    assert result.trees[1].route(2).tolist() == [6, 3]
    loads = dict(zip(before.topology.describe_links(), result.loads_after / GB, strict=True))
    assert loads == {
        **dict.fromkeys(("g0 -> s", "s -> g0"), 2.5),
        **dict.fromkeys(("g1 -> s", "s -> g1"), 1.5),
        **dict.fromkeys(("g2 -> s", "s -> g2", "g3 -> s", "s -> g3"), 1.0),
    }
    assert correct(before)
    assert correct(result.flows)
    assert trees_correct(result)


def test_asymmetric_fabric_stops_at_pairs() -> None:
    """Where one direction of one cable is slower, the reduce and the broadcast tree stay two trees."""
    result = normal_form(three_roots("g0-s:10/9, g1-s:10, g2-s:10, g3-s:10"))
    assert normal_form_text(result)[-4:] == [
        "normal form: 1 tree pair, 1 GB/s",
        "busiest link before: s -> g0, 55.56 % of its capacity",
        "busiest link after: s -> g0, 33.33 % of its capacity",
        "reduce and broadcast trees stay apart (Lemma 3.6 does not apply): the fabric is not the same in both directions",
    ]
    assert result.trees[0].edges.tolist() == [[4, 0], [2, 0], [3, 0], [0, 2], [0, 3], [2, 4]]
    assert no_worse(result.flows, result.given)
    assert trees_correct(result)


def test_one_way_shared_capacity_stops_at_pairs() -> None:
    """A capacity over links of one direction, without its mirror image, makes a fabric asymmetric as well."""
    flows = three_roots()
    topology = replace(flows.topology, shared=(SharedCapacity((0, 2), 20 * GB),))
    assert not normal_form(flows).stopped
    assert normal_form(replace(flows, topology=topology)).stopped == "the fabric is not the same in both directions"


def test_sprayed_traffic_stops_at_pairs() -> None:
    """Sprayed flows keep their shares, and their pairs of trees carry them."""
    result = normal_form(random_flows(12, sprayed=True))
    assert normal_form_text(result)[-1] == (
        "reduce and broadcast trees stay apart (Lemma 3.6 does not apply): sprayed traffic does not go back the way it came"
    )
    by_id = {flow.id: flow for flow in result.given.shards[0].flows}
    tree, shard = result.trees[0], result.flows.shards[0]
    assert tree.route_share is not None
    assert tree.route_share.tolist() == [part for flow in shard.flows for part in by_id[flow.id].share or ()]
    assert trees_correct(result)


def test_recursive_doubling_becomes_one_root() -> None:
    """Where every rank computes the result for itself, all but one become receivers, along chains of flows."""
    topology = fabric(", ".join(f"g{i}-s:10" for i in range(8)))
    rank = [topology.index[f"g{i}"] for i in range(8)]
    links = {(link.tail, link.head): e for e, link in enumerate(topology.links)}
    s = topology.index["s"]
    flows = []
    for k in range(3):
        for i in range(8):
            j = i ^ 1 << k
            depends = tuple(f"{i ^ 1 << m}to{i}" for m in range(k))
            route = links[rank[i], s], links[s, rank[j]]
            flows.append(Flow(f"{i}to{j}", rank[i], rank[j], GB, route, None, depends))
    members = {node: topology.nodes[node].name for node in rank}
    shard = Shard("x", 1.0, tuple(flows), natural_results(flows, members, {}))
    result = normal_form(RatedFlows(topology, tuple(rank), 8, (shard,)))
    assert roots(shard) == 8
    assert sum(words.count("merged into") for words in result.steps[2].words) == 7
    assert (len(result.trees), result.rate_after) == (2, GB)
    assert trees_correct(result)


def test_shards_that_wait_for_a_slow_one() -> None:
    """Shards that were too large for their rates get the data that suits them, so that all trees end together."""
    flows = three_roots()
    small = replace(flows.shards[0], name="y", weight=3.0)
    both = replace(flows, shards=(flows.shards[0], small))
    result = normal_form(both)
    assert result.rate_before == pytest.approx(4 / 3 * GB)
    assert result.rate_after == 2 * GB
    assert [tree.size for tree in result.trees] == [250] * 4


@pytest.mark.parametrize("seed", range(6))
def test_trees_make_a_plan(seed: int) -> None:
    """With any bound that holds, the trees are a plan whose proof goes through: structure, routes, loads, rate and shares."""
    result = normal_form(random_flows(seed, symmetric=bool(seed % 2)))
    given = result.given
    plan = Plan(
        topology=given.topology,
        workload=Workload((Group("all", "allreduce", given.ranks, given.size),)),
        forwarding=Forwarding.ALL,
        relay=False,
        routing=Routing(),
        trees=result.trees,
        link_prices=np.ones(len(given.topology.links)),
        shared_prices=np.zeros(len(given.topology.shared)),
        value=float(np.nextafter(result.rate_after, 0)),
        bound=1e18,
        in_network=None,
        outcome=Outcome.STALLED,
    )
    assert check_plan(plan_to_document(plan)).rate == sum(Fraction(tree.rate) for tree in result.trees)


@settings(max_examples=150)
@given(SEED, st.booleans(), st.booleans())
def test_normal_form_at_random(seed: int, symmetric: bool, sprayed: bool) -> None:
    """Every step leaves a correct AllReduce that is no slower; the trees are correct, and their loads are as they say."""
    flows = random_flows(seed, symmetric=symmetric, sprayed=sprayed)
    assert correct(flows)
    result = normal_form(flows)
    before = flows
    for step in result.steps:
        assert correct(step.flows)
        assert rate_of(step.flows) >= rate_of(before)
        assert step.lemma == "3.6" or no_worse(step.flows, before)
        before = step.flows
    assert trees_correct(result)
    assert result.rate_after >= result.rate_before
    assert bool(result.stopped) == (sprayed or reversal(flows.topology) is None)
    loads = sum(tree.rate * tree.loads(len(flows.topology.links)) for tree in result.trees)
    np.testing.assert_allclose(result.loads_after, loads, rtol=1e-12)
    least = {shard.name: min(flow.rate for flow in shard.flows) for shard in flows.shards}
    rates = dict.fromkeys(least, 0.0)
    for shard, tree in zip(result.flows.shards, result.trees, strict=True):
        rates[shard.name.partition(".")[0]] += tree.rate
    assert all(rates[name] >= least[name] for name in least)


@settings(max_examples=60)
@given(SEED, st.booleans())
def test_normal_form_of_a_normal_form(seed: int, symmetric: bool) -> None:
    """There is nothing left to do."""
    once = normal_form(random_flows(seed, symmetric=symmetric))
    again = normal_form(once.flows)
    assert [step.words for step in again.steps] == [()] * len(again.steps)
    assert again.flows == once.flows


def test_documented_example() -> None:
    """The example in the documentation is a file of flows, and the words below it are those of its normal form."""
    text = (Path(__file__).parents[2] / "docs" / "normal-form.md").read_text()
    blocks = text.split("\n```")
    result = normal_form(flows_from_dict(json.loads(blocks[1].removeprefix("json\n")), "docs"))
    assert normal_form_text(result) == blocks[3].strip("\n").splitlines()
