"""The words of every finding, each with rank, send, chunk and section."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dualcoll.collectives.contract import make_contract
from dualcoll.errors import InputError
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.schedules.routed import routed
from dualcoll.schedules.validate import validate
from tests.schedules.samples import csr, findings, loop, ring, star, swap


def broadcast(*sends: tuple[int, int], ranks: int = 3) -> Schedule:
    """Rank 0's message over these sends, one after the other as their slots demand."""
    builder = ScheduleBuilder(make_contract("broadcast", ranks), 8)
    for src, dst in sends:
        builder.send(src, dst, 0)
    return builder.build()


def test_sent_before_it_exists() -> None:
    """A rank cannot send what it has not got."""
    assert findings(broadcast((2, 1), (0, 2))) == (
        "send 0 (rank 2 -> 1, chunk 0): rank 2 does not have chunk 0 yet (§4)",
    )


def test_reduced_into_nothing() -> None:
    """A reduction needs something to merge into."""
    builder = ScheduleBuilder(make_contract("broadcast", 2), 8)
    builder.send(0, 1, 0, Op.REDUCE)
    text = "send 0 (rank 0 -> 1, chunk 0): it reduces into chunk 0 of rank 1, which holds nothing (§4)"
    assert findings(builder.build()) == (text,)


def test_counted_twice() -> None:
    """A contribution that is there already may not be merged again."""
    builder = ScheduleBuilder(make_contract("reduce", 3), 8)
    for src, dst in ((2, 1), (1, 0), (2, 0)):
        builder.send(src, dst, 0, Op.REDUCE)
    text = "send 2 (rank 2 -> 0, chunk 0): the contribution of rank 2 is counted twice (§4)"
    assert findings(builder.build()) == (text,)


def test_counted_twice_beyond_a_word() -> None:
    """The witness is right among more ranks than a word of a set has bits."""
    builder = ScheduleBuilder(make_contract("reduce", 150), 8)
    for src in (*range(1, 150), 137):
        builder.send(src, 0, 0, Op.REDUCE)
    text = "send 149 (rank 137 -> 0, chunk 0): the contribution of rank 137 is counted twice (§4)"
    assert findings(builder.build()) == (text,)


def test_result_not_where_promised() -> None:
    """Everybody who is promised the message must have it."""
    text = "rank 2, chunk 0: the result is not where it was promised; no send writes it (§7)"
    assert findings(broadcast((0, 1))) == (text,)


def test_result_incomplete() -> None:
    """A result that lacks a contribution says whose, and what came last."""
    builder = ScheduleBuilder(make_contract("reduce", 4), 8)
    for src in (1, 3):
        builder.send(src, 0, 0, Op.REDUCE)
    text = (
        "rank 0, chunk 0: the result lacks the contribution of rank 2; "
        "the last send into it is send 1 (rank 3 -> 0, chunk 0) (§7)"
    )
    assert findings(builder.build()) == (text,)


def test_dependency_cycle() -> None:
    """A cycle is told step by step."""
    schedule = replace(broadcast((0, 1), (0, 2)), **csr([[1], [0]]))
    text = (
        "dependency cycle: send 0 (rank 0 -> 1, chunk 0) waits for send 1 (rank 0 -> 2, chunk 0), "
        "which waits for send 0 (rank 0 -> 1, chunk 0) (§6)"
    )
    assert findings(schedule) == (text,)


def test_long_cycle() -> None:
    """A long cycle is cut short, and says by how much."""
    schedule = broadcast(*((rank, rank + 1) for rank in range(11)), ranks=12)
    (text,) = findings(replace(schedule, **csr([[(send - 1) % 11] for send in range(11)])))
    assert text.startswith(
        "dependency cycle: send 0 (rank 0 -> 1, chunk 0) waits for send 10 (rank 10 -> 11, chunk 0), "
    )
    assert text.endswith("for send 5 (rank 5 -> 6, chunk 0), which waits through 5 more sends for send 0 (§6)")


def test_channel_out_of_order() -> None:
    """A send behind another on its channel waits for it, whatever it depends on itself."""
    builder = ScheduleBuilder(make_contract("broadcast", 2, pieces=2), 8)
    builder.send(0, 1, 0)
    builder.send(0, 1, 1)
    schedule = replace(builder.build(), **csr([[1], []]))
    text = (
        "deadlock of in-order channels: send 0 (rank 0 -> 1, chunk 0) waits for send 1 (rank 0 -> 1, chunk 1), "
        "which is behind, on channel 0, send 0 (rank 0 -> 1, chunk 0) (§5)"
    )
    assert findings(schedule) == (text,)


def test_no_room_on_a_channel() -> None:
    """The cycle of a full ring of channels of one place."""
    text = (
        "deadlock of in-order channels of depth 1: send 2 (rank 0 -> 1, chunk 1) needs room on channel 0, made by "
        "send 3 (rank 1 -> 0, chunk 0), which needs room on channel 0, made by send 2 (rank 0 -> 1, chunk 1) (§5)"
    )
    assert findings(ring(2), depth=1) == (text,)


@pytest.mark.parametrize(
    ("sends", "text"),
    [
        (
            [(0, 1), (1, 2)],
            "send 1 (rank 1 -> 2, chunk 0) reads what send 0 (rank 0 -> 1, chunk 0) writes, chunk 0 at rank 1, "
            "and nothing orders them: a data race (§6)",
        ),
        (
            [(0, 1), (0, 2), (0, 1)],
            "send 2 (rank 0 -> 1, chunk 0) writes what send 0 (rank 0 -> 1, chunk 0) writes, chunk 0 at rank 1, "
            "and nothing orders them: a data race (§6)",
        ),
        (
            [(0, 1), (0, 2), (2, 0)],
            "send 2 (rank 2 -> 0, chunk 0) writes what send 0 (rank 0 -> 1, chunk 0) reads, chunk 0 at rank 0, "
            "and nothing orders them: a data race (§6)",
        ),
    ],
)
def test_data_race(sends: list[tuple[int, int]], text: str) -> None:
    """Two accesses of a slot, at least one a write, that nothing orders; each on a channel of its own."""
    schedule = replace(broadcast(*sends), channel=np.arange(len(sends), dtype=np.int32), **csr([[] for _ in sends]))
    assert text in findings(schedule)


def test_an_order_through_others_is_no_race() -> None:
    """A read of what the channel delivered before a dependency needs no dependency of its own."""
    builder = ScheduleBuilder(make_contract("broadcast", 3, pieces=2), 8)
    for src, dst in ((0, 1), (1, 2)):
        for chunk in (0, 1):
            builder.send(src, dst, chunk)
    schedule = builder.build()
    assert findings(replace(schedule, **csr([[], [], [1], [1]]))) == ()
    (text,) = findings(replace(schedule, channel=np.array([0, 1, 0, 0], np.int32), **csr([[], [], [1], [1]])))
    assert text == (
        "send 2 (rank 1 -> 2, chunk 0) reads what send 0 (rank 0 -> 1, chunk 0) writes, chunk 0 at rank 1, "
        "and nothing orders them: a data race (§6)"
    )


def test_overrun() -> None:
    """A chunk does not fit a smaller slot."""
    schedule = swap()
    text = "send 0 (rank 0 -> 1, chunk 0 into 1): 8 bytes overrun a slot of 4 (§2)"
    assert findings(replace(schedule, chunk_size=np.array([8, 4])))[0] == text


def test_a_promise_of_other_bytes() -> None:
    """An output slot has the bytes of its data."""
    builder = ScheduleBuilder(make_contract("broadcast", 1), 8)
    spare = builder.scratch(0)
    builder.send(0, 0, 0, into=spare)
    schedule = builder.build()
    contract = replace(schedule.contract, target=np.array([-2, -1]))
    assert findings(replace(schedule, contract=contract)) == ()
    text = "chunk 1 has 9 bytes, its data 8 (§2)"
    assert findings(replace(schedule, contract=contract, chunk_size=np.array([8, 9]))) == (text,)


def test_slots_of_different_data() -> None:
    """A send may change the slot, not the data."""
    builder = ScheduleBuilder(make_contract("broadcast", 2, pieces=2), 8)
    builder.send(0, 1, 0, into=1)
    text = "send 0 (rank 0 -> 1, chunk 0 into 1): the two chunks are not slots for the same data (§4)"
    assert findings(builder.build()) == (text,)


def test_rounds_against_dependencies() -> None:
    """A send is in a later round than what it depends on."""
    schedule = replace(broadcast((0, 1), (1, 2)), round=np.array([1, 1]))
    text = "send 1 (rank 1 -> 2, chunk 0): it is in round 1 and depends on send 0 of round 1 (§8)"
    assert findings(schedule) == (text,)


def test_link_used_twice_in_a_round() -> None:
    """Where it is asked, no link carries two sends of one round: a pair of ranks, or a link of the fabric."""
    assert findings(ring(4), one_per_round=True) == ()
    two = ScheduleBuilder(make_contract("broadcast", 2, pieces=2), 8)
    for chunk in (0, 1):
        two.send(0, 1, chunk, round=0)
    text = "round 0: the link carries both send 0 (rank 0 -> 1, chunk 0) and send 1 (rank 0 -> 1, chunk 1) (§8)"
    assert findings(two.build()) == ()
    assert findings(two.build(), one_per_round=True) == (text,)
    fan = ScheduleBuilder(make_contract("broadcast", 3), 8)
    for rank in (1, 2):
        fan.send(0, rank, 0, round=0)
    text = (
        "round 0: link g0 -> sw carries both send 0 (rank g0 -> g1, chunk 0) and send 1 (rank g0 -> g2, chunk 0) (§8)"
    )
    assert findings(fan.build(), one_per_round=True) == ()
    assert findings(routed(fan.build(), star(3)), one_per_round=True) == (text,)
    assert findings(routed(ring(4), loop(4)), one_per_round=True) == ()


def test_many_findings_are_cut() -> None:
    """Twenty findings are told and the rest counted."""
    texts = findings(broadcast(ranks=40))
    assert len(texts) == 21
    assert texts[-1] == "and 19 more"


def test_depth_below_one() -> None:
    """A channel without room is an error of the caller."""
    with pytest.raises(InputError) as caught:
        validate(ring(2), depth=0)
    assert str(caught.value) == "depth: a channel of depth 0 carries nothing; use 1 or more"


def test_nothing_to_do() -> None:
    """One rank has what it is promised; so has a schedule of empty chunks only what it moves."""
    assert findings(ring(1)) == ()
    assert findings(replace(ring(3), chunk_size=np.zeros(3, np.int64))) == ()
    assert len(findings(replace(broadcast((0, 1)), chunk_size=np.zeros(1, np.int64)))) == 1
