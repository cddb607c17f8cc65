"""The default solver against second methods that share no code with it (see exact.py)."""

from __future__ import annotations

import pytest

from dualcoll._api import check, plan
from dualcoll.topology.model import Forwarding, Topology
from tests.packing.exact import FABRIC_KINDS, column_optimum, flow_optimum, random_case, random_optimum
from tests.packing.fabrics import GB, fabric

CLOSE = 1e-6


def _assert_optimal(
    topology: Topology, optimum: float, ranks: list[int | str] | None = None, forward: str = "switches"
) -> None:
    """Value and bound enclose the optimum within 1e-6, as the proof confirms; a basic solution has few trees."""
    made = plan(topology, ranks=ranks, forward=forward)
    proof = check(made)
    assert made.value == pytest.approx(optimum, rel=CLOSE)
    assert made.bound == pytest.approx(optimum, rel=CLOSE)
    assert proof.gap <= CLOSE
    assert made.outcome == "optimal"
    assert len(made.trees) <= len(topology.links) + len(topology.shared)


@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(40))
def test_optimum_is_what_flows_without_trees_give(seed: int, kind: str) -> None:
    """Symmetric and not, with shared capacities, one-way links, parallel cables, boxes and idle GPUs."""
    _assert_optimal(random_case(kind, seed), random_optimum(kind, seed))


@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(40, 48))
def test_optimum_is_what_column_generation_on_networkx_gives(seed: int, kind: str) -> None:
    """Spanning trees of networkx where the fabric is symmetric, its arborescences elsewhere, scipy's LP."""
    topology = random_case(kind, seed)
    _assert_optimal(topology, column_optimum(topology, topology.ranks, simple=not kind.startswith("one-way")))


@pytest.mark.parametrize("kind", ["switched", "one-way"])
@pytest.mark.parametrize("seed", range(15))
def test_optimum_with_every_gpu_forwarding(seed: int, kind: str) -> None:
    """The same under "all", where outsiders and ranks carry others' traffic."""
    topology = random_case(kind, seed)
    _assert_optimal(topology, flow_optimum(topology, topology.ranks, Forwarding.ALL), forward="all")


@pytest.mark.parametrize("seed", range(30))
def test_optimum_of_a_subset_of_ranks(seed: int) -> None:
    """Ranks left out become idle GPUs; those that take part are numbered as they were named."""
    topology = random_case("one-way" if seed % 2 else "switched", 3 * seed + 2)
    order = [f"g{i}" for i in (4, 1, 3)]
    members = tuple(topology.index[name] for name in order)
    optimum = flow_optimum(topology, members, Forwarding.ALL)
    _assert_optimal(topology, optimum, list(order), forward="all")


@pytest.mark.parametrize(
    ("topology", "optimum"),
    [
        pytest.param(fabric("h0-s0:4, h1-s0:4, g0-s0:2"), 2.0, id="hosts are ranks"),
        pytest.param(fabric("s0-g1:1, s0-g2:2, g1-g2:2, s0-s1:3, s1-h0:4, s1-g2:1", ranks="s0"), 3.0, id="a switch"),
        pytest.param(
            fabric("g0-p0:5, p0-n0:4, n0-s0:3, s0-n1:3, n1-p1:4, p1-g1:9, n1-g1:1", ranks="n1"), 3.0, id="a NIC"
        ),
        pytest.param(fabric("g0-g1:10, g1-g2:10, g2-g0:10", shared="0 1 2: 8"), 2.0, id="one bus under all"),
        pytest.param(
            fabric("g0-g1:10, g1-g2:10, g0-g2:10", shared="0 1: 5; 0 1: 3"), 1.5, id="two over the same links"
        ),
        pytest.param(
            fabric("g0-s0:10, g0-s0:10, g1-s0:10, g1-s0:10", shared="0: 6; 2 3: 14"), 7.0, id="parallel cables"
        ),
        pytest.param(fabric("g0>g1:3, g1>g2:2, g2>g0:4"), 2.0, id="one-way links"),
        pytest.param(fabric("g0-g1:7/3, g0>g1:2"), 3.0, id="a slower way back"),
    ],
)
def test_optimum_of_special_fabrics(topology: Topology, optimum: float) -> None:
    """Ranks of other kinds, shared capacities over both directions, one-way and parallel links."""
    assert flow_optimum(topology, topology.ranks) == pytest.approx(optimum * GB)
    _assert_optimal(topology, optimum * GB)
