"""MSCCL++ execution plan files: JSON text to a plan and back. What a plan means, and whether it works, is not judged here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from dualcoll.errors import InputError
from dualcoll.files import read_bytes
from dualcoll.lowering.mscclpp.forms import BlockForm, GpuForm, OperandForm, OpForm, PlanForm
from dualcoll.lowering.mscclpp.ops import OPS, Kind
from dualcoll.lowering.mscclpp.plan import (
    Gpu,
    Operand,
    Operation,
    Plan,
    RemoteBuffer,
    SwitchChannel,
    ThreadBlock,
)
from dualcoll.topology.forms import Form, Place, filled
from dualcoll.topology.source_text import Loc, SourceText, loc_text

__all__ = ["is_mscclpp", "plan_from_bytes", "plan_to_json", "read_plan"]

NOTES = 20  # unknown keys named


def is_mscclpp(data: bytes) -> bool:
    """Whether the content looks like an MSCCL++ execution plan: a JSON object with GPUs that have thread blocks."""
    head = data[: 2**20].lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith(b"{") and all(re.search(rb'"%s"\s*:' % key, data) for key in (b"gpus", b"threadblocks"))


def read_plan(path: str) -> Plan:
    """The plan in a file.

    Raises:
        InputError: see :func:`plan_from_bytes`; or the file cannot be read.
    """
    return plan_from_bytes(read_bytes(path), path)


def plan_from_bytes(data: bytes, where: str) -> Plan:
    """The plan that the content holds.

    Args:
        data: JSON text. where: file name, for messages.

    Raises:
        InputError: not JSON, a key that the executor needs is missing, or a value that it cannot read; with GPU, thread block
            and op.
    """
    content = SourceText.parse(data, where).data
    old = re.search(rb'"(i_cids|o_cids|ctype)"\s*:', data)
    if old:
        hint = "make it again with the mscclpp.language of the release that is to run it"
        raise InputError(f"it is a plan of MSCCL++'s older format, with {old[1].decode()}", where=where, hint=hint)

    def place(loc: Loc) -> str:
        return ": ".join(filter(None, (where, _place(loc))))

    form = filled(PlanForm, content, place)
    if not form.gpus:
        raise InputError("it has no GPUs", where=place(("gpus",)))
    notes = [note for note, _ in zip(_unknown(form, ()), range(NOTES), strict=False)]
    if any(switch.buff is not None for gpu in form.gpus for switch in gpu.channels):
        notes.append("switch channels have buff in the place of buffer_type, which present executors do not read")
    return Plan(
        name=form.name,
        collective=form.collective,
        protocol=form.protocol,
        in_place=form.inplace,
        gpus=tuple(_gpu(gpu, i, place) for i, gpu in enumerate(form.gpus)),
        reuse_resources=form.reuse_resources,
        threads=form.num_threads_per_block,
        double_scratch=form.use_double_scratch_buffer,
        alignment=form.buffer_alignment,
        min_size=form.min_message_size,
        max_size=form.max_message_size,
        notes=tuple(notes),
    )


def plan_to_json(plan: Plan) -> str:
    """The plan as JSON text that MSCCL++'s executor reads."""
    return json.dumps(
        {
            "name": plan.name,
            "collective": plan.collective,
            "protocol": plan.protocol,
            "inplace": plan.in_place,
            "reuse_resources": plan.reuse_resources,
            "gpus": [_gpu_to_json(gpu) for gpu in plan.gpus],
            "num_threads_per_block": plan.threads,
            "use_double_scratch_buffer": plan.double_scratch,
            "buffer_alignment": plan.alignment,
            "min_message_size": plan.min_size,
            "max_message_size": plan.max_size,
        },
        indent=1,
    )


_NAMES = {"gpus": "gpu", "threadblocks": "thread block", "ops": "op"}


def _place(loc: Loc) -> str:
    """Text such as ``gpu 0, thread block 1, op 3: src_buff[0].index``."""
    keys, parts = list(loc), list[str]()
    while len(keys) >= 2 and keys[0] in _NAMES and isinstance(keys[1], int):
        name, number = _NAMES[str(keys.pop(0))], keys.pop(0)
        parts.append(
            f"inner op {number}"
            if name == "op" and any(part.startswith("op") for part in parts)
            else f"{name} {number}"
        )
    return ": ".join(filter(None, (", ".join(parts), loc_text(keys))))


def _unknown(form: Form, loc: tuple[str | int, ...]) -> Iterator[str]:
    """A note for each key that the executor does not read."""
    for key in form.model_extra or ():
        yield f"{_place((*loc, key))}: the executor does not read this key"
    for name in type(form).model_fields:
        value = getattr(form, name)
        for i, item in enumerate(value if isinstance(value, tuple) else ()):
            if isinstance(item, Form):
                yield from _unknown(item, (*loc, name, i))


def _gpu(form: GpuForm, number: int, place: Place) -> Gpu:
    peers: dict[str, list[int]] = {"memory": [], "port": []}
    switches = []
    for i, channel in enumerate(form.channels):
        if channel.channel_type != "switch":
            peers.setdefault(channel.channel_type, []).extend(channel.connected_to)
            continue
        buffer = channel.buffer_type or channel.buff
        if buffer is None:
            raise InputError("buffer_type is missing", where=place(("gpus", number, "channels", i)))
        switches += [SwitchChannel(buffer, group.ranks) for group in channel.rank_groups]
    return Gpu(
        input_chunks=form.input_chunks,
        output_chunks=form.output_chunks,
        scratch_chunks=form.scratch_chunks,
        blocks=tuple(
            _block(block, ("gpus", number, "threadblocks", i), place) for i, block in enumerate(form.threadblocks)
        ),
        memory=tuple(peers["memory"]),
        port=tuple(peers["port"]),
        switches=tuple(switches),
        remote_buffers=tuple(RemoteBuffer(b.rank, b.type, b.access_channel_types) for b in form.remote_buffers),
        semaphores=tuple(semaphore.init_value for semaphore in form.semaphores),
        id=form.id,
    )


def _block(form: BlockForm, loc: tuple[str | int, ...], place: Place) -> ThreadBlock:
    ids: dict[str, list[int]] = {}
    for channels in form.channels:
        ids.setdefault(channels.channel_type, []).extend(channels.channel_ids)
    for refs in form.remote_buffer_refs:
        ids.setdefault(f"{refs.access_channel_type} buffers", []).extend(refs.remote_buffer_ids)
    return ThreadBlock(
        ops=tuple(_op(op, (*loc, "ops", i), place) for i, op in enumerate(form.ops)),
        memory=tuple(ids.get("memory", ())),
        port=tuple(ids.get("port", ())),
        switch=tuple(ids.get("switch", ())),
        memory_buffers=tuple(ids.get("memory buffers", ())),
        port_buffers=tuple(ids.get("port buffers", ())),
        id=form.id,
    )


def _op(form: OpForm, loc: tuple[str | int, ...], place: Place) -> Operation:
    if OPS[form.name].kind is Kind.PIPELINE and form.iter_context is None:
        raise InputError("iter_context is missing", where=place(loc))
    group, steps = form.tbg_info, form.iter_context
    return Operation(
        name=form.name,
        src=tuple(_operand(operand, (*loc, "src_buff", i), place) for i, operand in enumerate(form.src_buff)),
        dst=tuple(_operand(operand, (*loc, "dst_buff", i), place) for i, operand in enumerate(form.dst_buff)),
        channel_type="" if form.channel_type == "none" else form.channel_type,
        channels=form.channel_ids,
        reduce_op=form.reduce_op,
        part=0 if group is None else group.tb_id,
        parts=1 if group is None else group.tbg_size,
        barrier=form.barrier_id,
        blocks=form.num_threadblocks,
        semaphores=form.semaphore_ids,
        unit_size=0 if steps is None else steps.unit_size,
        unit_chunks=0 if steps is None else steps.num_chunks,
        ops=tuple(_op(op, (*loc, "ops", i), place) for i, op in enumerate(form.ops)),
    )


def _operand(form: OperandForm, loc: Loc, place: Place) -> Operand:
    given = [key for key in ("type", "buffer_id", "switch_channel_id") if getattr(form, key) is not None]
    if len(given) != 1:
        problem = f"it has {' and '.join(given) or 'no buffer'}"
        raise InputError(problem, where=place(loc), hint="give one of type, buffer_id and switch_channel_id")
    remote = -1 if form.buffer_id is None else form.buffer_id
    switch = -1 if form.switch_channel_id is None else form.switch_channel_id
    return Operand(form.index, form.size, form.type or "", remote, switch)


def _gpu_to_json(gpu: Gpu) -> dict[str, Any]:
    channels: list[dict[str, Any]] = [
        {"channel_type": kind, "connected_to": list(gpu.peers(kind))} for kind in ("memory", "port") if gpu.peers(kind)
    ]
    for switch in gpu.switches:
        group = {"size": len(switch.ranks), "ranks": list(switch.ranks)}
        channels.append({"channel_type": "switch", "buffer_type": switch.buffer, "rank_groups": [group]})
    return {
        "id": gpu.id,
        "input_chunks": gpu.input_chunks,
        "output_chunks": gpu.output_chunks,
        "scratch_chunks": gpu.scratch_chunks,
        "threadblocks": [_block_to_json(block) for block in gpu.blocks],
        "channels": channels,
        "remote_buffers": [
            {"rank": b.rank, "type": b.buffer, "access_channel_types": list(b.access)} for b in gpu.remote_buffers
        ],
        "semaphores": [{"init_value": value} for value in gpu.semaphores],
    }


def _block_to_json(block: ThreadBlock) -> dict[str, Any]:
    types = ("memory", "port", "switch")
    return {
        "id": block.id,
        "ops": [_op_to_json(op) for op in block.ops],
        "channels": [
            {"channel_type": kind, "channel_ids": list(block.channels(kind))} for kind in types if block.channels(kind)
        ],
        "remote_buffer_refs": [
            {"access_channel_type": kind, "remote_buffer_ids": list(block.buffers(kind))}
            for kind in types
            if block.buffers(kind)
        ],
    }


def _op_to_json(op: Operation) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": op.name}
    for key, operands in (("src_buff", op.src), ("dst_buff", op.dst)):
        if operands:
            entry[key] = [_operand_to_json(operand) for operand in operands]
    lists = {"channel_ids": op.channels, "semaphore_ids": op.semaphores}
    entry |= {key: list(value) for key, value in lists.items() if value}
    entry |= {key: value for key, value in (("channel_type", op.channel_type), ("reduce_op", op.reduce_op)) if value}
    if op.parts > 1:
        entry["tbg_info"] = {"tb_id": op.part, "tbg_size": op.parts}
    if OPS[op.name].kind is Kind.BARRIER:
        entry |= {"barrier_id": op.barrier, "num_threadblocks": op.blocks}
    if OPS[op.name].kind is Kind.PIPELINE:
        entry["iter_context"] = {"unit_size": op.unit_size, "num_chunks": op.unit_chunks}
        entry["ops"] = [_op_to_json(inner) for inner in op.ops]
    return entry


def _operand_to_json(operand: Operand) -> dict[str, Any]:
    of: dict[str, Any] = {"type": operand.buffer} if operand.buffer else {"buffer_id": operand.remote}
    if operand.switch >= 0:
        of = {"switch_channel_id": operand.switch}
    return of | {"index": operand.index, "size": operand.size}
