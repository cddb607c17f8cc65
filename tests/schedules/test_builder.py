"""The builder and the columns it makes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dualcoll.collectives.catalogue import COLLECTIVES
from dualcoll.collectives.contract import Contract, joint_contract, make_contract
from dualcoll.errors import InputError
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Routes, Schedule
from dualcoll.schedules.ops import Op
from tests.schedules.samples import COLUMNS, findings, ring, star, swap


def test_four_ranks_around_a_ring() -> None:
    """The schedule of the textbook: 3 rounds of reduction and 3 of distribution, 6 sends of a quarter by every rank."""
    schedule = ring(4, size=256)
    assert findings(schedule, one_per_round=True) == ()
    assert schedule.size == 1024
    assert schedule.rounds == 6
    assert np.bincount(schedule.src, schedule.send_size).tolist() == [6 * 256] * 4
    assert schedule.op.tolist() == [Op.REDUCE] * 12 + [Op.COPY] * 12
    assert schedule.depends_of(0).tolist() == []
    assert schedule.depends_of(4).tolist() == [3]  # rank 0 passes on what it has received
    assert schedule.depends_of(12).tolist() == [
        1,
        11,
    ]  # the last reduction of chunk 1, and the read of what it replaces


def test_one_by_one_is_in_bulk() -> None:
    """Sends added singly and in arrays make the same schedule, in any mixture."""
    bulk = ring(5)
    builder = ScheduleBuilder(bulk.contract, 8, name="ring")
    for s in range(7):
        columns: dict[str, Any] = {name: int(getattr(bulk, name)[s]) for name in ("into", "round")}
        number = builder.send(int(bulk.src[s]), int(bulk.dst[s]), int(bulk.chunk[s]), Op(int(bulk.op[s])), **columns)
        assert number == s
    rest = {name: getattr(bulk, name)[7:] for name in COLUMNS}
    assert builder.extend(**rest) == range(7, bulk.sends)
    for name in (*COLUMNS, "depends_ptr", "depends"):
        assert np.array_equal(getattr(builder.build(), name), getattr(bulk, name))


def test_reductions_into_one_slot_commute() -> None:
    """Children of one parent do not wait for each other; what the parent sends waits for all of them."""
    builder = ScheduleBuilder(make_contract("allreduce", 4), 8)
    for rank in (1, 2, 3):
        builder.send(rank, 0, 0, Op.REDUCE)
    for rank in (1, 2, 3):
        builder.send(0, rank, 0)
    schedule = builder.build()
    assert [schedule.depends_of(s).tolist() for s in range(6)] == [[], [], [], [0, 1, 2], [0, 1, 2], [0, 1, 2]]


def test_more_to_follow_than_the_slots_say() -> None:
    """``after`` adds dependencies, each once; one that is not earlier is refused."""
    builder = ScheduleBuilder(make_contract("broadcast", 3), 8)
    first = builder.send(0, 1, 0)
    builder.send(0, 2, 0, after=[first, first])
    assert builder.build().depends_of(1).tolist() == [0]
    builder.send(1, 2, 0, after=[7])
    with pytest.raises(InputError) as caught:
        builder.build()
    assert str(caught.value) == "send 2: it is to follow send 7, which is not earlier"


def test_equal_routes_are_one() -> None:
    """Routes are interned, with their shares; a table without parts has no column of shares."""
    builder = ScheduleBuilder(make_contract("broadcast", 2), 8, topology=star(2), nodes=(0, 1))
    assert [builder.route([0, 3]), builder.route([2, 1]), builder.route([0, 3])] == [0, 1, 0]
    schedule = builder.build()
    assert schedule.routes.of(1).tolist() == [2, 1]
    assert schedule.routes.share is None
    assert schedule.routes.shares(1).tolist() == [1, 1]
    assert builder.route([0, 3], [0.5, 0.5]) == 2
    routes = builder.build().routes
    assert routes.share is not None
    assert routes.shares(2).tolist() == [0.5, 0.5]


def test_scratch_takes_the_data_of_its_chunk() -> None:
    """A scratch slot has its chunk's bytes, its data, and no promise."""
    schedule = swap()
    assert findings(schedule) == ()
    assert schedule.chunk_size.tolist() == [8, 8]
    assert schedule.size == 8
    assert schedule.contract.data.tolist() == [0, 0]
    assert schedule.contract.receivers(1) == schedule.contract.holders(1) == ()


def test_columns_are_read_only_copies() -> None:
    """What went in can be changed without changing the schedule, which itself cannot."""
    src = np.array([0, 1])
    builder = ScheduleBuilder(make_contract("allgather", 2), 8)
    builder.extend(src, 1 - src, src)
    schedule = builder.build()
    src[:] = 7
    assert schedule.src.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        schedule.src[0] = 1


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_bytes_of_the_message(collective: str) -> None:
    """The size of a schedule is that of the buffer as nccl-tests counts it."""
    contract = make_contract(collective, 4, pieces=3)
    shards = 1 if collective in ("allreduce", "broadcast", "reduce") else 4
    assert ScheduleBuilder(contract, 5).build().size == shards * 3 * 5


def test_bytes_of_uneven_exchanges() -> None:
    """An AllToAllv has the bytes of whoever sends or receives most, its own part included; a mix those of its largest."""
    exchange = make_contract("alltoallv", 2)
    assert ScheduleBuilder(exchange, [1, 2, 30, 4]).build().size == 34
    assert ScheduleBuilder(exchange, [1, 2, 30, 40]).build().size == 70
    both = joint_contract(3, [(exchange, (0, 2)), (make_contract("broadcast", 2, root=1), (1, 2))])
    assert ScheduleBuilder(both, [1, 2, 30, 4, 35]).build().size == 35


def wrong(**columns: Any) -> str:
    """The complaint about a ring with these columns."""
    with pytest.raises(InputError) as caught:
        replace(ring(3), **columns)
    return str(caught.value)


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"src": np.full(12, 3)}, "send 0: src 3 is not in 0 .. 2"),
        ({"dst": np.full(12, -1)}, "send 0: dst -1 is not in 0 .. 2"),
        ({"chunk": np.arange(12)}, "send 3: chunk 3 is not in 0 .. 2"),
        ({"op": np.full(12, 2)}, "send 0: op 2 is not in 0 .. 1"),
        ({"channel": np.full(12, -1)}, "send 0: channel -1 is not in 0 .. 2147483647"),
        ({"round": np.full(12, -2)}, "send 0: round -2 is not in -1 .. 2147483647"),
        ({"route": np.zeros(12)}, "send 0: route 0 is not in -1 .. -1"),
        ({"dst": np.full(11, 0)}, "dst: 11 numbers for 12 sends"),
        ({"src": np.full((12, 1), 0)}, "src: it has shape (12, 1), not one column"),
        ({"src": np.full(12, 0.5)}, "src: a number does not fit int32"),
        ({"src": np.full(12, 2**32)}, "src: a number does not fit int32"),
        ({"src": [2**70] * 12}, "src: a number does not fit int32"),
        ({"src": ["0"] * 12}, "src: a number does not fit int32"),
        ({"dst": ring(3).src}, "send 0: it goes from a slot to the same slot"),
        ({"chunk_size": np.full(2, 8)}, "chunk_size: 2 sizes for 3 chunks"),
        ({"chunk_size": np.full(3, -8)}, "chunk_size: size -8 is below 0"),
        ({"depends_ptr": np.zeros(3)}, "depends: 3 row ends for 12 sends"),
        ({"depends_ptr": np.zeros(13)}, f"depends: the row ends do not run from 0 to {ring(3).depends.size}"),
        ({"depends": np.full(ring(3).depends.size, 12)}, "depends: a dependency is no send of 0 to 11"),
        ({"nodes": (0, 1, 2)}, "nodes and routes need a topology"),
        ({"topology": star(3), "nodes": (0, 1)}, "nodes: nodes must be 3 different ones, one per rank"),
        ({"topology": star(3), "nodes": (0, 1, 9)}, "nodes: it names a node that the topology does not have"),
        (
            {"topology": star(3), "nodes": (0, 1, 2), "routes": Routes(np.array([0, 1]), np.array([6], np.int32))},
            "routes: it names a link that the topology does not have",
        ),
    ],
)
def test_numbers_that_name_nothing(columns: dict[str, Any], text: str) -> None:
    """A schedule cannot be made with a number that names no rank, chunk, op, route, send, node or link."""
    assert wrong(**columns) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        ([0.5], "routes: each link of a route needs a share in (0, 1]"),
        ([0.5, 0], "routes: each link of a route needs a share in (0, 1]"),
        ([np.nan, 1], "routes: each link of a route needs a share in (0, 1]"),
    ],
)
def test_shares_that_are_none(share: list[float], text: str) -> None:
    """Parts of a send are positive and at most all of it."""
    with pytest.raises(InputError) as caught:
        Routes(np.array([0, 2]), np.array([0, 1], np.int32), np.array(share))
    assert str(caught.value) == text


def test_arrays_that_do_not_go_together() -> None:
    """Columns of different lengths, or of more than one dimension, are refused when they are added."""
    builder = ScheduleBuilder(make_contract("broadcast", 4), 8)
    with pytest.raises(InputError) as caught:
        builder.extend([0, 0], [1, 2, 3], 0)
    assert str(caught.value) == "extend: the columns of sends have different lengths"
    with pytest.raises(InputError) as caught:
        builder.extend([[0, 0]], [1, 2], 0)
    assert str(caught.value) == "extend: columns of shape (1, 2), not one column each"
    assert builder.sends == 0


def test_numbers_are_not_rounded() -> None:
    """Half a byte, or half a rank, is refused and not cut off."""
    builder = ScheduleBuilder(make_contract("broadcast", 2), 8)
    builder.send(0, 1.5, 0)  # type: ignore[arg-type]
    with pytest.raises(InputError) as caught:
        builder.build()
    assert str(caught.value) == "dst: a number does not fit int32"
    for sizes, text in ((0.5, "chunk_size: a number does not fit int64"), ([8, 8], "chunk_size: 2 sizes for 1 chunks")):
        with pytest.raises(InputError) as caught:
            ScheduleBuilder(make_contract("broadcast", 2), sizes).build()
        assert str(caught.value) == text


def test_a_schedule_without_sends() -> None:
    """One rank needs no sends."""
    contract: Contract = make_contract("allreduce", 1)
    schedule: Schedule = ScheduleBuilder(contract, 8).build()
    assert schedule.sends == schedule.rounds == 0
    assert findings(schedule) == ()
