"""What a program's steps move, by symbolic execution, and whether that is what its collective promises."""

from __future__ import annotations

from dataclasses import dataclass

from dualcoll.certificates.findings import Findings
from dualcoll.collectives.catalogue import title
from dualcoll.lowering.msccl.flow import NONE, Flow
from dualcoll.lowering.msccl.memory import Cell, Memory, Value
from dualcoll.lowering.msccl.program import Buffer, StepType

__all__ = ["Contents", "check_promises", "contents_of"]

NOTHING = Value(frozenset())


@dataclass(frozen=True, slots=True)
class Contents:
    """A run.

    Attributes:
        memory: of which buffers. moved: for each step the value of each of its chunks, as it is stored or sent on.
        cells: what every cell holds in the end, where it was written. writer: the step that wrote it last.
    """

    memory: Memory
    moved: list[list[Value]]
    cells: dict[Cell, Value]
    writer: dict[Cell, int]

    def held(self, cell: Cell) -> Value | None:
        """What a cell holds in the end; None for nothing."""
        return self.cells.get(cell) or self.memory.begins(cell)


def contents_of(flow: Flow, order: list[int], memory: Memory, findings: Findings) -> Contents:
    """Run the steps in this order. Reads of chunks that hold nothing are findings."""
    run = Contents(memory, [[] for _ in flow.steps], {}, {})
    for n in order:
        step, gpu = flow.steps[n], flow.place[n][0]
        reads, writes = memory.accesses(gpu, step)
        values: list[Value] = []
        if step.type.receives:
            values = run.moved[flow.sender[n]]
        if step.type.reads:
            read = _read(flow, n, reads, step.srcbuf, step.srcoff, run, findings)
            values = [a + b for a, b in zip(values, read, strict=True)] if step.type.receives else read
        if step.type in (StepType.REDUCE, StepType.RESIDUAL_ADD):
            own = _read(flow, n, writes, step.dstbuf, step.dstoff, run, findings)
            values = [a + b for a, b in zip(own, values, strict=True)] if values else own
        run.moved[n] = values
        run.cells.update(zip(writes, values, strict=False))
        run.writer.update(dict.fromkeys(writes, n))
    return run


def check_promises(flow: Flow, run: Contents, findings: Findings) -> None:
    """Record every chunk of output that is not what the collective promises."""
    memory, wrong, total = run.memory, [], 0
    for gpu in range(flow.program.ngpus):
        outputs = memory.outputs(gpu)
        total += len(outputs)
        for output in outputs:
            cell = memory.cell(gpu, Buffer.OUTPUT, output)
            problem = _difference(run.held(cell), memory.promised(gpu, output))
            if problem:
                last = run.writer.get(cell, NONE)
                by = f"; last written by {flow.describe(last)}" if last != NONE else "; no step writes it"
                wrong.append(f"gpu {gpu}, output chunk {output}: {problem}{by}")
    if wrong:
        name = title(flow.program.collective)
        findings.add(f"{len(wrong)} of {total} output chunks are not what {name} promises")
    for sentence in wrong:
        findings.add(sentence)


def _read(
    flow: Flow, n: int, cells: list[Cell], buffer: Buffer, offset: int, run: Contents, findings: Findings
) -> list[Value]:
    values = [run.held(cell) for cell in cells]
    empty = next((i for i, value in enumerate(values) if value is None), None)
    if empty is not None:
        findings.add(f"{flow.describe(n)}: it reads chunk {offset + empty} of buffer {buffer}, which holds nothing yet")
    return [value or NOTHING for value in values]


def _difference(held: Value | None, promised: frozenset[tuple[int, int]]) -> str:
    """What is wrong with a chunk of output; empty if nothing is."""
    if held is None:
        return "it holds nothing"
    for problem, those in (
        ("it lacks", promised - held.once),
        ("it also holds", held.once - promised),
        ("it counts twice", held.twice),
    ):
        if those:
            gpu, chunk = min(those)
            more = f", and {len(those) - 1} more" if len(those) > 1 else ""
            return f"{problem} chunk {chunk} of gpu {gpu}'s input{more}"
    return ""
