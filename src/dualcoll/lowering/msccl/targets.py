"""What the executors of MSCCL XML accept.

From their loaders: ``src/graph/topo.cc`` of microsoft/msccl and ``src/misc/msccl/msccl_parser.cc`` of RCCL.
"""

from __future__ import annotations

from dataclasses import dataclass

from dualcoll.errors import InputError

__all__ = ["TARGETS", "Target", "find_target"]


@dataclass(frozen=True, slots=True)
class Target:
    """One executor.

    Attributes:
        name: ``"msccl"`` or ``"rccl"``. title: for people.
        steps: most steps of a thread block. blocks: most thread blocks of a GPU. channels: most channels.
        blocks_per_channel: most thread blocks of a GPU that send, and that receive, on one channel.
        count: most chunks of a step; both loaders refuse the constant 72 itself.
        reduce_scatter: how it spells that collective.
        collectives: ``coll`` that it loads.
        sizes_required: whether ``outofplace``, ``minBytes`` and ``maxBytes`` must be there.
        residual: whether it knows ``ra`` steps.
    """

    name: str
    title: str
    steps: int
    blocks: int
    channels: int
    blocks_per_channel: int
    count: int
    reduce_scatter: str
    collectives: tuple[str, ...]
    sizes_required: bool
    residual: bool


TARGETS = {
    "msccl": Target(
        name="msccl",
        title="microsoft/msccl",
        steps=256,
        blocks=216,
        channels=32,
        blocks_per_channel=32,
        count=71,
        reduce_scatter="reduce_scatter",
        collectives=("allreduce", "allgather", "reduce", "broadcast", "alltoall", "reduce_scatter", "custom"),
        sizes_required=False,
        residual=True,
    ),
    "rccl": Target(
        name="rccl",
        title="RCCL",
        steps=64,
        blocks=64,
        channels=32,
        blocks_per_channel=32,
        count=71,
        reduce_scatter="reducescatter",
        collectives=(
            "allreduce",
            "allgather",
            "reduce",
            "broadcast",
            "alltoall",
            "alltoallv",
            "reducescatter",
            "gather",
            "scatter",
        ),
        sizes_required=True,
        residual=False,
    ),
}


def find_target(name: str) -> Target:
    """The executor of that name.

    Raises:
        InputError: there is none.
    """
    if name not in TARGETS:
        raise InputError(f"target {name!r} is not known", hint=f"use one of {', '.join(TARGETS)}")
    return TARGETS[name]
