"""The networks that boxes plug into: rails, one switch, leaves and spines, fat tree, dragonfly, two planes.

Every port is cabled to a switch at its own rate; the switches above follow from what hangs below them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations, count

from dualcoll.errors import InputError
from dualcoll.topology.draft import NETWORK_LATENCY, Draft, check_size
from dualcoll.topology.model import Kind, SharedCapacity

__all__ = ["Network", "NetworkKind", "Port", "wire"]


class NetworkKind(StrEnum):
    """How the boxes are cabled."""

    RAIL = "rail"
    SINGLE_SWITCH = "single-switch"
    LEAF_SPINE = "leaf-spine"
    FAT_TREE = "fat-tree"
    DRAGONFLY = "dragonfly"
    DUAL_PLANE = "dual-plane"

    @property
    def has_rails(self) -> bool:
        """Whether the rail of a port decides about its leaf."""
        return self in (NetworkKind.RAIL, NetworkKind.DUAL_PLANE)


_TAKES = {
    NetworkKind.RAIL: {"spines", "oversubscription"},
    NetworkKind.SINGLE_SWITCH: set[str](),
    NetworkKind.LEAF_SPINE: {"spines", "oversubscription", "boxes_per_leaf"},
    NetworkKind.FAT_TREE: {"k", "oversubscription"},
    NetworkKind.DRAGONFLY: {"a", "p", "h"},
    NetworkKind.DUAL_PLANE: {"spines", "oversubscription"},
}


@dataclass(frozen=True, slots=True)
class Network:
    """What the boxes plug into; None means the default, and is all that a kind without that part accepts.

    Attributes:
        kind: rail (port i of every box to leaf i), single-switch, leaf-spine (a box's ports to one leaf), fat-tree,
            dragonfly (Kim et al. 2008) or dual-plane (two rail networks; every port is two of half its rate).
        spines: switches above the leaves, of each plane (default 4); used where there is more than one leaf.
        oversubscription: capacity below a leaf or edge switch over capacity above it (default 1, non-blocking).
        boxes_per_leaf: of leaf-spine (default 1).
        k: ports of each switch of a fat tree, even (default the smallest that fits).
        a, p, h: routers of a dragonfly's group, and ports and global links of a router (default a = 2p, h = p, and the
            smallest p that fits).
        latency: seconds a network link.

    Raises:
        InputError: a number out of range, or one that the kind has no use for.
    """

    kind: NetworkKind = NetworkKind.RAIL
    spines: int | None = None
    oversubscription: float | None = None
    boxes_per_leaf: int | None = None
    k: int | None = None
    a: int | None = None
    p: int | None = None
    h: int | None = None
    latency: float = NETWORK_LATENCY

    def __post_init__(self) -> None:
        for name in ("spines", "oversubscription", "boxes_per_leaf", "k", "a", "p", "h"):
            if getattr(self, name) is not None and name not in _TAKES[self.kind]:
                *most, last = (kind for kind, takes in _TAKES.items() if name in takes)
                users = f"{', '.join(most)} and {last}" if most else last
                raise InputError(f"{name} has no meaning for a {self.kind} network", hint=f"it belongs to {users}")
        for name in ("spines", "boxes_per_leaf", "a", "p", "h"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= 4096:
                raise InputError(f"{name} {value} is out of range", hint="use 1 to 4096")
        if self.oversubscription is not None and not 0.01 <= self.oversubscription <= 1000:
            raise InputError(f"oversubscription {self.oversubscription!r} is out of range", hint="use 0.01 to 1000")
        if self.k is not None and (self.k % 2 or not 2 <= self.k <= 256):
            raise InputError(f"k {self.k} is not an even number from 2 to 256")


@dataclass(frozen=True, slots=True)
class Port:
    """A network port to be cabled.

    Attributes:
        nodes: what sends and receives through it; several share its rate.
        box: number of its box.
        rail: used by networks with rails.
        rate: bytes/s each way; source: where it comes from.
    """

    nodes: tuple[int, ...]
    box: int
    rail: int
    rate: float
    source: str


def wire(draft: Draft, ports: Sequence[Port], network: Network) -> None:
    """Add the network that the ports plug into.

    Raises:
        InputError: more ports than the network's numbers allow, or more links than can be handled.
    """
    if ports:
        _WIRINGS[network.kind](draft, ports, network)


def _attach(draft: Draft, switch: int, ports: Sequence[Port], network: Network) -> float:
    """Cable the ports to the switch; the capacity below it. A port of several nodes is a cable for each that share its rate."""
    for port in ports:
        first = len(draft.links)
        for node in port.nodes:
            draft.cable(node, switch, port.rate, network.latency, port.source)
        if len(port.nodes) > 1:
            for way in range(2):
                cables = tuple(range(first + way, len(draft.links), 2))
                draft.shared.append(SharedCapacity(cables, port.rate, port.source))
    return sum(port.rate for port in ports)


def _grouped(ports: Sequence[Port], keys: Sequence[int]) -> dict[int, list[Port]]:
    groups: dict[int, list[Port]] = {key: [] for key in sorted(set(keys))}
    for port, key in zip(ports, keys, strict=True):
        groups[key].append(port)
    return groups


def _single_switch(draft: Draft, ports: Sequence[Port], network: Network) -> None:
    _attach(draft, draft.node("switch", Kind.SWITCH), ports, network)


def _rail(draft: Draft, ports: Sequence[Port], network: Network) -> None:
    _spread(draft, _grouped(ports, [port.rail for port in ports]), network)


def _leaf_spine(draft: Draft, ports: Sequence[Port], network: Network) -> None:
    _spread(draft, _grouped(ports, [port.box // (network.boxes_per_leaf or 1) for port in ports]), network)


def _dual_plane(draft: Draft, ports: Sequence[Port], network: Network) -> None:
    """Two rail networks side by side, as in Alibaba's HPN (Qian et al., SIGCOMM 2024)."""
    halves = [replace(port, rate=port.rate / 2, source=f"{port.source}; half of it in each plane") for port in ports]
    for plane in range(2):
        _spread(draft, _grouped(halves, [port.rail for port in halves]), network, f"plane{plane}.")


def _spread(draft: Draft, groups: dict[int, list[Port]], network: Network, prefix: str = "") -> None:
    """A leaf for each group of ports, and spines above all leaves if there are several."""
    leaves = {key: draft.node(f"{prefix}leaf{key}", Kind.SWITCH) for key in groups}
    below = {key: _attach(draft, leaves[key], groups[key], network) for key in groups}
    if len(groups) == 1:
        return
    spines, ratio = network.spines or 4, network.oversubscription or 1.0
    check_size(len(draft.nodes) + spines, len(draft.links) + 2 * len(leaves) * spines)
    source = f"derived: a leaf's ports / oversubscription {ratio:g} / {spines} spines"
    above = [draft.node(f"{prefix}spine{i}", Kind.SWITCH) for i in range(spines)]
    for key, leaf in leaves.items():
        for spine in above:
            draft.cable(leaf, spine, below[key] / ratio / spines, network.latency, source)


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


def _dragonfly(draft: Draft, ports: Sequence[Port], network: Network) -> None:
    """A dragonfly (Kim, Dally, Scott, Abts, ISCA 2008): p ports a router, a routers a group, all joined within a group.

    Every two groups are joined by as many of their a·h global links each as all can have. A group numbers its global
    links by how many groups further they lead, and gives them to its routers in turn; link s is counted from the other
    end as the s-th from the last.
    """
    p = network.p or next(p for p in count(1) if _room(*_radix(network, p)) >= len(ports))
    a, _, h = _radix(network, p)
    groups = -(-len(ports) // (a * p))
    if groups > a * h + 1:
        problem = f"{len(ports)} network ports do not fit a dragonfly of a = {a}, p = {p}, h = {h}"
        raise InputError(f"{problem} ({_room(a, p, h)} ports)", hint="raise one of them, or leave it out")
    each = a * h // (groups - 1) if groups > 1 else 0
    cables = groups * (a * (a - 1) + each * (groups - 1)) // 2
    check_size(len(draft.nodes) + groups * a, len(draft.links) + 2 * cables)
    routers = [draft.node(f"group{i // a}.router{i % a}", Kind.SWITCH) for i in range(groups * a)]
    for i, port in enumerate(ports):
        _attach(draft, routers[i // p], [port], network)
    rate = max(port.rate for port in ports)
    for first in range(0, groups * a, a):
        for one, other in combinations(routers[first : first + a], 2):
            draft.cable(one, other, rate, network.latency, "derived: a local link, as fast as the fastest port")
    last = each * (groups - 1) - 1
    for i, j in combinations(range(groups), 2):
        for s in range((j - i - 1) * each, (j - i) * each):
            one, other = routers[i * a + s % a], routers[j * a + (last - s) % a]
            draft.cable(one, other, rate, network.latency, "derived: a global link, as fast as the fastest port")


def _radix(network: Network, p: int) -> tuple[int, int, int]:
    """a, p and h: what is not given is balanced, a = 2p = 2h."""
    return network.a or 2 * p, p, network.h or p


def _room(a: int, p: int, h: int) -> int:
    """Ports of the largest dragonfly."""
    return a * p * (a * h + 1)


_WIRINGS: dict[NetworkKind, Callable[[Draft, Sequence[Port], Network], None]] = {
    NetworkKind.RAIL: _rail,
    NetworkKind.SINGLE_SWITCH: _single_switch,
    NetworkKind.LEAF_SPINE: _leaf_spine,
    NetworkKind.FAT_TREE: _fat_tree,
    NetworkKind.DRAGONFLY: _dragonfly,
    NetworkKind.DUAL_PLANE: _dual_plane,
}
