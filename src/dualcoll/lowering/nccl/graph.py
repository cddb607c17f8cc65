"""NCCL graphs (``NCCL_GRAPH_FILE``): the order of GPUs in each ring or chain of one box; reading and writing them.

    graphs > graph(id, pattern, nchannels, speedintra, ...) > channel > gpu(dev)

Only rings (id 0) and chains, which NCCL calls trees of one branch (id 1, the first GPU is the root), are made here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from dualcoll.errors import InputError
from dualcoll.files import atomic_write, read_bytes
from dualcoll.lowering.nccl.loader import element_text
from dualcoll.topology.importers.xml_tree import Element, parse_xml

__all__ = ["PATHS", "Graph", "Shape", "graph_text", "read_graph", "write_graph"]

PATHS = ("LOC", "NVL", "NVB", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS")
MAX_CHANNELS = 32  # of NCCL before 2.19; 64 since
_PATTERNS = {0: "4", 1: "3"}


class Shape(IntEnum):
    """What a channel is; the number is the graph's id."""

    RING = 0
    CHAIN = 1


@dataclass(frozen=True, slots=True)
class Graph:
    """Channels of one shape.

    Attributes:
        shape: RING, or CHAIN from the root on.
        channels: GPU numbers of each, (C, G), in travelling order.
        speed: bytes/s that each channel carries over every link of its own.
        path: the worst connection between neighbours, one of ``PATHS``.

    Raises:
        InputError: no channels or too many, one that is not all GPUs once, or a speed that is not positive.
    """

    shape: Shape
    channels: tuple[tuple[int, ...], ...]
    speed: float
    path: str = "NVL"

    def __post_init__(self) -> None:
        if not 1 <= len(self.channels) <= MAX_CHANNELS:
            raise InputError(f"{len(self.channels)} channels", where="graph", hint=f"NCCL takes 1 to {MAX_CHANNELS}")
        gpus = set(self.channels[0])
        for c, channel in enumerate(self.channels):
            if len(channel) < 2 or len(set(channel)) < len(channel) or set(channel) != gpus or min(channel) < 0:
                raise InputError("it is not every GPU once", where=f"channel {c}")
        if not 0 < self.speed < float("inf"):
            raise InputError(f"speed {self.speed!r} bytes/s is not a finite number > 0", where="graph")
        if self.path not in PATHS:
            raise InputError(f"path {self.path!r} is not known", where="graph", hint=f"use one of {', '.join(PATHS)}")

    @property
    def same_channels(self) -> bool:
        """Whether all channels run alike."""
        return len(set(self.channels)) == 1


def graph_text(graph: Graph) -> str:
    """The file's content."""
    channels = [
        element_text("channel", {}, [element_text("gpu", {"dev": hex(gpu)}, None, 6) for gpu in channel], 4)
        for channel in graph.channels
    ]
    speed = f"{graph.speed / 1e9:g}"
    attributes: dict[str, object] = {
        "id": int(graph.shape),
        "pattern": _PATTERNS[graph.shape],
        "crossnic": 0,
        "nchannels": len(graph.channels),
        "speedintra": speed,
        "speedinter": speed,
        "latencyinter": 0,
        "typeintra": graph.path,
        "typeinter": "PIX",
        "samechannels": int(graph.same_channels),
    }
    return element_text("graphs", {"version": 1}, [element_text("graph", attributes, channels, 2)])


def write_graph(graph: Graph, path: str | Path) -> None:
    """Write the file, whole or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    atomic_write(path, graph_text(graph))


def read_graph(path: str | Path) -> tuple[Graph, ...]:
    """The rings and chains of a file that holds no network; graphs of other kinds, and empty ones, are left out.

    Raises:
        InputError: broken XML, another version, a missing or unusable attribute, channels that enter or leave the box, or
            GPUs that are not the same in all channels; with file and line.
    """
    where = str(path)
    root = parse_xml(read_bytes(path), where)
    if root.tag != "graphs" or root.get("version") != "1":
        raise InputError("it is no NCCL graph file of version 1", where=f"{where}:{root.line}")
    return tuple(_graph(element, where) for element in root.all("graph") if _is_shape(element))


def _is_shape(element: Element) -> bool:
    known = {(str(int(shape)), _PATTERNS[shape]) for shape in Shape}
    return (element.get("id"), element.get("pattern")) in known and bool(element.children)


def _graph(element: Element, where: str) -> Graph:
    place = f"{where}:{element.line}"
    for name in ("crossnic", "nchannels", "speedintra", "speedinter", "typeintra", "typeinter", "samechannels"):
        if not element.get(name):
            raise InputError(f"a <graph> has no {name}", where=place, hint="NCCL refuses it")
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,9})?", element.get("speedintra")):
        raise InputError(f"speedintra {element.get('speedintra')[:60]!r} is no rate in GB/s", where=place)
    channels = [_channel(channel, where) for channel in element.all("channel")]
    if element.get("nchannels") != str(len(channels)):
        problem = f"nchannels {element.get('nchannels')[:60]!r} for {len(channels)} channels"
        raise InputError(problem, where=place)
    shape = Shape(int(element.get("id")))
    try:
        return Graph(shape, tuple(channels), float(element.get("speedintra")) * 1e9, element.get("typeintra"))
    except InputError as error:
        raise error.within(place) from None


def _channel(element: Element, where: str) -> tuple[int, ...]:
    if element.all("net"):
        problem = "the channel enters or leaves the box"
        raise InputError(problem, where=f"{where}:{element.line}", hint="graphs of one box alone are read")
    gpus = []
    for gpu in element.all("gpu"):
        text = gpu.get("dev")
        if not re.fullmatch(r"0x[0-9a-fA-F]{1,4}|[0-9]", text):
            hint = "newer NCCL reads it as hexadecimal and older as decimal: write 0x.."
            raise InputError(f"dev {text[:60]!r} is ambiguous or no number", where=f"{where}:{gpu.line}", hint=hint)
        gpus.append(int(text, 16))
    return tuple(gpus)
