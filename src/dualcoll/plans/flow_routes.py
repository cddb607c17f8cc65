"""Is a list of links, or of links with shares, a way from one node to another?"""

from __future__ import annotations

from collections import defaultdict
from graphlib import CycleError, TopologicalSorter

from dualcoll.topology.model import Topology

__all__ = ["fault_of_route"]

BALANCE = 1e-9  # what the shares of sprayed traffic may be out by at a node


def fault_of_route(
    topology: Topology, ends: tuple[int, int], links: tuple[int, ...], share: tuple[float, ...] | None
) -> str:
    """What keeps it from leading from the first end to the second; empty if nothing does.

    Args:
        topology: the fabric.
        ends: node indices.
        links: link indices, in travelling order unless traffic is sprayed.
        share: the part of the traffic on each link; None means one path.
    """
    if ends[0] == ends[1]:
        return f"it starts and ends at {topology.nodes[ends[0]].name}"
    if not links:
        return "its route is empty"
    if min(links) < 0 or max(links) >= len(topology.links):
        return "its route uses a link that does not exist"
    return _fault_of_path(topology, ends, links) if share is None else _fault_of_spray(topology, ends, links, share)


def _fault_of_path(topology: Topology, ends: tuple[int, int], links: tuple[int, ...]) -> str:
    nodes, at = topology.nodes, ends[0]
    seen = {at}
    for e in links:
        link = topology.links[e]
        if link.tail != at:
            return f"its route is at {nodes[at].name} and goes on from {nodes[link.tail].name}"
        at = link.head
        if at in seen:
            return f"its route visits {nodes[at].name} twice"
        seen.add(at)
    return "" if at == ends[1] else f"its route ends at {nodes[at].name}, not at {nodes[ends[1]].name}"


def _fault_of_spray(
    topology: Topology, ends: tuple[int, int], links: tuple[int, ...], shares: tuple[float, ...]
) -> str:
    if len(shares) != len(links):
        return f"{len(shares)} shares for {len(links)} links"
    balance = defaultdict(float, {ends[0]: 1.0, ends[1]: -1.0})
    before: dict[int, list[int]] = defaultdict(list)
    seen: set[int] = set()
    for e, share in zip(links, shares, strict=True):
        link = topology.links[e]
        if e in seen:
            return f"its spray has the link {topology.describe_link(e)} twice"
        if not 0 < share <= 1:
            return f"its share {share!r} on {topology.describe_link(e)} is not in (0, 1]"
        seen.add(e)
        balance[link.tail] -= share
        balance[link.head] += share
        before[link.head].append(link.tail)
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        return f"its spray runs in a circle: {' -> '.join(topology.nodes[node].name for node in error.args[1])}"
    for node in sorted(balance, key=lambda node: node in ends):
        left = balance[node]
        if abs(left) > BALANCE:
            verb = "stays" if left > 0 else "is missing"
            return f"a part {abs(left):.6g} of its traffic {verb} at {topology.nodes[node].name}"
    return ""
