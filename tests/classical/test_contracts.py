"""Every algorithm, every number of ranks, every contract: validated on sets of contributions, and run on data."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.classical.place import Place
from dualcoll.classical.registry import draw
from dualcoll.classical.ring import chain_broadcast, chain_reduce, ring_all_gather, ring_all_reduce, ring_reduce_scatter
from dualcoll.execution.arithmetic import Element
from dualcoll.execution.in_process import execute
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op, Reduction
from dualcoll.schedules.validate import validate
from tests.classical.samples import CASES, COUNTS, HIERARCHIES, boxes_of, boxings, on, roots

SIZE = 1000  # bytes, which few numbers of ranks divide


def right(schedule: Schedule) -> None:
    """It keeps its contract with channels of two places, and moves integers to the exact answer."""
    validate(schedule)
    execute(schedule, element=Element.INT32, elements=2)


def places(name: str, collective: str, ranks: int) -> Iterator[Place]:
    """All that the algorithm can be asked for with so many ranks."""
    matrix = np.random.default_rng(ranks).integers(0, 20, (ranks, ranks)) if collective == "alltoallv" else None
    for root in roots(collective, ranks):
        for boxes in boxings(ranks):
            if name in (*HIERARCHIES, "ring", "ring-both-ways", "chain", "double-tree"):
                yield Place(boxes, SIZE, root, pieces=3, matrix=matrix)
        if name not in HIERARCHIES:
            yield Place(boxes_of([ranks]), SIZE, root, pieces=3, matrix=matrix)


@pytest.mark.parametrize(("name", "collective"), CASES)
def test_every_algorithm_keeps_its_contract(name: str, collective: str) -> None:
    """For 1 to 17, 32 and 64 ranks, alone and in boxes, each result is where it is promised, and is the answer."""
    tried = 0
    for ranks in COUNTS:
        for place in places(name, collective, ranks):
            schedule = draw(name, collective, place)
            assert schedule.contract.collective == collective
            assert schedule.rounds > 0 or place.ranks == 1
            right(schedule)
            tried += 1
    assert tried >= 19


@pytest.mark.parametrize(("name", "collective"), [case for case in CASES if "reduce" in case[1]])
def test_floating_point_stays_within_its_bound(name: str, collective: str) -> None:
    """Sums and averages in float32 and bfloat16 are as near to the answer as any order of 12 or 13 ranks can promise."""
    for ranks in (12, 13):
        for place in places(name, collective, ranks):
            schedule = draw(name, collective, place)
            execute(schedule, element=Element.FLOAT32, elements=3)
            execute(schedule, Reduction.AVG, Element.BFLOAT16, elements=3)


@pytest.mark.parametrize("name", ["ring", "ring-both-ways", "chain", "double-tree", "torus"])
@pytest.mark.parametrize("spec", ["dgx-1v", "dgx-1v:boxes=2", "dgx-1v:boxes=3", "torus:3x4", "full:5", "ring:7"])
def test_rings_along_cables_keep_their_contract(name: str, spec: str) -> None:
    """Boxes whose cables decide the order of ranks are served, too; torus where there are boxes or a torus."""
    found = on(spec)
    if name == "torus" and not (found.is_hierarchy or found.rows):
        return
    for collective in (known for case, known in CASES if case == name):
        right(draw(name, collective, replace(found, size=SIZE, pieces=2, root=found.ranks // 2)))


@settings(max_examples=40)
@given(st.data())
def test_rings_run_in_any_order(data: st.DataObject) -> None:
    """Whatever the orders of one to three rings are, rings and chains around them keep their contracts."""
    ranks = data.draw(st.integers(1, 9))
    orders = data.draw(st.lists(st.permutations(range(ranks)), min_size=1, max_size=3))
    root = data.draw(st.integers(0, ranks - 1))
    for make in (ring_all_reduce, ring_reduce_scatter, ring_all_gather):
        right(make(ranks, SIZE, orders))
    for chain in (chain_broadcast, chain_reduce):
        right(chain(ranks, SIZE, root, 3, orders))


def test_tiny_messages() -> None:
    """A message of fewer bytes than parts leaves parts empty, and is still whole."""
    for name, collective in CASES:
        place = Place(boxes_of([3, 3]), 2, pieces=5, matrix=np.eye(6, dtype=np.int64)[::-1])
        schedule = draw(name, collective, place)
        validate(schedule)
        assert schedule.size == (2 if collective != "alltoallv" else 1)


def test_reductions_only_where_something_is_reduced() -> None:
    """Algorithms that only move data have copies alone."""
    for name, collective in CASES:
        place = Place(boxes_of([2, 2]), 64, pieces=2, matrix=np.ones((4, 4), np.int64))
        ops = set(draw(name, collective, place).op.tolist())
        assert (Op.REDUCE in ops) == ("reduce" in collective)
