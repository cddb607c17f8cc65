"""Boxes and a network become one fabric.

Node ``n`` of box ``b`` is called ``b.n``. Every network port of a box (:attr:`Node.ports`, counted over the box in node
order) is cabled to a switch at the port's own rate; the switches above follow from what hangs below them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from dualcoll.errors import InputError
from dualcoll.topology.draft import NETWORK_LATENCY, Draft, check_size
from dualcoll.topology.model import Kind, Link, SharedCapacity, Topology

__all__ = ["Box", "Network", "NetworkKind", "Port", "compose", "wire"]


class NetworkKind(StrEnum):
    """How the boxes are cabled."""

    RAIL = "rail"
    SINGLE_SWITCH = "single-switch"
    LEAF_SPINE = "leaf-spine"
    FAT_TREE = "fat-tree"


_TAKES = {
    NetworkKind.RAIL: {"spines", "oversubscription"},
    NetworkKind.SINGLE_SWITCH: set[str](),
    NetworkKind.LEAF_SPINE: {"spines", "oversubscription", "boxes_per_leaf"},
    NetworkKind.FAT_TREE: {"k", "oversubscription"},
}


@dataclass(frozen=True, slots=True)
class Network:
    """What the boxes plug into; None means the default, and is all that a kind without that part accepts.

    Attributes:
        kind: rail (port i of every box to leaf i), single-switch, leaf-spine (a box's ports to one leaf) or fat-tree.
        spines: switches above the leaves (default 4); used where there is more than one leaf.
        oversubscription: capacity below a leaf or edge switch over capacity above it (default 1, non-blocking).
        boxes_per_leaf: of leaf-spine (default 1).
        k: ports of each switch of a fat tree, even (default the smallest that fits).
        latency: seconds a network link.

    Raises:
        InputError: a number out of range, or one that the kind has no use for.
    """

    kind: NetworkKind = NetworkKind.RAIL
    spines: int | None = None
    oversubscription: float | None = None
    boxes_per_leaf: int | None = None
    k: int | None = None
    latency: float = NETWORK_LATENCY

    def __post_init__(self) -> None:
        for name in ("spines", "oversubscription", "boxes_per_leaf", "k"):
            if getattr(self, name) is not None and name not in _TAKES[self.kind]:
                users = " and ".join(kind for kind, takes in _TAKES.items() if name in takes)
                raise InputError(f"{name} has no meaning for a {self.kind} network", hint=f"it belongs to {users}")
        for name in ("spines", "boxes_per_leaf"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= 4096:
                raise InputError(f"{name} {value} is out of range", hint="use 1 to 4096")
        if self.oversubscription is not None and not 0.01 <= self.oversubscription <= 1000:
            raise InputError(f"oversubscription {self.oversubscription!r} is out of range", hint="use 0.01 to 1000")
        if self.k is not None and (self.k % 2 or not 2 <= self.k <= 256):
            raise InputError(f"k {self.k} is not an even number from 2 to 256")


@dataclass(frozen=True, slots=True)
class Box:
    """A box to be cabled.

    Attributes:
        name: prefix of its nodes.
        topology: its inside; its nodes' ``ports`` are what gets cabled.
        rails: the rail of port i, for a rail network; None means rail i. Ports beyond its end stay uncabled.
        port_source: where the ports' rates come from.
    """

    name: str
    topology: Topology
    rails: tuple[int, ...] | None = None
    port_source: str = "given"


@dataclass(frozen=True, slots=True)
class Port:
    """A network port to be cabled: its node, the number of its box, its rail, bytes/s, and where the rate comes from."""

    node: int
    box: int
    rail: int
    rate: float
    source: str


def compose(boxes: Sequence[Box], network: Network, name: str = "") -> Topology:
    """One fabric from boxes and a network; a single box gets no network and keeps its ports.

    Raises:
        InputError: no boxes, two of one name, one that has no port to cable, or ``rails`` that do not fit.
    """
    if not boxes:
        raise InputError("the cluster has no boxes")
    label, times = Counter(box.name for box in boxes).most_common(1)[0]
    if times > 1:
        raise InputError(f"box name {label!r} is used {times} times", hint="names must be unique")
    check_size(sum(len(b.topology.nodes) for b in boxes), sum(len(b.topology.links) for b in boxes))
    draft = Draft()
    ports: list[Port] = []
    for i, box in enumerate(boxes):
        offset = len(draft.nodes)
        _place(draft, box)
        if len(boxes) > 1:
            ports += _cabled(draft, box, i, offset, network)
    wire(draft, ports, network)
    notes = dict.fromkeys(note for box in boxes for note in box.topology.notes)
    return draft.topology(name, tuple(notes))


def _place(draft: Draft, box: Box) -> None:
    """Add the inside of a box under its name."""
    first_node, first_link = len(draft.nodes), len(draft.links)
    inner = {node.box for node in box.topology.nodes if node.box is not None}
    for node in box.topology.nodes:
        chassis = None if node.box is None else box.name if len(inner) == 1 else f"{box.name}.{node.box}"
        draft.nodes.append(replace(node, name=f"{box.name}.{node.name}", box=chassis))
    for link in box.topology.links:
        draft.links.append(
            Link(
                link.tail + first_node,
                link.head + first_node,
                link.capacity,
                link.latency,
                link.id and f"{box.name}.{link.id}",
                link.source,
            )
        )
    for row in box.topology.shared:
        draft.shared.append(SharedCapacity(tuple(e + first_link for e in row.links), row.capacity, row.source))


def _cabled(draft: Draft, box: Box, position: int, offset: int, network: Network) -> list[Port]:
    """The ports of a box that get a cable, taken off its nodes."""
    count = sum(len(node.ports) for node in box.topology.nodes)
    rails = range(count) if box.rails is None else box.rails
    if box.rails is not None and network.kind is not NetworkKind.RAIL:
        raise InputError(f"rails have no meaning for a {network.kind} network", where=f"box {box.name}")
    if len(rails) > count:
        raise InputError(f"{len(rails)} rails for {count} network ports", where=f"box {box.name}")
    if not rails:
        raise InputError(
            "it has no network port to cable",
            where=f"box {box.name}",
            hint="give the speed of its NICs, or cable at least one of its ports to a rail",
        )
    found: list[Port] = []
    for i, node in enumerate(box.topology.nodes):
        taken = min(len(node.ports), len(rails) - len(found))
        for rate in node.ports[:taken]:
            found.append(Port(offset + i, position, rails[len(found)], rate, box.port_source))
        if taken:
            draft.nodes[offset + i] = replace(draft.nodes[offset + i], ports=node.ports[taken:])
    return found


def wire(draft: Draft, ports: Sequence[Port], network: Network) -> None:
    """Add the network that the ports plug into."""
    if not ports:
        return
    if network.kind is NetworkKind.FAT_TREE:
        _fat_tree(draft, ports, network)
    elif network.kind is NetworkKind.SINGLE_SWITCH:
        _attach(draft, draft.node("switch", Kind.SWITCH), ports, network)
    elif network.kind is NetworkKind.LEAF_SPINE:
        _leaf_spine(draft, _grouped(ports, [port.box // (network.boxes_per_leaf or 1) for port in ports]), network)
    else:
        _leaf_spine(draft, _grouped(ports, [port.rail for port in ports]), network)


def _grouped(ports: Sequence[Port], keys: Sequence[int]) -> dict[int, list[Port]]:
    groups: dict[int, list[Port]] = {key: [] for key in sorted(set(keys))}
    for port, key in zip(ports, keys, strict=True):
        groups[key].append(port)
    return groups


def _attach(draft: Draft, switch: int, ports: Sequence[Port], network: Network) -> float:
    """Cable the ports to the switch; the capacity below it."""
    for port in ports:
        draft.cable(port.node, switch, port.rate, network.latency, port.source)
    return sum(port.rate for port in ports)


def _leaf_spine(draft: Draft, groups: dict[int, list[Port]], network: Network) -> None:
    leaves = {key: draft.node(f"leaf{key}", Kind.SWITCH) for key in groups}
    below = {key: _attach(draft, leaves[key], groups[key], network) for key in groups}
    if len(groups) == 1:
        return
    count, ratio = network.spines or 4, network.oversubscription or 1.0
    source = f"derived: a leaf's ports / oversubscription {ratio:g} / {count} spines"
    spines = [draft.node(f"spine{i}", Kind.SWITCH) for i in range(count)]
    for key, leaf in leaves.items():
        for spine in spines:
            draft.cable(leaf, spine, below[key] / ratio / count, network.latency, source)


def _fat_tree(draft: Draft, ports: Sequence[Port], network: Network) -> None:
    """The part of a k-ary fat tree that the ports use: k/2 ports an edge switch, k/2 edge switches a pod."""
    k = network.k or next(k for k in range(2, 4096, 2) if k**3 // 4 >= len(ports))
    half, ratio = k // 2, network.oversubscription or 1.0
    if len(ports) > k**3 // 4:
        raise InputError(f"{len(ports)} network ports do not fit a fat tree of k = {k} ({k**3 // 4} hosts)")
    groups = _grouped(ports, [i // half for i in range(len(ports))])
    edges = [draft.node(f"edge{i}", Kind.SWITCH) for i in groups]
    uplink = [_attach(draft, edges[i], groups[i], network) / ratio / half for i in groups]
    if len(edges) == 1:
        return
    pods = -(-len(edges) // half)
    source = f"derived: an edge switch's ports / oversubscription {ratio:g} / {half} uplinks"
    middle = [draft.node(f"agg{i}", Kind.SWITCH) for i in range(pods * half)]
    for i, edge in enumerate(edges):
        for agg in middle[i // half * half :][:half]:
            draft.cable(edge, agg, uplink[i], network.latency, source)
    if pods == 1:
        return
    source = f"derived: what an aggregation switch carries below / {half} uplinks"
    cores = [draft.node(f"core{i}", Kind.SWITCH) for i in range(half * half)]
    for i, agg in enumerate(middle):
        pod, place = divmod(i, half)
        carried = sum(uplink[pod * half : (pod + 1) * half])
        for core in cores[place * half :][:half]:
            draft.cable(agg, core, carried / half, network.latency, source)
