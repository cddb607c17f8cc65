"""Schedules on real data: right ones give the answer, wrong ones do not, and rounding is told as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.collectives.catalogue import COLLECTIVES
from dualcoll.collectives.contract import make_contract
from dualcoll.errors import CheckFailed, InputError
from dualcoll.execution.arithmetic import Element
from dualcoll.execution.in_process import execute
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op, Reduction
from tests.schedules.samples import all_to_all, edited, findings, programs, ring, swap


def straight(collective: str, ranks: int, pieces: int = 1, size: int = 16) -> Schedule:
    """Every chunk goes straight from where it begins to where it must end, reductions by way of one rank."""
    contract = make_contract(collective, ranks, pieces=pieces)
    builder = ScheduleBuilder(contract, size)
    for chunk in range(contract.chunks):
        hub = contract.receivers(chunk)[0] if len(contract.holders(chunk)) > 1 else contract.holders(chunk)[0]
        for rank in contract.holders(chunk):
            if rank != hub:
                builder.send(rank, hub, chunk, Op.REDUCE)
        for rank in contract.receivers(chunk):
            if rank != hub:
                builder.send(hub, rank, chunk)
    return builder.build()


@pytest.mark.parametrize("collective", COLLECTIVES)
@given(ranks=st.integers(1, 6), pieces=st.integers(1, 3), seed=st.integers(0, 99))
@settings(max_examples=8)
def test_every_collective_gives_its_answer(collective: str, ranks: int, pieces: int, seed: int) -> None:
    """A schedule that validates moves integers to exactly the answer at every rank."""
    schedule = straight(collective, ranks, pieces)
    assert findings(schedule) == ()
    run = execute(schedule, element=Element.INT64, seed=seed)
    assert (run.ulps, run.relative, run.identical) == (0, 0, True)
    assert run.elements == schedule.chunks * 2


@pytest.mark.parametrize("element", Element)
@pytest.mark.parametrize("reduction", Reduction)
def test_every_arithmetic(element: Element, reduction: Reduction) -> None:
    """A ring's results are within what rounding allows, exact where nothing is rounded, and the same everywhere."""
    run = execute(ring(7, 64), reduction, element)
    exact = not element.is_float or reduction in (Reduction.MAX, Reduction.MIN)
    assert (run.ulps == 0) == exact
    assert 0 <= run.allowed <= 1
    assert run.identical
    assert run.elements == 7 * 64 // element.bytes


def test_ranks_may_differ_in_the_last_bits() -> None:
    """Where ranks add in different orders their results differ, and the report says so."""
    builder = ScheduleBuilder(make_contract("allreduce", 4), 4096)
    spare = [builder.scratch(0) for _ in range(4)]
    for rank in range(4):
        for other in range(4):
            if other != rank:
                builder.send(rank, other, 0, into=spare[rank])
    for rank in range(4):
        for step in (1, 2, 3):
            builder.send(rank, rank, spare[(rank + step) % 4], Op.REDUCE, into=0)
    schedule = builder.build()
    assert findings(schedule) == ()
    run = execute(schedule)
    assert not run.identical
    assert 0 < run.allowed <= 1
    assert run.text.startswith("AllReduce (sum, float32) over 4 ranks: at most ")
    assert run.text.endswith(" relative) from the exact answer; ranks differ in the last bits")
    assert execute(schedule, element=Element.INT32).identical
    assert execute(schedule, Reduction.MAX).text == "AllReduce (max, float32) over 4 ranks: exactly the answer"


def test_two_ranks_exchange_by_way_of_scratch() -> None:
    """Whole vectors cross, and each rank adds what it received."""
    assert execute(swap(), element=Element.INT32).elements == 2


def test_what_is_moved_is_not_changed() -> None:
    """A collective that reduces nothing delivers every bit, whatever the reduction."""
    for reduction in Reduction:
        run = execute(all_to_all(5), reduction, Element.FLOAT16)
        assert (run.ulps, run.identical) == (0, True)


@given(programs(), st.integers(0, 99))
@settings(max_examples=150)
def test_what_fails_on_data_fails_in_validation(schedule: Schedule, seed: int) -> None:
    """Wrong numbers have a finding; right numbers may have one, where something is counted twice that nobody is promised."""
    texts = findings(schedule, depth=None)
    try:
        execute(schedule, element=Element.INT64, elements=2, seed=seed)
    except CheckFailed:
        assert texts
    else:
        assert all(text.endswith("is counted twice (§4)") for text in texts)


@given(st.integers(2, 5), st.data())
@settings(max_examples=40)
def test_a_dropped_send_is_seen_in_the_data(ranks: int, data: st.DataObject) -> None:
    """Without any one of a ring's sends the numbers are wrong."""
    schedule = ring(ranks, 64)
    gone = data.draw(st.integers(0, schedule.sends - 1))
    with pytest.raises(CheckFailed):
        execute(edited(schedule, [s for s in range(schedule.sends) if s != gone]), element=Element.INT64)


def test_words_about_wrong_results() -> None:
    """What is missing, and what is wrong, names rank and chunk."""
    builder = ScheduleBuilder(make_contract("broadcast", 3), 8)
    builder.send(2, 1, 0)
    with pytest.raises(CheckFailed) as caught:
        execute(builder.build())
    assert str(caught.value) == "send 0 (rank 2 -> 1, chunk 0): rank 2 holds nothing in chunk 0 (§4)"
    empty = ScheduleBuilder(make_contract("broadcast", 2), 8).build()
    with pytest.raises(CheckFailed) as caught:
        execute(empty)
    assert str(caught.value) == "rank 1, chunk 0: the result is not there (§7)"
    builder = ScheduleBuilder(make_contract("reduce", 3), 8)
    builder.send(1, 0, 0, Op.REDUCE)
    with pytest.raises(CheckFailed) as caught:
        execute(builder.build(), element=Element.INT64, seed=1)
    found = caught.value.findings[0]
    assert found.startswith("rank 0, chunk 0: element 0 is ")
    assert found.endswith(" (§7)")


def test_a_chunk_of_broken_elements() -> None:
    """A chunk is a whole number of elements, unless their number is given."""
    with pytest.raises(InputError) as caught:
        execute(ring(3, 6))
    text = "chunk 0: 6 bytes are not a whole number of float32 elements; give the number of elements in a chunk"
    assert str(caught.value) == text
    assert execute(ring(3, 6), elements=5).elements == 15
    assert execute(replace(ring(3), chunk_size=np.zeros(3, np.int64))).elements == 0
    with pytest.raises(InputError) as caught:
        execute(ring(3), elements=-1)
    assert str(caught.value) == "elements: -1 elements in a chunk; use 0 or more"


def test_more_than_memory_holds() -> None:
    """What takes gigabytes is refused with a way out."""
    with pytest.raises(InputError) as caught:
        execute(ring(3, 2**31))
    text = "a chunk at all ranks takes 6 GiB; at most 4 GiB are moved here: give fewer elements in a chunk"
    assert str(caught.value) == text


def test_same_seed_same_data() -> None:
    """A run is repeated by its seed, and only by it."""
    assert execute(ring(5, 64), seed=4) == execute(ring(5, 64), seed=4)
    assert execute(ring(5, 64), seed=4) != execute(ring(5, 64), seed=5)
