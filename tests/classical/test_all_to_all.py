"""All-to-all: the bytes are the same whatever the order; rounds and peers are not."""

import numpy as np
import pytest

from dualcoll.classical.all_to_all import (
    binomial_gather,
    binomial_scatter,
    direct_all_to_all,
    direct_gather,
    pairwise_all_to_all,
    rail_all_to_all,
)
from dualcoll.classical.bruck import bruck_all_to_all
from dualcoll.classical.counts import counts
from dualcoll.errors import InputError
from tests.classical.samples import COUNTS, boxes_of


@pytest.mark.parametrize("ranks", COUNTS)
def test_every_rank_injects_all_but_its_own_part(ranks: int) -> None:
    """(P - 1) N / P bytes leave each rank and as many come in, counted; at once from all peers, or from one after another."""
    N = 6 * ranks
    for make, rounds, peers in (
        (direct_all_to_all, min(ranks - 1, 1), ranks - 1),
        (pairwise_all_to_all, ranks - 1, min(ranks - 1, 1)),
    ):
        found = counts(make(ranks, N))
        assert found.sent.tolist() == found.received.tolist() == [(ranks - 1) * N // ranks] * ranks
        assert found.rounds == rounds
        assert found.peers.tolist() == [peers] * ranks


def test_bytes_that_do_not_divide() -> None:
    """Every rank sends, and gets, the whole message all the same."""
    schedule = direct_all_to_all(7, 100)
    matrix = schedule.chunk_size.reshape(7, 7)
    assert matrix.sum(axis=0).tolist() == matrix.sum(axis=1).tolist() == [100] * 7
    assert schedule.size == 100


def test_fewer_messages_more_bytes() -> None:
    """Bruck's takes log2 P rounds and sends half of the message in each."""
    found = counts(bruck_all_to_all(16, 1600))
    assert (found.rounds, set(found.sent.tolist()), found.peers.max()) == (4, {4 * 800}, 1)


def test_rails_first_inside() -> None:
    """Across boxes every send stays on its rail; each byte crosses once, and every rank has one peer per other box."""
    boxes = boxes_of([4, 4, 4])
    schedule = rail_all_to_all(boxes, 1200)
    across = schedule.src // 4 != schedule.dst // 4
    assert np.all(schedule.src[across] % 4 == schedule.dst[across] % 4)
    assert set(schedule.round[across].tolist()) == {1}
    found = counts(schedule, boxes)
    assert found.across.tolist() == [8 * 100] * 12
    assert found.across.tolist() == counts(direct_all_to_all(12, 1200), boxes).across.tolist()
    assert found.peers.max() == 3  # inside the box
    assert counts(direct_all_to_all(12, 1200), boxes).peers.max() == 11


def test_a_matrix_says_what_is_carried() -> None:
    """AllToAllv sends each pair's bytes, nothing of the diagonal."""
    matrix = np.arange(9).reshape(3, 3)
    for schedule in (direct_all_to_all(3, 0, matrix), pairwise_all_to_all(3, 0, matrix)):
        assert counts(schedule).sent.tolist() == [1 + 2, 3 + 5, 6 + 7]
        assert counts(schedule).received.tolist() == [3 + 6, 1 + 7, 2 + 5]
        assert schedule.contract.collective == "alltoallv"


def test_gather_direct_or_by_tree() -> None:
    """Direct, the root has P - 1 peers at once; the binomial tree takes ceil(log2 P) rounds, with one peer in each."""
    for ranks in (2, 5, 8, 13):
        direct = counts(direct_gather(ranks, 10 * ranks))
        assert (direct.rounds, direct.peers[0], direct.received[0]) == (1, ranks - 1, 10 * (ranks - 1))
        for make in (binomial_gather, binomial_scatter):
            tree = counts(make(ranks, 10 * ranks))
            assert (tree.rounds, tree.peers.max()) == ((ranks - 1).bit_length(), 1)


def test_boxes_of_different_size_are_refused() -> None:
    """Rails need boxes of one size."""
    with pytest.raises(InputError) as caught:
        rail_all_to_all(boxes_of([1, 2]), 100)
    assert str(caught.value) == "boxes of 1, 2 ranks; it needs boxes of one size"
