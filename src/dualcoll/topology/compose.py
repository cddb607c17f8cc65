"""Boxes and a network become one fabric.

Node ``n`` of box ``b`` is called ``b.n``. Every network port of a box (:attr:`Node.ports`, counted over the box in node
order) is cabled to a switch at the port's own rate (:mod:`~dualcoll.topology.networks`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dualcoll.errors import InputError
from dualcoll.topology.draft import Draft, check_size
from dualcoll.topology.model import Link, SharedCapacity, Topology
from dualcoll.topology.networks import Network, Port, wire

__all__ = ["Box", "check_boxes", "compose"]


@dataclass(frozen=True, slots=True)
class Box:
    """A box to be cabled.

    Attributes:
        name: prefix of its nodes.
        topology: its inside; its nodes' ``ports`` are what gets cabled.
        rails: the rail of port i, for a network with rails; None means rail i. Ports beyond its end stay uncabled.
        port_source: where the ports' rates come from.
        shared_nics: nodes behind one NIC: the ports of the first of them serve all, who share their rate.
    """

    name: str
    topology: Topology
    rails: tuple[int, ...] | None = None
    port_source: str = "given"
    shared_nics: tuple[tuple[int, ...], ...] = ()

    def ports(self) -> list[tuple[tuple[int, ...], float]]:
        """The nodes and the bytes/s of every port, in node order."""
        behind = {nodes[0]: nodes for nodes in self.shared_nics}
        return [(behind.get(i, (i,)), rate) for i, node in enumerate(self.topology.nodes) for rate in node.ports]


def check_boxes(kinds: Iterable[tuple[int, Box]]) -> None:
    """Refuse numbers of boxes that are too big before any of them is cabled.

    Raises:
        InputError: with their cables they have more nodes or links than a topology may have.
    """
    nodes = links = 0
    for count, box in kinds:
        cables = sum(len(behind) for behind, _ in box.ports()[: None if box.rails is None else len(box.rails)])
        nodes += count * len(box.topology.nodes)
        links += count * (len(box.topology.links) + 2 * cables)
    check_size(nodes, links)


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
    ports = box.ports()
    rails = range(len(ports)) if box.rails is None else box.rails
    if box.rails is not None and not network.kind.has_rails:
        raise InputError(f"rails have no meaning for a {network.kind} network", where=f"box {box.name}")
    if len(rails) > len(ports):
        raise InputError(f"{len(rails)} rails for {len(ports)} network ports", where=f"box {box.name}")
    if not rails:
        raise InputError(
            "it has no network port to cable",
            where=f"box {box.name}",
            hint="give the speed of its NICs, or cable at least one of its ports to a rail",
        )
    taken = Counter(nodes[0] for nodes, _ in ports[: len(rails)])
    for i, count in taken.items():
        node = draft.nodes[offset + i]
        draft.nodes[offset + i] = replace(node, ports=node.ports[count:])
    return [
        Port(tuple(offset + i for i in nodes), position, rail, rate, box.port_source)
        for (nodes, rate), rail in zip(ports, rails, strict=False)
    ]
