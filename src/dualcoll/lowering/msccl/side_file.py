"""What MSCCL XML has no place for: the links that messages take, and the order of sends that start at one moment.

Switches vanish from the file, and its executor leaves routes to the network. With these a program that is read again becomes
sends on the same routes, numbered as they were.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.files import read_bytes
from dualcoll.lowering.msccl.messages import Connection, Messages
from dualcoll.plans.document import LinkKey, link_keys
from dualcoll.plans.fields import array, choice, integers, names, number, shown, the_object
from dualcoll.schedules.ir import NONE, Routes, Schedule
from dualcoll.topology.model import Forwarding, Topology
from dualcoll.topology.source_text import SourceText

__all__ = [
    "FORMAT",
    "SideFile",
    "read_side_file",
    "side_file_from_json",
    "side_file_of",
    "side_file_to_json",
    "side_path",
    "with_side_file",
]

Ints = NDArray[np.int64]

FORMAT = "dualcoll.msccl-routes/1"
_COLUMNS = ("src", "dst", "chunk", "into", "op", "channel", "round", "route")

Link = tuple[LinkKey, float]  # by the names of its ends, and the part of a message's bytes on it
Route = tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class SideFile:
    """Routes of a program's messages.

    Attributes:
        ranks: node of each rank by name; empty without a fabric. forward: the policy that routes keep to, or None.
        routes: the links of each route, in travelling order where all parts are 1.
        connections: for each (source, destination, channel) of the program two numbers for every chunk that is sent on it, in
            order: of its route (``NONE`` without a fabric), and of its send in the schedule.
    """

    ranks: tuple[str, ...]
    forward: Forwarding | None
    routes: tuple[Route, ...]
    connections: dict[Connection, tuple[tuple[int, ...], tuple[int, ...]]]


def side_file_of(schedule: Schedule, messages: Messages, count: list[int]) -> SideFile:
    """The side file of a schedule that became these messages; ``count`` are the program chunks of each chunk."""
    topology = schedule.topology
    keys = [] if topology is None else link_keys(topology)
    table = schedule.routes
    routes = tuple(
        tuple(zip([keys[link] for link in table.of(t).tolist()], table.shares(t).tolist(), strict=True))
        for t in range(len(table))
    )
    of = schedule.route.tolist()
    connections = {}
    for connection, queue in sorted(messages.on.items()):
        sends = [send for m in queue for send in messages.members[m] for _ in range(count[messages.chunk[send]])]
        connections[connection] = tuple(of[send] for send in sends), tuple(sends)
    ranks = () if topology is None else tuple(schedule.rank_name(rank) for rank in range(schedule.ranks))
    return SideFile(ranks, schedule.forwarding, routes, connections)


def with_side_file(schedule: Schedule, side: SideFile, topology: Topology) -> Schedule:
    """The sends of a program that was read again, on the fabric and routes that they had, and in their order.

    Args:
        schedule: of :func:`~dualcoll.lowering.msccl.to_schedule.to_schedule`, with one send for every chunk of a message.
        side: of the same program. topology: its fabric.

    Raises:
        InputError: the side file is of another program or another fabric.
    """
    if len(side.ranks) != schedule.ranks:
        raise InputError(f"routes of {len(side.ranks)} ranks for a program of {schedule.ranks}", where="ranks")
    missing = next((name for name in side.ranks if name not in topology.index), None)
    if missing is not None:
        raise InputError(f"the topology has no node {missing[:60]}", where="ranks")
    found = _sends_on(schedule)
    route = np.full(schedule.sends, NONE, np.int32)
    key = np.full(schedule.sends, NONE, np.int64)
    for connection, sends in found.items():
        routes, numbers = side.connections.get(connection, ((), ()))
        if len(routes) != len(sends):
            which = "connection {} -> {}, channel {}".format(*connection)
            raise InputError(f"{len(sends)} chunks are sent and {len(routes)} have routes", where=which)
        route[sends], key[sends] = routes, numbers
    made = replace(
        schedule,
        route=route,
        routes=_routes(side, topology),
        topology=topology,
        nodes=tuple(topology.index[name] for name in side.ranks),
        forwarding=side.forward,
    )
    return _numbered(made, _keys(made, key))


def side_path(program: Path) -> Path:
    """Where the side file of a program's file is kept: beside it."""
    return program.with_name(program.name + ".routes.json")


def read_side_file(path: Path) -> SideFile:
    """Read a side file.

    Raises:
        InputError: it is none, with the key.
    """
    try:
        return side_file_from_json(SourceText.parse(read_bytes(path), str(path)).data)
    except InputError as error:
        raise error.within(str(path)) from None


def side_file_to_json(side: SideFile) -> dict[str, Any]:
    """The side file as JSON-ready data."""
    return {
        "format": FORMAT,
        "ranks": list(side.ranks),
        "forward": None if side.forward is None else str(side.forward),
        "routes": [_route_to_json(route) for route in side.routes],
        "connections": [
            {
                "connection": list(connection),
                "routes": list(routes[:1] if len(set(routes)) == 1 else routes),
                "sends": list(numbers),
            }
            for connection, (routes, numbers) in side.connections.items()
        ],
    }


def side_file_from_json(data: object) -> SideFile:
    """The side file that parsed JSON holds.

    Raises:
        InputError: it has not the form of one, with the key.
    """
    top = the_object(data, "", ("format", "ranks", "forward", "routes", "connections"))
    choice(top["format"], "format", [FORMAT])
    forward = top["forward"]
    policy = None if forward is None else Forwarding(choice(forward, "forward", [str(policy) for policy in Forwarding]))
    routes = tuple(_route(route, f"routes[{i}]") for i, route in enumerate(array(top["routes"], "routes")))
    connections: dict[Connection, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    for i, entry in enumerate(array(top["connections"], "connections")):
        where = f"connections[{i}]"
        form = the_object(entry, where, ("connection", "routes", "sends"))
        ends = integers(form["connection"], f"{where}.connection")
        numbers = integers(form["sends"], f"{where}.sends")
        of = integers(form["routes"], f"{where}.routes")
        of = of * len(numbers) if len(of) == 1 else of
        if len(ends) != 3 or len(of) != len(numbers):
            raise InputError(
                "it needs source, destination and channel, and a route and a send for each chunk", where=where
            )
        wrong = next((route for route in of if not NONE <= route < len(routes)), None)
        if wrong is not None or (numbers and min(numbers) < 0):
            problem = f"route {wrong} is not among the {len(routes)}" if wrong is not None else "a send is below 0"
            raise InputError(problem, where=where)
        connections[ends[0], ends[1], ends[2]] = of, numbers
    return SideFile(names(top["ranks"], "ranks"), policy, routes, connections)


def _route_to_json(route: Route) -> dict[str, Any]:
    links = [[tail, hop] if isinstance(hop, str) else [tail, *hop] for (tail, hop), _ in route]
    parts = [part for _, part in route]
    return {"links": links} | ({} if all(part == 1 for part in parts) else {"parts": parts})


def _route(data: object, where: str) -> Route:
    form = the_object(data, where, ("links",), ("parts",))
    links = [_link(link, f"{where}.links[{i}]") for i, link in enumerate(array(form["links"], f"{where}.links"))]
    parts = [1.0] * len(links)
    if "parts" in form:
        given = array(form["parts"], f"{where}.parts")
        parts = [number(part, f"{where}.parts[{i}]") for i, part in enumerate(given)]
    if len(parts) != len(links):
        raise InputError(f"{len(parts)} parts for {len(links)} links", where=f"{where}.parts")
    return tuple(zip(links, parts, strict=True))


def _link(data: object, where: str) -> LinkKey:
    match data:
        case [str(tail), str(head)]:
            return tail, head
        case [str(tail), str(head), int(cable)] if type(cable) is int and cable > 0:
            return tail, (head, cable)
    raise InputError(
        f"cannot read {shown(data)}", where=where, hint='a link is ["from", "to"] or ["from", "to", cable]'
    )


def _sends_on(schedule: Schedule) -> dict[Connection, list[int]]:
    found: dict[Connection, list[int]] = defaultdict(list)
    ends = zip(schedule.src.tolist(), schedule.dst.tolist(), schedule.channel.tolist(), strict=True)
    for send, (src, dst, channel) in enumerate(ends):
        if src != dst:
            found[src, dst, channel].append(send)
    return found


def _routes(side: SideFile, topology: Topology) -> Routes:
    index = {key: link for link, key in enumerate(link_keys(topology))}
    for t, route in enumerate(side.routes):
        for key, _ in route:
            if key not in index:
                head = key[1] if isinstance(key[1], str) else key[1][0]
                problem = f"the topology has no link from {key[0][:60]} to {head[:60]}"
                raise InputError(problem, where=f"routes[{t}]")
    ptr = np.concatenate([[0], np.cumsum([len(route) for route in side.routes], dtype=np.int64)])
    links = np.array([index[key] for route in side.routes for key, _ in route], np.int32)
    parts = np.array([part for route in side.routes for _, part in route], np.float64)
    return Routes(ptr, links, None if np.all(parts == 1) else parts)


def _keys(schedule: Schedule, key: Ints) -> Ints:
    """The place of each send, int64 (S,); what is local comes with the last that it depends on."""
    found: list[int] = key.tolist()
    for send in np.flatnonzero(key == NONE).tolist():
        found[send] = max((found[other] for other in schedule.depends_of(send).tolist()), default=0)
    return np.array(found, np.int64)


def _numbered(schedule: Schedule, key: Ints) -> Schedule:
    """The same sends in order of their keys."""
    order = np.argsort(key, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    count = np.diff(schedule.depends_ptr)[order]
    starts = schedule.depends_ptr[:-1][order]
    entry = np.arange(int(count.sum())) + np.repeat(starts - (np.cumsum(count) - count), count)
    return replace(
        schedule,
        **{name: getattr(schedule, name)[order] for name in _COLUMNS},
        depends_ptr=np.concatenate([[0], np.cumsum(count)]),
        depends=place[schedule.depends[entry]],
    )
