"""The steps of a program as one list, who waits for whom, and an order in which they can run.

Messages of a connection (source, destination, channel) are matched by order. A step runs once the step before it in its block
has, the steps that its semaphores name have, the message that it takes is there, and the connection that it sends on has room.
Every condition, once true, stays true, so that a deadlock is a cycle of the graph of all conditions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from dualcoll.certificates.findings import Findings
from dualcoll.lowering.msccl.program import Program, Step, StepType
from dualcoll.lowering.msccl.structure import describe_step

__all__ = ["Flow", "flow_of", "running_order"]

NONE = -1
SHOWN = 6  # steps of a cycle named in its message

Connection = tuple[int, int, int]  # source, destination, channel


@dataclass(frozen=True, slots=True)
class Flow:
    """Steps that do something, numbered in file order; nops are dissolved in what the next of them waits for.

    Attributes:
        program: where they come from.
        place: (GPU, thread block, step) of each. steps: the steps.
        block: number of each one's thread block, counted over all GPUs; ``blocks`` of them.
        before: the step before in its block, or ``NONE``.
        waits: the steps that its semaphores name.
        sender: of a receiving step the step that sends its message, else ``NONE``.
        connection: what a sending step sends on, else None. nth: its place among the messages there.
        receivers: the receiving steps of each connection, in order.
    """

    program: Program
    place: list[tuple[int, int, int]]
    steps: list[Step]
    block: list[int]
    blocks: int
    before: list[int]
    waits: list[tuple[int, ...]]
    sender: list[int]
    connection: list[Connection | None]
    nth: list[int]
    receivers: dict[Connection, list[int]]

    def describe(self, n: int) -> str:
        """Text such as ``gpu 0, tb 3, step 7 (rrc, line 41)``."""
        return describe_step(self.program, *self.place[n])

    def makes_room(self, n: int, depth: int | None) -> int:
        """The step that must have taken its message before this one can send on a connection of that depth, or ``NONE``."""
        connection = self.connection[n]
        if connection is None or depth is None or self.nth[n] < depth:
            return NONE
        return self.receivers[connection][self.nth[n] - depth]

    def conditions(self, n: int, depth: int | None) -> Iterator[tuple[int, str]]:
        """The steps that must have run before this one, and why."""
        if self.before[n] != NONE:
            yield self.before[n], "comes after"
        for other in self.waits[n]:
            yield other, "waits for"
        if self.sender[n] != NONE:
            yield self.sender[n], "needs the message of"
        room = self.makes_room(n, depth)
        if room != NONE:
            source, destination, channel = self.connection[n] or (NONE, NONE, NONE)
            yield room, f"needs room on channel {channel} from gpu {source} to gpu {destination}, made by"


def flow_of(program: Program, findings: Findings) -> Flow | None:
    """The program's flow; None, with findings, where messages do not match.

    Args:
        program: one whose structure is runnable.
    """
    steps = [(place, step) for *place, step in program.steps() if step.type is not StepType.NOP]
    number = {tuple(place): n for n, (place, _) in enumerate(steps)}
    senders: dict[Connection, list[int]] = {}
    receivers: dict[Connection, list[int]] = {}
    connection: list[Connection | None] = []
    nth = [NONE] * len(steps)
    for n, ((g, t, _), step) in enumerate(steps):
        block = program.gpus[g].blocks[t]
        connection.append((g, block.send, block.chan) if step.type.sends else None)
        if step.type.sends:
            queue = senders.setdefault((g, block.send, block.chan), [])
            nth[n] = len(queue)
            queue.append(n)
        if step.type.receives:
            receivers.setdefault((block.recv, g, block.chan), []).append(n)
    block_of = {place: i for i, place in enumerate(dict.fromkeys((g, t) for g, t, _, _ in program.steps()))}
    flow = Flow(
        program=program,
        place=[(g, t, s) for (g, t, s), _ in steps],
        steps=[step for _, step in steps],
        block=[block_of[g, t] for (g, t, _), _ in steps],
        blocks=len(block_of),
        before=[_last_before(number, g, t, s) for (g, t, s), _ in steps],
        waits=_waits(program, number),
        sender=[NONE] * len(steps),
        connection=connection,
        nth=nth,
        receivers=receivers,
    )
    return flow if _match(flow, senders, findings) else None


def running_order(flow: Flow, depth: int | None) -> tuple[list[int], str]:
    """All steps in an order in which they can run on connections of that depth, as early in file order as may be; or, where
    there is none, those that can run, and the cycle of the others in words.
    """
    missing = [0] * len(flow.steps)
    opens: list[list[int]] = [[] for _ in flow.steps]
    for n in range(len(flow.steps)):
        for other, _ in flow.conditions(n, depth):
            missing[n] += 1
            opens[other].append(n)
    ready = deque(n for n, count in enumerate(missing) if count == 0)
    order = []
    while ready:
        n = ready.popleft()
        order.append(n)
        for other in opens[n]:
            missing[other] -= 1
            if missing[other] == 0:
                ready.append(other)
    return order, "" if len(order) == len(flow.steps) else _cycle(flow, order, depth)


def _last_before(number: dict[tuple[int, ...], int], g: int, t: int, s: int) -> int:
    """The last step before this place of a block that is no nop."""
    return next((number[g, t, earlier] for earlier in range(s - 1, -1, -1) if (g, t, earlier) in number), NONE)


def _waits(program: Program, number: dict[tuple[int, ...], int]) -> list[tuple[int, ...]]:
    """For each step that is no nop what it, and the nops before it, wait for."""
    waits: list[tuple[int, ...]] = []
    pending: list[int] = []
    for g, _, s, step in program.steps():
        if s == 0:
            pending = []
        if step.depid != NONE:
            other = _last_before(number, g, step.depid, step.deps + 1)  # a nop is done when what stands before it is
            pending += [other] if other != NONE else []
        if step.type is not StepType.NOP:
            waits.append(tuple(pending))
            pending = []
    return waits


def _match(flow: Flow, senders: dict[Connection, list[int]], findings: Findings) -> bool:
    """Pair the messages of every connection by order; whether all of them match."""
    matched = True
    for connection in sorted(senders.keys() | flow.receivers.keys()):
        sends, receives = senders.get(connection, []), flow.receivers.get(connection, [])
        for n, m in zip(sends, receives, strict=False):
            flow.sender[m] = n
            if flow.steps[n].cnt != flow.steps[m].cnt:
                counts = (
                    f"has cnt {flow.steps[n].cnt} and is taken by {flow.describe(m)}, which has cnt {flow.steps[m].cnt}"
                )
                findings.add(f"{flow.describe(n)}: its message {counts}")
                matched = False
        if len(sends) != len(receives):
            source, destination, channel = connection
            which = f"gpu {source} to gpu {destination}, channel {channel}"
            longer = sends if len(sends) > len(receives) else receives
            extra = longer[min(len(sends), len(receives))]
            lonely = "nobody takes the message of" if longer is sends else "nobody sends the message of"
            findings.add(
                f"{which}: {len(sends)} messages are sent and {len(receives)} received; {lonely} {flow.describe(extra)}"
            )
            matched = False
    return matched


def _cycle(flow: Flow, order: list[int], depth: int | None) -> str:
    """A cycle among the steps that are not in the order, in words."""
    ran = set(order)
    n = next(n for n in range(len(flow.steps)) if n not in ran)
    walk: dict[int, str] = {}  # each step walked through, and why it follows the next
    while n not in walk:
        other, why = next((other, why) for other, why in flow.conditions(n, depth) if other not in ran)
        walk[n] = why
        n = other
    cycle = list(walk)[list(walk).index(n) :]
    text = flow.describe(n)
    for at, following in zip(cycle, [*cycle[1:], n], strict=True):
        if at != n and cycle.index(at) >= SHOWN:
            return f"{text} waits through {len(cycle) - SHOWN} more steps for itself"
        text += f" {walk[at]} {flow.describe(following)}, which"
    return text.removesuffix(", which")
