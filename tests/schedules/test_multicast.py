"""Copies that switches make, as schedules say them (docs/semantics.md §9.4)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.collectives.contract import make_contract
from dualcoll.errors import CheckFailed, InputError
from dualcoll.execution.in_process import execute
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.file import schedule_from_dict, schedule_to_dict
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.multicast import first_alike
from dualcoll.schedules.ops import Op
from dualcoll.schedules.validate import validate
from dualcoll.topology.model import Forwarding, Kind, Link, Node, Topology

RANKS = 4


def star() -> Topology:
    """GPUs around a switch: link 2 r goes from rank r to it, link 2 r + 1 back."""
    nodes = (*(Node(f"g{r}", Kind.GPU) for r in range(RANKS)), Node("sw", Kind.SWITCH))
    return Topology(nodes, tuple(Link(a, b, 1.0) for r in range(RANKS) for a, b in ((r, RANKS), (RANKS, r))))


def spread(*, multicast: bool = True) -> Schedule:
    """A broadcast from rank 0 over the switch in two chunks, each copied there or sent to each."""
    builder = ScheduleBuilder(make_contract("broadcast", RANKS, pieces=2), 8, topology=star(), nodes=range(RANKS))
    for chunk in range(2):
        routes = [builder.route([0, 2 * rank + 1]) for rank in range(1, RANKS)]
        group = chunk if multicast else -1
        builder.extend(0, range(1, RANKS), chunk, round=chunk, route=routes, multicast=group)
    return builder.build()


def findings(schedule: Schedule) -> list[str]:
    """What validation finds, in no order."""
    with pytest.raises(CheckFailed) as raised:
        validate(schedule)
    return sorted(raised.value.findings)


def changed(schedule: Schedule, **values: int) -> Schedule:
    """The schedule with other values of its second send."""
    columns: dict[str, Any] = {}
    for name, value in values.items():
        columns[name] = getattr(schedule, name).copy()
        columns[name][1] = value
    return replace(schedule, **columns)


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 2), st.integers(0, 1))))
def test_first_alike(rows: list[tuple[int, int, int]]) -> None:
    """Each row's first equal, but for rows of no group, which stand for themselves."""
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    expected = [rows.index(row) if row[0] >= 0 else i for i, row in enumerate(rows)]
    assert first_alike(*columns).tolist() == expected


def test_a_multicast_is_valid_and_moves_data() -> None:
    """Also with one send for each link and round, as a shared link carries data once; without copies it is refused so."""
    made = spread()
    validate(made, one_per_round=True)
    execute(made, elements=3)
    with pytest.raises(CheckFailed, match=r"round 0: link g0 -> sw carries both send 0 .* and send 1"):
        validate(spread(multicast=False), one_per_round=True)
    two = changed(made, multicast=5)  # sends 0 and 2 are still one; send 1 is not
    with pytest.raises(CheckFailed) as raised:
        validate(two, one_per_round=True)
    assert raised.value.findings == (
        "round 0: link g0 -> sw carries both send 2 (rank g0 -> g3, chunk 0) and send 1 (rank g0 -> g2, chunk 0) (§8)",
    )


def test_files_have_the_column_only_where_it_says_something() -> None:
    """It is written and read; a file without it has no copies."""
    made = spread()
    data = schedule_to_dict(made)
    assert schedule_from_dict(data, "x").multicast.tolist() == [0, 0, 0, 1, 1, 1]
    plain = schedule_to_dict(spread(multicast=False))
    assert "multicast" not in plain["sends"]
    assert schedule_from_dict(plain, "x").multicast.tolist() == [-1] * 6
    data["sends"]["multicast"] = [0, 0, 0, 1, 1, -2]
    with pytest.raises(InputError) as raised:
        schedule_from_dict(data, "x")
    assert str(raised.value) == "x: send 5: multicast -2 is not in -1 .. 2147483647"


ONE = "send 1 (rank g0 -> g2, chunk 0): multicast 0"


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"src": 3}, "send 1 (rank g3 -> g2, chunk 0): multicast 0 is of chunk 0 at rank g0 (§9)"),
        ({"chunk": 1, "into": 1}, "send 1 (rank g0 -> g2, chunk 1): multicast 0 is of chunk 0 at rank g0 (§9)"),
        ({"dst": 1, "route": 0}, "send 1 (rank g0 -> g1, chunk 0): multicast 0 goes twice to its destination (§9)"),
        ({"op": 1}, f"{ONE} is of copies between ranks alone (§9)"),
        ({"route": -1}, f"{ONE} needs a route (§9)"),
    ],
)
def test_what_does_not_belong(change: dict[str, int], finding: str) -> None:
    """A send that switches cannot make of the others is named."""
    assert finding in findings(changed(spread(), **change))


def test_bytes_are_not_divided() -> None:
    """A sprayed route has no place in a tree."""
    both = (*star().links, Link(0, RANKS, 1.0))
    builder = ScheduleBuilder(
        make_contract("broadcast", RANKS), 8, topology=replace(star(), links=both), nodes=range(RANKS)
    )
    for rank in range(1, RANKS):
        links, shares = ([0, 8, 5], [0.5, 0.5, 1]) if rank == 2 else ([0, 2 * rank + 1], [1, 1])
        builder.send(0, rank, 0, route=builder.route(links, shares), multicast=0)
    assert findings(builder.build()) == [f"{ONE} does not divide its bytes (§9)"]


def test_routes_form_a_tree() -> None:
    """What comes to a node on two links was not made of one by a switch."""
    both = (*star().links, Link(0, RANKS, 1.0))
    builder = ScheduleBuilder(
        make_contract("broadcast", RANKS), 8, topology=replace(star(), links=both), nodes=range(RANKS)
    )
    for rank in range(1, RANKS):
        builder.send(0, rank, 0, route=builder.route([8 if rank == 2 else 0, 2 * rank + 1]), multicast=0)
    assert findings(builder.build()) == [
        "send 0 (rank g0 -> g1, chunk 0): multicast 0 comes to sw on 2 links (§9)",
    ]


def test_ways_over_ranks_are_ways_of_a_tree() -> None:
    """Where every node forwards, a rank on the way to another gets its own copy of what passes."""
    nodes = tuple(Node(f"g{i}", Kind.GPU) for i in range(3))
    line = Topology(nodes, (Link(0, 1, 1.0), Link(1, 2, 1.0), Link(2, 1, 1.0), Link(1, 0, 1.0)))
    contract = make_contract("broadcast", 3)
    builder = ScheduleBuilder(contract, 8, topology=line, nodes=range(3), forwarding=Forwarding.ALL)
    builder.send(0, 1, 0, route=builder.route([0]), multicast=0)
    builder.send(0, 2, 0, route=builder.route([0, 1]), multicast=0)
    validate(builder.build(), one_per_round=True)


@pytest.mark.parametrize("multicast", [True, False])
def test_copies_are_of_one_content(multicast: bool) -> None:
    """Nothing writes the slot between two copies of it, though one after the other may read what is written."""
    contract = make_contract("allreduce", 3)
    builder = ScheduleBuilder(contract, 8)
    spare = builder.scratch(0)
    group = 7 if multicast else -1
    builder.send(0, 1, 0, into=spare, multicast=group)
    builder.send(1, 0, 0, op=Op.REDUCE)
    builder.send(2, 0, 0, op=Op.REDUCE)
    builder.send(0, 2, 0, multicast=group)
    builder.send(0, 1, 0)
    made = builder.build()
    if multicast:
        text = "send 1 (rank 1 -> 0, chunk 0): it writes what multicast 7 reads, between two of its copies (§9)"
        assert findings(made) == [text]
    else:
        validate(made)


def test_copies_before_and_after_writes() -> None:
    """All copies may be before a write, or all after it, whatever else is written."""
    contract = make_contract("allreduce", 3)
    for late, groups in product((False, True), ((0, 0), (0, 1))):
        builder = ScheduleBuilder(contract, 8)
        spare = builder.scratch(0)
        if not late:
            for rank, group in zip((1, 2), groups, strict=True):
                builder.send(0, rank, 0, into=spare, multicast=group)
        builder.send(1, 0, 0, op=Op.REDUCE)
        builder.send(2, 0, 0, op=Op.REDUCE)
        for rank, group in zip((1, 2), groups, strict=True):
            builder.send(0, rank, 0, multicast=group if late else -1)
        validate(builder.build())
