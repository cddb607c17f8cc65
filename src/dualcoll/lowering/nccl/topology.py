"""NCCL topology files (``NCCL_TOPO_FILE``) of one box, as NCCL's loader takes them.

    system > cpu > pci (nested) > gpu > nvlink
                                > nic > net

The reader is the importer of :mod:`dualcoll.topology.importers`. NCCL finds the machine's devices by bus id, so the real ones
are needed for a file that a machine is to use; without, they are numbered, which is enough to study the file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dualcoll.errors import InputError
from dualcoll.files import atomic_write
from dualcoll.lowering.nccl.loader import element_text
from dualcoll.topology.devices import PCIE_X16, CpuKind, GpuModel, Rates, cpu_rate, gpu_model, pcie_rate
from dualcoll.topology.model import Kind, Link, Topology
from dualcoll.units import format_bandwidth

__all__ = ["topology_text", "write_topology"]

MBPS = 125_000  # bytes/s
LOCAL = 5000e9  # bytes/s inside a NUMA node or one chip, as NCCL counts
NVSWITCH = "0x068000"
SPEEDS = {gen: f"{text} GT/s PCIe" for gen, text in enumerate(("2.5", "5.0", "8.0", "16.0", "32.0", "64.0"), 1)}
WIDTHS = (16, 8, 4, 2, 1)
CLASSES = {Kind.GPU: "0x030200", Kind.NIC: "0x020700", Kind.PCI: "0x060400"}
CPUS = (  # processors by the GB/s between two of them, as NCCL counts
    CpuKind("x86_64", "AuthenticAMD", 143, 49),
    CpuKind("x86_64", "GenuineIntel", 6, 0x55),
    CpuKind("x86_64", "GenuineIntel", 6, 0x8F),
    CpuKind("x86_64", "GenuineIntel", 6, 0xCF),
    CpuKind("x86_64", "GenuineIntel", 6, 0x4F),
    CpuKind("ppc64"),
)


def topology_text(
    topology: Topology, gpu: str, *, rates: Rates = Rates.NOMINAL, busids: Mapping[str, str] | None = None
) -> str:
    """The file's content.

    A box without CPUs, such as one of the catalogue, gets one NUMA node and a PCIe switch for each GPU, with links of the
    model's generation, and a NIC there for the network ports of the GPU: the loader cannot do without.

    Args:
        topology: one box of NVIDIA GPUs. gpu: their model, such as ``"H100"``, which says what one NVLink carries.
        rates: whose figures the capacities are. busids: bus id of each GPU, NIC and PCIe node by name.

    Raises:
        InputError: several boxes, no NVIDIA GPUs, a link that the file cannot say, or a rate that no number of such links has.
    """
    model = gpu_model(gpu)
    if not model.arch.startswith("sm"):
        hint = "a file of version 1 is for NVIDIA GPUs; RCCL's own dump is the way for AMD"
        raise InputError(f"{model.name} is not by NVIDIA", where="gpu", hint=hint)
    boxes = sorted({node.box for node in topology.nodes if node.box is not None})
    if len(boxes) != 1:
        raise InputError(f"{len(boxes)} boxes", where=topology.name or "topology", hint="NCCL takes a file of one box")
    return _Writer(topology, model, rates, busids or {}).text()


def write_topology(
    topology: Topology,
    path: str | Path,
    gpu: str,
    *,
    rates: Rates = Rates.NOMINAL,
    busids: Mapping[str, str] | None = None,
) -> None:
    """Write the file, whole or not at all; the arguments are those of :func:`topology_text`.

    Raises:
        InputError: as there, or the file cannot be written.
    """
    atomic_write(path, topology_text(topology, gpu, rates=rates, busids=busids))


@dataclass(slots=True)
class _Writer:
    topology: Topology
    model: GpuModel
    rates: Rates
    busids: Mapping[str, str]
    made: dict[int, str] = field(default_factory=dict)  # bus id of each node
    nets: int = 0
    buses: int = 0
    seen: set[int] = field(default_factory=set)
    cables: dict[int, dict[int, Link]] = field(default_factory=dict)
    gpus: list[int] = field(default_factory=list)
    cpus: list[int] = field(default_factory=list)  # of CPUs, GPUs and cables: node indices

    def text(self) -> str:
        topology = self.topology
        self.cables: dict[int, dict[int, Link]] = defaultdict(dict)
        for link in topology.links:
            if link.head in self.cables[link.tail]:
                raise InputError("parallel links", where=self.where(link), hint="add them up into one")
            self.cables[link.tail][link.head] = link
        for row in topology.shared:
            if not row.source.startswith("Intel host bridge"):
                raise InputError("shared capacities have no place in the file", where=topology.name or "topology")
        self.gpus = [i for i, node in enumerate(topology.nodes) if node.kind is Kind.GPU]
        if not self.gpus:
            raise InputError("it has no GPU", where=topology.name or "topology")
        if wrong := [node.name for node in topology.nodes if node.kind is Kind.HOST]:
            raise InputError(f"{wrong[0]} is a host, not a GPU", where=topology.name or "topology")
        for node in self.gpus:
            self.busid(node)
        self.cpus = [i for i, node in enumerate(topology.nodes) if node.kind is Kind.CPU]
        children = self.below_cpus() if self.cpus else [self.made_up_cpu()]
        if missing := [i for i in self.placed_kinds() if i not in self.seen]:
            hint = "every GPU, NIC and PCIe node hangs below one CPU"
            raise InputError("no PCIe path leads to it", where=f"node {topology.nodes[missing[0]].name}", hint=hint)
        return element_text("system", {"version": 1}, children)

    def where(self, link: Link) -> str:
        return f"link {self.topology.nodes[link.tail].name} -> {self.topology.nodes[link.head].name}"

    def placed_kinds(self) -> list[int]:
        kinds = (Kind.GPU, Kind.NIC, Kind.PCI) if self.cpus else (Kind.GPU,)
        return [i for i, node in enumerate(self.topology.nodes) if node.kind in kinds]

    def busid(self, node: int) -> str:
        """The bus id given, the one in the name of an imported PCIe node, or the next free one."""
        if node not in self.made:
            name = self.topology.nodes[node].name
            given = self.busids.get(name) or (name.removeprefix("pci:") if name.startswith("pci:") else "")
            self.made[node] = given.lower() or self.next_busid()
            if list(self.made.values()).count(self.made[node]) > 1:
                raise InputError(
                    f"bus id {self.made[node]} is used twice", where=f"node {name}", hint="give each its own"
                )
        return self.made[node]

    def next_busid(self) -> str:
        taken = {*self.made.values(), *(busid.lower() for busid in self.busids.values())}
        taken |= {node.name.removeprefix("pci:") for node in self.topology.nodes if node.name.startswith("pci:")}
        while (busid := f"{self.buses // 256:04x}:{self.buses % 256:02x}:00.0") in taken:
            self.buses += 1
        self.buses += 1
        return busid

    def below_cpus(self) -> list[str]:
        kind = self.cpu_kind()
        texts = []
        for numa, cpu in enumerate(self.cpus):
            devices = [child for child in self.cables[cpu] if self.topology.nodes[child].kind in CLASSES]
            texts.append(self.cpu(numa, kind, [self.device(child, cpu, 4) for child in devices]))
        return texts

    def cpu_kind(self) -> CpuKind:
        between = {self.cables[a][b].capacity for a in self.cpus for b in self.cpus if b in self.cables[a]}
        full = sum(b in self.cables[a] for a in self.cpus for b in self.cpus)
        if full != len(self.cpus) * (len(self.cpus) - 1) or len(between) > 1:
            hint = "NCCL links every two NUMA nodes, all at one rate"
            raise InputError("the CPUs are not fully meshed at one rate", where=self.topology.name, hint=hint)
        charged = bool(self.topology.shared)
        for kind in CPUS:
            rate = cpu_rate(kind, kind)
            assert rate is not None
            if kind.is_intel >= charged and between <= {rate.capacity}:
                return kind
        figure = format_bandwidth(between.pop())
        raise InputError(f"NCCL knows no processors with {figure} between them", where=self.topology.name)

    def cpu(self, numa: int, kind: CpuKind, children: list[str]) -> str:
        attributes: dict[str, object] = {"numaid": numa, "arch": kind.arch}
        if kind.vendor:
            attributes |= {"vendor": kind.vendor, "familyid": kind.family, "modelid": kind.model}
        return element_text("cpu", attributes, children, 2)

    def device(self, node: int, parent: int, indent: int) -> str:
        """The pci element of a node and all that hangs below it."""
        up = self.cables[node].get(parent)
        down = self.cables[parent][node]
        if node in self.seen or up is None or up.capacity != down.capacity:
            hint = "PCIe is a tree of links that are alike both ways"
            raise InputError("it has two ways up, or differs between the two ways", where=self.where(down), hint=hint)
        self.seen.add(node)
        kind, ports = self.topology.nodes[node].kind, self.topology.nodes[node].ports
        if kind is Kind.NIC and down.capacity == LOCAL:
            return self.nic(ports, indent, self.topology.nodes[node].name)
        inner = indent + 2
        if kind is Kind.GPU:
            children = [self.gpu(node, inner)]
        elif kind is Kind.NIC:
            children = [self.nic(ports, inner, self.topology.nodes[node].name)]
        else:
            below = [i for i in self.cables[node] if i != parent and self.topology.nodes[i].kind in CLASSES]
            peers = [i for i in below if self.cables[node][i].capacity == LOCAL]
            children = [self.device(i, node, inner) for i in below if i not in peers]
            children += [element_text("pcilink", {"target": self.busid(i)}, None, inner) for i in peers]
        return self.pci(CLASSES[kind], self.busid(node), self.lanes(down), children, indent)

    def pci(self, cls: str, busid: str, lanes: tuple[int, int], children: list[str], indent: int) -> str:
        attributes: dict[str, object] = {
            "busid": busid,
            "class": cls,
            "link_speed": SPEEDS[lanes[0]],
            "link_width": lanes[1],
        }
        return element_text("pci", attributes, children, indent)

    def lanes(self, link: Link) -> tuple[int, int]:
        """PCIe generation and width of a rate, the widest that has it."""
        for width in WIDTHS:
            for gen in PCIE_X16:
                if abs(pcie_rate(gen, width, self.rates).capacity - link.capacity) <= 1e-6 * link.capacity:
                    return gen, width
        problem = f"{format_bandwidth(link.capacity)} is no PCIe link by {self.rates} rates"
        raise InputError(problem, where=self.where(link), hint="are they the other library's figures (rates)?")

    def nic(self, ports: tuple[float, ...], indent: int, name: str = "") -> str:
        nets = []
        names = name.split("+")
        for number, port in enumerate(ports, 1):
            speed = round(port / MBPS)
            if abs(speed * MBPS - port) > 1e-6 * port:
                raise InputError(f"a port of {format_bandwidth(port)} is no whole number of Mb/s", where="ports")
            attributes: dict[str, object] = {
                "name": names[number - 1] if name and len(names) == len(ports) else f"net{self.nets}",
                "dev": self.nets,
                "speed": speed,
                "port": number,
            }
            attributes |= {"guid": hex(self.nets - number + 2), "maxconn": 131072, "gdr": 1}
            nets.append(element_text("net", attributes, None, indent + 2))
            self.nets += 1
        return element_text("nic", {}, nets, indent)

    def gpu(self, node: int, indent: int) -> str:
        number = self.gpus.index(node)
        attributes: dict[str, object] = {"dev": number, "sm": self.model.arch[2:], "rank": number, "gdr": 1}
        return element_text(
            "gpu", attributes, [self.nvlink(node, link, indent + 2) for link in self.nvlinks(node)], indent
        )

    def nvlinks(self, node: int) -> list[Link]:
        ends = (Kind.GPU, Kind.SWITCH)
        return [link for link in self.cables[node].values() if self.topology.nodes[link.head].kind in ends]

    def nvlink(self, node: int, link: Link, indent: int) -> str:
        other = self.topology.nodes[link.head]
        if other.kind is Kind.SWITCH:
            switches = [n for n in self.topology.nodes if n.kind is Kind.SWITCH]
            back = self.cables[link.head].get(node)
            if len(switches) > 1 or back is None or back.capacity != link.capacity:
                hint = "NCCL takes all NVSwitch chips for one, alike both ways"
                raise InputError("no NVSwitch of NCCL's", where=self.where(link), hint=hint)
        each = self.model.link.nominal if self.rates is Rates.NOMINAL else self.model.link.counted
        count = round(link.capacity / (each * 1e9))
        if count < 1 or abs(count * each * 1e9 - link.capacity) > 1e-6 * link.capacity:
            problem = f"{format_bandwidth(link.capacity)} is no number of NVLinks of {each:g} GB/s ({self.rates})"
            raise InputError(
                problem, where=self.where(link), hint="check the GPU model, and whose figures the rates are"
            )
        target = self.busid(link.head)
        tclass = NVSWITCH if other.kind is Kind.SWITCH else CLASSES[Kind.GPU]
        return element_text("nvlink", {"target": target, "count": count, "tclass": tclass}, None, indent)

    def made_up_cpu(self) -> str:
        children = []
        lanes = (self.model.pcie, 16)
        for node in self.gpus:
            self.seen.add(node)
            below = [self.pci(CLASSES[Kind.GPU], self.busid(node), lanes, [self.gpu(node, 8)], 6)]
            if ports := self.topology.nodes[node].ports:
                below.append(self.pci(CLASSES[Kind.NIC], self.next_busid(), lanes, [self.nic(ports, 8)], 6))
            children.append(self.pci(CLASSES[Kind.PCI], self.next_busid(), lanes, below, 4))
        return self.cpu(0, CPUS[0], children)
