"""Whether NCCL would load a topology file, and finds in it all that it needs; apart from the importer."""

from __future__ import annotations

from collections.abc import Iterator

from dualcoll.lowering.nccl.loader import LoadedNode, load_as_nccl

__all__ = ["check_topology"]

_KNOWN = {
    "": ("system",),
    "system": ("cpu",),
    "cpu": ("pci", "nic"),
    "pci": ("pci", "gpu", "nic", "pcilink"),
    "gpu": ("nvlink", "c2c"),
    "nic": ("net",),
}
_NEEDED = {
    "cpu": ("numaid",),
    "pci": ("busid", "class", "link_speed", "link_width"),
    "gpu": ("dev", "sm", "rank", "gdr"),
    "nvlink": ("target", "count", "tclass"),
    "net": ("name", "dev"),
    "pcilink": ("target",),
}
_SPEEDS = ("2.5 GT/s", "5 GT/s", "8 GT/s", "16 GT/s", "32 GT/s")
_NEW_SPEEDS = tuple(f"{text} GT/s PCIe" for text in ("5.0", "8.0", "16.0", "32.0", "64.0"))
MOST_NODES = 256


def check_topology(data: bytes, where: str) -> tuple[str, ...]:
    """What is wrong with a file, one sentence each; empty if nothing.

    Raises:
        InputError: NCCL's parser fails on it, with the line.
    """
    root = load_as_nccl(data, where, _KNOWN, MOST_NODES)
    findings = []
    if root.get("version") != "1":
        findings.append(f"version {root.get('version')!r}: NCCL loads 1 only")
    if len({cpu.get("host_hash") for cpu in root.children}) > 1:
        findings.append("several hosts: NCCL takes a file of one")
    everything = list(_walk(root))
    for node in everything:
        findings += [
            f"a <{node.name}> has no {key}" for key in _NEEDED.get(node.name, ()) if key not in node.attributes
        ]
    buses = [node.get("busid").lower() for node in everything if node.name == "pci"]
    findings += [f"bus id {bus} is used twice" for bus in sorted(set(buses)) if buses.count(bus) > 1]
    for name in ("dev", "rank"):
        numbers = [node.get(name) for node in everything if node.name == "gpu"]
        findings += [f"two GPUs have {name} {number}" for number in sorted(set(numbers)) if numbers.count(number) > 1]
    for node in everything:
        if node.name == "pci" and not node.get("link_speed").startswith(_SPEEDS + _NEW_SPEEDS):
            findings.append(f"link_speed {node.get('link_speed')[:60]!r}: NCCL counts it as Gen3")
        is_gpu = node.get("tclass").startswith("0x03")
        if node.name == "nvlink" and is_gpu and node.get("target").lower() not in buses:
            findings.append(f"an nvlink leads to {node.get('target')[:60]!r}, which is not in the file")
    return tuple(findings)


def _walk(node: LoadedNode) -> Iterator[LoadedNode]:
    yield node
    for child in node.children:
        yield from _walk(child)
