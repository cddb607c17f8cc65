"""A schedule on its fabric as the simulators' kernels take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualcoll.errors import InputError
from dualcoll.kernels.alpha_beta import WayColumns
from dualcoll.kernels.dispatch import DESK, SEND, Desks, Rules, Sends
from dualcoll.kernels.event_queue import Queue, empty_queue, grouped
from dualcoll.kernels.route_stages import levels, stages
from dualcoll.schedules.ir import NONE, Routes, Schedule, previous_on_channel
from dualcoll.schedules.ops import Op
from dualcoll.schedules.order import describe_send, room_makers
from dualcoll.simulation.options import PROTOCOLS, Options, Protocol
from dualcoll.simulation.turns import leaders, links_of_places, turns_of_rows
from dualcoll.topology.arrays import FabricArrays, fabric_arrays
from dualcoll.topology.model import Kind, Topology

__all__ = ["Prepared", "Way", "prepare"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Floats = NDArray[np.float64]

PRECISION = 2.0**-52  # of the longest time that could come out: sums of ticks of this size are exact in doubles


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """How sends travel (docs/simulation.md §3).

    Attributes:
        stage_ptr: int64 (T+1,), stages of each route. place_ptr: int64 (G+1,), places of each stage.
        row: int32 (H,), the row that serves there. cost: float64 (H,), seconds of it per byte of the send.
        latency: float64 (H,), seconds after it.
        first: int64 (T,), the stage with which a send has left its source, counted from the route's first.
        extra: float64 (T,), seconds after the last stage.
        route: int32 (S,). size: float64 (S,), bytes. service_ptr: int64 (S+1,), services of each send, one per place.
        leader: int32 (N,), for each service the one whose turn it has: its own, but for copies that switches make. Empty where
            that is so for all and links serve whom they can.
        turn_ptr, turns: CSR of the leaders on each row, in order, int64 (K+1,), int32; empty where links serve whom they can.
        tick: seconds; durations are whole multiples of it, so that sums have no rounding errors.
    """

    stage_ptr: Ints
    place_ptr: Ints
    row: Shorts
    cost: Floats
    latency: Floats
    first: Ints
    extra: Floats
    route: Shorts
    size: Floats
    service_ptr: Ints
    leader: Shorts
    turn_ptr: Ints
    turns: Shorts
    tick: float

    @property
    def columns(self) -> WayColumns:
        """For the kernels."""
        links = self.stage_ptr, self.place_ptr, self.row, self.cost, self.latency
        order = self.leader, self.turn_ptr, self.turns
        return *links, self.first, self.extra, self.route, self.size, self.service_ptr, *order, self.tick

    def places(self) -> Shorts:
        """The place of each service, int32 (N,)."""
        first = np.append(self.place_ptr[self.stage_ptr], 0)[self.route]
        count = np.diff(self.service_ptr)
        return (np.arange(self.service_ptr[-1]) + np.repeat(first - self.service_ptr[:-1], count)).astype(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Arguments of the kernels.

    Attributes:
        dispatch: what :mod:`dualcoll.kernels.dispatch` says of both kernels' first arguments; the sends are the first.
        way: of all sends.
        delay: float64 (T,), seconds of latency of a whole route.
        rows: int64 (K,), the capacity row behind each row number of the kernels. carried: float64 (K,), bytes.
    """

    dispatch: tuple[Sends, Desks, Queue, Rules, Ints, Shorts, Ints, Shorts]
    way: Way
    delay: Floats
    rows: Ints
    carried: Floats

    @property
    def sends(self) -> Sends:
        """SEND (S,), which the kernels fill in."""
        return self.dispatch[0]


def prepare(schedule: Schedule, options: Options) -> Prepared:
    """Everything that the kernels need.

    Raises:
        InputError: no fabric, a send without a route, links of a route in a circle, or times beyond all doubles.
    """
    if schedule.topology is None:
        raise InputError(
            "the schedule is on no fabric, so nothing says how long a send takes",
            hint="schedules of plans stand on one; lay others on one with dualcoll.schedules.routed.routed in Python",
        )
    _check_routes(schedule)
    fabric = fabric_arrays(schedule.topology)
    stage_ptr, place_ptr, row_of, load, first = _stages(schedule.routes, fabric)
    rows, row = np.unique(row_of.astype(np.int64), return_inverse=True)
    places = place_ptr[stage_ptr]
    size = schedule.send_size.astype(np.float64)
    cost = load / fabric.capacity[rows[row]]
    latency = np.concatenate([fabric.latency, np.zeros(fabric.capacity.size - fabric.links)])[rows[row]]
    delay = _per_route(np.maximum.reduceat(latency, place_ptr[:-1]) if row.size else latency, stage_ptr)
    extra = np.zeros(delay.size)
    if options.protocol is not None:
        price = PROTOCOLS[Protocol(options.protocol)]
        cost = cost / price.payload
        least = np.array([price.nvlink, price.pci, price.network])[_distance(schedule.routes, schedule.topology)]
        extra = np.maximum(0.0, least - delay)
    reduction = np.zeros(schedule.sends)
    if options.reduction_speed is not None:
        reduction = np.where(schedule.op == Op.REDUCE, size / options.reduction_speed, 0.0)
    moved = np.flatnonzero(schedule.src != schedule.dst)
    route = schedule.route[moved]
    bytes_of = _sums(route.astype(np.int64), size[moved], len(schedule.routes))
    with np.errstate(over="ignore"):
        fixed = _per_route(latency, places) + extra + options.overhead
        longest = float(_per_route(cost, places) @ bytes_of + fixed[route].sum() + reduction.sum())
    if not np.isfinite(longest):
        raise InputError("the sends take more seconds than a double can hold", hint="capacities are in bytes/s")
    tick = 2.0 ** np.ceil(np.log2(longest)) * PRECISION if longest > 0 else 1.0
    services = np.zeros(schedule.sends + 1, np.int64)
    services[moved + 1] = np.diff(places)[route]
    service_ptr = np.cumsum(services)
    leader, turn_ptr, turns = np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32)
    carried = _sums(row, load * np.repeat(bytes_of, np.diff(places)), rows.size)
    if options.in_order or np.any(schedule.multicast != NONE):
        place = _entries(places[:-1][route], np.diff(places)[route])
        leader = leaders(schedule, service_ptr, row[place], links_of_places(place_ptr, row_of, fabric.links)[place])
        again = leader != np.arange(leader.size)
        carried -= _sums(row[place[again]], np.repeat(size, services[1:])[again], rows.size)
        if options.in_order:
            turn_ptr, turns = turns_of_rows(leader, row[place], rows.size)
    way = Way(
        stage_ptr,
        place_ptr,
        row.astype(np.int32),
        cost,
        _rounded(latency, tick),
        first,
        _rounded(extra, tick),
        schedule.route,
        size,
        service_ptr,
        leader.astype(np.int32),
        turn_ptr,
        turns,
        tick,
    )
    dispatch = _dispatch(schedule, options, _rounded(reduction, tick), float(_rounded(options.overhead, tick)))
    return Prepared(dispatch, way, delay + extra, rows, carried)


def _entries(first: Ints, count: Ints) -> Ints:
    """first, first + 1, … for each, count of them, int64."""
    entries: Ints = np.arange(int(count.sum())) + np.repeat(first - (np.cumsum(count) - count), count)
    return entries


def _check_routes(schedule: Schedule) -> None:
    empty = np.append(np.diff(schedule.routes.ptr) == 0, True)  # the last: no route
    wrong = np.flatnonzero((schedule.src != schedule.dst) & empty[schedule.route])
    if wrong.size:
        raise InputError("it has no route (§9)", where=describe_send(schedule, int(wrong[0])))


def _stages(routes: Routes, fabric: FabricArrays) -> tuple[Ints, Ints, Shorts, Floats, Ints]:
    share = np.ones(routes.links.size) if routes.share is None else routes.share
    level, circle = levels(routes.ptr, routes.links, share, fabric.tail, fabric.head)
    if circle >= 0:
        raise InputError("its links form a circle (§9)", where=f"route {circle}")
    shared = np.repeat(np.arange(fabric.shared_ptr.size - 1, dtype=np.int32), np.diff(fabric.shared_ptr))
    over_ptr, over = grouped(fabric.shared_link.astype(np.int32), shared, fabric.links)
    return stages(routes.ptr, routes.links, share, level, over_ptr, over, fabric.links)


def _distance(routes: Routes, topology: Topology) -> Ints:
    """What lies on each route, int64 (T,): 0 for nothing but links of one box, 1 for PCIe there, 2 for the network."""
    boxes: dict[str | None, int] = {None: -1}
    box = np.array([boxes.setdefault(node.box, len(boxes)) for node in topology.nodes])
    pci = np.array([node.kind in (Kind.PCI, Kind.CPU, Kind.NIC) for node in topology.nodes])
    distance = np.zeros(len(routes), np.int64)
    for number in range(len(routes)):
        links = [topology.links[link] for link in routes.of(number)]
        nodes = [end for link in links for end in (link.tail, link.head)]
        if nodes and (box[nodes].min() < 0 or box[nodes].min() != box[nodes].max()):
            distance[number] = 2
        elif pci[nodes].any():
            distance[number] = 1
    return distance


def _dispatch(
    schedule: Schedule, options: Options, reduction: Floats, overhead: float
) -> tuple[Sends, Desks, Queue, Rules, Ints, Shorts, Ints, Shorts]:
    row = np.repeat(np.arange(schedule.sends, dtype=np.int32), np.diff(schedule.depends_ptr))
    delivered, started = (schedule.depends, row), (row[:0], row[:0])
    if options.depth is not None:
        before = previous_on_channel(schedule, options.depth)
        takes = np.flatnonzero(before != NONE).astype(np.int32)
        delivered = np.append(delivered[0], before[takes]), np.append(row, takes)
        opens = room_makers(schedule, options.depth)
        started = row[opens != NONE], opens[opens != NONE]
    sends: Sends = np.zeros(schedule.sends, SEND)
    sends["src"], sends["dst"], sends["reduction"] = schedule.src, schedule.dst, reduction
    previous = previous_on_channel(schedule)
    behind = np.flatnonzero(previous != NONE)
    sends["previous"], sends["following"], sends["behind"] = previous, NONE, NONE
    sends["following"][previous[behind]] = behind
    sends["ahead"] = sends["next"] = NONE
    if options.in_order:
        reduced = np.flatnonzero(reduction > 0)
        reduced = reduced[np.argsort(schedule.dst[reduced], kind="stable")]
        same = np.flatnonzero(schedule.dst[reduced[:-1]] == schedule.dst[reduced[1:]])
        sends["ahead"][reduced[same + 1]], sends["next"][reduced[same]] = reduced[same], reduced[same + 1]
    sends["waiting"] = previous != NONE
    for _, waits in (delivered, started):
        sends["waiting"] += np.bincount(waits, minlength=schedule.sends).astype(np.int32)
    for moment in ("start", "left", "arrived", "reduced", "end"):
        sends[moment] = np.nan
    desks: Desks = np.zeros(2 * schedule.ranks, DESK)
    desks["room"] = 2**31 - 1 if options.concurrency is None else min(options.concurrency, 2**31 - 1)
    desks["first"] = NONE
    return (
        sends,
        desks,
        empty_queue(schedule.sends),
        (overhead, options.concurrency is not None or started[0].size > 0),
        *grouped(*delivered, schedule.sends),
        *grouped(*started, schedule.sends),
    )


def _per_route(values: Floats, ptr: Ints) -> Floats:
    """Sums of values over the rows of a CSR, some of which may be empty."""
    return _sums(np.repeat(np.arange(ptr.size - 1), np.diff(ptr)), values, ptr.size - 1)


def _sums(key: Ints, values: Floats, keys: int) -> Floats:
    return np.bincount(key, values, keys).astype(np.float64)


def _rounded(seconds: ArrayLike, tick: float) -> Any:
    return np.rint(np.asarray(seconds) / tick) * tick
