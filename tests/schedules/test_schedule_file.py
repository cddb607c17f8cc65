"""Schedule files: what is written is read back, and what is no schedule is refused with its place."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.collectives.contract import joint_contract, make_contract
from dualcoll.errors import InputError
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.columns import packed, unpacked
from dualcoll.schedules.file import read_schedule, schedule_from_dict, schedule_to_dict, write_schedule
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.routed import routed
from dualcoll.topology.catalog import catalog
from tests.schedules.samples import COLUMNS, all_to_all, findings, loop, ring, star, swap

DOCS = Path(__file__).parent.parent.parent / "docs"


def mix() -> Schedule:
    """Two groups, one with a scratch slot."""
    parts = [
        (make_contract("gather", 3, root=2), (0, 1, 2)),
        (make_contract("allreduce", 2).with_scratch([0]), (1, 3)),
    ]
    return ScheduleBuilder(joint_contract(4, parts), [1, 2, 3, 2**62, 2**62], name="mix").build()


SAMPLES = {
    "ring": ring(4),
    "large ring": ring(40),
    "on a fabric": routed(ring(5), star(5)),
    "sprayed": routed(all_to_all(16), catalog("dgx-h100", boxes=2), routing=Routing(RoutingKind.SPRAY_HOPS)),
    "scratch": swap(rounds=False),
    "mix": mix(),
    "nothing": ring(1),
}


def assert_equal(one: Schedule, other: Schedule) -> None:
    """Every field is the same."""
    for name in (*COLUMNS, "chunk_size", "depends_ptr", "depends"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for name in ("topology", "nodes", "forwarding", "name"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("collective", "ranks", "root", "groups"):
        assert getattr(one.contract, name) == getattr(other.contract, name)
    for name in ("source", "target", "data", "group"):
        assert np.array_equal(getattr(one.contract, name), getattr(other.contract, name))
    assert np.array_equal(one.routes.ptr, other.routes.ptr)
    assert np.array_equal(one.routes.links, other.routes.links)
    if one.routes.share is None or other.routes.share is None:
        assert one.routes.share is other.routes.share
    else:
        assert np.array_equal(one.routes.share, other.routes.share)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_written_is_read_back(name: str, tmp_path: Path) -> None:
    """A file holds every field of a schedule, bit for bit."""
    write_schedule(SAMPLES[name], tmp_path / "schedule.json")
    assert_equal(read_schedule(tmp_path / "schedule.json"), SAMPLES[name])


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=600))
@settings(max_examples=50)
def test_columns_come_back(numbers: list[int]) -> None:
    """All three forms of a column keep all of 64 bits."""
    column = np.array(numbers, np.int64)
    assert np.array_equal(unpacked(json.loads(json.dumps(packed(column))), len(numbers), "x"), column)
    halves = column / 2
    assert np.array_equal(unpacked(json.loads(json.dumps(packed(halves))), len(numbers), "x", floats=True), halves)


def test_large_schedules_are_small_files(tmp_path: Path) -> None:
    """A hundred thousand sends of a ring take less than a byte each."""
    schedule = ring(225)
    write_schedule(schedule, tmp_path / "schedule.json")
    assert schedule.sends > 100_000
    assert (tmp_path / "schedule.json").stat().st_size < schedule.sends


def test_a_small_file_can_be_read_by_people(tmp_path: Path) -> None:
    """Small columns are lists, and every key of the two upper levels has its line."""
    write_schedule(replace(swap(), name="exchange"), tmp_path / "schedule.json")
    text = (tmp_path / "schedule.json").read_text()
    assert re.sub(r'"dualcoll [^"]*"', '"dualcoll"', text) == (
        "{\n"
        '  "format": "dualcoll.schedule/1",\n'
        '  "generator": "dualcoll",\n'
        '  "name": "exchange",\n'
        '  "contract": {\n'
        '    "collective": "allreduce",\n'
        '    "ranks": 2,\n'
        '    "chunks": 2,\n'
        '    "source": [-1, -2],\n'
        '    "target": [-1, -2],\n'
        '    "data": 0\n'
        "  },\n"
        '  "chunk_size": 8,\n'
        '  "sends": {\n'
        '    "count": 4,\n'
        '    "src": [0, 1, 0, 1],\n'
        '    "dst": [1, 0, 0, 1],\n'
        '    "chunk": [0, 0, 1, 1],\n'
        '    "op": [0, 0, 1, 1],\n'
        '    "channel": 0,\n'
        '    "round": [0, 0, 1, 1],\n'
        '    "route": -1,\n'
        '    "into": [1, 1, 0, 0],\n'
        '    "dependencies": [0, 0, 2, 2],\n'
        '    "depends": [0, 1, 0, 1]\n'
        "  }\n"
        "}\n"
    )


def test_the_example_of_the_docs() -> None:
    """The example in docs/schedule-file.md is a valid schedule."""
    text = re.search(r"```json\n(.*?)```", (DOCS / "schedule-file.md").read_text(), re.DOTALL)
    assert text
    assert findings(schedule_from_dict(json.loads(text[1]), "example")) == ()


def zipped(numbers: list[int]) -> dict[str, str]:
    """A packed column."""
    return {"zlib": base64.b64encode(zlib.compress(np.diff(numbers, prepend=0).astype("<i8").tobytes())).decode()}


A = "is not a column of whole numbers; a column is one number for all, a list of numbers, or {" + '"zlib": "..."}'


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("format",), "dualcoll.schedule/9", "f: format: format 'dualcoll.schedule/9' is not dualcoll.schedule/1"),
        (("colour",), 1, "f: colour: unknown key 'colour'; the keys are "),
        (("sends", "sec"), 0, "f: sends.sec: unknown key 'sec'; did you mean src?"),
        (("sends", "src"), None, f"f: sends: src: it {A}"),
        (("sends", "src"), True, f"f: sends: src: it {A}"),
        (("sends", "src"), [0, 1.5, 0, 1], f"f: sends: src: it {A}"),
        (("sends", "src"), {"zlib": "", "more": 1}, f"f: sends: src: it {A}"),
        (("sends", "src"), [0, 1], "f: sends: src: it has 2 numbers where 4 belong"),
        (("sends", "src"), [0, 1, 0, 2**64], "f: sends: src: a number has more than 64 bits"),
        (("sends", "src"), [0, 1, 0, 2**40], "f: src: a number does not fit int32"),
        (("sends", "src"), [0, 1, 0, 2], "f: send 3: src 2 is not in 0 .. 1"),
        (("sends", "src"), zipped([0, 1]), "f: sends: src: it has 2 numbers where 4 belong"),
        (("sends", "src"), zipped([0] * 5), "f: sends: src: it has more than 4 numbers where 4 belong"),
        (("sends", "src"), {"zlib": "?"}, "f: sends: src: the packed column is damaged: "),
        (("sends", "src"), {"zlib": "AAAA"}, "f: sends: src: the packed column is damaged: "),
        (
            ("sends", "src"),
            {"zlib": zipped([0, 1, 0, 1])["zlib"][:12]},
            "f: sends: src: the packed column is cut off",
        ),
        (
            ("sends", "src"),
            {"zlib": base64.b64encode(zlib.compress(b"1234567")).decode()},
            "f: sends: src: the packed column ends within a number",
        ),
        (("sends", "count"), -1, "f: sends: count: -1 is not in 0 .. 16777216"),
        (("sends", "count"), 999999999, "f: sends: count: 999999999 is not in 0 .. 16777216"),
        (
            ("sends", "dependencies"),
            [0, 0, 2, 2**40],
            "f: sends: dependencies: the numbers are not lengths that sum to at most 134217728",
        ),
        (("sends", "depends"), [0, 1, 0], "f: sends: depends: it has 3 numbers where 4 belong"),
        (("contract", "collective"), "gossip", "f: contract: collective 'gossip' is not known; use one of "),
        (("contract", "ranks"), 0, "f: contract: a contract over 0 ranks; use 1 to 65536"),
        (("contract", "chunks"), 3, "f: contract: source: it has 2 numbers where 3 belong"),
        (("contract", "groups"), [7], "f: contract: groups[0]: it is not a list of rank numbers"),
        (("contract", "source"), [-1, 2**40], "f: contract: source: a number does not fit int32"),
        (("chunk_size",), [8, -1], "f: chunk_size: size -1 is below 0"),
        (("fabric",), {"nodes": 0}, "f: fabric: topology is missing"),
    ],
)
def test_what_is_no_schedule_is_refused(path: tuple[str, ...], value: object, text: str) -> None:
    """Each wrong value is named with its key."""
    data = schedule_to_dict(swap())
    inner: Any = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(InputError) as caught:
        schedule_from_dict(data, "f")
    assert str(caught.value) == text or (text.endswith(" ") and str(caught.value).startswith(text))


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("nodes",), [0, 1, 2, 2], "f: nodes: nodes must be 4 different ones, one per rank"),
        (("forward",), "nobody", "f: fabric.forward: 'nobody' is not known; use one of switches, all"),
        (("routes", "links"), 99, "f: routes: it names a link that the topology does not have"),
        (("routes", "share"), 2.0, "f: fabric: routes: each link of a route needs a share in (0, 1]"),
        (
            ("topology", "links", 0, "to"),
            "g9",
            "f: fabric: topology: links[0].to: there is no node 'g9'; name it under nodes",
        ),
    ],
)
def test_what_is_no_fabric_is_refused(path: tuple[Any, ...], value: object, text: str) -> None:
    """A fabric's part of the file is as strict."""
    data = schedule_to_dict(routed(ring(4), loop(4)))
    inner: Any = data["fabric"]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(InputError) as caught:
        schedule_from_dict(data, "f")
    assert str(caught.value) == text


def test_broken_text(tmp_path: Path) -> None:
    """A file that is no JSON is refused with its line, one that is missing with its name."""
    path = tmp_path / "schedule.json"
    path.write_text('{"format": "dualcoll.schedule/1",\n "sends": }')
    with pytest.raises(InputError) as caught:
        read_schedule(path)
    assert str(caught.value) == f"{path}:2: the JSON is broken: Expecting value"
    with pytest.raises(InputError) as caught:
        read_schedule(tmp_path / "none.json")
    assert str(caught.value) == f"{tmp_path / 'none.json'}: it cannot be read: No such file or directory"


scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5))
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=2)),
)


@given(st.sampled_from(["ring", "on a fabric", "scratch", "mix"]), st.data())
@settings(max_examples=150)
def test_forged_values_are_read_or_refused(name: str, data: st.DataObject) -> None:
    """Any value in any place makes either a schedule, which can be validated, or an InputError."""
    document = json.loads(json.dumps(schedule_to_dict(SAMPLES[name])))
    inner: Any = document
    while True:
        key = data.draw(st.sampled_from(list(inner) if isinstance(inner, dict) else range(len(inner))))
        if not isinstance(inner[key], dict | list) or not inner[key] or data.draw(st.integers(0, 4)) == 0:
            break
        inner = inner[key]
    inner[key] = data.draw(st.one_of(anything, st.integers(-2, 5)))
    try:
        schedule = schedule_from_dict(document, "f")
    except InputError:
        return
    findings(schedule)
