"""Whether an MSCCL++ plan's numbers name something, and whether they fit the executor's device plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dualcoll.certificates.findings import Findings
from dualcoll.lowering.mscclpp.ops import OPS, Kind, OpForm, Role
from dualcoll.lowering.mscclpp.plan import (
    ALIGNMENT,
    MAX_BARRIERS,
    MAX_CHANNELS,
    MAX_OP_CHANNELS,
    MAX_OPERANDS,
    MAX_OPS,
    MAX_SEMAPHORES,
    SCRATCH_BYTES,
    Gpu,
    Operand,
    Operation,
    Plan,
    ThreadBlock,
)

__all__ = ["channel_ends", "check_structure", "op_place"]

MAX_THREADS = 1024
TYPES = ("memory", "port")


def op_place(gpu: int, block: int, op: int, inner: int | None, name: str) -> str:
    """Text such as ``gpu 0, thread block 1, op 3 (put)``."""
    number = f"op {op}" if inner is None else f"op {op}, inner op {inner}"
    return f"gpu {gpu}, thread block {block}, {number} ({name})"


def channel_ends(plan: Plan, channel_type: str) -> dict[tuple[int, int], tuple[int, int] | None]:
    """The other end of each channel (GPU, place among its channels of the type); None where the peer has none for it."""
    places: dict[tuple[int, int], list[int]] = {}  # (from, to) -> places
    for g, gpu in enumerate(plan.gpus):
        for place, peer in enumerate(gpu.peers(channel_type)):
            places.setdefault((g, peer), []).append(place)
    ends: dict[tuple[int, int], tuple[int, int] | None] = {}
    for (g, peer), mine in places.items():
        theirs = places.get((peer, g), [])
        for k, place in enumerate(mine):
            ends[g, place] = (peer, theirs[k]) if k < len(theirs) else None
    return ends


def check_structure(plan: Plan, findings: Findings) -> None:
    """Add a finding for every number that names nothing and every limit that is exceeded."""
    if plan.alignment < ALIGNMENT or plan.alignment % ALIGNMENT:
        findings.add(
            f"buffer_alignment {plan.alignment} is not a multiple of {ALIGNMENT}, by which reductions address data"
        )
    if not 1 <= plan.threads <= MAX_THREADS:
        findings.add(f"num_threads_per_block {plan.threads} is not in 1 .. {MAX_THREADS}")
    if plan.min_size > plan.max_size:
        findings.add(
            f"min_message_size {plan.min_size} is above max_message_size {plan.max_size}: no message is in between"
        )
    for g, gpu in enumerate(plan.gpus):
        for sentence in _gpu(plan, g, gpu):
            findings.add(f"gpu {g}: {sentence}")
        for b, block in enumerate(gpu.blocks):
            for sentence in _block(gpu, b, block):
                findings.add(f"gpu {g}, thread block {b}: {sentence}")
            for o, op in enumerate(block.ops):
                for sentence in _op(plan, gpu, block, op):
                    findings.add(f"{op_place(g, b, o, None, op.name)}: {sentence}")
                for i, inner in enumerate(op.ops):
                    nested = ("a pipeline stands in a pipeline",) if OPS[inner.name].kind is Kind.PIPELINE else ()
                    for sentence in (*nested, *_op(plan, gpu, block, inner)):
                        findings.add(f"{op_place(g, b, o, i, inner.name)}: {sentence}")


def _gpu(plan: Plan, number: int, gpu: Gpu) -> Iterator[str]:
    if gpu.id != number:
        yield f"its id is {gpu.id}; the executor takes GPUs in the order of their ids"
    first = plan.gpus[0]
    if (gpu.input_chunks, gpu.output_chunks) != (first.input_chunks, first.output_chunks):
        yield (
            f"it has {gpu.input_chunks} input and {gpu.output_chunks} output chunks, gpu 0 has {first.input_chunks} and "
            f"{first.output_chunks}: their chunks differ in size"
        )
    for kind in TYPES:
        for place, peer in enumerate(gpu.peers(kind)):
            if peer >= plan.ranks or peer == number:
                yield f"{kind} channel {place} goes to gpu {peer}, which is no other one of 0 .. {plan.ranks - 1}"
    for i, remote in enumerate(gpu.remote_buffers):
        if remote.rank >= plan.ranks or remote.rank == number:
            yield f"remote buffer {i} is of gpu {remote.rank}, which is no other one of 0 .. {plan.ranks - 1}"
    for i, switch in enumerate(gpu.switches):
        if number not in switch.ranks or len(set(switch.ranks)) < len(switch.ranks) or max(switch.ranks) >= plan.ranks:
            yield f"switch channel {i} joins {list(switch.ranks)}, not different ones of 0 .. {plan.ranks - 1} and itself"
    yield from _barriers(gpu)


def _barriers(gpu: Gpu) -> Iterator[str]:
    meets: dict[int, Counter[int]] = {}
    wanted: dict[int, set[int]] = {}
    for b, block in enumerate(gpu.blocks):
        for op in (each for outer in block.ops for each in (outer, *outer.ops)):
            if OPS[op.name].kind is Kind.BARRIER:
                meets.setdefault(op.barrier, Counter())[b] += 1
                wanted.setdefault(op.barrier, set()).add(op.blocks)
    for barrier, counts in sorted(meets.items()):
        if wanted[barrier] != {len(counts)}:
            sizes = " and ".join(map(str, sorted(wanted[barrier])))
            yield f"barrier {barrier} is for {sizes} thread blocks, and {len(counts)} come to it"
        if len(set(counts.values())) > 1:
            text = ", ".join(f"thread block {b} {count} times" for b, count in sorted(counts.items()))
            yield f"barrier {barrier} is not met equally often: {text}"


def _block(gpu: Gpu, number: int, block: ThreadBlock) -> Iterator[str]:
    if block.id != number:
        yield f"its id is {block.id}; the executor takes thread blocks in the order of their ids"
    ops = sum(1 + len(op.ops) for op in block.ops)
    if ops > MAX_OPS:
        yield f"{ops} ops are more than {MAX_OPS}; spread them over more thread blocks"
    for kind, there in (("memory", len(gpu.memory)), ("port", len(gpu.port)), ("switch", len(gpu.switches))):
        mine = block.channels(kind)
        if len(mine) > MAX_CHANNELS:
            yield f"{len(mine)} {kind} channels are more than {MAX_CHANNELS}; spread the peers over more thread blocks"
        yield from (f"the gpu has no {kind} channel {id_}, only {there}" for id_ in mine if id_ >= there)
    for kind in TYPES:
        buffers = block.buffers(kind)
        if len(buffers) > MAX_CHANNELS:
            yield f"{len(buffers)} remote buffers reached by {kind} are more than {MAX_CHANNELS}"
        for id_ in buffers:
            if id_ >= len(gpu.remote_buffers):
                yield f"the gpu has no remote buffer {id_}, only {len(gpu.remote_buffers)}"
            elif kind not in gpu.remote_buffers[id_].access:
                yield f"remote buffer {id_} is not reached by {kind}, only by {' and '.join(gpu.remote_buffers[id_].access)}"


def _op(plan: Plan, gpu: Gpu, block: ThreadBlock, op: Operation) -> Iterator[str]:
    form = OPS[op.name]
    if form.types and op.channel_type not in form.types:
        yield f"channel_type {op.channel_type!r} is not {' or '.join(form.types)}"
        return
    if len(op.channels) > MAX_OP_CHANNELS:
        yield f"{len(op.channels)} channels are more than {MAX_OP_CHANNELS}; use one op for each {MAX_OP_CHANNELS}"
    if form.types and op.channel_type != "switch":
        there = len(block.channels(op.channel_type))
        yield from (
            f"the thread block has no {op.channel_type} channel {id_}, only {there}"
            for id_ in op.channels
            if id_ >= there
        )
    if form.kind in (Kind.SIGNAL, Kind.WAIT, Kind.FLUSH) and not op.channels:
        yield "it names no channel"
    if form.kind is Kind.BARRIER and op.barrier >= MAX_BARRIERS:
        yield f"there is no barrier {op.barrier}, only 0 .. {MAX_BARRIERS - 1}"
    if form.kind in (Kind.ACQUIRE, Kind.RELEASE):
        if not 1 <= len(op.semaphores) <= MAX_SEMAPHORES:
            yield f"it names {len(op.semaphores)} semaphores, not 1 to {MAX_SEMAPHORES}"
        there = len(gpu.semaphores)
        yield from (f"the gpu has no semaphore {id_}, only {there}" for id_ in op.semaphores if id_ >= there)
    if not 0 <= op.part < op.parts:
        yield f"it is part {op.part} of {op.parts}"
    if form.kind is Kind.PIPELINE and not (op.unit_size and op.unit_chunks and op.unit_size % plan.alignment == 0):
        yield f"steps of {op.unit_size} bytes over {op.unit_chunks} chunks, not multiples of {plan.alignment} over 1 or more"
    if form.kind is Kind.DATA:
        yield from _operands(plan, gpu, block, op, form)
    for inner in op.ops:
        if OPS[inner.name].kind is Kind.DATA:
            yield from _in_steps(plan, gpu, op, inner)


def _in_steps(plan: Plan, gpu: Gpu, op: Operation, inner: Operation) -> Iterator[str]:
    """A pipeline goes over as many bytes as its chunks have, whatever the operands of its inner ops have."""
    if any(operand.size != op.unit_chunks for operand in (*inner.src, *inner.dst)) or inner.parts > 1:
        part = f", part {inner.part} of {inner.parts}" if inner.parts > 1 else ""
        yield f"it goes over {op.unit_chunks} chunks, {inner.name} inside over {inner.src[0].size if inner.src else 0}{part}"
    if "pkt" in inner.name:
        yield f"{inner.name} inside moves all of its packets in every step"
    if plan.reuse_resources and gpu.scratch_chunks:
        room = SCRATCH_BYTES // gpu.scratch_chunks
        if room % op.unit_size or op.unit_chunks > 1:
            yield f"the {room} bytes of a scratch chunk are not a whole number of steps of {op.unit_size} bytes of 1 chunk"


def _operands(plan: Plan, gpu: Gpu, block: ThreadBlock, op: Operation, form: OpForm) -> Iterator[str]:
    for what, operands, roles, many in (
        ("source", op.src, form.src, form.many_src),
        ("destination", op.dst, form.dst, form.many_dst),
    ):
        if len(operands) > MAX_OPERANDS:
            yield f"{len(operands)} {what}s are more than {MAX_OPERANDS}"
        least = len(roles) - (what == "destination" and many and not form.pairs)  # sums may be sent to nobody
        if len(operands) < least or (len(operands) > len(roles) and not many):
            yield f"it has {len(operands)} {what}s, not {least}{' or more' if many else ''}"
            continue
        for i, operand in enumerate(operands):
            role = roles[min(i, len(roles) - 1)]
            yield from (f"{what} {i}: {problem}" for problem in _operand(plan, gpu, block, op, operand, role))
    if form.pairs and len(op.src) != len(op.dst):
        yield f"it has {len(op.src)} sources for {len(op.dst)} destinations"
    if len({operand.size for operand in (*op.src, *op.dst)}) > 1:
        yield f"its operands differ in size: {', '.join(str(operand.size) for operand in (*op.src, *op.dst))} chunks"
    if form.pairs and len({operand.buffer for operand in op.src}) > 1:
        yield "its sources are in different buffers; the executor takes all from the first one's"
    if op.channel_type == "port":
        yield from _port_channels(gpu, block, op)


def _operand(plan: Plan, gpu: Gpu, block: ThreadBlock, op: Operation, operand: Operand, role: Role) -> Iterator[str]:
    local = role in (Role.LOCAL, Role.PACKETS)
    if (bool(operand.buffer), operand.switch >= 0) != (local, role is Role.SWITCH):
        yield f"it is not {role}"
        return
    owner, buffer = gpu, operand.buffer
    if role in (Role.REMOTE, Role.REMOTE_PACKETS):
        refs = block.buffers(op.channel_type)
        if operand.remote >= len(refs):
            yield f"the thread block has no remote buffer {operand.remote} reached by {op.channel_type}, only {len(refs)}"
            return
        if refs[operand.remote] >= len(gpu.remote_buffers):
            return  # told for the thread block
        remote = gpu.remote_buffers[refs[operand.remote]]
        if remote.rank >= plan.ranks:
            return  # told for the gpu
        owner, buffer = plan.gpus[remote.rank], remote.buffer
    if role is Role.SWITCH:
        if operand.switch >= len(block.switch):
            yield f"the thread block has no switch channel {operand.switch}, only {len(block.switch)}"
            return
        if block.switch[operand.switch] >= len(gpu.switches):
            return  # told for the thread block
        buffer = gpu.switches[block.switch[operand.switch]].buffer
    if role in (Role.PACKETS, Role.REMOTE_PACKETS) and buffer != "s":
        yield f"packets are in the scratch buffer, not in {buffer!r}"
    if not operand.size:
        yield "it has no chunks"
    there = _room(plan, owner, buffer)
    if operand.index + operand.size > there:
        yield f"chunks {operand.index} .. {operand.index + operand.size - 1} are beyond the {there} of buffer {buffer!r}"


def _room(plan: Plan, owner: Gpu, buffer: str) -> int:
    """Chunks of a buffer; an output of none in a plan in place is the input."""
    return owner.chunks(buffer) or (owner.input_chunks if buffer == "o" and plan.in_place else 0)


def _port_channels(gpu: Gpu, block: ThreadBlock, op: Operation) -> Iterator[str]:
    """A put through a port channel uses one channel for each destination, to the GPU whose buffer it writes."""
    if len(op.channels) != len(op.dst):
        yield f"it has {len(op.channels)} channels for {len(op.dst)} destinations"
        return
    for id_, operand in zip(op.channels, op.dst, strict=True):
        if id_ < len(block.port) and 0 <= operand.remote < len(block.port_buffers):
            channel, buffer = block.port[id_], block.port_buffers[operand.remote]
            if channel < len(gpu.port) and buffer < len(gpu.remote_buffers):
                peer, rank = gpu.port[channel], gpu.remote_buffers[buffer].rank
                if peer != rank:
                    yield f"channel {id_} goes to gpu {peer}, the buffer is of gpu {rank}"
