"""A fabric without what has failed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dualcoll.errors import InputError
from dualcoll.topology.model import Topology

__all__ = ["without"]


def without(topology: Topology, failed: Iterable[str]) -> Topology:
    """The fabric without some nodes and links.

    Args:
        topology: the fabric.
        failed: names of nodes; links as ``"a -> b"`` (``"a -> b (cable 1)"`` of parallel ones); or ``"a - b"``, all cables
            between two nodes, both ways.

    Raises:
        InputError: a name that names nothing.
    """
    dead_nodes: set[int] = set()
    dead_links: set[int] = set()
    texts = topology.describe_links()
    for name in failed:
        ends = [topology.index.get(end.strip(), -1) for end in name.split(" - ")]
        if name in topology.index:
            dead_nodes.add(topology.index[name])
        elif name in texts:
            dead_links.add(texts.index(name))
        elif len(ends) == 2 and min(ends) >= 0:
            between = {e for e, link in enumerate(topology.links) if {link.tail, link.head} == set(ends)}
            if not between:
                raise InputError(f"no cable joins {name}", where=topology.name)
            dead_links |= between
        else:
            hint = f"name a node, such as {topology.nodes[0].name}, or a link, such as {texts[0]!r}" if texts else ""
            raise InputError(f"there is no node or link {name[:60]!r}", where=topology.name, hint=hint)
    kept = [i for i in range(len(topology.nodes)) if i not in dead_nodes]
    place = {node: i for i, node in enumerate(kept)}
    alive = [
        e for e, link in enumerate(topology.links) if e not in dead_links and link.tail in place and link.head in place
    ]
    number = {e: i for i, e in enumerate(alive)}
    shared = [replace(row, links=tuple(number[e] for e in row.links if e in number)) for row in topology.shared]
    return Topology(
        tuple(topology.nodes[i] for i in kept),
        tuple(
            replace(topology.links[e], tail=place[topology.links[e].tail], head=place[topology.links[e].head])
            for e in alive
        ),
        tuple(row for row in shared if row.links),
        topology.name,
        topology.notes,
    )
