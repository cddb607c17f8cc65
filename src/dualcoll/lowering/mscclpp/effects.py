"""Which spots an op of an MSCCL++ plan reads and writes, grain by grain."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualcoll.errors import InputError
from dualcoll.lowering.mscclpp.events import Move, Step
from dualcoll.lowering.mscclpp.ops import OPS, Role
from dualcoll.lowering.mscclpp.plan import SCRATCH_BYTES, Operand, Plan
from dualcoll.lowering.mscclpp.task import PACKETS, Spot, shared_spot

__all__ = ["Effect", "Grid", "effects", "grid_of"]

MAX_GRAINS = 2**22  # of all buffers
MAX_PARTS = 2**12  # grains of a chunk
STEPS = 3  # of a pipeline that does not go in circles
MAX_CIRCLE = 64  # steps of a circle that are worked out


@dataclass(frozen=True, slots=True)
class Grid:
    """How chunks are cut.

    Attributes:
        grains: of a chunk. steps: of a pipeline. circle: steps after which a pipeline comes back to the same place of the
            scratch buffer; 0 for never.
    """

    grains: int
    steps: int
    circle: int = 0


@dataclass(frozen=True, slots=True)
class Effect:
    """What one op does to one grain: the sum of all sources goes to all targets.

    Attributes:
        spins: whether its sources that are packets are waited for.
    """

    sources: tuple[Spot, ...]
    targets: tuple[Spot, ...]
    spins: bool


def grid_of(plan: Plan) -> Grid:
    """The cut that fits all ops of the plan.

    Raises:
        InputError: the cut would be too fine to be worked out.
    """
    pipelines = [op for op in plan.operations() if op.ops]
    circle = 0
    if pipelines and plan.reuse_resources and max(gpu.scratch_chunks for gpu in plan.gpus):
        room = SCRATCH_BYTES // max(gpu.scratch_chunks for gpu in plan.gpus)
        circle = min(room // op.unit_size for op in pipelines)
    steps = (STEPS if not 0 < circle <= MAX_CIRCLE else circle + 2) if pipelines else 1
    grains = steps * math.lcm(*(op.parts for op in plan.operations()), 1)
    chunks = sum(gpu.input_chunks + gpu.output_chunks + gpu.scratch_chunks for gpu in plan.gpus)
    if grains > MAX_PARTS or chunks * grains > MAX_GRAINS:
        problem = f"{chunks} chunks cut into {grains} parts each are too many to be worked out"
        raise InputError(problem, hint=f"plans of up to {MAX_GRAINS} parts, and {MAX_PARTS} to a chunk, are")
    return Grid(grains, steps, circle if 0 < circle <= MAX_CIRCLE else 0)


def effects(plan: Plan, grid: Grid, move: Move) -> list[Effect]:
    """What the move does, grain by grain."""
    op, form = move.step.operation, OPS[move.step.operation.name]
    through_port = op.channel_type == "port"
    spins = any(role is Role.PACKETS for role in form.src)
    if op.name == "glres":
        sources, targets = _switched(plan, grid, move.step, op.src[0]), _switched(plan, grid, move.step, op.dst[0])
        return [Effect(s, t, False) for s, t in zip(sources, targets, strict=True)]
    roles = [form.src[min(i, len(form.src) - 1)] for i in range(len(op.src))]
    if through_port and op.name == "ppkt":
        roles = [Role.PACKETS] * len(roles)  # a port channel moves packets that are there already
    read = [_spots(plan, grid, move.step, operand, role) for operand, role in zip(op.src, roles, strict=True)]
    if op.name == "gstore":
        targets = _switched(plan, grid, move.step, op.dst[0])
        return [Effect((s,), t, False) for s, t in zip(read[0], targets, strict=True)]
    roles = [form.dst[min(i, len(form.dst) - 1)] for i in range(len(op.dst))]
    written = [_spots(plan, grid, move.step, operand, role) for operand, role in zip(op.dst, roles, strict=True)]
    if form.pairs:
        pairs = range(len(op.dst)) if move.pair is None else [move.pair]
        return [Effect((s,), (t,), False) for k in pairs for s, t in zip(read[k], written[k], strict=True)]
    return [Effect(s, t, spins) for s, t in zip(zip(*read, strict=True), zip(*written, strict=True), strict=True)]


def _switched(plan: Plan, grid: Grid, step: Step, operand: Operand) -> list[tuple[Spot, ...]]:
    """For each grain the spots of all GPUs of a switch channel."""
    switch = plan.gpus[step.gpu].switches[plan.gpus[step.gpu].blocks[step.block].switch[operand.switch]]
    each = [_range(plan, grid, step, operand, rank, switch.buffer, switch.buffer) for rank in switch.ranks]
    return list(zip(*each, strict=True))


def _spots(plan: Plan, grid: Grid, step: Step, operand: Operand, role: Role) -> list[Spot]:
    rank, buffer = step.gpu, operand.buffer
    if operand.remote >= 0:
        gpu = plan.gpus[step.gpu]
        remote = gpu.remote_buffers[gpu.blocks[step.block].buffers(step.operation.channel_type)[operand.remote]]
        rank, buffer = remote.rank, remote.buffer
    packets = role in (Role.PACKETS, Role.REMOTE_PACKETS)
    return _range(plan, grid, step, operand, rank, buffer, PACKETS if packets else buffer)


def _range(plan: Plan, grid: Grid, step: Step, operand: Operand, rank: int, buffer: str, space: str) -> list[Spot]:
    """The op's part of an operand, in its step of a pipeline."""
    op, size = step.operation, operand.size * grid.grains
    low, high = size * op.part // op.parts, size * (op.part + 1) // op.parts
    base = operand.index * grid.grains
    if step.inner is not None:
        width = size // grid.steps
        offset = step.iteration * width
        if buffer == "s" and grid.circle:
            offset = step.iteration % grid.circle * width
        low, high = low + offset, low + offset + width
    return [shared_spot(plan, rank, space, base + i, grid.grains) for i in range(low, high)]
