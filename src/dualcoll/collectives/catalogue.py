"""The collectives' names and bandwidth conventions.

``algbw`` is the message's bytes over the time and ``busbw`` is algbw times a factor that makes it comparable with a link's
rate, both as nccl-tests defines them (its PERFORMANCE.md).
"""

from __future__ import annotations

import re

from dualcoll.errors import InputError

__all__ = ["COLLECTIVES", "ROOTED", "SHARDED", "busbw", "canonical_name", "title"]

_TITLES = {
    "allreduce": "AllReduce",
    "broadcast": "Broadcast",
    "reduce": "Reduce",
    "allgather": "AllGather",
    "reducescatter": "ReduceScatter",
    "gather": "Gather",
    "scatter": "Scatter",
    "alltoall": "AllToAll",
    "alltoallv": "AllToAllv",
}
COLLECTIVES = tuple(_TITLES)
ROOTED = ("broadcast", "reduce", "gather", "scatter")
SHARDED = ("allgather", "reducescatter", "gather", "scatter")  # one shard for each rank, of any size


def canonical_name(text: str) -> str:
    """One spelling for all: ``all-reduce``, ``AllReduce``, ``all_reduce_perf`` and the like become ``allreduce``.

    Raises:
        InputError: not a collective that dualcoll plans.
    """
    name = re.sub(r"[\s_-]", "", text.strip().lower()).removesuffix("perf")
    if name not in COLLECTIVES:
        raise InputError(f"collective {text!r} is not known", hint=f"use one of {', '.join(COLLECTIVES)}")
    return name


def title(collective: str) -> str:
    """The collective's usual spelling, for people."""
    return _TITLES.get(collective, collective)


def busbw(collective: str, ranks: int, algbw: float) -> float:
    """Bus bandwidth in the unit of ``algbw``: ``2 (n - 1) / n`` times it for AllReduce, as much for Broadcast and Reduce,
    ``(n - 1) / n`` times it for all others.
    """
    if collective == "allreduce":
        return algbw * 2 * (ranks - 1) / ranks
    if collective in ("broadcast", "reduce"):
        return algbw
    return algbw * (ranks - 1) / ranks
