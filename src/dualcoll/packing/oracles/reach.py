"""Whether every demand can be served at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.workload import Pattern
from dualcoll.errors import InputError
from dualcoll.routing.routers import Router
from dualcoll.topology.model import Topology

__all__ = ["require_reach"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SHOWN = 8


def require_reach(
    topology: Topology,
    participants: tuple[int, ...],
    router: Router,
    patterns: tuple[Pattern, ...],
    roots: Ints,
    targets: Ints,
    *,
    relay: bool,
) -> None:
    """Make sure that logical edges lead wherever the patterns need them.

    Args:
        roots, targets: int64 (J,), numbers of participants.

    Raises:
        InputError: naming the ranks that cannot be reached, or cannot reach the others.
    """
    edge = np.isfinite(router.project(np.ones(len(topology.links))).weight)
    names = [topology.nodes[node].name for node in participants]
    if patterns[0] is Pattern.SEND:
        for source in np.unique(roots):
            reached = _reached(edge, int(source))
            wanted = targets[roots == source]
            _require([names[v] for v in wanted[~reached[wanted]]], "cannot be reached from", names[source], topology)
            far = [] if relay else [names[v] for v in wanted[~edge[source, wanted]]]
            if far:
                raise InputError(
                    f"{names[source]} has no route of its own to {_listed(far)}",
                    where=topology.name,
                    hint="let ranks relay (leave out --no-relay), or let GPUs forward (--forward all)",
                )
        return
    both = Pattern.ALLREDUCE in patterns or np.unique(roots).size == len(participants)  # then everybody needs everybody
    outward, inward = both or Pattern.BROADCAST in patterns, both or Pattern.REDUCE in patterns
    for root in np.unique(roots)[: 1 if both else None]:
        for wanted, graph, verb in (
            (outward, edge, "cannot be reached from"),
            (inward, edge.T, "cannot reach"),
        ):
            if wanted:
                lost = np.flatnonzero(~_reached(graph, int(root)))
                _require([names[v] for v in lost], verb, names[root], topology)


def _reached(edge: Bools, source: int) -> Bools:
    found = np.zeros(edge.shape[0], bool)
    found[source] = True
    fresh = found
    while fresh.any():
        fresh = edge[fresh].any(axis=0) & ~found
        found = found | fresh
    return found


def _require(lost: list[str], verb: str, other: str, topology: Topology) -> None:
    if lost:
        hint = "GPUs and hosts forward nothing (see --forward), and a nic, cpu or pci node serves only its own box: "
        raise InputError(
            f"rank {_listed(lost)} {verb} {other}",
            where=topology.name,
            hint=f"{hint}check the links and the nodes' boxes",
        )


def _listed(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
