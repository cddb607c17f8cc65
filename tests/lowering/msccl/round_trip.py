"""Schedules written, read, checked, run and timed again; and random schedules to do so with."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import strategies as st

from dualcoll.collectives.contract import make_contract
from dualcoll.execution.arithmetic import Element
from dualcoll.execution.in_process import execute
from dualcoll.lowering.msccl.from_schedule import Lowered, to_msccl
from dualcoll.lowering.msccl.program import Program
from dualcoll.lowering.msccl.read import parse_msccl
from dualcoll.lowering.msccl.side_file import side_file_from_json, side_file_to_json, with_side_file
from dualcoll.lowering.msccl.to_schedule import to_schedule
from dualcoll.lowering.msccl.validate import validate
from dualcoll.lowering.msccl.write import msccl_text
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.schedules.validate import validate as validate_schedule
from dualcoll.simulation import simulate

__all__ = ["read_again", "step_types", "times", "tree_schedules"]


def read_again(schedule: Schedule, *, target: str = "msccl", **options: Any) -> tuple[Lowered, Schedule]:
    """What a schedule is lowered to, and the valid schedule that is read from it, whose results are right."""
    lowered = to_msccl(schedule, target=target, **options)
    program = parse_msccl(msccl_text(lowered.program).encode(), "a.xml")
    validate(program, target=target)
    again = to_schedule(program, schedule.size)
    validate_schedule(again)
    execute(again, element=Element.INT64, elements=2)
    if schedule.topology is None:
        return lowered, again
    side = side_file_from_json(json.loads(json.dumps(side_file_to_json(lowered.side))))
    routed = with_side_file(again, side, schedule.topology)
    validate_schedule(routed)
    return lowered, routed


def times(schedule: Schedule, **options: Any) -> tuple[float, float]:
    """The schedule's simulated time, and that of what is read again."""
    return simulate(schedule).finish, simulate(read_again(schedule, **options)[1]).finish


def step_types(program: Program) -> Counter[str]:
    """How many steps of each type there are."""
    return Counter(str(step.type) for *_, step in program.steps())


@st.composite
def tree_schedules(draw: st.DrawFn) -> Schedule:
    """Chunks that each take a random tree of their own, over random channels: allreduce, broadcast, reduce or allgather."""
    ranks, pieces = draw(st.integers(2, 5)), draw(st.integers(1, 4))
    collective = draw(st.sampled_from(["allreduce", "broadcast", "reduce", "allgather"]))
    contract = make_contract(collective, ranks, pieces=pieces)
    builder = ScheduleBuilder(contract, 16, name="random")
    rows: list[tuple[int, tuple[int, int, int, Op, int]]] = []
    for chunk in range(contract.chunks):
        root = max(int(contract.source[chunk]), 0)
        order = [root, *draw(st.permutations([rank for rank in range(ranks) if rank != root]))]
        parent = {rank: order[draw(st.integers(0, i))] for i, rank in enumerate(order[1:])}
        channel = draw(st.integers(0, 1))
        delay = draw(st.integers(0, 3))
        if collective in ("allreduce", "reduce"):
            rows += [
                (delay + i, (rank, parent[rank], chunk, Op.REDUCE, channel))
                for i, rank in enumerate(reversed(order[1:]))
            ]
        if collective != "reduce":
            rows += [
                (delay + ranks + i, (parent[rank], rank, chunk, Op.COPY, channel)) for i, rank in enumerate(order[1:])
            ]
    for _, (src, dst, chunk, op, channel) in sorted(rows, key=lambda row: row[0]):
        builder.send(src, dst, chunk, op, channel=channel)
    return builder.build()
