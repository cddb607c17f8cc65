"""What limits an AllToAll although every pair of ranks alone is fast: the bisection, or the number of peers at once."""

from __future__ import annotations

import pytest

from dualcoll.classical.registry import build
from dualcoll.simulation import Options, simulate
from tests.packing.fabrics import GB, fabric

SIZE = 8 * 2**23
MESH = ", ".join(f"g{i}-g{j}:100" for i in range(8) for j in range(i))
STAR = ", ".join(f"g{i}-s0:100" for i in range(8))
HALVES = ", ".join(f"g{i}-s{i // 4}:100" for i in range(8)) + ", s0-s1:40"


def _seconds(cables: str, name: str, options: Options | None = None) -> float:
    topology = fabric(cables)
    return simulate(build(name, "alltoall", topology, topology.ranks, SIZE), options).finish


def test_the_bisection_limits() -> None:
    """Half of the ranks send half of their data over one cable of 40: that alone explains the time, and a star has no such."""
    crossing = 4 * 4 * (SIZE // 8) / (40 * GB)
    slow = _seconds(HALVES, "direct")
    assert crossing <= slow <= 1.1 * crossing
    assert slow >= 3 * _seconds(STAR, "direct")


@pytest.mark.parametrize("peers", [1, 2])
def test_the_number_of_peers_at_once_limits(peers: int) -> None:
    """A cable of 100 between any two ranks: with few sends at once a rank uses as few of its seven cables."""
    free = _seconds(MESH, "direct")
    few = _seconds(MESH, "direct", Options(concurrency=peers))
    assert 7 / peers * 0.95 * free <= few
