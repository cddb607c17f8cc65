from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.collectives.catalogue import COLLECTIVES, ROOTED, SHARDED
from dualcoll.collectives.workload import Demand, Group, Pattern, Workload
from dualcoll.errors import InputError


def demands(collective: str, size: int, *, parts: tuple[int, ...] = (), n: int = 3) -> list[Demand]:
    ranks = tuple(range(10, 10 + n))
    root = ranks[1] if collective in ROOTED else None
    return list(Workload((Group("all", collective, ranks, size, root, parts),)).demands())


def ends(found: list[Demand]) -> list[tuple[Pattern, int | None, int | None]]:
    return [(demand.pattern, demand.root, demand.target) for demand in found]


def test_whole_messages_are_one_demand() -> None:
    """AllReduce has no root of its own; Broadcast and Reduce have the caller's."""
    assert ends(demands("allreduce", 9)) == [(Pattern.ALLREDUCE, None, None)]
    assert ends(demands("broadcast", 9)) == [(Pattern.BROADCAST, 11, None)]
    assert ends(demands("reduce", 9)) == [(Pattern.REDUCE, 11, None)]


def test_shards_are_a_demand_each() -> None:
    """From every rank to all, from all to every rank, and between the root and each other rank."""
    assert ends(demands("allgather", 9)) == [(Pattern.BROADCAST, rank, None) for rank in (10, 11, 12)]
    assert ends(demands("reducescatter", 9)) == [(Pattern.REDUCE, rank, None) for rank in (10, 11, 12)]
    assert ends(demands("gather", 9)) == [(Pattern.SEND, 10, 11), (Pattern.SEND, 12, 11)]
    assert ends(demands("scatter", 9)) == [(Pattern.SEND, 11, 10), (Pattern.SEND, 11, 12)]


def test_all_to_all_is_a_demand_for_each_pair() -> None:
    """What a rank keeps is none."""
    pairs = [(u, v) for u in (10, 11, 12) for v in (10, 11, 12) if u != v]
    assert ends(demands("alltoall", 9)) == [(Pattern.SEND, u, v) for u, v in pairs]
    cells = demands("alltoallv", 9, parts=(7, 1, 0, 2, 0, 3, 0, 0, 5))
    assert [(d.root, d.target) for d in cells] == [(10, 11), (11, 10), (11, 12)]
    assert [d.part for d in cells] == [d.size for d in cells] == [1, 2, 3]


def test_a_message_smaller_than_its_ranks() -> None:
    """Parts stay exact while some shards have no whole byte."""
    found = demands("allgather", 2)
    assert [(demand.part, demand.size) for demand in found] == [
        (Fraction(2, 3), 0),
        (Fraction(2, 3), 1),
        (Fraction(2, 3), 1),
    ]


def test_a_shard_of_weight_zero_is_left_out() -> None:
    """The others share the message."""
    found = demands("allgather", 8, parts=(1, 0, 3))
    assert [demand.root for demand in found] == [10, 12]
    assert [demand.part for demand in found] == [demand.size for demand in found] == [2, 6]


@given(
    st.sampled_from([name for name in COLLECTIVES if name != "alltoallv"]),
    st.integers(1, 10**12),
    st.lists(st.integers(0, 10**6), min_size=2, max_size=6).filter(any),
)
def test_whole_bytes_are_the_nearest_to_the_parts(collective: str, size: int, weights: list[int]) -> None:
    """Each within one byte of its exact part; where every shard has one, both sum to the message."""
    n = len(weights)
    found = demands(collective, size, parts=tuple(weights) if collective in SHARDED else (), n=n)
    assert all(abs(demand.part - demand.size) < 1 for demand in found)
    if collective in ("allgather", "reducescatter"):
        assert sum(demand.part for demand in found) == sum(demand.size for demand in found) == size
    if collective == "alltoall":
        assert sum(demand.part for demand in found) == size * (n - 1)


def test_rate_counts_the_largest_message() -> None:
    """Ranks that take part twice are listed once."""
    work = Workload((Group("a", "allreduce", (0, 1), 5), Group("b", "allgather", (1, 2), 9)))
    assert (work.ranks, work.size, work.collective) == ((0, 1, 2), 9, "mix")
    assert Workload(work.groups[:1]).collective == "allreduce"


@pytest.mark.parametrize(
    ("pattern", "inside", "crosses"),
    [
        (Pattern.ALLREDUCE, {0}, True),
        (Pattern.ALLREDUCE, {0, 1, 2}, False),
        (Pattern.ALLREDUCE, {9}, False),
        (Pattern.BROADCAST, {0}, True),
        (Pattern.BROADCAST, {1, 2}, False),
        (Pattern.REDUCE, {1}, True),
        (Pattern.REDUCE, {0, 1}, False),
        (Pattern.SEND, {0, 2}, True),
        (Pattern.SEND, {0, 1}, False),
        (Pattern.SEND, {1}, False),
    ],
)
def test_what_must_leave_a_set_of_nodes(pattern: Pattern, inside: set[int], crosses: bool) -> None:
    """Data from rank 0 (or for it, when reduced), to rank 1 where it is sent; the ranks are 0, 1 and 2."""
    root = None if pattern is Pattern.ALLREDUCE else 0
    demand = Demand(0, pattern, root, 1 if pattern is Pattern.SEND else None, Fraction(1), 1)
    assert demand.crosses(frozenset(inside), (0, 1, 2)) is crosses


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("allreduce", (0,), 1), "AllReduce takes two or more different ranks"),
        (("allreduce", (0, 0), 1), "AllReduce takes two or more different ranks"),
        (("allreduce", (0, 1), 0), "0 bytes are no message"),
        (("allreduce", (0, 1), 1, 0), "AllReduce has no root"),
        (("reduce", (0, 1), 1), "Reduce has a root"),
        (("reduce", (0, 1), 1, 2), "its root is not one of its ranks"),
        (("allreduce", (0, 1), 1, None, (1, 1)), "2 parts, where AllReduce of 2 ranks has 0"),
        (("allgather", (0, 1), 1, None, (1,)), "1 parts, where AllGather of 2 ranks has 0 or 2"),
        (("alltoallv", (0, 1), 1), "0 parts, where AllToAllv of 2 ranks has 4"),
        (("allgather", (0, 1), 1, None, (0, 0)), "its parts are not 0 or more, with one positive at least"),
        (("allgather", (0, 1), 1, None, (-1, 2)), "its parts are not 0 or more, with one positive at least"),
    ],
)
def test_a_group_that_cannot_be_is_refused(arguments: tuple[object, ...], message: str) -> None:
    """At construction, with the group's name."""
    with pytest.raises(InputError) as caught:
        Group("dp", *arguments)  # type: ignore[arg-type]
    assert str(caught.value) == f"group dp: {message}"


def test_a_workload_has_groups_of_different_names() -> None:
    """One at least."""
    with pytest.raises(InputError) as caught:
        Workload(())
    assert str(caught.value) == "a workload without groups"
    with pytest.raises(InputError) as caught:
        Workload((Group("a", "allreduce", (0, 1), 1), Group("a", "allreduce", (2, 3), 1)))
    assert str(caught.value) == "two groups are called a; names must be unique"
