"""A plan as plain data: names and numbers, as they stand in a plan file and as the proof reads them.

A document can say what no fabric supports (a route over a missing link, a tree that spans nothing), so that the proof can
name it. :class:`~dualcoll.plans.model.Plan` is the same content, resolved to indices and arrays. The form is described in
docs/plan-file.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

from dualcoll.collectives.catalogue import ROOTED, SHARDED, title
from dualcoll.collectives.workload import Objective
from dualcoll.errors import InputError
from dualcoll.plans.model import Phase
from dualcoll.progress import Outcome
from dualcoll.routing.model import Routing
from dualcoll.topology.model import Forwarding, Topology
from dualcoll.units import MAX_SIZE

__all__ = [
    "MANY_EDGES",
    "Claims",
    "GroupRecord",
    "Hop",
    "LinkKey",
    "PlanDocument",
    "Price",
    "SolverRecord",
    "TreeRecord",
    "TreesOnDemand",
    "link_keys",
]

MANY_EDGES = 100_000  # logical edges of all trees; with more, trees are made when asked for and stand in their own file

Hop = str | tuple[str, int]  # the node that a hop reaches; (name, k) reaches it over the k-th parallel link, k > 0
LinkKey = tuple[str, Hop]  # a link by the names of its ends: (tail, hop)


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """Ranks that run one collective, as in :class:`~dualcoll.collectives.workload.Group`, by name."""

    name: str
    collective: str
    ranks: tuple[str, ...]
    size: int
    root: str | None = None
    parts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _check_count(self.size, "size", 1)
        if (self.root is None) == (self.collective in ROOTED):
            raise InputError(f"{title(self.collective)} has {'a' if self.root is None else 'no'} root")
        for part in self.parts:
            _check_count(part, "part", 0)
        wanted = _part_counts(self.collective, len(self.ranks))
        if len(self.parts) not in wanted:
            having = f"{title(self.collective)} of {len(self.ranks)} ranks has {' or '.join(map(str, wanted))}"
            raise InputError(f"{len(self.parts)} parts, where {having}")
        if self.parts and not any(self.parts):
            raise InputError("its parts are all 0")


@dataclass(frozen=True, slots=True)
class TreeRecord:
    """One tree: ``routes[i]``, a node sequence, belongs to ``edges[i]``, (from, to, phase). Rate in bytes/s, size in bytes.

    Group, root and, of a send, target name the demand that it carries; the root of an AllReduce is its own choice. Routes
    are None where the network chooses them.
    """

    rate: float
    group: str
    root: str
    target: str | None
    size: int
    edges: tuple[tuple[str, str, Phase], ...]
    routes: tuple[tuple[Hop, ...], ...] | None

    def __post_init__(self) -> None:
        _check_amount(self.rate, "rate")
        _check_count(self.size, "bytes", 0)


class TreesOnDemand(Sequence[TreeRecord]):
    """Trees that are made when asked for, so that a million edges take little memory."""

    def __init__(self, count: int, make: Callable[[int], TreeRecord]) -> None:
        self._count = count
        self._make = make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, position: int) -> TreeRecord: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[TreeRecord]: ...
    def __getitem__(self, position: int | slice) -> TreeRecord | Sequence[TreeRecord]:
        if isinstance(position, slice):
            return tuple(map(self._make, range(self._count)[position]))
        return self._make(range(self._count)[position])


@dataclass(frozen=True, slots=True)
class Price:
    """A price on a link, or on the shared capacity of that index; in any unit, the same for all."""

    on: LinkKey | int
    price: float

    def __post_init__(self) -> None:
        _check_amount(self.price, "price")
        if isinstance(self.on, int):
            _check_count(self.on, "shared", 0)


@dataclass(frozen=True, slots=True)
class Claims:
    """What the plan says of itself: bytes/s, the gap a fraction; None where it claims no bound by a cut."""

    rate: float
    bound: float
    gap: float
    in_network_bound: float | None

    def __post_init__(self) -> None:
        for name in ("rate", "bound", "gap"):
            _check_amount(getattr(self, name), name)
        if self.in_network_bound is not None:
            _check_amount(self.in_network_bound, "in_network_bound")


@dataclass(frozen=True, slots=True)
class SolverRecord:
    """How the plan came about: why the solver stopped, which one it was, and what it took."""

    outcome: Outcome
    method: str
    seconds: float
    iterations: int

    def __post_init__(self) -> None:
        _check_amount(self.seconds, "seconds")
        _check_count(self.iterations, "iterations", 0)


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """A plan file's content. Its numbers are usable (finite, not negative); whether they are true is for the proof.

    Raises:
        InputError: a number that is not usable, here and in its parts; no groups, two of one name, or a group with a root or
            parts that its collective has not; a cut without its bound or the other way round.
    """

    generator: str
    objective: Objective
    groups: tuple[GroupRecord, ...]
    forwarding: Forwarding
    relay: bool
    routing: Routing
    topology: Topology
    trees: Sequence[TreeRecord]
    prices: tuple[Price, ...]
    in_network_cut: tuple[str, ...] | None
    claims: Claims
    solver: SolverRecord

    def __post_init__(self) -> None:
        _check_count(self.routing.seed, "routing.seed", 0)
        if not self.groups:
            raise InputError("groups: there are none")
        name, times = Counter(group.name for group in self.groups).most_common(1)[0]
        if times > 1:
            raise InputError(f"groups: {times} of them are called {name[:60]!r}", hint="names must be unique")
        if (self.in_network_cut is None) != (self.claims.in_network_bound is None):
            raise InputError(
                "in_network_cut and claims.in_network_bound go together", hint="give both, or null for both"
            )


def _part_counts(collective: str, ranks: int) -> tuple[int, ...]:
    """How many parts a group may have."""
    if collective == "alltoallv":
        return (ranks * ranks,)
    return (0, ranks) if collective in SHARDED else (0,)


def _check_amount(number: float, what: str) -> None:
    if not (math.isfinite(number) and number >= 0):
        raise InputError(f"{what} {number!r} is not a finite number >= 0")


def _check_count(number: int, what: str, least: int) -> None:
    if not least <= number <= MAX_SIZE:
        raise InputError(f"{what} {str(number)[:40]} is not in {least} .. 2**63 - 1")


def link_keys(topology: Topology) -> list[LinkKey]:
    """The key of every link (E,); parallel links count from 0 in topology order."""
    before: Counter[tuple[int, int]] = Counter()
    keys: list[LinkKey] = []
    for link in topology.links:
        ends = link.tail, link.head
        head = topology.nodes[link.head].name
        keys.append((topology.nodes[link.tail].name, (head, before[ends]) if before[ends] else head))
        before[ends] += 1
    return keys
