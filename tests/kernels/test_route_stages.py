from __future__ import annotations

import numpy as np

from dualcoll.kernels.route_stages import levels, stages

TAIL = np.array([0, 0, 1, 2, 3, 0])
HEAD = np.array([1, 2, 3, 3, 4, 3])


def level(links: list[int], share: float) -> tuple[list[int], int]:
    found, circle = levels(np.array([0, len(links)]), np.array(links, np.int32), np.full(len(links), share), TAIL, HEAD)
    return found.tolist(), circle


def test_links_of_a_path_stand_in_its_order() -> None:
    """Where all bytes go over all links, the order given is the travelling order."""
    assert level([0, 2, 4], 1.0) == ([0, 1, 2], -1)


def test_links_of_a_spray_stand_behind_all_that_lead_to_them() -> None:
    """The direct link 5 is at the beginning, the last link 4 behind the longer ways, in whatever order they are listed."""
    assert level([4, 5, 3, 1, 2, 0], 0.5) == ([2, 0, 1, 0, 1, 0], -1)


def test_a_circle_has_no_levels() -> None:
    """Links there and back have none first."""
    found = levels(np.array([0, 2]), np.array([0, 1], np.int32), np.full(2, 0.5), np.array([0, 1]), np.array([1, 0]))
    assert found[1] == 0


def test_shared_capacities_come_before_their_level() -> None:
    """A level's shares of one shared capacity add up; a level without one has the links alone; empty routes have no stages."""
    ptr, links = np.array([0, 4, 4, 5]), np.array([0, 1, 2, 3, 4], np.int32)
    share, level = np.array([0.5, 0.5, 0.5, 0.5, 1.0]), np.array([0, 0, 1, 1, 0], np.int32)
    over_ptr, over = np.array([0, 1, 2, 2, 2, 2]), np.array([0, 0], np.int32)
    stage_ptr, place_ptr, row, load, first = stages(ptr, links, share, level, over_ptr, over, 5)
    assert stage_ptr.tolist() == [0, 3, 3, 4]
    assert place_ptr.tolist() == [0, 1, 3, 5, 6]
    assert row.tolist() == [5, 0, 1, 2, 3, 4]
    assert load.tolist() == [1, 0.5, 0.5, 0.5, 0.5, 1]
    assert first.tolist() == [1, 0, 0]
