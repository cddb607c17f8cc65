from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dualcoll.collectives.expert_routing import ExpertRouting, Overflow, expert_demand, place_tokens
from dualcoll.errors import InputError


def routing(
    *rows: list[int],
    hosts: list[int] | None = None,
    block: int = 1,
    factor: str | None = None,
    overflow: Overflow = Overflow.DROP,
    token_bytes: int = 1,
) -> ExpertRouting:
    tokens = np.array(rows)
    experts = tokens.shape[1]
    of = [expert * len(rows) // experts for expert in range(experts)] if hosts is None else hosts
    limit = None if factor is None else Fraction(factor)
    return ExpertRouting(tokens, np.array(of), token_bytes, block, limit, overflow)


@st.composite
def routings(draw: st.DrawFn) -> ExpertRouting:
    ranks, experts = draw(st.integers(2, 4)), draw(st.integers(1, 6))
    row = st.lists(st.integers(0, 40) | st.just(0), min_size=experts, max_size=experts)
    return routing(
        *draw(st.lists(row, min_size=ranks, max_size=ranks)),
        hosts=draw(st.lists(st.integers(0, ranks - 1), min_size=experts, max_size=experts)),
        block=draw(st.integers(1, 9)),
        factor=draw(st.none() | st.sampled_from(["0.3", "1", "1.1", "2", "10"])),
        overflow=draw(st.sampled_from(Overflow)),
        token_bytes=draw(st.integers(1, 5)),
    )


@given(routings())
def test_every_token_is_sent_or_dropped(asked: ExpertRouting) -> None:
    """Rank by rank: nothing is lost and nothing invented."""
    placed = place_tokens(asked)
    assert (placed.tokens >= 0).all()
    assert (placed.tokens.sum(axis=1) + placed.dropped).tolist() == asked.tokens.sum(axis=1).tolist()
    strangers = np.maximum(placed.tokens - asked.tokens, 0).sum(axis=1)
    assert (strangers <= placed.rerouted).all()
    if asked.overflow is Overflow.DROP:
        assert not placed.rerouted.any()
        assert not strangers.any()


@given(routings())
def test_no_expert_takes_more_than_it_can(asked: ExpertRouting) -> None:
    """Without a limit each takes what it is asked to; with one, tokens are dropped only where no expert has room."""
    placed = place_tokens(asked)
    loads = placed.tokens.sum(axis=0)
    if asked.capacity is None:
        assert placed.tokens.tolist() == asked.tokens.tolist()
        return
    assert loads.max() <= asked.capacity
    if asked.overflow is Overflow.REROUTE and placed.dropped.any():
        assert loads.min() == asked.capacity
    if asked.overflow is Overflow.DROP:
        assert loads.tolist() == np.minimum(asked.tokens.sum(axis=0), asked.capacity).tolist()


def one_by_one(asked: ExpertRouting) -> list[int]:
    """The loads when each token that does not fit goes to the least loaded expert with room."""
    capacity = asked.capacity
    assert capacity is not None
    wanted = asked.tokens.sum(axis=0)
    loads = np.minimum(wanted, capacity)
    for _ in range(int((wanted - loads).sum())):
        if loads.min() < capacity:
            loads[loads.argmin()] += 1
    return list(loads.tolist())


@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(routings())
def test_rerouting_in_bulk_is_rerouting_one_by_one(asked: ExpertRouting) -> None:
    """The same loads as when every token looks for the least loaded expert itself."""
    assume(asked.capacity is not None and asked.overflow is Overflow.REROUTE)
    assert place_tokens(asked).tokens.sum(axis=0).tolist() == one_by_one(asked)


@given(routings())
def test_bytes_are_whole_blocks(asked: ExpertRouting) -> None:
    """Each cell has the tokens that its experts get, padded by less than a block for each of them."""
    try:
        demand = expert_demand(asked)
    except InputError as error:
        assume("nothing to send" not in error.problem)
        raise
    placed = place_tokens(asked).tokens
    for host in range(len(placed)):
        local = np.flatnonzero(asked.hosts == host)
        in_blocks = sum(-(-placed[:, x] // asked.block) for x in local) + np.zeros(len(placed), np.int64)
        assert demand.cells[:, host].tolist() == (in_blocks * asked.block * asked.token_bytes).tolist()
    assert demand.tokens is not None
    assert demand.cells.sum() == demand.tokens.padded * asked.token_bytes
    assert demand.tokens.sent == placed.sum() <= demand.tokens.padded


def test_a_full_expert_keeps_tokens_of_all_ranks_in_proportion() -> None:
    """Room for 5 of 6 + 3 + 1: 3, 1.5 and 0.5 are due; the first of equal remainders is rounded up."""
    placed = place_tokens(routing([6, 0], [3, 0], [1, 0], hosts=[0, 1], factor="1"))
    assert placed.tokens.tolist() == [[3, 0], [2, 0], [0, 0]]
    assert placed.dropped.tolist() == [3, 1, 1]


def test_overflow_rises_to_a_level() -> None:
    """10 tokens for 4 experts that take 5: the 5 that do not fit raise loads 0, 1, 0 to 2 and give none a third."""
    placed = place_tokens(
        routing([9, 0, 1, 0], [1, 0, 0, 0], hosts=[0, 0, 1, 1], factor="1.8", overflow=Overflow.REROUTE)
    )
    assert placed.tokens.sum(axis=0).tolist() == [5, 2, 2, 2]
    assert placed.rerouted.tolist() == [4, 1]
    assert not placed.dropped.any()


def test_what_finds_no_room_is_dropped_even_when_rerouting() -> None:
    """A factor below 1 leaves less room than there are tokens."""
    placed = place_tokens(routing([8, 0], [0, 0], factor="0.5", overflow=Overflow.REROUTE))
    assert placed.tokens.tolist() == [[2, 2], [0, 0]]
    assert (placed.rerouted.tolist(), placed.dropped.tolist()) == ([2, 0], [4, 0])


def test_a_decimal_factor_is_what_it_says() -> None:
    """1.1 times 100 tokens is 110, not 111 as in binary fractions."""
    assert routing([100, 0], [0, 100], factor="1.1").capacity == 110


def test_the_count() -> None:
    """What was asked for names the hottest expert, not what fits."""
    counts = expert_demand(routing([7, 1], [6, 2], factor="1.25", block=4, token_bytes=3)).tokens
    assert counts is not None
    assert (counts.routed, counts.sent, counts.dropped, counts.rerouted) == (16, 13, 3, 0)
    assert (counts.padded, counts.capacity, counts.hot_expert, counts.hot_tokens) == (24, 10, 0, 13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": np.zeros((2, 0)), "hosts": np.zeros(0)}, "tokens (2, 0) and experts (0,) do not fit together"),
        ({"hosts": np.zeros(3)}, "tokens (2, 2) and experts (3,) do not fit together"),
        ({"tokens": np.array([[0, -1], [1, 1]])}, "a number of tokens is not within 0 to 999999999"),
        ({"tokens": np.array([[0, 10**9], [1, 1]])}, "a number of tokens is not within 0 to 999999999"),
        ({"hosts": np.array([0, 2])}, "an expert is not on one of ranks 0 to 1"),
        ({"token_bytes": 0}, "tokens of 0 bytes in blocks of 1 are not usable"),
        ({"block": 0}, "tokens of 1 bytes in blocks of 0 are not usable"),
        ({"capacity_factor": Fraction(0)}, "capacity factor 0 is not above 0"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments: dict[str, object], message: str) -> None:
    """At construction."""
    usual: dict[str, object] = {"tokens": np.ones((2, 2)), "hosts": np.array([0, 1]), "token_bytes": 1}
    with pytest.raises(InputError) as caught:
        ExpertRouting(**{**usual, **arguments})  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_absurd_bytes_are_refused() -> None:
    """Before they overflow."""
    with pytest.raises(InputError) as caught:
        expert_demand(routing([0, 10**8], [1, 0], token_bytes=10**11), "moe.yaml")
    assert str(caught.value) == (
        "moe.yaml: 100000000 tokens of 100000000000 bytes from one rank to another; at most 2**62 bytes can be handled"
    )
