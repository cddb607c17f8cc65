"""Schedules to MSCCL++ plans and back: written, read again, validated by a validator of their own, executed."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualcoll as dc
from dualcoll.classical.all_to_all import direct_all_to_all, direct_gather, pairwise_all_to_all
from dualcoll.classical.bruck import bruck_all_gather, bruck_all_to_all
from dualcoll.classical.halving_doubling import halving_doubling_all_reduce
from dualcoll.classical.hierarchical import balanced_all_reduce
from dualcoll.classical.ring import chain_broadcast, ring_all_gather, ring_all_reduce, ring_reduce_scatter
from dualcoll.classical.tree import tree_all_reduce
from dualcoll.collectives.contract import make_contract
from dualcoll.errors import InputError
from dualcoll.execution.in_process import execute
from dualcoll.lowering.mscclpp import Plan, from_schedule, inspect, plan_from_bytes, plan_to_json, to_schedule
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.schedules.routed import routed
from dualcoll.schedules.validate import validate
from tests.schedules.samples import swap

KB = 2**10
MAKERS: dict[str, Callable[[int], Schedule]] = {
    "ring all-reduce": lambda ranks: ring_all_reduce(ranks, 64 * KB * ranks),
    "ring all-gather": lambda ranks: ring_all_gather(ranks, 64 * KB * ranks),
    "ring reduce-scatter": lambda ranks: ring_reduce_scatter(ranks, 64 * KB * ranks),
    "chain broadcast": lambda ranks: chain_broadcast(ranks, 64 * KB, ranks - 1, 4),
    "direct all-to-all": lambda ranks: direct_all_to_all(ranks, 64 * KB * ranks),
    "pairwise all-to-all": lambda ranks: pairwise_all_to_all(ranks, 64 * KB * ranks),
    "Bruck all-to-all": lambda ranks: bruck_all_to_all(ranks, 64 * KB * ranks),
    "Bruck all-gather": lambda ranks: bruck_all_gather(ranks, 64 * KB * ranks),
    "tree": lambda ranks: tree_all_reduce(ranks, 64 * KB, 4),
    "all pairs": lambda ranks: all_pairs(ranks),
}


def all_pairs(ranks: int) -> Schedule:
    """Every rank gets its chunk from all others, adds, and sends the sum to all: an all-reduce in two steps."""
    builder = ScheduleBuilder(make_contract("allreduce", ranks, pieces=ranks), 64 * KB, name="all pairs")
    src, dst = np.divmod(np.arange(ranks**2), ranks)
    away = src != dst
    builder.extend(src[away], dst[away], dst[away], Op.REDUCE)
    builder.extend(src[away], dst[away], src[away])
    return builder.build()


def written(schedule: Schedule) -> Plan:
    """The plan, by way of its file, without faults or warnings."""
    plan = from_schedule(schedule)
    again = plan_from_bytes(plan_to_json(plan).encode(), "plan.json")
    assert again == replace(plan, notes=())
    report = inspect(again)
    assert (report.faults, report.warnings) == ((), ())
    return again


def sound(schedule: Schedule) -> Schedule:
    """The plan's schedule, which is right and gives the right numbers."""
    plan = written(schedule)
    shard = 16 * max(plan.gpus[0].input_chunks, plan.gpus[0].output_chunks)
    again = to_schedule(plan, shard * 4)
    validate(again)
    execute(again)
    assert again.contract.collective == schedule.contract.collective
    return again


@pytest.mark.parametrize("ranks", [4, 7, 8])
@pytest.mark.parametrize("name", MAKERS)
def test_classical(name: str, ranks: int) -> None:
    """Classical algorithms become plans that are valid and give the right numbers."""
    schedule = MAKERS[name](ranks)
    again = sound(schedule)
    assert np.sum(again.src != again.dst) == np.sum(schedule.src != schedule.dst)


def test_two_ways() -> None:
    """Recursive halving and doubling, in which a rank's peers change from step to step."""
    sound(halving_doubling_all_reduce(8, 64 * KB))


def test_local_sends() -> None:
    """Copies and reductions within a rank, and scratch slots of the schedule itself."""
    sound(swap())


def test_boxes() -> None:
    """Ranks of one box use memory channels, those of two boxes port channels, as the topology says."""
    topology = dc.catalog("dgx-h100", boxes=2)
    boxes = [list(range(8)), list(range(8, 16))]
    plan = written(routed(balanced_all_reduce(boxes, 64 * KB * 16), topology, topology.ranks))
    assert all(peer // 8 == g // 8 for g, gpu in enumerate(plan.gpus) for peer in gpu.memory)
    assert all(peer // 8 != g // 8 for g, gpu in enumerate(plan.gpus) for peer in gpu.port)
    assert all(gpu.port for gpu in plan.gpus)


@pytest.mark.parametrize("collective", ["allreduce", "allgather", "reducescatter", "broadcast", "alltoall"])
def test_plans(collective: str) -> None:
    """A certified plan of a DGX H100, cut into pieces; rounding its shares to equal chunks changes none by more than 1 %."""
    plan = dc.plan(dc.catalog("dgx-h100"), collective, size="16MiB", stop=dc.Seconds(2))
    schedule = dc.schedule(plan, chunks=16)
    sound(schedule)
    for note in from_schedule(schedule).notes:
        assert note.startswith("chunks are rounded to equal ones, by which one becomes ")


def test_same_time() -> None:
    """A ring takes the same simulated time after the way through a plan."""
    topology = dc.catalog("dgx-h100")
    first = ring_all_reduce(8, 2**26)
    second = to_schedule(written(first), 2**26)
    times = [dc.simulate(routed(one, topology, topology.ranks)).rank_finish.max() for one in (first, second)]
    assert times[1] == pytest.approx(times[0], rel=1e-12)


def test_buffers() -> None:
    """Input and output overlap as the collective has it; an all-to-all has both, and keeps its own part."""
    gather, scatter = (written(MAKERS[name](4)).gpus[0] for name in ("ring all-gather", "ring reduce-scatter"))
    assert (gather.input_chunks, gather.output_chunks, gather.scratch_chunks) == (1, 4, 0)
    assert (scatter.input_chunks, scatter.output_chunks, scatter.scratch_chunks) == (4, 1, 3)
    exchange = written(MAKERS["direct all-to-all"](4))
    assert not exchange.in_place
    assert [op.name for op in exchange.gpus[2].blocks[-1].ops] == ["copy"]


def test_uneven_chunks() -> None:
    """Chunks whose sizes have no common measure become so many equal ones that none grows by more than half a percent."""
    contract = make_contract("broadcast", 2, pieces=3)
    builder = ScheduleBuilder(contract, [1_000_003, 999_983, 500_009])
    builder.extend([0, 0, 0], [1, 1, 1], [0, 1, 2])
    plan = from_schedule(builder.build())
    assert [op.src[0].size for op in plan.gpus[0].blocks[0].ops if op.name == "put"] == [2, 2, 1]
    assert plan.notes == ("chunks are rounded to equal ones, by which one becomes 1.5e-05 larger than it was",)


def test_empty_chunks() -> None:
    """Nothing is put for an empty chunk, but who waits for it does."""
    builder = ScheduleBuilder(make_contract("broadcast", 3, pieces=2), [64, 0])
    builder.extend([0, 0, 1, 1], [1, 1, 2, 2], [0, 1, 0, 1])
    plan = written(builder.build())
    assert sum(op.name == "put" for op in plan.operations()) == 2


@st.composite
def exchanges(draw: st.DrawFn) -> Schedule:
    """Broadcast or all-reduce along random trees, each piece by a tree and on a channel of its own."""
    ranks, pieces = draw(st.integers(2, 6)), draw(st.integers(1, 5))
    reduces = draw(st.booleans())
    contract = make_contract("allreduce" if reduces else "broadcast", ranks, pieces=pieces)
    builder = ScheduleBuilder(contract, 64)
    for piece in range(pieces):
        order = draw(st.permutations(range(1, ranks)))
        order = [0, *order]
        up = [draw(st.integers(0, i - 1)) for i in range(1, ranks)]
        channel = draw(st.integers(0, 2))
        if reduces:
            for i in range(ranks - 1, 0, -1):
                builder.send(order[i], order[up[i - 1]], piece, Op.REDUCE, channel=channel)
        for i in range(1, ranks):
            builder.send(order[up[i - 1]], order[i], piece, channel=channel)
    return builder.build()


@settings(max_examples=40, deadline=None)
@given(exchanges())
def test_random_trees(schedule: Schedule) -> None:
    """Whatever the trees and channels are."""
    sound(schedule)


@pytest.mark.parametrize("name", ["ring all-reduce", "tree", "all pairs"])
def test_no_op_too_many(name: str) -> None:
    """Without any one of the ops but ``nop`` the plan has a fault."""
    data = json.loads(plan_to_json(written(MAKERS[name](4))))
    for b, block in enumerate(data["gpus"][1]["threadblocks"]):
        for o, op in enumerate(block["ops"]):
            if op["name"] == "nop":
                continue
            damaged = deepcopy(data)
            damaged["gpus"][1]["threadblocks"][b]["ops"].pop(o)
            assert inspect(plan_from_bytes(json.dumps(damaged).encode(), "plan.json")).faults, (b, o, op)


def two_groups() -> Schedule:
    from dualcoll.collectives.contract import joint_contract

    pair = make_contract("broadcast", 2)
    builder = ScheduleBuilder(joint_contract(4, [(pair, [0, 1]), (pair, [2, 3])]), 64)
    builder.extend([0, 2], [1, 3], [0, 1])
    return builder.build()


def uneven_shards() -> Schedule:
    builder = ScheduleBuilder(make_contract("allgather", 2), [64, 128])
    builder.extend([0, 1], [1, 0], [0, 1])
    return builder.build()


def too_many(pieces: int) -> Schedule:
    builder = ScheduleBuilder(make_contract("broadcast", 2, pieces=pieces), 64)
    builder.extend(0, 1, np.arange(pieces))
    return builder.build()


REFUSED: dict[str, Callable[[], Schedule]] = {
    "MSCCL++ plans have no buffers for Gather; it has AllReduce, AllGather, ReduceScatter, Broadcast, AllToAll, among all "
    "ranks": lambda: direct_gather(4, 1024),
    "MSCCL++ plans have no buffers for several groups; it has AllReduce, AllGather, ReduceScatter, Broadcast, AllToAll, among "
    "all ranks": two_groups,
    "contract: shards of 64 B to 128 B; MSCCL++ plans have shards of one size": uneven_shards,
    "schedule: rank 0 needs 134 thread blocks, and 108 can run at once; use fewer chunks, trees or channels": lambda: (
        too_many(2000)
    ),
    "schedule: 4096 sends are more than 108 thread blocks of a GPU can do; use fewer chunks, trees or channels": (
        lambda: too_many(4096)
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_refused(sentence: str) -> None:
    """What does not map is refused, with the reason and the way out."""
    with pytest.raises(InputError) as caught:
        from_schedule(REFUSED[sentence]())
    assert str(caught.value).removeprefix("collective: ") == sentence
