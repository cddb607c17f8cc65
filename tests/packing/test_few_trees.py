"""At most K trees: within the limit, feasible, never above the bound, and a table of trade-offs without waste."""

from __future__ import annotations

import numpy as np
import pytest

from dualcoll._api import check, plan
from dualcoll.diagnosis.timing import timing
from dualcoll.errors import InputError
from dualcoll.packing.column_generation import FLAT, column_generation
from dualcoll.packing.few_trees import fewer, frontier
from dualcoll.plans.model import Plan
from dualcoll.progress import Gap, Meter, Outcome
from dualcoll.testing import degrade
from dualcoll.topology.catalog import catalog
from dualcoll.topology.file import read_topology
from dualcoll.topology.model import Topology
from tests.packing.exact import FABRIC_KINDS, random_case, random_optimum
from tests.packing.problems import allreduce_problem

FABRICS: dict[str, Topology] = {
    "rails": degrade(catalog("rail:4x4"), 1),
    "one-way": degrade(catalog("rail:2x4"), 3, 0.5, symmetric=False),
    "pairs": degrade(catalog("dgx-1v:boxes=2"), 1, symmetric=False),
    "shared": catalog("p4d:boxes=2"),
    "imported": read_topology("examples/h100-nccl-topo.xml"),
    "mesh": catalog("dgx-1v"),
}


@pytest.fixture(scope="module", params=FABRICS)
def full(request: pytest.FixtureRequest) -> Plan:
    """The optimum without limits, with its table."""
    return plan(FABRICS[request.param], pareto=True)


@pytest.mark.parametrize("most", [1, 2, 3, 5, 8, 16])
def test_no_more_trees_than_asked_for(full: Plan, most: int) -> None:
    """The plan holds, its bound is that of plans without the limit, and the outcome says that the limit cost something."""
    made = plan(full.topology, max_trees=most)
    proof = check(made)
    assert 1 <= len(made.trees) <= most
    assert proof.rate <= proof.bound
    assert made.value <= full.bound
    assert made.bound == pytest.approx(full.bound, rel=1e-8)
    assert made.outcome is (Outcome.LIMITED if made.gap > 1e-9 else Outcome.OPTIMAL)


@pytest.mark.parametrize(("gap", "outcome"), [(0.1, Outcome.GAP), (0.01, Outcome.LIMITED), (0.0, Outcome.LIMITED)])
def test_the_outcome_is_that_of_the_few_trees(gap: float, outcome: Outcome) -> None:
    """Eight trees of a DGX-1 lose 3 %: within a tenth, but neither optimal nor within a hundredth."""
    made = plan(catalog("dgx-1v"), max_trees=8, stop=Gap(gap))
    assert 0.01 < made.gap < 0.1
    assert made.outcome is outcome


def test_as_many_trees_as_the_optimum_has_are_enough(full: Plan) -> None:
    """K at or above that count changes nothing."""
    for most in (len(full.trees), len(full.trees) + 1, 10_000):
        made = plan(full.topology, max_trees=most)
        assert made.outcome is Outcome.OPTIMAL
        assert made.value == pytest.approx(full.value, rel=1e-9)
        assert len(made.trees) <= most


def test_every_row_of_the_table_is_worth_having(full: Plan) -> None:
    """Trees and rates rise from row to row or a row is flatter; none is beaten; the last rates reach the optimum."""
    table = full.frontier
    assert table
    for one in table:
        assert one.rate <= full.bound
        assert one.trees >= 1
        assert one.depth >= 1
        for other in table:
            beats = other.trees <= one.trees and other.rate >= one.rate and other.depth <= one.depth
            assert other is one or not beats
    assert [one.trees for one in table] == sorted(one.trees for one in table)
    flattest = {one.depth for one in table}
    best_so_far = [max(one.rate for one in table if one.trees <= most) for most in (1, 2, 4, 8, 10_000)]
    assert best_so_far == sorted(best_so_far)
    assert min(flattest) <= timing(full).depth
    assert max(one.rate for one in table) == pytest.approx(full.value, rel=1e-8)


def test_the_table_is_made_on_request_only() -> None:
    """It costs time."""
    assert plan(catalog("dgx-1v")).frontier == ()


def test_the_table_heeds_the_limits() -> None:
    """No row has more trees or deeper ones than asked for, the plan's own row aside."""
    made = plan(catalog("mi250"), max_trees=6, max_depth=8, pareto=True, stop=Gap(0.01))
    assert all(one.depth <= 8 for one in made.frontier)
    assert {one.trees for one in made.frontier if one.trees <= 6}


@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_few_trees_on_small_fabrics_of_every_kind(seed: int, kind: str) -> None:
    """Against the optimum by flows: below it for few trees, equal to it for as many as it takes."""
    topology, optimum = random_case(kind, seed), random_optimum(kind, seed)
    needed = len(plan(topology).trees)
    for most in (1, 2, 3, needed):
        made = plan(topology, max_trees=most)
        check(made)
        assert len(made.trees) <= most
        assert made.value <= optimum * (1 + 1e-9)
        assert made.bound >= optimum * (1 - 1e-9)
    assert made.value == pytest.approx(optimum, rel=1e-6)


def test_one_tree_is_the_best_bottleneck_where_that_is_easy() -> None:
    """On a star each rank's cable carries every byte, so that one tree, a chain, gets half of a cable: that is found."""
    made = plan(catalog("star:6,bandwidth=10GB/s"), max_trees=1)
    assert made.value == pytest.approx(5e9)
    assert made.bound == pytest.approx(6e9)


def test_sixteen_trees_reach_nine_tenths_of_degraded_rails() -> None:
    """What the larger figure promises, on 128 ranks."""
    made = plan(degrade(catalog("dgx-h100:boxes=16"), 0), max_trees=16, stop=Gap(1e-3))
    assert len(made.trees) <= 16
    assert made.value >= 0.9 * made.bound


@pytest.mark.parametrize("limit", ["max_trees", "max_depth"])
def test_unusable_limits_are_refused(limit: str) -> None:
    """Numbers below one, and a method that cannot heed them."""
    topology = catalog("star:4")
    for value in (0, -3):
        with pytest.raises(InputError) as caught:
            plan(topology, **{limit: value})  # type: ignore[arg-type]
        assert str(caught.value) == f"{limit} {value} is not a positive number"
    with pytest.raises(InputError) as caught:
        plan(topology, method="garg-konemann", stop=Gap(0.1), **{limit: 4})  # type: ignore[arg-type]
    assert str(caught.value) == f"method garg-konemann: {limit} needs the method auto"


def test_trials_end_when_told_to() -> None:
    """Time over or Ctrl-C keeps the packing with the slowest columns dropped, and tries no further sizes for the table."""
    topology = catalog("dgx-h100:boxes=4")
    problem = allreduce_problem(topology, topology.ranks)
    packing, _, _ = column_generation(problem, Meter(Gap(1e-6)))
    few = fewer(problem, packing, 4, FLAT, np.random.default_rng(0), lambda: True)
    assert 1 <= len(few.columns) <= 4
    assert 0 < few.value <= packing.bound
    assert len(frontier(problem, packing, 64, 2**31, np.random.default_rng(0), lambda: True)) == 1


def test_the_table_needs_the_method_auto() -> None:
    """Beside Garg-Könemann the table would show packings that beat the plan."""
    with pytest.raises(InputError) as caught:
        plan(catalog("star:4"), method="garg-konemann", stop=Gap(0.1), pareto=True)
    assert str(caught.value) == "method garg-konemann: the table of fewer trees needs the method auto"


@pytest.mark.parametrize("most", [1, 2])
def test_every_root_of_an_allgather_keeps_the_limit(most: int) -> None:
    """The limit is one for each demand, and the loss is proved by the bound."""
    made = plan(catalog("dgx-h100:boxes=2"), "allgather", max_trees=most, stop=Gap(0.01))
    check(made)
    counts = np.bincount([tree.demand for tree in made.trees], minlength=16)
    assert 1 <= counts.min() <= counts.max() <= most
    assert made.value >= 0.6 * made.bound
