"""Sprayed, a ReduceScatter is not an AllGather turned around."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dualcoll._api import check, plan
from dualcoll.errors import CheckFailed
from dualcoll.plans.model import Plan, Tree
from dualcoll.routing.routers import make_router
from dualcoll.topology.arrays import fabric_arrays
from tests.packing.fabrics import GB, fabric

# packets from g0 to g1 choose one of two ways, packets from g1 to g0 one of three; all cables are as fast either way
UNEVEN = fabric(
    "g0-s0:2, s0-sa:1, s0-sb:1, sa-sc:0.5, sa-sd:0.5, sb-se:1, sc-st:0.5, sd-st:0.5, se-st:1, st-g1:2, g1-g2:1, g2-g0:2"
)


def _turned(made: Plan, tree: Tree) -> Tree:
    """The tree with every edge the other way, and the ways that packets then take."""
    number = {node: i for i, node in enumerate(made.participants)}
    edges = tree.edges[:, ::-1]
    router = make_router(made.topology, made.participants, made.forwarding, made.routing)
    projection = router.project(np.ones(len(made.topology.links)))
    ptr, links, share = projection.routes(np.array([[number[int(u)], number[int(v)]] for u, v in edges]))
    return replace(
        tree, edges=edges, phase=np.zeros_like(tree.phase), route_ptr=ptr, route_links=links, route_share=share
    )


def test_reversing_a_sprayed_allgather_breaks_a_capacity() -> None:
    """An AllGather at 3/2 for each root needs 4/3 of a cable once turned around; the direct ReduceScatter, at 5/4, fits."""
    gather = plan(UNEVEN, "allgather", routing="spray")
    direct = plan(UNEVEN, "reducescatter", routing="spray")
    for made, each in ((gather, 3 / 2), (direct, 5 / 4)):
        check(made)
        assert made.algbw / GB == pytest.approx(3 * each, rel=1e-6)
        assert made.bound / GB == pytest.approx(3 * each, rel=1e-6)
    turned = tuple(_turned(gather, tree) for tree in gather.trees)
    load = np.sum([tree.rate * tree.loads(len(UNEVEN.links)) for tree in turned], axis=0)
    assert (load / fabric_arrays(UNEVEN).capacity).max() >= 4 / 3 * (1 - 1e-6)
    with pytest.raises(CheckFailed) as refused:
        check(replace(direct, trees=turned, value=gather.value, bound=gather.bound))
    assert "link sa -> s0 carries 1.33333 GB/s of 1 GB/s" in str(refused.value)


def test_with_paths_of_its_own_the_reversed_plan_is_as_fast() -> None:
    """On the same fabric, routed by the plan: turning trees around turns their loads around, and both reach 3/2."""
    for collective in ("allgather", "reducescatter"):
        made = plan(UNEVEN, collective)
        check(made)
        assert made.algbw / GB == pytest.approx(3 * 3 / 2, rel=1e-6)
