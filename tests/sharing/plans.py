"""Plans made by hand: trees with given rates and routes, without prices or bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np

from dualcoll.collectives.workload import Group, Objective, Workload
from dualcoll.plans.model import Phase, Plan, Tree
from dualcoll.progress import Outcome
from dualcoll.routing.model import Routing
from dualcoll.topology.model import Forwarding, Kind, Link, Node, SharedCapacity, Topology

__all__ = ["broadcast", "fabric", "made_plan", "made_tree", "mesh", "pair", "random_plan"]

Edge = tuple[tuple[int, int], Mapping[int, float], Phase]  # its ends, and the part of its traffic on each link


def fabric(
    ranks: int, links: Sequence[tuple[int, int, float]], shared: Sequence[tuple[tuple[int, ...], float]] = ()
) -> Topology:
    """GPUs g0, g1, … and one-way links (tail, head, capacity)."""
    return Topology(
        tuple(Node(f"g{i}", Kind.GPU) for i in range(ranks)),
        tuple(Link(*link) for link in links),
        tuple(SharedCapacity(*row) for row in shared),
    )


def mesh(ranks: int, cables: Mapping[tuple[int, int], float]) -> Topology:
    """Two links for each cable: of the i-th cable, link 2i as it is written, and link 2i + 1 back."""
    links = [link for (u, v), room in cables.items() for link in ((u, v, room), (v, u, room))]
    return fabric(ranks, links)


def made_tree(rate: float, edges: Sequence[Edge], demand: int = 0, root: int = 0) -> Tree:
    """A tree of logical edges, each with its route."""
    return Tree(
        rate,
        demand,
        root,
        1,
        np.array([ends for ends, *_ in edges], np.int64),
        np.array([phase for *_, phase in edges], np.int8),
        np.cumsum([0, *(len(route) for _, route, _ in edges)]),
        np.array([link for _, route, _ in edges for link in route], np.int64),
        np.array([part for _, route, _ in edges for part in route.values()], np.float64),
    )


def broadcast(topology: Topology, rate: float, links: Sequence[int], demand: int = 0) -> Tree:
    """A tree of one phase whose logical edges are single links."""
    hops = [topology.links[e] for e in links]
    edges = [((hop.tail, hop.head), {e: 1.0}, Phase.BROADCAST) for e, hop in zip(links, hops, strict=True)]
    return made_tree(rate, edges, demand, hops[0].tail)


def pair(topology: Topology, rate: float, edges: Mapping[tuple[int, int], Sequence[Sequence[int]]]) -> Tree:
    """An AllReduce tree: each undirected edge, there and back, in equal parts on paths of nodes. Which way is which phase is
    not looked at: loads are those of both."""
    index = {(link.tail, link.head): e for e, link in enumerate(topology.links)}
    found: list[Edge] = []
    for (u, v), paths in edges.items():
        for ends, phase, step in (((u, v), Phase.BROADCAST, 1), ((v, u), Phase.REDUCE, -1)):
            route: dict[int, float] = {}
            for path in paths:
                for hop in pairwise(list(path)[::step]):
                    route[index[hop]] = route.get(index[hop], 0) + 1 / len(paths)
            found.append((ends, route, phase))
    return made_tree(rate, found)


def made_plan(topology: Topology, trees: Sequence[Tree], workload: Workload | None = None) -> Plan:
    """A plan of these trees; by default of one AllReduce over all ranks."""
    return Plan(
        topology=topology,
        workload=workload or Workload((Group("all", "allreduce", topology.ranks, 1000),), Objective.SLOWEST),
        forwarding=Forwarding.ALL,
        relay=True,
        routing=Routing(),
        trees=tuple(trees),
        link_prices=np.zeros(len(topology.links)),
        shared_prices=np.zeros(len(topology.shared)),
        value=0.0,
        bound=1.0,
        in_network=None,
        outcome=Outcome.GAP,
    )


def random_plan(seed: int) -> Plan:
    """An AllReduce over 3 to 5 GPUs on random links, some under shared capacities: random trees, routed, of feasible rates."""
    rng = np.random.default_rng(seed)
    ranks = int(rng.integers(3, 6))
    graph = nx.relabel_nodes(nx.random_labeled_tree(ranks, seed=seed), dict(enumerate(rng.permutation(ranks).tolist())))
    graph.add_edges_from(rng.integers(ranks, size=(ranks, 2)).tolist())
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    cables = {(int(u), int(v)): float(rng.integers(1, 9)) for u, v in graph.edges}
    topology = mesh(ranks, cables)
    shared = tuple(SharedCapacity((2 * i, 2 * i + 1), float(rng.integers(1, 9))) for i in range(0, len(cables), 3))
    topology = Topology(topology.nodes, topology.links, shared)
    trees = []
    for _ in range(int(rng.integers(1, 6))):
        shape = nx.random_labeled_tree(ranks, seed=int(rng.integers(1 << 30)))
        spread = {(u, v): list(nx.all_shortest_paths(graph, u, v)) for u, v in shape.edges}
        trees.append(pair(topology, float(rng.integers(1, 5)), spread))
    load = sum(tree.rate * tree.loads(len(topology.links)) for tree in trees)
    assert isinstance(load, np.ndarray)
    capacity = [link.capacity for link in topology.links]
    over = max(
        *(x / room for x, room in zip(load.tolist(), capacity, strict=True)),
        *(sum(load[list(row.links)]) / row.capacity for row in shared),
    )
    return made_plan(topology, [replace(tree, rate=tree.rate / over) for tree in trees])
