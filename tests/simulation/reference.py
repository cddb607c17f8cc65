"""Both simulators once more, from docs/simulation.md: slow, in fractions, by looking at every send again after every event."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby

from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.simulation import Coupling, Mode, Options
from dualcoll.topology.model import Topology

F = Fraction
LAND, READY, MOVE = range(3)


@dataclass
class Send:
    """One send, and when things happened to it."""

    number: int
    src: int
    dst: int
    channel: int
    size: F
    reduces: bool
    route: list[tuple[int, F]]  # links and parts
    multicast: int
    depends: list[Send] = field(default_factory=list)
    before: list[Send] = field(default_factory=list)  # on its channel
    ready: F | None = None
    start: F | None = None
    left: F | None = None
    arrived: F | None = None
    reduced: F | None = None
    end: F | None = None

    @property
    def local(self) -> bool:
        return self.src == self.dst


class Run:
    """What the two models have in common (docs/simulation.md §2)."""

    def __init__(self, schedule: Schedule, options: Options) -> None:
        assert schedule.topology is not None
        self.topology: Topology = schedule.topology
        self.options = options
        self.sends = [
            Send(
                i,
                int(schedule.src[i]),
                int(schedule.dst[i]),
                int(schedule.channel[i]),
                F(int(schedule.send_size[i])),
                schedule.op[i] == Op.REDUCE,
                []
                if schedule.src[i] == schedule.dst[i]
                else [
                    (int(link), F(float(part)))
                    for link, part in zip(
                        schedule.routes.of(int(schedule.route[i])),
                        schedule.routes.shares(int(schedule.route[i])),
                        strict=True,
                    )
                ],
                int(schedule.multicast[i]),
            )
            for i in range(schedule.sends)
        ]
        for send in self.sends:
            send.depends = [self.sends[j] for j in schedule.depends_of(send.number)]
            key = send.src, send.dst, send.channel
            earlier = self.sends[: send.number] if not send.local else []
            send.before = [other for other in earlier if (other.src, other.dst, other.channel) == key]
        self.events: dict[int, tuple[F, int, int]] = {}
        self.doors: dict[tuple[str, int], list[Send]] = {}  # who is through, of each rank out and in
        self.lines: dict[tuple[str, int], list[Send]] = {}
        self.reducer: dict[int, F] = {}
        self.taken_up: set[int] = set()  # reductions

    def conditions(self, send: Send) -> list[F | None]:
        """The moments that a send waits for, None if not yet known."""
        moments = [other.end for other in send.depends]
        if send.before:
            moments.append(send.before[-1].left)
        depth = self.options.depth
        if depth is not None and len(send.before) >= depth:
            opens = send.before[-depth]
            moments.append(opens.end)
            for other in self.sends:
                passes = opens in other.depends and other.src == opens.dst and other.channel == opens.channel
                if passes and not other.local:
                    moments.append(other.start)
        return moments

    def look(self) -> None:
        """Find sends that have become ready."""
        for send in self.sends:
            moments = self.conditions(send) if send.ready is None else [None]
            if None not in moments:
                send.ready = max((moment for moment in moments if moment is not None), default=F(0))
                if send.local:
                    send.start = send.ready
                self.events[send.number] = (send.ready, LAND if send.local else READY, send.number)

    def take_up(self, send: Send, now: F) -> None:
        """Through the door out, then through the door in, then start."""
        if self.enter("out", send.src, send) and self.enter("in", send.dst, send):
            self.begin(send, now)

    def enter(self, side: str, rank: int, send: Send) -> bool:
        inside = self.doors.setdefault((side, rank), [])
        if self.options.concurrency is not None and len(inside) == self.options.concurrency:
            self.lines.setdefault((side, rank), []).append(send)
            return False
        inside.append(send)
        return True

    def begin(self, send: Send, now: F) -> None:
        send.start = now
        self.events[send.number] = (now + F(self.options.overhead), MOVE, send.number)

    def leave(self, side: str, rank: int, send: Send, now: F) -> None:
        self.doors[side, rank].remove(send)
        line = self.lines.get((side, rank), [])
        if line:
            first = line.pop(0)
            self.doors[side, rank].append(first)
            if side == "in" or self.enter("in", first.dst, first):
                self.begin(first, now)

    def land(self, send: Send, now: F) -> None:
        if send.arrived is None:
            send.arrived = now
            if self.takes_to_reduce(send):
                line = [other for other in self.sends if self.takes_to_reduce(other) and other.dst == send.dst]
                for each in line if self.options.in_order else [send]:
                    if each.arrived is None:
                        break
                    if each.number not in self.taken_up:
                        self.taken_up.add(each.number)
                        begin = max(now, self.reducer.get(each.dst, F(0)))
                        self.reducer[each.dst] = begin + each.size / F(self.options.reduction_speed or 1)
                        self.events[each.number] = (self.reducer[each.dst], LAND, each.number)
                return
        send.reduced = now
        channel = [other for other in self.sends if send in other.before]
        for each in [send, *channel]:
            if each.reduced is None or any(other.end is None for other in each.before):
                break
            each.end = now
            if not each.local:
                self.leave("out", each.src, each, now)
                self.leave("in", each.dst, each, now)

    def takes_to_reduce(self, send: Send) -> bool:
        return send.reduces and self.options.reduction_speed is not None and send.size > 0

    def next(self) -> tuple[F, int, Send] | None:
        if not self.events:
            return None
        time, kind, number = min(self.events.values())
        del self.events[number]
        return time, kind, self.sends[number]

    def levels(self, send: Send) -> list[list[tuple[int, F]]]:
        """Links by the most links that lead up to them; in order where all bytes go over all of them."""
        if all(part == 1 for _, part in send.route):
            return [[hop] for hop in send.route]
        links = self.topology.links

        def level(link: int) -> int:
            return max((1 + level(e) for e, _ in send.route if links[e].head == links[link].tail), default=0)

        ordered = sorted(send.route, key=lambda hop: level(hop[0]))
        return [list(hops) for _, hops in groupby(ordered, key=lambda hop: level(hop[0]))]

    def stages(self, send: Send) -> tuple[list[list[tuple[object, F, F]]], int]:
        """Of each stage the servers, the seconds and the latency; and the number of stages of the first level."""
        stages: list[list[tuple[object, F, F]]] = []
        first = 0
        for hops in self.levels(send):
            rows: dict[int, F] = {}
            for link, part in hops:
                for i, row in enumerate(self.topology.shared):
                    if link in row.links:
                        rows[i] = rows.get(i, F(0)) + part
            if rows:
                stages.append(
                    [
                        (("shared", i), part * send.size / F(self.topology.shared[i].capacity), F(0))
                        for i, part in rows.items()
                    ]
                )
            stages.append(
                [
                    (
                        link,
                        part * send.size / F(self.topology.links[link].capacity),
                        F(self.topology.links[link].latency),
                    )
                    for link, part in hops
                ]
            )
            first = first or len(stages)
        return stages, first


def reference(schedule: Schedule, options: Options) -> list[Send]:
    """All sends with their times."""
    run = Run(schedule, options)
    if options.mode is Mode.FLUID:
        _fluid(run)
    else:
        _alpha_beta(run)
    return run.sends


def _alpha_beta(run: Run) -> None:
    free: dict[object, F] = {}
    at: dict[int, int] = {}
    tail: dict[int, F] = {}
    services = {send.number: _services(run, send) for send in run.sends if not send.local}
    order: dict[object, list[object]] = {}
    for each in services.values():
        for server, name in ((server, name) for stage in each for server, name in stage):
            if name not in order.setdefault(server, []):
                order[server].append(name)
    served: dict[object, tuple[F, F]] = {}
    waiting: list[Send] = []
    run.look()
    while (event := run.next()) is not None:
        now, kind, send = event
        if kind == LAND:
            run.land(send, now)
        elif kind == READY:
            run.take_up(send, now)
        else:
            stages, first = run.stages(send)
            k = at.get(send.number, 0)
            mine = services[send.number][k]
            if run.options.in_order and any(
                name not in served and any(other not in served for other in order[server][: order[server].index(name)])
                for server, name in mine
            ):
                waiting.append(send)
                continue
            at[send.number] = k + 1
            heads, outs, tails = [], [], []
            for (server, seconds, latency), (_, name) in zip(stages[k], mine, strict=True):
                if name not in served:
                    served[name] = max(now, free.get(server, F(0))), max(now, free.get(server, F(0))) + seconds
                    free[server] = served[name][1]
                begin, end = (max(now, moment) for moment in served[name])
                out = max(end, tail.get(send.number, F(0)))
                heads.append(begin + latency)
                outs.append(out)
                tails.append(out + latency)
            tail[send.number] = max(tails)
            if k + 1 == first:
                send.left = max(outs)
            if k + 1 == len(stages):
                run.events[send.number] = (max(tails), LAND, send.number)
            else:
                head = max(heads) if run.options.cut_through else max(tails)
                run.events[send.number] = (head, MOVE, send.number)
            run.events |= {other.number: (now, MOVE, other.number) for other in waiting}
            waiting = []
        run.look()


def _services(run: Run, send: Send) -> list[list[tuple[object, object]]]:
    """Of each stage the servers, and a name for what each does there: the same for copies over one link, made by switches."""
    stages, _ = run.stages(send)
    of = ("send", send.number) if send.multicast < 0 else ("multicast", send.multicast)
    named: list[list[tuple[object, object]]] = []
    for k, stage in enumerate(stages):
        links = [server if isinstance(server, int) else stages[k + 1][0][0] for server, _, _ in stage]
        at = [k] * len(links) if send.multicast < 0 else links
        named.append([(server, (*of, server, place)) for (server, _, _), place in zip(stage, at, strict=True)])
    return named


def _fluid(run: Run) -> None:
    moving: dict[int, F] = {}  # bytes to go
    now = F(0)
    run.look()
    while True:
        while run.events and min(run.events.values())[0] == now:
            event = run.next()
            assert event is not None
            _, kind, send = event
            if kind == LAND:
                run.land(send, now)
            elif kind == READY:
                run.take_up(send, now)
            elif send.size == 0:
                _away(run, send, now)
            else:
                moving[send.number] = send.size
            run.look()
        rate = _rates(run, [run.sends[i] for i in moving])
        times = [event[0] for event in run.events.values()]
        times += [now + left / rate[i] for i, left in moving.items()]
        if not times:
            return
        span = min(times) - now
        now += span
        moving = {i: left - rate[i] * span for i, left in moving.items()}
        for i in [i for i, left in moving.items() if left == 0]:
            del moving[i]
            _away(run, run.sends[i], now)
        run.look()


def _away(run: Run, send: Send, now: F) -> None:
    latency = sum((max(place[2] for place in stage) for stage in run.stages(send)[0]), F(0))
    send.left = now
    run.events[send.number] = (now + latency, LAND, send.number)


def _rates(run: Run, moving: list[Send]) -> dict[int, F]:
    """All rates grow together; who is on a row that is full stops."""
    tree = run.options.coupling is Coupling.TREE
    load: dict[object, dict[int, F]] = {}  # part of each row that a unit takes per byte/s
    for send in moving:
        for stage in run.stages(send)[0]:
            for row, seconds, _ in stage:
                unit = send.channel if tree else send.number
                on = load.setdefault(row, {})
                on[unit] = on.get(unit, F(0)) + seconds / send.size
    rate: dict[int, F] = {}
    while growing := {row: [unit for unit in on if unit not in rate] for row, on in load.items()}:
        level = {
            row: (1 - sum((load[row][unit] * rate[unit] for unit in load[row] if unit in rate), F(0)))
            / sum((load[row][unit] for unit in units), F(0))
            for row, units in growing.items()
            if units
        }
        if not level:
            break
        least = min(level.values())
        for row, water in level.items():
            if water == least:
                rate.update(dict.fromkeys(growing[row], least))
    return {send.number: rate[send.channel if tree else send.number] for send in moving}
