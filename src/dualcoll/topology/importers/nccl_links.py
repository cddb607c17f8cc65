"""NVLink, XGMI and C2C of an NCCL topology file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

from dualcoll.errors import InputError
from dualcoll.topology.devices import FabricLink, Rate, Rates, fabric_link, local_rate
from dualcoll.topology.draft import BOX_LATENCY, Draft
from dualcoll.topology.importers.nccl_records import Gpu, GpuLink, System
from dualcoll.topology.importers.options import GPU_HINT, GpuChoice, counted
from dualcoll.topology.model import Kind, Link, SharedCapacity

__all__ = ["Placed", "wire_gpu_links"]

HIDDEN_SWITCH = "fffffff:ff:ff.0"  # an NVSwitch that a VM or tray does not see
BOX_SIZES = (8, 16)  # GPUs of a box that sees its own NVSwitch chips


@dataclass(slots=True)
class Placed:
    """A GPU in the fabric: its record, node index, host, bus id, CPU node, and how many ranks share the device."""

    gpu: Gpu
    node: int
    host: int
    busid: str
    cpu: int = -1
    sharers: int = 1
    counts: Counter[str] = field(default_factory=Counter)  # links by kind of the other end


class _Wiring:
    def __init__(self, draft: Draft, system: System, choice: GpuChoice | None, rates: Rates) -> None:
        self.draft, self.system, self.choice, self.rates = draft, system, choice, rates
        self.notes: list[str] = []
        self.direct: dict[tuple[int, int], tuple[float, FabricLink]] = {}
        self.to_switch: dict[int, tuple[float, FabricLink]] = {}
        self.to_cpu: dict[int, tuple[float, FabricLink]] = {}
        self.chips: dict[int, set[str]] = defaultdict(set)  # of each host
        self.unknown: list[str] = []
        self.used_choice = False
        self.by_bus: dict[tuple[int, str], list[Placed]] = defaultdict(list)

    def link_of(self, placed: Placed, link: GpuLink) -> FabricLink:
        """The link type of a GPU; ``sm`` says nothing about AMD's, there it is the number of compute units."""
        arch = placed.gpu.arch
        if not arch or (link.tag == "xgmi" and arch.startswith("sm")):
            if self.choice is None or (self.choice.ids and placed.busid not in self.choice.ids):
                lacks = "gcn" if link.tag == "xgmi" else "sm"
                raise InputError(
                    f"<gpu> has no {lacks}, so what its {link.tag} links carry is not known",
                    where=self.system.place(placed.gpu.line),
                    hint=f"give {GPU_HINT}",
                )
            self.used_choice = self.choice.used = True
            return self.choice.model.link
        return fabric_link(arch)

    def read(self, placed: Placed, link: GpuLink) -> None:
        """Add one nvlink or xgmi element to the sums."""
        kind, count = self.link_of(placed, link), link.count / placed.sharers
        target, host = link.target, placed.host
        peers = self.by_bus.get((host, target), [])
        if link.count == 0:
            return
        if peers:
            if any(peer.node == placed.node for peer in peers):
                raise InputError(f"a GPU has an {link.tag} to itself", where=self.system.place(link.line))
            for peer in peers:
                had = self.direct.get((placed.node, peer.node), (0.0, kind))[0]
                self.direct[placed.node, peer.node] = had + count / len(peers), kind
            placed.counts["GPU"] += link.count
        elif target == HIDDEN_SWITCH or link.tclass.startswith("0x068000"):
            self.to_switch[placed.node] = self.to_switch.get(placed.node, (0.0, kind))[0] + count, kind
            self.chips[host].add(target)
            placed.counts["NVSwitch"] += link.count
        elif link.tclass.startswith("0x068001"):
            self.to_cpu[placed.node] = self.to_cpu.get(placed.node, (0.0, kind))[0] + count, kind
            placed.counts["CPU"] += link.count
        else:
            self.unknown.append(
                f"{self.draft.nodes[placed.node].name} to {target[:60] or 'nothing'} (line {link.line})"
            )

    def add(self, tail: int, head: int, rate: Rate, source: str = "") -> int:
        """Add a directed link; its index."""
        self.draft.links.append(Link(tail, head, rate.capacity, BOX_LATENCY, source=source or rate.source))
        return len(self.draft.links) - 1

    def cable(self, tail: int, head: int, rate: Rate) -> None:
        self.draft.cable(tail, head, rate.capacity, BOX_LATENCY, rate.source)


def wire_gpu_links(
    draft: Draft, system: System, gpus: Sequence[Placed], choice: GpuChoice | None, rates: Rates
) -> list[str]:
    """Add the links that the GPUs list; notes on what is odd about them.

    All NVSwitch chips of a domain are one switch. A domain is a host, or all hosts if the chips are not visible (multi-node
    NVLink). Ranks that share a device share its links: each gets its part of the NVLinks, and C2C as a shared capacity.

    Raises:
        InputError: a GPU without architecture and no ``--gpu``, a link to itself, C2C without bandwidth.
    """
    wiring = _Wiring(draft, system, choice, rates)
    for placed in gpus:
        wiring.by_bus[placed.host, placed.busid].append(placed)
    for placed in gpus:
        for link in placed.gpu.links:
            if link.tag != "c2c":
                wiring.read(placed, link)
    for (tail, head), (count, kind) in wiring.direct.items():
        wiring.add(tail, head, kind.rate(count, rates))
    _add_switches(wiring, gpus)
    for placed in gpus:
        if placed.node in wiring.to_cpu:
            count, kind = wiring.to_cpu[placed.node]
            wiring.cable(placed.node, placed.cpu, kind.rate(count, rates))
    for sharers in wiring.by_bus.values():
        _add_c2c(wiring, sharers)
        _add_local(wiring, sharers)
    _note_shared(wiring)
    _note_one_way(wiring)
    _note_unequal(wiring, gpus)
    _note_excerpt(wiring, gpus)
    if choice is not None and choice.used and not wiring.used_choice and any(placed.gpu.links for placed in gpus):
        wiring.notes.append("--gpu is not used for GPU links: the file says what its GPUs are")
    if wiring.unknown:
        more = f" and {len(wiring.unknown) - 4} more" if len(wiring.unknown) > 4 else ""
        wiring.notes.append(f"links to what is not in the file are left out: {', '.join(wiring.unknown[:4])}{more}")
    return wiring.notes


def _add_switches(wiring: _Wiring, gpus: Sequence[Placed]) -> None:
    switches: dict[int, int] = {}
    several = wiring.system.hosts > 1
    for placed in gpus:
        if placed.node not in wiring.to_switch:
            continue
        across = several and HIDDEN_SWITCH in wiring.chips[placed.host]
        domain = -1 if across else placed.host
        if domain not in switches:
            name = f"host{domain}/nvswitch" if several and not across else "nvswitch"
            switches[domain] = wiring.draft.node(name, Kind.SWITCH, None if across else f"host{domain}")
        count, kind = wiring.to_switch[placed.node]
        wiring.cable(placed.node, switches[domain], kind.rate(count, wiring.rates))


def _add_c2c(wiring: _Wiring, sharers: Sequence[Placed]) -> None:
    ways: tuple[list[int], list[int]] = ([], [])
    rate: Rate | None = None
    for placed in sharers:
        for link in (link for link in placed.gpu.links if link.tag == "c2c" and link.count):
            if not link.bandwidth:
                raise InputError("a <c2c> has no bw", where=wiring.system.place(link.line), hint="give MB/s per link")
            capacity = link.bandwidth * link.count * 1e6
            rate = Rate(capacity, f"{link.count} C2C x {link.bandwidth} MB/s as the file says")
            ways[0].append(wiring.add(placed.node, placed.cpu, rate))
            ways[1].append(wiring.add(placed.cpu, placed.node, rate))
    if rate is not None and len(sharers) > 1:
        most = max(wiring.draft.links[e].capacity for e in ways[0])
        for way in ways:
            wiring.draft.shared.append(
                SharedCapacity(tuple(way), most, f"{rate.source}, shared by the ranks of one device")
            )


def _add_local(wiring: _Wiring, sharers: Sequence[Placed]) -> None:
    for first, second in combinations(sharers, 2):
        if first.gpu.partition and second.gpu.partition:
            rate = local_rate(2618, "between partitions of one device")
        else:
            rate = local_rate(5000, "between ranks on one device")
        wiring.cable(first.node, second.node, rate)


def _note_shared(wiring: _Wiring) -> None:
    shared = [sharers for sharers in wiring.by_bus.values() if len(sharers) > 1]
    if shared:
        more = f" (and {len(shared) - 1} more devices)" if len(shared) > 1 else ""
        wiring.notes.append(f"{_ranks(wiring, shared[0])} share one device: each counts its part of the links{more}")


def _note_one_way(wiring: _Wiring) -> None:
    names = [node.name for node in wiring.draft.nodes]
    for (tail, head), (count, _) in wiring.direct.items():
        back = wiring.direct.get((head, tail), (0.0,))[0]
        if back == 0:
            wiring.notes.append(
                f"the file lists {counted(count, 'link')} from {names[tail]} to {names[head]} but none back: "
                "taken as one-way, as NCCL does"
            )
        elif back < count:
            wiring.notes.append(
                f"the file lists {counted(count, 'link')} from {names[tail]} to {names[head]} but {back:g} back: "
                "taken as written"
            )


def _note_unequal(wiring: _Wiring, gpus: Sequence[Placed]) -> None:
    groups: dict[int, list[Placed]] = defaultdict(list)
    for placed in gpus:
        groups[sum(placed.counts.values())].append(placed)
    if len(groups) < 2:
        return
    word = "XGMI link" if any(link.tag == "xgmi" for placed in gpus for link in placed.gpu.links) else "NVLink"
    usual = max(groups, key=lambda count: (len(groups[count]), count))
    for count, members in groups.items():
        who = _ranks(wiring, members)
        if count == 0:
            others = len(gpus) - len(members)
            have = f"{usual} each" if usual else "some"
            wiring.notes.append(
                f"{who} {'has' if len(members) == 1 else 'have'} no {word}s while the other {others} have {have}: NCCL drops "
                "links whose query fails without a word, so check them"
            )
        elif count != usual and usual:
            wiring.notes.append(
                f"{who} {'has' if len(members) == 1 else 'have'} {counted(count, word)}, others {usual}"
            )


def _ranks(wiring: _Wiring, members: Sequence[Placed]) -> str:
    """Text such as ``rank 5 (host1/gpu5)``."""
    numbers = [str(member.node) for member in members[:16]]
    more = f" and {len(members) - 16} more" if len(members) > 16 else ""
    if len(members) == 1:
        return f"rank {numbers[0]} ({wiring.draft.nodes[members[0].node].name})"
    return f"ranks {', '.join(numbers)}{more}"


def _note_excerpt(wiring: _Wiring, gpus: Sequence[Placed]) -> None:
    """A box that sees its NVSwitch chips has 8 or 16 GPUs; fewer are an excerpt or a part of it."""
    hosts: dict[int, list[Placed]] = defaultdict(list)
    for placed in gpus:
        hosts[placed.host].append(placed)
    for host, members in hosts.items():
        full = next((size for size in BOX_SIZES if size >= len(members)), len(members))
        if wiring.chips[host] - {HIDDEN_SWITCH} and len(members) != full:
            numas = sorted({cpu.numa for cpu in wiring.system.cpus if cpu.host == host})
            only = f", all under NUMA node {numas[0]}" if len(numas) == 1 else ""
            wiring.notes.append(
                f"the file has {len(members)} of {full} GPUs of a box with NVSwitch{only}: it looks like an excerpt"
            )
