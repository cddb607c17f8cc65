"""A schedule as an MSCCL program.

Each send becomes a step that sends and one that receives, and what a rank passes on is received and sent in one step. Sends on
one connection that follow each other in memory may be one message. Nothing of the schedule's order is lost: a send that depends
on another waits for it, in the same thread block or by semaphore. Reductions into one place, which a schedule leaves unordered,
are done one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from dualcoll.errors import InputError
from dualcoll.lowering.msccl.blocks import Blocks, blocks_of
from dualcoll.lowering.msccl.emit import emitted
from dualcoll.lowering.msccl.graph import ordered_steps
from dualcoll.lowering.msccl.layout import Layout, layout_of
from dualcoll.lowering.msccl.limits import check_limits, program_channels
from dualcoll.lowering.msccl.messages import Grouping, Messages, fused_messages, messages_of, partners_of
from dualcoll.lowering.msccl.program import Gpu, Program
from dualcoll.lowering.msccl.side_file import SideFile, side_file_of
from dualcoll.lowering.msccl.targets import Target, find_target
from dualcoll.schedules.ir import Schedule

__all__ = ["Lowered", "to_msccl"]

PROTOCOLS = ("Simple", "LL", "LL128")


@dataclass(frozen=True, slots=True)
class Lowered:
    """What became of a schedule.

    Attributes:
        program: the file's content. side: what the format has no place for: routes, and the order of sends.
        notes: what one should know, a sentence each.
    """

    program: Program
    side: SideFile
    notes: tuple[str, ...]


def to_msccl(
    schedule: Schedule,
    *,
    target: str = "msccl",
    name: str = "",
    proto: str = "Simple",
    inplace: bool | None = None,
    coarse: bool = False,
    min_bytes: int = 0,
    max_bytes: int = 0,
) -> Lowered:
    """Lower a schedule. That it is right is for :func:`~dualcoll.schedules.validate.validate` to say.

    Args:
        schedule: rank r becomes GPU r.
        target: the executor, ``"msccl"`` or ``"rccl"``.
        name: of the algorithm; the schedule's by default.
        proto: ``"Simple"``, ``"LL"`` or ``"LL128"``.
        inplace: for calls with one buffer for input and output, or with two; None for one where that can be (not for AllToAll).
        coarse: whether sends of one round on one connection are one message even where that makes chunks wait for each other.
            Without it, sends are one message where nothing waits for longer than in the schedule.
        min_bytes, max_bytes: message sizes that it is for; a ``max_bytes`` of 0 is no limit.

    Raises:
        InputError: an unknown target or protocol, a collective, root or shards that the format cannot say, or chunk sizes that
            are no small multiples of one another.
        CheckFailed: a limit of the executor is exceeded, with the value, where, and the way out.
    """
    executor = find_target(target)
    if proto not in PROTOCOLS:
        raise InputError(f"protocol {proto!r} is not known", where="proto", hint=f"use one of {', '.join(PROTOCOLS)}")
    if not 0 <= min_bytes <= (max_bytes or min_bytes):
        problem = f"{min_bytes} to {max_bytes} bytes is no range of sizes"
        raise InputError(problem, where="min_bytes", hint="0 as the upper end is no limit")
    layout = layout_of(schedule, executor, inplace)
    coll = executor.reduce_scatter if layout.collective == "reducescatter" else layout.collective
    channel = program_channels(schedule, executor)
    messages, blocks, gpus = _made(schedule, layout, channel, executor, Grouping.ROUNDS if coarse else Grouping.ALIKE)
    program = Program(
        name=name or schedule.name or layout.collective,
        coll=coll,
        proto=proto,
        nchannels=max(channel, default=0) + 1,
        nchunksperloop=layout.total,
        gpus=tuple(gpus),
        inplace=layout.in_place,
        outofplace=not layout.in_place,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
    )
    check_limits(program, executor)
    return Lowered(program, side_file_of(schedule, messages, layout.count.tolist()), _notes(messages, blocks, coarse))


def _made(
    schedule: Schedule, layout: Layout, channel: list[int], target: Target, grouping: Grouping
) -> tuple[Messages, Blocks, list[Gpu]]:
    """The steps; with a message for each send where messages of several would not do."""
    for way in (grouping, Grouping.NONE):
        messages = messages_of(schedule, layout, channel, target.count, way)
        partners = partners_of(messages)
        steps = ordered_steps(messages, fused_messages(messages, partners))
        if steps is None:
            continue
        passed = [messages.connection(second) for second in steps.fused.values()]
        used = {(rank, on, peer): partners[rank, on, peer] for rank, peer, on in passed}
        blocks = blocks_of(messages, steps, used, target, spare=int(not layout.in_place))
        gpus = emitted(messages, layout, steps, blocks, target.count)
        if gpus is not None:
            return messages, blocks, gpus
    raise AssertionError("a schedule that can run has steps that can")


def _notes(messages: Messages, blocks: Blocks, coarse: bool) -> tuple[str, ...]:
    found = []
    several = sum(len(members) > 1 for members in messages.members)
    if coarse and several:
        found.append(
            f"{several} messages are of several chunks, which go on when all are there; the schedule passes them on one by one"
        )
    if blocks.shared:
        found.append(
            f"{len(blocks.shared)} GPUs have too few thread blocks for each connection to have one of its own: what they send "
            "and receive on one channel takes turns, which takes its own time"
        )
    return tuple(found)
