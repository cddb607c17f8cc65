"""Every collective against linear programs without trees, on random fabrics of every kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dualcoll._api import check, plan
from dualcoll.collectives.catalogue import COLLECTIVES
from dualcoll.collectives.workload import Group, Objective, Pattern, Workload
from dualcoll.errors import InputError
from dualcoll.topology.model import Topology
from tests.packing.exact import FABRIC_KINDS, random_case, workload_optimum
from tests.packing.fabrics import GB, fabric
from tests.packing.problems import one_group

NAMES = tuple(name for name in COLLECTIVES if name != "alltoallv")


def _assert_optimal(topology: Topology, workload: Workload, *, relay: bool = True) -> None:
    """Value, bound and exact proof agree with the linear program; so does a refusal."""
    optimum = workload_optimum(topology, workload, relay=relay)
    try:
        made = plan(topology, workload, relay=relay)
    except InputError:  # some demand cannot be served, so that the slowest has nothing
        assert workload_optimum(topology, replace(workload, objective=Objective.SLOWEST), relay=relay) < 1.0
        return
    check(made)
    assert made.value == pytest.approx(optimum, rel=1e-6)
    assert made.bound == pytest.approx(optimum, rel=1e-6)
    assert made.in_network is None or made.in_network.rate >= optimum * (1 - 1e-9)


@pytest.mark.parametrize("collective", NAMES)
@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_the_optimum_is_that_of_flows(seed: int, kind: str, collective: str) -> None:
    """Each collective, over all ranks."""
    topology = random_case(kind, seed)
    _assert_optimal(topology, one_group(topology.ranks, collective))


@pytest.mark.parametrize("collective", ["gather", "scatter", "alltoall"])
@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_the_optimum_without_relaying(seed: int, kind: str, collective: str) -> None:
    """Every pair talks directly, or is refused where it cannot."""
    topology = random_case(kind, seed)
    _assert_optimal(topology, one_group(topology.ranks, collective), relay=False)


@pytest.mark.parametrize("collective", ["allgather", "reducescatter", "scatter", "gather"])
@pytest.mark.parametrize("kind", FABRIC_KINDS)
def test_uneven_shards(kind: str, collective: str) -> None:
    """Weights 1, 2, 3, … and a shard of nothing."""
    topology = random_case(kind, 2)
    ranks = topology.ranks
    weights = tuple(range(len(ranks)))
    root = ranks[0] if collective in ("scatter", "gather") else None
    _assert_optimal(topology, Workload((Group("all", collective, ranks, 2**20, root, weights),)))


@pytest.mark.parametrize("seed", range(4))
def test_a_demand_matrix(seed: int) -> None:
    """An AllToAllv with empty cells."""
    topology = random_case("switched", seed)
    n = len(topology.ranks)
    cells = tuple((i * 7 + seed) % 5 * 1000 for i in range(n * n))
    size = max(max(sum(cells[i * n : (i + 1) * n]), sum(cells[i::n])) for i in range(n))
    _assert_optimal(topology, Workload((Group("all", "alltoallv", topology.ranks, size, None, cells),)))


@pytest.mark.parametrize("objective", Objective)
@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_groups_and_mixes(seed: int, kind: str, objective: Objective) -> None:
    """Three collectives of different sizes on overlapping ranks, by the slowest and in total."""
    topology = random_case(kind, seed)
    ranks = topology.ranks
    groups = (
        Group("a", "allreduce", ranks[:2], 2**20),
        Group("b", "allgather", ranks[1:], 2**21),
        Group("c", "alltoall", ranks, 2**19),
    )
    _assert_optimal(topology, Workload(groups, objective))


def test_groups_of_allreduce_on_a_symmetric_fabric_use_simple_trees() -> None:
    """Two groups that share a cable: by the slowest each gets half of it; in total one may get all of another."""
    topology = fabric("g0-s0:4, g1-s0:4, s0-s1:2, g2-s1:4, g3-s1:4")
    crossing = (Group("a", "allreduce", (0, 4), 2**20), Group("b", "allreduce", (1, 5), 2**20))
    slowest = plan(topology, Workload(crossing))
    assert slowest.value == pytest.approx(GB)
    assert slowest.group_rates() == pytest.approx((GB, GB))
    local = (Group("a", "allreduce", (0, 4), 2**20), Group("b", "allreduce", (0, 1), 2**20))
    total = plan(topology, Workload(local, Objective.TOTAL))
    for made in (slowest, total):
        check(made)
        _assert_optimal(topology, made.workload)
    assert total.value == pytest.approx(4 * GB)
    assert {demand.pattern for demand in total.workload.demands()} == {Pattern.ALLREDUCE}
