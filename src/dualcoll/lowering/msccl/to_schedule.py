"""An MSCCL program as a schedule, so that it can be checked, simulated and compared like any other.

A message becomes one send for each of its chunks, on the program's channel; what a block does alone becomes local sends. Sends
follow what the order of steps in a block and semaphores ask for: a step that receives is done when its data has been delivered,
one that sends when its message is under way.

Messages wait in a connection until the receiving block is ready for them, and a schedule knows no such place. So a message is
delivered right into the slot where it belongs if whatever used that slot before is known to be over when the message is sent,
and else into a slot of its own, to be moved on locally.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from dualcoll.errors import CheckFailed, InputError
from dualcoll.lowering.msccl.contents import Contents
from dualcoll.lowering.msccl.flow import NONE, Flow
from dualcoll.lowering.msccl.program import Program, Step, StepType
from dualcoll.lowering.msccl.races import Clocks, Ints
from dualcoll.lowering.msccl.slots import Slots
from dualcoll.lowering.msccl.validate import DEPTH, NO_CONTRACT, execute
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.schedules.order import running_order

__all__ = ["to_schedule"]

Done = dict[tuple[bool, int], tuple[int, ...]]  # last sends to follow, by whether they are messages, and by block


def to_schedule(program: Program, size: int, *, depth: int | None = DEPTH, in_place: bool | None = None) -> Schedule:
    """The program as a schedule without a fabric.

    Args:
        program: what to convert.
        size: bytes of the message as nccl-tests counts them; a multiple of ``nchunksperloop``.
        depth: messages that a connection holds; None for as many as it takes.
        in_place: which kind of call to convert, where the program is for both; with two buffers by default.

    Returns:
        A schedule that has no deadlock at that depth either.

    Raises:
        InputError: a custom collective, an ``ra`` step, or sums of unlike chunks, which no contract covers; a size that does
            not divide; a kind of call that the program is not for.
        CheckFailed: the program is not valid.
    """
    if program.collective == NO_CONTRACT:
        raise InputError("a custom collective promises nothing, as a schedule must", where=program.name)
    chunk_size, rest = divmod(size, program.nchunksperloop)
    if rest or size < 0:
        more = (chunk_size + 1) * program.nchunksperloop
        problem = f"{size} bytes are no multiple of the {program.nchunksperloop} chunks (nchunksperloop)"
        raise InputError(problem, where=program.name, hint=f"nothing is padded: use {more}")
    flow, order, runs = execute(program, depth=depth)
    run = next((run for run in runs if in_place in (None, run.memory.in_place)), None)
    if run is None:
        raise InputError(f"it is not for calls {'in' if in_place else 'out of'} place", where=program.name)
    for (
        direct
    ) in _Direct:  # places of a channel are held for single chunks, and until what depends on them is under way
        schedule = _Conversion(flow, order, run, direct).schedule(chunk_size)
        try:
            running_order(schedule, depth)
        except CheckFailed:
            continue
        return schedule
    raise AssertionError("a channel whose messages all land apart is always emptied")


class _Direct(Enum):
    """Whose messages may be delivered where they belong."""

    ALL = 0
    FUSED = 1  # of steps that send on
    NONE = 2


@dataclass(frozen=True, slots=True)
class _Part:
    """What a step does with one of its chunks: its data, and the slots that it reads and writes, or ``NONE``."""

    data: int
    read: int
    written: int


class _Conversion:
    """Args: the program's flow, order and contents; whose messages may be delivered where they belong."""

    def __init__(self, flow: Flow, order: list[int], run: Contents, direct: _Direct) -> None:
        self._flow, self._order = flow, order
        self._slots = Slots(run.memory)
        self._parts = [self._parts_of(n, run) for n in range(len(flow.steps))]
        self._receiver = [NONE] * len(flow.steps)
        for m, n in enumerate(flow.sender):
            if n != NONE:
                self._receiver[n] = m
        self._direct = [[False] * step.cnt for step in flow.steps] if direct is _Direct.NONE else self._fits()
        self._fused_only = direct is _Direct.FUSED
        self._landed: list[list[tuple[int, int]]] = [[] for _ in flow.steps]  # slots of messages, and their sends
        self._sends: list[tuple[tuple[int, int, int, Op, int, int], tuple[int, ...]]] = []

    def schedule(self, chunk_size: int) -> Schedule:
        """The schedule, with chunks of so many bytes."""
        done: list[Done] = [{} for _ in self._flow.steps]
        for n in self._order:
            before = self._flow.before[n]
            done[n] = self._step(n, _merged([done[m] for m in (*self._flow.waits[n], before) if m != NONE]))
        program = self._flow.program
        builder = ScheduleBuilder(self._slots.contract(), chunk_size, name=program.name)
        for (src, dst, chunk, op, into, channel), after in self._sends:
            builder.send(src, dst, chunk, op, into=into, channel=channel, after=after)
        return builder.build()

    def _parts_of(self, n: int, run: Contents) -> list[_Part]:
        step = self._flow.steps[n]
        reads, writes = run.memory.accesses(self._flow.place[n][0], step)
        parts = []
        for i, value in enumerate(run.moved[n]):
            data = self._slots.data(value)
            if data is None or step.type is StepType.RESIDUAL_ADD:
                problem = (
                    "it adds the caller's tensors" if data is not None else "it adds what does not belong together"
                )
                raise InputError(f"{problem}, which no contract covers", where=self._flow.describe(n))
            read, written = (self._slots.of(cells[i], data) if cells else NONE for cells in (reads, writes))
            parts.append(_Part(data, read, written))
        return parts

    def _fits(self) -> list[list[bool]]:
        """For each chunk of each step whether its message can be delivered where it belongs: what uses that slot before the
        receiving step is over when the message is sent, but for reductions where it is one too.

        A sum that is sent on and not stored takes the place of what it was added to, if that is of no use any more.
        """
        flow = self._flow
        unused = self._unused()
        fits: list[list[bool]] = [[] for _ in flow.steps]
        uses: dict[tuple[int, int], list[tuple[int, Op | None]]] = {}  # by rank and slot, since it was last replaced
        clocks = Clocks(flow)

        def is_over(use: tuple[int, Op | None], known: Ints) -> bool:
            return bool(known[flow.block[use[0]]] >= clocks.tick[use[0]])

        for n in self._order:
            step, gpu, parts = flow.steps[n], flow.place[n][0], self._parts[n]
            sent = clocks.known_at(flow.sender[n]) if step.type.receives else None
            here = clocks.run(n)
            for i, part in enumerate(parts):
                if (n, i) in unused and all(is_over(use, here) for use in uses.get((gpu, part.read), [])):
                    parts[i] = part = replace(part, written=part.read)
                if sent is not None:
                    both = _delivery(step, part) is Op.REDUCE
                    used = uses.get((gpu, part.written), [])
                    fits[n].append(all((both and use[1] is Op.REDUCE) or is_over(use, sent) for use in used))
            for part in parts:
                self._note_uses(uses, n, part)
        return fits

    def _note_uses(self, uses: dict[tuple[int, int], list[tuple[int, Op | None]]], n: int, part: _Part) -> None:
        step, gpu = self._flow.steps[n], self._flow.place[n][0]
        if part.read not in (NONE, part.written):
            uses.setdefault((gpu, part.read), []).append((n, None))
        if part.written != NONE:
            op = _delivery(step, part)
            used = uses.setdefault((gpu, part.written), [])
            if op is Op.COPY:
                used.clear()
            used.append((n, op))
            if step.type.sends:
                used.append((n, None))

    def _unused(self) -> set[tuple[int, int]]:
        """Steps and chunks of sums that are not stored, added to what nobody reads again."""
        unused: set[tuple[int, int]] = set()
        live = set(self._slots.promised)
        for n in reversed(self._order):
            step, gpu = self._flow.steps[n], self._flow.place[n][0]
            for part in self._parts[n]:
                if part.written != NONE and _delivery(step, part) is Op.COPY:
                    live.discard((gpu, part.written))
            for i, part in enumerate(self._parts[n]):
                if step.type is StepType.RECV_REDUCE_SEND and (gpu, part.read) not in live:
                    unused.add((n, i))
                live.add((gpu, part.read))
                if _delivery(step, part) is Op.REDUCE:
                    live.add((gpu, part.written))
        return unused

    def _step(self, n: int, before: Done) -> Done:
        """Add what a step does; ``before`` is what it follows.

        Returns:
            What follows from it must follow.
        """
        step = self._flow.steps[n]
        block, gpu = self._flow.block[n], self._flow.place[n][0]
        if step.type.receives:  # its own message is delivered after those that the block took before
            before.pop((True, block), None)
        after = tuple(send for sends in before.values() for send in sends)
        local: list[int] = []
        message = NONE  # the last send whose delivery alone completes a chunk of the step
        out = []
        for i, part in enumerate(self._parts[n]):
            alone = len(local)
            if step.type.receives:
                slot, send = self._landed[n][i]
                held = part.written if part.written != NONE else slot
                if slot != held:
                    local.append(self._add((gpu, gpu, slot, _delivery(step, part), held, 0), after))
                if step.type.reduces and part.read != part.written:
                    local.append(self._add((gpu, gpu, part.read, Op.REDUCE, held, 0), after))
                if len(local) == alone:
                    message = send
                out.append(held)
            elif step.type is StepType.SEND:
                out.append(part.read)
            elif part.read != part.written:
                local.append(self._add((gpu, gpu, part.read, _delivery(step, part), part.written, 0), after))
        if step.type.sends:
            self._message(n, out, after)
        done = {(False, block): tuple(local)} if local else before
        if message != NONE:
            done[True, block] = (message,)
        return done

    def _message(self, n: int, slots: list[int], after: tuple[int, ...]) -> None:
        """Send a step's message from these slots to where the receiving step wants it, or to slots of its own."""
        m = self._receiver[n]
        src, dst, channel = self._flow.connection[n] or (NONE, NONE, NONE)
        apart = self._fused_only and not self._flow.steps[m].type.sends
        for i, part in enumerate(self._parts[m]):
            into, op = part.written, _delivery(self._flow.steps[m], part)
            if into == NONE or apart or not self._direct[m][i]:
                into, op = self._slots.landing(dst, self._parts[n][i].data), Op.COPY
            self._landed[m].append((into, self._add((src, dst, slots[i], op, into, channel), after)))

    def _add(self, send: tuple[int, int, int, Op, int, int], after: tuple[int, ...]) -> int:
        self._sends.append((send, after))
        return len(self._sends) - 1


def _delivery(step: Step, part: _Part) -> Op:
    """What a step's data does to the slot that it is written to. A sum of two others replaces it before it is made there."""
    return Op.REDUCE if step.type is StepType.REDUCE or (step.type.reduces and part.read == part.written) else Op.COPY


def _merged(before: list[Done]) -> Done:
    """What must be followed in all: of the sends of one block, or of the messages that it takes, the last."""
    merged: Done = {}
    for done in before:
        for key, sends in done.items():
            if key not in merged or sends[-1] > merged[key][-1]:
                merged[key] = sends
    return merged
