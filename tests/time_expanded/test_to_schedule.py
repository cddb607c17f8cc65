"""Schedules in epochs as sends: valid, right on data, and replayed in no more time than the epochs say."""

from __future__ import annotations

import pytest

from dualcoll.collectives.request import make_workload
from dualcoll.execution.in_process import execute
from dualcoll.schedules.validate import validate
from dualcoll.simulation import Options, simulate
from dualcoll.time_expanded.greedy import list_schedule
from dualcoll.time_expanded.network import Clock
from dualcoll.time_expanded.solution import Solution
from dualcoll.time_expanded.task import Task, make_task
from dualcoll.time_expanded.to_schedule import to_schedule
from dualcoll.topology.model import Forwarding, Kind, Link, Node, Topology
from tests.time_expanded.fabrics import US, dgx1, dgx2, h100, mesh, ndv2


def listed(task: Task) -> Solution:
    """What gathers, and after it what spreads, both list scheduled."""
    reducing = None if task.reducing is None else list_schedule(task.reducing)
    turn = 0 if reducing is None else reducing.finish
    copying = None if task.copying is None else list_schedule(task.copying)
    if copying is not None and turn:
        columns = copying.arc, copying.epoch + turn, copying.chunk
        copying = type(copying)(copying.problem, *columns)
    return Solution(task, copying, reducing, turn)


def replayed(task: Task) -> tuple[float, float]:
    """Seconds of the epochs, and of the replay of valid sends that move data right."""
    found = listed(task)
    made = to_schedule(found)
    validate(made)
    execute(made, elements=2)
    trace = simulate(made, Options(in_order=True, reduction_speed=task.network.clock.reduction_speed))
    return found.makespan, trace.finish


FABRICS = {
    "dgx1": dgx1(0.7 * US),
    "ndv2": ndv2(2),
    "ndv2 x4": ndv2(4),
    "dgx2": dgx2(),
    "h100": h100(2),
    "mesh": mesh(3),
}


@pytest.mark.parametrize("name", list(FABRICS))
@pytest.mark.parametrize("collective", ["allgather", "reducescatter", "allreduce", "broadcast", "alltoall", "gather"])
@pytest.mark.parametrize("switch_copy", [False, True])
def test_replay(name: str, collective: str, switch_copy: bool) -> None:
    """Sent when ready, in the order of the epochs, nothing is later than they say; the clock may be coarse."""
    fabric = FABRICS[name]
    if switch_copy and not any(node.kind is Kind.SWITCH for node in fabric.nodes):
        return
    for clock in (Clock(switch_copy=switch_copy), Clock("slowest", switch_copy=switch_copy)):
        epochs, seconds = replayed(make_task(fabric, make_workload(fabric, collective, size="3M"), clock=clock))
        assert 0 < seconds <= epochs * (1 + 1e-9)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0, 4.0])
def test_slow_link_is_done_when_it_delivers(ratio: float) -> None:
    """A chunk that crosses a slow link is all there when the epochs say so: store and forward takes no longer either."""
    nodes = tuple(Node(f"g{i}", Kind.GPU) for i in range(4))
    ends = [(0, 1), (1, 2), (2, 3), (3, 0)]
    links = tuple(
        Link(a, b, 1e6 / (ratio if i % 2 else 1.0)) for i, (t, h) in enumerate(ends) for a, b in ((t, h), (h, t))
    )
    fabric = Topology(nodes, links)
    found = listed(make_task(fabric, make_workload(fabric, "allgather", size=4_000_000), chunks_per_rank=3))
    made = to_schedule(found)
    for cut_through in (True, False):
        trace = simulate(made, Options(in_order=True, cut_through=cut_through))
        for send in range(made.sends):
            assert trace.end[send] <= found.makespan * (1 + 1e-9)
    assert found.copying is not None
    by_round = trace.end / found.task.network.epoch
    arrival = dict(
        zip(
            zip(
                found.copying.chunk.tolist(),
                found.copying.problem.network.head[found.copying.arc].tolist(),
                strict=True,
            ),
            found.copying.arrival.tolist(),
            strict=True,
        )
    )
    for send in range(made.sends):
        assert by_round[send] <= arrival[int(made.chunk[send]), int(made.dst[send])] * (1 + 1e-9)


def test_reductions_that_take_time() -> None:
    """With a speed of reducing, replay with that speed keeps to the epochs."""
    fabric = dgx1(0.7 * US)
    task = make_task(fabric, make_workload(fabric, "allreduce", size="1M"), clock=Clock(reduction_speed=20e9))
    epochs, seconds = replayed(task)
    assert seconds <= epochs * (1 + 1e-9)
    free = make_task(fabric, make_workload(fabric, "allreduce", size="1M"))
    assert replayed(free)[1] < seconds


def test_holders_that_are_no_ranks() -> None:
    """A GPU that takes no part but holds chunks is a rank of the schedule to which nothing is promised."""
    nodes = tuple(Node(f"g{i}", Kind.GPU) for i in range(3))
    fabric = Topology(nodes, tuple(Link(a, b, 1e9) for t, h in ((0, 1), (1, 2)) for a, b in ((t, h), (h, t))))
    work = make_workload(fabric, "allgather", size="2M", ranks="0,2")
    task = make_task(fabric, work, forwarding=Forwarding.ALL)
    made = to_schedule(listed(task))
    assert (made.ranks, made.contract.groups) == (3, ((0, 1),))
    validate(made)
    execute(made, elements=2)
