from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dualcoll.collectives.demand_matrix import DemandMatrix
from dualcoll.collectives.description import describe, describe_demand
from dualcoll.collectives.expert_routing import ExpertRouting, expert_demand
from dualcoll.collectives.workload import Group, Workload
from tests.packing.fabrics import fabric

TOPOLOGY = fabric("g0-s0:1, g1-s0:1, g2-s0:1")  # nodes g0 s0 g1 g2


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ([Group("all", "allgather", (0, 2, 3), 9)], "AllGather of 3 ranks"),
        ([Group("all", "allgather", (0, 2), 9, None, (1, 2))], "AllGather of 2 ranks, shards of unequal size"),
        ([Group("all", "allgather", (0, 2), 9, None, (2, 2))], "AllGather of 2 ranks"),
        ([Group("all", "alltoallv", (0, 2), 9, None, (0, 9, 1, 0))], "AllToAllv of 2 ranks"),
        ([Group("all", "broadcast", (0, 2), 9, 2)], "Broadcast of 2 ranks from g1"),
        ([Group("all", "scatter", (0, 2), 9, 2)], "Scatter of 2 ranks from g1"),
        ([Group("all", "reduce", (0, 2), 9, 2)], "Reduce of 2 ranks to g1"),
        ([Group("all", "gather", (0, 2), 9, 2)], "Gather of 2 ranks to g1"),
        ([Group(name, "allreduce", (0, 2), 9) for name in "ab"], "2 groups of 2 ranks, AllReduce each"),
        (
            [Group("a", "allreduce", (0, 2), 9), Group("b", "allreduce", (0, 2, 3), 9)],
            "2 groups of 2 to 3 ranks, AllReduce each",
        ),
        (
            [
                Group("dp[0]", "allreduce", (0, 2), 9),
                Group("dp[1]", "allreduce", (2, 3), 9),
                Group("ep", "alltoall", (0, 3), 9),
            ],
            "mix of 2 collectives on 3 ranks",
        ),
    ],
)
def test_a_workload_in_words(groups: list[Group], text: str) -> None:
    """One collective, several groups, a mix; entries of a mix are counted, not their groups."""
    assert describe(Workload(tuple(groups)), TOPOLOGY) == text


def test_a_demand_in_words() -> None:
    """What moves, what stays, and who has most of it."""
    demand = DemandMatrix(np.array([[5, 1024, 0], [0, 0, 3072], [1024, 1024, 0]]))
    assert describe_demand(demand) == (
        "6 KiB between ranks, 5 B stay where they are",
        "most is received by rank 2 (3 KiB, 1.5 times the mean), most is sent by rank 1 (3 KiB, 1.5 times the mean)",
    )


def test_routed_tokens_in_words() -> None:
    """With the names of the ranks; what was dropped only where there is a limit."""
    tokens, hosts = np.array([[70, 10], [60, 20]]), np.array([0, 1])
    limited = expert_demand(ExpertRouting(tokens, hosts, 1024, 8, Fraction(5, 4), names=("g0", "g1")))
    assert describe_demand(limited) == (
        "64 KiB between ranks, 80 KiB stay where they are",
        "most is received by g0 (48 KiB, 1.5 times the mean), most is sent by g1 (48 KiB, 1.5 times the mean)",
        "160 tokens of 1 KiB routed, 130 sent (130 KiB), 144 with padding (144 KiB)",
        "hottest is expert 0: 130 tokens, 1.62 times the mean",
        "each expert takes at most 100: 30 dropped (18.8 %, 30 KiB), 0 re-routed",
    )
    free = describe_demand(expert_demand(ExpertRouting(tokens, hosts, 1024)))
    assert free[-1] == "hottest is expert 0: 130 tokens, 1.62 times the mean"
