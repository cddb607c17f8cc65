"""A plan as plain data: names and numbers, as they stand in a plan file and as the proof reads them.

A document can say what no fabric supports (a route over a missing link, a tree that spans nothing), so that the proof can
name it. :class:`~dualcoll.plans.model.Plan` is the same content, resolved to indices and arrays. The form is described in
docs/plan-file.md.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise

import numpy as np

from dualcoll.errors import InputError
from dualcoll.plans.model import Cut, Ints, Phase, Plan, Tree
from dualcoll.progress import Outcome
from dualcoll.topology.model import Forwarding, Topology
from dualcoll.units import MAX_SIZE

__all__ = [
    "Claims",
    "Hop",
    "LinkKey",
    "PlanDocument",
    "Price",
    "SolverRecord",
    "TreeRecord",
    "document_to_plan",
    "link_keys",
    "plan_to_document",
]

Hop = str | tuple[str, int]  # the node that a hop reaches; (name, k) reaches it over the k-th parallel link, k > 0
LinkKey = tuple[str, Hop]  # a link by the names of its ends: (tail, hop)


@dataclass(frozen=True, slots=True)
class TreeRecord:
    """One tree: ``routes[i]``, a node sequence, belongs to ``edges[i]``, (from, to, phase). Rate in bytes/s, size in bytes."""

    rate: float
    root: str
    size: int
    edges: tuple[tuple[str, str, Phase], ...]
    routes: tuple[tuple[Hop, ...], ...]

    def __post_init__(self) -> None:
        _check_amount(self.rate, "rate")
        _check_count(self.size, "bytes", 0)


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
    """What the plan says of itself: bytes/s, the gap a fraction."""

    rate: float
    bound: float
    gap: float
    in_network_bound: float

    def __post_init__(self) -> None:
        for name in ("rate", "bound", "gap", "in_network_bound"):
            _check_amount(getattr(self, name), name)


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
        InputError: a number that is not usable, here and in its parts.
    """

    generator: str
    collective: str
    ranks: tuple[str, ...]
    size: int
    forwarding: Forwarding
    topology: Topology
    trees: tuple[TreeRecord, ...]
    prices: tuple[Price, ...]
    in_network_cut: tuple[str, ...]
    claims: Claims
    solver: SolverRecord

    def __post_init__(self) -> None:
        _check_count(self.size, "size", 1)


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


def plan_to_document(plan: Plan) -> PlanDocument:
    """The plan by names.

    Raises:
        InputError: a route whose links do not follow one another, which a node sequence cannot express.
    """
    names = [node.name for node in plan.topology.nodes]
    keys = link_keys(plan.topology)
    known: dict[tuple[int, ...], tuple[Hop, ...]] = {}
    priced = zip([*keys, *range(len(plan.shared_prices))], [*plan.link_prices, *plan.shared_prices], strict=True)
    return PlanDocument(
        generator=f"dualcoll {version('dualcoll')}",
        collective=plan.collective,
        ranks=tuple(names[rank] for rank in plan.participants),
        size=plan.size,
        forwarding=plan.forwarding,
        topology=plan.topology,
        trees=tuple(_record(tree, i, plan.topology, keys, known) for i, tree in enumerate(plan.trees)),
        prices=tuple(Price(on, float(price)) for on, price in priced if price > 0),
        in_network_cut=tuple(names[node] for node in plan.in_network.side),
        claims=Claims(float(plan.value), float(plan.bound), float(plan.gap), float(plan.in_network.capacity)),
        solver=SolverRecord(plan.outcome, plan.method, float(plan.seconds), int(plan.iterations)),
    )


def _record(
    tree: Tree, position: int, topology: Topology, keys: list[LinkKey], known: dict[tuple[int, ...], tuple[Hop, ...]]
) -> TreeRecord:
    """One tree by names; ``known`` remembers routes across trees."""
    nodes, links = topology.nodes, topology.links
    ends, hops = tree.route_ptr.tolist(), tree.route_links.tolist()
    routes = []
    for i in range(len(ends) - 1):
        route = tuple(hops[ends[i] : ends[i + 1]])
        if route not in known:
            if any(links[e].head != links[f].tail for e, f in pairwise(route)):
                raise InputError("its links do not follow one another", where=f"trees[{position}].routes[{i}]")
            known[route] = (keys[route[0]][0], *(keys[e][1] for e in route)) if route else ()
        routes.append(known[route])
    edges = zip(tree.edges.tolist(), tree.phase.tolist(), strict=True)
    return TreeRecord(
        rate=float(tree.rate),
        root=nodes[tree.root].name,
        size=int(tree.size),
        edges=tuple((nodes[tail].name, nodes[head].name, Phase(phase)) for (tail, head), phase in edges),
        routes=tuple(routes),
    )


def document_to_plan(document: PlanDocument) -> Plan:
    """The document resolved on its own topology. Its claims are taken over, not proved.

    Raises:
        InputError: it names a node, a link or a shared capacity that its topology does not have.
    """
    topology = document.topology
    links = {key: e for e, key in enumerate(link_keys(topology))}
    known: dict[tuple[Hop, ...], list[int]] = {}

    def node(name: str, where: str) -> int:
        if name not in topology.index:
            raise InputError(f"the plan's topology has no node {name!r}", where=where)
        return topology.index[name]

    prices = np.zeros(len(links)), np.zeros(len(topology.shared))
    for i, entry in enumerate(document.prices):
        if isinstance(entry.on, int):
            if entry.on >= len(topology.shared):
                raise InputError(f"the plan's topology has no shared capacity {entry.on}", where=f"prices[{i}]")
            prices[1][entry.on] = entry.price
        elif entry.on not in links:
            raise InputError(f"the plan's topology has no such link: {entry.on!r}", where=f"prices[{i}]")
        else:
            prices[0][links[entry.on]] = entry.price
    trees = []
    for i, record in enumerate(document.trees):
        where = f"trees[{i}]"
        route_ptr, route_links = _resolved(record, where, links, known)
        edges = [(node(tail, where), node(head, where)) for tail, head, _ in record.edges]
        trees.append(
            Tree(
                rate=record.rate,
                root=node(record.root, where),
                size=record.size,
                edges=np.array(edges, dtype=np.int64).reshape(-1, 2),
                phase=np.array([phase for _, _, phase in record.edges], dtype=np.int8),
                route_ptr=route_ptr,
                route_links=route_links,
            )
        )
    return Plan(
        topology=topology,
        collective=document.collective,
        participants=tuple(node(name, "ranks") for name in document.ranks),
        forwarding=document.forwarding,
        size=document.size,
        trees=tuple(trees),
        link_prices=prices[0],
        shared_prices=prices[1],
        value=document.claims.rate,
        bound=document.claims.bound,
        in_network=Cut(
            document.claims.in_network_bound, tuple(node(name, "in_network_cut") for name in document.in_network_cut)
        ),
        outcome=document.solver.outcome,
        seconds=document.solver.seconds,
        iterations=document.solver.iterations,
        method=document.solver.method,
    )


def _resolved(
    record: TreeRecord, where: str, links: dict[LinkKey, int], known: dict[tuple[Hop, ...], list[int]]
) -> tuple[Ints, Ints]:
    """CSR of a tree's routes as link indices; ``known`` remembers routes across trees."""
    if len(record.routes) != len(record.edges):
        raise InputError(f"{len(record.routes)} routes for {len(record.edges)} edges", where=where)
    ends, hops = [0], []
    for i, route in enumerate(record.routes):
        if route not in known:
            names = [hop if isinstance(hop, str) else hop[0] for hop in route]
            keys = list(zip(names, route[1:], strict=False))
            missing = next((key for key in keys if key not in links), None)
            if missing is not None:
                raise InputError(f"the plan's topology has no such link: {missing!r}", where=f"{where}.routes[{i}]")
            known[route] = [links[key] for key in keys]
        hops += known[route]
        ends.append(len(hops))
    return np.array(ends, dtype=np.int64), np.array(hops, dtype=np.int64)
