"""Tuner rows, alltoallv matrices and rank orders."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dualcoll._api.comparing import compare
from dualcoll.collectives.demand_file import read_demand
from dualcoll.collectives.demand_matrix import DemandMatrix
from dualcoll.errors import InputError
from dualcoll.lowering.nccl import (
    TunerRow,
    alltoallv_flags,
    check_alltoallv,
    check_rank_order,
    check_tuner,
    rank_hosts,
    read_alltoallv,
    read_rank_order,
    read_tuner,
    tuner_rows,
    write_alltoallv,
    write_rank_order,
    write_tuner,
)
from dualcoll.topology.catalog import catalog


@dataclass
class Timed:
    """A result of a comparison."""

    method: str
    size: int
    seconds: float


def test_tuner_rows(tmp_path: Path) -> None:
    """Rows choose the fastest that NCCL has, join, end with the last size, and read back the same."""
    timed = [("ring", 1024, 3), ("tree", 1024, 2), ("trees", 1024, 1), ("double-tree", 2048, 2), ("ring", 4096, 1)]
    rows = tuner_rows("allreduce", 16, [Timed(*row) for row in timed], nodes=2)
    assert rows == (
        TunerRow("allreduce", 1024, 4095, "tree", nodes=2, ranks=16),
        TunerRow("allreduce", 4096, 4096, "ring", nodes=2, ranks=16),
    )
    write_tuner(rows, tmp_path / "c")
    assert (tmp_path / "c").read_text().splitlines()[1] == "allreduce,1024,4095,tree,simple,-1,2,16"
    assert read_tuner(tmp_path / "c") == rows
    assert check_tuner((tmp_path / "c").read_bytes(), "c") == ()


def test_tuner_from_compare() -> None:
    """The results of a comparison become rows that cover its sizes without a hole."""
    found = compare(catalog("ring:4"), "allreduce", sizes="1K,1M")
    rows = tuner_rows(found.collective, found.ranks, found.results)
    assert (rows[0].min_bytes, rows[-1].max_bytes) == (1024, 2**20)
    assert all(a.max_bytes + 1 == b.min_bytes for a, b in pairwise(rows))


@pytest.mark.parametrize(
    ("line", "read", "checked"),
    [
        ("allreduce,0,9,ringg,simple,-1,1,8", "algorithm 'ringg' is not known", "takes 'ringg' for 'ring'"),
        ("alltoall,0,9,ring,simple,-1,1,8", "collective 'alltoall' is not known", "takes 'alltoall' for 'allreduce'"),
        ("allreduce,9,0,ring,simple,-1,1,8", "sizes 9 to 0 are no range", "no size is from 9 to 0"),
        ("allreduce,0,9,ring,simple,-1,1", "7 cells", "skips a line of 7 cells"),
        ("allreduce,0,9,ring,simple,,1,8,-1", "'' is not a whole number", "drops empty cells"),
    ],
)
def test_tuner_faults(line: str, read: str, checked: str, tmp_path: Path) -> None:
    """Reader and validator find each fault on their own."""
    (tmp_path / "c").write_text(line + "\n")
    with pytest.raises(InputError, match=read):
        read_tuner(tmp_path / "c")
    assert any(checked in finding for finding in check_tuner((line + "\n").encode(), "c"))


def test_tuner_refusals(tmp_path: Path) -> None:
    """A row that an earlier one hides, a tree for a broadcast, and nothing that NCCL has are refused."""
    row = TunerRow("allreduce", 0, 9, "ring")
    with pytest.raises(InputError, match="line 2 fits all that it fits"):
        write_tuner([row, TunerRow("allreduce", 1, 5, "tree")], tmp_path / "c")
    assert not (tmp_path / "c").exists()
    with pytest.raises(InputError, match="no tree for Broadcast"):
        TunerRow("broadcast", 0, 9, "tree")
    with pytest.raises(InputError, match="no algorithm that NCCL has"):
        tuner_rows("allreduce", 4, [Timed("trees", 1, 1)])
    with pytest.raises(InputError, match="chooses no algorithm for AllToAll"):
        tuner_rows("alltoall", 4, [])


def test_alltoallv(tmp_path: Path) -> None:
    """A matrix is read back by the strict reader and by our own, and its flags cover the largest row and column."""
    matrix = DemandMatrix(np.array([[0, 32, 64], [16, 0, 100], [0, 0, 0]]))
    write_alltoallv(matrix, tmp_path / "m")
    assert (tmp_path / "m").read_text() == "0 32 64\n16 0 100\n0 0 0\n"
    assert np.array_equal(read_alltoallv(tmp_path / "m").cells, matrix.cells)
    assert np.array_equal(read_demand(tmp_path / "m").cells, matrix.cells)
    assert alltoallv_flags(matrix) == "-b 176 -e 176 -a 3"
    assert check_alltoallv((tmp_path / "m").read_bytes(), 3, "m") == (
        "m: 1 of 9 cells are rounded down to multiples of 16 bytes",
    )
    assert "3 rows for 4 ranks" in check_alltoallv((tmp_path / "m").read_bytes(), 4, "m")[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [("0 4K\n1 0\n", "'4K' is not a whole number"), ("0 16\n16\n", "a row of 1 cells"), ("0 16\n", "not square")],
)
def test_alltoallv_faults(text: str, problem: str, tmp_path: Path) -> None:
    """What nccl-tests does not read is refused, with the place."""
    (tmp_path / "m").write_text(text)
    with pytest.raises(InputError, match=problem):
        read_alltoallv(tmp_path / "m")
    with pytest.raises(InputError, match="below 16 bytes"):
        write_alltoallv(DemandMatrix(np.array([[16, 8], [8, 16]])), tmp_path / "n")


def test_rank_order(tmp_path: Path) -> None:
    """Ranks of two boxes in turns, with real host names; checked against the topology."""
    topology = catalog("dgx-a100", boxes=2)
    half = len(topology.ranks) // 2
    ranks = [rank for both in zip(topology.ranks[:half], topology.ranks[half:], strict=True) for rank in both]
    boxes = [topology.nodes[ranks[0]].box or "", topology.nodes[ranks[1]].box or ""]
    hosts = rank_hosts(topology, ranks, {boxes[0]: "node-a", boxes[1]: "node-b"})
    assert hosts == ("node-a", "node-b") * half
    write_rank_order(hosts, tmp_path / "h")
    assert read_rank_order(tmp_path / "h") == hosts
    data = (tmp_path / "h").read_bytes()
    assert check_rank_order(data, topology, ranks) == ()
    assert check_rank_order(data, topology, topology.ranks)[0].startswith("rank 1 of box")
    assert check_rank_order(b"node-a\n", topology, ranks) == ("1 lines for 16 ranks",)


def test_rank_order_refusals(tmp_path: Path) -> None:
    """GPUs out of order, boxes without a host, and names that are none are refused."""
    topology = catalog("dgx-a100")
    with pytest.raises(InputError, match="set CUDA_VISIBLE_DEVICES=1,0,2,3,4,5,6,7"):
        rank_hosts(topology, (1, 0, *topology.ranks[2:]))
    with pytest.raises(InputError, match="no host is given for box"):
        rank_hosts(topology, topology.ranks, {})
    with pytest.raises(InputError, match="is no host name"):
        write_rank_order(["a b"], tmp_path / "h")
    (tmp_path / "h").write_text("a slots=8\n")
    with pytest.raises(InputError, match="without slots"):
        read_rank_order(tmp_path / "h")
