"""Whether an MSCCL program runs and does what its collective promises, without a GPU.

Thread blocks are sequential programs that exchange messages over connections of limited depth and wait for each other's steps.
The program is executed on sets of contributions, in one order that its conditions allow; since conflicting accesses are shown
to be ordered, every other allowed order gives the same. Nothing here knows how files are written.
"""

from __future__ import annotations

from dataclasses import dataclass

from dualcoll.certificates.findings import Findings
from dualcoll.errors import InputError
from dualcoll.lowering.msccl.contents import Contents, check_promises, contents_of
from dualcoll.lowering.msccl.flow import Flow, flow_of, running_order
from dualcoll.lowering.msccl.memory import COLLECTIVES, ROOT, Memory, check_sizes
from dualcoll.lowering.msccl.program import Program, StepType
from dualcoll.lowering.msccl.races import check_races
from dualcoll.lowering.msccl.structure import check_structure, check_target, lacking
from dualcoll.lowering.msccl.targets import find_target

__all__ = ["DEPTH", "Verdict", "execute", "validate"]

DEPTH = 2  # messages that a connection holds; at 1 many rings that run well would deadlock
MAX_OUTPUTS = 2**24  # chunks of output of all GPUs
NO_CONTRACT = "custom"
IN_PLACE, OUT_OF_PLACE = "in place", "out of place"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A program that runs and keeps its promise.

    Attributes:
        program: which.
        channels_used: channels that steps send on.
        blocks, steps, count: most thread blocks of a GPU, most steps of a block, most chunks of a step.
        notes: what one should know nevertheless, a sentence each.
    """

    program: Program
    channels_used: int
    blocks: int
    steps: int
    count: int
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """Such as ``valid allreduce, 8 ranks, 2 channels, in place, LL, 32769 B - 40959 B``."""
        program = self.program
        ways = [way for way, used in _ways(program).items() if used]
        channels = f"{program.nchannels} channel{'s' * (program.nchannels != 1)}"
        if self.channels_used != program.nchannels:
            channels += f" ({self.channels_used} used)"
        parts = [f"{program.collective}, {program.ngpus} ranks", channels, " and ".join(ways), program.proto]
        return f"valid {', '.join([*parts, *_sizes(program)])}"


def validate(program: Program, *, depth: int | None = DEPTH, target: str | None = None) -> Verdict:
    """Check a program.

    Args:
        program: what to check.
        depth: messages that a connection holds; None for as many as it takes.
        target: executor whose limits to check, ``"msccl"`` or ``"rccl"``; None for none.

    Raises:
        InputError: an unknown target, a depth below 1, a collective without a known contract, or too many chunks.
        CheckFailed: one finding per violation, each with GPU, thread block and step.
    """
    execute(program, depth=depth, target=target)
    blocks = [block for gpu in program.gpus for block in gpu.blocks]
    return Verdict(
        program=program,
        channels_used=len({block.chan for block in blocks if any(step.type.sends for step in block.steps)}),
        blocks=max(len(gpu.blocks) for gpu in program.gpus),
        steps=max((len(block.steps) for block in blocks), default=0),
        count=max((step.cnt for block in blocks for step in block.steps), default=0),
        notes=_notes(program),
    )


def execute(
    program: Program, *, depth: int | None = DEPTH, target: str | None = None
) -> tuple[Flow, list[int], list[Contents]]:
    """The flow of a valid program, an order of its steps that needs no more room than it has, and what happens to its data in
    each kind of call that it is for: with two buffers before with one.

    Raises:
        As :func:`validate`.
    """
    if depth is not None and depth < 1:
        raise InputError(f"a connection of depth {depth} carries nothing", where="depth", hint="use 1 or more")
    executor = None if target is None else find_target(target)
    if program.collective not in (*COLLECTIVES, NO_CONTRACT):
        known = ", ".join((*COLLECTIVES, NO_CONTRACT))
        raise InputError(f"what coll {program.coll[:60]!r} promises is not known", hint=f"known are {known}")
    if program.ngpus * program.nchunksperloop > MAX_OUTPUTS:
        problem = f"{program.ngpus} GPUs with {program.nchunksperloop} chunks each are too many to execute"
        raise InputError(problem, hint=f"up to {MAX_OUTPUTS} chunks of all GPUs are")
    findings = Findings()
    if executor is not None:
        check_target(program, executor, findings)
    runnable = check_structure(program, findings) & check_sizes(program, findings)
    flow = flow_of(program, findings) if runnable else None
    runs: list[Contents] = []
    order: list[int] = []
    if flow is not None:
        order = _order(flow, depth, findings)
        runs = _runs(flow, order, findings)
    if findings or flow is None:
        raise findings.error()
    return flow, order, runs


def _order(flow: Flow, depth: int | None, findings: Findings) -> list[int]:
    """An order to execute in; empty if there is none. A program that has one, but not at that depth, still gets it."""
    order, cycle = running_order(flow, None)
    if cycle:
        findings.add(f"deadlock: {cycle}")
        return []
    narrow, cycle = running_order(flow, depth)
    if cycle:
        findings.add(f"deadlock where connections hold {depth} message{'s' * (depth != 1)}: {cycle}")
    return order if cycle else narrow


def _runs(flow: Flow, order: list[int], findings: Findings) -> list[Contents]:
    """What happens in each kind of call; findings of one kind alone say which."""
    runs: list[Contents] = []
    seen: set[str] = set()
    if not order and flow.steps:
        return runs
    ways = [way for way, used in _ways(flow.program).items() if used]
    for way in ways:
        memory = Memory(flow.program, in_place=way == IN_PLACE)
        own = Findings()
        runs.append(contents_of(flow, order, memory, own))
        if check_races(flow, order, memory, own):  # else what is where depends on who comes first
            check_promises(flow, runs[-1], own)
        if own:
            said = [sentence for sentence in own.error().findings if sentence not in seen]
            seen.update(said)
            for sentence in said:
                findings.add(sentence if len(ways) == 1 else f"{way}: {sentence}")
    return runs


def _ways(program: Program) -> dict[str, bool]:
    """The kinds of call that the program is for."""
    out = not program.inplace if program.outofplace is None else program.outofplace
    return {OUT_OF_PLACE: out, IN_PLACE: program.inplace}


def _sizes(program: Program) -> list[str]:
    if program.min_bytes is None and program.max_bytes is None:
        return []
    low = program.min_bytes or 0
    return [f"{low} B - {program.max_bytes} B" if program.max_bytes else f"{low} B and more"]


def _notes(program: Program) -> tuple[str, ...]:
    notes = []
    if program.collective == NO_CONTRACT:
        notes.append("a custom collective promises nothing that could be checked: only how it runs was")
    lacks = lacking(program)
    if lacks:
        notes.append(f"it lacks {', '.join(lacks)}, without which RCCL and msccl-executor-nccl refuse to load it")
    if program.coll == "reduce_scatter":
        notes.append("RCCL and msccl-executor-nccl spell its coll reducescatter")
    if program.collective in ("broadcast", "reduce"):
        notes.append(f"the root is taken to be rank {ROOT}: the format has no place for it")
    if any(step.type is StepType.RESIDUAL_ADD for *_, step in program.steps()):
        notes.append("its ra steps add tensors of the caller, which is no part of the collective")
    return tuple(notes)
