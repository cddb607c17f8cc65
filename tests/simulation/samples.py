"""Fabrics and schedules for tests, with numbers whose sums are exact in doubles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from dualcoll.collectives.contract import make_contract
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.simulation import Options
from dualcoll.topology.model import Kind, Link, Node, SharedCapacity, Topology, duplex

__all__ = ["builder", "fabric", "options", "ring", "schedules", "star"]


def fabric(ranks: int, links: Sequence[Link], switches: int = 0, shared: Sequence[SharedCapacity] = ()) -> Topology:
    """GPUs g0.. and switches s0.. in one box, with these links."""
    nodes = [Node(f"g{i}", Kind.GPU, box="b") for i in range(ranks)]
    nodes += [Node(f"s{i}", Kind.SWITCH, box="b") for i in range(switches)]
    return Topology(tuple(nodes), tuple(links), tuple(shared))


def star(ranks: int = 3, capacity: float = 1.0, latency: float = 0.0) -> Topology:
    """GPUs around a switch: link 2 i goes from rank i to it, link 2 i + 1 back."""
    return fabric(ranks, [link for i in range(ranks) for link in duplex(Link(i, ranks, capacity, latency))], 1)


def builder(topology: Topology, sizes: Sequence[int]) -> ScheduleBuilder:
    """For an all-reduce over the fabric's ranks, a chunk for each size."""
    ranks = topology.ranks
    contract = make_contract("allreduce", len(ranks), pieces=len(sizes))
    return ScheduleBuilder(contract, np.array(sizes), topology=topology, nodes=ranks, forwarding=None)


def ring(ranks: int, size: int, capacity: float, latency: float) -> Schedule:
    """An all-reduce around a ring of cables, ``size`` bytes to a chunk; link 2 i goes from rank i to the next."""
    links = [link for i in range(ranks) for link in duplex(Link(i, (i + 1) % ranks, capacity, latency))]
    built = builder(fabric(ranks, links), [size] * ranks)
    for step in range(2 * (ranks - 1)):
        for rank in range(ranks):
            op = Op.REDUCE if step < ranks - 1 else Op.COPY
            built.send(rank, (rank + 1) % ranks, (rank - step) % ranks, op, route=built.route([2 * rank]))
    return built.build()


@st.composite
def schedules(draw: st.DrawFn, most: int = 10, copies: bool = False) -> Schedule:
    """Random sends between two to four ranks, on paths and sprayed, some local, with ``copies`` some made by switches; sense
    and contract are not looked at.
    """
    ranks, switches = draw(st.integers(2, 4)), draw(st.integers(1, 2))
    graph: nx.DiGraph[int] = nx.DiGraph()
    for node in range(1, ranks + switches):
        nx.add_path(graph, [node, draw(st.integers(0, node - 1)), node])
    for _ in range(draw(st.integers(0, 4))):
        tail, head = draw(st.integers(0, ranks + switches - 1)), draw(st.integers(0, ranks + switches - 1))
        if tail != head:
            graph.add_edge(tail, head)
    index = {edge: e for e, edge in enumerate(graph.edges)}
    links = [Link(*edge, 2.0 ** draw(st.integers(0, 3)), draw(st.sampled_from([0, 0.25, 1.5]))) for edge in graph.edges]
    shared = [
        SharedCapacity(tuple(draw(st.sets(st.integers(0, len(links) - 1), min_size=1, max_size=4))), 2.0)
        for _ in range(draw(st.integers(0, 2)))
    ]
    topology = fabric(ranks, links, switches, shared)
    built = builder(topology, [draw(st.integers(0, 9)) for _ in range(3)])
    for group in range(draw(st.integers(0, most))):
        number = built.sends
        src, dst = draw(st.integers(0, ranks - 1)), draw(st.integers(0, ranks - 1))
        chunk = draw(st.integers(0, 2))
        op = draw(st.sampled_from(Op))
        after = draw(st.lists(st.integers(0, number - 1), max_size=2)) if number else []
        if copies and draw(st.booleans()):
            tree = nx.single_source_shortest_path(graph, src)  # ways that part do not meet again
            for end in draw(st.permutations([rank for rank in range(ranks) if rank != src])):
                route = built.route([index[hop] for hop in pairwise(tree[end])])
                built.send(src, end, chunk, route=route, channel=draw(st.integers(0, 1)), multicast=group, after=after)
                after = draw(st.lists(st.integers(0, built.sends - 1), max_size=1))
            continue
        if src == dst:
            built.send(src, dst, chunk, op, into=(chunk + 1) % 3, after=after)
            continue
        if draw(st.booleans()):
            ways = list(nx.all_shortest_paths(graph, src, dst))
            ways = ways[: 4 if len(ways) >= 4 else min(2, len(ways))]
            share: dict[int, float] = {}
            for hop in (hop for way in ways for hop in pairwise(way)):
                share[index[hop]] = share.get(index[hop], 0) + 1 / len(ways)
            route = built.route(list(share), list(share.values()))
        else:
            ways = list(nx.all_simple_paths(graph, src, dst))
            way = draw(st.sampled_from(ways))
            route = built.route([index[hop] for hop in pairwise(way)])
        built.send(src, dst, chunk, op, route=route, channel=draw(st.integers(0, 1)), after=after)
    return built.build()


@st.composite
def options(draw: st.DrawFn, mode: str) -> Options:
    """Random assumptions, but for the protocol; in order only where every schedule can be run so."""
    chosen = Options(
        mode=mode,
        cut_through=draw(st.booleans()),
        coupling=draw(st.sampled_from(["flow", "tree"])),
        depth=draw(st.sampled_from([None, None, 2, 3])),
        overhead=draw(st.sampled_from([0.0, 0.5])),
        concurrency=draw(st.sampled_from([None, None, 1, 2])),
        reduction_speed=draw(st.sampled_from([None, None, 1.0, 4.0])),
    )
    able = mode == "alpha-beta" and chosen.depth is None and chosen.concurrency is None
    return replace(chosen, in_order=able and draw(st.booleans()))
