"""Rings round by round, as people draw them."""

import numpy as np
import pytest

from dualcoll.classical.counts import counts
from dualcoll.classical.ring import chain_broadcast, ring_all_gather, ring_all_reduce, ring_reduce_scatter
from dualcoll.errors import InputError
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.schedules.validate import validate

N = 4000


def rounds_of(schedule: Schedule) -> list[list[tuple[int, int, int]]]:
    """(source, destination, chunk) of the sends of each round, sorted."""
    columns = [schedule.src.tolist(), schedule.dst.tolist(), schedule.chunk.tolist()]
    sends = sorted(zip(schedule.round.tolist(), *columns, strict=True))
    return [[(a, b, c) for when, a, b, c in sends if when == r] for r in range(schedule.rounds)]


def test_four_ranks_reduce_scatter_round_by_round() -> None:
    """R0 to R3 hold chunks 0 to 3; in 3 rounds each sends one chunk of N/4 to the next and merges one from the one before."""
    schedule = ring_reduce_scatter(4, N)
    validate(schedule, one_per_round=True)
    assert rounds_of(schedule) == [
        [(0, 1, 3), (1, 2, 0), (2, 3, 1), (3, 0, 2)],
        [(0, 1, 2), (1, 2, 3), (2, 3, 0), (3, 0, 1)],
        [(0, 1, 1), (1, 2, 2), (2, 3, 3), (3, 0, 0)],
    ]
    held = {(rank, chunk): {rank} for rank in range(4) for chunk in range(4)}
    partial: list[list[set[int]]] = []
    for sends in rounds_of(schedule):
        for src, dst, chunk in sends:
            held[dst, chunk] = held[dst, chunk] | held[src, chunk]
        partial.append([held[rank, (rank - 2 - len(partial)) % 4] for rank in range(4)])
    assert partial == [
        [{3, 0}, {0, 1}, {1, 2}, {2, 3}],  # chunk 2 at R0, 3 at R1, 0 at R2, 1 at R3
        [{2, 3, 0}, {3, 0, 1}, {0, 1, 2}, {1, 2, 3}],  # chunks 1, 2, 3, 0
        [{0, 1, 2, 3}] * 4,  # chunk r at Rr: each owns one reduced chunk
    ]
    assert set(schedule.op.tolist()) == {Op.REDUCE}
    found = counts(schedule)
    assert (found.rounds, found.sent.tolist(), found.received.tolist()) == (3, [3 * N // 4] * 4, [3 * N // 4] * 4)
    assert sum(contributions == {0, 1, 2, 3} for contributions in held.values()) == 4  # not yet replicated


def test_four_ranks_all_gather_round_by_round() -> None:
    """Each rank sends the chunk that it owns, then twice what it has just received; 3 rounds and 3N/4 bytes again."""
    schedule = ring_all_gather(4, N)
    validate(schedule, one_per_round=True)
    assert rounds_of(schedule) == [
        [(0, 1, 0), (1, 2, 1), (2, 3, 2), (3, 0, 3)],
        [(0, 1, 3), (1, 2, 0), (2, 3, 1), (3, 0, 2)],
        [(0, 1, 2), (1, 2, 3), (2, 3, 0), (3, 0, 1)],
    ]
    found = counts(schedule)
    assert (found.rounds, found.sent.tolist(), found.received.tolist()) == (3, [3 * N // 4] * 4, [3 * N // 4] * 4)


def test_four_ranks_all_reduce_is_the_two_phases() -> None:
    """Reduce-scatter, then all-gather: 6 rounds and 6N/4 bytes per rank."""
    schedule = ring_all_reduce(4, N)
    assert rounds_of(schedule) == rounds_of(ring_reduce_scatter(4, N)) + rounds_of(ring_all_gather(4, N))
    assert counts(schedule).sent.tolist() == [6 * N // 4] * 4


@pytest.mark.parametrize("ranks", [2, 3, 5, 8, 17])
def test_no_link_twice_in_a_round(ranks: int) -> None:
    """A ring uses each of its links once in every round; with both directions, both."""
    order = list(range(ranks))
    validate(ring_all_reduce(ranks, N), one_per_round=True)
    if ranks > 2:
        both = ring_all_reduce(ranks, N, [order, order[::-1]])
        validate(both, one_per_round=True)
        assert np.bincount(both.round).tolist() == [2 * ranks] * (2 * ranks - 2)


def test_both_directions_halve_what_a_link_carries() -> None:
    """The bytes of each rank stay the same, those of each link are halved."""
    one, two = ring_all_reduce(8, 8000), ring_all_reduce(8, 8000, [range(8), range(7, -1, -1)])
    assert counts(one).sent.tolist() == counts(two).sent.tolist()
    forward = (two.dst - two.src) % 8 == 1
    assert two.send_size[forward].sum() == one.send_size.sum() / 2


def test_a_chain_overlaps_its_pieces() -> None:
    """Piece p passes hop h in round h + p."""
    schedule = chain_broadcast(4, N, root=2, pieces=3)
    assert rounds_of(schedule)[2] == [(0, 1, 0), (2, 3, 2), (3, 0, 1)]
    assert schedule.rounds == 4 - 2 + 3


def test_wrong_orders_are_refused() -> None:
    """Rings that miss or repeat a rank, or no ring, are errors that say which."""
    with pytest.raises(InputError) as caught:
        ring_all_reduce(3, N, [[0, 1, 2], [0, 1, 1]])
    assert str(caught.value) == "ring 1: the order is not ranks 0 to 2, each once"
    with pytest.raises(InputError) as caught:
        ring_all_gather(3, N, [])
    assert str(caught.value) == "orders: no ring is given; leave it out for one ring in rank order"
    with pytest.raises(InputError) as caught:
        chain_broadcast(3, N, root=3)
    assert str(caught.value) == "root 3 is not within ranks 0 to 2"
