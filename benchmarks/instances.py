"""The registry: each instance builds a fabric at its real size and at a small one that the tests run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.fabrics import a100_boxes, h100_boxes, mi250_boxes
from dualcoll.collectives.demand_matrix import DemandMatrix
from dualcoll.testing import degrade
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology

__all__ = ["INSTANCES", "Instance", "skewed_demand"]


@dataclass(frozen=True, slots=True)
class Instance:
    """A fabric and what to plan on it.

    Attributes:
        name: unique. build: the fabric; it is called with True for the small form.
        collective: what is planned; an alltoallv is skewed. routing: who chooses paths.
        gap: relative, asked of the solver. seconds: its time limit. reach: the figure to reach, for the table.
        max_trees, max_depth: limits on the plan.
        peer: CPU seconds of ForestColl for the same schedule, one thread on a machine of two cores; 0 where not known.
    """

    name: str
    build: Callable[[bool], Topology]
    collective: str = "allreduce"
    routing: str = "single"
    gap: float = 1e-6
    seconds: float = 120.0
    reach: str = ""
    max_trees: int | None = None
    max_depth: int | None = None
    peer: float = 0.0


def skewed_demand(ranks: int) -> DemandMatrix:
    """Bytes as experts of unequal popularity draw them: a rank's share falls with the root of its place in a random order."""
    random = np.random.default_rng(0)
    popular = 1.0 / random.permutation(np.arange(1, ranks + 1)) ** 0.5
    cells = np.rint(2**24 * popular * random.uniform(0.5, 1.5, (ranks, ranks))).astype(np.int64)
    np.fill_diagonal(cells, 0)
    return DemandMatrix(cells)


def _spec(large: str, small: str) -> Callable[[bool], Topology]:
    return lambda is_small: catalog(small if is_small else large)


def _boxes(make: Callable[[int], Topology], count: int) -> Callable[[bool], Topology]:
    return lambda is_small: make(2 if is_small else count)


def _degraded(large: str, small: str, seed: int, *, symmetric: bool = True) -> Callable[[bool], Topology]:
    return lambda is_small: degrade(catalog(small if is_small else large), seed, symmetric=symmetric)


_RAIL16 = "dgx-h100:boxes=16,network=rail"
_RAIL32 = "dgx-h100:boxes=32,network=rail"
_RAIL128 = "dgx-h100:boxes=128,network=rail"
_RAIL2 = "dgx-h100:boxes=2,network=rail"

INSTANCES = (
    Instance("dgx-1v", _spec("dgx-1v", "dgx-1v")),
    Instance("mi250", _spec("mi250", "mi250")),
    Instance("h100-x4", _spec("dgx-h100:boxes=4", _RAIL2)),
    Instance("h100-x16", _spec(_RAIL16, _RAIL2)),
    *(
        Instance(f"h100-x16-degraded-{seed}", _degraded(_RAIL16, _RAIL2, seed), reach="gap 1e-6 in 1 s")
        for seed in range(3)
    ),
    *(
        Instance(
            f"h100-x16-asymmetric-{seed}", _degraded(_RAIL16, _RAIL2, seed, symmetric=False), reach="gap 1e-6 in 5 s"
        )
        for seed in range(3)
    ),
    Instance("torus-8x8", _spec("torus:8x8", "torus:3x3")),
    Instance("fat-tree-8", _spec("fat-tree:k=8", "fat-tree:k=4")),
    Instance("fat-tree-8-degraded", _degraded("fat-tree:k=8", "fat-tree:k=4", 0)),
    Instance("p5-x16", _spec("p5:boxes=16", "p5:boxes=2"), gap=1e-3),
    Instance(
        "h100-x32-dragonfly",
        _spec("dgx-h100:boxes=32,network=dragonfly", "dgx-h100:boxes=4,network=dragonfly"),
        gap=1e-3,
    ),
    Instance("h100-x128", _spec(_RAIL128, _RAIL2), gap=1e-3, reach="1e-3 in 30 s"),
    Instance("h100-x128-exact", _spec(_RAIL128, _RAIL2)),
    Instance("h100-x128-degraded", _degraded(_RAIL128, _RAIL2, 0), gap=1e-3, reach="1e-3 in 30 s"),
    Instance(
        "h100-x128-leaf-spine",
        _spec(_RAIL128.replace("rail", "leaf-spine"), "dgx-h100:boxes=2,network=leaf-spine"),
        gap=1e-3,
    ),
    Instance("fat-tree-16", _spec("fat-tree:k=16", "fat-tree:k=4"), gap=1e-3, reach="1e-3 in 30 s"),
    Instance("fat-tree-16-degraded", _degraded("fat-tree:k=16", "fat-tree:k=4", 0), gap=1e-3, reach="1e-3 in 30 s"),
    Instance("h100-x128-degraded-16-trees", _degraded(_RAIL128, _RAIL2, 0), gap=1e-3, reach="gap 0.1", max_trees=16),
    Instance("h100-x128-depth-16", _spec(_RAIL128, _RAIL2), gap=1e-3, reach="gap 0.05", max_depth=16),
    Instance("h100-x512", _spec("dgx-h100:boxes=512", _RAIL2), gap=1e-3, reach="bound in 5 s"),
    Instance("h100-x2048", _spec("dgx-h100:boxes=2048", _RAIL2), gap=0.05, seconds=300, reach="5 % in 300 s"),
    *(
        Instance(name, build, "allgather", gap=1e-3, peer=peer, reach=f"{peer / 50:.2g} CPU s")
        for name, build, peer in (
            ("allgather-a100-x4", _boxes(a100_boxes, 4), 46.0),
            ("allgather-a100-x6", _boxes(a100_boxes, 6), 179.0),
            ("allgather-h100-x4", _boxes(h100_boxes, 4), 40.0),
            ("allgather-mi250-x2", _boxes(mi250_boxes, 2), 36.0),
            ("allgather-mi250-x4", _boxes(mi250_boxes, 4), 157.0),
            ("allgather-torus-8x8", _spec("torus:8x8", "torus:3x3"), 59.0),
        )
    ),
    Instance("allgather-h100-x16", _spec(_RAIL16, _RAIL2), "allgather", gap=0.01, reach="1 % in 10 s"),
    Instance("allgather-h100-x16-degraded", _degraded(_RAIL16, _RAIL2, 0), "allgather", gap=0.01, reach="1 % in 10 s"),
    Instance("allgather-h100-x128", _spec(_RAIL128, _RAIL2), "allgather", gap=0.05, seconds=600, reach="5 % in 600 s"),
    Instance(
        "allgather-h100-x128-degraded",
        _degraded(_RAIL128, _RAIL2, 0),
        "allgather",
        gap=0.05,
        seconds=600,
        reach="5 % in 600 s",
    ),
    Instance(
        "allgather-h100-x128-degraded-exact",
        _degraded(_RAIL128, _RAIL2, 0),
        "allgather",
        gap=2e-5,
        reach="bound in 60 s",
    ),
    Instance("spray-fat-tree-8", _spec("fat-tree:k=8", "fat-tree:k=4"), routing="spray", gap=0.01, reach="1 % in 20 s"),
    Instance(
        "spray-fat-tree-8-degraded",
        _degraded("fat-tree:k=8", "fat-tree:k=4", 0),
        routing="spray",
        gap=0.01,
        reach="1 % in 20 s",
    ),
    Instance("alltoall-h100-x32-degraded", _degraded(_RAIL32, _RAIL2, 0), "alltoall", gap=0.01, reach="1 % in 60 s"),
    Instance("alltoallv-h100-x32-degraded", _degraded(_RAIL32, _RAIL2, 0), "alltoallv", gap=0.01, reach="1 % in 60 s"),
)
