"""A plan as an MSCCL program: equal chunks, channels as far as they go, then the schedule's steps."""

from __future__ import annotations

from dataclasses import dataclass

from dualcoll.lowering.chunk_counts import MAX_CHUNKS, ChunkCounts, equal_chunks
from dualcoll.lowering.msccl.from_schedule import Lowered, to_msccl
from dualcoll.lowering.msccl.limits import CrowdedGpu
from dualcoll.lowering.msccl.targets import find_target
from dualcoll.lowering.shared_channels import share_channels
from dualcoll.plans.model import Plan
from dualcoll.schedules.ir import Schedule

__all__ = ["LoweredPlan", "plan_to_msccl"]


@dataclass(frozen=True, slots=True)
class LoweredPlan:
    """What became of a plan.

    Attributes:
        lowered: the program and what goes with it. schedule: the sends that it stands for.
        counts: chunks of each tree, and what they cost against the plan's rate.
        channels: of the program, over which trees are spread; fewer than there are trees where some share one.
    """

    lowered: Lowered
    schedule: Schedule
    counts: ChunkCounts
    channels: int


def plan_to_msccl(
    plan: Plan,
    *,
    target: str = "msccl",
    max_chunks: int = MAX_CHUNKS,
    size: int | None = None,
    name: str = "",
    proto: str = "Simple",
    inplace: bool | None = None,
) -> LoweredPlan:
    """Lower a plan. Where its trees need more channels or thread blocks than there are, some share channels.

    Args:
        plan: its trees, rates and routes; its ranks become GPUs in their order.
        max_chunks: of the whole message. size: bytes of the message that the schedule is for, the plan's by default.
        target, name, proto, inplace: as for :func:`~dualcoll.lowering.msccl.from_schedule.to_msccl`.

    Raises:
        InputError: as :func:`~dualcoll.lowering.chunk_counts.equal_chunks` or
            :func:`~dualcoll.lowering.msccl.from_schedule.to_msccl`.
        CheckFailed: a limit of the executor is exceeded all the same, with the value, where, and the way out.
    """
    cut, counts = equal_chunks(plan, max_chunks, size=size)
    channels = find_target(target).channels
    failure: CrowdedGpu | None = None
    while channels:
        schedule = share_channels(cut, channels)
        try:
            lowered = to_msccl(schedule, target=target, name=name, proto=proto, inplace=inplace)
        except CrowdedGpu as error:
            failure = failure or error
            channels = min(channels, int(schedule.channel.max()) + 1) * 3 // 4
            continue
        return LoweredPlan(lowered, schedule, counts, lowered.program.nchannels)
    assert failure is not None
    raise failure
