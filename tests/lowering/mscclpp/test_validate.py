"""The validator of MSCCL++ execution plans: sound plans pass, and every fault is told with its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dualcoll.errors import CheckFailed, InputError
from dualcoll.lowering.mscclpp import inspect, validate
from tests.lowering.mscclpp.plans import (
    NOP,
    SIGNAL,
    SOUND,
    WAIT,
    Data,
    circle,
    faults,
    gpu,
    handed_on,
    op,
    ops_of,
    packets,
    plan,
    puts,
    read,
    reads,
    switched,
)


@pytest.mark.parametrize("name", SOUND)
def test_sound(name: str) -> None:
    """Plans that work have neither faults nor warnings."""
    report = inspect(read(SOUND[name]()))
    assert (report.faults, report.warnings) == ((), ())


def test_facts() -> None:
    """A report says collective, ranks, protocol and channels; ``validate`` raises the faults."""
    assert validate(read(puts("port"))).facts == (
        "AllReduce over 2 GPUs, Simple, in place, 2 port channels, 1 thread block per GPU"
    )
    data = reads()
    data["gpus"][0]["threadblocks"][0]["ops"].pop()
    with pytest.raises(CheckFailed, match="2 signals to it and 1 waits"):
        validate(read(data))


@pytest.mark.parametrize("name", SOUND)
def test_every_op_is_needed(name: str) -> None:
    """Without any one of its ops a plan has a fault, or a warning about launches in a row; but for three needless ``nop``."""
    needless = {("puts through ports", 2), ("puts through ports", 5), ("handed on", 2)}
    for g, b, ops in ops_of(SOUND[name]()):
        for o, one in enumerate(ops):
            data = SOUND[name]()
            data["gpus"][g]["threadblocks"][b]["ops"].pop(o)
            report = inspect(read(data))
            wanted = (name, o) not in needless or one["name"] != "nop" or b != 0
            assert bool(report.faults or report.warnings) == wanted, (g, b, o, one)


def _first(data: Data) -> Any:
    return data["gpus"][0]["threadblocks"][0]


def _set(path: str, value: object) -> Callable[[Data], None]:
    """Put a value at a path such as ``gpus.0.id``."""

    def change(data: Data) -> None:
        here: Any = data
        *keys, last = [int(key) if key.isdigit() else key for key in path.split(".")]
        for key in keys:
            here = here[key]
        here[last] = value

    return change


BLOCK = "gpus.0.threadblocks.0"
STRUCTURE = [
    (_set("gpus.0.id", 3), "gpu 0: its id is 3; the executor takes GPUs in the order of their ids"),
    (
        _set(f"{BLOCK}.id", 3),
        "gpu 0, thread block 0: its id is 3; the executor takes thread blocks in the order of their ids",
    ),
    (
        _set("gpus.1.output_chunks", 4),
        "gpu 1: it has 2 input and 4 output chunks, gpu 0 has 2 and 2: their chunks differ in size",
    ),
    (
        _set("gpus.0.channels.0.connected_to", [2]),
        "gpu 0: memory channel 0 goes to gpu 2, which is no other one of 0 .. 1",
    ),
    (
        _set("gpus.0.remote_buffers.0.access_channel_types", ["port"]),
        "gpu 0, thread block 0: remote buffer 0 is not reached by memory, only by port",
    ),
    (
        _set(f"{BLOCK}.channels.0.channel_ids", [4]),
        "gpu 0, thread block 0: the gpu has no memory channel 4, only 1",
    ),
    (
        _set(f"{BLOCK}.ops.0.channel_ids", [1]),
        "gpu 0, thread block 0, op 0 (signal): the thread block has no memory channel 1, only 1",
    ),
    (
        _set(f"{BLOCK}.ops.0.channel_ids", [0] * 9),
        "gpu 0, thread block 0, op 0 (signal): 9 channels are more than 8; use one op for each 8",
    ),
    (
        _set(f"{BLOCK}.ops", [NOP] * 65),
        "gpu 0, thread block 0: 65 ops are more than 64; spread them over more thread blocks",
    ),
    (
        _set(f"{BLOCK}.channels.0.channel_ids", [0] * 17),
        "gpu 0, thread block 0: 17 memory channels are more than 16; spread the peers over more thread blocks",
    ),
    (
        _set(f"{BLOCK}.ops.3.src_buff.1.buffer_id", 1),
        "gpu 0, thread block 0, op 3 (rres): source 1: the thread block has no remote buffer 1 reached by memory, only 1",
    ),
    (
        _set(f"{BLOCK}.ops.3.src_buff.1.index", 2),
        "gpu 0, thread block 0, op 3 (rres): source 1: chunks 2 .. 2 are beyond the 2 of buffer 'i'",
    ),
    (
        _set(f"{BLOCK}.ops.3.dst_buff.1.size", 2),
        "gpu 0, thread block 0, op 3 (rres): its operands differ in size: 1, 1, 1, 2 chunks",
    ),
    (
        _set(f"{BLOCK}.ops.3.channel_type", "port"),
        "gpu 0, thread block 0, op 3 (rres): channel_type 'port' is not memory",
    ),
    (
        _set(f"{BLOCK}.ops.3.src_buff", [{"type": "i", "index": 0, "size": 1}]),
        "gpu 0, thread block 0, op 3 (rres): it has 1 sources, not 2 or more",
    ),
    (
        _set(f"{BLOCK}.ops.3.tbg_info", {"tb_id": 2, "tbg_size": 2}),
        "gpu 0, thread block 0, op 3 (rres): it is part 2 of 2",
    ),
    (
        _set(f"{BLOCK}.ops.2", op("sem_acquire", semaphore_ids=[0])),
        "gpu 0, thread block 0, op 2 (sem_acquire): the gpu has no semaphore 0, only 0",
    ),
    (
        _set(f"{BLOCK}.ops.2", op("barrier", barrier_id=16, num_threadblocks=1)),
        "gpu 0, thread block 0, op 2 (barrier): there is no barrier 16, only 0 .. 15",
    ),
    (
        _set(f"{BLOCK}.ops.2", op("barrier", barrier_id=1, num_threadblocks=2)),
        "gpu 0: barrier 1 is for 2 thread blocks, and 1 come to it",
    ),
    (_set("buffer_alignment", 8), "buffer_alignment 8 is not a multiple of 16, by which reductions address data"),
    (_set("num_threads_per_block", 2048), "num_threads_per_block 2048 is not in 1 .. 1024"),
]


@pytest.mark.parametrize(("damage", "sentence"), STRUCTURE)
def test_structure(damage: Callable[[Data], None], sentence: str) -> None:
    """Numbers that name nothing, and limits of the device plan."""
    data = reads()
    damage(data)
    assert sentence in faults(data)


def test_port_channel_and_buffer_of_two_peers() -> None:
    """A put through a port channel writes a buffer of the peer that the channel goes to."""
    data = puts("port")
    third = gpu(2, [[]], (2, 2, 2), 0, kind="port")
    data["gpus"].append(third | {"channels": [], "remote_buffers": [], "threadblocks": []})
    data["gpus"][0]["remote_buffers"][0]["rank"] = 2
    assert faults(data) == ("gpu 0, thread block 0, op 3 (pws): channel 0 goes to gpu 1, the buffer is of gpu 2",)


def test_buffer_ids_are_the_blocks_own() -> None:
    """``buffer_id`` counts the thread block's references, not the GPU's buffers."""
    data = reads()
    for one in data["gpus"]:
        one["remote_buffers"].insert(0, {"rank": 1 - one["id"], "type": "o", "access_channel_types": ["memory"]})
        one["threadblocks"][0]["remote_buffer_refs"][0]["remote_buffer_ids"] = [1]
    assert faults(data) == ()


def test_signals_without_waits() -> None:
    """Signals and waits of a channel are as many at both ends."""
    data = reads()
    data["gpus"][0]["threadblocks"][0]["ops"].pop()
    assert faults(data) == (
        "memory channel 0 of gpu 0: 2 signals to it and 1 waits; the next launch takes the signals of this one",
    )
    data["gpus"][1]["threadblocks"][0]["ops"][5:] = []
    assert faults(data) == (
        "memory channel 0 of gpu 1: 2 signals to it and 1 waits; the next launch takes the signals of this one",
    )


def test_channel_without_other_end() -> None:
    """The k-th channel of one GPU to another pairs with the k-th back."""
    data = reads()
    data["gpus"][1]["channels"] = []
    data["gpus"][1]["threadblocks"][0] |= {"channels": [], "ops": []}
    assert faults(data) == (
        "the missing other end of memory channel 0 of gpu 0: 2 signals to it and 0 waits; the next launch takes the signals "
        "of this one",
        "memory channel 0 of gpu 0: 2 waits and 0 signals to it; the last waits never end",
    )


def test_deadlock() -> None:
    """Two GPUs that wait before they signal; the ops of the circle are named."""
    data = reads()
    for one in data["gpus"]:
        ops = one["threadblocks"][0]["ops"]
        ops[0], ops[1] = ops[1], ops[0]
    assert faults(data) == (
        "deadlock: gpu 0, thread block 0, op 0 (wait), which waits for gpu 1, thread block 0, op 1 (signal), which waits for "
        "gpu 1, thread block 0, op 0 (wait), which waits for gpu 0, thread block 0, op 1 (signal), which waits for the first",
    )


def test_deadlock_of_barrier_and_semaphore() -> None:
    """A thread block that comes to a barrier only when another has, which waits for it."""
    data = handed_on()
    first = _first(data)["ops"]
    first[3], first[4] = first[4], first[3]
    assert faults(data) == (
        "deadlock: gpu 0, thread block 0, op 3 (barrier), which waits for gpu 0, thread block 1, op 3 (barrier), which waits "
        "for gpu 0, thread block 1, op 1 (nop), which waits for gpu 0, thread block 1, op 0 (sem_acquire), which waits for "
        "gpu 0, thread block 0, op 4 (sem_release), which waits for the first",
    )


def test_two_blocks_wait_on_one_channel() -> None:
    """Either may take the other's signal."""
    data = handed_on()
    one = data["gpus"][0]
    one["threadblocks"][1]["channels"][0]["channel_ids"] = [0]
    one["threadblocks"][1]["ops"].append(WAIT)
    _first(data)["ops"].pop()
    assert faults(data) == (
        "memory channel 0 of gpu 0: thread blocks 0 and 1 wait on it, and each may take the signal that the other waits for",
    )


def test_wrong_half() -> None:
    """Data: what is not added, what is added twice, and what is somewhere else."""
    data = reads()
    _first(data)["ops"][3] = op("rres", "i0 0@1", "i0 0@0")
    assert faults(data) == (
        "gpu 1, thread block 0, op 3 (rres) writes input chunk 1 of gpu 1, which gpu 0, thread block 0, op 3 (rres) reads, and "
        "nothing orders them",
    )
    data = puts()
    _first(data)["ops"][8] = op("re", "i0 s1", "i0")
    assert faults(data) == (
        "gpu 0, thread block 0, op 8 (re): it adds scratch chunk 1 of gpu 0, which holds other data than what it is added to",
        "input chunk 1 of gpu 0 lacks the contribution of gpu 1 in the end",
    )
    data = puts()
    _first(data)["ops"] += [NOP, op("re", "i0 s0", "i0")]
    assert faults(data) == (
        "gpu 0, thread block 0, op 10 (re): it adds scratch chunk 0 of gpu 0, and counts the contribution of gpu 1 twice",
    )
    data = packets()
    data["gpus"][0]["threadblocks"][1]["ops"] = [op("upkt", "s1", "o0")]
    assert faults(data) == ("output chunk 0 of gpu 0 holds other data in the end than allgather puts there",)


def test_race_of_puts() -> None:
    """What a put may still be writing is not to be read, and what is read not to be written."""
    data = puts()
    _first(data)["ops"][6:8] = [NOP, WAIT]
    assert faults(data) == (
        "gpu 0, thread block 0, op 8 (re) reads scratch chunk 0 of gpu 0, which gpu 1, thread block 0, op 3 (put) writes, and "
        "nothing orders them",
        "gpu 0, thread block 0, op 8 (re) reads scratch chunk 1 of gpu 0, which gpu 1, thread block 0, op 3 (put) writes, and "
        "nothing orders them",
    )


def test_threads_are_joined_by_nop_alone() -> None:
    """Ops of one block may overlap without ``nop``, unless each thread has to do with its own part alone."""
    one = [op("copy", "i0", "s0"), op("copy", "s0", "s1"), op("copy", "s0:2", "s2:2"), NOP]
    data = plan([gpu(0, [one], (1, 1, 4), channels=[], remote_buffers=[])])
    _first(data)["channels"] = _first(data)["remote_buffer_refs"] = []
    assert faults(data) == (
        "gpu 0, thread block 0, op 2 (copy) reads scratch chunk 0 of gpu 0, which gpu 0, thread block 0, op 0 (copy) writes, "
        "and nothing orders them",
        "gpu 0, thread block 0, op 2 (copy) reads scratch chunk 1 of gpu 0, which gpu 0, thread block 0, op 1 (copy) writes, "
        "and nothing orders them",
    )


def test_peer_that_has_not_begun() -> None:
    """Buffers of a GPU are touched by others only while it runs."""
    data = reads()
    for one in data["gpus"]:
        del one["threadblocks"][0]["ops"][:3]
    assert faults(data)[0] == (
        "gpu 0, thread block 0, op 0 (rres) writes input chunk 0 of gpu 1, and nothing says that gpu 1 has begun"
    )
    data = reads()
    for one in data["gpus"]:
        del one["threadblocks"][0]["ops"][4:]
    assert faults(data)[-1] == (
        "gpu 0, thread block 0, op 3 (rres) writes input chunk 0 of gpu 1, and nothing says that it has done so when gpu 1 ends"
    )


def test_port_puts_leave_later() -> None:
    """The source of a put through a port channel is read until a flush, or word from the peer."""
    data = puts("port")
    for one in data["gpus"]:
        ops = one["threadblocks"][0]["ops"]
        del ops[6:9]
        ops.insert(4, op("flush", on=(0,), kind="port"))
    report = inspect(read(data))
    assert report.faults == ()
    assert report.warnings == ("flush without dst_buff: some releases of MSCCL++ then flush no channel",)
    for one in data["gpus"]:
        one["threadblocks"][0]["ops"].pop(4)
    assert faults(data)[0] == (
        "gpu 1, thread block 0, op 6 (re) writes input chunk 0 of gpu 1, which gpu 1, thread block 0, op 3 (pws) reads, and "
        "nothing orders them"
    )


def test_relaxed_signals_do_not_order_memory() -> None:
    """They may say that a GPU has begun, but not that data has come; that is a warning."""
    data = reads()
    for one in data["gpus"]:
        ops = one["threadblocks"][0]["ops"]
        ops[0], ops[1] = op("rlxsignal", on=(0,)), op("rlxwait", on=(0,))
    assert inspect(read(data)).warnings == ()
    ops[5] = op("rlxsignal", on=(0,))
    report = inspect(read(data))
    assert report.faults == ()
    assert report.warnings == (
        "gpu 1, thread block 0, op 3 (rres) writes input chunk 1 of gpu 0, and nothing says that it has done so when gpu 0 "
        "ends but a signal that does not order memory",
    )


def test_packets_in_a_row() -> None:
    """Without two halves of the scratch buffer, packets of the next launch may overtake; with two, they are safe here."""
    data = packets()
    data["use_double_scratch_buffer"] = False
    assert inspect(read(data)).warnings == (
        "packets without use_double_scratch_buffer: launches that follow each other share one scratch buffer",
        "gpu 1, thread block 0, op 0 (ppkt) of the next launch writes scratch (packets) chunk 1 of gpu 0, which gpu 0, thread "
        "block 1, op 0 (upkt) reads, and nothing orders them",
        "gpu 0, thread block 0, op 0 (ppkt) of the next launch writes scratch (packets) chunk 0 of gpu 1, which gpu 1, thread "
        "block 1, op 0 (upkt) reads, and nothing orders them",
    )


def test_circle_of_a_pipeline() -> None:
    """A semaphore that begins one higher than the steps that fit lets a pipeline write what is still to be read."""
    data = circle()
    data["gpus"][0]["semaphores"][0]["init_value"] = 3
    assert faults(data) == (
        "gpu 0, thread block 0, op 0, inner op 2 (copy) in step 2 writes scratch chunk 0 of gpu 0, which gpu 0, thread "
        "block 1, "
        "op 0, inner op 2 (copy) reads, and nothing orders them",
        "gpu 0, thread block 0, op 0, inner op 2 (copy) in step 3 writes scratch chunk 0 of gpu 0, which gpu 0, thread "
        "block 1, "
        "op 0, inner op 2 (copy) in step 1 reads, and nothing orders them",
    )


def test_pipeline_and_its_ops() -> None:
    """Inner ops have operands of as many chunks as the pipeline goes over."""
    data = circle()
    _first(data)["ops"][0]["iter_context"]["num_chunks"] = 2
    assert faults(data) == (
        "gpu 0, thread block 0, op 0 (pipeline): it goes over 2 chunks, copy inside over 1",
        "gpu 0, thread block 0, op 0 (pipeline): the 67108864 bytes of a scratch chunk are not a whole number of steps of "
        "33554432 bytes of 1 chunk",
    )


def test_groups_of_thread_blocks() -> None:
    """Thread blocks of a group do parts of an op, and each has to wait for who wrote its part."""

    def ops(first: int) -> list[Data]:
        group = [{"tb_id": i, "tbg_size": 2} for i in range(2)]
        adds = [op("rre", "i0:2 0@0:2", "i0:2", tbg_info=part) for part in group]
        return [
            SIGNAL,
            WAIT,
            NOP,
            op("copy", "i0:2", "s0:2", tbg_info=group[first]),
            NOP,
            SIGNAL,
            WAIT,
            NOP,
            adds[first],
            NOP,
            SIGNAL,
            WAIT,
        ]

    data = plan([gpu(g, [ops(0), ops(1)], (2, 2, 2), 1 - g, reach="s") for g in (0, 1)])
    assert faults(data) == ()
    crossed = data["gpus"][0]["threadblocks"]
    crossed[0]["ops"][8], crossed[1]["ops"][8] = crossed[1]["ops"][8], crossed[0]["ops"][8]
    assert faults(data)[1] == (
        "gpu 0, thread block 0, op 8 (rre) reads scratch chunk 1 of gpu 1, which gpu 1, thread block 1, op 3 (copy) writes, "
        "and nothing orders them"
    )


def test_what_is_not_checked_is_told() -> None:
    """A collective without a known result, chunks that do not fit it, and ops that the executor does not take at their word."""
    data = reads()
    data["collective"] = "sendrecv"
    assert inspect(read(data)).warnings == (
        "the result is not checked: what collective 'sendrecv' must end with is not known",
    )
    data["collective"] = "allgather"
    assert inspect(read(data)).warnings == (
        "the result is not checked: 2 input and 2 output chunks do not fit allgather, which has as many output chunks as all "
        "GPUs have input chunks",
    )
    data = reads()
    _first(data)["ops"][3]["reduce_op"] = "max"
    assert inspect(read(data)).warnings == ("reduce_op max: MSCCL++'s executor does not read it and adds",)
    data = switched()
    data["gpus"][0]["threadblocks"][0]["ops"][3]["src_buff"][0]["index"] = 1
    assert inspect(read(data)).faults[0] == (
        "gpu 1, thread block 0, op 3 (glres) writes input chunk 1 of gpu 0, which gpu 0, thread block 0, op 3 (glres) "
        "reads, and "
        "nothing orders them"
    )


def test_too_fine_to_be_worked_out() -> None:
    """Parts without a small common multiple."""
    data = reads()
    for g, parts in enumerate((997, 991)):
        data["gpus"][g]["threadblocks"][0]["ops"][3]["tbg_info"] = {"tb_id": 0, "tbg_size": parts}
    with pytest.raises(InputError) as caught:
        inspect(read(data))
    assert str(caught.value) == (
        "8 chunks cut into 988027 parts each are too many to be worked out; plans of up to 4194304 parts, and 4096 to "
        "a chunk, are"
    )
