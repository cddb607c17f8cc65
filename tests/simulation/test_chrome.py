from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.schedules.ir import Schedule
from dualcoll.simulation import Options, simulate, to_chrome
from tests.simulation.samples import ring
from tests.simulation.test_trace import runs

REQUIRED = {  # fields of each phase in the Trace Event Format
    "M": {"name", "pid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur"},
    "s": {"name", "cat", "pid", "tid", "ts", "id"},
    "f": {"name", "cat", "pid", "tid", "ts", "id", "bp"},
    "i": {"name", "pid", "tid", "ts", "s"},
    "C": {"name", "pid", "ts", "args"},
}


@given(st.booleans().flatmap(lambda copies: runs(copies=copies)))
@settings(max_examples=50)
def test_events_have_what_the_format_asks_for(run: tuple[Schedule, Options]) -> None:
    """Every event has the fields of its phase, with times that are numbers, and the whole can be written as JSON."""
    document = json.loads(json.dumps(to_chrome(simulate(*run), run[0]), allow_nan=False))
    assert document["displayTimeUnit"] == "ns"
    for event in document["traceEvents"]:
        assert event.keys() >= REQUIRED[event["ph"]]
        assert all(isinstance(event[key], (int, float)) and event[key] >= 0 for key in ("ts", "dur") if key in event)


@given(st.booleans().flatmap(lambda copies: runs(copies=copies)))
@settings(max_examples=50)
def test_slices_of_a_track_follow_each_other(run: tuple[Schedule, Options]) -> None:
    """Viewers nest slices that overlap on one track: those of a channel do not."""
    tracks: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for event in to_chrome(simulate(*run), run[0])["traceEvents"]:
        if event["ph"] == "X" and run[0].src[event["args"]["send"]] != run[0].dst[event["args"]["send"]]:
            tracks[event["pid"], event["tid"]].append(event)
    for events in tracks.values():
        events.sort(key=lambda event: (event["ts"], event["ts"] + event["dur"]))
        for earlier, later in pairwise(events):
            assert later["ts"] >= (earlier["ts"] + earlier["dur"]) * (1 - 1e-12)


@pytest.mark.parametrize("mode", ["alpha-beta", "fluid"])
def test_what_is_shown(mode: str) -> None:
    """Two ranks: a slice, an arrow and an instant for each send, and how far the links are in use."""
    schedule = ring(2, 4, 2, 1)
    events = to_chrome(simulate(schedule, Options(mode=mode)), schedule)["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert names == ["rank g0", "rank g1", "links, % in use"]
    first = [event for event in events if event.get("args", {}).get("send") == 0 or event.get("id") == 0]
    assert first == [
        {
            "cat": "reduce",
            "name": "reduce chunk 0",
            "pid": 0,
            "tid": 1,
            "ts": 0.0,
            "ph": "X",
            "dur": 2e6,
            "args": {"send": 0, "bytes": 4, "round": -1},
        },
        {"cat": "reduce", "name": "reduce chunk 0", "pid": 0, "tid": 1, "ts": 0.0, "ph": "s", "id": 0},
        {"cat": "reduce", "name": "reduce chunk 0", "pid": 1, "tid": 0, "ts": 3e6, "ph": "f", "bp": "e", "id": 0},
        {
            "cat": "reduce",
            "name": "reduce chunk 0",
            "pid": 1,
            "tid": 0,
            "ts": 3e6,
            "ph": "i",
            "s": "t",
            "args": {"send": 0, "bytes": 4, "round": -1},
        },
    ]
    levels = [
        (event["ts"] / 1e6, event["args"]["%"])
        for event in events
        if event["name"] == "g0 -> g1 (cable 0)" and event["ph"] == "C"
    ]
    assert levels[0] == (0, 100)
    assert levels[-1] == (6, 0)
