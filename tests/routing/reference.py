"""Routing models by enumeration: shares out of lists of all allowed routes, in fractions, sharing no code with the routers."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np

from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.topology.model import Forwarding, Kind, Link, Node, Topology
from tests.packing.exact import FABRIC_KINDS, Route, random_case, routes

__all__ = ["ANY_FABRIC", "anything", "case", "fixed_shares", "route_shares"]

ANY_FABRIC = [*FABRIC_KINDS, "anything"]
Edge = tuple[int, int]


def anything(seed: int, density: float = 0.2) -> Topology:
    """Nodes of every kind in two boxes, or in the network if they are switches, with random one-way links."""
    rng = np.random.default_rng(seed)
    kinds = [*(int(rng.integers(1, 3)) * [Kind.GPU]), Kind.GPU, Kind.HOST, Kind.NIC, Kind.NIC, Kind.PCI, Kind.CPU]
    nodes = [Node(f"v{i}", kind, box=f"b{rng.integers(2)}") for i, kind in enumerate(kinds)]
    nodes += [Node("sw0", Kind.SWITCH), Node("sw1", Kind.SWITCH, box="b0" if rng.random() < 0.5 else None)]
    nodes = [nodes[i] for i in rng.permutation(len(nodes))]
    ends = [pair for pair in itertools.permutations(range(len(nodes)), 2) if rng.random() < density]
    return Topology(tuple(nodes), tuple(Link(tail, head, 1e9) for tail, head in ends + ends[:2]))


@cache
def case(kind: str, seed: int) -> tuple[Topology, tuple[int, ...]]:
    """A random fabric and its participants in random order, which in ``anything`` may be of any kind."""
    topology = anything(seed) if kind == "anything" else random_case(kind, seed)
    candidates = range(len(topology.nodes)) if kind == "anything" else topology.ranks
    return topology, tuple(np.random.default_rng(seed).permutation(candidates)[:4].tolist())


@cache
def fixed_shares(
    topology: Topology, participants: tuple[int, ...], forwarding: Forwarding, routing: Routing
) -> dict[Edge, dict[int, Fraction]]:
    """What each logical edge puts on each link under a model in which the network decides."""
    if routing.kind is RoutingKind.SPRAY_HOPS:
        topology = replace(topology, nodes=tuple(replace(node, kind=Kind.SWITCH) for node in topology.nodes))
    found: dict[Edge, dict[int, Fraction]] = {}
    for (u, v), ways in routes(topology, participants, forwarding).items():
        fewest = min(map(len, ways))
        best = [way for way in ways if len(way) == fewest]
        ends = topology.nodes[participants[u]].name, topology.nodes[participants[v]].name
        found[u, v] = {}
        for way, share in route_shares(topology, best, routing, ends):
            for e in way:
                found[u, v][e] = found[u, v].get(e, Fraction()) + share
    return found


def route_shares(
    topology: Topology, ways: list[Route], routing: Routing, ends: tuple[str, str], share: Fraction = Fraction(1)
) -> Iterator[tuple[Route, Fraction]]:
    """Divide the traffic over shortest routes that have been the same so far, at the first place where they differ."""
    depth = next((i for i, taken in enumerate(zip(*ways, strict=True)) if len(set(taken)) > 1), None)
    if depth is None:
        yield ways[0], share
        return
    options = {way[depth] for way in ways}
    if routing.kind is RoutingKind.ECMP:
        here = topology.nodes[topology.links[ways[0][depth]].tail].name
        digest = hashlib.sha256("/".join((str(routing.seed), *ends, here)).encode()).hexdigest()
        ordered = sorted(options, key=lambda e: (topology.nodes[topology.links[e].head].name, e))
        options = {ordered[int(digest[:16], 16) % len(ordered)]}
    heads = [topology.links[e].head for e in options]
    for e in options:
        part = share / len(options)
        if routing.kind in (RoutingKind.SPRAY, RoutingKind.SPRAY_HOPS):
            part = share / (len(set(heads)) * heads.count(topology.links[e].head))
        yield from route_shares(topology, [way for way in ways if way[depth] == e], routing, ends, part)
