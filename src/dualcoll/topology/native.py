"""The native topology format, ``dualcoll.topology/1``, as plain data (docs/topology-file.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import FailFast, Field

from dualcoll.errors import InputError
from dualcoll.topology.draft import BOX_LATENCY, NETWORK_LATENCY, check_size
from dualcoll.topology.forms import Bandwidth, Flag, Form, Latency, Name, Place, Text, Whole, filled, one_of
from dualcoll.topology.model import MAX_LINKS, Kind, Link, Node, SharedCapacity, Topology, duplex
from dualcoll.topology.source_text import loc_text
from dualcoll.units import format_time, parse_bandwidth, parse_time

__all__ = ["FORMAT", "topology_from_data", "topology_from_dict", "topology_to_dict"]

FORMAT = "dualcoll.topology/1"


class NodeForm(Form):
    """One entry of ``nodes``."""

    name: Name
    kind: Annotated[Kind, one_of(Kind)]
    rank: Flag | None = None
    box: Text | None = None
    ports: Annotated[tuple[Bandwidth, ...], FailFast()] = ()


class LinkForm(Form):
    """One entry of ``links``: ``count`` cables, each of two directions unless ``oneway``."""

    tail: Name = Field(alias="from")
    head: Name = Field(alias="to")
    bandwidth: Bandwidth
    latency: Latency | None = None
    oneway: Flag = False
    count: Whole = 1
    id: Text = ""
    source: Text = "given"


class SharedForm(Form):
    """One entry of ``shared``: links by id, or by their position among all directed links of the file."""

    links: Annotated[tuple[Text, ...], FailFast()] = ()
    directed: Annotated[tuple[Whole, ...], FailFast()] = ()
    bandwidth: Bandwidth
    source: Text = "given"


class TopologyForm(Form):
    """A whole file."""

    format: Text
    name: Text = ""
    nodes: Annotated[tuple[NodeForm, ...], FailFast()]
    links: Annotated[tuple[LinkForm, ...], FailFast()] = ()
    shared: Annotated[tuple[SharedForm, ...], FailFast()] = ()
    notes: Annotated[tuple[Text, ...], FailFast()] = ()


def topology_from_dict(data: object, where: str = "topology") -> Topology:
    """The topology that :func:`topology_to_dict` wrote, or that a file of the native format holds.

    Raises:
        InputError: whatever is wrong, with its key after ``where``.
    """
    return topology_from_data(data, lambda loc: ": ".join(filter(None, (where, loc_text(loc)))))


def topology_from_data(data: object, place: Place) -> Topology:
    """The same with a better way to say where a key stands."""
    if isinstance(data, dict) and data.get("format") != FORMAT:
        raise InputError(f"format {str(data.get('format'))[:60]!r} is not {FORMAT}", where=place(()))
    form = filled(TopologyForm, data, place)
    nodes, index = _nodes(form, place)
    for i, entry in enumerate(form.links):
        if not 1 <= entry.count <= MAX_LINKS:
            raise InputError(f"{entry.count} is out of range", where=place(("links", i, "count")), hint="use 1 or more")
    try:
        check_size(len(nodes), sum(entry.count * (1 if entry.oneway else 2) for entry in form.links))
    except InputError as error:
        raise error.within(place(("links",))) from None
    links, unset = _links(form, index, place)
    shared = tuple(_shared(form, place))
    try:
        topology = Topology(nodes, tuple(links), shared, form.name, form.notes)
    except InputError as error:
        raise error.within(place(())) from None
    return _with_latencies(topology, unset) if unset else topology


def _nodes(form: TopologyForm, place: Place) -> tuple[tuple[Node, ...], dict[str, int]]:
    index: dict[str, int] = {}
    for i, entry in enumerate(form.nodes):
        if entry.name in index:
            raise InputError(
                f"node name {entry.name!r} is taken by nodes[{index[entry.name]}]",
                where=place(("nodes", i, "name")),
                hint="names must be unique",
            )
        index[entry.name] = i
    return tuple(Node(n.name, n.kind, n.rank, n.box, n.ports) for n in form.nodes), index


def _links(form: TopologyForm, index: dict[str, int], place: Place) -> tuple[list[Link], list[int]]:
    """All directed links, and which of them need a default latency."""
    links: list[Link] = []
    unset: list[int] = []
    for i, entry in enumerate(form.links):
        for key, name in (("from", entry.tail), ("to", entry.head)):
            if name not in index:
                close = get_close_matches(name, index, n=1)
                hint = f"did you mean {close[0]}?" if close else "name it under nodes"
                raise InputError(f"there is no node {name!r}", where=place(("links", i, key)), hint=hint)
        if entry.tail == entry.head:
            where = place(("links", i))
            raise InputError(f"a link from {entry.tail} to itself", where=where, hint="remove it: it carries nothing")
        ends = index[entry.tail], index[entry.head]
        link = Link(*ends, entry.bandwidth, entry.latency or 0.0, entry.id, entry.source)
        cables = ([link] if entry.oneway else duplex(link)) * entry.count
        if entry.latency is None:
            unset += range(len(links), len(links) + len(cables))
        links += cables
    return links, unset


def _shared(form: TopologyForm, place: Place) -> Iterator[SharedCapacity]:
    spans: dict[str, list[tuple[int, int]]] = {}
    total = 0
    for link in form.links:
        size = link.count * (1 if link.oneway else 2)
        if link.id:
            spans.setdefault(link.id, []).append((total, total + size))
        total += size
    for i, entry in enumerate(form.shared):
        if bool(entry.links) == bool(entry.directed):
            problem = "it needs links (ids of links) or directed (positions of directed links), and not both"
            raise InputError(problem, where=place(("shared", i)))
        chosen = list(entry.directed)
        for j, name in enumerate(entry.links):
            where = place(("shared", i, "links", j)) if len(spans.get(name, ())) != 1 else ""
            if name not in spans:
                close = get_close_matches(name, spans, n=1)
                hint = f"did you mean {close[0]}?" if close else "give the link an id"
                raise InputError(f"no link has the id {name!r}", where=where, hint=hint)
            if len(spans[name]) > 1:
                problem = f"{len(spans[name])} entries of links have the id {name!r}"
                raise InputError(problem, where=where, hint="give each its own id")
            chosen += range(*spans[name][0])
        if len(set(chosen)) != len(chosen) or not all(0 <= e < total for e in chosen):
            raise InputError("it names a link twice, or one that is not there", where=place(("shared", i)))
        yield SharedCapacity(tuple(chosen), entry.bandwidth, entry.source)


def _with_latencies(topology: Topology, unset: list[int]) -> Topology:
    links = list(topology.links)
    for e in unset:
        tail, head = (topology.nodes[end].box for end in (links[e].tail, links[e].head))
        links[e] = replace(links[e], latency=BOX_LATENCY if tail is not None and tail == head else NETWORK_LATENCY)
    note = (
        f"{len(unset)} of {len(links)} directed links give no latency: "
        f"{format_time(BOX_LATENCY)} is assumed in a box, {format_time(NETWORK_LATENCY)} outside"
    )
    return replace(topology, links=tuple(links), notes=(*topology.notes, note))


def topology_to_dict(topology: Topology) -> dict[str, Any]:
    """Plain data, ready for JSON or YAML, from which :func:`topology_from_dict` makes an equal topology.

    Raises:
        InputError: a capacity or latency that no file may hold (below 1 B/s, above 1e18 B/s or a day).
    """
    data: dict[str, Any] = {"format": FORMAT}
    if topology.name:
        data["name"] = topology.name
    if topology.notes:
        data["notes"] = list(topology.notes)
    data["nodes"] = [_node_entry(node) for node in topology.nodes]
    entries, spans = _link_entries(topology)
    data["links"] = entries
    if topology.shared:
        data["shared"] = [_shared_entry(row, spans) for row in topology.shared]
    return data


def _node_entry(node: Node) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": node.name, "kind": str(node.kind)}
    if node.rank is not replace(node, rank=None).is_rank:
        entry["rank"] = node.rank
    if node.box is not None:
        entry["box"] = node.box
    if node.ports:
        entry["ports"] = [_bandwidth(port) for port in node.ports]
    return entry


def _link_entries(topology: Topology) -> tuple[list[dict[str, Any]], dict[str, list[tuple[int, ...]]]]:
    """Entries of links that give back their order, and the links of every entry under its id."""
    links = topology.links
    entries: list[dict[str, Any]] = []
    spans: dict[str, list[tuple[int, ...]]] = {}
    start = 0
    while start < len(links):
        link = links[start]
        cable = duplex(link) if tuple(links[start : start + 2]) == tuple(duplex(link)) else [link]
        end = start + len(cable)
        while list(links[end : end + len(cable)]) == cable:
            end += len(cable)
        entry: dict[str, Any] = {"from": topology.nodes[link.tail].name, "to": topology.nodes[link.head].name}
        try:
            entry |= {"bandwidth": _bandwidth(link.capacity), "latency": _latency(link.latency)}
        except InputError as error:
            raise error.within(f"link {topology.describe_link(start)}") from None
        extras = {
            "oneway": len(cable) == 1,
            "count": (end - start) // len(cable),
            "id": link.id,
            "source": link.source,
        }
        entry |= {key: extras[key] for key, usual in _USUAL.items() if extras[key] != usual}
        entries.append(entry)
        if link.id:
            spans.setdefault(link.id, []).append(tuple(range(start, end)))
        start = end
    return entries, spans


_USUAL = {"oneway": False, "count": 1, "id": "", "source": "given"}


def _shared_entry(row: SharedCapacity, spans: dict[str, list[tuple[int, ...]]]) -> dict[str, Any]:
    """By ids where they say exactly these links in this order, else by position."""
    by_first = {found[0][0]: (name, found[0]) for name, found in spans.items() if len(found) == 1}
    names: list[str] = []
    covered: tuple[int, ...] = ()
    while len(covered) < len(row.links) and row.links[len(covered)] in by_first:
        name, span = by_first[row.links[len(covered)]]
        names.append(name)
        covered += span
    entry: dict[str, Any] = {"links": names} if covered == row.links else {"directed": list(row.links)}
    entry["bandwidth"] = _bandwidth(row.capacity)
    if row.source != "given":
        entry["source"] = row.source
    return entry


def _bandwidth(value: float) -> str:
    parse_bandwidth(f"{float(value)!r}B/s")  # refuses what no file may hold
    short = f"{value / 1e9:.6g}GB/s"
    return short if value >= 1e6 and parse_bandwidth(short) == value else f"{float(value)!r}B/s"


def _latency(value: float) -> str:
    if value == 0:
        return "0s"
    short = f"{value * 1e6:.6g}us"
    return short if parse_time(short) == value else f"{float(value)!r}s"
