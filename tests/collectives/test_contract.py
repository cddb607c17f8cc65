"""Contracts: what each collective demands of every chunk, and columns that are no contract."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.collectives.catalogue import COLLECTIVES, ROOTED
from dualcoll.collectives.contract import ALL, NOWHERE, Contract, joint_contract, make_contract
from dualcoll.errors import InputError

everyone = (0, 1, 2)


@pytest.mark.parametrize(
    ("collective", "root", "before", "after", "whose"),
    [
        ("broadcast", 1, [(1,)], [everyone], [(1,)]),
        ("reduce", 1, [everyone], [(1,)], [everyone]),
        ("allreduce", None, [everyone], [everyone], [everyone]),
        ("reducescatter", None, [everyone] * 3, [(0,), (1,), (2,)], [everyone] * 3),
        ("allgather", None, [(0,), (1,), (2,)], [everyone] * 3, [(0,), (1,), (2,)]),
        ("gather", 1, [(0,), (1,), (2,)], [(1,)] * 3, [(0,), (1,), (2,)]),
        ("scatter", 1, [(1,)] * 3, [(0,), (1,), (2,)], [(1,)] * 3),
        ("alltoall", None, [(q,) for q in everyone for _ in everyone], [(0,), (1,), (2,)] * 3, None),
        ("alltoallv", None, [(q,) for q in everyone for _ in everyone], [(0,), (1,), (2,)] * 3, None),
    ],
)
def test_what_each_collective_demands(
    collective: str, root: int | None, before: list[Any], after: list[Any], whose: list[Any] | None
) -> None:
    """Who holds each chunk at first, who must hold it in the end, and with whose contributions."""
    contract = make_contract(collective, 3, root=root)
    chunks = range(contract.chunks)
    assert [contract.holders(c) for c in chunks] == before
    assert [contract.receivers(c) for c in chunks] == after
    assert [contract.contributors(c) for c in chunks] == (before if whose is None else whose)
    assert contract.root == root


@given(st.sampled_from(COLLECTIVES), st.integers(1, 6), st.integers(1, 4))
def test_pieces_are_consecutive(collective: str, ranks: int, pieces: int) -> None:
    """Cutting every shard into pieces repeats its chunk."""
    whole, cut = make_contract(collective, ranks), make_contract(collective, ranks, pieces=pieces)
    assert np.array_equal(cut.source, np.repeat(whole.source, pieces))
    assert np.array_equal(cut.target, np.repeat(whole.target, pieces))
    assert cut.root == (0 if collective in ROOTED else None)


def test_spellings() -> None:
    """Any known spelling makes the same contract."""
    assert make_contract("All-Reduce", 2).collective == "allreduce"


def test_groups_side_by_side() -> None:
    """Contracts of several groups become one over all ranks, each with its own members."""
    parts = [
        (make_contract("broadcast", 3, root=1), (1, 3, 5)),
        (make_contract("allreduce", 2, pieces=2).with_scratch([1]), (0, 2)),
    ]
    joint = joint_contract(6, parts)
    assert joint.collective == "mix"
    assert joint.root is None
    assert joint.group.tolist() == [0, 1, 1, 1]
    assert joint.data.tolist() == [0, 1, 2, 2]
    assert [joint.holders(c) for c in range(4)] == [(3,), (0, 2), (0, 2), ()]
    assert [joint.receivers(c) for c in range(4)] == [(1, 3, 5), (0, 2), (0, 2), ()]
    assert joint.contributors(3) == (0, 2)
    alone = joint_contract(6, parts[:1])
    assert (alone.collective, alone.root) == ("broadcast", 3)
    with pytest.raises(InputError) as caught:
        joint_contract(6, [(make_contract("allreduce", 2), (0, 1, 2))])
    assert str(caught.value) == "3 rank numbers for a contract over 2 ranks"


def test_scratch_of_scratch_is_for_the_same_data() -> None:
    """A slot for the data of a scratch slot is one for the data of that slot's chunk."""
    contract = make_contract("allgather", 2).with_scratch([1]).with_scratch([2])
    assert contract.data.tolist() == [0, 1, 1, 1]
    assert contract.source.tolist() == [0, 1, NOWHERE, NOWHERE]
    assert contract.origin().tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: make_contract("gossip", 2), "collective 'gossip' is not known; use one of " + ", ".join(COLLECTIVES)),
        (lambda: make_contract("allreduce", 0), "a contract over 0 ranks; use 1 to 65536"),
        (lambda: make_contract("allreduce", 2, root=1), "AllReduce has no root, yet root 1 was given"),
        (lambda: make_contract("gather", 2, root=2), "root 2 is not within ranks 0 to 1"),
        (lambda: make_contract("alltoall", 2, pieces=0), "0 pieces for each of 4 shards; use 1 to 536870911"),
    ],
)
def test_contracts_that_nobody_can_make(make: Any, text: str) -> None:
    """What makes no contract is named."""
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"collective": "gossip"}, "collective 'gossip' is not known; use one of " + ", ".join((*COLLECTIVES, "mix"))),
        ({"source": [0, 1, 3]}, "chunk 2: source 3 is not in -2 .. 2"),
        ({"source": [0, 1, 0.5]}, "source: a number does not fit int32"),
        ({"source": [0, 1]}, "target has shape (3,) for 2 chunks"),
        ({"data": [0, 1, 3]}, "chunk 2: data 3 is not in 0 .. 2"),
        ({"group": [0, 0, 1]}, "chunk 2: group 1 is not in 0 .. 0"),
        ({"groups": ((0, 0),)}, "group 0 is not one or more different ranks of 0 to 2"),
        ({"groups": ((0, 3),)}, "group 0 is not one or more different ranks of 0 to 2"),
        (
            {"source": [0, 1, NOWHERE]},
            "chunk 2: its data has not exactly one source; "
            "a chunk either has a source and is its own data, or has none and names a chunk that has one",
        ),
        (
            {"data": [0, 1, 1]},
            "chunk 2: its data has not exactly one source; "
            "a chunk either has a source and is its own data, or has none and names a chunk that has one",
        ),
        ({"target": [ALL, ALL, NOWHERE]}, "chunk 2: its data is promised to nobody"),
        ({"target": [ALL, ALL, 1]}, "chunk 2: its data does not end at all ranks, as that of AllGather does"),
        ({"source": [0, 1, ALL]}, "chunk 2: its data does not begin at one rank, as that of AllGather does"),
    ],
)
def test_columns_that_are_no_contract(columns: dict[str, Any], text: str) -> None:
    """A contract cannot promise nothing, name what there is not, or be another collective's than it says."""
    with pytest.raises(InputError) as caught:
        replace(make_contract("allgather", 3), **columns)
    assert str(caught.value) == text


def test_roots_are_where_they_are_said_to_be() -> None:
    """A rooted collective's chunks begin or end at its root."""
    contract = make_contract("scatter", 3, root=1)
    with pytest.raises(InputError) as caught:
        replace(contract, root=2)
    assert str(caught.value) == "chunk 0: its data does not begin at the root, as that of Scatter does"
    assert isinstance(replace(contract, collective="alltoall", root=None), Contract)
