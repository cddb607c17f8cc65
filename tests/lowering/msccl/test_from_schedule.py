"""Schedules as MSCCL programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.classical import all_to_all, halving_doubling, ring, tree
from dualcoll.collectives.contract import make_contract
from dualcoll.errors import CheckFailed, InputError
from dualcoll.lowering.msccl.from_schedule import to_msccl
from dualcoll.lowering.msccl.program import Buffer, Program, StepType, ThreadBlock
from dualcoll.lowering.msccl.to_schedule import to_schedule
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.schedules.routed import routed
from dualcoll.topology.catalog import catalog
from tests.lowering.msccl.programs import VALID
from tests.lowering.msccl.round_trip import read_again, step_types, times, tree_schedules
from tests.schedules.samples import swap

SIZE = 5 * 8 * 2**14

CLASSICAL: dict[str, Callable[[int], Schedule]] = {
    "ring allreduce": lambda ranks: ring.ring_all_reduce(ranks, SIZE),
    "two rings": lambda ranks: ring.ring_all_reduce(ranks, SIZE, [range(ranks), range(ranks)[::-1]]),
    "ring allgather": lambda ranks: ring.ring_all_gather(ranks, SIZE),
    "ring reducescatter": lambda ranks: ring.ring_reduce_scatter(ranks, SIZE),
    "chain broadcast": lambda ranks: ring.chain_broadcast(ranks, SIZE, pieces=8),
    "tree allreduce": lambda ranks: tree.tree_all_reduce(ranks, SIZE, 8),
    "double tree": lambda ranks: tree.double_tree_all_reduce(ranks, SIZE, 8),
    "tree broadcast": lambda ranks: tree.tree_broadcast(ranks, SIZE, pieces=8),
    "tree reduce": lambda ranks: tree.tree_reduce(ranks, SIZE, pieces=8),
    "halving-doubling allreduce": lambda ranks: halving_doubling.halving_doubling_all_reduce(ranks, SIZE),
    "doubling allgather": lambda ranks: halving_doubling.doubling_all_gather(ranks, SIZE),
    "halving reducescatter": lambda ranks: halving_doubling.halving_reduce_scatter(ranks, SIZE),
    "alltoall": lambda ranks: all_to_all.pairwise_all_to_all(ranks, SIZE),
}


def line(collective: str, ranks: int, **more: int) -> ScheduleBuilder:
    """A builder of chunks of 16 bytes."""
    return ScheduleBuilder(make_contract(collective, ranks, **more), 16, name="line")


def steps_of(block: ThreadBlock) -> list[tuple[str, Buffer, int, Buffer, int]]:
    """Type and places of each step."""
    return [(str(step.type), step.srcbuf, step.srcoff, step.dstbuf, step.dstoff) for step in block.steps]


@pytest.mark.parametrize("ranks", [5, 8])
@pytest.mark.parametrize("make", CLASSICAL.values(), ids=CLASSICAL)
def test_classical_schedules_take_the_same_time(make: Callable[[int], Schedule], ranks: int) -> None:
    """What is read again is valid, moves data right, and takes exactly the schedule's time, in place or not."""
    schedule = routed(make(ranks), catalog(f"star:{ranks}"))
    for target in ("msccl", "rccl"):
        for inplace in (None, False):
            before, after = times(schedule, target=target, inplace=inplace)
            assert after == before


@given(tree_schedules(), st.sampled_from(["msccl", "rccl"]), st.booleans(), st.booleans())
@settings(max_examples=100)
def test_random_trees_become_valid_programs(schedule: Schedule, target: str, inplace: bool, coarse: bool) -> None:
    """Chunks on any trees and channels become programs without deadlock at depth 2, races or wrong results."""
    read_again(schedule, target=target, inplace=inplace, coarse=coarse)


def test_ring_is_one_block_of_fused_steps() -> None:
    """Around a ring a rank sends once, passes on what it hears in the step that receives it, and keeps partial sums nowhere."""
    program = to_msccl(ring.ring_all_reduce(4, 4 * 64)).program
    assert [len(gpu.blocks) for gpu in program.gpus] == [1] * 4
    for gpu in program.gpus:
        types = [str(step.type) for step in gpu.blocks[0].steps]
        assert types == ["s", "rrs", "rrs", "rrcs", "rcs", "rcs", "r"]
        assert all(step.depid == -1 and not step.hasdep for step in gpu.blocks[0].steps)


def test_merging_rank_waits_for_the_other_child() -> None:
    """Of two children's sums one is added and kept, the other added and sent on, and the second step waits for the first."""
    builder = line("reduce", 4)
    for src, dst in ((2, 1), (3, 1), (1, 0)):
        builder.send(src, dst, 0, Op.REDUCE)
    gpu = to_msccl(builder.build()).program.gpus[1]
    fused, plain = gpu.blocks
    assert steps_of(fused) == [("rrs", Buffer.INPUT, 0, Buffer.INPUT, 0)]
    assert steps_of(plain) == [("rrc", Buffer.INPUT, 0, Buffer.INPUT, 0)]
    assert (fused.send, fused.recv, plain.send, plain.recv) == (0, 3, -1, 2)
    assert (fused.steps[0].depid, fused.steps[0].deps) == (1, 0)
    assert plain.steps[0].hasdep


def test_further_dependencies_are_nops() -> None:
    """A step waits for one other; all more are nops before it, the last dependency being its own."""
    builder = line("broadcast", 5, pieces=3)
    for chunk, relay in enumerate((1, 2, 3)):
        builder.send(0, relay, chunk)
        builder.send(relay, 4, chunk, channel=1)
    builder.send(4, 1, 1, channel=2, after=[1, 3, 5])
    builder.send(4, 1, 2, channel=2)
    for rank in (2, 3):
        for chunk in range(3):
            if chunk != rank - 1:
                builder.send(0, rank, chunk, channel=3)
    lowered, _ = read_again(builder.build())
    sending = next(block for block in lowered.program.gpus[4].blocks if block.send == 1)
    first = [step.type for step in sending.steps[:3]]
    assert first == [StepType.NOP, StepType.NOP, StepType.SEND]
    assert all(step.depid >= 0 for step in sending.steps[:3])
    assert all(step.cnt == 0 and step.srcoff == -1 for step in sending.steps[:2])


def test_out_of_place_leaves_the_input_alone() -> None:
    """No step writes the input; what a rank begins and ends with is copied; sums start from the input."""
    for schedule in (ring.ring_all_reduce(4, 256), ring.ring_all_gather(4, 256), tree.tree_all_reduce(5, 160, 2)):
        program = read_again(schedule, inplace=False)[0].program
        assert (program.inplace, program.outofplace) == (False, True)
        assert not [step for *_, step in program.steps() if step.type.writes and step.dstbuf is Buffer.INPUT]
    gathering = to_msccl(ring.ring_all_gather(4, 256), inplace=False).program
    for rank, gpu in enumerate(gathering.gpus):
        assert steps_of(gpu.blocks[-1]) == [("cpy", Buffer.INPUT, 0, Buffer.OUTPUT, rank)]
        assert (gpu.i_chunks, gpu.o_chunks, gpu.s_chunks) == (1, 4, 0)


def test_relays_keep_data_in_scratch() -> None:
    """A rank that passes on what is not for it receives and sends in one step, by way of scratch."""
    contract = make_contract("alltoall", 3)
    builder = ScheduleBuilder(contract, 16)
    for src in range(3):
        for dst in range(3):
            chunk = 3 * src + dst
            if {src, dst} == {0, 2}:
                builder.send(src, 1, chunk, channel=1)
                builder.send(1, dst, chunk, channel=1)
            elif src != dst:
                builder.send(src, dst, chunk)
    program = read_again(builder.build())[0].program
    passed = [step for *_, step in program.steps() if step.type is StepType.RECV_COPY_SEND]
    assert [step.dstbuf for step in passed] == [Buffer.SCRATCH] * 2
    assert [gpu.s_chunks for gpu in program.gpus] == [0, 2, 0]


def test_local_steps() -> None:
    """Sums in scratch are added by steps without peers, after a copy to the output where the input must stay."""
    for inplace, types in ((True, {"s": 2, "r": 2, "re": 2}), (False, {"s": 2, "r": 2, "cpy": 2, "re": 2})):
        program = read_again(swap(), inplace=inplace)[0].program
        assert {name: count for name, count in step_types(program).items() if name != "nop"} == types


def test_pieces_for_one_rank_travel_together() -> None:
    """Pieces that nobody passes on are one message with a count; more than the executor's limit are several."""
    for pieces, counts in ((5, [5]), (100, [71, 29])):
        builder = line("alltoall", 2, pieces=pieces)
        for src in range(2):
            first = (2 * src + 1 - src) * pieces
            builder.extend(src, 1 - src, np.arange(first, first + pieces))
        program = read_again(builder.build())[0].program
        sent = [step.cnt for g, _, _, step in program.steps() if g == 0 and step.type is StepType.SEND]
        assert sent == counts


def test_coarse_messages() -> None:
    """Sends of a round are one message if asked for, and what that changes is said."""
    schedule = halving_doubling.halving_doubling_all_reduce(8, SIZE)
    fine, coarse = to_msccl(schedule), read_again(schedule, coarse=True)[0]
    assert max(step.cnt for *_, step in fine.program.steps()) == 1
    assert max(step.cnt for *_, step in coarse.program.steps()) == 4
    assert fine.notes == ()
    assert coarse.notes == (
        "32 messages are of several chunks, which go on when all are there; the schedule passes them on one by one",
    )


def test_chunks_of_several_sizes_are_counted_in_the_smallest() -> None:
    """A chunk that is three times another is a step of three chunks; rounding to blocks of 16 bytes does no harm."""
    builder = ScheduleBuilder(make_contract("broadcast", 2, pieces=3), [1040, 3072, 2048])
    builder.extend(0, 1, np.arange(3), channel=np.arange(3))
    program = to_msccl(builder.build()).program
    assert program.nchunksperloop == 6
    assert sorted(step.cnt for *_, step in program.steps() if step.type is StepType.SEND) == [1, 2, 3]


def test_channels_are_renumbered() -> None:
    """Channels become 0, 1, …; more than there are share those on which they do not meet."""
    schedule = ring.ring_all_gather(4, 256)
    spread = replace(schedule, channel=schedule.channel + 7)
    assert to_msccl(spread).program.nchannels == 1
    apart = replace(schedule, channel=np.arange(schedule.sends, dtype=np.int32) * 5)
    program = read_again(apart)[0].program
    assert program.nchannels == 12
    builder = line("alltoall", 7)
    src, dst = np.divmod(np.arange(49), 7)
    away = src != dst
    builder.extend(src[away], dst[away], np.flatnonzero(away), channel=np.arange(42))
    assert read_again(builder.build())[0].program.nchannels == 1


def test_connections_share_blocks_where_blocks_are_few() -> None:
    """Where a GPU has fewer blocks than connections, sends and receives of a channel take turns in one, and a note says so."""
    builder = line("alltoall", 8, pieces=8)
    src, dst = np.divmod(np.arange(64), 8)
    for piece in range(8):
        away = np.flatnonzero(src != dst)
        builder.extend(src[away], dst[away], away * 8 + piece, channel=piece)
    schedule = builder.build()
    assert to_msccl(schedule).notes == ()
    lowered, _ = read_again(schedule, target="rccl")
    assert max(len(gpu.blocks) for gpu in lowered.program.gpus) <= 64
    assert lowered.notes == (
        "8 GPUs have too few thread blocks for each connection to have one of its own: what they send and receive on one "
        "channel takes turns, which takes its own time",
    )


def test_exceeded_steps_are_named() -> None:
    """Too many steps in a block are refused with the place, the limit and the way out; the roomier executor takes them."""
    many = ring.chain_broadcast(3, 16 * 65, pieces=65)
    with pytest.raises(CheckFailed) as caught:
        to_msccl(many, target="rccl")
    assert str(caught.value) == "\n".join(
        f"gpu {g}, tb 0 needs 65 steps; RCCL takes up to 64: use fewer chunks, or --target msccl" for g in range(3)
    )
    assert max(len(block.steps) for gpu in to_msccl(many).program.gpus for block in gpu.blocks) == 65


def test_exceeded_channels_are_named() -> None:
    """Too many channels between two ranks are refused with both and the ways out."""
    builder = line("broadcast", 2, pieces=33)
    builder.extend(0, 1, np.arange(33), channel=np.arange(33))
    with pytest.raises(CheckFailed) as caught:
        to_msccl(builder.build())
    assert str(caught.value) == (
        "33 channels, 33 of them from rank 0 to rank 1; microsoft/msccl has up to 32: plan fewer trees (--max-trees), or let "
        "trees share channels (dualcoll.lowering.shared_channels.share_channels)"
    )


def test_exceeded_blocks_are_named() -> None:
    """More connections than thread blocks are refused with the GPU and the ways out."""
    builder = line("alltoall", 8, pieces=10)
    src, dst = np.divmod(np.arange(64), 8)
    for piece in range(10):
        away = np.flatnonzero(src != dst)
        builder.extend(src[away], dst[away], away * 10 + piece, channel=piece)
    with pytest.raises(CheckFailed) as caught:
        to_msccl(builder.build(), target="rccl")
    assert caught.value.findings[0] == (
        "gpu 0 needs 71 thread blocks; RCCL takes up to 64: plan fewer trees (--max-trees), or --target msccl"
    )


def test_exceeded_counts_are_named() -> None:
    """A chunk too large for one step is refused."""
    builder = ScheduleBuilder(make_contract("broadcast", 2, pieces=2), [64, 64 * 72])
    builder.extend(0, 1, np.arange(2))
    with pytest.raises(CheckFailed) as caught:
        to_msccl(builder.build())
    assert caught.value.findings == (
        "gpu 0, tb 0, step 1 has cnt 72; microsoft/msccl takes up to 71: cut the data into chunks that differ less",
        "gpu 1, tb 0, step 1 has cnt 72; microsoft/msccl takes up to 71: cut the data into chunks that differ less",
    )


def with_root(root: int) -> Schedule:
    return tree.tree_broadcast(4, 64, root, pieces=2)


def odd_chunks() -> Schedule:
    builder = ScheduleBuilder(make_contract("broadcast", 2, pieces=2), [10007, 10103])
    builder.extend(0, 1, np.arange(2))
    return builder.build()


def uneven_shards() -> Schedule:
    builder = ScheduleBuilder(make_contract("allgather", 2), [64, 128])
    builder.extend([0, 1], [1, 0], [0, 1])
    return builder.build()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            partial(to_msccl, ring.ring_all_reduce(4, 64), target="nccl"),
            "target 'nccl' is not known; use one of msccl, rccl",
        ),
        (
            partial(to_msccl, ring.ring_all_reduce(4, 64), proto="LL256"),
            "proto: protocol 'LL256' is not known; use one of Simple, LL, LL128",
        ),
        (
            partial(to_msccl, ring.ring_all_reduce(4, 64), min_bytes=9, max_bytes=8),
            "min_bytes: 9 to 8 bytes is no range of sizes; 0 as the upper end is no limit",
        ),
        (
            partial(to_msccl, with_root(1)),
            "contract: the root is rank 1; the format has no place for a root, and executors take rank 0; name the root first "
            "among the ranks",
        ),
        (
            partial(to_msccl, all_to_all.pairwise_all_to_all(4, 256), inplace=True),
            "inplace: in place: AllToAll would overwrite what is yet to be sent; write it out of place",
        ),
        (
            partial(to_msccl, odd_chunks()),
            "chunk_size: chunks of 10007 to 10103 bytes are no multiples of one size up to 71 times; cut the plan into equal "
            "chunks (dualcoll.lowering.chunk_counts.equal_chunks)",
        ),
        (
            partial(to_msccl, uneven_shards()),
            "contract: shards of 1 to 2 chunks; those of a file are equal; use a collective with equal shards",
        ),
        (
            partial(to_msccl, ring.ring_all_reduce(8, 4)),
            "chunk 0: it has no bytes; take a larger message",
        ),
    ],
)
def test_what_the_format_cannot_say(call: Callable[[], object], text: str) -> None:
    """Refused with what is wrong, where, and what to do."""
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == text


def test_dependencies_across_gpus_are_refused() -> None:
    """A send cannot wait for one between two other ranks, as steps wait for steps of their GPU."""
    builder = line("alltoall", 4)
    builder.send(0, 1, 1)
    builder.send(2, 3, 11, after=[0])
    with pytest.raises(InputError) as caught:
        to_msccl(builder.build())
    assert str(caught.value) == (
        "send 1 (rank 2 -> 3, chunk 11): it depends on send 0 (rank 0 -> 1, chunk 1), of other ranks; steps of a program can "
        "wait for steps of the same GPU only"
    )


def test_attributes() -> None:
    """Name, protocol and sizes are the caller's, and each executor's own word for ReduceScatter is used."""
    schedule = ring.ring_reduce_scatter(4, 256)
    program = to_msccl(schedule, name="mine", proto="LL128", min_bytes=64, max_bytes=4096).program
    assert (program.name, program.proto, program.min_bytes, program.max_bytes) == ("mine", "LL128", 64, 4096)
    assert (program.coll, to_msccl(schedule, target="rccl").program.coll) == ("reduce_scatter", "reducescatter")
    assert to_msccl(schedule).program.name == "ring"


@pytest.mark.parametrize("of", VALID.values(), ids=VALID)
def test_programs_are_lowered_again(of: Program) -> None:
    """What was read from a program, with messages that land in scratch and local steps, becomes one that takes as long."""
    read = to_schedule(of, of.nchunksperloop * 64)
    schedule = routed(read, catalog(f"star:{of.ngpus}"))
    for inplace in (None, False):
        before, after = times(schedule, inplace=inplace)
        assert after == before
