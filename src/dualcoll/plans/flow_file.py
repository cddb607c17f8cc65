"""Files of flows, ``dualcoll.flows/1``, described in docs/normal-form.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dualcoll.errors import InputError
from dualcoll.files import atomic_write, read_bytes
from dualcoll.plans.document import LinkKey, link_keys
from dualcoll.plans.fields import array, flag, integer, names, number, shown, text, the_object, within
from dualcoll.plans.flows import Flow, Shard, natural_results
from dualcoll.plans.rated_flows import RatedFlows
from dualcoll.topology.model import Topology
from dualcoll.topology.native import topology_from_dict, topology_to_dict
from dualcoll.topology.source_text import SourceText

__all__ = ["FORMAT", "flows_from_dict", "flows_to_dict", "read_flows", "write_flows"]

FORMAT = "dualcoll.flows/1"


def write_flows(flows: RatedFlows, path: str | Path) -> None:
    """Write a file of flows, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    atomic_write(path, json.dumps(flows_to_dict(flows), allow_nan=False, ensure_ascii=False, indent=1) + "\n")


def read_flows(path: str | Path, topology: Topology | None = None) -> RatedFlows:
    """Read a file of flows.

    Args:
        path: the file.
        topology: the fabric, if the file holds none.

    Raises:
        InputError: it is no such file, or no legal AllReduce that fits the fabric (:class:`RatedFlows`).
    """
    where = str(path)
    return flows_from_dict(SourceText.parse(read_bytes(path), where).data, where, topology)


def flows_to_dict(flows: RatedFlows) -> dict[str, Any]:
    """The flows as JSON-ready data, their fabric with them."""
    nodes, keys = flows.topology.nodes, link_keys(flows.topology)

    def entry(flow: Flow) -> dict[str, Any]:
        found: dict[str, Any] = {"id": flow.id, "from": nodes[flow.tail].name, "to": nodes[flow.head].name}
        found |= {"rate": flow.rate, "depends": list(flow.depends)} | ({} if flow.own else {"own": False})
        if flow.share is None:
            return found | {"route": [nodes[flow.tail].name, *(_hop_to_json(keys[e]) for e in flow.links)]}
        shares = zip((_link_to_json(keys[e]) for e in flow.links), flow.share, strict=True)
        return found | {"spray": [{"link": link, "share": share} for link, share in shares]}

    return {
        "format": FORMAT,
        "size": flows.size,
        "ranks": list(flows.members.values()),
        "topology": topology_to_dict(flows.topology),
        "shards": [
            {
                "name": shard.name,
                "weight": shard.weight,
                "flows": [entry(flow) for flow in shard.flows],
                "results": {
                    name: list(result.depends)
                    for name, result in zip(flows.members.values(), shard.results, strict=True)
                },
            }
            for shard in flows.shards
        ],
    }


def flows_from_dict(data: object, where: str, topology: Topology | None = None) -> RatedFlows:
    """Read what :func:`flows_to_dict` wrote, or the like; ``where`` names its origin in messages.

    Args:
        data: parsed JSON.
        where: for messages.
        topology: the fabric, if the data holds none.

    Raises:
        InputError: as :func:`read_flows`.
    """
    return within(where, _read, data, topology)


def _read(data: object, topology: Topology | None) -> RatedFlows:
    if isinstance(data, dict) and "format" in data and data["format"] != FORMAT:
        raise InputError(f"format {shown(data['format'])} is not known", where="format", hint=f"it must be {FORMAT!r}")
    top = the_object(data, "", ("format", "size", "ranks", "shards"), ("topology",))
    if (topology is None) == ("topology" not in top):
        problem = "there is none" if topology is None else "there is one in the file and one beside it"
        raise InputError(problem, where="topology", hint="give the fabric in the file, or beside it")
    fabric = topology or topology_from_dict(top["topology"], "topology")
    reader = _Reader(fabric, names(top["ranks"], "ranks"))
    shards = tuple(reader.shard(shard, f"shards[{i}]") for i, shard in enumerate(array(top["shards"], "shards")))
    return RatedFlows(fabric, reader.ranks, integer(top["size"], "size"), shards)


class _Reader:
    """Turns names into indices."""

    def __init__(self, topology: Topology, ranks: tuple[str, ...]) -> None:
        self._topology = topology
        self._links: dict[LinkKey, int] = {key: e for e, key in enumerate(link_keys(topology))}
        for i, name in enumerate(ranks):
            if name not in topology.index:
                raise InputError(f"the topology has no node {shown(name)}", where=f"ranks[{i}]")
        self.ranks = tuple(topology.index[name] for name in ranks)
        self._members = dict(zip(self.ranks, ranks, strict=True))
        self._rank = dict(zip(ranks, self.ranks, strict=True))

    def shard(self, data: object, where: str) -> Shard:
        shard = the_object(data, where, ("name", "weight", "flows"), ("results",))
        entries = array(shard["flows"], f"{where}.flows")
        flows = tuple(self._flow(entry, f"{where}.flows[{k}]") for k, entry in enumerate(entries))
        given = shard.get("results", {})
        if not isinstance(given, dict):
            raise InputError(f"{shown(given)} is not an object", where=f"{where}.results", hint="its keys are ranks")
        results = {
            self._member(name, f"{where}.results"): names(ids, f"{where}.results.{name}") for name, ids in given.items()
        }
        return Shard(
            name=text(shard["name"], f"{where}.name"),
            weight=number(shard["weight"], f"{where}.weight"),
            flows=flows,
            results=within(where, natural_results, flows, self._members, results),
        )

    def _flow(self, data: object, where: str) -> Flow:
        flow = the_object(data, where, ("id", "from", "to", "rate"), ("depends", "own", "route", "spray"))
        if ("route" in flow) == ("spray" in flow):
            raise InputError("it takes a route or a spray", where=where, hint="give one of the two")
        tail = self._member(text(flow["from"], f"{where}.from"), f"{where}.from")
        if "route" in flow:
            links, share = self._route(flow["route"], f"{where}.route"), None
        else:
            links, share = self._spray(flow["spray"], f"{where}.spray")
        return Flow(
            id=text(flow["id"], f"{where}.id"),
            tail=tail,
            head=self._member(text(flow["to"], f"{where}.to"), f"{where}.to"),
            rate=number(flow["rate"], f"{where}.rate"),
            links=links,
            share=share,
            depends=names(flow.get("depends", []), f"{where}.depends"),
            own=flag(flow.get("own", True), f"{where}.own"),
        )

    def _member(self, name: str, where: str) -> int:
        if name not in self._rank:
            raise InputError(f"{shown(name)} is not one of the ranks", where=where)
        return self._rank[name]

    def _route(self, data: object, where: str) -> tuple[int, ...]:
        hops = array(data, where)
        hint = 'a route is a list of node names, where ["name", k] takes the k-th parallel link into that node'
        at: object = hops[0] if hops else ""
        links = []
        for i, hop in enumerate(hops[1:], 1):
            step = hop if isinstance(hop, list) and len(hop) == 2 else [hop]
            links.append(self._link([at, *step], f"{where}[{i}]", hint))
            at = step[0]
        return tuple(links)

    def _spray(self, data: object, where: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
        links, shares = [], []
        hint = 'a link is ["from", "to"] or ["from", "to", k] for the k-th of parallel links'
        for i, entry in enumerate(array(data, where)):
            part = the_object(entry, f"{where}[{i}]", ("link", "share"))
            links.append(self._link(part["link"], f"{where}[{i}].link", hint))
            shares.append(number(part["share"], f"{where}[{i}].share"))
        return tuple(links), tuple(shares)

    def _link(self, data: object, where: str, hint: str) -> int:
        """The link [from, to] or [from, to, k]."""
        match data:
            case [str(tail), str(head)]:
                key: LinkKey = (tail, head)
            case [str(tail), str(head), int(k)] if type(k) is int and k >= 0:
                key = (tail, (head, k) if k else head)
            case _:
                raise InputError(f"cannot read {shown(data)}", where=where, hint=hint)
        if key not in self._links:
            tail, head = key[0], key[1] if isinstance(key[1], str) else f"{key[1][0]} (cable {key[1][1]})"
            raise InputError(f"there is no link from {tail[:60]} to {head[:60]}", where=where)
        return self._links[key]


def _hop_to_json(key: LinkKey) -> object:
    """The hop over a link."""
    return key[1] if isinstance(key[1], str) else list(key[1])


def _link_to_json(key: LinkKey) -> list[object]:
    return [key[0], key[1]] if isinstance(key[1], str) else [key[0], *key[1]]
