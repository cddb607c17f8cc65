"""Useless starts, and hops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.collectives.contract import make_contract
from dualcoll.time_expanded.check import Rule, violations
from dualcoll.time_expanded.feeds import hops, pruned
from dualcoll.time_expanded.network import make_network
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from tests.time_expanded.by_hand import by_hand, star_problem, switch_problem
from tests.time_expanded.fabrics import dgx1


def test_pruned_keeps_what_delivers() -> None:
    """What is left after pruning delivers the same in the same epochs."""
    problem = star_problem()
    starts = [("s", "h", 0, 0), ("s", "h", 1, 0), ("h", "d1", 1, 0), ("h", "d1", 3, 0), ("h", "s", 2, 0)]
    schedule = by_hand(problem, *starts, ("h", "d2", 2, 0), ("h", "d3", 1, 0))
    left = pruned(schedule)
    assert left.arc.size == 4
    ranks = list(problem.wanted(0))
    assert np.array_equal(left.delivered()[:, ranks], schedule.delivered()[:, ranks])


@given(st.data())
def test_pruned_is_a_fixed_point(data: st.DataObject) -> None:
    """Pruning what floods a DGX-1 at random leaves one arrival for every delivery and breaks nothing."""
    problem = Problem(make_network(dgx1(), 25_000), make_contract("allgather", 8))
    network = problem.network
    rows = []
    held = {(c, c): 0 for c in range(8)}
    for k in range(8):
        for arc in range(network.arcs):
            there = [c for c in range(8) if held.get((c, int(network.tail[arc])), 99) <= k]
            chunk = data.draw(st.sampled_from([*there, None]))
            if chunk is not None:
                rows.append((arc, k, chunk))
                arrival = k + int(network.delay[arc])
                key = chunk, int(network.head[arc])
                held[key] = min(held.get(key, 99), arrival)
    arc_, epoch, chunks = np.array(rows, np.int32).reshape(-1, 3).T
    schedule = EpochSchedule(problem, arc_, epoch, chunks)
    left = pruned(schedule)
    assert np.array_equal(left.delivered(), pruned(left).delivered())
    assert left.arc.size == pruned(left).arc.size
    pairs = {(int(c), int(network.head[a])) for a, c in zip(left.arc, left.chunk, strict=True)}
    assert len(pairs) == left.arc.size
    assert not any(found.rule is Rule.HOLDING for found in violations(left))
    wants = problem.wants()
    assert np.array_equal(left.delivered()[wants], schedule.delivered()[wants])


def test_hops_cross_switches() -> None:
    """A chunk's way over a switch is one hop from holder to holder."""
    schedule = by_hand(switch_problem(), ("A", "W", 0, 0), ("W", "C", 1, 0), ("B", "W", 1, 1), ("W", "C", 2, 1))
    found = [(hop.tail, hop.head, hop.chunk, hop.links, hop.starts, hop.arrival) for hop in hops(schedule)]
    assert found == [(0, 2, 0, (0, 2), (0, 1), 2), (1, 2, 1, (1, 2), (1, 2), 3)]
