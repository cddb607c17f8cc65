from __future__ import annotations

import heapq

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.kernels.event_queue import empty_queue, grouped, pop, push

EVENTS = st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.integers(0, 9))


@given(st.lists(st.one_of(EVENTS, st.none()), max_size=40))
def test_events_come_out_in_order(script: list[tuple[float, int] | None]) -> None:
    """The earliest first, of those at one time the least number, however pushes (events) and pops (None) alternate."""
    queue, expected = empty_queue(len(script)), list[tuple[float, int]]()
    for event in script:
        if event is not None:
            push(queue, *event)
            heapq.heappush(expected, event)
        elif expected:
            assert (queue[1]["time"], queue[1]["number"]) == heapq.heappop(expected)
            pop(queue)
        assert queue[0]["number"] == len(expected)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 99))))
def test_values_are_grouped_by_key(pairs: list[tuple[int, int]]) -> None:
    """Every value is in its key's row, in the order given."""
    keys, values = (np.array([pair[i] for pair in pairs], np.int32) for i in (0, 1))
    ptr, by_key = grouped(keys, values, 6)
    rows = [by_key[ptr[key] : ptr[key + 1]].tolist() for key in range(6)]
    assert rows == [[value for other, value in pairs if other == key] for key in range(6)]
