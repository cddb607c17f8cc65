"""The flows of one shard and what they carry (docs/normal-form.md; section 3 of the DualColl paper)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from dualcoll.errors import InputError

__all__ = ["Flow", "Result", "Shard", "ancestors", "check_results", "in_order", "natural_results", "payloads", "useful"]


@dataclass(frozen=True, slots=True)
class Flow:
    """Carries the contributions of some ranks, reduced to one, from one rank to another.

    Attributes:
        id: unique in its shard.
        tail, head: node indices of the ranks where it starts and ends.
        rate: bytes/s.
        links: link indices, in travelling order unless it is sprayed.
        share: the part of its traffic on each link, if it is sprayed; None means one path.
        depends: ids of the flows whose payloads it passes on, reduced to one.
        own: whether it adds the contribution of its tail.
    """

    id: str
    tail: int
    head: int
    rate: float
    links: tuple[int, ...]
    share: tuple[float, ...] | None = None
    depends: tuple[str, ...] = ()
    own: bool = True


@dataclass(frozen=True, slots=True)
class Result:
    """What makes a rank's result: the payloads of flows that end there, and its own contribution unless they bring it."""

    depends: tuple[str, ...]
    own: bool

    @property
    def is_root(self) -> bool:
        """Whether the rank computes the full result, rather than receiving it."""
        return self.own or len(self.depends) > 1


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of the message that is moved and reduced whole.

    Attributes:
        name: unique. weight: its size relative to the other shards.
        flows: what carries it.
        results: of each rank (R,), in rank order.
    """

    name: str
    weight: float
    flows: tuple[Flow, ...]
    results: tuple[Result, ...]


def in_order(flows: Sequence[Flow]) -> list[Flow]:
    """The flows, each after those that it depends on: by the longest chain of dependencies before them, then as they stand.

    Raises:
        InputError: two of one id, a dependency that is no flow or does not end where the flow starts, or a cycle.
    """
    by_id: dict[str, Flow] = {}
    for k, flow in enumerate(flows):
        if flow.id in by_id:
            raise InputError(f"flow id {flow.id!r} is used twice", where=f"flows[{k}]")
        by_id[flow.id] = flow
    for k, flow in enumerate(flows):
        for i, name in enumerate(flow.depends):
            if name not in by_id:
                problem = f"flow {flow.id!r} depends on {name!r}, which is no flow of its shard"
            elif by_id[name].head != flow.tail:
                problem = f"flow {flow.id!r} depends on {name!r}, which does not end where it starts"
            elif name in flow.depends[:i]:
                problem = f"flow {flow.id!r} depends on {name!r} twice"
            else:
                continue
            raise InputError(problem, where=f"flows[{k}]")
    try:
        sequence = list(TopologicalSorter({flow.id: flow.depends for flow in flows}).static_order())
    except CycleError as error:
        circle = " -> ".join(map(repr, error.args[1]))
        raise InputError(f"flows wait for each other: {circle}", where="flows") from None
    level: dict[str, int] = {}
    for name in sequence:
        level[name] = 1 + max((level[other] for other in by_id[name].depends), default=0)
    return sorted(flows, key=lambda flow: level[flow.id])


def payloads(flows: Sequence[Flow], members: Mapping[int, str]) -> dict[str, int]:
    """The contributions that each flow carries, as a set of bits.

    Args:
        flows: of one shard.
        members: names of the ranks by node index, in rank order; bit i is that of the i-th.

    Raises:
        InputError: as :func:`in_order`; a flow that carries nothing, or some contribution twice.
    """
    bit = {rank: 1 << i for i, rank in enumerate(members)}
    place = {flow.id: f"flows[{k}]" for k, flow in enumerate(flows)}
    found: dict[str, int] = {}
    for flow in in_order(flows):
        parts = _parts(flow, bit[flow.tail], found)
        if not parts:
            hint = 'give it flows to depend on, or leave "own" out'
            raise InputError(f"flow {flow.id!r} carries nothing", where=place[flow.id], hint=hint)
        twice = _counted_twice(parts, members)
        if twice:
            hint = 'a flow that only passes on what it gets says "own": false'
            raise InputError(f"flow {flow.id!r} {twice}", where=place[flow.id], hint=hint)
        found[flow.id] = sum(mask for _, mask in parts)
    return found


def natural_results(
    flows: Sequence[Flow], members: Mapping[int, str], given: Mapping[int, tuple[str, ...]]
) -> tuple[Result, ...]:
    """The results of all ranks: made by the flows that are given for a rank, else by the first flow that brings all of it,
    else by every flow that ends there.

    Raises:
        InputError: as :func:`payloads`.
    """
    carried, everyone = payloads(flows, members), (1 << len(members)) - 1
    whole: dict[int, tuple[str, ...]] = {}
    arriving: dict[int, tuple[str, ...]] = defaultdict(tuple)
    for flow in in_order(flows):
        arriving[flow.head] += (flow.id,)
        if carried[flow.id] == everyone:
            whole.setdefault(flow.head, (flow.id,))
    results = []
    for i, rank in enumerate(members):
        made_by = given.get(rank, whole.get(rank, arriving[rank]))
        results.append(Result(made_by, not any(carried.get(name, 0) >> i & 1 for name in made_by)))
    return tuple(results)


def check_results(shard: Shard, members: Mapping[int, str]) -> None:
    """Every rank must end with every contribution exactly once.

    Raises:
        InputError: one does not, with the rank and the contributions; or as :func:`payloads`.
    """
    carried = payloads(shard.flows, members)
    ends = {flow.id: flow.head for flow in shard.flows}
    if len(shard.results) != len(members):
        raise InputError(f"{len(shard.results)} results for {len(members)} ranks", where="results")
    for i, (rank, result) in enumerate(zip(members, shard.results, strict=True)):
        name, where = members[rank], f"results.{members[rank]}"
        for flow in result.depends:
            if ends.get(flow) != rank:
                raise InputError(f"no flow {flow!r} ends at {name}", where=where)
        parts = _parts(result, 1 << i, carried)
        twice = _counted_twice(parts, members)
        if twice:
            hint = 'say under "results" which flows make its result'
            raise InputError(f"{name} {twice}", where=where, hint=hint)
        missing = ((1 << len(members)) - 1) & ~sum(mask for _, mask in parts)
        if missing:
            raise InputError(f"{name} ends without {_contributions(missing, members)}", where=where)


def ancestors(flows: Iterable[Flow], goals: Iterable[str]) -> set[str]:
    """Ids of the flows that the goals depend on, directly or not, and of the goals."""
    depends = {flow.id: flow.depends for flow in flows}
    found: set[str] = set()
    ahead = list(goals)
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += depends[name]
    return found


def useful(shard: Shard) -> set[str]:
    """Ids of the flows that some rank's result depends on."""
    return ancestors(shard.flows, (name for result in shard.results for name in result.depends))


def _parts(made: Flow | Result, own: int, carried: Mapping[str, int]) -> list[tuple[str, int]]:
    """What is reduced to one, in words and as sets of contributions."""
    mine = [("its own contribution", own)] if made.own else []
    return mine + [(f"flow {name!r}", carried[name]) for name in made.depends]


def _counted_twice(parts: Sequence[tuple[str, int]], members: Mapping[int, str]) -> str:
    """Who is counted twice by what, as text; empty if nobody is."""
    for i, (what, mask) in enumerate(parts):
        for other, earlier in parts[:i]:
            if both := mask & earlier:
                return f"counts {_contributions(both, members)} twice: {other} and {what} both bring it"
    return ""


def _contributions(mask: int, members: Mapping[int, str]) -> str:
    names = [name for i, name in enumerate(members.values()) if mask >> i & 1]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"the contribution of {', '.join(names[:5])}{more}"
