"""What it costs not to choose paths: the plan's own, sprayed packets and hashed ones, on the same fabric."""

from __future__ import annotations

import numpy as np
import pytest

from dualcoll._api import check, plan
from dualcoll.collectives.demand_matrix import DemandMatrix
from dualcoll.plans.model import Plan
from dualcoll.testing import degrade
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology

POD = catalog("fat-tree:k=4,bandwidth=1GB/s")
MIXED = degrade(POD, 1, 0.5)
NEXT_POD = DemandMatrix(1000 * np.roll(np.eye(16, dtype=np.int64), 4, axis=1))  # each host to one of the next pod


def _proved(topology: Topology, collective: str, routing: str, **asked: object) -> Plan:
    made = plan(topology, collective, routing=routing, **asked)  # type: ignore[arg-type]
    check(made)
    assert made.gap < 1e-6
    return made


@pytest.mark.parametrize("collective", ["allreduce", "allgather", "reducescatter", "broadcast", "alltoall", "scatter"])
@pytest.mark.parametrize("topology", [POD, MIXED], ids=["even", "degraded"])
def test_nobody_is_faster_than_who_chooses_paths(topology: Topology, collective: str) -> None:
    """Whatever spraying or hashing carries the plan could carry too, so values and bounds stand in this order."""
    chosen = _proved(topology, collective, "single")
    for routing, seed in (("spray", 0), ("spray-cables", 0), ("ecmp", 0), ("ecmp", 1)):
        given = _proved(topology, collective, routing, seed=seed)
        assert given.value <= chosen.bound * (1 + 1e-9)
        assert given.bound <= chosen.bound * (1 + 1e-6)


def test_hashed_flows_collide_where_sprayed_ones_do_not() -> None:
    """Sixteen flows from pod to pod, no relaying: 1 GB/s each by plan or sprayed; hashed, two or more share a cable."""
    asked = {"demand": NEXT_POD, "relay": False}
    for routing in ("single", "spray", "spray-cables"):
        assert _proved(POD, "alltoallv", routing, **asked).algbw == pytest.approx(1e9, rel=1e-6)
    hashed = [_proved(POD, "alltoallv", "ecmp", seed=seed, **asked).algbw / 1e9 for seed in range(6)]
    assert all(1 / rate == pytest.approx(round(1 / rate), rel=1e-6) for rate in hashed)
    assert max(hashed) <= 1 / 2 * (1 + 1e-6)
    assert len({round(1 / rate) for rate in hashed}) > 1


def test_hosts_that_relay_get_around_collisions() -> None:
    """The same flows with relaying: hashed ones get more than without, and no more than the plan's."""
    alone = _proved(POD, "alltoallv", "ecmp", demand=NEXT_POD, relay=False)
    helped = _proved(POD, "alltoallv", "ecmp", demand=NEXT_POD)
    assert 1.1 * alone.value < helped.value <= 1e9 * (1 + 1e-9)
