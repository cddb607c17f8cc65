"""Legal AllReduces at random, and what flows and trees do to real data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from dualcoll.plans.flows import Flow, Result, Shard
from dualcoll.plans.model import Phase, Tree
from dualcoll.plans.rated_flows import RatedFlows, link_loads, rate_of
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.routing.routers import make_router
from dualcoll.testing import random_fabric
from dualcoll.topology.model import Forwarding, Topology

Data = dict[int, NDArray[np.int64]]  # by rank


def random_flows(seed: int, *, symmetric: bool = True, sprayed: bool = False) -> RatedFlows:
    """A legal AllReduce: random sends of partial results, several roots, results sent on, and flows that nobody needs."""
    rng = np.random.default_rng(seed)
    topology = random_fabric(
        seed, int(rng.integers(2, 7)), int(rng.integers(0, 3)), symmetric=symmetric, shared=bool(rng.random() < 0.3)
    )
    ranks = tuple(int(rank) for rank in rng.permutation(topology.ranks))
    shards = tuple(
        Shard(f"s{i}", float(rng.integers(1, 4)), *_Growth(topology, ranks, rng, sprayed).grow())
        for i in range(int(rng.integers(1, 4)))
    )
    return RatedFlows(topology, ranks, int(rng.integers(1, 10**6)), _fitting(topology, shards))


@dataclass(slots=True)
class _Growth:
    """One shard whose flows are made one after the other."""

    topology: Topology
    ranks: tuple[int, ...]
    rng: np.random.Generator
    sprayed: bool
    flows: list[Flow] = field(default_factory=list)
    held: dict[int, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))  # what has arrived where

    def grow(self) -> tuple[tuple[Flow, ...], tuple[Result, ...]]:
        for _ in range(int(self.rng.integers(0, 4 * len(self.ranks)))):
            self.send(self.pick(self.ranks), *self.some(greedy=False))
        results: dict[int, Result] = {}
        holders: dict[int, list[Result]] = defaultdict(list)
        for rank in self.rng.permutation(self.ranks).tolist():
            if holders and self.rng.random() < 0.6:
                self.forward(holders, rank)
                results[rank] = holders[rank][-1]
            else:
                results[rank] = self.compute(rank)
                holders[rank].append(results[rank])
        for _ in range(int(self.rng.integers(0, 3))):
            self.forward(holders, self.pick(self.ranks))
        return tuple(self.flows), tuple(results[rank] for rank in self.ranks)

    def pick(self, among: Iterable[int]) -> int:
        return int(self.rng.choice(list(among)))

    def some(self, *, greedy: bool, at: int | None = None) -> tuple[Result, int, int]:
        """Disjoint payloads at a rank, in random order: all that fit if greedy. With the rank and the contributions."""
        rank = self.pick(self.ranks) if at is None else at
        own = 1 << self.ranks.index(rank)
        chosen, mask = [], 0
        for i in self.rng.permutation(len(self.held[rank])).tolist():
            name, payload = self.held[rank][i]
            if not mask & payload and (greedy or self.rng.random() < 0.6):
                chosen.append(name)
                mask |= payload
        adds = not mask & own and (greedy or not chosen or self.rng.random() < 0.8)
        return Result(tuple(chosen), adds), rank, mask | own if adds else mask

    def send(self, head: int, made: Result, tail: int, mask: int) -> None:
        if tail == head:
            return
        name = f"f{len(self.flows)}"
        rate = float(self.rng.integers(1, 5))
        self.flows.append(Flow(name, tail, head, rate, *self.route(tail, head), made.depends, made.own))
        self.held[head].append((name, mask))

    def compute(self, rank: int) -> Result:
        """The rank's result of what it has, and of contributions sent to it directly where they are missing."""
        made, _, mask = self.some(greedy=True, at=rank)
        for i, other in enumerate(self.ranks):
            if not mask >> i & 1:
                self.send(rank, Result((), True), other, 1 << i)
                made = replace(made, depends=(*made.depends, self.flows[-1].id))
        return made

    def forward(self, holders: dict[int, list[Result]], head: int) -> None:
        """The full result from somebody who has it, in one of the ways in which it has it."""
        tail = self.pick(rank for rank in holders if rank != head or len(holders) == 1)
        if tail != head:
            way = holders[tail][self.pick(range(len(holders[tail])))]
            self.send(head, way, tail, (1 << len(self.ranks)) - 1)
            holders[head].append(Result((self.flows[-1].id,), False))

    def route(self, tail: int, head: int) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
        if self.sprayed:
            ranks = (tail, head)
            router = make_router(self.topology, ranks, Forwarding.ALL, Routing(RoutingKind.SPRAY))
            _, links, share = router.project(np.zeros(len(self.topology.links))).routes(np.array([[0, 1]]))
            assert share is not None
            return tuple(links.tolist()), tuple(share.tolist())
        graph: nx.DiGraph[int] = nx.DiGraph()
        for e in self.rng.permutation(len(self.topology.links)).tolist():
            link = self.topology.links[e]
            graph.add_edge(link.tail, link.head, link=e, weight=float(self.rng.random()))
        nodes = nx.shortest_path(graph, tail, head, weight="weight")
        return tuple(graph.edges[pair]["link"] for pair in pairwise(nodes)), None


def _fitting(topology: Topology, shards: tuple[Shard, ...]) -> tuple[Shard, ...]:
    """The shards with all rates scaled by a power of two, so that no link carries more than it has, and some nearly that."""
    loads = [Fraction(0)] * len(topology.links)
    for shard in shards:
        for flow in shard.flows:
            for e, share in zip(flow.links, flow.share or (1.0,) * len(flow.links), strict=True):
                loads[e] += Fraction(flow.rate) * Fraction(share)
    worst = max(load / Fraction(link.capacity) for load, link in zip(loads, topology.links, strict=True))
    for row in topology.shared:
        worst = max(worst, sum((loads[e] for e in row.links), Fraction(0)) / Fraction(row.capacity))
    scale = 1.0
    while worst * Fraction(scale) > 1:
        scale /= 2
    while worst * Fraction(scale) <= Fraction(1, 2):
        scale *= 2
    return tuple(
        replace(shard, flows=tuple(replace(flow, rate=flow.rate * scale) for flow in shard.flows)) for shard in shards
    )


def run_flows(flows: RatedFlows, data: Data) -> list[Data]:
    """What every rank ends with, shard by shard, when the flows carry that data."""
    ends = []
    for shard in flows.shards:
        delivered: dict[str, NDArray[np.int64]] = {}
        waiting = list(shard.flows)
        while waiting:
            ready = [flow for flow in waiting if all(name in delivered for name in flow.depends)]
            assert ready, "flows wait for each other"
            for flow in ready:
                parts = [delivered[name] for name in flow.depends] + ([data[flow.tail]] if flow.own else [])
                delivered[flow.id] = np.sum(parts, axis=0)
            waiting = [flow for flow in waiting if flow.id not in delivered]
        ends.append(
            {
                rank: np.sum([delivered[name] for name in made.depends] + ([data[rank]] if made.own else []), axis=0)
                for rank, made in zip(flows.ranks, shard.results, strict=True)
            }
        )
    return ends


def run_tree(tree: Tree, ranks: tuple[int, ...], data: Data) -> Data:
    """What every rank ends with when the tree reduces that data to its root and sends the result from there."""
    edges = list(zip(tree.edges.tolist(), tree.phase.tolist(), strict=True))
    up = {tail: head for (tail, head), phase in edges if phase == Phase.REDUCE}
    down = {head: tail for (tail, head), phase in edges if phase == Phase.BROADCAST}
    assert len(edges) == len(up) + len(down) == 2 * len(ranks) - 2
    value = {rank: data[rank].copy() for rank in ranks}
    waiting = set(up)
    while waiting:
        leaves = waiting - {up[rank] for rank in waiting}
        assert leaves, "reduce edges run in a circle"
        for rank in leaves:
            value[up[rank]] = value[up[rank]] + value[rank]
        waiting -= leaves
    final = {tree.root: value[tree.root]}
    while len(final) < len(ranks):
        reached = {rank: final[down[rank]] for rank in ranks if rank not in final and down[rank] in final}
        assert reached, "broadcast edges do not reach everybody"
        final |= reached
    return final


def random_data(ranks: tuple[int, ...], seed: int) -> Data:
    """Seven numbers at each rank."""
    rng = np.random.default_rng(seed)
    return {rank: rng.integers(-(10**6), 10**6, 7) for rank in ranks}


def correct(flows: RatedFlows) -> bool:
    """Whether every rank ends with the sum of everybody's data in every shard."""
    data = random_data(flows.ranks, 0)
    total = sum(data.values())
    return all(np.array_equal(end, total) for ends in run_flows(flows, data) for end in ends.values())


def no_worse(after: RatedFlows, before: RatedFlows) -> bool:
    """Whether no link's load has risen and the rate has not fallen."""
    loads = zip(link_loads(after), link_loads(before), strict=True)
    return all(now <= then for now, then in loads) and rate_of(after) >= rate_of(before)


def roots(shard: Shard) -> int:
    """How many ranks compute the result."""
    return sum(result.is_root for result in shard.results)
