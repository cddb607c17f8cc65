"""Trees: how deep, who is inside, and how pieces follow one another."""

import math

import numpy as np
import pytest

from dualcoll.classical.counts import counts
from dualcoll.classical.tree import (
    binary_depth,
    binary_parents,
    box_parents,
    depths,
    double_parents,
    double_tree_all_reduce,
    tree_all_reduce,
    tree_broadcast,
)
from dualcoll.errors import InputError
from dualcoll.schedules.validate import validate

COUNTS = (*range(1, 70), 127, 128, 129, 1000, 1024)


@pytest.mark.parametrize("ranks", COUNTS)
def test_depth_is_log2(ranks: int) -> None:
    """The binary tree has depth ceil(log2 P); below its root, which has one child, no rank has more than two."""
    parents = binary_parents(ranks)
    children = np.bincount(parents[parents >= 0], minlength=ranks)
    assert np.flatnonzero(parents < 0).tolist() == [0]
    assert depths(parents).max() == binary_depth(ranks) == math.ceil(math.log2(ranks))
    assert children[0] == (ranks > 1)
    assert children.max() <= 2


@pytest.mark.parametrize("ranks", COUNTS)
def test_two_trees_share_the_work(ranks: int) -> None:
    """No rank is inside both trees, each reaches everybody, and neither is deeper than ceil(log2 P)."""
    trees = double_parents(ranks)
    inside = [set(parents[parents >= 0].tolist()) for parents in trees]
    assert not inside[0] & inside[1]
    for parents in trees:
        assert np.sum(parents < 0) == 1
        assert depths(parents).max() <= math.ceil(math.log2(ranks))
        assert np.bincount(parents[parents >= 0], minlength=1).max() <= 2 or ranks == 1


def test_the_trees_of_eight_ranks() -> None:
    """They are those that NCCL's ncclGetDtree gives."""
    first, second = double_parents(8)
    assert first.tolist() == [-1, 2, 4, 2, 0, 6, 4, 6]
    assert second.tolist() == [1, 3, 1, 7, 5, 3, 5, -1]


def test_trees_of_boxes() -> None:
    """Each box is a chain from its place k; two trees for each k join those places, and only those, across boxes."""
    boxes = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    trees = box_parents(boxes, [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
    assert len(trees) == 6
    for k in range(3):
        for parents in trees[2 * k : 2 * k + 2]:
            child = np.flatnonzero(parents >= 0)
            across = child[child // 3 != parents[child] // 3]
            assert across.size == 3
            assert np.all(across % 3 == k)
            assert np.all(parents[across] % 3 == k)
            assert depths(parents).max() == 2 + 2
    assert [parents.tolist() for parents in box_parents([[0, 1, 2]], [(1, 2, 0)])] == [[2, -1, 1]]


def test_pieces_follow_one_another() -> None:
    """A piece needs ceil(log2 P) rounds up and as many down, and each further piece one more."""
    for pieces in (1, 2, 7):
        assert tree_all_reduce(13, 1000, pieces).rounds == 2 * 4 + pieces - 1
        assert tree_broadcast(13, 1000, 5, pieces).rounds == 4 + pieces - 1


def test_half_of_the_data_on_each_of_two_trees() -> None:
    """The busiest rank of one tree sends 3 N bytes, of two trees 2 N."""
    assert counts(tree_all_reduce(16, 3200)).sent.max() == 3 * 3200
    assert counts(double_tree_all_reduce(16, 3200)).sent.max() == 2 * 3200


def test_many_ranks_and_pieces_at_once() -> None:
    """Trees over 1,024 ranks in 64 pieces are made and validated."""
    schedule = double_tree_all_reduce(1024, 2**20, 64)
    assert schedule.sends == 2 * 64 * 2 * 1023
    validate(schedule)


def test_parents_in_a_circle_are_refused() -> None:
    """Parents that lead round in a circle are an error, not an endless walk."""
    with pytest.raises(InputError) as caught:
        tree_all_reduce(3, 10, 1, [np.array([-1, 2, 1])])
    assert str(caught.value) == "parents: the parents form a circle"
