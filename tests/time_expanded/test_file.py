"""Epoch files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualcoll.collectives.request import make_workload
from dualcoll.errors import InputError
from dualcoll.time_expanded.check import examine_solution
from dualcoll.time_expanded.file import read_epochs, same_task, solution_from_dict, solution_to_dict, write_epochs
from dualcoll.time_expanded.greedy import list_schedule
from dualcoll.time_expanded.network import Clock
from dualcoll.time_expanded.solution import Solution
from dualcoll.time_expanded.task import make_task
from tests.time_expanded.fabrics import US, dgx1, dgx2, h100

BY_HAND: dict[str, Any] = {
    "format": "dualcoll.epochs/1",
    "topology": {
        "format": "dualcoll.topology/1",
        "nodes": [{"name": name, "kind": "gpu"} for name in "shd"],
        "links": [
            {"from": "s", "to": "h", "bandwidth": "1MB/s", "latency": "0us"},
            {"from": "h", "to": "d", "bandwidth": "1MB/s", "latency": "0us"},
        ],
    },
    "ranks": ["s", "h", "d"],
    "chunk_size": "1MB",
    "contract": {"collective": "broadcast", "ranks": 3, "chunks": 1, "root": 0, "source": 0, "target": -1},
    "starts": {"s -> h": {"0": 0}, "h -> d": {"1": [0]}},
}


def test_by_hand() -> None:
    """A file that a person can write is read, and means what it says."""
    found = solution_from_dict(BY_HAND, "x.json")
    assert (found.finish, found.makespan) == (2, 2.0)
    assert examine_solution(found).violations == ()


@pytest.mark.parametrize("collective", ["allgather", "reducescatter", "alltoall", "scatter"])
def test_round_trip(collective: str, tmp_path: Path) -> None:
    """What is written is read again: clock, chunks, starts, and what is proved."""
    fabric = dgx2() if collective == "alltoall" else dgx1(0.7 * US)
    clock = Clock(multiplier=2.0, ignored_latency=0.1, switch_copy=True, reduction_speed=1e11)
    task = make_task(fabric, make_workload(fabric, collective, size="1M"), clock=clock)
    problem = task.copying or task.reducing
    assert problem is not None
    made = list_schedule(problem)
    copying, reducing = (made, None) if task.copying is not None else (None, made)
    found = Solution(task, copying, reducing, made.finish, 3, "because", method="list")
    write_epochs(found, tmp_path / "e.json")
    again = read_epochs(tmp_path / "e.json")
    assert same_task(again.task, task) == ""
    assert (again.bound, again.reason, again.method, again.finish) == (3, "because", "list", found.finish)
    part = again.copying or again.reducing
    assert part is not None
    assert np.array_equal(part.arc, made.arc)
    assert np.array_equal(part.epoch, made.epoch)
    assert examine_solution(again).violations == ()


def test_another_task() -> None:
    """A task that differs is told apart, and how."""
    fabric = dgx1()
    work = make_workload(fabric, "allgather", size="1M")
    task = make_task(fabric, work)
    assert same_task(task, make_task(fabric, work, chunks_per_rank=2)) == "chunk size"
    assert same_task(task, make_task(fabric, work, clock=Clock(multiplier=2))) == "epoch"
    assert same_task(task, make_task(dgx1(US), work)) == "topology"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "x"}, "x.json: format: format 'x' is not dualcoll.epochs/1"),
        ({"ranks": ["s", "h", "e"]}, "x.json: ranks: the topology has no node 'e'"),
        ({"clock": {"epoch": "soon"}}, "x.json: clock: cannot read time 'soon'"),
        ({"chunk_size": "big"}, "x.json: chunk_size: cannot read size 'big'"),
        ({"starts": {"s -> d": {"0": 0}}}, "x.json: starts: s -> d: there is no such link; such as 's -> h'"),
        ({"starts": {"s -> h": [0]}}, "x.json: starts: s -> h: it is not a mapping of epochs to chunks"),
        ({"starts": {"s -> h": {"one": 0}}}, "x.json: starts: s -> h: one: it is not the number of an epoch"),
        (
            {"starts": {"s -> h": {"0": "0"}}},
            "x.json: starts: s -> h: 0: it is not a chunk's number, or a list of some",
        ),
        ({"starts": {"s -> h": {"0": 4}}}, "x.json: starts: there is no chunk 4; chunks are 0 to 0"),
        ({"gathering": {"s -> h": {"0": 0}}}, "x.json: gathering: the contract has no chunks that gather"),
        ({"sizes": 2_000_000}, "x.json: sizes: a chunk is not of 0 to 1000000 bytes"),
    ],
)
def test_errors(change: dict[str, Any], message: str) -> None:
    """Whatever is wrong is said with its key."""
    with pytest.raises(InputError) as raised:
        solution_from_dict({**BY_HAND, **change}, "x.json")
    assert str(raised.value).startswith(message)


def test_ways_over_switches() -> None:
    """Where a link has several arcs, each has a name."""
    fabric = h100(2)
    task = make_task(fabric, make_workload(fabric, "broadcast", size="1M"))
    assert task.copying is not None
    made = list_schedule(task.copying)
    data = json.loads(json.dumps(solution_to_dict(Solution(task, made, None))))
    again = solution_from_dict(data, "x")
    assert again.copying is not None
    assert np.array_equal(again.copying.arc, made.arc)


def test_time_turned_round() -> None:
    """What gathers is written as it happens: the last arrival at the root is the makespan."""
    fabric = dgx1()
    task = make_task(fabric, make_workload(fabric, "reduce", size="25k"))
    assert task.reducing is not None
    made = list_schedule(task.reducing)
    data = solution_to_dict(Solution(task, None, made, turn=made.finish))
    epochs = [int(k) for per_link in data["gathering"].values() for k in per_link]
    assert min(epochs) == 0
    shifted = {name: {str(int(k) + 5): c for k, c in per.items()} for name, per in data["gathering"].items()}
    later = solution_from_dict({**data, "gathering": shifted}, "x")
    assert later.finish == made.finish + 5
    assert replace(later, turn=made.finish).finish == made.finish
