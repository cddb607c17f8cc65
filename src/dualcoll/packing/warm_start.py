"""What a plan for a similar fabric is worth here: its prices.

They are near the best where little has changed, and the oracle proves them anew. Its trees are not carried over: packing anew
at good prices costs less than mending trees that were tuned to another fabric.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.packing.problem import PackingProblem
from dualcoll.plans.document import link_keys
from dualcoll.plans.model import Plan
from dualcoll.topology.model import Topology

__all__ = ["prices_from"]

Floats = NDArray[np.float64]


def prices_from(previous: Plan, topology: Topology, participants: tuple[int, ...], problem: PackingProblem) -> Floats:
    """A previous plan's prices, float64 (M,); nodes go by name, parallel links by order.

    Args:
        previous: made for another fabric, another collective or message, or another policy. Nothing in it is taken on trust.
        topology, participants, problem: what is to be planned now.

    Raises:
        InputError: the plan is for other ranks.
    """
    names = {topology.nodes[i].name for i in participants}
    before = {previous.topology.nodes[i].name for i in previous.participants}
    if names != before:
        odd = "; ".join(
            f"it {verb} {', '.join(sorted(ranks)[:5])}" + (", …" if len(ranks) > 5 else "")
            for verb, ranks in (("lacks", names - before), ("also has", before - names))
            if ranks
        )
        raise InputError(
            f"the previous plan is for other ranks: {odd}",
            hint="start from a plan of the same ranks, or from none",
        )
    here = {key: e for e, key in enumerate(link_keys(topology))}
    link_of = np.array([here.get(key, -1) for key in link_keys(previous.topology)], np.int64)
    rows = np.zeros(problem.fold.size)
    kept = link_of >= 0
    rows[link_of[kept]] = previous.link_prices[kept]
    if len(previous.topology.shared) == len(topology.shared):
        rows[problem.fabric.links :] = previous.shared_prices
    return np.asarray(np.bincount(problem.fold, rows, minlength=problem.capacity.size) / problem.weight)
