"""The collectives' names and bandwidth conventions.

``algbw`` is the message's bytes over the time and ``busbw`` is algbw times a factor that makes it comparable with a link's
rate, both as nccl-tests defines them (its PERFORMANCE.md).
"""

from __future__ import annotations

import re

from dualcoll.errors import InputError

__all__ = ["ALLREDUCE", "busbw", "canonical_name"]

ALLREDUCE = "allreduce"
_COLLECTIVES = (ALLREDUCE,)


def canonical_name(text: str) -> str:
    """One spelling for all: ``all-reduce``, ``AllReduce``, ``all_reduce_perf`` and the like become ``allreduce``.

    Raises:
        InputError: not a collective that dualcoll plans.
    """
    name = re.sub(r"[\s_-]", "", text.strip().lower()).removesuffix("perf")
    if name not in _COLLECTIVES:
        raise InputError(f"collective {text!r} is not known", hint=f"use one of {', '.join(_COLLECTIVES)}")
    return name


def busbw(collective: str, ranks: int, algbw: float) -> float:
    """Bus bandwidth in the unit of ``algbw``: AllReduce ``2 (n - 1) / n`` times the algorithm bandwidth."""
    factor = {ALLREDUCE: 2 * (ranks - 1) / ranks}[collective]
    return factor * algbw
