"""Slots of a schedule (docs/semantics.md §2) for the cells of a program."""

from __future__ import annotations

import numpy as np

from dualcoll.collectives.contract import NOWHERE, Contract, make_contract
from dualcoll.lowering.msccl.memory import ROOT, Cell, Memory, Value
from dualcoll.lowering.msccl.program import Buffer

__all__ = ["Slots"]


class Slots:
    """Gives every cell that holds some chunk's data a slot for it: the chunk itself where it begins or is promised.

    All others are scratch. With two buffers the outputs are chunks of their own, numbered after the inputs.

    Attributes:
        promised: ranks and slots that the contract promises.

    Args:
        memory: of a valid program whose collective has a contract.
    """

    def __init__(self, memory: Memory) -> None:
        program = memory.program
        self._memory = memory
        sharded = program.collective in ("allgather", "reducescatter", "alltoall")
        pieces = memory.pieces if sharded else program.nchunksperloop
        rooted = program.collective in ("broadcast", "reduce")
        self._base = make_contract(program.collective, program.ngpus, pieces=pieces, root=ROOT if rooted else None)
        # contributions of one GPU are to chunks apart from those of the next, unless all add to the same
        self._stride = {"allgather": pieces, "alltoall": program.nchunksperloop}.get(program.collective, 0)
        self._scratch_of: list[int] = []  # the chunk whose data each scratch chunk takes
        self._scratch: dict[tuple[int, int], int] = {}  # by chunk and how many there are before it at the rank
        self._taken: dict[tuple[int, int], int] = {}  # scratch slots in use by rank and chunk
        self._slot: dict[tuple[Cell, int], int] = {}
        outputs = 0 if memory.in_place else self._base.chunks
        for gpu in range(program.ngpus):
            for output in memory.outputs(gpu):
                source, offset = next(iter(memory.promised(gpu, output)))
                chunk = source * self._stride + offset
                self._slot[memory.cell(gpu, Buffer.OUTPUT, output), chunk] = outputs + chunk
        self.promised = frozenset((cell[0], slot) for (cell, _), slot in self._slot.items())

    def data(self, value: Value) -> int | None:
        """The chunk that a value is a sum of contributions to; None where it is of several, or has some twice."""
        chunks = {gpu * self._stride + offset for gpu, offset in value.once}
        return chunks.pop() if len(chunks) == 1 and not value.twice else None

    def of(self, cell: Cell, chunk: int) -> int:
        """The slot of a cell that holds this chunk's data."""
        if (cell, chunk) not in self._slot:
            begun = self._memory.begins(cell)
            own = begun is not None and self.data(begun) == chunk
            self._slot[cell, chunk] = chunk if own else self.landing(cell[0], chunk)
        return self._slot[cell, chunk]

    def landing(self, gpu: int, chunk: int) -> int:
        """A slot of a rank for this chunk's data that nothing else uses."""
        place = self._taken[gpu, chunk] = self._taken.get((gpu, chunk), -1) + 1
        if (chunk, place) not in self._scratch:
            before = self._base.chunks * (1 if self._memory.in_place else 2)
            self._scratch[chunk, place] = before + len(self._scratch_of)
            self._scratch_of.append(chunk)
        return self._scratch[chunk, place]

    def contract(self) -> Contract:
        """The contract, with all slots given so far."""
        base = self._base
        if not self._memory.in_place:
            nowhere = np.full(base.chunks, NOWHERE)
            base = Contract(
                base.collective,
                base.ranks,
                source=np.concatenate([base.source, nowhere]),
                target=np.concatenate([nowhere, base.target]),
                data=np.concatenate([base.data, base.data]),
                root=base.root,
            )
        return base.with_scratch(self._scratch_of) if self._scratch_of else base
