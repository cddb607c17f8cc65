"""PCIe structure from the classes of pairs (PIX, PXB, PHB, NODE, SYS), the closest class first.

    devices joined by PIX       one PCIe switch
    those joined by PXB         a switch above their switches
    those joined by PHB, NODE   one NUMA node (kind cpu); what its host bridges have between them is not a limit here
    SYS                         another NUMA node; all of them are linked

Where NVLink hides the class of two GPUs, their NUMA (else CPU) affinity decides between NODE and SYS. Classes ought to be
transitive; where they are not, the closer one wins and a note says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from dualcoll.topology.draft import BOX_LATENCY, Draft
from dualcoll.topology.importers.options import CpuLinks, Pcie
from dualcoll.topology.model import Kind

__all__ = ["Device", "add_pci_tree"]

_LEVELS = {"PIX": 0, "PXB": 1, "PHB": 2, "NODE": 2, "SYS": 3}


@dataclass(frozen=True, slots=True)
class Device:
    """A device to be attached: its name in messages, node index, and NUMA and CPU affinity as text."""

    name: str
    node: int
    numa: str = ""
    cpus: str = ""


class _Groups:
    """Disjoint sets over 0..n-1."""

    def __init__(self, n: int) -> None:
        self.parent = list(range(n))

    def find(self, x: int) -> int:
        while self.parent[x] != x:
            self.parent[x] = self.parent[self.parent[x]]
            x = self.parent[x]
        return x

    def members(self) -> list[list[int]]:
        """The sets, each in order, ordered by their first member."""
        sets: dict[int, list[int]] = defaultdict(list)
        for x in range(len(self.parent)):
            sets[self.find(x)].append(x)
        return list(sets.values())


def add_pci_tree(
    draft: Draft, devices: Sequence[Device], shown: Callable[[int, int], str], pcie: Pcie, sockets: CpuLinks, box: str
) -> list[str]:
    """Attach the devices to CPUs through PCIe switches; notes on contradictions and assumptions.

    Args:
        shown: class of the i-th and j-th device; anything but a PCIe class means that it is hidden.
    """
    levels = {pair: _level(*pair, devices, shown) for pair in combinations(range(len(devices)), 2)}
    nested = []
    for level in range(3):
        groups = _Groups(len(devices))
        for (i, j), closest in levels.items():
            if closest is not None and closest <= level:
                groups.parent[groups.find(i)] = groups.find(j)
        nested.append(groups)
    related = {i for pair, level in levels.items() if level is not None for i in pair}
    lost = [i for i in range(len(devices)) if i not in related] if len(devices) > 1 else []
    for i in lost:
        nested[2].parent[nested[2].find(i)] = nested[2].find(0)
    notes = _contradictions(devices, nested[2], levels, shown)
    if lost:
        names = ", ".join(devices[i].name for i in lost[:16])
        notes.append(f"neither PCIe class nor affinity is shown for {names}: put on the first NUMA node")
    cpus = _attach(draft, devices, nested, pcie, box)
    for first, second in combinations(cpus, 2):
        rate = sockets.link()
        draft.cable(first, second, rate.capacity, BOX_LATENCY, rate.source)
    return notes + sockets.notes() + pcie.notes()


def _level(i: int, j: int, devices: Sequence[Device], shown: Callable[[int, int], str]) -> int | None:
    level = _LEVELS.get(shown(i, j))
    if level is None:
        for mine, other in ((devices[i].numa, devices[j].numa), (devices[i].cpus, devices[j].cpus)):
            if mine and other:
                return 2 if mine == other else 3
    return level


def _attach(draft: Draft, devices: Sequence[Device], nested: Sequence[_Groups], pcie: Pcie, box: str) -> list[int]:
    """The nodes and PCIe links of the nested groups; the CPUs."""
    cpus = []
    switches = 0
    parent: dict[int, int] = {}  # of each device so far
    for members in nested[2].members():
        cpu = draft.node(_cpu_name(draft, devices, members), Kind.CPU, box)
        cpus.append(cpu)
        parent.update(dict.fromkeys(members, cpu))
    for groups, below in ((nested[1], nested[0]), (nested[0], None)):
        for members in groups.members():
            inner = {below.find(i) for i in members} if below else set(members)
            if len(members) > 1 and len(inner) > 1:
                switch = draft.node(f"pci{switches}", Kind.PCI, box)
                switches += 1
                _cable(draft, switch, parent[members[0]], pcie)
                parent.update(dict.fromkeys(members, switch))
    for i, device in enumerate(devices):
        _cable(draft, device.node, parent[i], pcie)
    return cpus


def _cable(draft: Draft, tail: int, head: int, pcie: Pcie) -> None:
    rate = pcie.rate(None, None)
    draft.cable(tail, head, rate.capacity, BOX_LATENCY, rate.source)


def _cpu_name(draft: Draft, devices: Sequence[Device], members: Sequence[int]) -> str:
    """``cpu`` and the least NUMA node of its devices if that is free, else the next free number."""
    taken = {node.name for node in draft.nodes}
    numas = {int(devices[i].numa) for i in members if devices[i].numa.isdecimal()}
    wanted = [f"cpu{numa}" for numa in sorted(numas)]
    kept = {f"cpu{device.numa}" for device in devices if device.numa.isdecimal()}
    others = (name for k in range(2 * len(devices) + len(taken) + 1) if (name := f"cpu{k}") not in kept)
    return next(name for name in (*wanted, *others) if name not in taken)


def _contradictions(
    devices: Sequence[Device],
    numa_groups: _Groups,
    levels: dict[tuple[int, int], int | None],
    shown: Callable[[int, int], str],
) -> list[str]:
    """What the classes and the affinity say against each other."""
    across, split = [], []
    for (i, j), level in levels.items():
        first, second = devices[i], devices[j]
        known = shown(i, j) in _LEVELS
        if first.numa and second.numa and first.numa != second.numa and level is not None and level < 3:
            across.append(
                f"{first.name} and {second.name} are {shown(i, j)} although on NUMA nodes {first.numa} and {second.numa}"
            )
        elif level == 3 and numa_groups.find(i) == numa_groups.find(j):
            what = "are SYS" if known else "have different affinity"
            split.append(f"{first.name} and {second.name} {what} although other pairs put them on one NUMA node")
    notes = []
    for found in (across, split):
        if found:
            more = f" (and {len(found) - 1} more such pairs)" if len(found) > 1 else ""
            notes.append(f"{found[0]}{more}: contradictory, the closer class is taken")
    return notes
