"""AllReduce as a packing problem: which columns, which oracle, which rows."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.packing.oracles.spanning_tree import ProjectedTreeOracle, VoronoiTreeOracle
from dualcoll.packing.oracles.tree_pair import TreePairOracle
from dualcoll.packing.problem import PackingProblem
from dualcoll.routing.policy_graph import policy_graph, require_connected
from dualcoll.topology.arrays import fabric_arrays, reversal
from dualcoll.topology.model import Forwarding, Topology
from dualcoll.topology.symmetry import link_classes

__all__ = ["MANY_CLASSES", "Columns", "allreduce_problem"]

MANY_CLASSES = 64  # beyond it, prices by class are no shortcut


class Columns(StrEnum):
    """Which structures may be packed; AUTO takes simple trees exactly where they are optimal."""

    AUTO = "auto"
    SIMPLE = "simple"
    PAIR = "pair"


def allreduce_problem(
    topology: Topology,
    participants: tuple[int, ...],
    forwarding: Forwarding = Forwarding.SWITCHES,
    columns: Columns = Columns.AUTO,
) -> PackingProblem:
    """The packing problem of an AllReduce among the participants (node indices, rank order).

    Raises:
        InputError: fewer than two participants, a rank that cannot be reached, or simple trees asked for on a fabric that is
            not symmetric.
    """
    if len(participants) < 2:
        raise InputError(f"{len(participants)} rank takes part", where=topology.name, hint="an AllReduce needs two")
    graph = policy_graph(topology, participants, forwarding)
    require_connected(topology, participants, graph)
    fabric = fabric_arrays(topology)
    partner = None if columns is Columns.PAIR else reversal(topology)
    if partner is None:
        if columns is Columns.SIMPLE:
            raise InputError(
                "simple trees need equal capacity in both directions of every cable",
                where=topology.name,
                hint="use pairs",
            )
        return PackingProblem.of(fabric, np.arange(fabric.capacity.size), TreePairOracle(graph, fabric))
    rows = _mirrored_rows(topology, partner)
    if not graph.unconditional:
        return PackingProblem.of(fabric, rows, ProjectedTreeOracle(graph, fabric, partner))
    oracle = VoronoiTreeOracle(topology, partner, participants, forwarding)
    return PackingProblem.of(fabric, rows, oracle, _alike(topology, participants))


def _alike(topology: Topology, participants: tuple[int, ...]) -> tuple[NDArray[np.int64], ...]:
    """Proposals of classes, coarse ones first: by the kinds of the ends, as if nothing were degraded, and as it is.

    None with shared capacities, and none so fine that they are no shortcut.
    """
    if topology.shared:
        return ()
    kinds = link_classes(topology, participants, by_capacity=False, rounds=0)
    plain = link_classes(topology, participants, by_capacity=False, most=MANY_CLASSES)
    exact = link_classes(topology, participants, by_capacity=True, most=MANY_CLASSES)
    proposals = [kinds]
    for finer in (plain, exact):
        if proposals[-1].max() < finer.max() < MANY_CLASSES:
            proposals.append(finer)
    return tuple(proposals)


def _mirrored_rows(topology: Topology, partner: NDArray[np.int64]) -> NDArray[np.int64]:
    """A label per capacity row, equal for a link and its reverse, and for a shared capacity and its equal mirror image."""
    links = np.minimum(np.arange(partner.size), partner)
    labels: dict[tuple[float, tuple[int, ...]], int] = {}
    shared = []
    for row in topology.shared:
        mirror = tuple(sorted(int(partner[e]) for e in row.links))
        key = row.capacity, min(tuple(sorted(row.links)), mirror)
        shared.append(partner.size + labels.setdefault(key, len(labels)))
    return np.concatenate([links, np.array(shared, np.int64)])
