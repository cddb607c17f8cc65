"""Schedules written by hand, as (tail, head, epoch, chunk)."""

from __future__ import annotations

import numpy as np

from dualcoll.collectives.contract import Contract
from dualcoll.time_expanded.network import Clock, make_network
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from dualcoll.topology.model import Kind, Link, Node, Topology
from tests.time_expanded.fabrics import star

__all__ = ["by_hand", "star_problem", "switch_problem"]

Start = tuple[str, str, int, int]


def by_hand(problem: Problem, *starts: Start) -> EpochSchedule:
    """The schedule of these starts; every link has one arc."""
    network = problem.network
    arcs = {
        (network.name(t), network.name(h)): a for a, (t, h) in enumerate(zip(network.tail, network.head, strict=True))
    }
    rows = [(arcs[tail, head], epoch, chunk) for tail, head, epoch, chunk in starts]
    arc, epoch, chunk = np.array(rows, np.int32).reshape(-1, 3).T
    return EpochSchedule(problem, arc, epoch, chunk)


def star_problem(clock: Clock | None = None, chunks: int = 1) -> Problem:
    """Figure 2a of the paper: chunks of 1 MB from s by h to d1, d2 and d3."""
    one, everybody = np.zeros(chunks, np.int32), np.full(chunks, -1, np.int32)
    contract = Contract("broadcast", 5, one, everybody, root=0, groups=((0, 2, 3, 4),))
    return Problem(make_network(star(), 10**6, clock=clock), contract)


def switch_problem(clock: Clock | None = None) -> Problem:
    """Figure 2 of the digest: a at A and b at B, both to C over the switch W."""
    nodes = (*(Node(name, Kind.GPU) for name in "ABC"), Node("W", Kind.SWITCH))
    fabric = Topology(nodes, (Link(0, 3, 1.0), Link(1, 3, 1.0), Link(3, 2, 1.0)))
    contract = Contract("gather", 3, np.array([0, 1]), np.array([2, 2]), root=2)
    return Problem(make_network(fabric, 1, clock=clock or Clock(latent_switches=True)), contract)
