from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.collectives.catalogue import COLLECTIVES, ROOTED, SHARDED
from dualcoll.collectives.demand_file import read_demand
from dualcoll.collectives.demand_matrix import DemandMatrix
from dualcoll.collectives.request import make_workload
from dualcoll.collectives.workload import Group, Objective
from dualcoll.errors import InputError
from tests.packing.fabrics import fabric

TOPOLOGY = fabric("g0-s0:1, g1-s0:1, g2-s0:1, g3-s0:1")  # nodes: g0 s0 g1 g2 g3; ranks 0 to 3 are nodes 0, 2, 3, 4


def only(collective: str, size: int | str = "1K", **asked: Any) -> Group:
    (group,) = make_workload(TOPOLOGY, collective, size=size, **asked).groups
    return group


def refusal(collective: str, size: int | str = "1K", **asked: Any) -> str:
    with pytest.raises(InputError) as caught:
        make_workload(TOPOLOGY, collective, size=size, **asked)
    return str(caught.value)


def matrix(*rows: list[int], names: tuple[str, ...] = ()) -> DemandMatrix:
    return DemandMatrix(np.array(rows), names)


@pytest.mark.parametrize("collective", [name for name in COLLECTIVES if name != "alltoallv"])
def test_all_ranks_by_default(collective: str) -> None:
    """The first is the root where there is one; the size is read as nccl-tests does."""
    root = 0 if collective in ROOTED else None
    assert only(f"{collective}_perf", "1.5K") == Group("all", collective, (0, 2, 3, 4), 1536, root)


@pytest.mark.parametrize("root", [2, "2", "g2"])
def test_a_root_by_number_or_name(root: int | str) -> None:
    """Numbers count all ranks of the fabric, not those that take part."""
    assert only("broadcast", ranks="3,2", root=root) == Group("all", "broadcast", (4, 3), 1024, 3)
    assert only("broadcast", ranks="3,2").root == 4


@pytest.mark.parametrize("collective", SHARDED)
def test_uneven_shards(collective: str) -> None:
    """Weights stand in the order of the ranks and may be numpy's."""
    assert only(collective, ranks="3,0", weights=[2, np.int64(0), 1][::2]).parts == (2, 1)


def test_two_ranks_and_one_byte() -> None:
    """The smallest message of the fewest ranks."""
    assert only("allgather", 1, ranks="g3,0") == Group("all", "allgather", (4, 0), 1)


def test_the_demand_of_an_all_to_all() -> None:
    """Its size is the most that a rank sends or receives, what it keeps included; the size asked for is not read."""
    group = only("alltoallv", ranks="0,3", demand=matrix([5, 1], [7, 2]))
    assert group == Group("all", "alltoallv", (0, 4), 12, parts=(5, 1, 7, 2))


def test_a_matrix_with_names_is_put_in_the_order_of_the_ranks() -> None:
    """Without ranks, it says who takes part."""
    named = matrix([5, 1], [7, 2], names=("g3", "0"))
    assert only("alltoallv", demand=named) == Group("all", "alltoallv", (4, 0), 12, parts=(5, 1, 7, 2))
    assert only("alltoallv", ranks="0,3", demand=named) == Group("all", "alltoallv", (0, 4), 12, parts=(2, 7, 1, 5))


@given(st.permutations(range(4)), st.lists(st.integers(0, 9), min_size=16, max_size=16))
def test_no_order_of_the_ranks_changes_who_sends_what(order: list[int], cells: list[int]) -> None:
    """The same pairs carry the same bytes, however the ranks are listed."""
    table = np.array(cells).reshape(4, 4) + 1
    demand = DemandMatrix(table, ("g0", "g1", "g2", "g3"))
    group = only("alltoallv", ranks=order, demand=demand)
    found = {(u, v): cell for (u, v), cell in zip(((u, v) for u in order for v in order), group.parts, strict=True)}
    assert found == {(u, v): int(table[u, v]) for u in range(4) for v in range(4)}


def test_several_groups_run_the_collective_each() -> None:
    """Numbered, with the first of each as its root; the objective holds for all."""
    work = make_workload(TOPOLOGY, "gather", size=6, groups="2 groups of stride 2", weights=[1, 2], objective="total")
    assert work.objective is Objective.TOTAL
    assert work.groups == (
        Group("group[0]", "gather", (0, 3), 6, 0, (1, 2)),
        Group("group[1]", "gather", (2, 4), 6, 2, (1, 2)),
    )


@pytest.mark.parametrize(
    ("collective", "asked", "message"),
    [
        ("allreduce", {"ranks": "2"}, "ranks: AllReduce of 1 rank; two or more take part"),
        ("allreduce", {"ranks": []}, "ranks: AllReduce of no ranks; two or more take part"),
        (
            "allgather",
            {"root": 0},
            "root: AllGather has no root; leave it out; Broadcast, Reduce, Gather, Scatter have one",
        ),
        (
            "reduce",
            {"ranks": "0-1", "root": "g3"},
            "root: g3 is not among the ranks that take part; name one that does",
        ),
        ("reduce", {"root": "0-1"}, "root: 0-1 is not one rank; give a number or a name"),
        ("reduce", {"root": "s0"}, "root: s0 is a switch and no rank; give the node `rank: true`"),
        (
            "reduce",
            {"groups": "0-1;2-3", "root": 1},
            "root: g1 is not among the ranks of group[1]; leave it out for the first of each group",
        ),
        (
            "alltoall",
            {"weights": [1, 1, 1, 1]},
            "weights: AllToAll has no shards to weigh; AllGather, ReduceScatter, Gather, Scatter have; leave it out",
        ),
        ("allgather", {"weights": [1, 2]}, "weights: 2 weights for 4 ranks; give one for each rank"),
        (
            "allgather",
            {"weights": [1, 2, 3, -1]},
            "weights: '-1' is not a whole number from 0 to 2**63 - 1; weights say how large each rank's shard is, "
            "such as 1,1,2,2",
        ),
        (
            "allgather",
            {"weights": [1, 2, 3, 0.5]},
            "weights: '0.5' is not a whole number from 0 to 2**63 - 1; weights say how large each rank's shard is, "
            "such as 1,1,2,2",
        ),
        ("allgather", {"weights": [0] * 4}, "weights: nothing to send: all weights are 0; make one of them positive"),
        (
            "scatter",
            {"weights": [0, 3, 0, 0], "root": 1},
            "weights: nothing to send: all weight is at the root; weigh others than g1",
        ),
        (
            "alltoallv",
            {},
            "demand: AllToAllv needs a demand matrix; give a file of bytes from each rank to each, or use AllToAll for "
            "equal parts",
        ),
        (
            "alltoall",
            {"demand": matrix([0, 1], [1, 0])},
            "demand: AllToAll takes no demand matrix; use AllToAllv, or leave it out",
        ),
        (
            "alltoallv",
            {"demand": matrix([0, 1], [1, 0])},
            "demand: a matrix of 2 by 2 for 4 ranks; name the 2 ranks that it means",
        ),
        (
            "alltoallv",
            {"demand": DemandMatrix(np.ones((5, 5), np.int64))},
            "demand: a matrix of 5 by 5 for 4 ranks; cut the matrix, or use a larger fabric",
        ),
        (
            "alltoallv",
            {"demand": matrix([0, 1], [1, 0], names=("g0", "g1")), "ranks": "0,3"},
            "demand: the matrix names g1, which does not take part; let ranks and matrix name the same",
        ),
        (
            "alltoallv",
            {"demand": matrix([0, 1], [1, 0], names=("g0", "g1")), "ranks": "0-2"},
            "demand: the matrix does not name g2, which takes part; let ranks and matrix name the same",
        ),
        (
            "alltoallv",
            {"demand": matrix([0, 1], [1, 0], names=("0-1", "g2"))},
            "demand: 0-1, g2 are not the names of 2 ranks; name each rank by itself",
        ),
        ("alltoallv", {"demand": matrix([0, 1], [1, 0], names=("0", "g0"))}, "demand: rank g0 is named twice"),
        (
            "allreduce",
            {"ranks": "0-1", "groups": "0-1;2-3"},
            "groups: ranks and groups exclude each other; name the ranks of each group",
        ),
        ("allreduce", {"objective": "fast"}, "objective: 'fast' is not known; use one of slowest, total"),
        ("allreduce", {"objective": "total"}, "objective: a total needs several groups; give groups or a mix"),
        ("allreduce", {"size": 0}, "size '0' is out of range; a message has 1 to 2**63 - 1 bytes"),
    ],
)
def test_what_cannot_be_asked_is_refused(collective: str, asked: dict[str, Any], message: str) -> None:
    """With what was given, what is wrong with it and what to try."""
    assert refusal(collective, **asked) == message


def test_a_matrix_of_absent_ranks_is_refused_with_its_line(tmp_path: Path) -> None:
    """Where the names stand."""
    path = tmp_path / "moe.csv"
    path.write_text("\n,g0,g7\ng0,0,1\ng7,1,0\n")
    with pytest.raises(InputError) as caught:
        make_workload(TOPOLOGY, "alltoallv", size=1, demand=read_demand(path))
    assert str(caught.value) == f"{path}:2: 'g7' is not a rank; ranks are 0 to 3, or node names"
