"""MSCCL++ plans as schedules."""

from __future__ import annotations

import numpy as np
import pytest

from dualcoll.errors import CheckFailed, InputError
from dualcoll.execution.in_process import execute
from dualcoll.lowering.mscclpp import to_schedule
from dualcoll.schedules.ops import Op
from dualcoll.schedules.validate import validate
from tests.lowering.mscclpp.plans import SOUND, Data, gpu, op, packets, plan, puts, read, reads, switched


@pytest.mark.parametrize("name", [name for name in SOUND if name not in ("switched", "circle")])
def test_sound(name: str) -> None:
    """Plans become schedules that are valid and give the right numbers."""
    schedule = to_schedule(read(SOUND[name]()), 4096)
    validate(schedule)
    execute(schedule)
    assert schedule.size == 4096


def test_sends() -> None:
    """An op that adds what it reads and sends the sum on is a reduction and a copy, on the channel of its thread block."""
    schedule = to_schedule(read(reads()), 4096)
    table = zip(schedule.src, schedule.dst, schedule.chunk, schedule.op, schedule.channel, strict=True)
    assert [tuple(map(int, row)) for row in table] == [
        (1, 0, 0, Op.REDUCE, 0),
        (0, 1, 0, Op.COPY, 0),
        (0, 1, 1, Op.REDUCE, 1),
        (1, 0, 1, Op.COPY, 1),
    ]
    assert schedule.chunk_size.tolist() == [2048, 2048]


def test_chunks_that_always_move_together_are_one() -> None:
    """Both chunks of the put are one; its place in the scratch space is another slot for the same data."""
    schedule = to_schedule(read(puts()), 4096)
    assert schedule.chunk_size.tolist() == [4096, 4096]
    assert schedule.contract.data.tolist() == [0, 0]
    assert np.sum(schedule.src != schedule.dst) == 2


def rooted(ranks: tuple[int, int] = (1, 0)) -> Data:
    """A broadcast from GPU 1."""
    signal, wait = op("signal", on=(0,)), op("wait", on=(0,))
    there = [signal, wait]
    here = [wait, op("nop"), op("put", "i0:2", "0@0:2"), op("nop"), signal]
    return plan([gpu(0, [there], peer=1), gpu(1, [here], peer=0)], "broadcast")


def test_root() -> None:
    """The root of a broadcast is the GPU whose data ends everywhere."""
    schedule = to_schedule(read(rooted()), 4096)
    validate(schedule)
    assert schedule.contract.root == 1


REFUSED = [
    (
        switched,
        4096,
        "plan 'test': glres: what a switch adds up or multiplies is no send between GPUs; it can be checked, but not simulated",
    ),
    (reads, 100, "plan 'test': 100 bytes are not a multiple of 2 chunks of 16 bytes; use a multiple of 32"),
    (
        lambda: reads() | {"max_message_size": 1024},
        4096,
        "plan 'test': 4096 bytes are not in the plan's 0 .. 1024; use a size in that range",
    ),
    (
        lambda: reads() | {"collective": "sendrecv"},
        4096,
        "plan 'test': what collective 'sendrecv' must end with is not known; only how it runs can be checked",
    ),
]


@pytest.mark.parametrize(("make", "size", "sentence"), REFUSED)
def test_refused(make: object, size: int, sentence: str) -> None:
    """What is no schedule is refused, with the reason."""
    with pytest.raises(InputError) as caught:
        to_schedule(read(make()), size)  # type: ignore[operator]
    assert str(caught.value) == sentence


def test_plans_that_cannot_run() -> None:
    """A plan that waits for ever has no schedule."""
    data = packets()
    data["gpus"][1]["threadblocks"][0]["ops"] = []
    with pytest.raises(CheckFailed) as caught:
        to_schedule(read(data), 4096)
    assert caught.value.findings == (
        "gpu 0, thread block 1, op 0 (upkt): it waits for packets in scratch (packets) chunk 1 of gpu 0, which nobody writes",
    )
