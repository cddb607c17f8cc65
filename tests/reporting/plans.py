"""Plans for pictures and tables."""

from __future__ import annotations

from dataclasses import replace

from dualcoll._api import plan
from dualcoll.collectives.workload import Group, Workload
from dualcoll.plans.model import Phase, Plan
from tests.packing.fabrics import fabric
from tests.sharing.plans import made_plan, made_tree, mesh

__all__ = ["STAR", "many_paths", "mixed", "unserved"]

STAR = fabric("g0-s0:10, g1-s0:10, g2-s0:10, g3-s0:10", name="star")


def mixed() -> Plan:
    """A pair that reduces and a group of three that exchanges, at once, sharing a rank; g4 takes no part."""
    topology = fabric("g0-s0:10, g1-s0:10, g2-s0:10, g3-s0:10, g4-s0:10", name="star")
    ranks = topology.ranks
    pair = Group("pair", "allreduce", ranks[:2], 1 << 20)
    return plan(topology, Workload((pair, Group("trio", "alltoall", ranks[1:4], 3 << 20))))


def unserved() -> Plan:
    """Two pairs of which one gets nothing."""
    made = plan(STAR, "allreduce", size="1MiB", groups="0-1;2-3", objective="total")
    return replace(made, trees=tuple(tree for tree in made.trees if tree.demand == 0), value=10e9)


def many_paths(ranks: int) -> Plan:
    """An AllToAll of ranks wired all to all, two direct paths for each demand, the first at half the second's rate."""
    pairs = [(u, v) for u in range(ranks) for v in range(u + 1, ranks)]
    topology = mesh(ranks, dict.fromkeys(pairs, 10.0))
    link = {(one.tail, one.head): e for e, one in enumerate(topology.links)}
    workload = Workload((Group("all", "alltoall", topology.ranks, 1000 * ranks),))
    trees = [
        made_tree(
            rate, [((demand.root, demand.target), {link[demand.root, demand.target]: 1.0}, Phase.SEND)], j, demand.root
        )
        for j, demand in enumerate(workload.demands())
        for rate in (1.0, 2.0)
        if demand.root is not None and demand.target is not None
    ]
    return made_plan(topology, trees, workload)
