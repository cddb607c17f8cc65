"""Steps of a program from messages: types, places, counts, waits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dualcoll.lowering.msccl.blocks import Blocks, waited_for
from dualcoll.lowering.msccl.graph import StepOrder, chain_of
from dualcoll.lowering.msccl.layout import Layout, Place
from dualcoll.lowering.msccl.messages import Messages
from dualcoll.lowering.msccl.program import NO_PEER, Buffer, Gpu, Step, StepType, ThreadBlock
from dualcoll.schedules.ir import NONE

__all__ = ["emitted"]


def emitted(messages: Messages, layout: Layout, steps: StepOrder, blocks: Blocks, count: int) -> list[Gpu] | None:
    """The GPUs of the program; None if a message of several sends is not in one piece of memory.

    Args:
        count: most program chunks of a local copy.
    """
    unstored = _unstored(messages, layout, steps)
    written = {(messages.dst[send], messages.into[send]) for send in range(len(messages.of)) if send not in unstored}
    layout.take_scratch(written)
    writer = _Writer(messages, layout, steps, unstored, _first_stored(messages, unstored, steps.fused))
    made = {n: writer.steps_of(n) for n in steps.order}
    if writer.scattered:
        return None
    needed = waited_for(blocks, steps)
    last: dict[int, tuple[int, int]] = {}  # (block, number) of the last step of each
    for of_rank in blocks.of_rank:
        for b, block in enumerate(of_rank):
            number = 0
            for n in block.steps:
                number += max(len(needed[n]) - 1, 0) + len(made[n])
                last[n] = b, number - 1
    signals = {other for waits in needed.values() for other in waits}
    gpus = []
    for rank, of_rank in enumerate(blocks.of_rank):
        done = [
            ThreadBlock(
                block.send,
                block.recv,
                block.channel,
                tuple(step for n in block.steps for step in _waiting(made[n], needed[n], last, n in signals)),
            )
            for block in of_rank
        ]
        copies = _own_copies(messages, layout, rank, written, count)
        done += [ThreadBlock(NO_PEER, NO_PEER, 0, copies)] if copies else []
        gpus.append(Gpu(*layout.buffer_chunks(rank), tuple(done)))
    return gpus


def _waiting(made: list[Step], needed: list[int], last: dict[int, tuple[int, int]], signals: bool) -> list[Step]:
    """Steps with what they wait for: one wait in the first, all others in nops before it."""
    waits = [last[other] for other in needed]
    nops = [Step(StepType.NOP, depid=block, deps=number) for block, number in waits[:-1]]
    first = replace(made[0], depid=waits[-1][0], deps=waits[-1][1]) if waits else made[0]
    done = [*nops, first, *made[1:]]
    done[-1] = replace(done[-1], hasdep=signals)
    return done


def _unstored(messages: Messages, layout: Layout, steps: StepOrder) -> set[int]:
    """Reductions that are passed on and need not be kept: nobody else reads what they leave before it is overwritten."""
    found: set[int] = set()
    for first, second in steps.fused.items():
        members = messages.members[first]
        if not messages.reduces[members[0]]:
            continue
        if all(
            _is_passing(messages, layout, write, read)
            for write, read in zip(members, messages.members[second], strict=True)
        ):
            found.update(members)
    return found


def _is_passing(messages: Messages, layout: Layout, write: int, read: int) -> bool:
    rank, slot = messages.dst[write], messages.into[write]
    runs, at = messages.runs[rank, slot], messages.write_run[write]
    if runs[at].reads != [read]:
        return False
    return not layout.ends_at(rank, slot) if at + 1 == len(runs) else not runs[at + 1].reduces


def _first_stored(messages: Messages, unstored: set[int], fused: dict[int, int]) -> set[int]:
    """Writes that find in their slot what it held at first."""
    found = set()
    for runs in messages.runs.values():
        for run in runs[1:]:
            chain = chain_of(messages, run, fused)
            found.add(chain[0])
            if any(write not in unstored for write in chain):
                break
    return found


def _own_copies(
    messages: Messages, layout: Layout, rank: int, written: set[tuple[int, int]], count: int
) -> tuple[Step, ...]:
    """Copies to the output of what a rank begins and ends with."""
    if layout.in_place:
        return ()
    spans: list[list[int]] = []  # input, output and chunks of each piece that is contiguous in both
    for chunk in range(layout.contract.chunks):
        if (rank, chunk) in written or not (layout.begins_at(rank, chunk) and layout.ends_at(rank, chunk)):
            continue
        source, target, size = int(layout.before[chunk]), int(layout.after[chunk]), int(layout.count[chunk])
        if spans and [source, target] == [spans[-1][0] + spans[-1][2], spans[-1][1] + spans[-1][2]]:
            spans[-1][2] += size
        else:
            spans.append([source, target, size])
    return tuple(
        Step(StepType.COPY, Buffer.INPUT, source + done, Buffer.OUTPUT, target + done, min(count, size - done))
        for source, target, size in spans
        for done in range(0, size, count)
    )


@dataclass(slots=True)
class _Writer:
    messages: Messages
    layout: Layout
    order: StepOrder
    unstored: set[int]
    first: set[int]
    scattered: bool = False

    def steps_of(self, n: int) -> list[Step]:
        """The program's steps for one of ours."""
        message, receives = divmod(n, 2)
        members = self.messages.members[message]
        count = sum(int(self.layout.count[self.messages.chunk[send]]) for send in members)
        read, home = self._read(members), self._home(members)
        reduces, local = self.messages.reduces[members[0]], self.messages.is_local(message)
        if local:
            return self._local(members[0], read, home, count)
        if not receives:
            return [Step(StepType.SEND, *read, *self._shown(members, home), count)]
        merge = self._merge(members) if reduces else read
        onwards = self.order.fused.get(message, NONE)
        if onwards == NONE:
            return [Step(StepType.RECV_REDUCE_COPY if reduces else StepType.RECV, *merge, *home, count)]
        if not reduces:
            return [Step(StepType.RECV_COPY_SEND, *merge, *home, count)]
        if members[0] not in self.unstored:
            return [Step(StepType.RECV_REDUCE_COPY_SEND, *merge, *home, count)]
        there = self.messages.members[onwards]
        return [Step(StepType.RECV_REDUCE_SEND, *merge, *self._shown(there, self._home(there)), count)]

    def _local(self, send: int, read: Place, home: Place, count: int) -> list[Step]:
        if not self.messages.reduces[send]:
            return [Step(StepType.COPY, *read, *home, count)]
        merge = self._merge([send])
        brought = [Step(StepType.COPY, *merge, *home, count)] if merge != home else []
        return [*brought, Step(StepType.REDUCE, *read, *home, count)]

    def _shown(self, members: list[int], home: Place) -> Place:
        """Where the receiver puts it, for people; where it begins, if the receiver keeps it nowhere."""
        return self._read(members) if home[1] == NONE else home

    def _read(self, members: list[int]) -> Place:
        """Where a message is read at its source."""
        places = []
        for send in members:
            rank, slot = self.messages.src[send], self.messages.chunk[send]
            places.append(self.layout.start(slot) if self._is_fresh(send) else self.layout.home(rank, slot))
        return self._joined(members, places)

    def _is_fresh(self, send: int) -> bool:
        """Whether a send reads what its slot held at first."""
        runs = self.messages.runs[self.messages.src[send], self.messages.chunk[send]]
        return all(write in self.unstored for run in runs[: self.messages.read_run[send] + 1] for write in run.writes)

    def _merge(self, members: list[int]) -> Place:
        """Where what is received is added to."""
        places = []
        for send in members:
            rank, slot = self.messages.dst[send], self.messages.into[send]
            begins = send in self.first and self.layout.begins_at(rank, slot)
            places.append(self.layout.start(slot) if begins else self.layout.home(rank, slot))
        return self._joined(members, places)

    def _home(self, members: list[int]) -> Place:
        """Where a message is written at its destination; offset ``NONE`` where it is passed on and not kept."""
        places = []
        for send in members:
            rank, slot = self.messages.dst[send], self.messages.into[send]
            kept = send not in self.unstored
            places.append(self.layout.home(rank, slot) if kept else (Buffer.SCRATCH, NONE))
        return places[0] if places[0][1] == NONE else self._joined(members, places)

    def _joined(self, members: list[int], places: list[Place]) -> Place:
        buffer, following = places[0]
        for send, place in zip(members, places, strict=True):
            self.scattered |= place != (buffer, following)
            following = place[1] + int(self.layout.count[self.messages.chunk[send]])
        return places[0]
