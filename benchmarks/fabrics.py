"""The fabrics that ForestColl's times were taken on, link by link."""

from __future__ import annotations

from dualcoll.topology.model import Kind, Link, Node, Topology

__all__ = ["a100_boxes", "h100_boxes", "mi250_boxes"]

GB = 1e9
LATENCY = 1e-6
XGMI = (  # two GCDs of an MI250 box and the 50 GB/s links between them
    "0-1:4 0-4:2 0-8:1 1-5:1 1-9:1 1-10:1 2-3:4 2-6:1 2-9:1 2-10:1 3-7:2 3-11:1 4-5:4 4-6:1 5-6:1 5-7:1 "
    "6-7:4 8-9:4 8-12:2 9-13:1 10-11:4 10-14:1 11-15:2 12-13:4 12-14:1 13-14:1 13-15:1 14-15:4"
)


class _Wiring:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.links: list[Link] = []

    def node(self, name: str, kind: Kind, box: str | None = None) -> str:
        self.nodes[name] = Node(name, kind, None, box)
        return name

    def cable(self, one: str, other: str, rate: float) -> None:
        number = list(self.nodes)
        ends = number.index(one), number.index(other)
        self.links += [Link(*ends, rate * GB, LATENCY), Link(*ends[::-1], rate * GB, LATENCY)]

    def fabric(self, name: str) -> Topology:
        return Topology(tuple(self.nodes.values()), tuple(self.links), (), name)


def a100_boxes(count: int) -> Topology:
    """Boxes of eight GPUs at 300 around NVSwitch, each GPU with a NIC of 25; NIC i on InfiniBand switch i mod 2."""
    wiring = _Wiring()
    networks = [wiring.node(f"ib{i}", Kind.SWITCH) for i in range(2)]
    for box in range(count):
        switch = wiring.node(f"nv{box}", Kind.SWITCH, f"b{box}")
        for i in range(8):
            gpu = wiring.node(f"g{box}.{i}", Kind.GPU, f"b{box}")
            nic = wiring.node(f"n{box}.{i}", Kind.SWITCH, f"b{box}")
            wiring.cable(gpu, switch, 300)
            wiring.cable(gpu, nic, 25)
            wiring.cable(nic, networks[i % 2], 25)
    return wiring.fabric(f"{count} A100 boxes")


def h100_boxes(count: int) -> Topology:
    """Boxes of eight GPUs at 450 around NVSwitch, each GPU at 50 on the one InfiniBand switch."""
    wiring = _Wiring()
    network = wiring.node("ib", Kind.SWITCH)
    for box in range(count):
        switch = wiring.node(f"nv{box}", Kind.SWITCH, f"b{box}")
        for i in range(8):
            gpu = wiring.node(f"g{box}.{i}", Kind.GPU, f"b{box}")
            wiring.cable(gpu, switch, 450)
            wiring.cable(gpu, network, 50)
    return wiring.fabric(f"{count} H100 boxes")


def mi250_boxes(count: int) -> Topology:
    """Boxes of 16 GCDs on xGMI links of 50, each GCD at 16 on the one InfiniBand switch."""
    wiring = _Wiring()
    network = wiring.node("ib", Kind.SWITCH)
    for box in range(count):
        for i in range(16):
            wiring.cable(wiring.node(f"g{box}.{i}", Kind.GPU, f"b{box}"), network, 16)
        for text in XGMI.split():
            pair, links = text.split(":")
            one, other = pair.split("-")
            wiring.cable(f"g{box}.{one}", f"g{box}.{other}", 50 * int(links))
    return wiring.fabric(f"{count} MI250 boxes")
