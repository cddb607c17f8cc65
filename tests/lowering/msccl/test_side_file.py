"""Routes of programs, in files of their own."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from dualcoll import plan as make_plan
from dualcoll.classical.ring import ring_all_gather
from dualcoll.errors import InputError
from dualcoll.lowering.chunk_counts import equal_chunks
from dualcoll.lowering.msccl.from_schedule import to_msccl
from dualcoll.lowering.msccl.side_file import SideFile, side_file_from_json, side_file_to_json, with_side_file
from dualcoll.lowering.msccl.to_schedule import to_schedule
from dualcoll.progress import Gap
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.routed import routed
from dualcoll.topology.catalog import catalog
from tests.lowering.msccl.round_trip import read_again
from tests.schedules.samples import star

FABRIC = star(3)


def gathering() -> tuple[Schedule, SideFile]:
    """An all-gather around a ring, read again without routes, and its routes."""
    schedule = routed(ring_all_gather(3, 48), FABRIC)
    lowered = to_msccl(schedule)
    return to_schedule(lowered.program, 48), lowered.side


def links_of(schedule: Schedule, send: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    route = int(schedule.route[send])
    return tuple(schedule.routes.of(route).tolist()), tuple(schedule.routes.shares(route).tolist())


@pytest.mark.parametrize(("spec", "routing"), [("dgx-h100:boxes=2", "single"), ("fat-tree:4", "spray")])
def test_routes_come_back(spec: str, routing: str) -> None:
    """Sends that are read again are the schedule's, on its routes and in its order, on paths and sprayed."""
    plan = make_plan(catalog(spec), "allgather", size=2**20, stop=Gap(0.1), routing=routing)
    schedule, _ = equal_chunks(plan, 2 * len(plan.participants))
    _, again = read_again(schedule)
    moved = np.flatnonzero(again.src != again.dst)
    for name in ("src", "dst", "op", "channel"):
        assert np.array_equal(getattr(again, name)[moved], getattr(schedule, name))
    assert [links_of(again, send) for send in moved.tolist()] == [links_of(schedule, s) for s in range(schedule.sends)]
    assert (again.nodes, again.forwarding) == (schedule.nodes, schedule.forwarding)


def test_form() -> None:
    """Links by the names of their ends; one route for a connection whose messages all take it."""
    _, side = gathering()
    data = side_file_to_json(side)
    assert data["ranks"] == ["g0", "g1", "g2"]
    assert data["routes"][0] == {"links": [["g0", "sw"], ["sw", "g1"]]}
    assert data["connections"][0] == {"connection": [0, 1, 0], "routes": [0], "sends": [0, 3]}
    assert side_file_from_json(json.loads(json.dumps(data))) == side


def test_without_fabric() -> None:
    """A schedule without routes still keeps the order of its sends."""
    side = to_msccl(ring_all_gather(3, 48)).side
    assert (side.ranks, side.routes) == ((), ())
    assert side_file_from_json(side_file_to_json(side)) == side


def changed(path: tuple[Any, ...], value: object) -> dict[str, Any]:
    """The side file's data with one value changed."""
    data: dict[str, Any] = json.loads(json.dumps(side_file_to_json(gathering()[1])))
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("format",), "x", "format: 'x' is not known; use one of dualcoll.msccl-routes/1"),
        (("forward",), "never", "forward: 'never' is not known; use one of switches, all"),
        (
            ("routes", 0, "links", 0),
            ["g0"],
            'routes[0].links[0]: cannot read [\'g0\']; a link is ["from", "to"] or ["from", "to", cable]',
        ),
        (("routes", 0, "parts"), [1.0], "routes[0].parts: 1 parts for 2 links"),
        (
            ("connections", 0, "connection"),
            [0, 1],
            "connections[0]: it needs source, destination and channel, and a route and a send for each chunk",
        ),
        (("connections", 0, "routes"), [9], "connections[0]: route 9 is not among the 3"),
        (("connections", 0, "sends"), [0, -1], "connections[0]: a send is below 0"),
    ],
)
def test_broken_files(path: tuple[Any, ...], value: object, text: str) -> None:
    """What is not in the form is refused with its key."""
    with pytest.raises(InputError) as caught:
        side_file_from_json(changed(path, value))
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("ranks",), ["g0", "g1"], "ranks: routes of 2 ranks for a program of 3"),
        (("ranks", 1), "h1", "ranks: the topology has no node h1"),
        (("routes", 0, "links", 0, 1), "s9", "routes[0]: the topology has no link from g0 to s9"),
        (
            ("connections", 0, "sends"),
            [0],
            "connection 0 -> 1, channel 0: 2 chunks are sent and 1 have routes",
        ),
    ],
)
def test_other_programs_and_fabrics(path: tuple[Any, ...], value: object, text: str) -> None:
    """A side file that goes with another program or fabric is refused."""
    schedule, _ = gathering()
    with pytest.raises(InputError) as caught:
        with_side_file(schedule, side_file_from_json(changed(path, value)), FABRIC)
    assert str(caught.value) == text
