"""What every column must be, whatever it costs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from dualcoll.packing.problem import Column
from dualcoll.plans.model import Phase
from dualcoll.topology.model import Forwarding, Topology
from tests.packing.exact import allowed
from tests.packing.problems import loads as dense

__all__ = ["assert_sound"]


def assert_sound(
    topology: Topology, column: Column, prices: np.ndarray, forwarding: Forwarding = Forwarding.SWITCHES
) -> None:
    """Routes join their edges' ends as the policy allows, each phase is a tree towards the root, loads and cost add up."""
    tree = column.tree
    loads = np.zeros(len(topology.links))
    for k, (tail, head) in enumerate(tree.edges.tolist()):
        route = tree.route_links[tree.route_ptr[k] : tree.route_ptr[k + 1]]
        hops = [topology.links[e] for e in route.tolist()]
        nodes = [tail, *(hop.head for hop in hops)]
        assert [hop.tail for hop in hops] == nodes[:-1]
        assert nodes[-1] == head
        # free prices leave walks with loops, which are cut out later; without them all is simple
        assert allowed(topology, nodes, forwarding) or not prices.all()
        np.add.at(loads, route, 1.0)
    for phase in sorted({Phase(phase) for phase in tree.phase.tolist()}):
        edges = tree.edges[tree.phase == phase]
        out_of_root: nx.DiGraph[int] = nx.DiGraph((edges if phase is Phase.BROADCAST else edges[:, ::-1]).tolist())
        assert nx.is_arborescence(out_of_root)
        assert sorted(out_of_root) == sorted(topology.ranks)
        assert out_of_root.in_degree(tree.root) == 0
    np.testing.assert_array_equal(loads, dense(column, loads.size))
    assert column.cost == pytest.approx(prices @ loads, rel=1e-12)
