"""Two small plans, and when two plans are the same."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from dualcoll.collectives.workload import Group, Objective, Workload
from dualcoll.plans.model import Cut, Plan, Tree
from dualcoll.progress import Outcome
from dualcoll.routing.model import Routing
from dualcoll.topology.model import Forwarding, Kind, Link, Node, SharedCapacity, Topology


def make_plan(rate: float = 0.1, price: float = 1e-11, seconds: float = 0.25) -> Plan:
    """Two GPUs, each with two cables to a switch, that use the second cable in one direction."""
    nodes = (Node("g0", Kind.GPU), Node("g1", Kind.GPU), Node("sw", Kind.SWITCH))
    ends = [(0, 2), (2, 0), (0, 2), (2, 0), (1, 2), (2, 1), (1, 2), (2, 1)]
    links = tuple(Link(tail, head, 50e9, 1e-6, id=f"c{i // 2}") for i, (tail, head) in enumerate(ends))
    tree = Tree(
        rate=rate,
        demand=0,
        root=0,
        size=10,
        edges=np.array([[1, 0], [0, 1]]),
        phase=np.array([0, 1], dtype=np.int8),
        route_ptr=np.array([0, 2, 4]),
        route_links=np.array([6, 1, 0, 7]),
    )
    return Plan(
        topology=Topology(nodes, links, (SharedCapacity((0, 1), 75e9),), name="pair"),
        workload=Workload((Group("all", "allreduce", (0, 1), 10),)),
        forwarding=Forwarding.ALL,
        relay=True,
        routing=Routing(),
        trees=(tree,),
        link_prices=np.array([price, 0, 0, 0, 0, 0, 0, price]),
        shared_prices=np.array([price]),
        value=rate,
        bound=rate * 1.01 + 1,
        in_network=Cut(100e9, (0,)),
        outcome=Outcome.TIME,
        seconds=seconds,
        iterations=3,
        method="auto",
    )


def same(a: Plan, b: Plan) -> bool:
    """Equality of plans, arrays by content and type."""
    trees = zip(a.trees, b.trees, strict=True)
    pairs = [(getattr(p, f.name), getattr(q, f.name)) for p, q in trees for f in fields(Tree)]
    pairs += [(getattr(a, f.name), getattr(b, f.name)) for f in fields(Plan) if f.name != "trees"]
    return all(x.dtype == y.dtype and np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y for x, y in pairs)


def make_mix() -> Plan:
    """g0 sends to g1 over the first cables, and two groups share the time."""
    plan = make_plan()
    groups = (Group("moe", "alltoallv", (0, 1), 8, None, (5, 3, 0, 0)), Group("tp", "reduce", (1, 0), 7, 1))
    send = Tree(0.5, 0, 0, 3, np.array([[0, 1]]), np.array([2], np.int8), np.array([0, 2]), np.array([0, 5]))
    reduce = Tree(0.25, 1, 1, 7, np.array([[0, 1]]), np.array([0], np.int8), np.array([0, 2]), np.array([2, 7]))
    return replace(
        plan, workload=Workload(groups, Objective.TOTAL), relay=False, trees=(send, reduce), value=0.5, in_network=None
    )
