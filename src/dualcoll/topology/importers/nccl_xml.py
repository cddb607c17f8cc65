"""NCCL and RCCL topology XML (what ``NCCL_TOPO_DUMP_FILE`` writes and ``NCCL_TOPO_FILE`` reads): bytes to a topology.

Every GPU, NIC and NUMA node (kind ``cpu``) is a node, every PCIe bridge with a device below it too (kind ``pci``), all NVSwitch
chips of a domain are one. A PCI entry that holds one device is that device. The link above an entry carries its own link_speed
x link_width, as in NCCL. Network ports are :attr:`Node.ports`. Links of a box are given :data:`BOX_LATENCY`.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import PurePath

from dualcoll.errors import InputError
from dualcoll.topology.devices import Rate, Rates, cpu_rate, local_rate
from dualcoll.topology.draft import BOX_LATENCY, Draft
from dualcoll.topology.importers.nccl_links import Placed, wire_gpu_links
from dualcoll.topology.importers.nccl_pci import LinkSpeeds
from dualcoll.topology.importers.nccl_records import Cpu, Gpu, Net, Nic, Pci, System, read_system
from dualcoll.topology.importers.nccl_roles import assign_roles
from dualcoll.topology.importers.options import (
    NIC_HINT,
    CpuLinks,
    GpuChoice,
    ImportOptions,
    NicChoice,
    Pcie,
    counted,
    refuse_unknown,
    unused_flags,
)
from dualcoll.topology.importers.wiring import wire_by_model
from dualcoll.topology.importers.xml_tree import parse_xml
from dualcoll.topology.model import Kind, Link, SharedCapacity, Topology
from dualcoll.units import format_bandwidth

__all__ = ["import_nccl_xml"]

MBPS = 125_000.0  # bytes/s
DEFAULT_SPEED = 10_000  # Mb/s, what NCCL takes for a speed <= 0
FASTEST_PORT = 3_200_000  # Mb/s; more than any port has


def import_nccl_xml(data: bytes, where: str, options: ImportOptions) -> Topology:
    """Read a full dump, a cloud skeleton (``--gpu`` and ``--nic`` needed) or a list of bus ids (named by them).

    Raises:
        InputError: broken XML, an unknown version, contradictions in it, or something missing that a flag must say.
    """
    system = read_system(parse_xml(data, where), where)
    return _Reader(system, options).read()


class _Reader:
    def __init__(self, system: System, options: ImportOptions) -> None:
        self.system, self.options = system, options
        self.gpu, self.nic = GpuChoice.of(options), NicChoice.of(options)
        self.speeds, self.sockets = LinkSpeeds(Pcie(options, self.gpu)), CpuLinks.of(options)
        self.draft = Draft()
        self.gpus: dict[int, Placed] = {}  # by id() of the record
        self.entries: dict[tuple[int, str], int] = {}  # nodes of PCI entries by host and bus id
        self.names: Counter[str] = Counter()
        self.nics = 0
        self.notes: list[str] = []
        self.nic_ids: list[str] = []  # what --nic may call them
        self.said_ports = 0
        self.odd_ports: dict[bool, list[str]] = {True: [], False: []}  # by whether --nic replaces the speed
        self.default_ports: list[str] = []
        self.crowded: list[str] = []

    def read(self) -> Topology:
        """The topology: GPUs in rank order, then CPUs, each with what hangs below it."""
        skeleton, notes = assign_roles(self.system, self.gpu, self.nic)
        self.notes += notes
        self._place_gpus()
        cpus = [
            self.draft.node(self._name(cpu.host, f"cpu{cpu.numa}"), Kind.CPU, _box(cpu)) for cpu in self.system.cpus
        ]
        for cpu, node in zip(self.system.cpus, cpus, strict=True):
            for pci in cpu.pcis:
                self._place_pci(pci, cpu, node, node)
            for nic in cpu.nics:
                self._place_nic(nic, cpu, node, local_rate(5000, "inside the NUMA node"))
        self._link_peers()
        self._mesh_cpus(cpus)
        self._wire_gpus(skeleton)
        self._note_ports()
        self._check_flags()
        notes = self.notes + self.speeds.notes()
        return self.draft.topology(PurePath(self.system.where).name, tuple(dict.fromkeys(notes)))

    def _name(self, host: int, text: str) -> str:
        """A name unique in the topology."""
        name = f"host{host}/{text}" if self.system.hosts > 1 else text
        name = "".join(c if c.isprintable() else "?" for c in name)[:200]
        self.names[name] += 1
        return name if self.names[name] == 1 else self._name(host, f"{text[:180]}#{self.names[name]}")

    def _place_gpus(self) -> None:
        """Nodes of the GPUs, in rank order; in file order where ranks are missing."""
        found = [(cpu, pci, gpu) for cpu, pci in self.system.pcis() for gpu in pci.gpus]
        ranks = [gpu.rank for _, _, gpu in found]
        order = list(range(len(found)))
        if all(rank is not None for rank in ranks):
            first: dict[int | None, int] = {}
            for _, _, gpu in found:
                if first.setdefault(gpu.rank, gpu.line) != gpu.line:
                    raise InputError(
                        f"rank {gpu.rank} is already that of the <gpu> in line {first[gpu.rank]}",
                        where=self.system.place(gpu.line),
                    )
            order.sort(key=lambda i: ranks[i] or 0)
            labels = [str(rank) for rank in ranks]
        else:
            labels = [str(i) for i in order]
        for i in order:
            cpu, pci, gpu = found[i]
            node = self.draft.node(self._name(cpu.host, f"gpu{labels[i]}"), Kind.GPU, _box(cpu))
            self.gpus[id(gpu)] = Placed(gpu, node, cpu.host, pci.busid, sharers=len(pci.gpus))

    def _place_pci(self, pci: Pci, cpu: Cpu, parent: int, cpu_node: int) -> None:
        """The entry and what is below it, unless that is no device at all."""
        if not any(entry.gpus or entry.nics for entry in pci.walk()):
            return
        gpu_names = ", ".join(self.draft.nodes[self.gpus[id(gpu)].node].name for gpu in pci.gpus)
        rate = self.speeds.rate(pci, gpu_names)
        is_device = len(pci.gpus) + len(pci.nics) == 1 and not pci.children
        uplink = len(self.draft.links)
        if is_device and pci.gpus:
            node = self._attach_gpu(pci.gpus[0], parent, cpu_node, rate)
        elif is_device:
            node = self._place_nic(pci.nics[0], cpu, parent, rate, pci.busid)
        else:
            node = self.draft.node(self._name(cpu.host, f"pci:{pci.busid}"), Kind.PCI, _box(cpu))
            self._cable(node, parent, rate)
            for gpu in pci.gpus:
                self._attach_gpu(gpu, node, cpu_node, rate)
            for nic in pci.nics:
                self._place_nic(nic, cpu, node, rate, pci.busid)
            for child in pci.children:
                self._place_pci(child, cpu, node, cpu_node)
        self.entries[cpu.host, pci.busid] = node
        if parent == cpu_node and self.options.rates is Rates.NCCL and cpu.kind.is_intel:
            self._charge_host_bridge(pci, uplink)

    def _cable(self, tail: int, head: int, rate: Rate) -> None:
        self.draft.cable(tail, head, rate.capacity, BOX_LATENCY, rate.source)

    def _attach_gpu(self, gpu: Gpu, parent: int, cpu_node: int, rate: Rate) -> int:
        placed = self.gpus[id(gpu)]
        placed.cpu = cpu_node
        self._cable(placed.node, parent, rate)
        return placed.node

    def _charge_host_bridge(self, pci: Pci, uplink: int) -> None:
        """NCCL counts 6/5 of a GPU's traffic through an Intel host bridge, so 5/6 of the link is left for it.

        The link keeps its rate; a shared capacity of its own limits it. Links that serve NICs alone are not charged.

        Args:
            uplink: index of the link from the entry to the CPU; its reverse follows it.
        """
        if not any(entry.gpus for entry in pci.walk()):
            return
        for e in (uplink, uplink + 1):
            source = "Intel host bridge: NCCL counts 6/5 of GPU traffic"
            self.draft.shared.append(SharedCapacity((e,), self.draft.links[e].capacity * 5 / 6, source))

    def _place_nic(self, nic: Nic, cpu: Cpu, parent: int, rate: Rate, busid: str = "") -> int:
        names = list(dict.fromkeys(net.name for net in nic.nets if net.name))
        label = "+".join(names) if 0 < len(names) <= 4 else f"nic{self.nics}"
        name = self._name(cpu.host, label)
        self.nics += 1
        self.nic_ids += [text for text in (*names, name, busid) if text]
        if nic.nets:
            ports = tuple(self._port(net, name, busid) for net in nic.nets)
        else:
            speed = self.nic.speed(busid) if self.nic else None
            ports = (speed,) if speed is not None else ()
        node = self.draft.node(name, Kind.NIC, _box(cpu), ports)
        self._cable(node, parent, rate)
        if sum(ports) > rate.capacity:
            self.crowded.append(
                f"{name} ({format_bandwidth(sum(ports))} of ports on {format_bandwidth(rate.capacity)} of PCIe)"
            )
        return node

    def _port(self, net: Net, nic_name: str, busid: str) -> float:
        """Bytes/s of a port."""
        if net.speed is not None and 0 < net.speed <= FASTEST_PORT:
            self.said_ports += 1
            return net.speed * MBPS
        given = self.nic.speed(net.name, nic_name, busid) if self.nic else None
        if net.speed is None:
            if given is None:
                raise InputError(
                    f"<net> {net.name[:60]!r} has no speed", where=self.system.place(net.line), hint=f"give {NIC_HINT}"
                )
            return given
        if net.speed > FASTEST_PORT:
            self.odd_ports[given is not None].append(f"{net.name[:60]} {format_bandwidth(net.speed * MBPS)}")
            return net.speed * MBPS if given is None else given
        if given is None:
            self.default_ports.append(net.name[:60])
        return DEFAULT_SPEED * MBPS if given is None else given

    def _note_ports(self) -> None:
        for is_replaced, ports in self.odd_ports.items():
            if ports:
                kept = "replaced by --nic" if is_replaced else "kept as written; --nic SPEED replaces it"
                self.notes.append(
                    f"net speed implausible, such as {ports[0]}, on {counted(len(ports), 'port')}: {kept}"
                )
        if self.nic and self.nic.used and self.said_ports:
            self.notes.append("--nic is used only for ports whose speed the file does not say")
        if self.default_ports:
            self.notes.append(
                f"net speed unknown, 10 Gb/s taken as NCCL does: {', '.join(self.default_ports[:8])}; give --nic"
            )
        if self.crowded:
            more = f" and {len(self.crowded) - 1} more" if len(self.crowded) > 1 else ""
            self.notes.append(f"the ports of a NIC together exceed its PCIe link: {self.crowded[0]}{more}")

    def _check_flags(self) -> None:
        """Refuse ids that no device has; note flags that nothing in the file used, with what the file says instead."""
        if self.nic:
            refuse_unknown(self.nic.by_id, self.nic_ids, "NIC is called", "--nic")
        count = len(self.gpus)
        archs = sorted({placed.gpu.arch for placed in self.gpus.values() if placed.gpu.arch})
        gpu = f"the file says itself what its {counted(count, 'GPU')} {'is' if count == 1 else 'are'} ({', '.join(archs)[:60]})"
        if not archs:
            gpu = "the file has no GPU links and says the speed of every PCIe link itself"
        nic = f"the file says the speed of its {counted(self.said_ports, 'network port')} itself"
        meets = len(self.system.cpus) > self.system.hosts
        self.notes += unused_flags(
            self.options,
            {
                "gpu": None if self.gpu and self.gpu.used else gpu,
                "nic": None if self.nic and self.nic.used else nic if self.said_ports else "the file has no NIC",
                "pcie": None if self.speeds.pcie.from_flag else "the file says the speed of every PCIe link itself",
                "cpu": None
                if self.sockets.count
                else f"the file {'says itself what its CPUs are' if meets else 'has no two CPUs in one host'}",
            },
        )

    def _link_peers(self) -> None:
        """Direct links between PCIe switches, one way each as listed."""
        for cpu, pci in self.system.pcis():
            for target, line in pci.peers:
                ends = self.entries.get((cpu.host, pci.busid)), self.entries.get((cpu.host, target))
                if ends[0] is None or ends[1] is None or ends[0] == ends[1]:
                    self.notes.append(f"pcilink to {target[:60]!r} (line {line}) leads to no other switch with devices")
                    continue
                rate = local_rate(5000, "between PCIe switches of one chip")
                self.draft.links.append(Link(ends[0], ends[1], rate.capacity, BOX_LATENCY, source=rate.source))

    def _mesh_cpus(self, nodes: list[int]) -> None:
        """All CPUs of a host reach each other."""
        for (first, a), (second, b) in combinations(zip(self.system.cpus, nodes, strict=True), 2):
            if first.host == second.host:
                self._cable(a, b, cpu_rate(first.kind, second.kind) or self.sockets.link())
        self.notes += self.sockets.notes()

    def _wire_gpus(self, skeleton: bool) -> None:
        placed = sorted(self.gpus.values(), key=lambda p: p.node)
        if not skeleton:
            self.notes += wire_gpu_links(self.draft, self.system, placed, self.gpu, self.options.rates)
            return
        assert self.gpu is not None
        self.gpu.used = True
        for host in range(self.system.hosts):
            nodes = [p.node for p in placed if p.host == host]
            if nodes:
                self.notes += wire_by_model(
                    self.draft, nodes, self.gpu.model, self.options.rates, f"host{host}", self.system.where
                )


def _box(cpu: Cpu) -> str:
    return f"host{cpu.host}"
