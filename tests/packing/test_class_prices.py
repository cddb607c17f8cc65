from __future__ import annotations

import numpy as np
import pytest

from dualcoll._api import plan
from dualcoll.packing.class_prices import class_prices
from dualcoll.packing.problem import PackingProblem
from dualcoll.testing import degrade
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology
from tests.packing.exact import FABRIC_KINDS, random_case, random_optimum
from tests.packing.fabrics import GB
from tests.packing.problems import allreduce_problem


def _problem(topology: Topology) -> PackingProblem:
    return allreduce_problem(topology, topology.ranks)


@pytest.mark.parametrize(
    ("spec", "optimum"),
    [
        ("dgx-h100:boxes=2", 266.666666667),
        ("dgx-h100:boxes=128", 201.574803150),
        ("torus:8x8", 101.587301587),
        ("fat-tree:k=8", 25.196850394),
        ("hypercube:4", 32 * 50 / 15),
        ("dgx-1v", 85.714285714),
        ("mi250", 171.428571429),
    ],
)
def test_on_regular_fabrics_they_prove_the_optimum(spec: str, optimum: float) -> None:
    """A handful of prices is as good as one per link, after a handful of oracle calls."""
    problem = _problem(catalog(spec))
    bounds = [class_prices(problem, classes) for classes in problem.classes]
    assert min(bound for _, bound, _ in bounds) == pytest.approx(optimum * GB, rel=1e-6)
    assert sum(calls for _, _, calls in bounds) <= 40


@pytest.mark.parametrize("kind", ["switched", "one-way", "boxes"])
@pytest.mark.parametrize("seed", range(30))
def test_any_classes_give_a_true_bound(seed: int, kind: str) -> None:
    """Classes drawn at random: never below the optimum, positive prices that prove just that bound, equal in a class."""
    problem = _problem(random_case(kind, seed))
    classes = np.random.default_rng(seed).integers(1 + seed % 5, size=problem.fabric.capacity.size)
    prices, bound, calls = class_prices(problem, classes)
    assert bound >= random_optimum(kind, seed) * (1 - 1e-9)
    assert problem.price(prices).bound == pytest.approx(bound, rel=1e-9)
    assert (prices > 0).all()
    assert np.unique(prices).size <= np.unique(classes).size
    assert calls <= 100


@pytest.mark.parametrize("seed", range(20))
def test_a_class_for_every_row_gives_the_optimum(seed: int) -> None:
    """Then it is plain cutting planes."""
    topology = random_case("switched", seed)
    problem = _problem(topology)
    _, bound, calls = class_prices(problem, problem.fold)
    if calls < 100:
        assert bound == pytest.approx(random_optimum("switched", seed), rel=1e-6)


def test_it_ends_when_told_to() -> None:
    """After the first oracle call, with the bound of equal prices."""
    problem = _problem(catalog("dgx-h100:boxes=2"))
    _, bound, calls = class_prices(problem, problem.classes[-1], lambda: True)
    assert calls == 1
    assert bound >= 266.6 * GB


def test_degraded_fabrics_get_the_classes_of_the_undegraded_one() -> None:
    """Degraded cables keep their class; these prices are close to the optimum where single ones take minutes."""
    plain, degraded = catalog("dgx-h100:boxes=4"), degrade(catalog("dgx-h100:boxes=4"), 1)
    for expected, found in zip(_problem(plain).classes, _problem(degraded).classes, strict=False):
        np.testing.assert_array_equal(found, expected)
    bounds = [class_prices(_problem(degraded), classes)[1] for classes in _problem(degraded).classes]
    assert min(bounds) <= plan(degraded).value * 1.02


def test_shared_capacities_over_alike_links_are_alike() -> None:
    """Every kind of fabric has classes; shared capacities get classes of their own."""
    for kind in FABRIC_KINDS:
        problem = _problem(random_case(kind, 1))
        assert problem.classes
        for classes in problem.classes:
            links = problem.fabric.links
            assert not set(classes[:links].tolist()) & set(classes[links:].tolist())
