"""What an NCCL or RCCL topology file says, as typed records; nothing is interpreted yet.

system > cpu > pci (nested) > gpu > nvlink | xgmi | c2c
                            > nic > net
               nic > net      (a NIC without a PCI device)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dualcoll.errors import InputError
from dualcoll.topology.devices import CpuKind
from dualcoll.topology.importers.xml_tree import Element

__all__ = ["Cpu", "Gpu", "GpuLink", "Net", "Nic", "Pci", "System", "read_system"]

MAX_CPUS = 256  # of one host; they are fully meshed
MAX_SHARERS = 16  # ranks on one device; they are fully meshed too


@dataclass(frozen=True, slots=True)
class GpuLink:
    """An ``nvlink``, ``xgmi`` or ``c2c`` element. ``count`` links; ``bandwidth`` MB/s each, of c2c only."""

    tag: str
    target: str
    tclass: str
    count: int
    bandwidth: int
    line: int


@dataclass(frozen=True, slots=True)
class Net:
    """A port of a NIC; ``speed`` in Mb/s, None if the file does not say."""

    name: str
    speed: int | None
    line: int


@dataclass(slots=True)
class Gpu:
    """A rank. ``arch`` is as :func:`dualcoll.topology.devices.fabric_link` takes it, empty if unknown."""

    rank: int | None
    arch: str
    partition: bool
    links: list[GpuLink]
    line: int


@dataclass(slots=True)
class Nic:
    """A NIC with its ports; one made of a bare PCI entry has none."""

    nets: list[Net]
    line: int


@dataclass(slots=True)
class Pci:
    """A PCI entry: bridge or device. ``width`` in lanes as written, None if not said."""

    busid: str
    kind: str
    link_speed: str
    width: int | None
    line: int
    gpus: list[Gpu] = field(default_factory=list)
    nics: list[Nic] = field(default_factory=list)
    children: list[Pci] = field(default_factory=list)
    peers: list[tuple[str, int]] = field(default_factory=list)

    def walk(self) -> Iterator[Pci]:
        """The entry and all below it, in file order."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(slots=True)
class Cpu:
    """A NUMA node of a host."""

    host: int
    numa: str
    kind: CpuKind
    line: int
    pcis: list[Pci] = field(default_factory=list)
    nics: list[Nic] = field(default_factory=list)


@dataclass(slots=True)
class System:
    """The file: its CPUs, and how many hosts they belong to."""

    cpus: list[Cpu]
    hosts: int
    where: str

    def pcis(self) -> Iterator[tuple[Cpu, Pci]]:
        """Every PCI entry with its CPU, in file order."""
        for cpu in self.cpus:
            for root in cpu.pcis:
                for pci in root.walk():
                    yield cpu, pci

    def place(self, line: int) -> str:
        """File and line."""
        return f"{self.where}:{line}"


def read_system(root: Element, where: str) -> System:
    """The records of a parsed file.

    Raises:
        InputError: not such a file, an unknown version, a bus id or numaid twice in one host, too many of
            one kind, or a number that cannot be used.
    """
    if root.tag != "system":
        raise InputError(f"the root element is <{root.tag[:60]}>, not <system>", where=f"{where}:{root.line}")
    if root.get("version") not in ("1", "2"):
        raise InputError(
            f"version {root.get('version')[:60]!r} is not known",
            where=f"{where}:{root.line}",
            hint='NCCL writes version="1" and RCCL version="2"',
        )
    hashes: dict[str, int] = {}
    cpus = [_cpu(element, hashes, where) for element in root.all("cpu")]
    if not cpus:
        raise InputError("it has no <cpu>, so nothing is connected", where=f"{where}:{root.line}")
    system = System(cpus, len(hashes), where)
    _check_unique(system)
    return system


def _check_unique(system: System) -> None:
    numas: dict[tuple[int, str], int] = {}
    for cpu in system.cpus:
        first = numas.setdefault((cpu.host, cpu.numa), cpu.line)
        if first != cpu.line:
            raise InputError(
                f"numaid {cpu.numa[:60]!r} is already that of the <cpu> in line {first}",
                where=system.place(cpu.line),
                hint="CPUs of different machines need different host_hash values",
            )
    if len(system.cpus) > MAX_CPUS * system.hosts:
        raise InputError(f"it has {len(system.cpus)} <cpu> elements", hint=f"at most {MAX_CPUS} a host can be handled")
    buses: dict[tuple[int, str], int] = {}
    for cpu, pci in system.pcis():
        first = buses.setdefault((cpu.host, pci.busid), pci.line)
        if first != pci.line:
            raise InputError(
                f"busid {pci.busid[:60]!r} is already used in line {first}",
                where=system.place(pci.line),
                hint="a bus id is unique within its host; devices of different machines need different host_hash values",
            )


def _cpu(element: Element, hashes: dict[str, int], where: str) -> Cpu:
    host = hashes.setdefault(element.get("host_hash"), len(hashes))
    kind = CpuKind(
        element.get("arch"),
        element.get("vendor"),
        _number(element, "familyid", where, -1, least=-1),
        _number(element, "modelid", where, -1, least=-1),
    )
    cpu = Cpu(host, element.get("numaid"), kind, element.line)
    cpu.pcis = [_pci(child, where) for child in element.all("pci")]
    cpu.nics = [_nic(child, where) for child in element.all("nic")]
    return cpu


def _pci(element: Element, where: str) -> Pci:
    busid = element.get("busid").lower()
    if not busid:
        raise InputError("a <pci> has no busid", where=f"{where}:{element.line}")
    width = _number(element, "link_width", where, 0, most=32) if element.get("link_width") else None
    pci = Pci(busid, element.get("class").lower(), element.get("link_speed"), width, element.line)
    pci.gpus = [_gpu(child, where) for child in element.all("gpu")]
    if len(pci.gpus) > MAX_SHARERS:
        raise InputError(
            f"{len(pci.gpus)} ranks share one device",
            where=f"{where}:{element.line}",
            hint=f"at most {MAX_SHARERS} can",
        )
    pci.nics = [_nic(child, where) for child in element.all("nic")]
    pci.children = [_pci(child, where) for child in element.all("pci")]
    pci.peers = [(child.get("target").lower(), child.line) for child in element.all("pcilink")]
    return pci


def _gpu(element: Element, where: str) -> Gpu:
    rank = _number(element, "rank", where, -1, least=-1, most=10**7)
    sm = _number(element, "sm", where, 0, most=10**6)
    arch = element.get("gcn").lower() or (f"sm{sm}" if sm else "")
    links = [
        GpuLink(
            child.tag,
            child.get("target").lower(),
            child.get("tclass").lower(),
            _number(child, "count", where, 1, most=1000),
            _number(child, "bw", where, 0, least=1) if child.tag == "c2c" else 0,
            child.line,
        )
        for child in element.children
        if child.tag in ("nvlink", "xgmi", "c2c")
    ]
    return Gpu(rank if rank >= 0 else None, arch, bool(element.get("mlopart")), links, element.line)


def _nic(element: Element, where: str) -> Nic:
    nets = [
        Net(
            child.get("name"),
            _number(child, "speed", where, 0, least=-(10**9)) if child.get("speed") else None,
            child.line,
        )
        for child in element.all("net")
    ]
    return Nic(nets, element.line)


def _number(element: Element, name: str, where: str, missing: int, *, least: int = 0, most: int = 10**9) -> int:
    text = element.get(name)
    if not text:
        return missing
    value = int(text) if re.fullmatch(r"-?[0-9]{1,15}", text) else most + 1
    if not least <= value <= most:
        raise InputError(
            f"{name} {text[:60]!r} of <{element.tag}> is not a whole number from {least} to {most}",
            where=f"{where}:{element.line}",
        )
    return value
