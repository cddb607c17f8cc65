"""Laying a schedule without routes on a fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.routing.routers import make_router
from dualcoll.schedules.ir import NONE, Routes, Schedule
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["routed"]


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
            byte takes on it.

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
        if prices is None:
            prices = 1 / fabric_arrays(topology).capacity[: len(topology.links)]
        projection = make_router(topology, nodes, forwarding, routing).project(prices)
        missing = np.flatnonzero(~np.isfinite(projection.weight[ends[:, 0], ends[:, 1]]))
        if missing.size:
            src, dst = (topology.nodes[nodes[rank]].name for rank in ends[missing[0]])
            raise InputError(f"rank {src} has no route to rank {dst}", hint="see `forward` and the links between them")
        ptr, links, share = projection.routes(ends)
    return replace(
        schedule,
        route=route,
        routes=Routes(ptr, links.astype(np.int32), share),
        topology=topology,
        nodes=nodes,
        forwarding=None if routing.kind is RoutingKind.SPRAY_HOPS else forwarding,
    )
