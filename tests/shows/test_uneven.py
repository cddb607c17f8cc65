"""Shards of unlike sizes and demand that is not even."""

from __future__ import annotations

import numpy as np
import pytest

from dualcoll._api import check, plan
from dualcoll.collectives.demand_matrix import DemandMatrix
from dualcoll.progress import Gap, Seconds
from dualcoll.testing import degrade
from dualcoll.topology.catalog import catalog
from tests.packing.fabrics import GB, fabric

STAR = "star:3,bandwidth=1GB/s"


@pytest.mark.parametrize(
    ("weights", "gathered", "rooted"),
    [
        ((1, 1, 1), 3 / 2, 3 / 2),
        ((1, 1, 2), 4 / 3, 4 / 3),
        ((2, 1, 1), 4 / 3, 2),
        ((0, 1, 1), 1, 1),
        ((98, 1, 1), 100 / 99, 50),
    ],
)
def test_uneven_shards_around_a_switch(weights: tuple[int, ...], gathered: float, rooted: float) -> None:
    """Whoever has least takes in the most, over 1 GB/s; a root takes in, or gives out, all but its own shard."""
    topology = catalog(STAR)
    values = {"allgather": gathered, "reducescatter": gathered, "gather": rooted, "scatter": rooted}
    for collective, value in values.items():
        made = plan(topology, collective, weights=weights)
        check(made)
        assert made.algbw / GB == pytest.approx(value, rel=1e-6)
        assert made.bound / GB == pytest.approx(value, rel=1e-6)


def test_bytes_of_uneven_shards_follow_their_weights() -> None:
    """Of 1000 bytes weights 1, 2 and 7 make 100, 200 and 700, whole bytes of trees added up."""
    made = plan(fabric("g0-g1:1, g1-g2:2, g2-g0:3"), "allgather", size=1000, weights=(1, 2, 7))
    carried = np.bincount([tree.demand for tree in made.trees], [tree.size for tree in made.trees])
    assert carried.tolist() == [100, 200, 700]


@pytest.mark.parametrize("relay", [True, False])
def test_a_skewed_alltoallv_on_degraded_rails(relay: bool) -> None:
    """64 GPUs, a tenth of the network cables slowed, one busy sender and one hot receiver: proved within 1 %."""
    u = np.arange(64)
    cells = (1 + (7 * u[:, None] + 3 * u) % 5) * 2**16
    cells[:, 3] *= 4
    cells[5] *= 4
    topology = degrade(catalog("dgx-h100:boxes=8,network=rail"), 0)
    made = plan(topology, "alltoallv", demand=DemandMatrix(cells), relay=relay, stop=Gap(0.01) | Seconds(30))
    proof = check(made)
    assert proof.gap <= 0.01
