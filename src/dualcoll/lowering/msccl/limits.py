"""Limits of an executor that a program just made would exceed, each with the way out."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from dualcoll.certificates.findings import Findings
from dualcoll.errors import CheckFailed
from dualcoll.lowering.msccl.program import NO_PEER, Program
from dualcoll.lowering.msccl.targets import TARGETS, Target
from dualcoll.schedules.ir import Schedule

__all__ = ["CrowdedGpu", "check_limits", "program_channels"]

FEWER_TREES = "plan fewer trees (--max-trees)"
FEWER_CHUNKS = "use fewer chunks"


class CrowdedGpu(CheckFailed):
    """Too many thread blocks, which become fewer where trees share channels."""


def program_channels(schedule: Schedule, target: Target) -> list[int]:
    """The program's channel of each send: the schedule's in order of their numbers. Where these are too many, those share one
    that have no two ranks in common that talk to each other.

    Raises:
        CheckFailed: they are too many even so.
    """
    moved = schedule.src != schedule.dst
    numbers = np.unique(schedule.channel[moved])
    if numbers.size <= target.channels:
        place = np.minimum(np.searchsorted(numbers, schedule.channel), max(numbers.size - 1, 0))
        return [int(number) for number in place]
    pairs: dict[int, set[int]] = defaultdict(set)
    ends = schedule.src.astype(np.int64) * schedule.ranks + schedule.dst
    for number, pair in set(zip(schedule.channel[moved].tolist(), ends[moved].tolist(), strict=True)):
        pairs[number].add(pair)
    taken: list[set[int]] = []
    new: dict[int, int] = {}
    for number in sorted(pairs):
        at = next((c for c, have in enumerate(taken) if have.isdisjoint(pairs[number])), len(taken))
        if at == len(taken):
            taken.append(set())
        taken[at] |= pairs[number]
        new[number] = at
    if len(taken) > target.channels:
        pair, most = Counter(pair for have in pairs.values() for pair in have).most_common(1)[0]
        src, dst = divmod(pair, schedule.ranks)
        raise CheckFailed(
            (
                f"{numbers.size} channels, {most} of them from rank {src} to rank {dst}; {target.title} has up to "
                f"{target.channels}: {FEWER_TREES}, or let trees share channels "
                "(dualcoll.lowering.shared_channels.share_channels)",
            )
        )
    return [new.get(number, 0) for number in schedule.channel.tolist()]


def check_limits(program: Program, target: Target) -> None:
    """Pass if the executor loads so many blocks and steps.

    Raises:
        CheckFailed: it does not; with each limit, where and by how much it is exceeded, and what to do. It is a
            :class:`CrowdedGpu` if there are too many blocks and nothing else is wrong.
    """
    findings, crowded = Findings(), Findings()
    for g, gpu in enumerate(program.gpus):
        if len(gpu.blocks) > target.blocks:
            crowded.add(
                _text(f"gpu {g} needs {len(gpu.blocks)} thread blocks", target, "blocks", len(gpu.blocks), FEWER_TREES)
            )
        for what in ("send", "recv"):
            ends = Counter(block.chan for block in gpu.blocks if getattr(block, what) != NO_PEER)
            for channel, count in ends.items():
                problem = f"gpu {g} needs {count} thread blocks with a {what} peer on channel {channel}"
                if count > target.blocks_per_channel:
                    findings.add(
                        _text(problem, target, "blocks_per_channel", count, "spread the sends over more channels")
                    )
        for t, block in enumerate(gpu.blocks):
            if len(block.steps) > target.steps:
                problem = f"gpu {g}, tb {t} needs {len(block.steps)} steps"
                findings.add(_text(problem, target, "steps", len(block.steps), FEWER_CHUNKS))
    for g, t, s, step in program.steps():
        if step.cnt > target.count:
            problem = f"gpu {g}, tb {t}, step {s} has cnt {step.cnt}"
            findings.add(_text(problem, target, "count", step.cnt, "cut the data into chunks that differ less"))
    if findings:
        raise findings.error()
    if crowded:
        raise CrowdedGpu(crowded.error().findings)


def _text(problem: str, target: Target, limit: str, value: int, way_out: str) -> str:
    roomier = [f"--target {other.name}" for other in TARGETS.values() if getattr(other, limit) >= value]
    return f"{problem}; {target.title} takes up to {getattr(target, limit)}: {', or '.join([way_out, *roomier])}"
