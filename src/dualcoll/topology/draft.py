"""A topology being put together: nodes and duplex cables, in the order in which they are added."""

from __future__ import annotations

from dataclasses import dataclass, field

from dualcoll.errors import InputError
from dualcoll.topology.model import MAX_LINKS, MAX_NODES, Kind, Link, Node, SharedCapacity, Topology, duplex

__all__ = ["BOX_LATENCY", "NETWORK_LATENCY", "Draft", "check_size"]

BOX_LATENCY = 0.35e-6  # seconds a link inside a box
NETWORK_LATENCY = 1.3e-6  # seconds a link outside


@dataclass(slots=True)
class Draft:
    """Lists that grow; :meth:`topology` validates and freezes them."""

    nodes: list[Node] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    shared: list[SharedCapacity] = field(default_factory=list)

    def node(self, name: str, kind: Kind, box: str | None = None, ports: tuple[float, ...] = ()) -> int:
        """Add a node; its index."""
        self.nodes.append(Node(name, kind, None, box, ports))
        return len(self.nodes) - 1

    def cable(self, tail: int, head: int, capacity: float, latency: float, source: str) -> None:
        """Add both directions of a cable."""
        self.links += duplex(Link(tail, head, capacity, latency, source=source))

    def topology(self, name: str, notes: tuple[str, ...] = ()) -> Topology:
        """The finished topology.

        Raises:
            InputError: as :class:`Topology` does.
        """
        return Topology(tuple(self.nodes), tuple(self.links), tuple(self.shared), name, notes)


def check_size(nodes: int, links: int) -> None:
    """Refuse what is too big before any of it is built.

    Raises:
        InputError: more nodes or directed links than a topology may have.
    """
    for count, most, what in ((nodes, MAX_NODES, "nodes"), (links, MAX_LINKS, "links")):
        if count > most:
            raise InputError(f"it would have {count} {what}", hint=f"at most {most} can be handled")
