"""Between a plan and its document: indices and arrays on one side, names on the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from itertools import pairwise

import numpy as np

from dualcoll.collectives.workload import Group, Workload
from dualcoll.errors import InputError
from dualcoll.plans.document import (
    MANY_EDGES,
    Claims,
    GroupRecord,
    Hop,
    PlanDocument,
    Price,
    SolverRecord,
    TreeRecord,
    TreesOnDemand,
    link_keys,
)
from dualcoll.plans.model import Cut, Floats, Ints, Phase, Plan, Tree
from dualcoll.routing.model import RoutingKind
from dualcoll.routing.routers import make_router
from dualcoll.topology.model import Topology

__all__ = ["document_to_plan", "plan_to_document"]


def plan_to_document(plan: Plan) -> PlanDocument:
    """The plan by names. Of a plan with more than ``MANY_EDGES`` logical edges the trees are made when asked for.

    Raises:
        InputError: a number that is not usable, or a route whose links do not follow one another, which a node sequence cannot
            express; of many trees when the tree is asked for.
    """
    names = [node.name for node in plan.topology.nodes]
    priced = zip(
        [*link_keys(plan.topology), *range(len(plan.shared_prices))],
        [*plan.link_prices.tolist(), *plan.shared_prices.tolist()],
        strict=True,
    )
    trees = TreesOnDemand(len(plan.trees), _Recorder(plan, names))
    many = sum(len(tree.edges) for tree in plan.trees) > MANY_EDGES
    cut = plan.in_network
    return PlanDocument(
        generator=f"dualcoll {version('dualcoll')}",
        objective=plan.workload.objective,
        groups=tuple(
            GroupRecord(
                group.name,
                group.collective,
                tuple(names[rank] for rank in group.ranks),
                group.size,
                None if group.root is None else names[group.root],
                group.parts,
            )
            for group in plan.workload.groups
        ),
        forwarding=plan.forwarding,
        relay=plan.relay,
        routing=plan.routing,
        topology=plan.topology,
        trees=trees if many else tuple(trees),
        prices=tuple(Price(on, price) for on, price in priced if price > 0),
        in_network_cut=None if cut is None else tuple(names[node] for node in cut.side),
        claims=Claims(float(plan.value), float(plan.bound), float(plan.gap), None if cut is None else float(cut.rate)),
        solver=SolverRecord(plan.outcome, plan.method, float(plan.seconds), int(plan.iterations)),
    )


class _Recorder:
    """Makes the records of a plan's trees; remembers routes across trees."""

    def __init__(self, plan: Plan, names: list[str]) -> None:
        self._plan = plan
        self._names = names
        self._keys = link_keys(plan.topology)
        self._demands = plan.workload.demands()
        self._known: dict[tuple[int, ...], tuple[Hop, ...]] = {}

    def __call__(self, number: int) -> TreeRecord:
        tree = self._plan.trees[number]
        demand = self._demands[tree.demand]
        chosen = self._plan.routing.kind is RoutingKind.SINGLE
        edges = zip(tree.edges.tolist(), tree.phase.tolist(), strict=True)
        return TreeRecord(
            rate=float(tree.rate),
            group=self._plan.workload.groups[demand.group].name,
            root=self._names[tree.root],
            target=None if demand.target is None else self._names[demand.target],
            size=int(tree.size),
            edges=tuple((self._names[tail], self._names[head], Phase(phase)) for (tail, head), phase in edges),
            routes=tuple(self._routes(tree, number)) if chosen else None,
        )

    def _routes(self, tree: Tree, number: int) -> Iterator[tuple[Hop, ...]]:
        links, keys = self._plan.topology.links, self._keys
        hops = tree.route_links.tolist()
        for i, (start, end) in enumerate(pairwise(tree.route_ptr.tolist())):
            route = tuple(hops[start:end])
            if route not in self._known:
                if any(links[e].head != links[f].tail for e, f in pairwise(route)):
                    raise InputError("its links do not follow one another", where=f"trees[{number}].routes[{i}]")
                self._known[route] = (keys[route[0]][0], *(keys[e][1] for e in route)) if route else ()
            yield self._known[route]


def document_to_plan(document: PlanDocument) -> Plan:
    """The document resolved on its own topology. Its claims are taken over, not proved.

    Routes that the network chooses are worked out again.

    Raises:
        InputError: it names a node, a link or a shared capacity that its topology does not have, a demand that its groups do
            not have, or a logical edge that its routing does not join.
    """
    nodes = _Nodes(document.topology)
    groups = tuple(
        Group(
            group.name,
            group.collective,
            tuple(nodes.index(name, f"groups[{i}].ranks") for name in group.ranks),
            group.size,
            None if group.root is None else nodes.index(group.root, f"groups[{i}].root"),
            group.parts,
        )
        for i, group in enumerate(document.groups)
    )
    workload = Workload(groups, document.objective)
    resolver = _Resolver(document, workload, nodes)
    trees = tuple(resolver.tree(record, f"trees[{i}]") for i, record in enumerate(document.trees))
    if document.routing.kind is not RoutingKind.SINGLE:
        trees = _routed_by_network(trees, document, workload)
    links = len(document.topology.links)
    prices = resolver.prices()
    return Plan(
        topology=document.topology,
        workload=workload,
        forwarding=document.forwarding,
        relay=document.relay,
        routing=document.routing,
        trees=trees,
        link_prices=prices[:links],
        shared_prices=prices[links:],
        value=document.claims.rate,
        bound=document.claims.bound,
        in_network=resolver.cut(),
        outcome=document.solver.outcome,
        seconds=document.solver.seconds,
        iterations=document.solver.iterations,
        method=document.solver.method,
    )


class _Nodes:
    """Node indices by name."""

    def __init__(self, topology: Topology) -> None:
        self._index = topology.index

    def index(self, name: str, where: str) -> int:
        if name not in self._index:
            raise InputError(f"the plan's topology has no node {name!r}", where=where)
        return self._index[name]


class _Resolver:
    """Turns the names of one document into indices; remembers routes across trees."""

    def __init__(self, document: PlanDocument, workload: Workload, nodes: _Nodes) -> None:
        self._document = document
        self._nodes = nodes
        self._links = {key: e for e, key in enumerate(link_keys(document.topology))}
        self._routes: dict[tuple[Hop, ...], list[int]] = {}
        self._any_root = {group.name for group in workload.groups if group.collective == "allreduce"}
        self._demand = {
            (workload.groups[demand.group].name, demand.root, demand.target): j
            for j, demand in enumerate(workload.demands())
        }

    def tree(self, record: TreeRecord, where: str) -> Tree:
        """One tree; its routes are empty where the network chooses them."""
        node = self._nodes.index
        root = node(record.root, where)
        target = None if record.target is None else node(record.target, where)
        demand = self._demand.get((record.group, None if record.group in self._any_root else root, target))
        if demand is None:
            wanted = f"root {record.root!r}" + ("" if target is None else f" and target {record.target!r}")
            raise InputError(f"group {record.group!r} has no demand with {wanted}", where=where)
        edges = [(node(tail, where), node(head, where)) for tail, head, _ in record.edges]
        route_ptr, route_links = self._csr(record, where)
        return Tree(
            rate=record.rate,
            demand=demand,
            root=root,
            size=record.size,
            edges=np.array(edges, dtype=np.int64).reshape(-1, 2),
            phase=np.array([phase for _, _, phase in record.edges], dtype=np.int8),
            route_ptr=route_ptr,
            route_links=route_links,
        )

    def _csr(self, record: TreeRecord, where: str) -> tuple[Ints, Ints]:
        """CSR of a tree's routes as link indices."""
        if record.routes is None:
            return np.zeros(len(record.edges) + 1, np.int64), np.zeros(0, np.int64)
        if len(record.routes) != len(record.edges):
            raise InputError(f"{len(record.routes)} routes for {len(record.edges)} edges", where=where)
        ends, hops = [0], []
        for i, route in enumerate(record.routes):
            if route not in self._routes:
                names = [hop if isinstance(hop, str) else hop[0] for hop in route]
                keys = list(zip(names, route[1:], strict=False))
                missing = next((key for key in keys if key not in self._links), None)
                if missing is not None:
                    raise InputError(f"the plan's topology has no such link: {missing!r}", where=f"{where}.routes[{i}]")
                self._routes[route] = [self._links[key] for key in keys]
            hops += self._routes[route]
            ends.append(len(hops))
        return np.array(ends, dtype=np.int64), np.array(hops, dtype=np.int64)

    def prices(self) -> Floats:
        """Prices of the links, then of the shared capacities, float64 (E + S,)."""
        shared = len(self._document.topology.shared)
        prices = np.zeros(len(self._links) + shared)
        for i, entry in enumerate(self._document.prices):
            if isinstance(entry.on, int):
                if entry.on >= shared:
                    raise InputError(f"the plan's topology has no shared capacity {entry.on}", where=f"prices[{i}]")
                prices[len(self._links) + entry.on] = entry.price
            elif entry.on not in self._links:
                raise InputError(f"the plan's topology has no such link: {entry.on!r}", where=f"prices[{i}]")
            else:
                prices[self._links[entry.on]] = entry.price
        return prices

    def cut(self) -> Cut | None:
        """The cut, if one is claimed."""
        names, rate = self._document.in_network_cut, self._document.claims.in_network_bound
        if names is None or rate is None:
            return None
        return Cut(rate, tuple(self._nodes.index(name, "in_network_cut") for name in names))


def _routed_by_network(trees: tuple[Tree, ...], document: PlanDocument, workload: Workload) -> tuple[Tree, ...]:
    """The trees with the routes that the network gives their edges, each distinct edge worked out once."""
    topology, ranks = document.topology, workload.ranks
    number = np.full(len(topology.nodes), -1)
    number[list(ranks)] = range(len(ranks))
    router = make_router(topology, ranks, document.forwarding, document.routing)
    projection = router.project(np.zeros(len(topology.links)))
    codes = []
    for i, tree in enumerate(trees):
        ends = number[tree.edges]
        apart = np.argwhere((ends < 0).any(1) | ~np.isfinite(projection.weight[ends[:, 0], ends[:, 1]])).ravel()
        if apart.size:
            tail, head = (topology.nodes[x].name for x in tree.edges[apart[0]])
            problem = f"no route between ranks that may be used leads from {tail} to {head}"
            raise InputError(problem, where=f"trees[{i}].edges[{apart[0]}]")
        codes.append(ends[:, 0] * len(ranks) + ends[:, 1])
    distinct = np.unique(np.concatenate([np.zeros(0, np.int64), *codes]))
    ptr, links, share = projection.routes(np.column_stack(np.divmod(distinct, len(ranks))))
    routed = []
    for tree, code in zip(trees, codes, strict=True):
        edge = np.searchsorted(distinct, code)
        hops = np.diff(ptr)[edge]
        route_ptr = np.concatenate([[0], np.cumsum(hops)])
        at = np.arange(route_ptr[-1]) + np.repeat(ptr[edge] - route_ptr[:-1], hops)
        routed.append(
            replace(
                tree,
                route_ptr=route_ptr,
                route_links=links[at],
                route_share=None if share is None else share[at],
            )
        )
    return tuple(routed)
