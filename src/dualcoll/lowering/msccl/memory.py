"""Where a program's data stands before and after, and which buffers are one memory.

A GPU's *cells* are the chunks of its memory. A call in place gives one buffer for input and output, so that a cell may have two
names. The input of GPU q is its chunks (q, 0), (q, 1), …, and a *contribution* is one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from dualcoll.certificates.findings import Findings
from dualcoll.lowering.msccl.program import Buffer, Program, Step

__all__ = ["COLLECTIVES", "ROOT", "Cell", "Contribution", "Memory", "Value", "check_sizes"]

ROOT = 0  # of a broadcast or reduction: the format has no place for another
COLLECTIVES = ("allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "reduce")

Contribution = tuple[int, int]  # GPU, chunk of its input
Contributions = frozenset[Contribution]
Cell = tuple[int, int, int]  # GPU, memory (0 input, 1 output, 2 scratch), place in it

_PER_RANK = {"allgather": "input", "reducescatter": "output"}  # the buffer that is one rank's shard of the message


@dataclass(frozen=True, slots=True)
class Value:
    """What a cell holds.

    Attributes:
        once: the contributions that are in it. twice: those of them that are in it more than once.
    """

    once: Contributions
    twice: Contributions = frozenset()

    def __add__(self, other: Value) -> Value:
        return Value(self.once | other.once, self.twice | other.twice | (self.once & other.once))


@dataclass(frozen=True, slots=True)
class Memory:
    """The buffers of a program's GPUs in one kind of call.

    Attributes:
        program: whose. in_place: whether the call gives one buffer for input and output.
    """

    program: Program
    in_place: bool

    @property
    def pieces(self) -> int:
        """Chunks of one rank's shard: the message of nchunksperloop chunks has one shard for each rank."""
        return self.program.nchunksperloop // self.program.ngpus

    def cell(self, gpu: int, buffer: Buffer, offset: int) -> Cell:
        """The cell of one chunk of a buffer."""
        if buffer is Buffer.SCRATCH:
            return gpu, 2, offset
        shard = _PER_RANK.get(self.program.collective)
        if not self.in_place:
            return gpu, int(buffer is Buffer.OUTPUT), offset
        if (shard == "input" and buffer is Buffer.INPUT) or (shard == "output" and buffer is Buffer.OUTPUT):
            return gpu, 0, gpu * self.pieces + offset
        return gpu, 0, offset

    def accesses(self, gpu: int, step: Step) -> tuple[list[Cell], list[Cell]]:
        """The cells that a step reads and those that it writes, in order of its chunks; ``re`` and ``ra`` read what they write
        too.
        """
        chunks = range(step.cnt)
        reads = [self.cell(gpu, step.srcbuf, step.srcoff + i) for i in chunks] if step.type.reads else []
        writes = [self.cell(gpu, step.dstbuf, step.dstoff + i) for i in chunks] if step.type.writes else []
        return reads, writes

    def begins(self, cell: Cell) -> Value | None:
        """What a cell holds at first; None for nothing."""
        gpu, memory, place = cell
        shard = self.program.collective == "allgather"
        offset = place - gpu * self.pieces if shard and self.in_place else place
        if memory != 0 or not 0 <= offset < self.input_chunks(gpu):
            return None
        return Value(frozenset([(gpu, offset)]))

    def input_chunks(self, gpu: int) -> int:
        """Chunks of input that a GPU begins with."""
        collective = self.program.collective
        if collective not in COLLECTIVES:
            chunks = self.program.gpus[gpu]
            return max(chunks.i_chunks, chunks.o_chunks) if self.in_place else chunks.i_chunks
        if collective == "broadcast" and gpu != ROOT:
            return 0
        return self.pieces if collective == "allgather" else self.program.nchunksperloop

    def outputs(self, gpu: int) -> range:
        """Chunks of output that the collective promises to a GPU."""
        collective = self.program.collective
        if collective not in COLLECTIVES or (collective == "reduce" and gpu != ROOT):
            return range(0)
        return range(self.pieces if collective == "reducescatter" else self.program.nchunksperloop)

    def promised(self, gpu: int, output: int) -> Contributions:
        """The contributions that a chunk of output must hold in the end, each once."""
        ranks, pieces = range(self.program.ngpus), self.pieces
        match self.program.collective:
            case "allreduce" | "reduce":
                return frozenset((q, output) for q in ranks)
            case "reducescatter":
                return frozenset((q, gpu * pieces + output) for q in ranks)
            case "allgather":
                return frozenset([(output // pieces, output % pieces)])
            case "alltoall":
                return frozenset([(output // pieces, gpu * pieces + output % pieces)])
            case _:
                return frozenset([(ROOT, output)])


def check_sizes(program: Program, findings: Findings) -> bool:
    """Whether the buffers' chunks and nchunksperloop go together; if not, with findings.

    An attribute that is 0 stands for a buffer that the program does not name.
    """
    collective, chunks, ranks = program.collective, program.nchunksperloop, program.ngpus
    if collective not in COLLECTIVES:
        return True
    if collective in (*_PER_RANK, "alltoall") and chunks % ranks:
        findings.add(f"nchunksperloop is {chunks}, which is no multiple of the {ranks} GPUs, as {collective} needs")
        return False
    agree = True
    for g, gpu in enumerate(program.gpus):
        for name, given in (("input", gpu.i_chunks), ("output", gpu.o_chunks)):
            wanted = chunks // ranks if _PER_RANK.get(collective) == name else chunks
            if given not in (0, wanted):
                what = f"{name[0]}_chunks is {given}"
                findings.add(f"gpu {g}: {what}; with nchunksperloop {chunks}, {collective} has {wanted}")
                agree = False
    return agree
