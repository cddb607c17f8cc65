"""The fabric: nodes, directed links, shared capacities, and who may forward.

A full-duplex cable is two directed links. Numbers carry their origin (``source``), so that a plan can say where each came
from. Everything is validated here, at construction; readers add the file and line.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import networkx as nx

from dualcoll.errors import InputError

__all__ = [
    "Forwarding",
    "Kind",
    "Link",
    "Node",
    "SharedCapacity",
    "Topology",
    "Transit",
    "duplex",
    "transit",
]

MAX_LINKS = 4_000_000
MAX_NODES = 1_000_000


class Kind(StrEnum):
    """What a node is. GPUs and hosts are ranks unless the node says otherwise."""

    GPU = "gpu"
    SWITCH = "switch"
    NIC = "nic"
    CPU = "cpu"
    PCI = "pci"
    HOST = "host"


class Forwarding(StrEnum):
    """Which ranks may forward traffic of others: none of them, or every GPU and host."""

    SWITCHES = "switches"
    ALL = "all"


class Transit(StrEnum):
    """What may pass through a node."""

    ANY = "any"
    OWN_BOX = "own box"
    NONE = "none"


def transit(kind: Kind, forwarding: Forwarding) -> Transit:
    """What a node of this kind lets pass (docs/model.md, "Who may forward").

    A switch forwards anything. A NIC, CPU or PCIe node carries a path only while that path is leaving the box it starts in
    or entering the box it ends in. A GPU or host forwards nothing, unless ``forwarding`` is ``ALL``.
    """
    if kind is Kind.SWITCH:
        return Transit.ANY
    if kind in (Kind.NIC, Kind.CPU, Kind.PCI):
        return Transit.OWN_BOX
    return Transit.ANY if forwarding is Forwarding.ALL else Transit.NONE


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the fabric.

    Attributes:
        name: unique in its topology.
        kind: what it is.
        rank: whether it takes part in collectives by default; None means by kind (GPUs and hosts).
        box: the chassis it stands in. None means derived: what is left connected when switches are taken out; a switch
            without a box belongs to the network.
        ports: bytes/s of each network port that is not cabled inside this topology; a cluster's network plugs in here.
    """

    name: str
    kind: Kind
    rank: bool | None = None
    box: str | None = None
    ports: tuple[float, ...] = ()

    @property
    def is_rank(self) -> bool:
        """Whether the node is a rank."""
        return self.kind in (Kind.GPU, Kind.HOST) if self.rank is None else self.rank


@dataclass(frozen=True, slots=True)
class Link:
    """A directed link.

    Attributes:
        tail, head: indices of its end nodes; traffic flows from tail to head.
        capacity: bytes/s, positive.
        latency: seconds, not negative.
        id: name of the cable, shared by its two directions; may be empty.
        source: where the capacity comes from.
    """

    tail: int
    head: int
    capacity: float
    latency: float = 0.0
    id: str = ""
    source: str = "given"


@dataclass(frozen=True, slots=True)
class SharedCapacity:
    """One capacity over the sum of several directed links (a half-duplex bus, one device behind two ranks).

    Attributes:
        links: indices of the links, without repetition.
        capacity: bytes/s, positive.
        source: where the number comes from.
    """

    links: tuple[int, ...]
    capacity: float
    source: str = "given"


@dataclass(frozen=True, slots=True)
class Topology:
    """A validated fabric. ``rank`` and ``box`` are resolved at construction: only a network switch is without a box.

    Attributes:
        nodes: shape (V,).
        links: shape (E,), directed.
        shared: capacities over several links.
        name: for people.
        notes: assumptions and warnings made while reading it, to be shown to the user.

    Raises:
        InputError: a duplicate or empty name, a link to an unknown node or to itself, a capacity that is not positive and
            finite, a negative latency, an ambiguous box, or more nodes or links than can be handled.
    """

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    shared: tuple[SharedCapacity, ...] = ()
    name: str = ""
    notes: tuple[str, ...] = ()
    index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_nodes(self.nodes)
        _check_links(self.nodes, self.links)
        _check_shared(self.links, self.shared)
        nodes = _with_boxes(tuple(replace(n, rank=n.is_rank) for n in self.nodes), self.links)
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "index", {node.name: i for i, node in enumerate(nodes)})

    @property
    def ranks(self) -> tuple[int, ...]:
        """Indices of the nodes that are ranks, in node order: rank i of a collective over all is the i-th of them."""
        return tuple(i for i, node in enumerate(self.nodes) if node.is_rank)

    def describe_links(self) -> list[str]:
        """Text for each link (E,), ``"g0 -> sw"``; parallel links get their position, ``"g0 -> sw (cable 1)"``."""
        parallel = Counter((link.tail, link.head) for link in self.links)
        before: Counter[tuple[int, int]] = Counter()
        texts = []
        for link in self.links:
            ends = link.tail, link.head
            text = f"{self.nodes[link.tail].name} -> {self.nodes[link.head].name}"
            texts.append(text if parallel[ends] == 1 else f"{text} (cable {before[ends]})")
            before[ends] += 1
        return texts

    def describe_link(self, link: int) -> str:
        """The text of one link."""
        return self.describe_links()[link]

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """A MultiDiGraph keyed by node name: node data kind, rank, box, ports; edge data capacity, latency, id, source."""
        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=self.name, notes=self.notes)
        for node in self.nodes:
            graph.add_node(node.name, kind=str(node.kind), rank=node.is_rank, box=node.box, ports=node.ports)
        for i, link in enumerate(self.links):
            ends = self.nodes[link.tail].name, self.nodes[link.head].name
            graph.add_edge(*ends, key=i, capacity=link.capacity, latency=link.latency, id=link.id, source=link.source)
        graph.graph["shared"] = tuple((row.links, row.capacity, row.source) for row in self.shared)
        return graph

    @classmethod
    def from_networkx(cls, graph: nx.Graph[str]) -> Topology:
        """Read a graph whose nodes carry ``kind`` and whose edges carry ``capacity`` in bytes/s; other keys as written by
        :meth:`to_networkx` are optional. An undirected edge becomes two links.

        Raises:
            InputError: a missing or unusable attribute, named with its node or edge.
        """
        nodes = tuple(_node_from(name, data) for name, data in graph.nodes(data=True))
        index = {node.name: i for i, node in enumerate(nodes)}
        links: list[Link] = []
        keys: dict[object, int] = {}
        edges: Any = graph.edges(data=True)
        if isinstance(graph, nx.MultiGraph | nx.MultiDiGraph):
            edges = list(graph.edges(keys=True, data=True))
            if {edge[2] for edge in edges} == set(range(len(edges))):
                edges.sort(key=lambda edge: edge[2])  # to_networkx keys edges by link index
        for edge in edges:
            tail, head, data = str(edge[0]), str(edge[1]), edge[-1]
            if "capacity" not in data:
                raise InputError("the edge has no capacity", where=f"edge {tail} -> {head}", hint="give bytes/s")
            link = Link(
                index[tail],
                index[head],
                float(data["capacity"]),
                float(data.get("latency", 0.0)),
                str(data.get("id", "")),
                str(data.get("source", "given")),
            )
            keys[edge[2] if graph.is_multigraph() else (tail, head)] = len(links)
            links += [link] if graph.is_directed() else duplex(link)
        shared = tuple(
            SharedCapacity(tuple(keys[key] for key in row), capacity, source)
            for row, capacity, source in graph.graph.get("shared", ())
        )
        return cls(nodes, tuple(links), shared, str(graph.graph.get("name", "")), tuple(graph.graph.get("notes", ())))


def duplex(link: Link) -> list[Link]:
    """The link and its reverse: the two directions of one cable."""
    return [link, replace(link, tail=link.head, head=link.tail)]


def _node_from(name: object, data: dict[str, object]) -> Node:
    kinds = [str(kind) for kind in Kind]
    if str(data.get("kind")) not in kinds:
        raise InputError(
            f"kind {data.get('kind')!r} is not known", where=f"node {name}", hint=f"use one of {', '.join(kinds)}"
        )
    rank, box, ports = data.get("rank"), data.get("box"), data.get("ports", ())
    return Node(
        str(name),
        Kind(str(data["kind"])),
        None if rank is None else bool(rank),
        None if box is None else str(box),
        tuple(float(port) for port in ports) if isinstance(ports, Iterable) else (),
    )


def _check_nodes(nodes: tuple[Node, ...]) -> None:
    if not nodes:
        raise InputError("the topology has no nodes")
    if len(nodes) > MAX_NODES:
        raise InputError(f"{len(nodes)} nodes are too many", hint=f"at most {MAX_NODES} can be handled")
    for node in nodes:
        if not node.name or not node.name.isprintable() or len(node.name) > 255:
            raise InputError(f"node name {node.name[:60]!r} is not usable", hint="use 1 to 255 printable characters")
        for port in node.ports:
            _check_positive(port, "port rate", f"node {node.name}")
    name, times = Counter(node.name for node in nodes).most_common(1)[0]
    if times > 1:
        raise InputError(f"node name {name!r} is used {times} times", hint="names must be unique")


def _check_links(nodes: tuple[Node, ...], links: tuple[Link, ...]) -> None:
    if len(links) > MAX_LINKS:
        raise InputError(f"{len(links)} links are too many", hint=f"at most {MAX_LINKS} can be handled")
    for link in links:
        if not (0 <= link.tail < len(nodes) and 0 <= link.head < len(nodes)):
            raise InputError(f"link {link.tail} -> {link.head} has no such end", where="links")
        where = f"link {nodes[link.tail].name} -> {nodes[link.head].name}"
        if link.tail == link.head:
            raise InputError("a link from a node to itself", where=where, hint="remove it: it carries nothing")
        _check_positive(link.capacity, "capacity", where)
        if not (math.isfinite(link.latency) and link.latency >= 0):
            raise InputError(f"latency {link.latency!r} s is not a finite number >= 0", where=where)


def _check_shared(links: tuple[Link, ...], shared: tuple[SharedCapacity, ...]) -> None:
    for i, row in enumerate(shared):
        where = f"shared capacity {i}"
        _check_positive(row.capacity, "capacity", where)
        if not row.links or len(set(row.links)) != len(row.links):
            raise InputError("its links must be one or more, without repetition", where=where)
        if not all(0 <= link < len(links) for link in row.links):
            raise InputError("it names a link that does not exist", where=where)


def _check_positive(value: float, what: str, where: str) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InputError(
            f"{what} {value!r} bytes/s is not a finite number > 0",
            where=where,
            hint="leave a dead link out instead of giving it no capacity",
        )


def _with_boxes(nodes: tuple[Node, ...], links: tuple[Link, ...]) -> tuple[Node, ...]:
    """Give a box to every node that needs one and has none: its component once the switches are taken out."""
    if all(node.box is not None or node.kind is Kind.SWITCH for node in nodes):
        return nodes
    parent = list(range(len(nodes)))

    def find(x: int) -> int:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for link in links:
        if Kind.SWITCH not in (nodes[link.tail].kind, nodes[link.head].kind):
            parent[find(link.tail)] = find(link.head)
    named: dict[int, set[str]] = defaultdict(set)
    for i, node in enumerate(nodes):
        if node.box is not None and node.kind is not Kind.SWITCH:
            named[find(i)].add(node.box)
    taken = {node.box for node in nodes if node.box is not None}
    fresh = (f"box{i}" for i in range(2 * len(nodes) + 1) if f"box{i}" not in taken)
    resolved: list[Node] = []
    for i, node in enumerate(nodes):
        if node.box is None and node.kind is not Kind.SWITCH:
            component = named[find(i)]
            if len(component) > 1:
                raise InputError(
                    f"its box could be any of {', '.join(sorted(component)[:5])}",
                    where=f"node {node.name}",
                    hint="give it a box",
                )
            if not component:
                component.add(next(fresh))
            node = replace(node, box=next(iter(component)))
        resolved.append(node)
    return tuple(resolved)
