"""Small fabrics written as text: ``"g0-s:10, g1>g0:3, g2-g3:4/2"`` in GB/s.

``a-b:5`` is a cable, ``a-b:5/3`` one whose way back is slower, ``a>b:5`` a one-way link. A name's first letter is its kind:
g GPU, x GPU that is no rank, s switch, n NIC, c CPU, p PCIe, h host. Nodes stand in the order in which they appear.
"""

from __future__ import annotations

import re

from dualcoll.topology.model import Kind, Link, Node, SharedCapacity, Topology

__all__ = ["GB", "fabric"]

GB = 1e9
_KINDS = {
    "g": Kind.GPU,
    "x": Kind.GPU,
    "s": Kind.SWITCH,
    "n": Kind.NIC,
    "c": Kind.CPU,
    "p": Kind.PCI,
    "h": Kind.HOST,
}


def fabric(
    cables: str, *, boxes: str = "", ranks: str = "", shared: str = "", latency: float = 1e-6, name: str = ""
) -> Topology:
    """The fabric of these cables.

    Args:
        boxes: ``"b0: g0 g1; b1: g2"``; the rest is derived.
        ranks: further nodes that are ranks.
        shared: ``"0 1: 5; 2 3: 4"``, GB/s over cables, by position, both directions together.
    """
    box_of = {node: box.strip() for box, nodes in _pairs(boxes) for node in nodes.split()}
    index: dict[str, int] = {}
    links: list[Link] = []
    of_cable: list[list[int]] = []
    for cable in cables.split(","):
        match = re.fullmatch(r"\s*(\w+)([->])(\w+):([\d.e+-]+)(?:/([\d.e+-]+))?\s*", cable)
        assert match is not None, cable
        tail, head = (index.setdefault(match[i], len(index)) for i in (1, 3))
        of_cable.append([len(links)])
        links.append(Link(tail, head, float(match[4]) * GB, latency))
        if match[2] == "-":
            of_cable[-1].append(len(links))
            links.append(Link(head, tail, float(match[5] or match[4]) * GB, latency))
    rank_names = ranks.split()
    nodes = tuple(
        Node(node, _KINDS[node[0]], True if node in rank_names else False if node[0] == "x" else None, box_of.get(node))
        for node in index
    )
    rows = tuple(
        SharedCapacity(tuple(e for i in which.split() for e in of_cable[int(i)]), float(rate) * GB)
        for which, rate in _pairs(shared)
    )
    return Topology(nodes, tuple(links), rows, name)


def _pairs(text: str) -> list[tuple[str, str]]:
    items = (item.partition(":") for item in text.split(";") if item.strip())
    return [(key, value) for key, _, value in items]
