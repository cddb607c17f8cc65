"""A plain executor that tries one interleaving of a program's thread blocks at random."""

from __future__ import annotations

import random
from collections import Counter, deque

from dualcoll.lowering.msccl.program import Buffer, Program, StepType

Value = Counter[tuple[int, int]]
Cell = tuple[int, Buffer, int]

# the part of the message that a rank puts in, or gets out, by collective; others have all of it
SHARDED = {"allgather": Buffer.INPUT, "reducescatter": Buffer.OUTPUT}


class Interleaving:
    """Blocks take turns at random; a step takes, reads and sends in one turn and writes in a later one."""

    def __init__(self, program: Program, in_place: bool, depth: int, rng: random.Random) -> None:
        self.program, self.in_place, self.depth, self.rng = program, in_place, depth, rng
        self.share = max(1, program.nchunksperloop // program.ngpus)
        self.queues: dict[tuple[int, int, int], deque[list[Value]]] = {}
        self.signalled: set[tuple[int, int, int]] = set()
        self.cells: dict[Cell, Value] = {}
        for g in range(program.ngpus):
            whole = program.collective != "allgather"
            for i in range(program.nchunksperloop if whole else self.share):
                self.cells[self.cell(g, Buffer.INPUT, i)] = Counter({(g, i): 1})

    def cell(self, g: int, buffer: Buffer, offset: int) -> Cell:
        if not self.in_place or buffer is Buffer.SCRATCH:
            return g, buffer, offset
        return g, Buffer.INPUT, offset + (g * self.share if SHARDED.get(self.program.collective) is buffer else 0)

    def finishes(self) -> bool:
        """Whether all blocks come to their end."""
        blocks = [(g, t) for g, gpu in enumerate(self.program.gpus) for t in range(len(gpu.blocks))]
        at = dict.fromkeys(blocks, 0)
        writing: dict[tuple[int, int], list[tuple[Cell, Value]]] = {}
        while True:
            busy = [b for b in blocks if b in writing or (at[b] < len(self.block(*b)) and self.may(*b, at[b]))]
            if not busy:
                return all(at[b] == len(self.block(*b)) for b in blocks)
            g, t = self.rng.choice(busy)
            if (g, t) not in writing:
                writing[g, t] = self.begin(g, t, at[g, t])
                continue
            self.cells.update(writing.pop((g, t)))
            if self.block(g, t)[at[g, t]].hasdep:
                self.signalled.add((g, t, at[g, t]))
            at[g, t] += 1

    def block(self, g: int, t: int) -> tuple:  # type: ignore[type-arg]
        return self.program.gpus[g].blocks[t].steps

    def ends(self, g: int, t: int) -> tuple[deque[list[Value]], deque[list[Value]]]:
        """The connections that a block takes from and sends on."""
        block = self.program.gpus[g].blocks[t]
        keys = (block.recv, g, block.chan), (g, block.send, block.chan)
        return self.queues.setdefault(keys[0], deque()), self.queues.setdefault(keys[1], deque())

    def may(self, g: int, t: int, s: int) -> bool:
        step = self.block(g, t)[s]
        taken, sent = self.ends(g, t)
        waits = step.depid >= 0 and (g, step.depid, step.deps) not in self.signalled
        return not (waits or (step.type.receives and not taken) or (step.type.sends and len(sent) >= self.depth))

    def begin(self, g: int, t: int, s: int) -> list[tuple[Cell, Value]]:
        """Take, read and send; what is left to write."""
        step = self.block(g, t)[s]
        taken, sent = self.ends(g, t)
        if step.type is StepType.NOP:
            return []
        parts: list[list[Value]] = []
        if step.type.receives:
            parts.append(taken.popleft())
        if step.type.reads:
            parts.append([self.read(g, step.srcbuf, step.srcoff + i) for i in range(step.cnt)])
        if step.type is StepType.REDUCE:
            parts.append([self.read(g, step.dstbuf, step.dstoff + i) for i in range(step.cnt)])
        values: list[Value] = [sum(group, Counter()) for group in zip(*parts, strict=True)]
        if step.type.sends:
            sent.append(values)
        if not step.type.writes:
            return []
        return [(self.cell(g, step.dstbuf, step.dstoff + i), value) for i, value in enumerate(values)]

    def read(self, g: int, buffer: Buffer, offset: int) -> Value:
        return self.cells.get(self.cell(g, buffer, offset), Counter({(-1, -1): 1}))  # garbage

    def keeps_promise(self) -> bool:
        """Whether all outputs are what the collective promises."""
        ranks, share = range(self.program.ngpus), self.share
        for g in ranks:
            for i in range(share if self.program.collective == "reducescatter" else self.program.nchunksperloop):
                wanted = {
                    "allreduce": [(q, i) for q in ranks],
                    "reduce": [(q, i) for q in ranks],
                    "reducescatter": [(q, g * share + i) for q in ranks],
                    "broadcast": [(0, i)],
                    "allgather": [divmod(i, share)],
                    "alltoall": [(i // share, g * share + i % share)],
                }[self.program.collective]
                is_promised = self.program.collective != "reduce" or g == 0
                if is_promised and self.cells.get(self.cell(g, Buffer.OUTPUT, i)) != Counter(wanted):
                    return False
        return True
