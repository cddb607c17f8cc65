"""Counting a schedule's bytes, peers and memory traffic."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dualcoll.classical.counts import Costs, counts
from dualcoll.collectives.contract import make_contract
from dualcoll.errors import InputError
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op


def small() -> Schedule:
    """Reduce over three ranks to rank 0, by way of a scratch slot there; rank 2's data goes through rank 1."""
    builder = ScheduleBuilder(make_contract("reduce", 3, pieces=2), [10, 4])
    builder.send(2, 1, 0, Op.REDUCE, round=0)
    builder.send(2, 0, 1, Op.REDUCE, round=0)
    scratch = builder.scratch(0)
    builder.send(1, 0, 0, into=scratch, round=1)
    builder.send(0, 0, scratch, Op.REDUCE, into=0, round=2)
    builder.send(1, 0, 1, Op.REDUCE, round=1)
    return builder.build()


def test_by_hand() -> None:
    """Bytes of each rank and box as one counts them by hand; a local reduction is memory traffic and leaves no rank."""
    found = counts(small(), [[0, 1], [2]])
    assert found.rounds == 3
    assert found.sent.tolist() == [0, 14, 14]
    assert found.received.tolist() == [4 + 10 + 4, 10, 0]
    assert found.across.tolist() == [0, 0, 14]
    assert (found.box_sent.tolist(), found.box_received.tolist()) == ([0, 14], [14, 0])
    # rank 0: two reductions of 4 that arrive, a copy of 10, a local reduction of 10
    assert found.read.tolist() == [4 + 4 + 10 + 10, 10 + 10 + 4, 14]
    assert found.written.tolist() == [4 + 10 + 4 + 10, 10, 0]
    assert found.reduced.tolist() == [4 + 4 + 10, 10, 0]
    assert found.peers.tolist() == [1, 1, 2]
    assert found.serial == 14 + 14  # what rank 2 sends, then what rank 0 hears


def test_the_busiest() -> None:
    """The most of any rank, and of any box."""
    most = counts(small(), [[0, 1], [2]]).busiest
    assert most == Costs(3, *map(Fraction, (14, 18, 14, 14, 28, 28, 18)))


def test_without_rounds_everything_is_side_by_side() -> None:
    """Peers and serial bytes of a schedule without rounds are those of one round."""
    plain = replace(small(), round=np.full(5, -1))
    assert counts(plain).rounds == 0
    assert counts(plain).peers.tolist() == [2, 1, 2]
    assert counts(plain).serial == 18


def test_nothing() -> None:
    """A schedule without sends has counts of zero."""
    found = counts(ScheduleBuilder(make_contract("broadcast", 1), 5).build())
    assert found.busiest.sent == found.serial == found.rounds == 0
    assert found.peers.tolist() == [0]


def test_boxes_hold_each_rank_once() -> None:
    """Boxes that miss or repeat a rank are refused."""
    with pytest.raises(InputError) as caught:
        counts(small(), [[0, 1], [1]])
    assert str(caught.value) == "boxes: they do not hold ranks 0 to 2, each once"
