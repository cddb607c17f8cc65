"""Equal chunks for a plan's trees."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from dualcoll import plan as make_plan
from dualcoll.collectives.workload import Group, Workload
from dualcoll.errors import InputError
from dualcoll.lowering.chunk_counts import ChunkCounts, chunk_counts, equal_chunks
from dualcoll.plans.model import Plan
from dualcoll.progress import Gap
from dualcoll.schedules.validate import validate
from dualcoll.topology.catalog import catalog


@cache
def planned(spec: str, collective: str, max_trees: int | None = None) -> Plan:
    return make_plan(catalog(spec), collective, size=2**24, stop=Gap(0.05), max_trees=max_trees)


def rate_of(plan: Plan, counts: tuple[int, ...]) -> float:
    """The message over the time of the busiest link if trees carry their demands in proportion to the counts."""
    demands = plan.workload.demands()
    total = np.zeros(len(demands))
    for tree, count in zip(plan.trees, counts, strict=True):
        total[tree.demand] += count
    loads = np.zeros(len(plan.topology.links))
    for tree, count in zip(plan.trees, counts, strict=True):
        loads += tree.loads(loads.size) * float(demands[tree.demand].part) * count / total[tree.demand]
    rows = [(load, link.capacity) for load, link in zip(loads, plan.topology.links, strict=True)]
    rows += [(loads[list(row.links)].sum(), row.capacity) for row in plan.topology.shared]
    return float(plan.size / max(load / capacity for load, capacity in rows))


@pytest.mark.parametrize("collective", ["allreduce", "allgather", "reducescatter", "broadcast", "alltoall"])
@pytest.mark.parametrize("spec", ["dgx-h100", "mi250", "torus:3x3"])
def test_rate_is_that_of_the_busiest_link(spec: str, collective: str) -> None:
    """Each demand has as many chunks, they fit in the limit, and the rate is what the links allow with their shares."""
    plan = planned(spec, collective)
    counts = chunk_counts(plan, 100)
    ranks = len(plan.participants)
    of_demand = np.bincount([tree.demand for tree in plan.trees], counts.of_tree)
    parts = 1 if collective in ("allreduce", "broadcast") else ranks
    assert set(of_demand) == {counts.total / parts}
    assert 50 < counts.total <= 100
    assert counts.rate == pytest.approx(rate_of(plan, counts.of_tree), rel=1e-12)
    assert counts.loss == max(0.0, 1 - counts.rate / plan.value)


def test_loss_is_the_least() -> None:
    """With few chunks and trees no other numbers of chunks do better."""
    for plan, most in ((planned("dgx-h100", "allreduce", 3), 9), (planned("mi250", "allreduce", 3), 9)):
        best = max(
            rate_of(plan, counts)
            for counts in product(range(most + 1), repeat=len(plan.trees))
            if 0 < sum(counts) <= most
        )
        assert chunk_counts(plan, most).rate == pytest.approx(best, rel=1e-9)


def test_more_chunks_lose_less() -> None:
    """The loss never grows with the limit, and vanishes with many chunks."""
    plan = planned("mi250", "allreduce")
    losses = [chunk_counts(plan, most).loss for most in (8, 32, 512)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.01


def test_one_tree_loses_nothing() -> None:
    """A single tree gets all the chunks there may be, so that they overlap."""
    plan = planned("dgx-h100", "allreduce", 1)
    counts = chunk_counts(plan, 37)
    assert (counts.of_tree, counts.total, counts.loss) == ((37,), 37, 0.0)


@pytest.mark.parametrize("collective", ["allreduce", "allgather", "reducescatter", "broadcast", "alltoall", "gather"])
def test_chunks_are_equal(collective: str) -> None:
    """All chunks but those that a rank keeps have one size, each tree as many as counted, and the schedule is right."""
    plan = planned("torus:3x3", collective)
    schedule, counts = equal_chunks(plan, 72, size=10**6)
    unit = schedule.size // counts.total
    kept = schedule.contract.source == schedule.contract.target if collective in ("alltoall", "gather") else None
    moved = schedule.chunk_size if kept is None else schedule.chunk_size[~kept]
    assert set(moved.tolist()) == {unit}
    assert 0 <= 10**6 - schedule.size < 16 * counts.total
    per_tree = [int(np.unique(schedule.chunk[schedule.channel == t]).size) for t in range(schedule.channel.max() + 1)]
    assert per_tree == [count for count in counts.of_tree if count]
    validate(schedule)


def test_text() -> None:
    """What it costs is said with both rates, and trees that are left out are counted."""
    assert ChunkCounts((2, 1, 0), 3, 2.25e11, 2.5e11).text == (
        "3 equal chunks, 1 of 3 trees left out: 225 GB/s of the plan's 250 GB/s, a loss of 10 %"
    )
    assert ChunkCounts((2, 1), 3, 2.5e11, 2.5e11).text == (
        "3 equal chunks: 250 GB/s of the plan's 250 GB/s, a loss of 0 %"
    )


def test_refusals() -> None:
    """Several groups, unequal parts, fewer chunks than parts, and too small a message."""
    plan = planned("torus:3x3", "allgather")
    with pytest.raises(InputError) as caught:
        chunk_counts(plan, 8)
    assert str(caught.value) == "max_chunks: 8 chunks for 9 parts of the message; use 9 or more"
    with pytest.raises(InputError) as caught:
        equal_chunks(plan, 9, size=100)
    assert str(caught.value) == ("size: 100 bytes for 9 chunks of at least 16; use 144 bytes or more, or fewer chunks")
    (group,) = plan.workload.groups
    uneven = replace(plan, workload=Workload((replace(group, parts=(1,) * 8 + (2,)),)))
    with pytest.raises(InputError) as caught:
        chunk_counts(uneven)
    assert str(caught.value) == "plan: the parts of AllGather differ in size; equal chunks are for equal parts"
    twice = replace(plan, workload=Workload((group, Group("b", "allgather", group.ranks, group.size))))
    with pytest.raises(InputError) as caught:
        chunk_counts(twice)
    assert str(caught.value) == "plan: 2 groups; equal chunks are for one collective at a time"
