"""Laying a schedule without routes on a fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.routing.routers import Router, make_router
from dualcoll.schedules.ir import NONE, Routes, Schedule
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["routed"]

Ints = NDArray[np.int64]

TURNS = 16  # ways of breaking ties
JITTER = 1e-3  # relative; no dearer route is taken for it


def routed(
    schedule: Schedule,
    topology: Topology,
    nodes: Sequence[int] | None = None,
    *,
    forwarding: Forwarding = Forwarding.SWITCHES,
    routing: Routing | None = None,
    prices: NDArray[np.float64] | None = None,
) -> Schedule:
    """The same sends on a fabric, all those between two ranks on the same route.

    Args:
        schedule: the sends; routes that they have are replaced.
        topology: the fabric.
        nodes: node index of each rank (R,); by default its ranks in node order.
        forwarding: the policy.
        routing: who chooses routes; single paths by default.
        prices: float64 (E,), what a link costs where single paths are chosen: the cheapest is taken. Default: the time that a
            byte takes on it, equally cheap paths being taken in turn at random.

    Raises:
        InputError: not as many nodes as ranks, or two ranks that send to each other without a route.
    """
    routing = routing or Routing()
    nodes = topology.ranks if nodes is None else tuple(nodes)
    if len(nodes) != schedule.ranks:
        raise InputError(
            f"{len(nodes)} ranks of the fabric for a schedule over {schedule.ranks}", hint="name the ranks"
        )
    route = np.full(schedule.sends, NONE, np.int32)
    moved = np.flatnonzero(schedule.src != schedule.dst)
    edges, route[moved] = np.unique(
        schedule.src[moved].astype(np.int64) * schedule.ranks + schedule.dst[moved], return_inverse=True
    )
    ends = np.stack(np.divmod(edges, schedule.ranks), axis=1)
    ptr, links, share = np.zeros(1, np.int64), np.zeros(0, np.int64), None
    if edges.size:
        router = make_router(topology, nodes, forwarding, routing)
        cost = 1 / fabric_arrays(topology).capacity[: len(topology.links)] if prices is None else prices
        projection = router.project(cost)
        missing = np.flatnonzero(~np.isfinite(projection.weight[ends[:, 0], ends[:, 1]]))
        if missing.size:
            src, dst = (topology.nodes[nodes[rank]].name for rank in ends[missing[0]])
            raise InputError(f"rank {src} has no route to rank {dst}", hint="see `forward` and the links between them")
        if routing.kind is RoutingKind.SINGLE and prices is None:
            ptr, links = _spread(router, cost, ends)
        else:
            ptr, links, share = projection.routes(ends)
    return replace(
        schedule,
        route=route,
        routes=Routes(ptr, links.astype(np.int32), share),
        topology=topology,
        nodes=nodes,
        forwarding=None if routing.kind is RoutingKind.SPRAY_HOPS else forwarding,
    )


def _spread(router: Router, cost: NDArray[np.float64], ends: NDArray[np.int64]) -> tuple[Ints, Ints]:
    """Cheapest routes of logical edges int64 (A, 2), equally cheap ones chosen at random, as CSR."""
    random = np.random.default_rng(0)
    turn = random.integers(TURNS, size=ends.shape[0])
    routes: list[Ints] = [np.zeros(0, np.int64)] * ends.shape[0]
    for k in range(TURNS):
        mine = np.flatnonzero(turn == k)
        if mine.size:
            projection = router.project(cost * (1 + JITTER * random.random(cost.size)))
            ptr, links, _ = projection.routes(np.ascontiguousarray(ends[mine]))
            for i, route in zip(mine.tolist(), np.split(links, ptr[1:-1]), strict=True):
                routes[i] = route
    lengths = np.array([route.size for route in routes], np.int64)
    return np.concatenate([[0], np.cumsum(lengths)]), np.concatenate(routes)
