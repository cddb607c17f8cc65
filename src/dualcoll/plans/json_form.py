"""Plan documents as JSON-ready data, in the form of docs/plan-file.md."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dualcoll.collectives.catalogue import canonical_name
from dualcoll.collectives.workload import Objective
from dualcoll.errors import InputError
from dualcoll.plans.document import (
    Claims,
    GroupRecord,
    Hop,
    LinkKey,
    PlanDocument,
    Price,
    SolverRecord,
    TreeRecord,
)
from dualcoll.plans.fields import array, choice, flag, integer, integers, names, number, shown, text, the_object, within
from dualcoll.plans.model import Phase
from dualcoll.plans.tree_file import read_trees
from dualcoll.progress import Outcome
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.topology.model import Forwarding
from dualcoll.topology.native import topology_from_dict, topology_to_dict

__all__ = ["FORMAT", "document_from_json", "document_to_json", "trees_to_json"]

FORMAT = "dualcoll.plan/1"

_PHASES = {phase.name.lower(): phase for phase in Phase}
_KEYS = (
    *("format", "generator", "objective", "groups", "forward", "relay", "routing", "claims", "solver"),
    *("topology", "trees", "prices", "in_network_cut"),
)


def document_to_json(document: PlanDocument, trees: object) -> dict[str, Any]:
    """The document; ``trees`` is what :func:`trees_to_json` makes of its trees, or says where they are."""
    claims, solver = document.claims, document.solver
    cut = document.in_network_cut
    return {
        "format": FORMAT,
        "generator": document.generator,
        "objective": str(document.objective),
        "groups": [_group_to_json(group) for group in document.groups],
        "forward": str(document.forwarding),
        "relay": document.relay,
        "routing": {"kind": str(document.routing.kind), "seed": document.routing.seed},
        "claims": {key: getattr(claims, key) for key in claims.__slots__},
        "solver": {key: getattr(solver, key) for key in solver.__slots__} | {"outcome": str(solver.outcome)},
        "topology": topology_to_dict(document.topology),
        "trees": trees,
        "prices": [{**_price_target(entry.on), "price": entry.price} for entry in document.prices],
        "in_network_cut": None if cut is None else list(cut),
    }


def trees_to_json(trees: Iterable[TreeRecord]) -> list[dict[str, Any]]:
    """All trees."""
    found = []
    for tree in trees:
        target = {} if tree.target is None else {"target": tree.target}
        entry = {"rate": tree.rate, "group": tree.group, "root": tree.root, **target, "bytes": tree.size}
        entry["edges"] = [[tail, head, phase.name.lower()] for tail, head, phase in tree.edges]
        if tree.routes is not None:
            entry["routes"] = [[hop if isinstance(hop, str) else list(hop) for hop in route] for route in tree.routes]
        found.append(entry)
    return found


def document_from_json(data: object, folder: Path | None) -> PlanDocument:
    """The document that parsed JSON holds.

    Args:
        folder: where the plan file is, to find the trees that it keeps in a file of their own.

    Raises:
        InputError: the data has not the form of a plan, with the key and the value, or the file of the trees cannot be used.
    """
    if isinstance(data, dict) and "format" in data and data["format"] != FORMAT:
        raise InputError(f"format {shown(data['format'])} is not known", where="format", hint=f"it must be {FORMAT!r}")
    top = the_object(data, "", _KEYS)
    solver = the_object(top["solver"], "solver", ("outcome", "method", "seconds", "iterations"))
    groups = tuple(_group(group, f"groups[{i}]") for i, group in enumerate(array(top["groups"], "groups")))
    topology = topology_from_dict(top["topology"], "topology")
    routing = _routing(top["routing"])
    return PlanDocument(
        generator=text(top["generator"], "generator"),
        objective=Objective(choice(top["objective"], "objective", [str(objective) for objective in Objective])),
        groups=groups,
        forwarding=Forwarding(choice(top["forward"], "forward", [str(policy) for policy in Forwarding])),
        relay=flag(top["relay"], "relay"),
        routing=routing,
        topology=topology,
        trees=within("trees", read_trees, top["trees"], folder, topology, groups, routing)
        if isinstance(top["trees"], dict)
        else tuple(_tree(tree, f"trees[{i}]", routing) for i, tree in enumerate(array(top["trees"], "trees"))),
        prices=tuple(_price(price, f"prices[{i}]") for i, price in enumerate(array(top["prices"], "prices"))),
        in_network_cut=None if top["in_network_cut"] is None else names(top["in_network_cut"], "in_network_cut"),
        claims=_claims(top["claims"]),
        solver=within(
            "solver",
            SolverRecord,
            outcome=Outcome(choice(solver["outcome"], "solver.outcome", [str(outcome) for outcome in Outcome])),
            method=text(solver["method"], "solver.method"),
            seconds=number(solver["seconds"], "solver.seconds"),
            iterations=integer(solver["iterations"], "solver.iterations"),
        ),
    )


def _group_to_json(group: GroupRecord) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": group.name,
        "collective": group.collective,
        "ranks": list(group.ranks),
        "size": group.size,
    }
    root = {} if group.root is None else {"root": group.root}
    parts = {"parts": list(group.parts)} if group.parts else {}
    return entry | root | parts


def _group(data: object, where: str) -> GroupRecord:
    group = the_object(data, where, ("name", "collective", "ranks", "size"), ("root", "parts"))
    return within(
        where,
        GroupRecord,
        name=text(group["name"], f"{where}.name"),
        collective=within(f"{where}.collective", canonical_name, text(group["collective"], f"{where}.collective")),
        ranks=names(group["ranks"], f"{where}.ranks"),
        size=integer(group["size"], f"{where}.size"),
        root=text(group["root"], f"{where}.root") if "root" in group else None,
        parts=integers(group.get("parts", []), f"{where}.parts"),
    )


def _routing(data: object) -> Routing:
    routing = the_object(data, "routing", ("kind", "seed"))
    kind = choice(routing["kind"], "routing.kind", [str(kind) for kind in RoutingKind])
    return Routing(RoutingKind(kind), integer(routing["seed"], "routing.seed"))


def _claims(data: object) -> Claims:
    claims = the_object(data, "claims", ("rate", "bound", "gap", "in_network_bound"))
    cut = claims["in_network_bound"]
    return within(
        "claims",
        Claims,
        rate=number(claims["rate"], "claims.rate"),
        bound=number(claims["bound"], "claims.bound"),
        gap=number(claims["gap"], "claims.gap"),
        in_network_bound=None if cut is None else number(cut, "claims.in_network_bound"),
    )


def _tree(data: object, where: str, routing: Routing) -> TreeRecord:
    if routing.kind is RoutingKind.SINGLE:
        keys: tuple[str, ...] = ("rate", "group", "root", "bytes", "edges", "routes")
    elif isinstance(data, dict) and "routes" in data:
        raise InputError(
            f"routing {routing.kind} leaves the routes to the network", where=f"{where}.routes", hint="leave them out"
        )
    else:
        keys = ("rate", "group", "root", "bytes", "edges")
    tree = the_object(data, where, keys, ("target",))
    routes = array(tree["routes"], f"{where}.routes") if "routes" in tree else None
    return within(
        where,
        TreeRecord,
        rate=number(tree["rate"], f"{where}.rate"),
        group=text(tree["group"], f"{where}.group"),
        root=text(tree["root"], f"{where}.root"),
        target=text(tree["target"], f"{where}.target") if "target" in tree else None,
        size=integer(tree["bytes"], f"{where}.bytes"),
        edges=tuple(_edge(edge, where, i) for i, edge in enumerate(array(tree["edges"], f"{where}.edges"))),
        routes=None if routes is None else tuple(_route(route, where, i) for i, route in enumerate(routes)),
    )


def _edge(data: object, where: str, position: int) -> tuple[str, str, Phase]:
    if type(data) is list and len(data) == 3:
        tail, head, phase = data
        if type(tail) is str and type(head) is str and type(phase) is str and phase in _PHASES:
            return tail, head, _PHASES[phase]
    hint = f'an edge is ["from", "to", phase], and a phase is one of {", ".join(_PHASES)}'
    raise InputError(f"cannot read {shown(data)}", where=f"{where}.edges[{position}]", hint=hint)


def _route(data: object, where: str, position: int) -> tuple[Hop, ...]:
    if type(data) is list:
        if set(map(type, data)) <= {str}:  # nearly every route
            return tuple(data)
        hops = [_hop(hop) for hop in data]
        if type(data[0]) is str and all(hop is not None for hop in hops):
            return tuple(hop for hop in hops if hop is not None)
    hint = 'a route is a list of node names, where ["name", k] takes the k-th parallel link into that node'
    raise InputError(f"cannot read {shown(data)}", where=f"{where}.routes[{position}]", hint=hint)


def _hop(data: object) -> Hop | None:
    """One hop in its only form: a plain name for the first parallel link; None if it cannot be read."""
    if type(data) is str:
        return data
    if type(data) is list and len(data) == 2 and type(data[0]) is str and type(data[1]) is int and data[1] >= 0:
        return (data[0], data[1]) if data[1] else data[0]
    return None


def _price(data: object, where: str) -> Price:
    if isinstance(data, dict) and "shared" in data:
        entry = the_object(data, where, ("shared", "price"))
        on: LinkKey | int = integer(entry["shared"], f"{where}.shared")
    else:
        entry = the_object(data, where, ("link", "price"))
        link = entry["link"]
        hop = None
        if type(link) is list and len(link) in (2, 3) and type(link[0]) is str:
            hop = _hop(link[1] if len(link) == 2 and type(link[1]) is str else link[1:])
        if hop is None:
            hint = 'a link is ["from", "to"] or ["from", "to", k] for the k-th of parallel links'
            raise InputError(f"cannot read {shown(link)}", where=f"{where}.link", hint=hint)
        on = (link[0], hop)
    return within(where, Price, on, number(entry["price"], f"{where}.price"))


def _price_target(on: LinkKey | int) -> dict[str, Any]:
    if isinstance(on, int):
        return {"shared": on}
    tail, hop = on
    return {"link": [tail, hop] if isinstance(hop, str) else [tail, *hop]}
