from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from dualcoll.collectives.demand_matrix import DemandMatrix
from dualcoll.errors import InputError


def test_what_moves_and_what_stays() -> None:
    """The size counts what a rank keeps; sent and received do not."""
    demand = DemandMatrix(np.array([[5, 1, 0], [7, 2, 3], [0, 0, 9]]))
    assert demand.size == 12
    assert demand.sent.tolist() == [1, 10, 0]
    assert demand.received.tolist() == [7, 1, 3]


def test_cells_do_not_change() -> None:
    """Neither through the matrix nor through the array that it was made from."""
    given = np.ones((2, 2), np.int64)
    demand = DemandMatrix(given)
    given[0, 1] = 5
    assert demand.cells.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(ValueError, match="read-only"):
        demand.cells[0, 1] = 5


SHAPE = "give one row and one column for each rank"


@pytest.mark.parametrize(
    ("cells", "names", "message"),
    [
        ([[1, 2, 3], [4, 5, 6]], (), f"a matrix of 2 by 3 is not square; {SHAPE}"),
        ([1, 2], (), f"a matrix of 2 is not square; {SHAPE}"),
        ([[1]], (), f"a matrix of 1 by 1 moves nothing; {SHAPE}"),
        ([[0, 1], [-1, 0]], (), "row 2 holds -1 bytes; bytes are 0 or more"),
        (
            [[0, 2**62], [0, 2**62]],
            (),
            "rank 1 receives 9.22e+18 bytes; at most 2**62 can be handled; are the cells bytes?",
        ),
        (
            [[2**62, 2**62], [0, 0]],
            (),
            "rank 0 sends 9.22e+18 bytes; at most 2**62 can be handled; are the cells bytes?",
        ),
        ([[0, 1], [1, 0]], ("a",), "1 names for 2 ranks"),
        ([[0, 1], [1, 0]], ("a", "a"), "rank a is named twice"),
        (
            [[3, 0], [0, 4]],
            (),
            "nothing to send: no rank has bytes for another; give a rank bytes for another, or leave the collective out",
        ),
    ],
)
def test_what_is_no_demand_is_refused(cells: ArrayLike, names: tuple[str, ...], message: str) -> None:
    """After the place where it was read."""
    with pytest.raises(InputError) as caught:
        DemandMatrix(np.array(cells), names, "moe.txt")
    assert str(caught.value) == f"moe.txt: {message}"
