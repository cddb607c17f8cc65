"""Seeds, limits and interrupts: the same plan again, and never a loss."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dualcoll._api import check, plan
from dualcoll.lp.packing_master import MasterSolution, PackingMaster
from dualcoll.packing.column_generation import column_generation
from dualcoll.plans.model import Plan
from dualcoll.progress import Gap, Meter, Progress, Seconds, Stop
from dualcoll.testing import degrade
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology
from tests.packing.exact import random_case
from tests.packing.problems import allreduce_problem

SYMMETRIC = degrade(catalog("dgx-h100:boxes=4"), 1)
ASYMMETRIC = degrade(catalog("dgx-1v:boxes=2"), 1, symmetric=False)


def _content(made: Plan) -> list[object]:
    """Everything but the times."""
    parts: list[object] = [made.value, made.bound, made.iterations, made.outcome, made.in_network]
    parts += [made.link_prices.tolist(), made.shared_prices.tolist()]
    for tree in made.trees:
        parts += [np.asarray(getattr(tree, field.name)).tolist() for field in dataclasses.fields(tree)]
    return parts


@pytest.mark.parametrize(
    "topology", [SYMMETRIC, ASYMMETRIC, random_case("shared boxes", 1)], ids=["cables", "links", "boxes"]
)
def test_the_same_seed_gives_the_same_plan(topology: Topology) -> None:
    """Trees, rates, bytes, prices, claims and iterations, number by number."""
    assert _content(plan(topology, seed=3)) == _content(plan(topology, seed=3))


@pytest.mark.parametrize("topology", [SYMMETRIC, ASYMMETRIC], ids=["cables", "links"])
def test_seeds_differ_in_trees_only(topology: Topology) -> None:
    """Ties break otherwise, the optimum stays."""
    one, two = plan(topology, seed=1), plan(topology, seed=2)
    assert one.value == pytest.approx(two.value, rel=1e-8)
    assert one.bound == pytest.approx(two.bound, rel=1e-8)
    assert _content(one) != _content(two)


class _Interrupting(Meter):
    """Ctrl-C during the step whose number is given."""

    def __init__(self, stop: Stop, step: int) -> None:
        super().__init__(stop)
        self._left = step

    def outcome(self, iterations: int, value: float, bound: float) -> object:  # type: ignore[override]
        self._left -= 1
        if self._left == 0:
            self.interrupt()
        return super().outcome(iterations, value, bound)


@pytest.mark.parametrize("method", ["auto", "garg-konemann"])
@pytest.mark.parametrize("topology", [SYMMETRIC, ASYMMETRIC], ids=["cables", "links"])
@pytest.mark.parametrize("step", [1, 5, 20])
def test_an_interrupt_gives_the_best_so_far_with_its_proof(topology: Topology, method: str, step: int) -> None:
    """After the first step, a few, or more: the outcome says so and the plan holds."""
    meter = _Interrupting(Gap(0.005), step)
    made = plan(topology, method=method, meter=meter)
    assert made.outcome == "interrupted"
    assert check(made).gap <= made.gap < 1
    assert made.value > 0


@pytest.mark.parametrize("topology", [SYMMETRIC, ASYMMETRIC], ids=["cables", "links"])
def test_more_steps_are_no_worse(topology: Topology) -> None:
    """Interrupted later and later, until it is optimal: the gap never widens by more than rounding."""
    made = plan(topology, meter=_Interrupting(Gap(0.0), 1))
    step = 1
    while made.outcome == "interrupted":
        step *= 3
        later = plan(topology, meter=_Interrupting(Gap(0.0), step))
        assert later.gap <= made.gap + 1e-9
        made = later
    assert made.outcome == "optimal"


@pytest.mark.parametrize("method", ["auto", "garg-konemann"])
def test_a_time_limit_gives_the_best_so_far_with_its_proof(method: str) -> None:
    """Even one that is over at once."""
    made = plan(SYMMETRIC, stop=Seconds(1e-9) | Gap(0.005), method=method)
    assert made.outcome == "time"
    assert made.iterations <= 5  # prices of the cut and of each kind of class, one tree
    assert check(made).gap <= made.gap < 1


def test_a_time_limit_holds_although_the_gap_is_met() -> None:
    """The warm-up does not go on for the LP's sake once the time is over."""
    made = plan(SYMMETRIC, stop=Seconds(1e-9) | Gap(0.99))
    assert made.outcome == "gap"
    assert made.iterations <= 5  # prices of the cut and of each kind of class, one tree


def test_a_gap_asked_for_is_met_and_said() -> None:
    """The proved gap is within it; the default goes on to the optimum."""
    made = plan(ASYMMETRIC, stop=Gap(0.05))
    assert made.outcome in ("gap", "optimal")
    assert check(made).gap <= made.gap <= 0.05
    assert plan(ASYMMETRIC).outcome == "optimal"


def test_progress_is_reported_and_ends_with_the_plan() -> None:
    """Seconds and iterations rise, bounds fall, and the last report is what the plan claims, but for safety and tidying."""
    reports: list[Progress] = []
    made = plan(SYMMETRIC, progress=reports.append)
    for before, after in zip(made.history, made.history[1:], strict=False):
        assert before.seconds <= after.seconds
        assert before.iterations <= after.iterations
        assert before.bound >= after.bound
    assert reports[-1] == made.history[-1]
    assert reports[-1].value == pytest.approx(made.value, rel=1e-10)
    assert reports[-1].bound == pytest.approx(made.bound, rel=1e-9)
    assert reports[-1].iterations == made.iterations


@pytest.mark.parametrize(
    ("value", "asked", "outcome"), [(1 - 1e-8, 0.0, "optimal"), (0.95, 0.1, "gap"), (0.95, 0.0, "stalled")]
)
def test_a_search_with_nothing_to_add_is_optimal_only_if_its_gap_says_so(
    value: float, asked: float, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An LP whose solution is spoilt, so that it finds no new column, must not be called an optimum."""
    solve = PackingMaster.solve

    def spoilt(self: PackingMaster, seconds: float) -> MasterSolution:
        true = solve(self, seconds)
        return MasterSolution(true.rates * 0.0, true.duals * 0.0, solved=False)

    problem = allreduce_problem(catalog("ring:4,oneway=true"), (0, 1, 2, 3))
    monkeypatch.setattr(PackingMaster, "solve", spoilt)
    monkeypatch.setattr("dualcoll.packing.column_generation.WARM_UP", 1)
    monkeypatch.setattr("dualcoll.packing.column_generation.relative_gap", lambda *_: 1 - value)
    monkeypatch.setattr(Meter, "outcome", lambda *_: None)
    _, ended, _ = column_generation(problem, Meter(Stop(gap=asked)))
    assert ended == outcome
