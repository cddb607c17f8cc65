"""What an MSCCL++ plan's buffers hold before and must hold after, by its collective.

Data is cut finer than chunks: into *grains*, so many to a chunk that thread block groups and steps of pipelines handle whole
ones. A *spot* is one grain of one buffer of one GPU; input and output of a plan in place share spots.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dualcoll.collectives.contract import ALL
from dualcoll.lowering.mscclpp.plan import Plan

__all__ = ["PACKETS", "Spot", "Task", "shared_spot", "task_of"]

Spot = tuple[int, str, int]  # GPU, buffer (i, o, s, or p for packets), grain

PACKETS = "p"


@dataclass(slots=True)
class Task:
    """Before and after.

    Attributes:
        collective: its name, if it is one that can be checked; else empty, and ``why`` says why not.
        begins: the data that each spot holds at first, as contributed by its GPU. ends: the data that each must hold.
        source, target: for each piece of data, where it begins and ends: a rank, or ALL. Empty without a collective.
        rooted: whether one GPU's data ends everywhere, whichever GPU it is. count: pieces of data of each GPU.
    """

    collective: str = ""
    why: str = ""
    begins: dict[Spot, int] = field(default_factory=dict)
    ends: dict[Spot, int] = field(default_factory=dict)
    source: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    rooted: bool = False
    ranks: int = 0
    count: int = 0


def shared_spot(plan: Plan, rank: int, buffer: str, grain: int, grains: int) -> Spot:
    """The spot, by the one name that it has where input and output overlap."""
    if plan.in_place and buffer in "io":
        if plan.collective == "allgather":
            return (rank, "o", grain if buffer == "o" else rank * plan.gpus[0].input_chunks * grains + grain)
        if plan.collective == "reducescatter":
            return (rank, "i", grain if buffer == "i" else rank * plan.gpus[0].output_chunks * grains + grain)
        return (rank, "i", grain)
    return (rank, buffer, grain)


def task_of(plan: Plan, grains: int) -> Task:
    """The task of the plan's collective, each chunk cut into so many grains."""
    inputs, outputs = plan.gpus[0].input_chunks, plan.gpus[0].output_chunks or plan.gpus[0].input_chunks * plan.in_place
    wanted = {
        "allreduce": (inputs == outputs, "as many output as input chunks"),
        "broadcast": (inputs == outputs, "as many output as input chunks"),
        "allgather": (outputs == plan.ranks * inputs, "as many output chunks as all GPUs have input chunks"),
        "reducescatter": (inputs == plan.ranks * outputs, "as many input chunks as all GPUs have output chunks"),
        "alltoall": (
            inputs == outputs and inputs % plan.ranks == 0,
            "as many input as output chunks, as many for each GPU",
        ),
    }
    name = plan.collective
    if name not in wanted:
        return Task(why=f"what collective {name!r} must end with is not known")
    fits, text = wanted[name]
    if not fits or not inputs:
        return Task(why=f"{inputs} input and {outputs} output chunks do not fit {name}, which has {text}")
    task = Task(name, rooted=name == "broadcast", ranks=plan.ranks, count=inputs * grains)
    shard = min(inputs, outputs) * grains if name in ("allgather", "reducescatter") else inputs * grains // plan.ranks
    count = task.count
    for rank in range(plan.ranks):
        for i in range(count):
            data = {"allgather": rank * count + i, "broadcast": rank * count + i, "alltoall": rank * count + i}.get(
                name, i
            )
            task.begins[shared_spot(plan, rank, "i", i, grains)] = data
        for i in range(outputs * grains):
            data = i
            if name == "reducescatter":
                data = rank * shard + i
            elif name == "alltoall":
                data = i // shard * count + rank * shard + i % shard
            task.ends[shared_spot(plan, rank, "o", i, grains)] = data
    everything = range(max(task.begins.values()) + 1)
    reduces = name in ("allreduce", "reducescatter")
    task.source = [ALL if reduces else data // count for data in everything]
    one = name in ("reducescatter", "alltoall")
    task.target = [data % count // shard if one else ALL for data in everything]
    return task
