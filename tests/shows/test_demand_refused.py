"""Demand that cannot be carried is an error that says what is wrong, from Python and on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dualcoll._api import plan
from dualcoll.collectives.demand_file import read_demand
from dualcoll.collectives.demand_matrix import DemandMatrix
from dualcoll.errors import InputError
from dualcoll.topology.catalog import catalog
from tests.cli.conftest import Run

SHAPE = "give one row and one column for each rank"
NOTHING = "nothing to send: no rank has bytes for another; give a rank bytes for another, or leave the collective out"

# text of a file, and what is said of it after its name
FILES = [
    ("0 1 2\n1 0 2\n", f": a matrix of 2 by 3 is not square; {SHAPE}"),
    ("0 1 2\n1 0\n2 1 0\n", f":2: a row of length 2, where line 1 has 3 cells; {SHAPE}"),
    ("0 1 2\n1 0 -3\n2 1 0\n", ":2: '-3' is negative; bytes are 0 or more"),
    ("0 0 0\n0 0 0\n0 0 0\n", f": {NOTHING}"),
    ("7 0 0\n0 7 0\n0 0 7\n", f": {NOTHING}"),
    (",g0,g9\ng0,0,1\ng9,1,0\n", ":1: 'g9' is not a rank; ranks are 0 to 2, or node names"),
    (",g0,switch\ng0,0,1\nswitch,1,0\n", ":1: switch is a switch and no rank; give the node `rank: true`"),
    ("x,0,7\n0,0,1\n7,1,0\n", ":1: 7 is not within ranks 0 to 2"),
    ("0 1\n1 0\n", ": a matrix of 2 by 2 for 3 ranks; name the 2 ranks that it means"),
    (
        "0 1 1 1\n1 0 1 1\n1 1 0 1\n1 1 1 0\n",
        ": a matrix of 4 by 4 for 3 ranks; cut the matrix, or use a larger fabric",
    ),
]


@pytest.mark.parametrize(("text", "message"), FILES)
def test_a_file_that_is_no_demand(tmp_path: Path, run: Run, text: str, message: str) -> None:
    """The same message from both, and exit code 2."""
    path = tmp_path / "demand.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        plan(catalog("star:3"), "alltoallv", demand=read_demand(path))
    assert str(caught.value) == f"{path}{message}"
    done = run("plan", "star:3", "alltoallv", "--demand", path)
    assert (done.code, done.out, done.err) == (2, "", f"error: {path}{message}\n")


@pytest.mark.parametrize(
    ("cells", "names", "message"),
    [
        (np.ones((2, 3)), (), f"demand: a matrix of 2 by 3 is not square; {SHAPE}"),
        (np.array([[0, -1, 0], [0, 0, 0], [0, 0, 0]]), (), "demand: row 1 holds -1 bytes; bytes are 0 or more"),
        (np.diag([4, 4, 4]), (), f"demand: {NOTHING}"),
        (np.ones((2, 2)), ("g0", "g9"), "demand: 'g9' is not a rank; ranks are 0 to 2, or node names"),
        (np.ones((4, 4)), (), "demand: a matrix of 4 by 4 for 3 ranks; cut the matrix, or use a larger fabric"),
    ],
)
def test_an_array_that_is_no_demand(cells: np.ndarray, names: tuple[str, ...], message: str) -> None:
    """Arrays are held to the same rules as files."""
    with pytest.raises(InputError) as caught:
        plan(catalog("star:3"), "alltoallv", demand=DemandMatrix(cells, names))
    assert str(caught.value) == message


def test_demand_of_some_ranks_is_carried_between_them(tmp_path: Path, run: Run) -> None:
    """A row of zeros, a column of zeros and ranks that the matrix does not name are no errors."""
    path = tmp_path / "demand.csv"
    path.write_text(",g2,g0\ng2,0,1MiB\ng0,0,0\n")
    made = plan(catalog("star:3,bandwidth=1GB/s"), "alltoallv", demand=read_demand(path))
    assert made.algbw == pytest.approx(1e9)
    assert [[made.topology.nodes[node].name for node in edge] for edge in made.trees[0].edges] == [["g2", "g0"]]
    assert run("plan", "star:3", "alltoallv", "--demand", path).code == 0
