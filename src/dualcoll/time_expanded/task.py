"""A workload on the time-expanded network: chunks that spread, and chunks that gather with time turned round.

An all-reduced chunk does both: it gathers at one rank, its owner, and spreads from there. Shape letters: C chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.contract import ALL, Contract
from dualcoll.collectives.cutting import cut_contract
from dualcoll.collectives.workload import Pattern, Workload
from dualcoll.errors import InputError
from dualcoll.time_expanded.network import Clock, Network, make_network
from dualcoll.time_expanded.problem import Problem
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["MAX_CHUNKS", "Task", "make_task", "task_of", "with_copy"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

MAX_CHUNKS = 2**22


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What is to be done, and the problems that it comes down to.

    Attributes:
        contract: of the schedule to be; its chunks are those of both problems.
        sizes: int64 (C,), bytes; at most the network's chunk.
        copying: chunks that spread on the network, or None. reducing: chunks that gather, on the transposed network, or None.
        workload: what was asked, if it was a workload.
    """

    contract: Contract
    sizes: Ints
    copying: Problem | None
    reducing: Problem | None
    workload: Workload | None = None

    @property
    def network(self) -> Network:
        """Of what spreads, or else of what gathers."""
        part = self.copying or self.reducing
        assert part is not None
        return part.network


def make_task(
    topology: Topology,
    workload: Workload,
    *,
    chunks_per_rank: int = 1,
    chunk: int | None = None,
    forwarding: Forwarding = Forwarding.SWITCHES,
    clock: Clock | None = None,
) -> Task:
    """Cut a workload into chunks of one size, the last of a shard being smaller.

    Args:
        topology, workload: where and what.
        chunks_per_rank: chunks of the largest shard; an AllReduce has a shard per rank.
        chunk: bytes of a chunk, instead.
        forwarding: who forwards besides switches. clock: how time is cut.

    Raises:
        InputError: more chunks than bytes, too many chunks, or ranks that cannot reach each other.
    """
    if chunks_per_rank < 1:
        raise InputError(f"{chunks_per_rank} chunks per rank", hint="use 1 or more")
    demands = workload.demands()
    shards = [len(workload.groups[d.group].ranks) if d.pattern is Pattern.ALLREDUCE else 1 for d in demands]
    whole = [-(-d.size // shard) for d, shard in zip(demands, shards, strict=True)]
    if chunk is None:
        chunk = -(-max(whole) // chunks_per_rank)
    pieces = [max(1, shard * -(-size // chunk)) for size, shard in zip(whole, shards, strict=True)]
    if chunks_per_rank > max(whole):
        raise InputError(f"{chunks_per_rank} chunks of {max(whole)} bytes", hint="use fewer chunks, or a larger --size")
    if sum(pieces) > MAX_CHUNKS:
        raise InputError(f"{sum(pieces)} chunks are too many", hint=f"at most {MAX_CHUNKS} can be handled")
    contract, kept = cut_contract(workload, list(enumerate(pieces)))
    sizes = [np.diff(d.size * np.arange(count + 1) // count) for d, count in zip(demands, pieces, strict=True)]
    network = make_network(topology, chunk, nodes=workload.ranks, forwarding=forwarding, clock=clock)
    return replace(task_of(contract, np.concatenate([*sizes, kept]), network), workload=workload)


def with_copy(task: Task, *, copy: bool) -> Task:
    """The same task, of chunks that spread alone, where ranks copy, or do not."""
    network = task.network
    if network.clock.copy == copy:
        return task
    copies = np.where(network.holds, copy, network.copies)
    other = replace(network, clock=replace(network.clock, copy=copy), copies=copies)
    return replace(task_of(task.contract, task.sizes, other), workload=task.workload)


def task_of(contract: Contract, sizes: Ints, network: Network) -> Task:
    """The task of a contract: a chunk that does not spread, or gather, begins and ends at one rank of that problem.

    Raises:
        InputError: slots for other chunks' data, or nothing to send.
    """
    if not np.array_equal(contract.data, np.arange(contract.chunks)):
        raise InputError("several chunks are slots for the same data", where="contract", hint="name each chunk once")
    gathers = contract.source == ALL
    owner = np.where(gathers, contract.target, contract.source)
    whole = np.flatnonzero(gathers & (contract.target == ALL))
    for group, members in enumerate(contract.groups):
        mine = whole[contract.group[whole] == group]
        owner[mine] = np.array(members)[np.arange(mine.size) % len(members)]
    spreads = ~gathers | (contract.target == ALL)
    found: list[Problem | None] = []
    for takes_part, target, on in (
        (spreads, contract.target, network),
        (gathers, contract.source, network.transposed() if gathers.any() else network),
    ):
        busy = bool(np.any(takes_part & (target != owner)))
        part = replace(contract, collective="mix", root=None, source=owner, target=np.where(takes_part, target, owner))
        found.append(Problem(on, part) if busy else None)
    if found == [None, None]:
        raise InputError("there is nothing to send", where=contract.collective)
    return Task(contract, sizes, found[0], found[1])
