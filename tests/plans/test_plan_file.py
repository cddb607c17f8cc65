"""Plan files come back exactly as they were, and whatever is wrong with one is said with its place."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.plans.document import Price, document_to_plan, plan_to_document
from dualcoll.plans.file import document_from_dict, plan_from_dict, plan_to_dict, read_document, read_plan, write_plan
from dualcoll.plans.model import Cut, Plan, Tree
from dualcoll.progress import Outcome
from dualcoll.topology.model import Forwarding, Kind, Link, Node, SharedCapacity, Topology

AMOUNT = st.floats(0, 1e18)


def _plan(rate: float = 0.1, price: float = 1e-11, seconds: float = 0.25) -> Plan:
    """Two GPUs, each with two cables to a switch, that use the second cable in one direction."""
    nodes = (Node("g0", Kind.GPU), Node("g1", Kind.GPU), Node("sw", Kind.SWITCH))
    ends = [(0, 2), (2, 0), (0, 2), (2, 0), (1, 2), (2, 1), (1, 2), (2, 1)]
    links = tuple(Link(tail, head, 50e9, 1e-6, id=f"c{i // 2}") for i, (tail, head) in enumerate(ends))
    tree = Tree(
        rate=rate,
        root=0,
        size=10,
        edges=np.array([[1, 0], [0, 1]]),
        phase=np.array([0, 1], dtype=np.int8),
        route_ptr=np.array([0, 2, 4]),
        route_links=np.array([6, 1, 0, 7]),
    )
    return Plan(
        topology=Topology(nodes, links, (SharedCapacity((0, 1), 75e9),), name="pair"),
        collective="allreduce",
        participants=(0, 1),
        forwarding=Forwarding.ALL,
        size=10,
        trees=(tree,),
        link_prices=np.array([price, 0, 0, 0, 0, 0, 0, price]),
        shared_prices=np.array([price]),
        value=rate,
        bound=rate * 1.01 + 1,
        in_network=Cut(100e9, (0,)),
        outcome=Outcome.TIME,
        seconds=seconds,
        iterations=3,
        method="auto",
    )


def _same(a: Plan, b: Plan) -> bool:
    """Equality of plans, arrays by content and type."""
    trees = zip(a.trees, b.trees, strict=True)
    pairs = [(getattr(p, f.name), getattr(q, f.name)) for p, q in trees for f in fields(Tree)]
    pairs += [(getattr(a, f.name), getattr(b, f.name)) for f in fields(Plan) if f.name != "trees"]
    return all(x.dtype == y.dtype and np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y for x, y in pairs)


def test_written_form(tmp_path: Path) -> None:
    """The file is the documented JSON, with one tree and one price a line."""
    write_plan(_plan(), tmp_path / "plan.json")
    text = (tmp_path / "plan.json").read_text()
    data = json.loads(text)
    assert data["format"] == "dualcoll.plan/1"
    assert (data["collective"], data["forward"], data["ranks"], data["size"]) == ("allreduce", "all", ["g0", "g1"], 10)
    assert data["trees"] == [
        {
            "rate": 0.1,
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
    plan = _plan(rate, price, seconds)
    assert _same(plan_from_dict(json.loads(json.dumps(plan_to_dict(plan))), "plan.json"), plan)


def test_files_come_back_exactly(tmp_path: Path) -> None:
    """What is written is read as the same plan and the same document."""
    path = tmp_path / "plan.json"
    write_plan(_plan(), path)
    assert _same(read_plan(path), _plan())
    assert replace(read_document(path), generator="") == replace(plan_to_document(_plan()), generator="")
    assert _same(document_to_plan(plan_to_document(_plan())), _plan())


def test_first_parallel_link_may_be_written_in_full() -> None:
    """A hop ["sw", 0] is the hop "sw"."""
    data = plan_to_dict(_plan())
    data["trees"][0]["routes"][1] = ["g0", ["sw", 0], ["g1", 1]]
    data["prices"][0]["link"] = ["g0", "sw", 0]
    assert document_from_dict(data, "x") == plan_to_document(_plan())


def _set(*path: str | int, to: object) -> Callable[[dict[str, Any]], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = to

    return change


TREE = ("trees", 0)
ROUTE_HINT = 'a route is a list of node names, where ["name", k] takes the k-th parallel link into that node'
EDGE_HINT = 'an edge is ["from", "to", "reduce"] or ["from", "to", "broadcast"]'
NO_OUTCOME = "'luck' is not known; use one of optimal, gap, time, interrupted, limited, stalled"
KEYS = "format, generator, collective, ranks, size, forward, claims, solver, topology, trees, prices, in_network_cut"
LINK_HINT = 'a link is ["from", "to"] or ["from", "to", k] for the k-th of parallel links'


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("format", to="dualcoll.plan/2"), "format: format 'dualcoll.plan/2' is not known; it must be 'dualcoll.plan/1'"),
        (_set("collective", to="allfoo"), "collective: collective 'allfoo' is not known; use one of allreduce"),
        (_set("ranks", 1, to=3), "ranks[1]: 3 is not a text"),
        (_set("ranks", to="g0"), "ranks: 'g0' is not a list"),
        (_set("size", to=0), "size 0 is not in 1 .. 2**63 - 1"),
        (_set("size", to=2**70), "size 1180591620717411303424 is not in 1 .. 2**63 - 1"),
        (_set("size", to=True), "size: True is not a whole number"),
        (_set("forward", to="gpus"), "forward: 'gpus' is not known; use one of switches, all"),
        (_set("trees", to={}), "trees: {} is not a list"),
        (_set("trees", 0, to=7), "trees[0]: 7 is not an object; it has the keys rate, root, bytes, edges, routes"),
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
    data = copy.deepcopy(plan_to_dict(_plan()))
    change(data)
    with pytest.raises(InputError) as error:
        document_from_dict(data, "plan.json")
    assert str(error.value) == f"plan.json: {message}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("ranks", 0, to="g9"), "ranks: the plan's topology has no node 'g9'"),
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
    data = copy.deepcopy(plan_to_dict(_plan()))
    change(data)
    document_from_dict(data, "plan.json")
    with pytest.raises(InputError) as error:
        plan_from_dict(data, "plan.json")
    assert str(error.value) == f"plan.json: {message}"


def test_unwritable_plans() -> None:
    """A plan with a number that is not finite or a broken route is refused before it becomes a file."""
    with pytest.raises(InputError, match=r"^rate nan is not a finite number >= 0$"):
        plan_to_dict(_plan(rate=math.nan))
    tree = replace(_plan().trees[0], route_links=np.array([6, 0, 0, 7]))
    with pytest.raises(InputError, match=r"^trees\[0\]\.routes\[0\]: its links do not follow one another$"):
        plan_to_document(replace(_plan(), trees=(tree,)))


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
    document = plan_to_document(_plan())
    assert document.prices == (Price(("g0", "sw"), 1e-11), Price(("sw", ("g1", 1)), 1e-11), Price(0, 1e-11))
    assert document_to_plan(document).link_prices.tolist() == _plan().link_prices.tolist()


def test_documented_example() -> None:
    """The example of docs/plan-file.md is a plan file."""
    page = (Path(__file__).parents[2] / "docs" / "plan-file.md").read_text()
    example = page.split("```json\n")[1].split("```")[0]
    document = document_from_dict(json.loads(example), "example")
    assert document.trees[0].routes == (("g1", "g0"), ("g0", "g1"))
