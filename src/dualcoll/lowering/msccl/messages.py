"""The messages of a schedule: what is read and written of each slot in turn, which sends travel as one message, and which
messages are passed on in the step that receives them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from dualcoll.lowering.msccl.layout import Layout
from dualcoll.schedules.ir import NONE, Schedule, previous_on_channel
from dualcoll.schedules.ops import Op
from dualcoll.schedules.order import running_order
from dualcoll.simulation import simulate

__all__ = ["Connection", "Grouping", "Messages", "Run", "fused_messages", "messages_of", "partners_of"]

Connection = tuple[int, int, int]  # source, destination, channel


class Grouping(Enum):
    """Which sends may be one message."""

    NONE = 0
    ALIKE = 1  # those that follow the same sends and are followed by the same: nothing waits that did not wait before
    ROUNDS = 2  # also those of one round


@dataclass(slots=True)
class Run:
    """Accesses of a slot: writes that need no order among them, and the reads of what they leave.

    Attributes:
        writes: one copy, reductions, or nothing: what the slot held at first. reads: the sends that read it then.
        reduces: whether the writes are reductions.
    """

    writes: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    reduces: bool = False


@dataclass(slots=True)
class Messages:
    """Sends that travel together, in an order in which they can run.

    Attributes:
        schedule: their schedule.
        members: sends of each message, in order. of: the message of each send.
        runs: of each slot (rank, chunk), in order.
        read_run, write_run: for each send the number of the run that it reads and writes.
        on: messages of each connection, in order; local ones are on none.
        src, dst, chunk, into, reduces, channel: of each send; the channel is the program's.
    """

    schedule: Schedule
    members: list[list[int]]
    of: list[int]
    runs: dict[tuple[int, int], list[Run]]
    read_run: list[int]
    write_run: list[int]
    on: dict[Connection, list[int]]
    src: list[int]
    dst: list[int]
    chunk: list[int]
    into: list[int]
    reduces: list[bool]
    channel: list[int]

    def is_local(self, message: int) -> bool:
        """Whether it stays at its rank."""
        send = self.members[message][0]
        return self.src[send] == self.dst[send]

    def connection(self, message: int) -> Connection:
        """What it travels on."""
        send = self.members[message][0]
        return self.src[send], self.dst[send], self.channel[send]


def messages_of(schedule: Schedule, layout: Layout, channel: list[int], limit: int, grouping: Grouping) -> Messages:
    """The messages: sends that follow each other on a connection, and their chunks in memory at both ends, may be one.

    Args:
        schedule: the sends. layout: their places. channel: of each send. limit: most program chunks of a message.
        grouping: which of them are.
    """
    found = Messages(
        schedule=schedule,
        members=[],
        of=[NONE] * schedule.sends,
        runs={},
        read_run=[0] * schedule.sends,
        write_run=[0] * schedule.sends,
        on={},
        src=schedule.src.tolist(),
        dst=schedule.dst.tolist(),
        chunk=schedule.chunk.tolist(),
        into=schedule.into.tolist(),
        reduces=(schedule.op == Op.REDUCE).tolist(),
        channel=channel,
    )
    order = _by_delivery(schedule)
    for send in order:
        _record(found, send)
    together = _together(schedule, grouping)
    count = layout.count.tolist()
    filled: list[int] = []
    for send in order:
        last = NONE
        if found.src[send] != found.dst[send]:
            queue = found.on.setdefault((found.src[send], found.dst[send], channel[send]), [])
            last = queue[-1] if queue else NONE
        if last != NONE and filled[last] + count[found.chunk[send]] <= limit:
            before = found.members[last][-1]
            if together(before, send) and _follows(found, layout, before, send):
                found.members[last].append(send)
                found.of[send] = last
                filled[last] += count[found.chunk[send]]
                continue
        found.of[send] = len(found.members)
        if found.src[send] != found.dst[send]:
            queue.append(len(found.members))
        found.members.append([send])
        filled.append(count[found.chunk[send]])
    return found


def partners_of(messages: Messages) -> dict[tuple[int, int, int], int]:
    """Which connection out of a rank is served by the thread block of which connection into it.

    The two carry on what comes in for the most part. Of several candidates the one that carries on most is taken, and among
    equals the one whose messages come last, which is the one that others are merged before.

    Returns:
        For (rank, channel, destination) the source.
    """
    votes: Counter[tuple[int, int, int, int]] = Counter()
    late: Counter[tuple[int, int, int, int]] = Counter()
    for (rank, _), runs in messages.runs.items():
        for run in runs:
            for read in run.reads:
                for write in run.writes:
                    if _passes_on(messages, write, read):
                        pair = rank, messages.channel[read], messages.src[write], messages.dst[read]
                        votes[pair] += 1
                        late[pair] += messages.of[write]
    found: dict[tuple[int, int, int], int] = {}
    taken: set[tuple[int, int, int]] = set()
    for rank, channel, source, target in sorted(
        votes, key=lambda pair: (-votes[pair], -late[pair] / votes[pair], pair[2] == pair[3], pair)
    ):
        out, into = (rank, channel, target), (rank, channel, source)
        carried = votes[rank, channel, source, target]
        most = max(
            sum(len(messages.members[m]) for m in messages.on[connection])
            for connection in ((rank, target, channel), (source, rank, channel))
        )
        if 2 * carried >= most and out not in found and into not in taken:
            found[out] = source
            taken.add(into)
    return found


def fused_messages(messages: Messages, partners: dict[tuple[int, int, int], int]) -> dict[int, int]:
    """Messages that are sent in the step in which another is received: for each of those the one that is sent."""
    found: dict[int, int] = {}
    used: set[int] = set()  # ids of runs of which one write is passed on
    for (rank, channel, target), source in partners.items():
        place = {message: i for i, message in enumerate(messages.on[source, rank, channel])}
        last = -1
        for message in messages.on[rank, target, channel]:
            runs = [_run_read(messages, send) for send in messages.members[message]]
            heard = [
                next(
                    (
                        write
                        for write in run.writes
                        if messages.src[write] == source and _passes_on(messages, write, read)
                    ),
                    NONE,
                )
                for run, read in zip(runs, messages.members[message], strict=True)
            ]
            first = messages.of[heard[0]] if heard[0] != NONE else NONE
            if first == NONE or heard != messages.members[first] or place[first] <= last:
                continue
            if any(id(run) in used for run in runs):
                continue
            used.update(map(id, runs))
            found[first] = message
            last = place[first]
    return found


def _by_delivery(schedule: Schedule) -> list[int]:
    """Sends in an order in which they can run: that of their delivery in simulation, or in hops where there are no routes."""
    order: list[int] = running_order(schedule).tolist()
    moved = schedule.src != schedule.dst
    if schedule.topology is not None and np.all(schedule.route[moved] != NONE):
        end = simulate(schedule).end.tolist()
    else:
        end = [0] * schedule.sends
        ptr, depends = schedule.depends_ptr.tolist(), schedule.depends.tolist()
        previous, hops = previous_on_channel(schedule).tolist(), moved.tolist()
        for send in order:
            before = [*depends[ptr[send] : ptr[send + 1]], *([previous[send]] if previous[send] != NONE else [])]
            end[send] = max((end[other] for other in before), default=0) + hops[send]
    return sorted(order, key=end.__getitem__)


def _together(schedule: Schedule, grouping: Grouping) -> Callable[[int, int], bool]:
    """Whether two sends on one connection may travel together."""
    ptr, depends = schedule.depends_ptr.tolist(), schedule.depends.tolist()
    rounds = schedule.round.tolist()
    before = [sorted(depends[ptr[send] : ptr[send + 1]]) for send in range(schedule.sends)]
    after: list[list[int]] = [[] for _ in before]
    for send, row in enumerate(before):
        for other in row:
            after[other].append(send)

    def alike(first: int, second: int) -> bool:
        return before[first] == before[second] and after[first] == after[second]

    def of_one_round(first: int, second: int) -> bool:
        return alike(first, second) or rounds[first] == rounds[second] != NONE

    return {Grouping.NONE: lambda *_: False, Grouping.ALIKE: alike, Grouping.ROUNDS: of_one_round}[grouping]


def _passes_on(messages: Messages, write: int, read: int) -> bool:
    """Whether a send that is read by another comes from elsewhere, as the other goes elsewhere, on the same channel."""
    return (
        messages.src[write] != messages.dst[write]
        and messages.src[read] != messages.dst[read]
        and messages.channel[write] == messages.channel[read]
    )


def _run_read(messages: Messages, send: int) -> Run:
    return messages.runs[messages.src[send], messages.chunk[send]][messages.read_run[send]]


def _record(messages: Messages, send: int) -> None:
    read = messages.runs.setdefault((messages.src[send], messages.chunk[send]), [Run()])
    read[-1].reads.append(send)
    messages.read_run[send] = len(read) - 1
    written = messages.runs.setdefault((messages.dst[send], messages.into[send]), [Run()])
    run = written[-1]
    if messages.reduces[send] and run.reduces and not run.reads:
        run.writes.append(send)
    else:
        written.append(Run([send], reduces=messages.reduces[send]))
    messages.write_run[send] = len(written) - 1


def _follows(messages: Messages, layout: Layout, before: int, send: int) -> bool:
    """Whether the chunks of two sends follow each other in memory at both ends, and do the same."""
    if messages.reduces[send] != messages.reduces[before]:
        return False
    return all(
        (run[send] == 0) == (run[before] == 0)
        and _next(layout, rank[send], column[before], column[send], start=read and run[send] == 0)
        for read, rank, column, run in (
            (True, messages.src, messages.chunk, messages.read_run),
            (False, messages.dst, messages.into, messages.write_run),
        )
    )


def _next(layout: Layout, rank: int, earlier: int, chunk: int, *, start: bool) -> bool:
    """Whether one slot of a rank follows another in memory, at the start or where they are written."""
    if not start:
        kinds = {layout.is_scratch(rank, earlier), layout.is_scratch(rank, chunk)}
        if kinds != {False}:
            return kinds == {True} and chunk == earlier + 1
    column = layout.before if start else layout.after
    return int(column[chunk]) == int(column[earlier]) + int(layout.count[earlier])
