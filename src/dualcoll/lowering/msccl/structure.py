"""What can be said of an MSCCL program without running it: peers, buffers, counts, waits, and what an executor limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dualcoll.certificates.findings import Findings
from dualcoll.lowering.msccl.program import NO_PEER, Gpu, Program, Step, StepType, ThreadBlock
from dualcoll.lowering.msccl.targets import Target

__all__ = ["check_structure", "check_target", "describe_step", "lacking"]


def describe_step(program: Program, gpu: int, block: int, number: int) -> str:
    """Text such as ``gpu 0, tb 3, step 7 (rrc, line 41)``."""
    step = program.gpus[gpu].blocks[block].steps[number]
    line = f", line {step.line}" if step.line else ""
    return f"gpu {gpu}, tb {block}, step {number} ({step.type}{line})"


def check_structure(program: Program, findings: Findings) -> bool:
    """Record what is wrong in any executor; whether what each step does is clear enough to run the program."""
    _check_message(program, findings)
    runnable = _check_blocks(program, findings)
    for g, t, s, step in program.steps():
        gpu = program.gpus[g]
        where = describe_step(program, g, t, s)
        for problem in (*_accesses(gpu, gpu.blocks[t], step), *_wait(gpu, step)):
            findings.add(f"{where}: {problem}")
            runnable = False
        for problem in _signals(gpu, gpu.blocks[t], s):
            findings.add(f"{where}: {problem}")
    return runnable


def check_target(program: Program, target: Target, findings: Findings) -> None:
    """Record what this executor refuses."""
    lacks = lacking(program)
    if target.sizes_required and lacks:
        findings.add(f"{target.title} refuses a file without {', '.join(lacks)}")
    if program.coll not in target.collectives:
        findings.add(f"{target.title} knows no coll {program.coll!r}; it knows {', '.join(target.collectives)}")
    if program.nchannels > target.channels:
        findings.add(f"nchannels is {program.nchannels}; {target.title} has up to {target.channels}")
    for g, gpu in enumerate(program.gpus):
        if len(gpu.blocks) > target.blocks:
            findings.add(f"gpu {g} has {len(gpu.blocks)} thread blocks; {target.title} runs up to {target.blocks}")
        for what in ("send", "recv"):
            ends = Counter(block.chan for block in gpu.blocks if getattr(block, what) != NO_PEER)
            for channel, count in ends.items():
                if count > target.blocks_per_channel:
                    most = f"{target.title} takes up to {target.blocks_per_channel}"
                    findings.add(f"gpu {g} has {count} blocks with a {what} peer on channel {channel}; {most}")
        for t, block in enumerate(gpu.blocks):
            if len(block.steps) > target.steps:
                findings.add(f"gpu {g}, tb {t} has {len(block.steps)} steps; {target.title} takes up to {target.steps}")
    for g, t, s, step in program.steps():
        if step.cnt > target.count:
            findings.add(
                f"{describe_step(program, g, t, s)}: cnt {step.cnt}; {target.title} takes up to {target.count}"
            )
        if step.type is StepType.RESIDUAL_ADD and not target.residual:
            findings.add(f"{describe_step(program, g, t, s)}: {target.title} knows no such step")


def lacking(program: Program) -> list[str]:
    """The attributes that some loaders do without and the file does not have."""
    optional = {"outofplace": program.outofplace, "minBytes": program.min_bytes, "maxBytes": program.max_bytes}
    return [name for name, value in optional.items() if value is None]


def _check_message(program: Program, findings: Findings) -> None:
    if not program.inplace and program.outofplace is False:
        findings.add("inplace and outofplace are both 0: no call would ever use it")
    low, high = program.min_bytes or 0, program.max_bytes
    if high and low > high:
        findings.add(f"minBytes {low} is more than maxBytes {high}: no call would ever use it")


def _check_blocks(program: Program, findings: Findings) -> bool:
    """Peers and channels, and that no two blocks hold one end of a connection."""
    clear = True
    for g, gpu in enumerate(program.gpus):
        ends: dict[tuple[str, int, int], int] = {}
        for t, block in enumerate(gpu.blocks):
            for problem in _block(program, g, block):
                findings.add(f"gpu {g}, tb {t}: {problem}")
                clear = False
            for what, peer in (("send", block.send), ("recv", block.recv)):
                first = ends.setdefault((what, peer, block.chan), t)
                if peer != NO_PEER and first != t:
                    same = f"{what} peer {peer} on channel {block.chan}"
                    findings.add(f"gpu {g}, tb {t}: it has {same}, and so has tb {first}; one block holds each end")
                    clear = False
    return clear


def _block(program: Program, g: int, block: ThreadBlock) -> Iterator[str]:
    for what, peer in (("send", block.send), ("recv", block.recv)):
        if peer == g:
            yield f"its {what} peer is its own GPU"
        elif not NO_PEER <= peer < program.ngpus:
            yield f"its {what} peer {peer} is no GPU of 0 .. {program.ngpus - 1}"
    if block.chan >= program.nchannels:
        yield f"channel {block.chan} is not among the {program.nchannels} that nchannels sets up"


def _accesses(gpu: Gpu, block: ThreadBlock, step: Step) -> Iterator[str]:
    if step.type is StepType.NOP:
        return
    if step.type.sends and block.send == NO_PEER:
        yield "it sends, and its block has no send peer"
    if step.type.receives and block.recv == NO_PEER:
        yield "it receives, and its block has no recv peer"
    if step.cnt < 1:
        yield "cnt is 0"
    for what, buffer, offset, is_used in (
        ("reads", step.srcbuf, step.srcoff, step.type.reads),
        ("writes", step.dstbuf, step.dstoff, step.type.writes),
    ):
        chunks = gpu.chunks(buffer)
        if is_used and not 0 <= offset <= chunks - step.cnt:
            last = f" .. {offset + step.cnt - 1}" if step.cnt > 1 else ""
            yield f"it {what} chunk {offset}{last} of buffer {buffer}, which has {chunks}"


def _wait(gpu: Gpu, step: Step) -> Iterator[str]:
    """What is wrong with the step that it waits for."""
    if step.depid == -1 and step.deps == -1:
        return
    if not 0 <= step.depid < len(gpu.blocks):
        yield f"it waits for tb {step.depid} (depid), and there are tb 0 .. {len(gpu.blocks) - 1}"
        return
    steps = gpu.blocks[step.depid].steps
    if not 0 <= step.deps < len(steps):
        yield f"it waits for step {step.deps} of tb {step.depid} (deps), which has {len(steps)}"


def _signals(gpu: Gpu, block: ThreadBlock, s: int) -> Iterator[str]:
    """What is wrong with semaphores although the order that they are to make is clear."""
    step = block.steps[s]
    if step.type is StepType.NOP:
        following = block.steps[s + 1] if s + 1 < len(block.steps) else None
        if step.depid == -1:
            yield "a nop without a dependency, which executors drop, so that they count later steps wrong"
        elif following is None or following.depid == -1:
            yield "a chain of nops must end at a step with a dependency of its own; loaders refuse the file"
    if 0 <= step.depid < len(gpu.blocks) and 0 <= step.deps < len(gpu.blocks[step.depid].steps):
        other = gpu.blocks[step.depid].steps[step.deps]
        what = f"step {step.deps} of tb {step.depid}"
        if other.type is StepType.NOP:
            yield f"it waits for {what}, a nop, which never signals: the GPU hangs"
        elif not other.hasdep:
            yield f"it waits for {what}, whose hasdep is 0, so that it never signals: the GPU hangs"
