"""Which step of a program comes after which, and an order in which all can run where connections hold two messages.

Every message has two steps, one that sends it and one that receives it; where a message is passed on in the step that receives
it, that step and the one that sends the other are one. Local messages are one step. Shape letters: M messages, N = 2 M steps.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

from dualcoll.errors import InputError
from dualcoll.lowering.msccl.messages import Messages, Run
from dualcoll.schedules.order import describe_send

__all__ = ["DEPTH", "StepOrder", "chain_of", "ordered_steps"]

DEPTH = 2  # messages that a connection holds


@dataclass(frozen=True, slots=True)
class StepOrder:
    """Steps and their order. Step 2 m sends message m, step 2 m + 1 receives it.

    Attributes:
        fused: for messages that are passed on, the message that they are passed on as.
        step: the step that each of the N stands for: itself, unless two are one.
        waits: for each step the steps of the same rank that it must come after, besides those of its own connections.
        order: all steps that stand for themselves, in an order in which they can run.
    """

    fused: dict[int, int]
    step: list[int]
    waits: list[list[int]]
    order: list[int]

    def place(self) -> dict[int, int]:
        """The place of each step in the order."""
        return {n: i for i, n in enumerate(self.order)}


def ordered_steps(messages: Messages, fused: dict[int, int]) -> StepOrder | None:
    """An order of the steps; where messages that are passed on at once would wait for each other, they are passed on later.

    Returns:
        None if messages of several sends wait for each other.

    Raises:
        InputError: a send depends on one that has no rank in common with it.
    """
    fused = dict(fused)
    is_local = [messages.is_local(m) for m in range(len(messages.members))]
    while True:
        step = [2 * m if local else n for m, local in enumerate(is_local) for n in (2 * m, 2 * m + 1)]
        for first, second in fused.items():
            step[2 * second] = 2 * first + 1
        waits = _waits(messages, fused, step)
        before = [[(other, 0) for other in row] for row in waits]
        _connections(messages, step, before)
        order, stuck = _topological(step, before)
        if not stuck:
            return StepOrder(fused, step, waits, order)
        waiting = [m for m in fused if 2 * m + 1 in stuck]
        if not waiting:
            return None
        for message in waiting:
            del fused[message]


def chain_of(messages: Messages, run: Run, fused: dict[int, int]) -> list[int]:
    """Writes of a run in the order in which they are done: the one that is passed on at once comes last."""
    return sorted(run.writes, key=lambda write: messages.of[write] in fused)


def _waits(messages: Messages, fused: dict[int, int], step: list[int]) -> list[list[int]]:
    waits: list[set[int]] = [set() for _ in step]
    schedule = messages.schedule
    ptr, depends = schedule.depends_ptr.tolist(), schedule.depends.tolist()
    for send in range(schedule.sends):
        for other in depends[ptr[send] : ptr[send + 1]]:
            later, earlier = _meeting(messages, send, other)
            _wait(waits, step[later], step[earlier])
    for runs in messages.runs.values():
        for run in runs:
            chain = chain_of(messages, run, fused)
            for earlier, later in pairwise(chain):
                _wait(waits, step[_end(messages, later)], step[_end(messages, earlier)])
    return [sorted(row) for row in waits]


def _wait(waits: list[set[int]], later: int, earlier: int) -> None:
    if later != earlier:
        waits[later].add(earlier)


def _end(messages: Messages, send: int) -> int:
    """The step in which a send is delivered."""
    message = messages.of[send]
    return 2 * message + (not messages.is_local(message))


def _meeting(messages: Messages, send: int, other: int) -> tuple[int, int]:
    """The step that waits and the one that it waits for, of one rank, where a send depends on another."""
    src, dst = messages.src, messages.dst
    begin, end = 2 * messages.of[send], _end(messages, send)
    if dst[other] == src[send]:
        return begin, _end(messages, other)
    if dst[other] == dst[send]:
        return end, _end(messages, other)
    if src[other] == dst[send]:
        return end, 2 * messages.of[other]
    if src[other] == src[send]:
        return begin, 2 * messages.of[other]
    where = describe_send(messages.schedule, send)
    problem = f"it depends on {describe_send(messages.schedule, other)}, of other ranks"
    raise InputError(problem, where=where, hint="steps of a program can wait for steps of the same GPU only")


def _connections(messages: Messages, step: list[int], before: list[list[tuple[int, int]]]) -> None:
    """Messages are sent one after the other and arrive a hop later, and a connection holds so many."""
    for queue in messages.on.values():
        for i, message in enumerate(queue):
            begin, end = step[2 * message], 2 * message + 1
            before[end].append((begin, 1))
            if i > 0:
                before[begin].append((step[2 * queue[i - 1]], 1))
                before[end].append((2 * queue[i - 1] + 1, 0))
            if i >= DEPTH:
                before[begin].append((2 * queue[i - DEPTH] + 1, 0))


def _topological(step: list[int], before: list[list[tuple[int, int]]]) -> tuple[list[int], set[int]]:
    """An order, by hops from the start, and the steps on or between cycles."""
    after: list[list[tuple[int, int]]] = [[] for _ in step]
    missing = [0] * len(step)
    for later, row in enumerate(before):
        for earlier, hops in row:
            if earlier != later:
                after[earlier].append((later, hops))
                missing[later] += 1
    level = [0] * len(step)
    ready = deque(n for n in range(len(step)) if step[n] == n and missing[n] == 0)
    order = []
    while ready:
        n = ready.popleft()
        order.append(n)
        for later, hops in after[n]:
            level[later] = max(level[later], level[n] + hops)
            missing[later] -= 1
            if missing[later] == 0:
                ready.append(later)
    stuck = {n for n in range(len(step)) if step[n] == n and missing[n] > 0}
    if stuck:
        _trim(stuck, after)
    order.sort(key=level.__getitem__)
    return order, stuck


def _trim(stuck: set[int], after: list[list[tuple[int, int]]]) -> None:
    """Leave out what merely waits for a cycle."""
    leads: dict[int, list[int]] = {n: [] for n in stuck}
    count = dict.fromkeys(stuck, 0)
    for n in stuck:
        for later, _ in after[n]:
            if later in stuck:
                leads[later].append(n)
                count[n] += 1
    ends = [n for n in stuck if count[n] == 0]
    while ends:
        n = ends.pop()
        stuck.discard(n)
        for earlier in leads[n]:
            count[earlier] -= 1
            if count[earlier] == 0:
                ends.append(earlier)
