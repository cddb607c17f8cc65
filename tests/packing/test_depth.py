"""Limits on the depth of trees."""

from __future__ import annotations

import numpy as np
import pytest

from dualcoll._api import check, plan
from dualcoll.diagnosis.timing import timing
from dualcoll.errors import InputError
from dualcoll.packing.problem import Shape, column_depth
from dualcoll.progress import Gap, Meter, Outcome, Seconds
from dualcoll.testing import degrade
from dualcoll.topology.catalog import catalog
from dualcoll.topology.file import read_topology
from dualcoll.topology.model import Topology
from tests.packing.exact import FABRIC_KINDS, random_case, random_optimum, routes
from tests.packing.fabrics import GB, fabric
from tests.packing.problems import allreduce_problem, spread_one
from tests.packing.sound import assert_sound

FABRICS: dict[str, Topology] = {
    "rails": degrade(catalog("rail:4x4"), 1),
    "one-way": degrade(catalog("rail:2x4"), 3, 0.5, symmetric=False),
    "pairs": degrade(catalog("dgx-1v:boxes=2"), 1, symmetric=False),
    "shared": catalog("p4d:boxes=2"),
    "imported": read_topology("examples/h100-nccl-topo.xml"),
}

REFUSAL = "no tree was found that is at most {} logical edges deep; allow deeper trees"


def _has_star(topology: Topology) -> bool:
    """Whether some rank has allowed routes to and from every other."""
    ways, n = routes(topology, topology.ranks), len(topology.ranks)
    return any(all((i, j) in ways and (j, i) in ways for j in range(n) if j != i) for i in range(n))


@pytest.mark.parametrize("most", [1, 2, 3, 5])
@pytest.mark.parametrize("name", FABRICS)
def test_no_tree_is_deeper_than_asked_for(name: str, most: int) -> None:
    """On fabrics of every kind; the plan holds, and the outcome says whether the limit may have cost something."""
    made = plan(FABRICS[name], max_depth=most)
    check(made)
    assert timing(made).depth <= most
    assert made.outcome is (Outcome.OPTIMAL if made.gap <= 1e-9 else Outcome.LIMITED)


@pytest.mark.parametrize("name", FABRICS)
def test_a_limit_that_does_not_bind_changes_nothing(name: str) -> None:
    """At as many edges as there are ranks, the optimum comes out."""
    topology = FABRICS[name]
    made, free = plan(topology, max_depth=len(topology.ranks)), plan(topology)
    assert made.value == pytest.approx(free.value, rel=1e-6)
    assert made.bound == pytest.approx(free.bound, rel=1e-6)


@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_shallow_plans_of_small_fabrics(seed: int, kind: str) -> None:
    """Depths 1 to 3 and one that does not bind: never above the optimum by flows, which the last reaches."""
    topology, optimum = random_case(kind, seed), random_optimum(kind, seed)
    for most in (1, 2, 3, 9):
        if most == 1 and not _has_star(topology):
            with pytest.raises(InputError) as caught:
                plan(topology, max_depth=1)
            assert str(caught.value) == REFUSAL.format(1)
            continue
        made = plan(topology, max_depth=most)
        check(made)
        assert timing(made).depth <= most
        assert made.value <= optimum * (1 + 1e-9)
        assert made.bound >= optimum * (1 - 1e-9)
    assert made.value == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize(
    ("cables", "most"),
    [
        ("g0-g1:1, g1-g2:1, g2-g3:1", 1),
        ("g0-g1:1/2, g1-g2:1, g2-g3:1", 1),
        ("g0-g1:1, g1-g2:1, g2-g3:1, g3-g4:1, g4-g5:1", 2),
    ],
)
def test_a_depth_that_cannot_be_is_refused(cables: str, most: int) -> None:
    """On lines of ranks, both directions alike or not."""
    with pytest.raises(InputError) as caught:
        plan(fabric(cables), max_depth=most)
    assert str(caught.value) == (f"no tree was found that is at most {most} logical edges deep; allow deeper trees")


def test_a_depth_that_cannot_be_is_refused_within_the_time_limit() -> None:
    """A torus has no star; that is found out after a few roots, not after a whole schedule of them."""
    meter = Meter(Seconds(0.2))
    with pytest.raises(InputError) as caught:
        plan(catalog("torus:16x16"), max_depth=1, meter=meter)
    assert str(caught.value) == REFUSAL.format(1)
    assert meter.seconds < 60


def test_the_least_possible_depth_of_a_line_is_found() -> None:
    """A line has one tree; rooted in the middle it is half as deep as long."""
    assert timing(plan(fabric("g0-g1:1, g1-g2:1, g2-g3:1, g3-g4:1, g4-g5:1"), max_depth=3)).depth == 3


def test_depth_one_means_stars() -> None:
    """On a switch of 4 ranks, the four stars together load every cable 3 + 1 + 1 + 1 = 6 times: 4/6."""
    made = plan(fabric("g0-s0:1, g1-s0:1, g2-s0:1, g3-s0:1"), max_depth=1)
    check(made)
    assert made.value == pytest.approx(4 / 6 * GB, rel=1e-6)
    assert timing(made).depth == 1


def test_a_star_of_thousands_is_found() -> None:
    """Prices that rise with every use of the root's cable stay numbers."""
    made = plan(catalog("star:2500"), max_depth=1, stop=Seconds(0.5))
    assert timing(made).depth == 1


@pytest.mark.parametrize("kind", ["switched", "boxes", "one-way", "one-way boxes", "shared"])
@pytest.mark.parametrize("seed", range(12))
def test_columns_of_depth_one_are_stars(seed: int, kind: str) -> None:
    """Allowed cheapest routes to and from the root, and no column exactly where somebody cannot be reached directly."""
    topology = random_case(kind, seed)
    problem = allreduce_problem(topology, topology.ranks)
    prices = np.random.default_rng(seed).random(len(topology.links)) + 0.01
    ways = routes(topology, topology.ranks)
    n = len(topology.ranks)
    stars = [all((root, i) in ways and (i, root) in ways for i in range(n) if i != root) for root in range(n)]
    room = np.full(prices.size, 99)
    found = [
        spread_one(problem, prices, 1.0, room, Shape(max_depth=1), np.random.default_rng(trial)) for trial in range(8)
    ]
    assert all(column is None for column in found) or any(stars)
    assert all(column is not None for column in found) or not all(stars) or "boxes" in kind
    for column in found:
        if column is not None:
            assert_sound(topology, column, prices)
            assert column_depth(column) == 1


def test_the_depth_figure_on_rails() -> None:
    """128 ranks within 16 logical edges at 95 % of the optimum."""
    made = plan(catalog("dgx-h100:boxes=16"), max_depth=16, stop=Gap(0.05))
    assert timing(made).depth <= 16
    assert made.value >= 0.95 * made.bound
