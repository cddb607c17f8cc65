"""Fabrics of the TE-CCL paper and its relatives, link by link. Rates in bytes/s, latencies in seconds."""

from __future__ import annotations

from dualcoll.topology.model import Kind, Link, Node, Topology

__all__ = ["GB", "US", "dgx1", "dgx2", "h100", "mesh", "ndv2", "star"]

GB = 1e9
US = 1e-6
FIFTY = ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7))  # pairs of GPUs at 50 GB/s
TWENTY_FIVE = ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6))


def cables(pairs: tuple[tuple[int, int], ...], rate: float, latency: float, first: int = 0) -> list[Link]:
    """Both directions of cables between nodes counted from ``first``."""
    return [Link(first + t, first + h, rate, latency) for a, b in pairs for t, h in ((a, b), (b, a))]


def gpus(count: int, box: int = 0) -> list[Node]:
    """GPUs of one box."""
    return [Node(f"g{box}.{i}", Kind.GPU, None, f"b{box}") for i in range(count)]


def dgx1(alpha: float = 0.0) -> Topology:
    """Eight GPUs on NVLink cables of 50 and 25 GB/s."""
    links = cables(FIFTY, 50 * GB, alpha) + cables(TWENTY_FIVE, 25 * GB, alpha)
    return Topology(tuple(gpus(8)), tuple(links), (), "DGX-1")


def ndv2(boxes: int) -> Topology:
    """DGX-1 boxes. Two are joined by one-way links from GPU 0 of one to GPU 1 of the other, more by one switch."""
    nodes = [node for box in range(boxes) for node in gpus(8, box)]
    links = []
    for box in range(boxes):
        links += cables(FIFTY, 50 * GB, 0.7 * US, 8 * box) + cables(TWENTY_FIVE, 25 * GB, 0.7 * US, 8 * box)
    if boxes == 2:
        links += [Link(0, 9, 12.5 * GB, 1.3 * US), Link(8, 1, 12.5 * GB, 1.3 * US)]
    elif boxes > 2:
        switch = len(nodes)
        nodes.append(Node("ib", Kind.SWITCH))
        for box in range(boxes):
            links.append(Link(8 * box, switch, 12.5 * GB, 1.3 * US))
            links.append(Link(switch, 8 * box + 1, 12.5 * GB, 1.3 * US))
    return Topology(tuple(nodes), tuple(links), (), f"{boxes} NDv2 boxes")


def dgx2(boxes: int = 2) -> Topology:
    """Boxes of 16 GPUs around an NVSwitch, every odd GPU joined one way to the even one before it in the next box."""
    nodes: list[Node] = []
    links: list[Link] = []
    for box in range(boxes):
        first = len(nodes)
        nodes += [*gpus(16, box), Node(f"nv{box}", Kind.SWITCH, None, f"b{box}")]
        links += cables(tuple((i, 16) for i in range(16)), 125 * GB, 0.35 * US, first)
    for box in range(boxes):
        for other in range(boxes):
            if other != box:
                links += [Link(17 * box + i + 1, 17 * other + i, 12.5 * GB, 2.6 * US) for i in range(0, 16, 2)]
    return Topology(tuple(nodes), tuple(links), (), f"{boxes} DGX-2 boxes")


def h100(boxes: int) -> Topology:
    """Boxes of eight GPUs at 450 GB/s around an NVSwitch, each GPU at 50 GB/s on the one InfiniBand switch."""
    nodes = [Node("ib", Kind.SWITCH)]
    links = []
    for box in range(boxes):
        first = len(nodes)
        nodes += [*gpus(8, box), Node(f"nv{box}", Kind.SWITCH, None, f"b{box}")]
        links += cables(tuple((i, 8) for i in range(8)), 450 * GB, 0.35 * US, first)
        links += [Link(*ends, 50 * GB, 1.3 * US) for i in range(8) for ends in ((first + i, 0), (0, first + i))]
    return Topology(tuple(nodes), tuple(links), (), f"{boxes} H100 boxes")


def mesh(side: int) -> Topology:
    """A square grid of GPUs, links of 1 GB/s."""
    across = tuple((side * r + c, side * r + c + 1) for r in range(side) for c in range(side - 1))
    down = tuple((side * r + c, side * r + c + side) for r in range(side - 1) for c in range(side))
    return Topology(tuple(gpus(side * side)), tuple(cables(across + down, GB, 0.0)), (), f"mesh {side}x{side}")


def star() -> Topology:
    """GPU s on GPU h, and h on GPUs d1, d2 and d3, each cable 1 MB/s both ways."""
    nodes = tuple(Node(name, Kind.GPU, None, "box") for name in ("s", "h", "d1", "d2", "d3"))
    return Topology(nodes, tuple(cables(((0, 1), (1, 2), (1, 3), (1, 4)), 1e6, 0.0)), (), "star")
