"""MSCCL programs as schedules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

from dualcoll.collectives.contract import ALL, NOWHERE
from dualcoll.errors import CheckFailed, DualcollError, InputError
from dualcoll.execution.in_process import execute
from dualcoll.lowering.msccl.program import Program
from dualcoll.lowering.msccl.to_schedule import to_schedule
from dualcoll.schedules import validate as schedules
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from tests.lowering.msccl.mutants import mutants
from tests.lowering.msccl.programs import VALID, do, doubling, pair, program, relay, ring, tb


def sends(schedule: Schedule) -> list[tuple[int, ...]]:
    """(source, destination, chunk read, chunk written, op) of each send."""
    columns = (schedule.src, schedule.dst, schedule.chunk, schedule.into, schedule.op)
    return [tuple(row) for row in np.array(columns).T.tolist()]


@pytest.mark.parametrize("of", VALID.values(), ids=VALID)
def test_valid_schedules(of: Program) -> None:
    """What a valid program becomes passes the validator of schedules, and moves data to the right answer."""
    schedule = to_schedule(of, 16 * of.nchunksperloop)
    schedules.validate(schedule)
    execute(schedule)
    assert schedule.size == 16 * of.nchunksperloop
    assert schedule.name == "sample"


def test_ring() -> None:
    """A program that passes on what it receives becomes the sends of the textbook, and forwards hold their channel's place."""
    schedule = to_schedule(ring(), 24)
    assert sends(schedule) == [
        (0, 1, 0, 0, Op.COPY),
        (1, 2, 1, 1, Op.COPY),
        (2, 0, 2, 2, Op.COPY),
        (1, 2, 0, 0, Op.COPY),
        (0, 1, 2, 2, Op.COPY),
        (2, 0, 1, 1, Op.COPY),
    ]
    assert [schedule.depends_of(send).tolist() for send in range(6)] == [[], [], [], [0], [2], [1]]
    assert schedule.chunk_size.tolist() == [8, 8, 8]
    with pytest.raises(CheckFailed, match="deadlock of in-order channels of depth 1"):
        schedules.validate(schedule, depth=1)


def test_exchange() -> None:
    """Two ranks that add each other's chunk to what they have just sent need a slot for what arrives meanwhile."""
    schedule = to_schedule(doubling(2), 4)
    assert sends(schedule) == [
        (0, 1, 0, 1, Op.COPY),
        (1, 0, 0, 1, Op.COPY),
        (0, 0, 1, 0, Op.REDUCE),
        (1, 1, 1, 0, Op.REDUCE),
    ]
    assert [schedule.depends_of(send).tolist() for send in range(4)] == [[], [], [0, 1], [0, 1]]


def test_sums_on_the_way() -> None:
    """A sum that is not stored takes the place of what it was added to, one that is stored elsewhere is made there."""
    schedule = to_schedule(relay(), 8)
    of_first = [send for send in sends(schedule) if send[2] in (0, 2, 4)]
    assert of_first == [
        (3, 2, 0, 4, Op.COPY),
        (2, 2, 0, 4, Op.REDUCE),
        (2, 1, 4, 0, Op.REDUCE),
        (1, 0, 0, 2, Op.COPY),
        (0, 0, 0, 2, Op.REDUCE),
    ]
    assert schedule.contract.source.tolist() == [ALL, ALL, NOWHERE, NOWHERE, NOWHERE, NOWHERE]
    assert schedule.contract.target.tolist() == [NOWHERE, NOWHERE, 0, 0, NOWHERE, NOWHERE]
    assert schedule.contract.data.tolist() == [0, 1, 0, 1, 0, 1]


def test_a_sum_beside_its_part() -> None:
    """A sum that is not stored has a slot of its own where what it was added to is read again."""
    again = program(
        "reduce",
        1,
        ((1, 0, 0), [tb(-1, 1, do("rrc", "i0", "i0"))]),
        ((1, 0, 1), [tb(0, 2, do("rrs", "i0"), do("cpy", "i0", "s0"))]),
        ((1, 0, 0), [tb(1, -1, do("s", "i0"))]),
        inplace=True,
    )
    schedule = to_schedule(again, 8)
    schedules.validate(schedule)
    assert sends(schedule) == [
        (2, 1, 0, 2, Op.COPY),
        (1, 1, 0, 2, Op.REDUCE),
        (1, 0, 2, 0, Op.REDUCE),
        (1, 1, 0, 1, Op.COPY),
    ]


def test_semaphores() -> None:
    """What a step waits for is what its sends depend on, though they use other slots."""
    blocks = [tb(1, -1, do("s", "i0", "o0"), do("s", "i1", "o1", after=(1, 0))), tb(-1, 1, do("r", dst="s0", hasdep=1))]
    waiting = program(
        "broadcast",
        2,
        ((2, 2, 1), [*blocks, tb(-1, -1, do("cpy", "i0", "o0", 2))]),
        (
            (2, 2, 0),
            [tb(-1, 0, do("r", dst="o0", hasdep=1), do("r", dst="o1")), tb(0, -1, do("s", "o0", "s0", after=(0, 0)))],
        ),
    )
    schedule = to_schedule(waiting, 8)
    assert sends(schedule) == [
        (0, 1, 0, 2, Op.COPY),
        (0, 0, 0, 2, Op.COPY),
        (0, 0, 1, 3, Op.COPY),
        (1, 0, 2, 4, Op.COPY),
        (0, 1, 1, 3, Op.COPY),
    ]
    assert [schedule.depends_of(send).tolist() for send in range(5)] == [[], [], [], [0], [3]]


def test_many_chunks_through_a_narrow_channel() -> None:
    """A message of many chunks waits as a whole in a program and chunk by chunk in a schedule: it lands apart where chunks that
    hold their places would be a deadlock.
    """
    for of in (ring(cnt=4), stepwise()):
        schedule = to_schedule(of, 48 * of.nchunksperloop)
        schedules.validate(schedule)
        execute(schedule)
        assert np.any(schedule.src == schedule.dst)


def stepwise() -> Program:
    """A chain of 3 that takes 3 chunks before it sends them on."""
    return program(
        "broadcast",
        3,
        ((3, 0, 0), [tb(1, -1, do("s", "i0", "i0", 3))]),
        ((3, 0, 0), [tb(2, 0, do("r", "i0", "i0", 3), do("s", "i0", "i0", 3))]),
        ((3, 0, 0), [tb(-1, 1, do("r", "i0", "i0", 3))]),
        inplace=True,
    )


def test_kinds_of_call() -> None:
    """A program for both kinds of call can be converted for either; one buffer needs no chunks for outputs."""
    both = program(
        "allreduce",
        1,
        ((1, 1, 0), [tb(1, 1, do("s", "i0", "o0"), do("rrc", "i0", "o0"))]),
        ((1, 1, 0), [tb(0, 0, do("s", "i0", "o0"), do("rrc", "i0", "o0"))]),
        inplace=True,
        outofplace=True,
    )
    assert to_schedule(both, 8).contract.target.tolist() == [NOWHERE, ALL]
    assert to_schedule(both, 8, in_place=True).contract.target.tolist() == [ALL, NOWHERE]


@pytest.mark.parametrize(
    ("of", "more", "message"),
    [
        (
            ring(),
            {"size": 100},
            "sample: 100 bytes are no multiple of the 3 chunks (nchunksperloop); nothing is padded: use 102",
        ),
        (ring(), {"in_place": False}, "sample: it is not for calls out of place"),
        (pair(), {"in_place": True}, "sample: it is not for calls in place"),
        (replace(ring(), coll="custom"), {}, "sample: a custom collective promises nothing, as a schedule must"),
        (
            program("reduce", 1, ((1, 0, 0), [tb(-1, -1, do("ra", dst="i0"))]), inplace=True),
            {"size": 4},
            "gpu 0, tb 0, step 0 (ra): it adds the caller's tensors, which no contract covers",
        ),
        (
            program(
                "broadcast", 2, ((2, 0, 1), [tb(-1, -1, do("cpy", "i0", "s0"), do("re", "i1", "s0"))]), inplace=True
            ),
            {"size": 4},
            "gpu 0, tb 0, step 1 (re): it adds what does not belong together, which no contract covers",
        ),
    ],
)
def test_what_is_no_schedule(of: Program, more: dict[str, Any], message: str) -> None:
    """What a schedule cannot say is refused with the step or the size."""
    with pytest.raises(InputError) as caught:
        to_schedule(of, **{"size": 96, **more})
    assert str(caught.value) == message


def test_invalid_programs() -> None:
    """A program that is not valid is refused as by the validator."""
    with pytest.raises(CheckFailed, match="deadlock where connections hold 1 message"):
        to_schedule(ring(), 24, depth=1)


@settings(max_examples=100, deadline=None)
@given(mutants())
def test_any_valid_program(of: Program) -> None:
    """Whatever the validator lets through becomes a schedule that its own validator lets through and that moves data right."""
    try:
        schedule = to_schedule(of, 8 * of.nchunksperloop)
    except DualcollError:
        assume(False)
    schedules.validate(schedule)
    execute(schedule)
