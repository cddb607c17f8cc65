"""Fabrics for tests, yours included: degraded copies of a fabric, and small random ones.

Everything follows from ``seed``.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np

from dualcoll.errors import InputError
from dualcoll.topology.model import Kind, Link, Node, SharedCapacity, Topology

__all__ = ["degrade", "network_cables", "random_fabric"]


def degrade(
    topology: Topology, seed: int, fraction: float = 0.1, low: float = 0.2, *, symmetric: bool = True
) -> Topology:
    """A copy with some network cables slowed down.

    Each network cable, independently with probability ``fraction``, has its capacity scaled by a factor drawn evenly from
    [low, 1]. A network cable ends at a switch that stands in no box, or joins two boxes. Shared capacities stay.

    Args:
        topology: the fabric.
        seed: of ``numpy.random.default_rng``; cables draw in link order.
        fraction: probability, in [0, 1].
        low: the least factor, in (0, 1].
        symmetric: both directions of a cable alike; otherwise each link draws for itself.

    Raises:
        InputError: fraction or low out of range.
    """
    if not 0 <= fraction <= 1:
        raise InputError(f"fraction {fraction!r} is not in [0, 1]")
    if not 0 < low <= 1:
        raise InputError(f"low {low!r} is not in (0, 1]")
    cables = network_cables(topology)
    if not symmetric:
        cables = tuple((link,) for link in sorted(link for cable in cables for link in cable))
    rng = np.random.default_rng(seed)
    links = list(topology.links)
    for cable in cables:
        if rng.random() < fraction:
            factor = low + (1 - low) * float(rng.random())
            for e in cable:
                source = f"degraded to {100 * factor:.3g} %: {links[e].source}"
                links[e] = replace(links[e], capacity=links[e].capacity * factor, source=source)
    return replace(topology, links=tuple(links))


def network_cables(topology: Topology) -> tuple[tuple[int, ...], ...]:
    """The network cables as link indices, in the order of their first link: two directions each, or one if one-way."""
    nodes = topology.nodes
    groups: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    for e, link in enumerate(topology.links):
        boxes = nodes[link.tail].box, nodes[link.head].box
        if None in boxes or boxes[0] != boxes[1]:
            groups[link.tail, link.head, link.id].append(e)
    cables: list[tuple[int, ...]] = []
    for (tail, head, name), forward in groups.items():
        backward = groups.get((head, tail, name), [])
        # alike capacities make a cable, then link order
        ranked = [sorted(side, key=lambda e: (topology.links[e].capacity, e)) for side in (forward, backward)]
        if tail < head or not backward:
            cables += [tuple(sorted(pair)) for pair in zip(*ranked, strict=False)]
            paired = min(len(forward), len(backward))
            cables += [(e,) for side in ranked for e in side[paired:]]
    return tuple(sorted(cables))


def random_fabric(
    seed: int,
    ranks: int = 5,
    switches: int = 3,
    *,
    symmetric: bool = True,
    conditional: bool = False,
    shared: bool = False,
) -> Topology:
    """A small connected fabric with whole GB/s, parallel cables and GPUs that are no ranks, its nodes in random order.

    Under the default forwarding policy every rank reaches every other, over switches and, between tree neighbours, over
    other ranks.

    Args:
        seed: of ``numpy.random.default_rng``.
        ranks: GPUs that take part, named g0, g1, …; at least 2.
        switches: network switches; at least 1 if ``conditional``.
        symmetric: both directions of a cable alike; otherwise they differ and there are one-way links.
        conditional: stand the GPUs in boxes with CPU, PCIe and NIC nodes, through which alone they reach the network.
        shared: put shared capacities over some cables.

    Raises:
        InputError: too few ranks or switches.
    """
    if ranks < 2 or switches < (1 if conditional else 0):
        raise InputError(f"{ranks} ranks and {switches} switches are too few")
    growth = _Growth(np.random.default_rng(seed), symmetric)
    names = [f"s{i}" for i in range(switches)]
    for name in names:
        growth.add(Node(name, Kind.SWITCH))
    if conditional:
        growth.tree(names)
        _add_boxes(growth, ranks, names)
    else:
        _add_gpus(growth, ranks, names)
    return growth.topology(f"random fabric {seed}", shared)


@dataclass(slots=True)
class _Growth:
    """A fabric that grows by name; node order is drawn at the end."""

    rng: np.random.Generator
    symmetric: bool
    nodes: list[Node] = field(default_factory=list)
    cables: list[list[tuple[str, str, float]]] = field(default_factory=list)

    def add(self, node: Node) -> None:
        self.nodes.append(node)

    def pick(self, names: list[str]) -> str:
        return names[int(self.rng.integers(len(names)))]

    def rate(self) -> float:
        return float(self.rng.integers(1, 13)) * 1e9

    def cable(self, tail: str, head: str) -> None:
        rate = self.rate()
        self.cables.append([(tail, head, rate), (head, tail, rate if self.symmetric else self.rate())])

    def tree(self, names: list[str]) -> None:
        for i, name in enumerate(names[1:], 1):
            self.cable(name, self.pick(names[:i]))

    def chords(self, names: list[str], count: int) -> None:
        """Extra cables, parallel ones among them; some one-way where directions may differ."""
        for _ in range(count):
            tail, head = self.pick(names), self.pick(names)
            if tail == head:
                continue
            self.cable(tail, head)
            if not self.symmetric and self.rng.random() < 0.5:
                self.cables[-1].pop()

    def topology(self, name: str, shared: bool) -> Topology:
        order = [self.nodes[i] for i in self.rng.permutation(len(self.nodes)).tolist()]
        index = {node.name: i for i, node in enumerate(order)}
        links: list[Link] = []
        rows: list[SharedCapacity] = []
        for cable in self.cables:
            if shared and self.rng.random() < 0.3:
                total = max(1.0, sum(rate for *_, rate in cable) / 1e9 - 1) * 1e9
                rows.append(SharedCapacity(tuple(range(len(links), len(links) + len(cable))), total))
            links += [Link(index[tail], index[head], rate, 1e-6) for tail, head, rate in cable]
        return Topology(tuple(order), tuple(links), tuple(rows), name)


def _add_gpus(growth: _Growth, ranks: int, switches: list[str]) -> None:
    """Ranks and switches in a random tree with chords; GPUs that are no ranks hang on it."""
    names = [f"g{i}" for i in range(ranks)]
    for name in names:
        growth.add(Node(name, Kind.GPU))
    members = [*switches, *names]
    members = [members[i] for i in growth.rng.permutation(len(members)).tolist()]
    growth.tree(members)
    growth.chords(members, ranks)
    for i in range(int(growth.rng.integers(3))):
        growth.add(Node(f"x{i}", Kind.GPU, rank=False))
        for _ in range(2):
            growth.cable(f"x{i}", growth.pick(members))


def _add_boxes(growth: _Growth, ranks: int, switches: list[str]) -> None:
    """Boxes of one to three GPUs under a PCIe switch, which a CPU and one or two NICs share."""
    placed = box = 0
    while placed < ranks:
        name = f"b{box}"
        pci, cpu = f"{name}.pci", f"{name}.cpu"
        growth.add(Node(pci, Kind.PCI, box=name))
        growth.add(Node(cpu, Kind.CPU, box=name))
        growth.cable(pci, cpu)
        gpus = [f"g{i}" for i in range(placed, min(ranks, placed + int(growth.rng.integers(1, 4))))]
        for gpu in gpus:
            growth.add(Node(gpu, Kind.GPU, box=name))
            growth.cable(gpu, pci)
        growth.chords(gpus, 1)
        for i in range(int(growth.rng.integers(1, 3))):
            growth.add(Node(f"{name}.nic{i}", Kind.NIC, box=name))
            growth.cable(f"{name}.nic{i}", growth.pick([pci, cpu]))
            growth.cable(f"{name}.nic{i}", growth.pick(switches))
        if growth.rng.random() < 0.3:
            growth.add(Node(f"x{box}", Kind.GPU, rank=False, box=name))
            growth.cable(f"x{box}", pci)
        placed, box = placed + len(gpus), box + 1
