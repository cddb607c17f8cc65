"""Plans as MSCCL programs."""

from __future__ import annotations

import time
from functools import cache

import numpy as np
import pytest

from dualcoll import plan as make_plan
from dualcoll.errors import CheckFailed
from dualcoll.lowering.msccl.from_plan import plan_to_msccl
from dualcoll.lowering.msccl.program import StepType
from dualcoll.lowering.msccl.write import msccl_text
from dualcoll.plans.model import Plan
from dualcoll.progress import Gap
from dualcoll.topology.catalog import catalog
from tests.lowering.msccl.round_trip import read_again, times

COLLECTIVES = ("allreduce", "allgather", "reducescatter", "broadcast", "alltoall")


@cache
def planned(spec: str, collective: str, ranks: str | None = None, max_trees: int | None = None) -> Plan:
    return make_plan(catalog(spec), collective, size=2**26, stop=Gap(0.05), ranks=ranks, max_trees=max_trees)


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(
    ("spec", "ranks"), [("dgx-h100", None), ("dgx-h100:boxes=2", None), ("torus:3x3", None), ("dgx-h100", "0-6")]
)
def test_plans_take_the_same_time(spec: str, ranks: str | None, collective: str) -> None:
    """What is read again is valid, moves data right, and takes exactly the time of the schedule that the plan became."""
    plan = planned(spec, collective, ranks)
    made = plan_to_msccl(plan, max_chunks=2 * len(plan.participants), inplace=False)
    assert made.lowered.notes == ()
    before, after = times(made.schedule, inplace=False)
    assert after == before


def test_trees_share_channels_where_blocks_are_few() -> None:
    """What one executor runs as it is needs fewer channels on the other, which has fewer thread blocks."""
    plan = planned("dgx-h100:boxes=2", "allreduce")
    wide, narrow = (plan_to_msccl(plan, target=target, max_chunks=64) for target in ("msccl", "rccl"))
    blocks = [max(len(gpu.blocks) for gpu in made.lowered.program.gpus) for made in (wide, narrow)]
    assert narrow.channels < wide.channels == 32
    assert blocks[1] <= 64 < blocks[0]
    read_again(narrow.schedule, target="rccl")


def test_too_many_chunks_are_refused() -> None:
    """Where no sharing of channels helps, the first limit is named."""
    with pytest.raises(CheckFailed) as caught:
        plan_to_msccl(planned("dgx-h100", "allreduce", None, 1), target="rccl", max_chunks=100)
    assert "needs 100 steps; RCCL takes up to 64: use fewer chunks, or --target msccl" in caught.value.findings[0]


def test_relaying_gpus_receive_and_send() -> None:
    """On a fabric without switches GPUs pass on what others send each other, by steps that do both."""
    program = plan_to_msccl(planned("torus:3x3", "alltoall"), max_chunks=9).lowered.program
    relayed = [step for *_, step in program.steps() if step.type is StepType.RECV_COPY_SEND]
    assert relayed
    assert all(gpu.s_chunks for gpu in program.gpus)


def test_sixty_four_gpus() -> None:
    """A plan of few trees for 64 GPUs is a file of at most 20 MiB within 10 seconds of work."""
    plan = planned("dgx-h100:boxes=8,network=rail", "allreduce", None, 8)
    start = time.process_time()
    made = plan_to_msccl(plan)
    text = msccl_text(made.lowered.program)
    assert time.process_time() - start < 10
    assert len(text) < 20 * 2**20
    assert np.array_equal(made.schedule.nodes, plan.participants)
