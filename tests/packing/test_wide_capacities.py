"""Links of kB/s beside links of TB/s: every claim stays true, and the gap stays small."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dualcoll._api import check, plan
from dualcoll.packing.collective import Columns
from dualcoll.packing.garg_konemann import garg_konemann
from dualcoll.progress import Gap, Meter
from dualcoll.topology.arrays import reversal
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology
from tests.packing.exact import FABRIC_KINDS, random_case
from tests.packing.fabrics import fabric
from tests.packing.problems import allreduce_problem

ORDERS = 9


def _widened(topology: Topology, seed: int) -> Topology:
    """Capacities drawn evenly in the logarithm from 1 kB/s to 1 TB/s, a cable's two directions alike where they were."""
    rng = np.random.default_rng(seed)
    partner = reversal(topology)
    drawn = 10.0 ** (3 + ORDERS * rng.random(len(topology.links)))
    if partner is not None:
        drawn = drawn[np.minimum(np.arange(partner.size), partner)]
    links = tuple(replace(link, capacity=float(c)) for link, c in zip(topology.links, drawn, strict=True))
    shared = tuple(replace(row, capacity=min(links[e].capacity for e in row.links)) for row in topology.shared)
    return replace(topology, links=links, shared=shared)


def _assert_true(topology: Topology) -> None:
    made = plan(topology)
    proof = check(made)
    assert Fraction(made.value) <= proof.rate <= proof.bound <= Fraction(made.bound)
    assert made.gap <= 2e-9
    assert made.outcome == "optimal"


@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(20))
def test_claims_hold_exactly_over_nine_orders_of_magnitude(seed: int, kind: str) -> None:
    """Random fabrics: the proof in fractions puts the optimum between value and bound, which are within 2e-9."""
    _assert_true(_widened(random_case(kind, seed), seed))


@pytest.mark.parametrize("spec", ["dgx-h100:boxes=4", "torus:5x5", "fat-tree:k=4", "dgx-1v:boxes=2"])
@pytest.mark.parametrize("seed", range(2))
def test_claims_hold_exactly_on_larger_fabrics(spec: str, seed: int) -> None:
    """The same on boxes, a torus and a fat tree."""
    _assert_true(_widened(catalog(spec), seed))


@pytest.mark.parametrize("slow", [1e3, 1.0])
def test_one_very_slow_cable_among_fast_ones_does_no_harm(slow: float) -> None:
    """A bypassed cable of 1 kB/s or 1 B/s in a ring of 10 TB/s adds nothing to see, and the rest is packed to the end."""
    ring = catalog("ring:6,bandwidth=10TB/s")
    links = list(ring.links)
    for e in (0, 1):
        links[e] = replace(links[e], capacity=slow)
    made = plan(replace(ring, links=tuple(links)))
    assert check(made).gap <= made.gap <= 2e-9
    assert made.value == pytest.approx(1e13, rel=1e-9)


@pytest.mark.parametrize("columns", [Columns.SIMPLE, Columns.PAIR])
@pytest.mark.parametrize("seed", range(10))
def test_garg_konemann_keeps_its_guarantee(seed: int, columns: Columns) -> None:
    """(1-ε)² of what the default solver proves, over nine orders of magnitude too."""
    topology = _widened(random_case("switched", seed), seed)
    problem = allreduce_problem(topology, topology.ranks, columns=columns)
    packing, _, _ = garg_konemann(problem, 0.2, Meter(Gap(0.0)))
    assert packing.value >= 0.8**2 * plan(topology).value
    assert packing.value <= plan(topology).bound * (1 + 1e-9)


@pytest.mark.parametrize("method", ["auto", "garg-konemann"])
@pytest.mark.parametrize(
    ("cables", "optimum"),
    [
        ("g0-s0:1e9, g1-s0:1e-9", 1.0),
        ("g0-s0:1e9/1e-9, g1-s0:1e-9, g2-s0:1e9", 1.0),
        ("g0-g1:1e9, g1-g2:1e9, g2-g0:1e-9", 1e18),
        ("g0-p0:1e9, p0-n0:1e9, n0-s0:1e-9, g1-s0:1e9", 1.0),
    ],
)
def test_the_widest_capacities_that_are_accepted(cables: str, optimum: float, method: str) -> None:
    """1 B/s beside 1e18 B/s, by either solver: no overflow, no warning, true claims."""
    made = plan(fabric(cables), method=method, stop=Gap(0.0) if method == "auto" else Gap(0.2))
    assert check(made).gap <= made.gap <= (2e-9 if method == "auto" else 0.2)
    assert made.value <= optimum <= made.bound
