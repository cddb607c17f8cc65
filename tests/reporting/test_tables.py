from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dualcoll._api import check, plan
from dualcoll.certificates import Proof
from dualcoll.plans.model import Alternative, Plan
from dualcoll.reporting.tables import plan_record, plan_text, proof_record, proof_text
from dualcoll.routing.model import Routing, RoutingKind
from tests.packing.fabrics import fabric
from tests.reporting.plans import STAR, mixed, unserved


def lines(made: Plan, *labels: str) -> list[str]:
    """What stands under these labels, continuations included."""
    found, label = [], ""
    for head, text in plan_text(made):
        label = head or label
        if label in labels:
            found.append(text)
    return found


def test_the_plan_in_full() -> None:
    """Every line of an AllToAll, in order: what, how fast, how good, what limits it, and what was assumed."""
    made = replace(plan(STAR, "alltoall", size="12MiB"), seconds=0.5, iterations=7)
    assert plan_text(made) == [
        ("AllToAll", "of 4 ranks on star, 12 MiB"),
        ("algbw", "13.3333 GB/s, busbw 10 GB/s, 3.33333 GB/s for each ordered pair"),
        ("time", "945.7 us predicted, of which 2 us fills the paths"),
        ("bound", "13.3333 GB/s algbw is the most without computing in the network, and this plan reaches it"),
        ("", "13.3333 GB/s is the most if every node forwards, multicasts and reduces (NVLS, SHARP)"),
        ("", "2 us is the least time of any schedule, from link latencies alone"),
        (
            "cut",
            "what it sends to 3 others must leave rank g0 over the link g0 -> s0 of 10 GB/s: at most 13.3333 GB/s, tight",
        ),
        ("bisection", "between 13.3333 GB/s and 20 GB/s from one half of the ranks to the other, where it is least"),
        ("outcome", f"optimal: {made.outcome.advice} (gap {made.gap:.1e}, 0.50 s, 7 oracle calls)"),
        ("paths", "12 for 12 demands, 1 each, at most 1 logical edge from end to end"),
        ("limit", "100 %: the GPU - s link of each of the 4 boxes (10 GB/s each way), 100 % used"),
        (
            "forward",
            "switches only: GPUs and hosts, taking part or not, forward nothing for others (--forward all)",
        ),
        ("relay", "ranks of a group pass on what one of them sends another; each hop is a send (--no-relay)"),
        ("routing", "the plan chooses a path for each logical edge of each tree"),
        ("rates", "given (8 links)"),
    ]


@pytest.mark.parametrize(
    ("wishes", "first", "algbw"),
    [
        ({"collective": "allreduce"}, ("AllReduce", "of 4 ranks on star, 1 GiB"), "6.66667 GB/s, busbw 10 GB/s"),
        (
            {"collective": "reduce-scatter"},
            ("ReduceScatter", "of 4 ranks on star, 1 GiB"),
            "13.3333 GB/s, busbw 10 GB/s, 3.33333 GB/s for each root",
        ),
        (
            {"collective": "allgather", "weights": [1, 1, 1, 2]},
            ("AllGather", "of 4 ranks, shards of unequal size on star, 1 GiB"),
            "12.5 GB/s, busbw 9.375 GB/s",
        ),
        (
            {"collective": "gather", "root": "g2", "size": "64M"},
            ("Gather", "of 4 ranks to g2 on star, 64 MiB"),
            "13.3333 GB/s, busbw 10 GB/s",
        ),
        (
            {"collective": "broadcast", "groups": "0-1;2-3"},
            ("Broadcast", "2 groups of 2 ranks on star, 1 GiB each"),
            "10 GB/s, busbw 10 GB/s, 1 GiB over the time until all groups are done",
        ),
    ],
)
def test_every_collective_in_its_own_words(wishes: dict[str, Any], first: tuple[str, str], algbw: str) -> None:
    """The collective heads the text, with whom and how much; its rate is also given by root where that is how people count."""
    made = plan(STAR, **wishes)
    assert plan_text(made)[0] == first
    assert lines(made, "algbw") == [algbw]


def test_a_mix_says_what_each_group_gets() -> None:
    """One line for each group with its rate and time; sizes, trees and paths as they are; no busbw."""
    made = mixed()
    assert plan_text(made)[0] == ("mix", "of 2 collectives on 4 ranks on star, 1 MiB to 3 MiB each")
    assert lines(made, "algbw") == ["10 GB/s, 3 MiB over the time until all groups are done"]
    assert lines(made, "groups") == [
        "pair: AllReduce of 2 ranks, 1 MiB at 3.33333 GB/s, 314.6 us",
        "trio: AllToAll of 3 ranks, 3 MiB at 10 GB/s, 314.6 us",
    ]
    assert lines(made, "trees") == ["1 and 6 paths for 7 demands, 1 each, at most 1 logical edge from root to leaf"]
    record = plan_record(made)
    assert record["collective"] == "mix"
    assert record["busbw_GBps"] is None
    assert (record["root_rate_GBps"], record["pair_rate_GBps"]) == (None, None)
    assert [group["name"] for group in record["groups"]] == ["pair", "trio"]
    assert record["groups"][1] == {
        "name": "trio",
        "collective": "alltoall",
        "ranks": 3,
        "size_bytes": 3 << 20,
        "rate_GBps": pytest.approx(10, rel=1e-6),
        "time_s": pytest.approx((3 << 20) / 10e9, rel=1e-6),
    }


def test_a_total_without_a_cut_names_groups_that_get_nothing() -> None:
    """In total no cut is claimed, so none is printed; a group at no rate is never done."""
    made = unserved()
    assert lines(made, "algbw") == ["10 GB/s, the sum of the groups' rates"]
    assert lines(made, "groups") == [
        "group[0]: AllReduce of 2 ranks, 1 MiB at 10 GB/s, 104.9 us",
        "group[1]: AllReduce of 2 ranks, 1 MiB at 0 B/s, never done",
    ]
    assert lines(made, "trees") == ["1 for 2 demands, 0 to 1 each, at most 1 logical edge from root to leaf"]
    assert lines(made, "cut", "bisection", "relay") == []
    assert len(lines(made, "bound")) == 2
    record = plan_record(made)
    assert (record["objective"], record["in_network_bound_GBps"], record["cut"]) == ("total", None, None)
    assert record["groups"][1]["time_s"] is None
    assert record["trees_per_demand"] == [0, 1]


def test_routing_relaying_and_forwarding_in_words() -> None:
    """Who chooses paths, with the seed of the hash, who passes on and who forwards."""
    made = plan(STAR, "scatter", routing="ecmp", seed=3, relay=False, forward="all")
    assert lines(made, "routing") == ["the network hashes each logical edge to one shortest allowed path (seed 3)"]
    assert lines(made, "relay") == ["no rank passes on what another sends"]
    assert lines(made, "forward") == ["switches and every GPU and host, also those that take no part"]
    record = plan_record(made)
    assert (record["routing"], record["routing_seed"], record["relay"]) == ("ecmp", 3, False)
    kinds = {lines(replace(made, routing=Routing(kind)), "routing")[0] for kind in RoutingKind}
    assert len(kinds) == len(RoutingKind)


def test_a_record_counts_as_people_do() -> None:
    """The rate of a root or an ordered pair, the demands, and the cut in words are keys of their own."""
    gather, exchange = (plan_record(plan(STAR, name)) for name in ("allgather", "alltoall"))
    assert (gather["root_rate_GBps"], gather["pair_rate_GBps"]) == (pytest.approx(10 / 3), None)
    assert (exchange["root_rate_GBps"], exchange["pair_rate_GBps"]) == (None, pytest.approx(10 / 3))
    assert (gather["demands"], exchange["demands"]) == (4, 12)
    assert gather["workload"] == "AllGather of 4 ranks"
    assert gather["cut"].endswith("at most 13.3333 GB/s, tight")
    assert exchange["bisection_GBps"] == [pytest.approx(40 / 3), pytest.approx(20)]


def test_many_groups_are_all_listed() -> None:
    """Lists are cut short after eight lines, but not the groups."""
    many = fabric(", ".join(f"g{2 * i}-g{2 * i + 1}:{i + 1}" for i in range(12)))
    made = plan(many, "allreduce", groups="groups of 2")
    assert [text.split(":")[0] for text in lines(made, "groups")] == [f"group[{i}]" for i in range(12)]


def test_other_ways_stand_beside_the_plan() -> None:
    """What other ways would reach is a line each, and an entry each."""
    ways = (Alternative(5e9, "one after the other"), Alternative(0.0, "without relaying"))
    made = replace(plan(STAR, "allreduce"), alternatives=ways)
    assert lines(made, "beside") == ["5 GB/s: one after the other", "0 B/s: without relaying"]
    assert plan_record(made)["alternatives"] == [
        {"algbw_GBps": 5.0, "text": "one after the other"},
        {"algbw_GBps": 0.0, "text": "without relaying"},
    ]


def test_a_proof_of_groups() -> None:
    """Every group's rate is in the record and their range in the text; where no cut is claimed there is none."""
    proof = check(plan(STAR, "allreduce", groups="0-1;2-3", objective="total"))
    assert proof_text(proof)[2:] == [
        ("bound", f"20 GB/s, gap {float(proof.gap):.1e}"),
        ("groups", "2, at 10 GB/s each"),
    ]
    record = proof_record(proof)
    assert record["in_network_bound_GBps"] is None
    assert record["group_rates_GBps"] == [pytest.approx(10), pytest.approx(10)]
    apart = replace(proof, group_rates=(Fraction(10**9), Fraction(0)))
    assert proof_text(apart)[-1] == ("groups", "2, at 0 B/s to 1 GB/s each")


def test_a_proof_of_one_group() -> None:
    """A single group's rate is the rate."""
    proof = Proof(
        Fraction(4 * 10**9),
        (Fraction(4 * 10**9),),
        Fraction(4 * 10**9),
        Fraction(0),
        Fraction(5 * 10**9),
        Fraction(1),
        "",
    )
    assert proof_text(proof) == [
        ("supported", "every claim holds in exact arithmetic"),
        ("rate", "4 GB/s"),
        ("bound", "4 GB/s, gap 0 %"),
        ("", "5 GB/s if every node forwards, multicasts and reduces"),
    ]
