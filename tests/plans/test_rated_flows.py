"""Flows with rates: their meaning, their files, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.plans.flow_file import flows_from_dict
from dualcoll.plans.flows import Flow, Result, Shard, in_order, natural_results, payloads
from dualcoll.plans.rated_flows import RatedFlows, link_loads, rate_of
from tests.packing.fabrics import GB, fabric
from tests.plans.flow_data import example
from tests.plans.random_flows import random_data, random_flows, run_flows

SEED = st.integers(0, 10**9)
RESULT_HINT = 'say under "results" which flows make its result'


def test_what_a_file_means() -> None:
    """Routes, shares, payloads, results, loads and the rate, all read off the example."""
    flows = flows_from_dict(example(), "x")
    shard = flows.shards[0]
    assert payloads(shard.flows, flows.members) == {"a": 0b010, "b": 0b100, "c": 0b111, "d": 0b111}
    assert shard.results == (Result(("a", "b"), True), Result(("c",), False), Result(("d",), False))
    assert [result.is_root for result in shard.results] == [True, False, False]
    assert shard.flows[3].share == (1.0, 0.75, 0.25)
    texts = flows.topology.describe_links()
    assert {texts[e]: float(load) / GB for e, load in enumerate(link_loads(flows)) if load} == {
        "g1 -> s": 3.0,
        "s -> g0": 3.0,
        "g2 -> s (cable 1)": 1.0,
        "g0 -> s": 3.0,
        "s -> g1": 3.0,
        "s -> g2 (cable 0)": 0.75,
        "s -> g2 (cable 1)": 0.25,
    }
    assert rate_of(flows) == 10**9


def test_rate_is_that_of_the_slowest_useful_flow() -> None:
    """A flow without use slows nothing; of several shards the one that takes longest counts, by its weight."""
    data = example()
    data["shards"][0]["flows"].append(
        {"id": "slow", "from": "g0", "to": "g2", "rate": 1.0, "route": ["g0", "s", "g2"]},
    )
    assert rate_of(flows_from_dict(data, "x")) == 10**9
    data["shards"].append(example()["shards"][0] | {"name": "more", "weight": 3})
    assert rate_of(flows_from_dict(data, "x")) == Fraction(4 * 10**9, 3)


def test_results_may_be_named() -> None:
    """A rank that gets a contribution twice says which flows count; a rank that also gets all of it may compute it."""
    data = example()
    flows = data["shards"][0]["flows"]
    flows.append({"id": "e", "from": "g1", "to": "g0", "rate": 1e9, "route": ["g1", "s", "g0"]})
    data["shards"][0]["results"] = {"g0": ["e", "b"]}
    assert flows_from_dict(data, "x").shards[0].results[0] == Result(("e", "b"), True)
    flows.append(flows[3] | {"id": "f", "depends": ["c"], "to": "g0", "spray": [{"link": ["g1", "s"], "share": 1.0}]})
    flows[-1]["spray"].append({"link": ["s", "g0"], "share": 1})
    assert flows_from_dict(data, "x").shards[0].results[0] == Result(("e", "b"), True)
    del data["shards"][0]["results"]
    assert flows_from_dict(data, "x").shards[0].results[0] == Result(("f",), False)


def test_contributions_that_come_back() -> None:
    """A rank whose own contribution comes back with others does not add it again."""
    topology = fabric("g0-g1:10")
    flows = (
        Flow("out", 0, 1, GB, (0,)),
        Flow("back", 1, 0, GB, (1,), None, ("out",)),
    )
    results = natural_results(flows, {0: "g0", 1: "g1"}, {})
    assert results == (Result(("back",), False), Result(("out",), True))
    assert not RatedFlows(topology, (0, 1), 8, (Shard("x", 1.0, flows, results),)).shards[0].results[0].own


def test_order_of_flows() -> None:
    """Flows come after what they depend on, those of short chains first, otherwise as given."""
    flows = [
        Flow("c", 0, 1, 1.0, (0,), None, ("b",)),
        Flow("b", 1, 0, 1.0, (1,), None, ("a",)),
        Flow("a", 0, 1, 1.0, (0,)),
        Flow("d", 1, 0, 1.0, (1,)),
    ]
    assert [flow.id for flow in in_order(flows)] == ["a", "d", "b", "c"]


@settings(max_examples=150)
@given(SEED, st.data())
def test_what_is_accepted_is_correct(seed: int, data: st.DataObject) -> None:
    """Change a legal AllReduce anywhere: either it is refused, or on real data everybody still gets everything once."""
    flows = random_flows(seed)
    shard = flows.shards[0]
    k = data.draw(st.integers(0, len(shard.flows) - 1))
    flow = shard.flows[k]
    other = data.draw(st.sampled_from(shard.flows)).id
    i = data.draw(st.integers(0, len(flows.ranks) - 1))
    change = data.draw(st.sampled_from(["own", "drop", "add", "swap", "result", "delete"]))
    mine, results = list(shard.flows), list(shard.results)
    if change == "own":
        mine[k] = replace(flow, own=not flow.own)
    elif change == "drop":
        mine[k] = replace(flow, depends=flow.depends[1:])
    elif change == "add":
        mine[k] = replace(flow, depends=(*flow.depends, other))
    elif change == "swap":
        mine[k] = replace(flow, depends=(other, *flow.depends[1:]))
    elif change == "result":
        results[i] = Result((other, *results[i].depends[1:]), results[i].own)
    else:
        del mine[k]
    changed = replace(shard, flows=tuple(mine), results=tuple(results))
    try:
        accepted = replace(flows, shards=(changed, *flows.shards[1:]))
    except InputError:
        return
    values = random_data(flows.ranks, seed)
    total = sum(values.values())
    assert all(np.array_equal(end, total) for end in run_flows(accepted, values)[0].values())


@pytest.mark.parametrize(
    ("ranks", "flow", "results", "message"),
    [
        ((0, 9), {}, None, "ranks: one of them is no node of the topology"),
        ((0, 1), {"tail": 2}, None, "shards[0]: flows[0]: flow 'out' has node 2 as its end, which does not take part"),
        ((0, 1), {"head": 0}, None, "shards[0]: flows[0]: flow 'out': it starts and ends at g0"),
        ((0, 1), {"links": (7,)}, None, "shards[0]: flows[0]: flow 'out': its route uses a link that does not exist"),
        ((0, 1), {"share": ()}, None, "shards[0]: flows[0]: flow 'out': 0 shares for 1 links"),
        ((0, 1), {"rate": float("nan")}, None, "shards[0]: flows[0].rate: nan is not in 1e-300 .. 1e+300"),
        ((0, 1), {}, (), "shards[0]: results: 0 results for 2 ranks"),
        ((0, 1), {}, (Result(("back",), True), Result(("out",), True)),
         "shards[0]: results.g0: g0 counts the contribution of g0 twice: its own contribution and flow 'back' both bring it; "
         f"{RESULT_HINT}"),
    ],
)  # fmt: skip
def test_what_is_refused_in_code(
    ranks: tuple[int, ...], flow: dict[str, Any], results: tuple[Result, ...] | None, message: str
) -> None:
    """Indices that name nothing and results that do not fit are refused where no file could hold them."""
    flows = (replace(Flow("out", 0, 1, GB, (0,)), **flow), Flow("back", 1, 0, GB, (1,), None, ("out",)))
    natural = (Result(("back",), False), Result(("out",), True))
    with pytest.raises(InputError) as error:
        RatedFlows(
            fabric("g0-g1:10, g1-g2:10"), ranks, 8, (Shard("x", 1.0, flows, natural if results is None else results),)
        )
    assert str(error.value) == message


def test_no_load_is_rounded() -> None:
    """Three rates that exceed a capacity by less than any of them could say are still too much."""
    topology = fabric("g0-g1:10")
    results = (Result(("back",), False), Result(("out",), True))

    def flows(rate: float) -> RatedFlows:
        pair = Flow("out", 0, 1, rate, (0,)), Flow("back", 1, 0, rate, (1,), None, ("out",))
        return RatedFlows(topology, (0, 1), 8, tuple(Shard(f"s{i}", 1.0, pair, results) for i in range(3)))

    third = 10e9 / 3
    least = third if Fraction(third) * 3 > 10**10 else float(np.nextafter(third, 1e18))
    assert rate_of(flows(float(np.nextafter(least, 0)))) <= 10**10
    with pytest.raises(InputError, match="link g0 -> g1: the flows load it with "):
        flows(least)
