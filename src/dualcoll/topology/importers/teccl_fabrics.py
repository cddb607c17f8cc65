"""TE-CCL's named fabrics, as its public code builds them and as they were meant.

Link tables of microsoft/TE-CCL, ``teccl/topologies``; its files name a fabric and carry no links. Rates in bytes/s, latencies
in seconds. Nodes are named by TE-CCL's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dualcoll.errors import InputError
from dualcoll.topology.draft import check_size
from dualcoll.topology.model import Kind, Link, Node, Topology

__all__ = ["DGX1_CABLES", "FABRICS", "FabricName", "teccl_fabric"]

GB = 1e9
US = 1e-6
DGX1_CABLES = (  # ends, and parts of 25 GB/s
    *((pair, 2) for pair in ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7))),
    *((pair, 1) for pair in ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6))),
)
_AMD_CABLES = (  # ends, and parts of 50 GB/s
    *((pair, 4) for pair in ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13), (14, 15))),
    *((pair, 2) for pair in ((0, 4), (3, 7), (8, 12), (11, 15))),
    *(
        (pair, 1)
        for pair in ((0, 8), (1, 5), (1, 9), (1, 10), (2, 6), (2, 9), (2, 10), (3, 11), (4, 6), (5, 6), (5, 7))
    ),
    *((pair, 1) for pair in ((9, 13), (10, 14), (12, 14), (13, 14), (13, 15))),
)


@dataclass(frozen=True, slots=True)
class FabricName:
    """What a TE-CCL input file says of its fabric.

    Attributes:
        name: one of :data:`FABRICS`. chassis: boxes. side_length: of a mesh.
        alpha: latencies of links and of links of switches, seconds; NDv2 and DGX2 have their own.
    """

    name: str
    chassis: int = 1
    alpha: tuple[float, float] = (0.0, 0.0)
    side_length: int = 4

    @property
    def counted(self) -> int:
        """GPUs that TE-CCL counts when it works out a bandwidth."""
        boxes = {"DGX1": 8, "DGX2": 16, "NDv2": 8, "AMD": 16, "Mesh": self.side_length**2}
        return boxes[self.name] * self.chassis


@dataclass(slots=True)
class _Build:
    """Links between numbered nodes, which of these are switches, and what is wrong with it."""

    nodes: int
    links: dict[tuple[int, int], tuple[float, float]]  # ends -> rate, latency
    switches: set[int]
    box: dict[int, int]
    faults: list[str]

    @classmethod
    def of(cls, nodes: int) -> _Build:
        """Nodes of one box without links."""
        check_size(nodes, 0)
        return cls(nodes, {}, set(), dict.fromkeys(range(nodes), 0), [])

    def cables(
        self, cables: Iterable[tuple[tuple[int, int], int]], rate: float, latency: float, first: int = 0
    ) -> None:
        """Both directions of cables of so many parts, between nodes counted from ``first``."""
        for (a, b), parts in cables:
            for ends in ((first + a, first + b), (first + b, first + a)):
                self.links[ends] = (parts * rate, latency)


def teccl_fabric(which: FabricName, *, published: bool = True) -> Topology:
    """A named fabric.

    Args:
        which: the name and its parameters.
        published: exactly what TE-CCL's code builds, its faults named in the notes; else the fabric that was meant.

    Raises:
        InputError: an unknown name, numbers out of range, or chassis of a fabric that has one.
    """
    if which.name not in FABRICS:
        raise InputError(
            f"fabric {which.name[:60]!r} is not known", where="name", hint=f"use one of {', '.join(FABRICS)}"
        )
    if which.chassis < 1:
        raise InputError(f"{which.chassis} is below 1", where="chassis")
    if which.name == "Mesh" and which.side_length < 2:
        raise InputError(f"{which.side_length} is below 2", where="side_length")
    if which.name in ("DGX1", "Mesh") and which.chassis > 1 and not published:
        raise InputError(f"{which.name} is one box", where="chassis", hint="use 1, or NDv2 for several DGX-1 boxes")
    built = FABRICS[which.name](which, published)
    if which.name in ("DGX1", "Mesh") and which.chassis > 1:
        built.faults.append(f"chassis ignored: {which.name} is one box, and {which.chassis} are asked for")
    nodes = tuple(
        Node(
            str(i),
            Kind.SWITCH if i in built.switches else Kind.GPU,
            None,
            f"box{built.box[i]}" if i in built.box else None,
        )
        for i in range(built.nodes)
    )
    links = tuple(
        Link(tail, head, rate, latency, source="TE-CCL")
        for (tail, head), (rate, latency) in sorted(built.links.items())
    )
    several = f" x{which.chassis}" if which.chassis > 1 else ""
    side = f" {which.side_length}x{which.side_length}" if which.name == "Mesh" else ""
    return Topology(nodes, links, (), f"TE-CCL {which.name}{side}{several}", tuple(built.faults))


def _dgx1(which: FabricName, published: bool) -> _Build:
    built = _Build.of(8)
    built.cables(DGX1_CABLES, 25 * GB, which.alpha[0])
    return built


def _dgx2(which: FabricName, published: bool) -> _Build:
    """Boxes of 16 GPUs around a switch that comes first; every odd GPU joined one way to the even one before it elsewhere."""
    boxes = 2 if published else which.chassis
    built = _Build.of(17 * boxes)
    for box in range(boxes):
        first = 17 * box
        built.switches.add(first)
        built.box.update(dict.fromkeys(range(first, first + 17), box))
        built.cables((((0, i), 1) for i in range(1, 17)), 125 * GB, 0.35 * US, first)
        for other in set(range(boxes)) - {box}:
            for gpu in range(1, 17, 2):
                built.links[first + gpu + 1, 17 * other + gpu] = (12.5 * GB, 2.6 * US)
    if boxes != which.chassis:
        built.faults.append(f"chassis ignored: DGX2 is always two boxes, and {which.chassis} is asked for")
    return built


def _ndv2(which: FabricName, published: bool) -> _Build:
    """DGX-1 boxes: two joined by a link each way, more by a switch, number 0, from the first to the second GPU of each."""
    boxes = which.chassis
    first = int(boxes > 2 or (boxes == 1 and published))  # GPU 0
    built = _Build.of(8 * boxes + first)
    for box in range(boxes):
        begin = first + 8 * box
        built.box.update(dict.fromkeys(range(begin, begin + 8), box))
        built.cables(DGX1_CABLES, 25 * GB, 0.7 * US, begin)
        if first:
            built.links[begin, 0] = built.links[0, begin + 1] = (12.5 * GB, 1.3 * US)
    if first:
        built.switches.add(0)
        del built.box[0]
    if boxes == 1 and published:
        built.faults.append("switch in one box: node 0 is a switch that only leads from GPU 1 to GPU 2 of the same box")
    if boxes == 2:
        built.links[0, 9] = built.links[8, 1] = (12.5 * GB, 1.3 * US)
        if published:
            built.switches.add(0)
            built.faults.append(
                "15 GPUs: node 0, a GPU, is taken for a switch: it sends and gets nothing, and holds nothing"
            )
    return built


def _amd(which: FabricName, published: bool) -> _Build:
    """Boxes of 16; where there are several, a switch for every two GPUs, and one, number 0, that joins all switches."""
    boxes = which.chassis
    if boxes == 1:
        built = _Build.of(16)
        built.cables(_AMD_CABLES, 50 * GB, which.alpha[0])
        return built
    built = _Build.of(24 * boxes + 1)
    built.switches.add(0)
    del built.box[0]
    off = int(published)
    for box in range(boxes):
        begin = 1 + 24 * box
        built.box.update(dict.fromkeys(range(begin, begin + 24), box))
        built.cables(_AMD_CABLES, 50 * GB, which.alpha[0], begin)
        for i in range(16):
            built.cables([((i, 16 + i // 2), 1)], 25 * GB, which.alpha[1], begin)
        if published:
            built.cables([((i, 16), 1) for i in (0, 1)], 50 * GB, which.alpha[0], begin)
        for i in range(8):
            switch = begin + 16 + i - off
            built.switches.add(switch)
            built.cables([((0, switch), 1)], 25 * GB, which.alpha[1])
    if published:
        built.faults += [
            "switches off by one: in each box the last GPU is taken for a switch and joined to switch 0, and the last "
            "switch is taken for a GPU and is not",
            "link class off by one: in each box the links of the first switch have the rate and latency of GPU links",
        ]
    return built


def _mesh(which: FabricName, published: bool) -> _Build:
    """A square grid."""
    side = which.side_length
    built = _Build.of(side**2)
    step = [((i, i + 1), 1) for i in range(side**2 - 1) if published or (i + 1) % side]
    built.cables(step + [((i, i + side), 1) for i in range(side * (side - 1))], 100 * GB, which.alpha[0])
    if published:
        built.faults.append("row-wrap links: the last node of each row is joined to the first of the next")
    return built


FABRICS: dict[str, Callable[[FabricName, bool], _Build]] = {
    "DGX1": _dgx1,
    "DGX2": _dgx2,
    "NDv2": _ndv2,
    "AMD": _amd,
    "Mesh": _mesh,
}
