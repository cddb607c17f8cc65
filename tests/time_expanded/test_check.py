"""Schedules by hand: every rule has a schedule that breaks it, and it alone."""

from __future__ import annotations

import numpy as np
import pytest

from dualcoll.collectives.contract import Contract, make_contract
from dualcoll.time_expanded.check import Rule, examine, violations
from dualcoll.time_expanded.network import Clock, make_network
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from tests.time_expanded.by_hand import Start, by_hand, star_problem, switch_problem
from tests.time_expanded.fabrics import US, dgx1, star

WITH_COPY: tuple[Start, ...] = (("s", "h", 0, 0), ("h", "d1", 1, 0), ("h", "d2", 1, 0), ("h", "d3", 1, 0))
WITHOUT: tuple[Start, ...] = (
    *(("s", "h", k, 0) for k in range(3)),
    *(("h", f"d{k}", k, 0) for k in range(1, 4)),
)


def texts(schedule: EpochSchedule, horizon: int | None = None) -> list[str]:
    return [str(found) for found in violations(schedule, horizon)]


def test_star_with_copy() -> None:
    """The paper's figure 2a: two seconds where h copies."""
    found = examine(by_hand(star_problem(), *WITH_COPY))
    assert (found.violations, found.met, found.demands, found.seconds, found.useless) == ((), 3, 3, 2.0, ())


def test_star_without_copy() -> None:
    """Four seconds where it does not, and what is right with copies is wrong then."""
    problem = star_problem(Clock(copy=False))
    assert examine(by_hand(problem, *WITHOUT)).seconds == 4.0
    assert texts(by_hand(problem, *WITHOUT)) == []
    assert texts(by_hand(problem, *WITH_COPY)) == [
        "chunk 0 on h -> d2 in epoch 1: h does not copy, and what came has left or must stay (copy)",
        "chunk 0 on h -> d3 in epoch 1: h does not copy, and what came has left or must stay (copy)",
    ]


def test_useless_starts() -> None:
    """With copies, two of the three sends to h add nothing."""
    assert examine(by_hand(star_problem(), *WITHOUT)).useless == (1, 3)


def test_switch_holds_nothing() -> None:
    """a arrives in epoch 2 and b in epoch 3: b waits at B, and cannot wait at W."""
    problem = switch_problem()
    waits_at_b = by_hand(problem, ("A", "W", 0, 0), ("W", "C", 1, 0), ("B", "W", 1, 1), ("W", "C", 2, 1))
    assert texts(waits_at_b) == []
    assert waits_at_b.delivered()[:, 2].tolist() == [2, 3]
    waits_at_w = by_hand(problem, ("A", "W", 0, 0), ("W", "C", 1, 0), ("B", "W", 0, 1), ("W", "C", 2, 1))
    assert texts(waits_at_w) == ["chunk 1 on W -> C in epoch 2: W holds nothing, and it comes in epoch 1 (switch)"]


def test_switch_does_not_copy() -> None:
    """A switch sends on what came once, unless it copies."""
    problem = switch_problem()
    twice: tuple[Start, ...] = (("A", "W", 0, 0), ("W", "C", 1, 0), ("W", "C", 1, 0))
    fault = "chunk 0 on W -> C in epoch 1: W does not copy, and what came has left or must stay (copy)"
    assert fault in texts(by_hand(problem, *twice))
    copying = switch_problem(Clock(latent_switches=True, switch_copy=True))
    assert not any(found.rule is Rule.COPY for found in violations(by_hand(copying, *twice)))


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ((*WITH_COPY[:3], ("h", "d3", 0, 0)), "chunk 0 on h -> d3 in epoch 0: h gets it not before epoch 1 (holding)"),
        (WITH_COPY[:3], "d3 never gets chunk 0 (demand)"),
        ((*WITH_COPY, ("s", "h", 0, 0)), "s -> h, epoch 0: 2 starts, where 1 fit (capacity)"),
        (
            (*WITH_COPY, ("s", "h", -2, 0)),
            "chunk 0 on s -> h in epoch -2: it starts in epoch -2, before epoch 0 (epoch)",
        ),
        ((*WITH_COPY, ("h", "d1", 4, 0)), "chunk 0 on h -> d1 in epoch 4: it arrives in epoch 5, after 3 (epoch)"),
    ],
)
def test_broken_rules(starts: tuple[Start, ...], message: str) -> None:
    """Each broken rule is named with its link, epoch and chunk, and nothing else is."""
    assert texts(by_hand(star_problem(), *starts), horizon=3) == [message]


def test_slow_link() -> None:
    """A link that takes two epochs for a chunk starts every other one."""
    problem = Problem(make_network(dgx1(), 25_000), make_contract("broadcast", 8, pieces=2))
    schedule = by_hand(problem, ("g0.0", "g0.2", 0, 0), ("g0.0", "g0.2", 1, 1))
    found = [text for text in texts(schedule) if "capacity" in text]
    assert found == ["g0.0 -> g0.2, epochs 0 to 1: 2 starts, where 1 fit (capacity)"]


def test_never_there() -> None:
    """What never comes is said so."""
    problem = star_problem(chunks=2)
    schedule = by_hand(problem, *WITH_COPY, ("h", "d1", 2, 1))
    assert "chunk 1 on h -> d1 in epoch 2: h gets it never (holding)" in texts(schedule)


def test_release_and_deadline() -> None:
    """A chunk is not sent before it is there, and is due by its deadline."""
    plain = star_problem()
    late = Problem(plain.network, plain.contract, release=np.array([1]), deadline=np.array([1]))
    assert texts(by_hand(late, *WITH_COPY)) == [
        "chunk 0 on s -> h in epoch 0: it starts before epoch 1, from which its source has it (epoch)",
        *(f"d{i} gets chunk 0 in epoch 2, due by 1 (demand)" for i in (1, 2, 3)),
    ]


def test_no_relay() -> None:
    """Without relaying, h takes nothing that is not for it."""
    problem = star_problem(Clock(relay=False))
    found = texts(by_hand(problem, *WITH_COPY))
    assert found == ["chunk 0 on s -> h in epoch 0: it is not for h, and ranks do not relay (relay)"]


def test_buffer() -> None:
    """h holds a chunk of others for as long as it sends it on."""
    wide = star_problem(Clock(buffer=1), chunks=2)
    both: list[Start] = [("s", "h", 0, 0), ("s", "h", 1, 1)]
    both += [("h", f"d{i}", 2 * c + 1, c) for i in (1, 2, 3) for c in (0, 1)]
    assert texts(by_hand(wide, *both)) == []
    late: list[Start] = [*both[:2], *(("h", f"d{i}", 2 + c, c) for i in (1, 2, 3) for c in (0, 1))]
    assert texts(by_hand(wide, *late)) == ["h, epoch 2: 2 chunks of others, where 1 fit (buffer)"]


def test_half_chunks() -> None:
    """Two relays that forward the same chunk do not make two of it: the second adds nothing (the paper's figure 4)."""
    contract = Contract("broadcast", 5, np.array([0, 0]), np.array([-1, -1]), root=0, groups=((0, 4),))
    problem = Problem(make_network(star(), 10**6), contract)
    same: tuple[Start, ...] = (("s", "h", 0, 0), ("h", "d3", 1, 0), ("h", "d3", 2, 0))
    found = examine(by_hand(problem, *same))
    assert (found.met, found.demands) == (1, 2)
    assert found.useless == (2,)


def test_latency_counts() -> None:
    """With latency, what arrives later leaves later."""
    problem = Problem(make_network(dgx1(0.7 * US), 25_000), make_contract("broadcast", 8))
    early = by_hand(problem, ("g0.0", "g0.1", 0, 0), ("g0.1", "g0.5", 2, 0))
    assert texts(early)[0] == "chunk 0 on g0.1 -> g0.5 in epoch 2: g0.1 gets it not before epoch 3 (holding)"
