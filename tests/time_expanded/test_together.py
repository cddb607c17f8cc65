"""Several jobs on one fabric, and fabrics that lose a part."""

from __future__ import annotations

import numpy as np
import pytest

from dualcoll._api.time_expanding import after_failure, plan_epochs, replay, task_for, tenants
from dualcoll.collectives.workload import Group, Workload
from dualcoll.errors import InputError
from dualcoll.execution.in_process import execute
from dualcoll.progress import Outcome, Seconds
from dualcoll.schedules.validate import validate
from dualcoll.time_expanded.check import examine_solution
from dualcoll.time_expanded.solution import Solution
from dualcoll.topology.model import Topology
from tests.time_expanded.fabrics import dgx1

CHUNK = 25_000


def jobs(first: int, second: int) -> Workload:
    """Two broadcasts from one GPU, whose cables both need."""
    ranks = tuple(range(8))
    return Workload(
        (
            Group("a", "broadcast", ranks, 6 * CHUNK, root=0, priority=first),
            Group("b", "broadcast", ranks, 6 * CHUNK, root=0, priority=second),
        )
    )


def solved(fabric: Topology, work: Workload, chunks: int = 6) -> Solution:
    """Solved with the jobs' priorities; right by every rule, as sends, on data, and in the time of its epochs."""
    task = task_for(fabric, work, chunks_per_rank=chunks)
    found = plan_epochs(task, priorities=[group.priority for group in work.groups], stop=Seconds(20))
    assert not examine_solution(found).violations
    made, trace = replay(found)
    validate(made)
    execute(made, elements=16)
    assert trace.finish <= found.finish * task.network.epoch * (1 + 1e-9)
    return found


@pytest.mark.parametrize(("first", "second"), [(1, 0), (0, 1)])
def test_priorities_say_who_is_done_first(first: int, second: int) -> None:
    """The job of the higher priority is done as soon as it would be alone; the other pays; nobody pays more than in turn."""
    found = solved(dgx1(), jobs(first, second))
    seen = tenants(found, stop=Seconds(20))
    ahead, behind = (0, 1) if first > second else (1, 0)
    assert seen.together[ahead] == seen.alone[ahead]
    assert seen.together[ahead] < seen.together[behind] == found.finish
    assert max(seen.together) <= seen.in_turn


def test_two_jobs_are_never_slower_than_in_turn() -> None:
    """Jobs on different GPUs of one box, at once and proved, against one after the other."""
    work = Workload(
        (
            Group("low", "allgather", (0, 1, 2, 3), 4 * CHUNK),
            Group("high", "alltoall", (4, 5, 6, 7), 4 * CHUNK),
        )
    )
    found = solved(dgx1(), work, 1)
    seen = tenants(found, stop=Seconds(20))
    assert found.outcome is Outcome.OPTIMAL
    assert max(seen.alone) <= max(seen.together) <= seen.in_turn


def test_a_dead_cable() -> None:
    """Without one cable an all-gather takes no less; it is solved anew in the same epochs, and right."""
    found = solved(dgx1(), Workload((Group("x", "allgather", tuple(range(8)), 16 * CHUNK),)), 2)
    lost = after_failure(found, ["g0.0 - g0.1"], stop=Seconds(20))
    assert lost.task.network.epoch == found.task.network.epoch
    assert len(lost.task.network.topology.links) == len(found.task.network.topology.links) - 2
    assert not examine_solution(lost).violations
    assert lost.outcome is Outcome.OPTIMAL
    assert lost.finish > found.finish


def test_a_dead_gpu() -> None:
    """Seven GPUs go on with seven shards."""
    found = solved(dgx1(), Workload((Group("x", "allgather", tuple(range(8)), 8 * CHUNK),)), 1)
    lost = after_failure(found, ["g0.3"], stop=Seconds(20))
    assert lost.task.workload is not None
    assert len(lost.task.workload.groups[0].ranks) == 7
    assert lost.task.workload.size == 7 * CHUNK
    assert not examine_solution(lost).violations


def test_the_root_cannot_fail() -> None:
    """Nobody has the data of a dead root."""
    found = solved(dgx1(), Workload((Group("x", "broadcast", tuple(range(8)), CHUNK, root=3),)), 1)
    with pytest.raises(InputError, match=r"group x: nobody can take the part of g0\.3"):
        after_failure(found, ["g0.3"], stop=Seconds(5))


def test_all_reduce_in_one_model() -> None:
    """An all-reduce whose chunks spread as soon as they are gathered is no slower than one half after the other."""
    ranks, size = tuple(range(8)), 8 * CHUNK
    whole = solved(dgx1(), Workload((Group("x", "allreduce", ranks, size),)), 1)
    halves = [
        solved(dgx1(), Workload((Group("x", name, ranks, size),)), 1).finish for name in ("reducescatter", "allgather")
    ]
    assert whole.bound <= whole.finish <= sum(halves)
    assert whole.finish >= max(halves)


def test_reduce_scatter_is_all_gather_turned() -> None:
    """On a symmetric fabric both have the same least makespan."""
    ranks, size = tuple(range(8)), 8 * CHUNK
    done = [
        solved(dgx1(0.7e-6), Workload((Group("x", name, ranks, size),)), 1) for name in ("allgather", "reducescatter")
    ]
    assert {found.outcome for found in done} == {Outcome.OPTIMAL}
    assert done[0].finish == done[1].finish == 7


def test_reductions_cost_time() -> None:
    """Where ranks take an epoch to reduce a chunk, a reduce-scatter takes longer, and says so in simulation too."""
    from dualcoll.time_expanded.network import Clock

    work = Workload((Group("x", "reducescatter", tuple(range(8)), 8 * CHUNK),))
    free = plan_epochs(task_for(dgx1(), work), stop=Seconds(20))
    slow = plan_epochs(task_for(dgx1(), work, clock=Clock(reduction_speed=25e9)), stop=Seconds(20))
    made, trace = replay(slow)
    validate(made)
    assert slow.finish > free.finish
    assert trace.finish <= slow.finish * slow.task.network.epoch * (1 + 1e-9)
    assert np.isfinite(trace.finish)
