"""Why a run took the time that it took: the chain of events that ends with the last delivery (docs/simulation.md §6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from dualcoll.kernels.event_queue import grouped
from dualcoll.schedules.ir import NONE, Schedule, previous_on_channel
from dualcoll.schedules.order import room_makers
from dualcoll.simulation.service_order import ServiceOrder
from dualcoll.simulation.trace import Trace

__all__ = ["Activity", "Step", "Wait", "critical_path"]


class Activity(StrEnum):
    """What a send spends time on."""

    OVERHEAD = "overhead"
    LINK = "link"  # bytes pass, at the speed that the row gives
    LATENCY = "latency"
    REDUCTION = "reduction"
    NONE = "nothing"  # a send that takes no time


class Wait(StrEnum):
    """What a step could not begin before."""

    BEGINNING = "beginning"  # nothing
    ITSELF = "itself"  # the send's step before
    DEPENDENCY = "dependency"  # delivery of a send that it depends on
    CHANNEL = "channel"  # the send before it on its channel had not left
    ROOM = "room"  # the channel was full
    PLACE = "place"  # its source or destination had all the sends under way that it may have
    LINK = "link"  # the row served another send
    TURN = "turn"  # another send had to come first, to this row or one that serves with it
    COPY = "copy"  # the row was serving the send of which switches make it
    REDUCER = "reducer"  # its destination reduced another send
    ORDER = "order"  # delivery of the send before it on its channel


@dataclass(frozen=True, slots=True)
class Step:
    """One thing on the critical path, which takes from ``begin`` to ``end``, seconds.

    Attributes:
        send: whose it is. activity: what it is. row: the capacity row, for a LINK step, or -1.
        wait: why it did not begin earlier. behind: the send that it waited for, or -1.
    """

    begin: float
    end: float
    send: int
    activity: Activity
    row: int = NONE
    wait: Wait = Wait.ITSELF
    behind: int = NONE

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return self.end - self.begin


def critical_path(trace: Trace, schedule: Schedule) -> tuple[Step, ...]:
    """Steps from the beginning to the last delivery, each beginning when the one before ends; none without sends.

    Of several events at one moment any may be to blame; dependencies come first.
    """
    if schedule.sends == 0:
        return ()
    walk = _Walk(trace, schedule)
    last = (
        schedule.sends - 1 - int(np.argmax(trace.end[::-1]))
    )  # of several, the one that is more likely to follow from others
    point: _Point | None = (walk.end, (last,))
    while point is not None:
        explain, of = point
        point = explain(*of)
    return tuple(reversed(walk.steps))


_Point = tuple[Callable[..., "_Point | None"], tuple[int, ...]]  # what is to be explained next


class _Walk:
    """Backwards in time. Each method explains how a send came to some point, and returns the point that this leads to."""

    def __init__(self, trace: Trace, schedule: Schedule) -> None:
        self.trace = trace
        self.schedule = schedule
        self.steps: list[Step] = []  # the last first
        self.previous = previous_on_channel(schedule)
        self.by_reduced = np.argsort(trace.reduced, kind="stable")
        self.depth = trace.options.depth
        if self.depth is not None:
            opens = room_makers(schedule, self.depth)
            row = np.repeat(np.arange(schedule.sends, dtype=np.int32), np.diff(schedule.depends_ptr))
            self.before = previous_on_channel(schedule, self.depth)
            self.makers = grouped(opens[opens != NONE], row[opens != NONE], schedule.sends)
        if trace.services is not None:
            self.served = ServiceOrder(trace.services, trace.options.in_order)

    def end(self, send: int) -> _Point:
        """Delivery."""
        if self.trace.reduced[send] < self.trace.end[send]:
            return self._after(send, self.trace.end[send], Wait.ORDER, int(self.previous[send]), self.end)
        return self.reduced, (send,)

    def reduced(self, send: int) -> _Point:
        """The end of its reduction."""
        trace = self.trace
        begin, done, other = float(trace.arrived[send]), float(trace.reduced[send]), NONE
        if done == begin:
            return self.arrived, (send,)
        at = int(np.searchsorted(trace.reduced[self.by_reduced], done)) - 1
        while at >= 0 and trace.reduced[self.by_reduced[at]] > begin:
            candidate = int(self.by_reduced[at])
            same = self.schedule.dst[candidate] == self.schedule.dst[send]
            if same and trace.reduced[candidate] > trace.arrived[candidate]:
                begin, other = float(trace.reduced[candidate]), candidate
                break
            at -= 1
        self._add(begin, done, send, Activity.REDUCTION)
        if other == NONE:
            return self.arrived, (send,)
        return self._after(send, begin, Wait.REDUCER, other, self.reduced)

    def arrived(self, send: int) -> _Point:
        """The arrival of its last byte."""
        trace = self.trace
        if self.schedule.src[send] == self.schedule.dst[send]:
            return self.start, (send,)
        if trace.services is None:
            self._add(trace.left[send], trace.arrived[send], send, Activity.LATENCY)
            return self.left, (send,)
        _, tails = self.served.passage(send)
        self._add(tails[-1], trace.arrived[send], send, Activity.LATENCY)
        return self.tail, (send, len(tails) - 1)

    def left(self, send: int) -> _Point:
        """Its last byte's leaving the source."""
        trace = self.trace
        if trace.held_by is not None:
            moved = min(float(trace.left[send]), float(trace.start[send]) + trace.options.overhead)
            self._add(moved, trace.left[send], send, Activity.LINK, int(trace.held_by[send]))
            self._add(trace.start[send], moved, send, Activity.OVERHEAD)
            return self.start, (send,)
        stages, tails = self.served.passage(send)
        for k, stage in enumerate(stages):
            out = self.served.outs(stage, tails[k - 1] if k else 0.0)
            if out.max() == trace.left[send]:
                return self.out, (send, k, int(np.argmax(out)))
        raise AssertionError("what has left has passed a stage")

    def tail(self, send: int, k: int) -> _Point:
        """The arrival of its last byte after stage k."""
        stages, tails = self.served.passage(send)
        out = self.served.outs(stages[k], tails[k - 1] if k else 0.0)
        late = int(np.argmax(out + self.served.latency(stages[k])))
        self._add(out[late], tails[k], send, Activity.LATENCY)
        return self.out, (send, k, late)

    def out(self, send: int, k: int, place: int) -> _Point:
        """Its last byte's leaving a place of stage k: served there, or no sooner than it came."""
        stages, tails = self.served.passage(send)
        service = int(stages[k][place])
        if k and self.served.end[service] < tails[k - 1]:
            return self.tail, (send, k - 1)
        return self._served(service)

    def head(self, service: int) -> _Point:
        """The beginning of a service: the row was busy before, or the first byte came then."""
        served, begin = self.served, float(self.served.begin[service])
        if begin <= self._came(service):
            return self._coming(service, begin)
        other = served.predecessor(service)
        if other != NONE:
            self._after(served.send(service), begin, Wait.LINK, served.send(other), self.end)
            return self._served(other)
        other = self._turn(service) if self.trace.options.in_order else service
        if other != service:
            self._after(served.send(service), begin, Wait.TURN, served.send(other), self.end)
        return self._coming(other, begin)

    def start(self, send: int) -> _Point | None:
        """Being taken up."""
        trace, schedule, now = self.trace, self.schedule, self.trace.start[send]
        if trace.place_from[send] != NONE:
            return self._after(send, now, Wait.PLACE, int(trace.place_from[send]), self.end)
        for other in schedule.depends_of(send).tolist():
            if trace.end[other] == now:
                return self._after(send, now, Wait.DEPENDENCY, other, self.end)
        previous = int(self.previous[send])
        if previous != NONE and trace.left[previous] == now:
            return self._after(send, now, Wait.CHANNEL, previous, self.left)
        if self.depth is not None:
            before = int(self.before[send])
            if before != NONE and trace.end[before] == now:
                return self._after(send, now, Wait.ROOM, before, self.end)
            ptr, makers = self.makers
            for maker in makers[ptr[send] : ptr[send + 1]].tolist():
                if trace.start[maker] == now:
                    return self._after(send, now, Wait.ROOM, maker, self.start)
        self._after(send, now, Wait.BEGINNING, NONE, self.end)
        return None

    def _came(self, service: int) -> float:
        """When the first byte came to the stage of a service."""
        served, k, send = self.served, self.served.stage(service), self.served.send(service)
        if k == 0:
            return float(self.trace.start[send]) + self.trace.options.overhead
        stages, tails = served.passage(send)
        if not self.trace.options.cut_through:
            return tails[k - 1]
        return float(np.max(served.begin[stages[k - 1]] + served.latency(stages[k - 1])))

    def _coming(self, service: int, now: float) -> _Point:
        """The first byte's coming to the stage of a service, at that moment."""
        served, k, send = self.served, self.served.stage(service), self.served.send(service)
        if k == 0:
            self._add(self.trace.start[send], now, send, Activity.OVERHEAD)
            return self.start, (send,)
        if not self.trace.options.cut_through:
            return self.tail, (send, k - 1)
        before = served.passage(send)[0][k - 1]
        first = int(before[np.argmax(served.begin[before] + served.latency(before))])
        self._add(served.begin[first], now, send, Activity.LATENCY)
        return self.head, (first,)

    def _turn(self, service: int) -> int:
        """In order: whose coming let a service begin: its own, or another's that comes first to a row which serves with it."""
        served, begin = self.served, float(self.served.begin[service])
        waiting = [service]
        for one in waiting:  # grows while it is walked
            for mate in served.passage(served.send(one))[0][served.stage(one)].tolist():
                other = served.before(mate)
                if other != NONE and other not in waiting and served.begin[other] >= begin:
                    waiting.append(other)
        return max(waiting, key=self._came)

    def _served(self, service: int) -> _Point:
        served = self.served
        server = served.server(service)
        send = served.send(service)
        if served.begin[server] < served.begin[service] < served.end[service]:
            self._after(send, float(served.end[service]), Wait.COPY, served.send(server), self.end)
            return self._served(server)
        self._add(served.begin[service], served.end[service], send, Activity.LINK, served.row(service))
        return self.head, (service,)

    def _add(self, begin: float, end: float, send: int, activity: Activity, row: int = NONE) -> None:
        if end > begin:
            self.steps.append(Step(float(begin), float(end), send, activity, row))

    def _after(self, send: int, now: float, wait: Wait, behind: int, explain: Callable[..., Any]) -> _Point:
        """The send's first step so far began at that moment and no earlier because of another send, explained next."""
        if not self.steps or self.steps[-1].send != send or self.steps[-1].begin > now:
            self.steps.append(Step(float(now), float(now), send, Activity.NONE))
        self.steps[-1] = replace(self.steps[-1], wait=wait, behind=behind)
        return explain, (behind,)
