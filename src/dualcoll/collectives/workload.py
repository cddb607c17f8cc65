"""What has to be carried: groups of ranks, each running one collective, and the demands that they come down to.

A demand is the smallest thing that one tree or path carries whole. An AllGather of n ranks is n demands (a broadcast of each
shard), an AllToAll n (n - 1). Whatever is planned, bounded or checked is a list of demands; only this module knows which
collective makes which.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise

from dualcoll.collectives.catalogue import ROOTED, SHARDED, title
from dualcoll.errors import InputError

__all__ = ["Demand", "Group", "Objective", "Pattern", "Workload", "kept_parts"]


class Pattern(StrEnum):
    """The structure that carries a demand (docs/model.md §3)."""

    ALLREDUCE = "allreduce"  # an in-tree to a root of the planner's choice and an out-tree from it
    BROADCAST = "broadcast"  # an out-tree from the demand's root
    REDUCE = "reduce"  # an in-tree to the demand's root
    SEND = "send"  # a path from the demand's root to its target, over ranks of the group that relay


class Objective(StrEnum):
    """What counts with several groups."""

    SLOWEST = "slowest"  # the time until all are done
    TOTAL = "total"  # the sum of the groups' rates


@dataclass(frozen=True, slots=True)
class Demand:
    """One thing to carry.

    Attributes:
        group: number of its group. pattern: what carries it.
        root, target: node indices where the pattern has them: where data begins (BROADCAST, SEND) or ends (REDUCE), and
            where a SEND ends.
        part: bytes, exactly, as the collective divides its message; size: the whole bytes nearest to it, such that all
            demands of the group sum to what the group carries.
    """

    group: int
    pattern: Pattern
    root: int | None
    target: int | None
    part: Fraction
    size: int

    def crosses(self, inside: frozenset[int], ranks: tuple[int, ...]) -> bool:
        """Whether data must leave the node set, whatever the schedule and even if switches multicast and reduce."""
        if self.pattern is Pattern.ALLREDUCE:
            return 0 < sum(rank in inside for rank in ranks) < len(ranks)
        if self.pattern is Pattern.BROADCAST:
            return self.root in inside and any(rank not in inside for rank in ranks)
        if self.pattern is Pattern.REDUCE:
            return self.root not in inside and any(rank in inside for rank in ranks)
        return self.root in inside and self.target not in inside


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks that run one collective together.

    Attributes:
        name: for people; unique within a workload.
        collective: canonical name.
        ranks: node indices, in rank order.
        size: bytes of the message as nccl-tests counts them: the whole buffer, so n shards of size / n in AllGather,
            ReduceScatter, Gather, Scatter and AllToAll. For AllToAllv the most that any rank sends or receives, its own
            part included.
        root: node index where the collective has a root.
        parts: relative sizes of the shards, by rank, if they are not equal; for AllToAllv the bytes from each rank to
            each, (n * n,) row by row.
        priority: higher goes first where time is scheduled (docs/time-expanded.md); rates know no priority.

    Raises:
        InputError: fewer than two ranks or one named twice, no bytes, a root or parts that the collective does not have.
    """

    name: str
    collective: str
    ranks: tuple[int, ...]
    size: int
    root: int | None = None
    parts: tuple[int, ...] = ()
    priority: int = 0

    def __post_init__(self) -> None:
        try:
            _check(self)
        except InputError as error:
            raise error.within(f"group {self.name}") from None


@dataclass(frozen=True, slots=True)
class Workload:
    """Groups that run at the same time, and what counts.

    Raises:
        InputError: no groups, or two of one name.
    """

    groups: tuple[Group, ...]
    objective: Objective = Objective.SLOWEST

    def __post_init__(self) -> None:
        if not self.groups:
            raise InputError("a workload without groups")
        names = [group.name for group in self.groups]
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise InputError(f"two groups are called {twice}", hint="names must be unique")

    @property
    def ranks(self) -> tuple[int, ...]:
        """Node indices of everybody who takes part, each once, in order of appearance."""
        return tuple(dict.fromkeys(rank for group in self.groups for rank in group.ranks))

    @property
    def size(self) -> int:
        """Bytes of the largest message; the rate of a plan is this over its time."""
        return max(group.size for group in self.groups)

    @property
    def collective(self) -> str:
        """The collective's name, or ``mix``."""
        names = {group.collective for group in self.groups}
        return names.pop() if len(names) == 1 else "mix"

    def demands(self) -> tuple[Demand, ...]:
        """All of them, group by group; those of no bytes are left out."""
        return _all_demands(self)


def _check(group: Group) -> None:
    kind, n = title(group.collective), len(group.ranks)
    if n < 2 or len(set(group.ranks)) < n:
        raise InputError(f"{kind} takes two or more different ranks")
    if group.size < 1:
        raise InputError(f"{group.size} bytes are no message")
    if (group.root is not None) != (group.collective in ROOTED):
        raise InputError(f"{kind} has {'a' if group.root is None else 'no'} root")
    if group.root is not None and group.root not in group.ranks:
        raise InputError("its root is not one of its ranks")
    counts = (n * n,) if group.collective == "alltoallv" else (0, n) if group.collective in SHARDED else (0,)
    if len(group.parts) not in counts:
        raise InputError(f"{len(group.parts)} parts, where {kind} of {n} ranks has {' or '.join(map(str, counts))}")
    if group.parts and (min(group.parts) < 0 or not any(group.parts)):
        raise InputError("its parts are not 0 or more, with one positive at least")


def kept_parts(group: Group) -> list[tuple[int, int]]:
    """What ranks have for themselves in Gather, Scatter and AllToAll(v): (node index, bytes); no demand carries it."""
    n = len(group.ranks)
    if group.collective == "alltoallv":
        found = [(rank, group.parts[i * (n + 1)]) for i, rank in enumerate(group.ranks)]
    elif group.collective in ("gather", "scatter", "alltoall"):
        shards = _shards(group.size, (group.parts or (1,) * n))
        mine = [(rank, whole) for rank, (_, whole) in zip(group.ranks, shards, strict=True)]
        found = [part for part in mine if group.root in (None, part[0])]
    else:
        found = []
    return [(rank, size) for rank, size in found if size > 0]


@lru_cache(maxsize=2)  # an AllToAll has many, and everything about a plan asks for them
def _all_demands(workload: Workload) -> tuple[Demand, ...]:
    found = [demand for number, group in enumerate(workload.groups) for demand in _demands(number, group)]
    return tuple(demand for demand in found if demand.part > 0)


def _demands(number: int, group: Group) -> list[Demand]:
    ranks, size = group.ranks, group.size
    if group.collective == "allreduce":
        return [Demand(number, Pattern.ALLREDUCE, None, None, Fraction(size), size)]
    if group.collective in ("broadcast", "reduce"):
        return [Demand(number, Pattern(group.collective), group.root, None, Fraction(size), size)]
    if group.collective == "alltoallv":
        cells = zip(((u, v) for u in ranks for v in ranks), group.parts, strict=True)
        return [Demand(number, Pattern.SEND, u, v, Fraction(part), part) for (u, v), part in cells if u != v]
    if group.collective == "alltoall":
        shards = _shards(size, (1,) * len(ranks))
        return [Demand(number, Pattern.SEND, u, v, *shards[j]) for u in ranks for j, v in enumerate(ranks) if u != v]
    shards = _shards(size, group.parts or (1,) * len(ranks))
    if group.collective in ("allgather", "reducescatter"):
        pattern = Pattern.BROADCAST if group.collective == "allgather" else Pattern.REDUCE
        return [Demand(number, pattern, rank, None, *shard) for rank, shard in zip(ranks, shards, strict=True)]
    assert group.collective in ROOTED
    others = [(rank, shard) for rank, shard in zip(ranks, shards, strict=True) if rank != group.root]
    if group.collective == "gather":
        return [Demand(number, Pattern.SEND, rank, group.root, *shard) for rank, shard in others]
    return [Demand(number, Pattern.SEND, group.root, rank, *shard) for rank, shard in others]


def _shards(size: int, weights: tuple[int, ...]) -> list[tuple[Fraction, int]]:
    """Exact and whole bytes of each shard; whole ones run from rounded end to rounded end, so that they sum to the size."""
    total = sum(weights)
    ends = [size * end // total for end in accumulate(weights, initial=0)]
    whole = [after - before for before, after in pairwise(ends)]
    return [(Fraction(size * weight, total), nbytes) for weight, nbytes in zip(weights, whole, strict=True)]
