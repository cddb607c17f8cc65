"""Whether NCCL would load a graph file, and as what; apart from the reader."""

from __future__ import annotations

from dualcoll.lowering.nccl.loader import LoadedNode, load_as_nccl
from dualcoll.topology.model import Kind, Topology

__all__ = ["check_graph"]

_KNOWN = {"": ("graphs",), "graphs": ("graph",), "graph": ("channel",), "channel": ("net", "gpu")}
_NEEDED = (
    "id",
    "crossnic",
    "pattern",
    "nchannels",
    "speedintra",
    "speedinter",
    "typeintra",
    "typeinter",
    "samechannels",
)
_TYPES = ("LOC", "NVL", "NVB", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS")
MOST_NODES = 4096  # 65,536 in the newest versions
MOST_CHANNELS = 64


def check_graph(data: bytes, gpus: int, where: str, topology: Topology | None = None) -> tuple[str, ...]:
    """What is wrong with a file for a communicator of that many GPUs of one box, one sentence each; empty if nothing.

    Args:
        data: the file's content.
        gpus: how many; device i is the i-th.
        topology: the box; if it is given, neighbours in a channel must be able to reach each other in it.

    Raises:
        InputError: NCCL's parser fails on it, with the line.
    """
    root = load_as_nccl(data, where, _KNOWN, MOST_NODES)
    findings = []
    if _int(root.get("version")) != 1:
        findings.append(f"version {root.get('version')!r}: NCCL loads 1 only")
    for graph in root.children:
        findings += [f"graph {graph.get('id')}: {finding}" for finding in _check(graph, gpus, topology)]
    ids = [graph.get("id") for graph in root.children]
    if len(set(ids)) < len(ids):
        findings.append("two graphs have one id: NCCL takes the channels of the last")
    return tuple(findings)


def _check(graph: LoadedNode, gpus: int, topology: Topology | None) -> list[str]:
    missing = [name for name in _NEEDED if name not in graph.attributes]
    if missing:
        return [f"no {name}: NCCL stops" for name in missing]
    findings = []
    if _int(graph.get("nchannels")) != len(graph.children):
        findings.append(f"nchannels {graph.get('nchannels')}, but {len(graph.children)} channels")
    if len(graph.children) > MOST_CHANNELS:
        findings.append(f"{len(graph.children)} channels: NCCL has room for {MOST_CHANNELS} and writes past it")
    for name in ("typeintra", "typeinter"):
        if not graph.get(name).startswith(_TYPES):
            findings.append(f"{name} {graph.get(name)[:60]!r}: NCCL takes LOC for it")
    if graph.get("id") == "3":
        return findings  # NVLS: one head for each channel, not an order
    for c, channel in enumerate(graph.children):
        order = [_int(gpu.get("dev"), 16) for gpu in channel.children if gpu.name == "gpu"]
        nets = [child for child in channel.children if child.name == "net"]
        if sorted(order) != list(range(gpus)):
            findings.append(f"channel {c} is not each of the {gpus} GPUs once: {order}")
        elif topology is not None:
            closed = graph.get("id") == "0" and not nets
            findings += [f"channel {c}: {fault}" for fault in _unreachable(order, topology, closed=closed)]
        if len(nets) not in (0, 2):
            findings.append(f"channel {c} has {len(nets)} <net>: it needs none, or one in and one out")
    return findings


def _unreachable(order: list[int], topology: Topology, *, closed: bool) -> list[str]:
    ahead: dict[int, list[int]] = {}
    for link in topology.links:
        ahead.setdefault(link.tail, []).append(link.head)
    ranks = topology.ranks
    if len(ranks) != len(order):
        return [f"the topology has {len(ranks)} ranks"]
    faults = []
    pairs = list(zip(order, order[1:] + order[:1], strict=True))
    for src, dst in pairs if closed else pairs[:-1]:
        seen, stack = {ranks[src]}, [ranks[src]]
        while stack:
            for head in ahead.get(stack.pop(), []):
                if head not in seen:
                    seen.add(head)
                    if topology.nodes[head].kind not in (Kind.GPU, Kind.HOST):
                        stack.append(head)
        if ranks[dst] not in seen:
            faults.append(f"GPU {src} cannot reach GPU {dst} except through another")
    return faults


def _int(text: str, base: int = 10) -> int:
    try:
        return int(text, base)
    except ValueError:
        return -1
