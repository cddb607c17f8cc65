"""The forwarding policy as an ordinary graph, so that a cheapest allowed route is a plain shortest path.

docs/model.md §2 lets a route leave its first node's box, cross the network, and enter its last node's box; NIC, CPU and PCIe
nodes serve only the first and the last part. Every node therefore appears in up to three parts:

* LEAVING: still in the box where the route began,
* CROSSING: in the network, where only unconditional forwarders may stand,
* ENTERING: in the box where the route must end,

and every rank as the start and as the end of routes. An arc is a link between two such states. Boxes without conditional
nodes need no LEAVING and ENTERING states, so a fabric of GPUs and switches gets one state per switch and two per rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.kernels.shortest_paths import shortest_paths
from dualcoll.topology.model import Forwarding, Topology, Transit, transit

__all__ = ["PolicyGraph", "hop_graph", "policy_graph", "require_connected"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class _Part(IntEnum):
    START = 0
    LEAVING = 1
    CROSSING = 2
    ENTERING = 3
    END = 4


@dataclass(frozen=True, slots=True)
class PolicyGraph:
    """States and arcs, in CSR by the arcs' tails.

    Attributes:
        ptr, head, link: int64 (V'+1,), (A,), (A,): arc ``a`` goes to state ``head[a]`` over link ``link[a]``.
        tail: int64 (A,).
        starts, ends: int64 (R,), states of each participant as a route's first and last node.
        unconditional: whether no node's permission depends on its box.
    """

    ptr: Ints
    head: Ints
    link: Ints
    tail: Ints
    starts: Ints
    ends: Ints
    unconditional: bool

    def distances(self, prices: Floats) -> tuple[Floats, Ints]:
        """Cheapest routes from every participant under link prices (E,): distances and arrival arcs, (R, V')."""
        shape = (self.starts.size, self.ptr.size - 1)
        distance, arrival = np.empty(shape), np.empty(shape, np.int64)
        shortest_paths(self.ptr, self.head, self.link, prices, self.starts, distance, arrival)
        return distance, arrival


def policy_graph(topology: Topology, participants: tuple[int, ...], forwarding: Forwarding) -> PolicyGraph:
    """Build the states and arcs for routes between the participants (node indices)."""
    return _graph(topology, participants, [transit(node.kind, forwarding) for node in topology.nodes])


def hop_graph(topology: Topology, participants: tuple[int, ...]) -> PolicyGraph:
    """The same where every node forwards anything."""
    return _graph(topology, participants, [Transit.ANY] * len(topology.nodes))


def _graph(topology: Topology, participants: tuple[int, ...], allowed: list[Transit]) -> PolicyGraph:
    nodes = topology.nodes
    conditional = {node.box for node, may in zip(nodes, allowed, strict=True) if may is Transit.OWN_BOX}
    taking_part = frozenset(participants)
    states: dict[tuple[int, _Part], int] = {}

    def state(node: int, part: _Part) -> int:
        return states.setdefault((node, part), len(states))

    starts = [state(node, _Part.START) for node in participants]
    ends = [state(node, _Part.END) for node in participants]
    arcs: list[tuple[int, int, int]] = []
    for e, link in enumerate(topology.links):
        a, b = link.tail, link.head
        own_box = nodes[a].box is not None and nodes[a].box == nodes[b].box
        in_split_box = own_box and nodes[a].box in conditional
        leaving = [
            part for part in (_Part.START, _Part.LEAVING) if _exists(part, nodes[a].box in conditional, allowed[a])
        ]
        if a not in taking_part:
            leaving = [part for part in leaving if part is not _Part.START]
        for part in leaving:
            if in_split_box and allowed[b] is not Transit.NONE:
                arcs.append((state(a, part), state(b, _Part.LEAVING), e))
            elif allowed[b] is Transit.ANY:
                arcs.append((state(a, part), state(b, _Part.CROSSING), e))
            elif allowed[b] is Transit.OWN_BOX:
                arcs.append((state(a, part), state(b, _Part.ENTERING), e))
        if allowed[a] is Transit.ANY and allowed[b] is Transit.ANY:
            arcs.append((state(a, _Part.CROSSING), state(b, _Part.CROSSING), e))
        if allowed[a] is Transit.ANY and allowed[b] is Transit.OWN_BOX:
            arcs.append((state(a, _Part.CROSSING), state(b, _Part.ENTERING), e))
        entering = in_split_box and allowed[a] is not Transit.NONE
        if entering and allowed[b] is not Transit.NONE:
            arcs.append((state(a, _Part.ENTERING), state(b, _Part.ENTERING), e))
        if b in taking_part:
            into = [*leaving, *([_Part.CROSSING] if allowed[a] is Transit.ANY else [])]
            into += [_Part.ENTERING] if entering else []
            arcs += [(state(a, part), state(b, _Part.END), e) for part in into]
    return _in_csr(arcs, len(states), starts, ends, unconditional=not conditional)


def _exists(part: _Part, box_is_split: bool, may: Transit) -> bool:
    return part is _Part.START or (box_is_split and may is not Transit.NONE)


def _in_csr(
    arcs: list[tuple[int, int, int]], states: int, starts: list[int], ends: list[int], *, unconditional: bool
) -> PolicyGraph:
    table = np.array(arcs, dtype=np.int64).reshape(-1, 3)
    order, ptr = _by_tail(table[:, 0], states)
    tail, head, link = (np.ascontiguousarray(table[order, k]) for k in range(3))
    return PolicyGraph(ptr, head, link, tail, np.array(starts, np.int64), np.array(ends, np.int64), unconditional)


def _by_tail(tail: Ints, states: int) -> tuple[Ints, Ints]:
    """CSR of arcs: their order by tail, and int64 (states+1,) where each tail's arcs begin."""
    ptr = np.zeros(states + 1, np.int64)
    np.cumsum(np.bincount(tail, minlength=states), out=ptr[1:])
    return np.argsort(tail, kind="stable"), ptr


def require_connected(topology: Topology, participants: tuple[int, ...], graph: PolicyGraph) -> None:
    """Make sure that every participant can send to every other, over further participants if need be.

    Raises:
        InputError: naming the ranks that cannot be reached, or cannot reach the others.
    """
    sends, hears = np.concatenate([graph.tail, graph.ends]), np.concatenate([graph.head, graph.starts])
    for tail, head, verb in ((sends, hears, "cannot be reached from"), (hears, sends, "cannot reach")):
        found = _reached(tail, head, graph.ptr.size - 1, graph.starts[0])[graph.starts]
        if not found.all():
            lost = [topology.nodes[participants[i]].name for i in np.flatnonzero(~found)]
            shown = ", ".join(lost[:8]) + (f" and {len(lost) - 8} more" if len(lost) > 8 else "")
            hint = (
                "GPUs and hosts forward nothing (see --forward), and a nic, cpu or pci node serves only its own box: "
            )
            raise InputError(
                f"rank {shown} {verb} {topology.nodes[participants[0]].name}",
                where=topology.name,
                hint=f"{hint}check the links and the nodes' boxes",
            )


def _reached(tail: Ints, head: Ints, states: int, source: int) -> NDArray[np.bool_]:
    """Which states a walk from the source gets to, bool (states,)."""
    order, ptr = _by_tail(tail, states)
    distance, arrival = np.empty((1, states)), np.empty((1, states), np.int64)
    shortest_paths(ptr, head[order], np.zeros(tail.size, np.int64), np.ones(1), np.array([source]), distance, arrival)
    return np.asarray(np.isfinite(distance[0]))
