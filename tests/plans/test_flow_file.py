"""Files of flows: what they say comes back, and what is wrong is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.plans.flow_file import flows_from_dict, flows_to_dict, read_flows, write_flows
from dualcoll.plans.normal_form import normal_form
from tests.plans.flow_data import example
from tests.plans.random_flows import random_flows

ROUTE_HINT = 'a route is a list of node names, where ["name", k] takes the k-th parallel link into that node'
LINK_HINT = 'a link is ["from", "to"] or ["from", "to", k] for the k-th of parallel links'
PASS_HINT = 'a flow that only passes on what it gets says "own": false'
LOWER = "lower the rates of its flows"
RESULT_HINT = 'say under "results" which flows make its result'


def test_files_come_back_exactly(tmp_path: Path) -> None:
    """What is written is read as the same flows."""
    flows = flows_from_dict(example(), "x")
    write_flows(flows, tmp_path / "flows.json")
    assert read_flows(tmp_path / "flows.json") == flows
    assert json.loads((tmp_path / "flows.json").read_text()) == flows_to_dict(flows)


@settings(max_examples=60)
@given(st.integers(0, 10**9), st.booleans(), st.booleans())
def test_random_flows_come_back_exactly(seed: int, symmetric: bool, sprayed: bool) -> None:
    """Through JSON text and back everything is the same, results included, and so is what the normal form is made of."""
    flows = random_flows(seed, symmetric=symmetric, sprayed=sprayed)
    assert flows_from_dict(json.loads(json.dumps(flows_to_dict(flows))), "x") == flows
    last = normal_form(flows).flows
    assert flows_from_dict(json.loads(json.dumps(flows_to_dict(last))), "x") == last


def test_fabric_beside_the_file() -> None:
    """The fabric stands in the file or is given, not both and not neither."""
    data = example()
    topology = flows_from_dict(data, "x").topology
    both = "x: topology: there is one in the file and one beside it; give the fabric in the file, or beside it"
    with pytest.raises(InputError) as error:
        flows_from_dict(data, "x", topology)
    assert str(error.value) == both
    del data["topology"]
    assert flows_from_dict(data, "x", topology) == flows_from_dict(example(), "x")
    with pytest.raises(InputError) as error:
        flows_from_dict(data, "x")
    assert str(error.value) == "x: topology: there is none; give the fabric in the file, or beside it"


def _set(*path: str | int, to: object) -> Callable[[dict[str, Any]], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = to

    return change


def _add(**flow: object) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["shards"][0]["flows"].append(flow)


SHARD = ("shards", 0)
FLOW = (*SHARD, "flows")
SPRAY = (*FLOW, 3, "spray")
KEYS = "id, from, to, rate, depends, own, route, spray"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("format", to="dualcoll.flows/2"),
         "format: format 'dualcoll.flows/2' is not known; it must be 'dualcoll.flows/1'"),
        (_set("sizes", to=1), "key 'sizes' is not known; use format, size, ranks, shards, topology"),
        (_set("size", to=0), "size: 0 is not in 1 .. 2**63 - 1"),
        (_set("size", to="1K"), "size: '1K' is not a whole number"),
        (_set("ranks", to=["g0", "g7"]), "ranks[1]: the topology has no node 'g7'"),
        (_set("ranks", to=["g0", "g1", "g2", "g0"]), "ranks: an AllReduce takes two or more different ranks"),
        (_set("shards", to=[]), "shards: there are none"),
        (lambda data: data["shards"].append(data["shards"][0]), "shards[1]: shard name 'all' is used twice"),
        (_set(*SHARD, "weight", to=0), "shards[0]: weight: 0.0 is not in 1e-300 .. 1e+300"),
        (_set(*SHARD, "results", to=[]), "shards[0].results: [] is not an object; its keys are ranks"),
        (_set(*SHARD, "results", to={"s": ["a"]}), "shards[0].results: 's' is not one of the ranks"),
        (_set(*SHARD, "results", to={"g0": ["a", 3]}), "shards[0].results.g0[1]: 3 is not a text"),
        (_set(*SHARD, "results", to={"g0": ["c"]}), "shards[0]: results.g0: no flow 'c' ends at g0"),
        (_set(*SHARD, "results", to={"g0": ["z"]}), "shards[0]: results.g0: no flow 'z' ends at g0"),
        (_set(*SHARD, "results", to={"g0": ["a"]}), "shards[0]: results.g0: g0 ends without the contribution of g2"),
        (_set(*SHARD, "results", to={"g0": []}), "shards[0]: results.g0: g0 ends without the contribution of g1, g2"),
        (_set(*FLOW, 0, to=7), f"shards[0].flows[0]: 7 is not an object; it has the keys {KEYS}"),
        (_set(*FLOW, 0, "to", to="s"), "shards[0].flows[0].to: 's' is not one of the ranks"),
        (_set(*FLOW, 0, "to", to="g1"), "shards[0]: flows[2]: flow 'c' depends on 'a', which does not end where it starts"),
        (_set(*FLOW, 0, "rate", to=-1), "shards[0]: flows[0].rate: -1.0 is not in 1e-300 .. 1e+300"),
        (_set(*FLOW, 0, "rate", to="1GB/s"), "shards[0].flows[0].rate: '1GB/s' is not a number"),
        (_set(*FLOW, 0, "own", to="no"), "shards[0].flows[0].own: 'no' is not true or false"),
        (_set(*FLOW, 0, "own", to=False),
         "shards[0]: flows[0]: flow 'a' carries nothing; give it flows to depend on, or leave \"own\" out"),
        (_set(*FLOW, 3, "own", to=True),
         "shards[0]: flows[3]: flow 'd' counts the contribution of g1 twice: its own contribution and flow 'c' both "
         f"bring it; {PASS_HINT}"),
        (_set(*FLOW, 1, "id", to="a"), "shards[0]: flows[1]: flow id 'a' is used twice"),
        (_set(*FLOW, 2, "depends", to=["a", "z"]),
         "shards[0]: flows[2]: flow 'c' depends on 'z', which is no flow of its shard"),
        (_set(*FLOW, 2, "depends", to=["a", "b", "a"]), "shards[0]: flows[2]: flow 'c' depends on 'a' twice"),
        (_set(*FLOW, 0, "depends", to=["c"]), "shards[0]: flows: flows wait for each other: 'a' -> 'c' -> 'a'"),
        (_set(*FLOW, 2, "depends", to=["a"]), "shards[0]: results.g1: g1 ends without the contribution of g2"),
        (_add(id="e", **{"from": "g1"}, to="g0", rate=1.0, route=["g1", "s", "g0"]),
         "shards[0]: results.g0: g0 counts the contribution of g1 twice: flow 'a' and flow 'e' both bring it; "
         f"{RESULT_HINT}"),
        (_set(*FLOW, 0, "spray", to=[]), "shards[0].flows[0]: it takes a route or a spray; give one of the two"),
        (_set(*FLOW, 0, "route", to=[]), "shards[0]: flows[0]: flow 'a': its route is empty"),
        (_set(*FLOW, 0, "route", to=["g1", "g0"]), "shards[0].flows[0].route[1]: there is no link from g1 to g0"),
        (_set(*FLOW, 0, "route", to=["g1", ["s", 1], "g0"]),
         "shards[0].flows[0].route[1]: there is no link from g1 to s (cable 1)"),
        (_set(*FLOW, 0, "route", to=["g1", ["s"], "g0"]),
         f"shards[0].flows[0].route[1]: cannot read ['g1', ['s']]; {ROUTE_HINT}"),
        (_set(*FLOW, 0, "route", to=["g2", "s", "g0"]),
         "shards[0]: flows[0]: flow 'a': its route is at g1 and goes on from g2"),
        (_set(*FLOW, 0, "route", to=["g1", "s", "g2"]), "shards[0]: flows[0]: flow 'a': its route ends at g2, not at g0"),
        (_set(*FLOW, 0, "route", to=["g1", "s", "g2", "s", "g0"]),
         "shards[0]: flows[0]: flow 'a': its route visits s twice"),
        (_set(*SPRAY, 0, "link", to="g1"), f"shards[0].flows[3].spray[0].link: cannot read 'g1'; {LINK_HINT}"),
        (_set(*SPRAY, 1, "share", to=0), "shards[0]: flows[3]: flow 'd': its share 0.0 on s -> g2 (cable 0) is not in (0, 1]"),
        (_set(*SPRAY, 1, "share", to=0.5), "shards[0]: flows[3]: flow 'd': a part 0.25 of its traffic stays at s"),
        (_set(*SPRAY, 1, "share", to=1), "shards[0]: flows[3]: flow 'd': a part 0.25 of its traffic is missing at s"),
        (_set(*SPRAY, 2, "link", to=["s", "g2"]),
         "shards[0]: flows[3]: flow 'd': its spray has the link s -> g2 (cable 0) twice"),
        (lambda data: data["shards"][0]["flows"][3]["spray"].extend(
            [{"link": ["s", "g0"], "share": 0.5}, {"link": ["g0", "s"], "share": 0.5}]),
         "shards[0]: flows[3]: flow 'd': its spray runs in a circle: s -> g0 -> s"),
        (_set(*FLOW, 1, "rate", to=21e9),
         f"link g2 -> s (cable 1): the flows load it with 1e+09 bytes/s more than its 2e+10 bytes/s; {LOWER}"),
        (_set("topology", "shared", to=[{"directed": [0, 2], "bandwidth": "5GB/s"}]),
         f"shared capacity 0: the flows load it with 1e+09 bytes/s more than its 5e+09 bytes/s; {LOWER}"),
    ],
)  # fmt: skip
def test_what_is_refused(change: Callable[[dict[str, Any]], None], message: str) -> None:
    """Whatever is wrong is said once, with its place, and what to do where that is not plain."""
    data = example()
    change(data)
    with pytest.raises(InputError) as error:
        flows_from_dict(data, "flows.json")
    assert str(error.value) == f"flows.json: {message}"


def test_files_that_are_none(tmp_path: Path) -> None:
    """A broken file is named with its line, a missing one with the reason."""
    (tmp_path / "x.json").write_text('{"format": "dualcoll.flows/1",\n "size": }')
    with pytest.raises(InputError) as error:
        read_flows(tmp_path / "x.json")
    assert str(error.value) == f"{tmp_path}/x.json:2: the JSON is broken: Expecting value"
    with pytest.raises(InputError) as error:
        read_flows(tmp_path / "y.json")
    assert str(error.value) == f"{tmp_path}/y.json: it cannot be read: No such file or directory"
