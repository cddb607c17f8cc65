"""Least makespans by trying everything: epoch by epoch, with links as servers that work in fractions of epochs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from dualcoll.collectives.contract import Contract
from dualcoll.time_expanded.network import Clock, Network, make_network
from dualcoll.time_expanded.problem import Problem
from dualcoll.topology.model import Kind, Link, Node, Topology

__all__ = ["least_copying", "least_reducing", "tiny_fabric", "tiny_problem"]

Place = tuple[int, int]  # chunk, vertex


def tiny_fabric(seed: int, ranks: int = 3) -> Topology:
    """A one-way ring of GPUs with some more links; rates 1, 2/3, 1/2 and 1/4 of the fastest, some with latency."""
    random = np.random.default_rng(seed)
    ends = {(i, (i + 1) % ranks) for i in range(ranks)}
    ends |= {tuple(random.permutation(ranks)[:2].tolist()) for _ in range(2)}
    links = [
        Link(a, b, float(random.choice([6.0, 4.0, 3.0, 1.5])), float(random.choice([0.0, 0.0, 0.1])))
        for a, b in sorted(ends)
    ]
    return Topology(tuple(Node(f"g{i}", Kind.GPU) for i in range(ranks)), tuple(links), (), "tiny")


def tiny_problem(seed: int, clock: Clock | None = None) -> Problem:
    """Two or three chunks of random sources, each for one rank or for all."""
    random = np.random.default_rng([seed, 1])
    ranks = 3 + seed % 2
    network = make_network(tiny_fabric(seed, ranks), 1, clock=clock)
    chunks = 3 if ranks == 3 else 2
    source = random.integers(0, ranks, chunks)
    target = np.where(random.random(chunks) < 0.6, -1, (source + 1) % ranks)
    release = random.integers(0, 2, chunks)
    return Problem(
        network, Contract("mix", ranks, source.astype(np.int32), target.astype(np.int32)), release.astype(np.int32)
    )


def cost_of(network: Network) -> list[Fraction]:
    """Epochs of a chunk on each arc."""
    return [
        1 / Fraction(float(network.rate[network.rows_of(a)[0]])).limit_denominator(10**6) for a in range(network.arcs)
    ]


def ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


def least_copying(problem: Problem) -> int:
    """Epochs of the best schedule with copies: all states that can be reached, epoch after epoch."""
    network = problem.network
    cost = cost_of(network)
    goal = {(c, v) for c in range(problem.chunks) for v in problem.wanted(c)}
    states = {(frozenset[Place](), frozenset[tuple[int, Place]](), (Fraction(0),) * network.arcs)}
    for k in itertools.count():
        then = set()
        begun = {(c, int(problem.source[c])) for c in range(problem.chunks) if problem.release[c] <= k}
        for held, coming, backlog in states:
            here = held | begun | {place for when, place in coming if when == k}
            if goal <= here:
                return k
            flying = frozenset((when, place) for when, place in coming if when > k)
            for kept in _kept(problem, here):
                known = kept | {place for _, place in flying}
                for chosen in _choices(network, cost, kept, known, backlog):
                    busy = [*backlog]
                    for a, _ in chosen:
                        busy[a] += cost[a]
                    left = tuple(max(Fraction(0), work - 1) for work in busy)
                    sent = {(k + int(network.delay[a]), (c, int(network.head[a]))) for a, c in chosen}
                    then.add((frozenset(kept), flying | sent, left))
        states = then
    raise AssertionError


def _kept(problem: Problem, here: set[Place] | frozenset[Place]) -> Iterator[set[Place]]:
    """What ranks go on holding: all of their own and of what is for them, and as many others as they have room for."""
    room = problem.network.clock.buffer
    wants = problem.wants()
    others = {(c, v) for c, v in here if v != problem.source[c] and not wants[c, v]}
    if room is None:
        yield set(here)
        return
    at = [sorted(place for place in others if place[1] == v) for v in range(problem.network.ranks)]
    for some in itertools.product(*(itertools.combinations(places, min(room, len(places))) for places in at)):
        yield (set(here) - others) | {place for places in some for place in places}


def _choices(
    network: Network,
    cost: list[Fraction],
    here: frozenset[Place] | set[Place],
    known: set[Place],
    backlog: tuple[Fraction, ...],
) -> Iterator[list[tuple[int, int]]]:
    """What may start in an epoch: on each arc as many chunks as it has sent when they are delivered, each place once."""
    options = []
    for a in range(network.arcs):
        tail, head = int(network.tail[a]), int(network.head[a])
        able = [c for c, v in here if v == tail and (c, head) not in known]
        room = int((ceil(cost[a]) - backlog[a]) / cost[a])
        options.append(
            [some for n in range(min(room, len(able)) + 1) for some in itertools.combinations(sorted(able), n)]
        )
    for choice in itertools.product(*options):
        starts = [(a, c) for a, some in enumerate(choice) for c in some]
        if len({(c, int(network.head[a])) for a, c in starts}) == len(starts):
            yield starts


def least_reducing(network: Network, most: int) -> int:
    """Epochs of the best reduce-scatter of one chunk per rank, in forward time: every rank but the owner sends once, after all
    that comes to it.
    """
    cost = cost_of(network)
    for horizon in range(1, most + 1):
        ways = [list(_gatherings(network, owner, horizon)) for owner in range(network.ranks)]
        if any(_serves(network, cost, [*itertools.chain(*some)]) for some in itertools.product(*ways)):
            return horizon
    raise AssertionError("more epochs are needed")


def _gatherings(network: Network, owner: int, horizon: int) -> Iterator[list[tuple[int, int]]]:
    """Trees into the owner with an epoch for each arc: (arc, epoch)."""
    others = [r for r in range(network.ranks) if r != owner]
    leaving = [[a for a in range(network.arcs) if network.tail[a] == r] for r in others]
    for arcs in itertools.product(*leaving):
        for epochs in itertools.product(range(horizon), repeat=len(others)):
            starts = dict(zip(others, zip(arcs, epochs, strict=True), strict=True))
            ends = {r: k + int(network.delay[a]) for r, (a, k) in starts.items()}
            onward = {r: int(network.head[a]) for r, (a, _) in starts.items()}
            if all(
                ends[r] <= (horizon if onward[r] == owner else starts[onward[r]][1]) for r in others
            ):  # a circle would have to be earlier than itself
                yield list(starts.values())


def _serves(network: Network, cost: list[Fraction], starts: list[tuple[int, int]]) -> bool:
    """Whether every arc has sent each chunk when it is delivered."""
    free = [Fraction(0)] * network.arcs
    for a, k in sorted(starts, key=lambda start: start[1]):
        free[a] = max(free[a], Fraction(k)) + cost[a]
        if free[a] > k + ceil(cost[a]):
            return False
    return True
