from __future__ import annotations

import pytest

from dualcoll._api import plan
from dualcoll.errors import InputError
from dualcoll.packing.collective import Columns
from dualcoll.packing.oracles.arborescences import ArborescenceOracle
from dualcoll.packing.oracles.spanning_tree import ProjectedTreeOracle, VoronoiTreeOracle
from dualcoll.topology.model import Topology
from tests.packing.fabrics import fabric
from tests.packing.problems import allreduce_problem

NICS = "g0-n0:1, n0-s0:1, s0-g1:1"


@pytest.mark.parametrize(
    ("topology", "oracle"),
    [
        (fabric("g0-s0:1, s0-g1:2"), VoronoiTreeOracle),
        (fabric(NICS), ProjectedTreeOracle),
        (fabric("g0-s0:1, s0-g1:2/1"), ArborescenceOracle),
        (fabric("g0>g1:1, g1>g0:1"), VoronoiTreeOracle),
        (fabric("g0-s0:1, s0-g1:2, g0>g1:1"), ArborescenceOracle),
        (fabric("g0-s0:1, g0-s0:2, s0-g1:2", shared="0: 1"), VoronoiTreeOracle),
        (fabric("g0>s0:1, s0>g0:1, s0-g1:2", shared="0 2: 1"), ArborescenceOracle),
    ],
)
def test_the_oracle_follows_the_fabric(topology: Topology, oracle: type) -> None:
    """Simple trees where both directions are alike, shared capacities included; Voronoi cells where no box is involved."""
    problem = allreduce_problem(topology, topology.ranks)
    assert type(problem.oracle) is oracle
    assert type(allreduce_problem(topology, topology.ranks, columns=Columns.PAIR).oracle) is ArborescenceOracle


def test_one_rank_is_too_few() -> None:
    """There is nothing to reduce with."""
    with pytest.raises(InputError) as caught:
        plan(fabric("g0-s0:1", name="lonely"))
    assert str(caught.value) == "ranks: AllReduce of 1 rank; two or more take part"


def test_a_rank_that_cannot_be_reached_is_named() -> None:
    """Before any solving."""
    with pytest.raises(InputError) as caught:
        plan(fabric("g0-s0:1, g1-s0:1, g2-s1:1", name="split"))
    assert str(caught.value).startswith("split: rank g2 cannot be reached from g0; ")
