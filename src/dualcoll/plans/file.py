"""Plan files: one JSON object, described in docs/plan-file.md.

Numbers are written with all their digits and read as the nearest double, so a plan comes back exactly as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from dualcoll.collectives.catalogue import canonical_name
from dualcoll.errors import InputError
from dualcoll.files import atomic_write, read_bytes
from dualcoll.plans.document import (
    Claims,
    Hop,
    LinkKey,
    PlanDocument,
    Price,
    SolverRecord,
    TreeRecord,
    document_to_plan,
    plan_to_document,
)
from dualcoll.plans.model import Phase, Plan
from dualcoll.progress import Outcome
from dualcoll.topology.model import Forwarding
from dualcoll.topology.native import topology_from_dict, topology_to_dict
from dualcoll.topology.source_text import SourceText

__all__ = ["FORMAT", "document_from_dict", "plan_from_dict", "plan_to_dict", "read_document", "read_plan", "write_plan"]

FORMAT = "dualcoll.plan/1"
MAX_BYTES = 2**30  # of a plan file: about 3,000 trees over 1,024 GPUs

_PHASES = {phase.name.lower(): phase for phase in Phase}
_KEYS = (
    *("format", "generator", "collective", "ranks", "size", "forward", "claims", "solver"),
    *("topology", "trees", "prices", "in_network_cut"),
)

P = ParamSpec("P")
T = TypeVar("T")


def write_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan file, whole or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    parts = []
    for key, value in plan_to_dict(plan).items():
        if isinstance(value, list) and value and isinstance(value[0], dict):  # one tree or price a line
            text = "[\n    " + ",\n    ".join(map(_json, value)) + "\n  ]"
        else:
            text = _json(value)
        parts.append(f'  "{key}": {text}')
    atomic_write(path, "{\n" + ",\n".join(parts) + "\n}\n")


def read_plan(path: str | Path) -> Plan:
    """Read a plan file for use. Its claims are not proved; :func:`read_document` serves the proof.

    Raises:
        InputError: it is no plan file, or it names what its topology does not have.
    """
    return _within(str(path), document_to_plan, read_document(path))


def read_document(path: str | Path) -> PlanDocument:
    """Read a plan file as it stands.

    Raises:
        InputError: the file cannot be read or has not the form of a plan; with the line or the key.
    """
    where = str(path)
    return document_from_dict(SourceText.parse(read_bytes(path, MAX_BYTES), where).data, where)


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """The plan as JSON-ready data.

    Raises:
        InputError: a number that is not finite or negative, or a route whose links do not follow one another.
    """
    document = plan_to_document(plan)
    claims, solver = document.claims, document.solver
    return {
        "format": FORMAT,
        "generator": document.generator,
        "collective": document.collective,
        "ranks": list(document.ranks),
        "size": document.size,
        "forward": str(document.forwarding),
        "claims": {key: getattr(claims, key) for key in claims.__slots__},
        "solver": {key: getattr(solver, key) for key in solver.__slots__} | {"outcome": str(solver.outcome)},
        "topology": topology_to_dict(document.topology),
        "trees": [
            {
                "rate": tree.rate,
                "root": tree.root,
                "bytes": tree.size,
                "edges": [[tail, head, phase.name.lower()] for tail, head, phase in tree.edges],
                "routes": [[hop if isinstance(hop, str) else list(hop) for hop in route] for route in tree.routes],
            }
            for tree in document.trees
        ],
        "prices": [{**_price_target(entry.on), "price": entry.price} for entry in document.prices],
        "in_network_cut": list(document.in_network_cut),
    }


def plan_from_dict(data: object, where: str) -> Plan:
    """Read what :func:`plan_to_dict` wrote; ``where`` names its origin in messages.

    Raises:
        InputError: the data has not the form of a plan, or names what its topology does not have.
    """
    return _within(where, document_to_plan, document_from_dict(data, where))


def document_from_dict(data: object, where: str) -> PlanDocument:
    """Read parsed JSON as a plan document; ``where`` names its origin in messages.

    Raises:
        InputError: the data has not the form of a plan, with the place and the value.
    """
    return _within(where, _document, data)


def _document(data: object) -> PlanDocument:
    if isinstance(data, dict) and "format" in data and data["format"] != FORMAT:
        raise InputError(f"format {_shown(data['format'])} is not known", where="format", hint=f"it must be {FORMAT!r}")
    top = _object(data, "", _KEYS)
    claims = _object(top["claims"], "claims", ("rate", "bound", "gap", "in_network_bound"))
    solver = _object(top["solver"], "solver", ("outcome", "method", "seconds", "iterations"))
    return PlanDocument(
        generator=_text(top["generator"], "generator"),
        collective=_within("collective", canonical_name, _text(top["collective"], "collective")),
        ranks=_names(top["ranks"], "ranks"),
        size=_integer(top["size"], "size"),
        forwarding=Forwarding(_choice(top["forward"], "forward", [str(policy) for policy in Forwarding])),
        topology=topology_from_dict(top["topology"], "topology"),
        trees=tuple(_tree(tree, f"trees[{i}]") for i, tree in enumerate(_array(top["trees"], "trees"))),
        prices=tuple(_price(price, f"prices[{i}]") for i, price in enumerate(_array(top["prices"], "prices"))),
        in_network_cut=_names(top["in_network_cut"], "in_network_cut"),
        claims=_within("claims", Claims, **{key: _number(value, f"claims.{key}") for key, value in claims.items()}),
        solver=_within(
            "solver",
            SolverRecord,
            outcome=Outcome(_choice(solver["outcome"], "solver.outcome", [str(outcome) for outcome in Outcome])),
            method=_text(solver["method"], "solver.method"),
            seconds=_number(solver["seconds"], "solver.seconds"),
            iterations=_integer(solver["iterations"], "solver.iterations"),
        ),
    )


def _tree(data: object, where: str) -> TreeRecord:
    tree = _object(data, where, ("rate", "root", "bytes", "edges", "routes"))
    return _within(
        where,
        TreeRecord,
        rate=_number(tree["rate"], f"{where}.rate"),
        root=_text(tree["root"], f"{where}.root"),
        size=_integer(tree["bytes"], f"{where}.bytes"),
        edges=tuple(_edge(edge, where, i) for i, edge in enumerate(_array(tree["edges"], f"{where}.edges"))),
        routes=tuple(_route(route, where, i) for i, route in enumerate(_array(tree["routes"], f"{where}.routes"))),
    )


def _edge(data: object, where: str, position: int) -> tuple[str, str, Phase]:
    if type(data) is list and len(data) == 3:
        tail, head, phase = data
        if type(tail) is str and type(head) is str and type(phase) is str and phase in _PHASES:
            return tail, head, _PHASES[phase]
    hint = 'an edge is ["from", "to", "reduce"] or ["from", "to", "broadcast"]'
    raise InputError(f"cannot read {_shown(data)}", where=f"{where}.edges[{position}]", hint=hint)


def _route(data: object, where: str, position: int) -> tuple[Hop, ...]:
    if type(data) is list:
        if set(map(type, data)) <= {str}:  # nearly every route
            return tuple(data)
        hops = [_hop(hop) for hop in data]
        if type(data[0]) is str and all(hop is not None for hop in hops):
            return tuple(hop for hop in hops if hop is not None)
    hint = 'a route is a list of node names, where ["name", k] takes the k-th parallel link into that node'
    raise InputError(f"cannot read {_shown(data)}", where=f"{where}.routes[{position}]", hint=hint)


def _hop(data: object) -> Hop | None:
    """One hop in its only form: a plain name for the first parallel link; None if it cannot be read."""
    if type(data) is str:
        return data
    if type(data) is list and len(data) == 2 and type(data[0]) is str and type(data[1]) is int and data[1] >= 0:
        return (data[0], data[1]) if data[1] else data[0]
    return None


def _price(data: object, where: str) -> Price:
    if isinstance(data, dict) and "shared" in data:
        entry = _object(data, where, ("shared", "price"))
        on: LinkKey | int = _integer(entry["shared"], f"{where}.shared")
    else:
        entry = _object(data, where, ("link", "price"))
        link = entry["link"]
        hop = None
        if type(link) is list and len(link) in (2, 3) and type(link[0]) is str:
            hop = _hop(link[1] if len(link) == 2 and type(link[1]) is str else link[1:])
        if hop is None:
            hint = 'a link is ["from", "to"] or ["from", "to", k] for the k-th of parallel links'
            raise InputError(f"cannot read {_shown(link)}", where=f"{where}.link", hint=hint)
        on = (link[0], hop)
    return _within(where, Price, on, _number(entry["price"], f"{where}.price"))


def _price_target(on: LinkKey | int) -> dict[str, Any]:
    if isinstance(on, int):
        return {"shared": on}
    tail, hop = on
    return {"link": [tail, hop] if isinstance(hop, str) else [tail, *hop]}


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _within(where: str, make: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call, with ``where`` put before the place of any error."""
    try:
        return make(*args, **kwargs)
    except InputError as error:
        raise error.within(where) from None


def _object(data: object, where: str, keys: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise InputError(f"{_shown(data)} is not an object", where=where, hint=f"it has the keys {', '.join(keys)}")
    for key in data:
        if key not in keys:
            raise InputError(f"key {_shown(key)} is not known", where=where, hint=f"use {', '.join(keys)}")
    for key in keys:
        if key not in data:
            raise InputError(f"key {key!r} is missing", where=where)
    return data


def _array(data: object, where: str) -> list[object]:
    if not isinstance(data, list):
        raise InputError(f"{_shown(data)} is not a list", where=where)
    return data


def _text(data: object, where: str) -> str:
    if not isinstance(data, str):
        raise InputError(f"{_shown(data)} is not a text", where=where)
    return data


def _names(data: object, where: str) -> tuple[str, ...]:
    return tuple(_text(name, f"{where}[{i}]") for i, name in enumerate(_array(data, where)))


def _choice(data: object, where: str, choices: list[str]) -> str:
    if data not in choices:
        raise InputError(f"{_shown(data)} is not known", where=where, hint=f"use one of {', '.join(choices)}")
    return str(data)


def _integer(data: object, where: str) -> int:
    if type(data) is not int:
        raise InputError(f"{_shown(data)} is not a whole number", where=where)
    return data


def _number(data: object, where: str) -> float:
    if type(data) not in (int, float):
        raise InputError(f"{_shown(data)} is not a number", where=where)
    try:
        return float(data)  # type: ignore[arg-type]
    except OverflowError:
        raise InputError(f"{_shown(data)} is too large", where=where) from None


def _shown(data: object) -> str:
    text = ascii(data)
    return text if len(text) <= 60 else f"{text[:57]}..."
