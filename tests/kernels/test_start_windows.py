"""Windows of starts against counting by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.kernels.start_windows import Windows, first_open, fits, take

EPOCHS = 12
PAIRS = st.lists(st.tuples(st.integers(1, 15), st.integers(1, 4)), min_size=1, max_size=3)


def windows_of(pairs: list[tuple[int, int]]) -> Windows:
    """One row of these pairs after a row of none."""
    length, most = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    shape = (2, EPOCHS)
    return Windows(np.array([0, 0, len(pairs)]), length, most, np.zeros(shape, np.int32), np.zeros(shape, bool))


def allowed(pairs: list[tuple[int, int]], starts: list[int]) -> bool:
    """Whether no window, wherever it begins, holds too many."""
    return all(
        sum(begin <= k < begin + length for k in starts) <= most
        for length, most in pairs
        for begin in range(-length, EPOCHS)
    )


@given(PAIRS, st.lists(st.integers(0, EPOCHS - 1), max_size=12))
def test_closed_is_where_no_start_fits(pairs: list[tuple[int, int]], tries: list[int]) -> None:
    """After every start, in any order: what is marked, what is counted and what is right are the same, on that row only."""
    windows = windows_of(pairs)
    starts: list[int] = []
    for epoch in tries:
        if not windows.closed[1, epoch]:
            take(windows, 1, epoch)
            starts.append(epoch)
        right = [allowed(pairs, [*starts, k]) for k in range(EPOCHS)]
        assert (~windows.closed[1]).tolist() == right
        assert [fits(windows, 1, k) for k in range(EPOCHS)] == right
        opens = [k for k in range(EPOCHS) if right[k]]
        assert [first_open(windows.closed, 1, k) for k in range(EPOCHS)] == [
            min((o for o in opens if o >= k), default=EPOCHS) for k in range(EPOCHS)
        ]
    assert not windows.starts[0].any()
    assert not windows.closed[0].any()
