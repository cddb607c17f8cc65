"""Garg–Könemann, as the DualColl paper states it (Algorithm 1, Theorem 4.2).

Start at ``y = γ / C`` with ``γ = (1+ε) ((1+ε) m)^(-1/ε)``, augment the cheapest column by its bottleneck, stop at ``D(y) ≥ 1``,
scale by ``log_{1+ε}((1+ε)/γ)``. The result is at least ``(1-ε)²`` of the optimum after at most
``m ⌈(1/ε) log_{1+ε} m⌉`` oracle calls, m being the number of capacity rows.
"""

from __future__ import annotations

import math

import numpy as np

from dualcoll.errors import InputError
from dualcoll.packing.pool import Packing
from dualcoll.packing.prices import PriceLoop
from dualcoll.packing.problem import PackingProblem
from dualcoll.progress import Meter, Outcome
from dualcoll.units import format_fraction

__all__ = ["epsilon_for", "garg_konemann", "iteration_limit"]


LEAST_GAP = 0.002  # below it the oracle calls, in proportion to 1/ε², are out of reach


def epsilon_for(gap: float) -> float:
    """The ε whose guarantee ``(1-ε)²`` is ``1 - gap``.

    Raises:
        InputError: a gap below 0.2 %.
    """
    if gap < LEAST_GAP:
        raise InputError(
            f"a gap of {format_fraction(gap)} is out of reach for garg-konemann",
            hint=f"ask for {format_fraction(LEAST_GAP)} or more, or use the method auto",
        )
    return 1.0 - math.sqrt(1.0 - gap)


def iteration_limit(rows: int, epsilon: float) -> int:
    """The paper's bound on oracle calls, for ``rows`` capacity rows."""
    return rows * math.ceil(math.log(rows) / math.log1p(epsilon) / epsilon)


def garg_konemann(problem: PackingProblem, epsilon: float, meter: Meter) -> tuple[Packing, Outcome, int]:
    """Run Algorithm 1; a time limit or interrupt gives the rounds so far, scaled to fit.

    Args:
        problem: what to pack.
        epsilon: ε in (0, 1).
        meter: its time limit and interrupt are heeded; its gap is not, because the algorithm has its own end.

    Returns:
        The packing, why it ended, and the number of oracle calls.
    """
    rows = float(problem.weight.sum())
    log_gamma = math.log1p(epsilon) - (math.log1p(epsilon) + math.log(rows)) / epsilon
    loop = PriceLoop(problem, epsilon, log_gamma - np.log(problem.capacity))
    scale = (math.log1p(epsilon) - log_gamma) / math.log1p(epsilon)
    while True:
        loop.step()
        ended = meter.outcome(loop.rounds, loop.value, loop.bound)
        if loop.log_worth >= 0:
            return loop.packing(scale), Outcome.GAP, loop.rounds
        if ended is not None and meter.spent:
            return loop.packing(), ended, loop.rounds
