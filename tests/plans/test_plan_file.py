"""Plan files come back exactly as they were, and whatever is wrong with one is said with its place."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.plans.conversion import document_to_plan, plan_to_document
from dualcoll.plans.document import Price
from dualcoll.plans.file import document_from_dict, plan_from_dict, plan_to_dict, read_document, read_plan, write_plan
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.routing.routers import make_router
from tests.plans.small import make_mix, make_plan, same

AMOUNT = st.floats(0, 1e18)


def test_written_form(tmp_path: Path) -> None:
    """The file is the documented JSON, with one tree and one price a line."""
    write_plan(make_plan(), tmp_path / "plan.json")
    text = (tmp_path / "plan.json").read_text()
    data = json.loads(text)
    assert data["format"] == "dualcoll.plan/1"
    assert data["groups"] == [{"name": "all", "collective": "allreduce", "ranks": ["g0", "g1"], "size": 10}]
    assert (data["objective"], data["forward"], data["relay"]) == ("slowest", "all", True)
    assert data["routing"] == {"kind": "single", "seed": 0}
    assert data["trees"] == [
        {
            "rate": 0.1,
            "group": "all",
            "root": "g0",
            "bytes": 10,
            "edges": [["g1", "g0", "reduce"], ["g0", "g1", "broadcast"]],
            "routes": [["g1", ["sw", 1], "g0"], ["g0", "sw", ["g1", 1]]],
        }
    ]
    assert data["prices"] == [
        {"link": ["g0", "sw"], "price": 1e-11},
        {"link": ["sw", "g1", 1], "price": 1e-11},
        {"shared": 0, "price": 1e-11},
    ]
    assert data["in_network_cut"] == ["g0"]
    assert data["claims"]["in_network_bound"] == 100e9
    assert data["solver"] == {"outcome": "time", "method": "auto", "seconds": 0.25, "iterations": 3}
    assert sum(line.startswith('    {"rate"') or line.startswith('    {"link"') for line in text.splitlines()) == 3


@given(AMOUNT, AMOUNT, AMOUNT)
def test_numbers_come_back_exactly(rate: float, price: float, seconds: float) -> None:
    """Through JSON text and back, every number is the same double and every index the same link."""
    plan = make_plan(rate, price, seconds)
    assert same(plan_from_dict(json.loads(json.dumps(plan_to_dict(plan))), "plan.json"), plan)


def test_files_come_back_exactly(tmp_path: Path) -> None:
    """What is written is read as the same plan and the same document."""
    path = tmp_path / "plan.json"
    write_plan(make_plan(), path)
    assert same(read_plan(path), make_plan())
    assert replace(read_document(path), generator="") == replace(plan_to_document(make_plan()), generator="")
    assert same(document_to_plan(plan_to_document(make_plan())), make_plan())


def test_groups_and_sends_come_back_exactly(tmp_path: Path) -> None:
    """Several groups, roots, parts, targets, a total without a cut: all is written and read as it was."""
    path = tmp_path / "plan.json"
    write_plan(make_mix(), path)
    assert same(read_plan(path), make_mix())
    data = json.loads(path.read_text())
    assert data["groups"] == [
        {"name": "moe", "collective": "alltoallv", "ranks": ["g0", "g1"], "size": 8, "parts": [5, 3, 0, 0]},
        {"name": "tp", "collective": "reduce", "ranks": ["g1", "g0"], "size": 7, "root": "g1"},
    ]
    assert [(tree["group"], tree["root"], tree.get("target")) for tree in data["trees"]] == [
        ("moe", "g0", "g1"),
        ("tp", "g1", None),
    ]
    assert (data["in_network_cut"], data["claims"]["in_network_bound"]) == (None, None)


@pytest.mark.parametrize("kind", [kind for kind in RoutingKind if kind is not RoutingKind.SINGLE])
def test_routes_of_the_network_are_worked_out_again(tmp_path: Path, kind: RoutingKind) -> None:
    """They are not written; the plan that is read has those of the router, each edge of each tree its own."""
    plan = replace(make_plan(), routing=Routing(kind, 3))
    projection = make_router(plan.topology, (0, 1), plan.forwarding, plan.routing).project(np.zeros(8))
    ptr, links, share = projection.routes(np.array([[1, 0], [0, 1]]))
    tree = replace(plan.trees[0], route_ptr=ptr, route_links=links, route_share=share)
    plan = replace(plan, trees=(tree, replace(tree, edges=tree.edges[::-1], phase=tree.phase[::-1])))
    write_plan(plan, tmp_path / "plan.json")
    assert "routes" not in json.loads((tmp_path / "plan.json").read_text())["trees"][0]
    read = read_plan(tmp_path / "plan.json")
    assert same(replace(read, trees=read.trees[:1]), replace(plan, trees=(tree,)))
    backward = read.trees[1]
    assert backward.route(0).tolist() == tree.route(1).tolist()
    assert backward.route(1).tolist() == tree.route(0).tolist()


def test_an_edge_that_the_network_does_not_route(tmp_path: Path) -> None:
    """A plan file whose edge has no route, or ends at no rank, is no plan that can be used."""
    data = plan_to_dict(replace(make_plan(), routing=Routing(RoutingKind.SPRAY)))
    data["trees"][0]["edges"][1] = ["g0", "sw", "broadcast"]
    with pytest.raises(InputError) as error:
        plan_from_dict(data, "plan.json")
    wanted = "plan.json: trees[0].edges[1]: no route between ranks that may be used leads from g0 to sw"
    assert str(error.value) == wanted


def test_first_parallel_link_may_be_written_in_full() -> None:
    """A hop ["sw", 0] is the hop "sw"."""
    data = plan_to_dict(make_plan())
    data["trees"][0]["routes"][1] = ["g0", ["sw", 0], ["g1", 1]]
    data["prices"][0]["link"] = ["g0", "sw", 0]
    assert document_from_dict(data, "x") == plan_to_document(make_plan())


def _set(*path: str | int, to: object) -> Callable[[dict[str, Any]], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = to

    return change


def _group(**changes: object) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["groups"][0].update(changes)


GROUP, TREE = ("groups", 0), ("trees", 0)
ROUTE_HINT = 'a route is a list of node names, where ["name", k] takes the k-th parallel link into that node'
EDGE_HINT = 'an edge is ["from", "to", phase], and a phase is one of reduce, broadcast, send'
COLLECTIVES = "allreduce, broadcast, reduce, allgather, reducescatter, gather, scatter, alltoall, alltoallv"
NO_OUTCOME = "'luck' is not known; use one of optimal, gap, time, interrupted, limited, stalled"
KEYS = "format, generator, objective, groups, forward, relay, routing, claims, solver, topology, trees, prices, in_network_cut"
LINK_HINT = 'a link is ["from", "to"] or ["from", "to", k] for the k-th of parallel links'


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("format", to="dualcoll.plan/2"), "format: format 'dualcoll.plan/2' is not known; it must be 'dualcoll.plan/1'"),
        (_set(*GROUP, "collective", to="allfoo"),
         f"groups[0].collective: collective 'allfoo' is not known; use one of {COLLECTIVES}"),
        (_set(*GROUP, "ranks", 1, to=3), "groups[0].ranks[1]: 3 is not a text"),
        (_set(*GROUP, "ranks", to="g0"), "groups[0].ranks: 'g0' is not a list"),
        (_set(*GROUP, "size", to=0), "groups[0]: size 0 is not in 1 .. 2**63 - 1"),
        (_set(*GROUP, "size", to=2**70), "groups[0]: size 1180591620717411303424 is not in 1 .. 2**63 - 1"),
        (_set(*GROUP, "size", to=True), "groups[0].size: True is not a whole number"),
        (_set(*GROUP, "root", to="g0"), "groups[0]: AllReduce has no root"),
        (_set(*GROUP, "collective", to="broadcast"), "groups[0]: Broadcast has a root"),
        (_set(*GROUP, "parts", to=[1, 1]), "groups[0]: 2 parts, where AllReduce of 2 ranks has 0"),
        (_group(collective="allgather", parts=[1]), "groups[0]: 1 parts, where AllGather of 2 ranks has 0 or 2"),
        (_group(collective="allgather", parts=[0, 0]), "groups[0]: its parts are all 0"),
        (_group(collective="allgather", parts=[1, -1]), "groups[0]: part -1 is not in 0 .. 2**63 - 1"),
        (_group(collective="alltoallv", parts=[1, 1]), "groups[0]: 2 parts, where AllToAllv of 2 ranks has 4"),
        (_group(collective="alltoallv", parts="1"), "groups[0].parts: '1' is not a list"),
        (_set("groups", to=[]), "groups: there are none"),
        (lambda data: data["groups"].append(data["groups"][0]), "groups: 2 of them are called 'all'; names must be unique"),
        (_set("objective", to="fastest"), "objective: 'fastest' is not known; use one of slowest, total"),
        (_set("relay", to="yes"), "relay: 'yes' is not true or false"),
        (_set("routing", "kind", to="magic"), f"routing.kind: 'magic' is not known; use one of {', '.join(RoutingKind)}"),
        (_set("routing", "seed", to=-1), "routing.seed -1 is not in 0 .. 2**63 - 1"),
        (_set("routing", "kind", to="ecmp"),
         "trees[0].routes: routing ecmp leaves the routes to the network; leave them out"),
        (_set("forward", to="gpus"), "forward: 'gpus' is not known; use one of switches, all"),
        (_set("trees", to=7), "trees: 7 is not a list"),
        (_set("trees", to={}), "trees: key 'file' is missing"),
        (_set("trees", to={"file": "a.npz", "sha256": ""}),
         "trees: they are in the file 'a.npz'; read the plan from its own file"),
        (_set(*TREE, "target", to=0), "trees[0].target: 0 is not a text"),
        (lambda data: data["trees"][0].pop("routes"), "trees[0]: key 'routes' is missing"),
        (_set(*TREE, to=7), "trees[0]: 7 is not an object; it has the keys rate, group, root, bytes, edges, routes, target"),
        (_set(*TREE, "rate", to="fast"), "trees[0].rate: 'fast' is not a number"),
        (_set(*TREE, "rate", to=-1), "trees[0]: rate -1.0 is not a finite number >= 0"),
        (_set(*TREE, "rate", to=math.inf), "trees[0]: rate inf is not a finite number >= 0"),
        (_set(*TREE, "rate", to=10**400), f"trees[0].rate: 1{'0' * 56}... is too large"),
        (_set(*TREE, "bytes", to=1.5), "trees[0].bytes: 1.5 is not a whole number"),
        (_set(*TREE, "bytes", to=-1), "trees[0]: bytes -1 is not in 0 .. 2**63 - 1"),
        (_set(*TREE, "edges", 1, to=["g0", "g1"]), f"trees[0].edges[1]: cannot read ['g0', 'g1']; {EDGE_HINT}"),
        (_set(*TREE, "edges", 0, 2, to="up"), f"trees[0].edges[0]: cannot read ['g1', 'g0', 'up']; {EDGE_HINT}"),
        (_set(*TREE, "routes", 0, to=[["g1", 1], "g0"]), f"trees[0].routes[0]: cannot read [['g1', 1], 'g0']; {ROUTE_HINT}"),
        (_set(*TREE, "routes", 1, 2, to=["g1", -1]), f"trees[0].routes[1]: cannot read ['g0', 'sw', ['g1', -1]]; {ROUTE_HINT}"),
        (_set(*TREE, "routes", 1, to="g0"), f"trees[0].routes[1]: cannot read 'g0'; {ROUTE_HINT}"),
        (_set("prices", 0, "price", to=-1e-9), "prices[0]: price -1e-09 is not a finite number >= 0"),
        (_set("prices", 0, "link", to=["g0"]), f"prices[0].link: cannot read ['g0']; {LINK_HINT}"),
        (_set("prices", 2, "shared", to=-1), "prices[2]: shared -1 is not in 0 .. 2**63 - 1"),
        (_set("claims", "gap", to=None), "claims.gap: None is not a number"),
        (_set("claims", "in_network_bound", to=None),
         "in_network_cut and claims.in_network_bound go together; give both, or null for both"),
        (_set("claims", "bound", to=math.nan), "claims: bound nan is not a finite number >= 0"),
        (_set("solver", "outcome", to="luck"), f"solver.outcome: {NO_OUTCOME}"),
        (_set("solver", "iterations", to=-3), "solver: iterations -3 is not in 0 .. 2**63 - 1"),
        (_set("note", to=""), f"key 'note' is not known; use {KEYS}"),
        (lambda data: data.pop("prices"), "key 'prices' is missing"),
        (lambda data: data["claims"].pop("rate"), "claims: key 'rate' is missing"),
        (_set("topology", "format", to="x"), "topology: format 'x' is not dualcoll.topology/1"),
    ],
)  # fmt: skip
def test_wrong_form(change: Callable[[dict[str, Any]], None], message: str) -> None:
    """Data without the form of a plan is refused with the key, the value and what is expected."""
    data = copy.deepcopy(plan_to_dict(make_plan()))
    change(data)
    with pytest.raises(InputError) as error:
        document_from_dict(data, "plan.json")
    assert str(error.value) == f"plan.json: {message}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set(*GROUP, "ranks", 0, to="g9"), "groups[0].ranks: the plan's topology has no node 'g9'"),
        (_set(*TREE, "group", to="tp"), "trees[0]: group 'tp' has no demand with root 'g0'"),
        (_set(*TREE, "target", to="g1"), "trees[0]: group 'all' has no demand with root 'g0' and target 'g1'"),
        (_set(*TREE, "root", to="g9"), "trees[0]: the plan's topology has no node 'g9'"),
        (_set(*TREE, "routes", 0, to=["g1", "g0"]), "trees[0].routes[0]: the plan's topology has no such link: ('g1', 'g0')"),
        (_set(*TREE, "routes", to=[]), "trees[0]: 0 routes for 2 edges"),
        (_set("prices", 0, "link", to=["g0", "g1"]), "prices[0]: the plan's topology has no such link: ('g0', 'g1')"),
        (_set("prices", 2, "shared", to=1), "prices[2]: the plan's topology has no shared capacity 1"),
        (_set("in_network_cut", to=["g9"]), "in_network_cut: the plan's topology has no node 'g9'"),
    ],
)  # fmt: skip
def test_unresolvable_names(change: Callable[[dict[str, Any]], None], message: str) -> None:
    """A document may name what its topology lacks, so that the proof can say so; a plan may not."""
    data = copy.deepcopy(plan_to_dict(make_plan()))
    change(data)
    document_from_dict(data, "plan.json")
    with pytest.raises(InputError) as error:
        plan_from_dict(data, "plan.json")
    assert str(error.value) == f"plan.json: {message}"


def test_unwritable_plans() -> None:
    """A plan with a number that is not finite or a broken route is refused before it becomes a file."""
    with pytest.raises(InputError, match=r"^rate nan is not a finite number >= 0$"):
        plan_to_dict(make_plan(rate=math.nan))
    tree = replace(make_plan().trees[0], route_links=np.array([6, 0, 0, 7]))
    with pytest.raises(InputError, match=r"^trees\[0\]\.routes\[0\]: its links do not follow one another$"):
        plan_to_document(replace(make_plan(), trees=(tree,)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "{path}: it is empty"),
        ('{"format": "dualcoll.plan/1",\n"size": ', "{path}:2: the JSON is broken: Expecting value"),
        ('{"format": "dualcoll.plan/1",\n"size": NaN}', "{path}: NaN is not a number that JSON knows"),
        ('{"format": "dualcoll.plan/1",\n"size": 1, "size": 1}', "{path}:2: key 'size' is given twice"),
        ('{"format": "dualcoll.plan/1", "size": ' + "9" * 5000 + "}", "{path}: a number has too many digits"),
        ('{"size": ' + "[" * 100_000, "{path}: it is nested too deep"),
    ],
    ids=["empty", "truncated", "nan", "repeated key", "long number", "deep"],
)
def test_not_json(tmp_path: Path, text: str, message: str) -> None:
    """Text that is no JSON object is refused with its line where one is known."""
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_document(path)
    assert str(error.value) == message.format(path=path)


def test_prices_that_are_zero_are_left_out() -> None:
    """Only positive prices are kept in a document; the rest is zero again in the plan."""
    document = plan_to_document(make_plan())
    assert document.prices == (Price(("g0", "sw"), 1e-11), Price(("sw", ("g1", 1)), 1e-11), Price(0, 1e-11))
    assert document_to_plan(document).link_prices.tolist() == make_plan().link_prices.tolist()


def test_documented_example() -> None:
    """The example of docs/plan-file.md is a plan file."""
    page = (Path(__file__).parents[2] / "docs" / "plan-file.md").read_text()
    example = page.split("```json\n")[1].split("```")[0]
    document = document_from_dict(json.loads(example), "example")
    assert document.trees[0].routes == (("g1", "g0"), ("g0", "g1"))
