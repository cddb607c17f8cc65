from __future__ import annotations

import itertools

import pytest

from dualcoll.errors import InputError
from dualcoll.progress import Gap, Meter, Outcome, Progress, Seconds, Stop, relative_gap


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still until its one entry is moved."""
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    return now


def test_gap_is_the_relative_distance_to_the_bound() -> None:
    """1 - value / bound, never negative; without a bound on anything it is 0."""
    assert relative_gap(99.0, 100.0) == pytest.approx(0.01)
    assert relative_gap(100.0000001, 100.0) == 0.0
    assert relative_gap(0.0, float("inf")) == 1.0
    assert relative_gap(0.0, 0.0) == 0.0
    assert Progress(1.0, 2, 3.0, 4.0).gap == 0.25


def test_criteria_combine() -> None:
    """Whichever comes first: the wider gap, the shorter time."""
    assert Gap(0.01) | Seconds(30) == Stop(gap=0.01, seconds=30)
    assert Gap(0.01) | Gap(0.05) | Seconds(30) | Seconds(10) == Stop(gap=0.05, seconds=10)


@pytest.mark.parametrize(
    ("make", "value", "message"),
    [
        (Gap, 1.0, "gap 1.0 is not in [0, 1)"),
        (Gap, -0.1, "gap -0.1 is not in [0, 1)"),
        (Gap, float("nan"), "gap nan is not in [0, 1)"),
        (Seconds, 0.0, "time limit 0.0 s is not positive"),
        (Seconds, float("nan"), "time limit nan s is not positive"),
    ],
)
def test_impossible_criteria_are_refused(make: type, value: float, message: str) -> None:
    """With the value in the message."""
    with pytest.raises(InputError) as caught:
        make(value)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("stop", "value", "seconds", "outcome"),
    [
        (Gap(0.01), 50.0, 0.0, None),
        (Gap(0.01), 99.5, 0.0, Outcome.GAP),
        (Gap(0.01), 100.0, 0.0, Outcome.OPTIMAL),
        (Gap(0.0), 100.0 - 1e-8, 0.0, Outcome.OPTIMAL),
        (Gap(0.0), 100.0 - 1e-6, 0.0, None),
        (Seconds(5), 50.0, 4.9, None),
        (Seconds(5), 50.0, 5.0, Outcome.TIME),
        (Gap(0.01) | Seconds(5), 99.5, 6.0, Outcome.GAP),
    ],
)
def test_outcomes(clock: list[float], stop: Stop, value: float, seconds: float, outcome: Outcome | None) -> None:
    """The gap before the time; what the arithmetic cannot better is optimal."""
    meter = Meter(stop)
    clock[0] += seconds
    assert meter.outcome(1, value, 100.0) is outcome


def test_an_interrupt_ends_it_with_the_next_step(clock: list[float]) -> None:
    """It goes before a time limit, but not before a gap that is met."""
    meter = Meter(Gap(0.01) | Seconds(5))
    meter.interrupt()
    clock[0] += 6.0
    assert meter.outcome(1, 50.0, 100.0) is Outcome.INTERRUPTED
    assert meter.outcome(2, 99.5, 100.0) is Outcome.GAP


def test_time_left(clock: list[float]) -> None:
    """Remaining seconds fall to 0; spent means no more time, or an interrupt."""
    meter = Meter(Seconds(5))
    clock[0] += 2.0
    assert (meter.seconds, meter.remaining, meter.spent) == (2.0, 3.0, False)
    clock[0] += 4.0
    assert (meter.remaining, meter.spent) == (0.0, True)
    free = Meter(Gap(0.0))
    assert (free.remaining, free.spent) == (float("inf"), False)
    free.interrupt()
    assert free.spent


def test_reports_come_ten_times_a_second_and_at_the_end(clock: list[float]) -> None:
    """Of a hundred steps a second, one in ten is told, and the last one in any case."""
    told: list[Progress] = []
    meter = Meter(Gap(0.01), told.append)
    for step in range(100):
        meter.outcome(step, 50.0, 100.0)
        clock[0] += 0.01
    assert len(told) == pytest.approx(10, abs=1)
    assert all(after.seconds - before.seconds >= 0.1 - 1e-9 for before, after in itertools.pairwise(told))
    meter.outcome(100, 100.0, 100.0)
    assert (told[-1].iterations, told[-1].gap) == (100, 0.0)


def test_history_stays_short(clock: list[float]) -> None:
    """A million steps over an hour leave a few thousand reports, the first and the last among them."""
    meter = Meter(Gap(0.01))
    for step in range(100_000):
        meter.outcome(step, 50.0, 100.0)
        clock[0] += 0.036
    meter.outcome(100_000, 100.0, 100.0)
    assert len(meter.history) < 3000
    assert (meter.history[0].iterations, meter.history[-1].iterations) == (0, 100_000)


def test_every_outcome_has_advice() -> None:
    """The sentence that people read; only a time limit asks for more time."""
    assert {outcome: "--seconds" in outcome.advice for outcome in Outcome} == {
        Outcome.OPTIMAL: False,
        Outcome.GAP: False,
        Outcome.TIME: True,
        Outcome.INTERRUPTED: False,
        Outcome.LIMITED: False,
        Outcome.STALLED: False,
    }
