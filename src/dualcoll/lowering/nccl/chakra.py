"""Chakra traces of a schedule for ASTRA-sim's custom collectives: one file ``STEM.RANK.et`` for each rank.

A file is a stream of protobuf messages (``et_def.proto`` of MLCommons Chakra), each with its length before it: the metadata,
then nodes that send, receive or compute. Few fields are used, so they are written and read here without a protobuf library. A
trace says sizes and order; which bytes are meant it cannot say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from dualcoll.errors import InputError
from dualcoll.files import atomic_write, read_bytes
from dualcoll.schedules.ir import Schedule, previous_on_channel
from dualcoll.schedules.ops import Op

__all__ = ["NodeKind", "TraceNode", "check_chakra", "read_chakra", "trace_of_schedule", "write_chakra"]

VERSION = "1.0.2-chakra.0.0.4"
MAX_RANKS = 65_536


class NodeKind(IntEnum):
    """Kinds of nodes, by Chakra's numbers."""

    COMPUTE = 4
    SEND = 5
    RECEIVE = 6


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node of one rank's trace.

    Attributes:
        id: unique in the trace. kind: what it does.
        after: ids of nodes of the same rank that must have finished.
        peer, tag, size: of SEND and RECEIVE: the other rank, the message's tag, and bytes.
    """

    id: int
    kind: NodeKind
    after: tuple[int, ...] = ()
    peer: int = -1
    tag: int = 0
    size: int = 0


Trace = tuple[tuple[TraceNode, ...], ...]


def trace_of_schedule(schedule: Schedule) -> Trace:
    """The nodes of each rank, (R,). A reduction is a receive and a computation that takes no time worth mentioning.

    Raises:
        InputError: a send of no bytes, or one that follows a send with which it shares no rank.
    """
    nodes: list[list[TraceNode]] = [[] for _ in range(schedule.ranks)]
    left: list[int] = []  # node at its source that says a send is out
    done: list[int] = []  # node at its destination that says it is delivered
    tags: dict[tuple[int, int], int] = {}
    previous = previous_on_channel(schedule)

    def add(rank: int, kind: NodeKind, after: set[int], peer: int = -1, tag: int = 0, size: int = 0) -> int:
        nodes[rank].append(TraceNode(len(nodes[rank]), kind, tuple(sorted(after)), peer, tag, size))
        return len(nodes[rank]) - 1

    for send in range(schedule.sends):
        src, dst, size = int(schedule.src[send]), int(schedule.dst[send]), int(schedule.send_size[send])
        if size < 1:
            raise InputError("it has no bytes", where=f"send {send}", hint="give a size with a byte for each chunk")
        earlier = [int(one) for one in schedule.depends_of(send)]
        if previous[send] >= 0:
            earlier.append(int(previous[send]))
        at_src, at_dst = set[int](), set[int]()
        for one in earlier:
            if one >= send:
                raise InputError(f"it follows send {one}, which is numbered later", where=f"send {send}")
            ends = int(schedule.src[one]), int(schedule.dst[one])
            if not {src, dst} & set(ends):
                raise InputError(f"it follows send {one} of other ranks", where=f"send {send}")
            for place, node in zip(ends, (left[one], done[one]), strict=True):
                if place == src:
                    at_src.add(node)
                if place == dst:
                    at_dst.add(node)
        if src == dst:
            left.append(add(src, NodeKind.COMPUTE, at_src))
            done.append(left[-1])
            continue
        tag = tags[src, dst] = tags.get((src, dst), -1) + 1
        left.append(add(src, NodeKind.SEND, at_src, dst, tag, size))
        done.append(add(dst, NodeKind.RECEIVE, at_dst, src, tag, size))
        if schedule.op[send] == Op.REDUCE:
            done[-1] = add(dst, NodeKind.COMPUTE, {done[-1]})
    for own in nodes:
        if not own:  # ASTRA-sim never ends a trace without nodes
            own.append(TraceNode(0, NodeKind.COMPUTE))
    return tuple(map(tuple, nodes))


def write_chakra(trace: Trace, stem: str | Path) -> tuple[Path, ...]:
    """Write ``STEM.0.et``, ``STEM.1.et``, ...; name the stem in ASTRA-sim's ``all-reduce-implementation-custom``.

    Raises:
        InputError: the trace has a fault that :func:`check_chakra` finds, or a file cannot be written.
    """
    if findings := check_chakra(trace):
        raise InputError(findings[0], where=str(stem))
    paths = tuple(Path(f"{stem}.{rank}.et") for rank in range(len(trace)))
    for path, nodes in zip(paths, trace, strict=True):
        head = _message(2, _text(1, "schema") + _text(29, VERSION))
        atomic_write(path, b"".join(_varint(len(part)) + part for part in [head, *map(_node, nodes)]))
    return paths


def read_chakra(stem: str | Path) -> Trace:
    """The traces ``STEM.0.et``, ``STEM.1.et``, ... as far as there are files.

    Raises:
        InputError: no file, one that is no such stream, or a node of another kind.
    """
    trace = []
    for rank in range(MAX_RANKS):
        path = Path(f"{stem}.{rank}.et")
        if rank and not path.exists():
            break
        parts = list(_parts(read_bytes(path), str(path)))
        trace.append(tuple(_read_node(part, f"{path}: node {i}") for i, part in enumerate(parts[1:])))
    return tuple(trace)


def check_chakra(trace: Trace) -> tuple[str, ...]:
    """Whether ASTRA-sim could run the traces to their end, one sentence for each fault; empty if it could.

    Messages of one tag are received in the order and with the sizes in which they are sent, and running all nodes that may
    run reaches every node.
    """
    findings: list[str] = []
    ends: dict[tuple[int, int, int], list[list[int]]] = {}
    for rank, nodes in enumerate(trace):
        ids = {node.id for node in nodes}
        if not nodes:
            findings.append(f"rank {rank} has no nodes, so that it never ends")
        if len(ids) < len(nodes):
            findings.append(f"rank {rank} uses an id twice")
        findings += [
            f"rank {rank}, node {node.id} follows none that exists" for node in nodes if not ids >= set(node.after)
        ]
        for node in nodes:
            if node.kind is NodeKind.COMPUTE:
                continue
            pair = (rank, node.peer) if node.kind is NodeKind.SEND else (node.peer, rank)
            if not 0 <= node.peer < len(trace) or node.peer == rank or node.size < 1:
                findings.append(f"rank {rank}, node {node.id}: {node.size} bytes with rank {node.peer}")
            ends.setdefault((*pair, node.tag), [[], []])[node.kind is NodeKind.RECEIVE].append(node.size)
    for (src, dst, tag), (sent, received) in ends.items():
        if sent != received:
            findings.append(f"messages {tag} of rank {src} to {dst}: {sent[:8]} bytes sent, {received[:8]} received")
    return tuple(findings) or _stuck(trace)


def _stuck(trace: Trace) -> tuple[str, ...]:
    finished: list[set[int]] = [set() for _ in trace]
    sent: Counter[tuple[int, int, int]] = Counter()  # and not yet received
    open_nodes = [(rank, node) for rank, nodes in enumerate(trace) for node in nodes]
    while open_nodes:
        waiting = []
        for rank, node in open_nodes:
            arrived = node.kind is not NodeKind.RECEIVE or sent[node.peer, rank, node.tag] > 0
            if not arrived or not finished[rank] >= set(node.after):
                waiting.append((rank, node))
                continue
            finished[rank].add(node.id)
            if node.kind is NodeKind.SEND:
                sent[rank, node.peer, node.tag] += 1
            elif node.kind is NodeKind.RECEIVE:
                sent[node.peer, rank, node.tag] -= 1
        if len(waiting) == len(open_nodes):
            rank, node = waiting[0]
            return (f"{len(waiting)} nodes wait for each other, such as node {node.id} of rank {rank}",)
        open_nodes = waiting
    return ()


def _node(node: TraceNode) -> bytes:
    out = _number(1, node.id) + _text(2, f"{node.kind.name}_{node.id}") + _number(3, node.kind)
    if node.after:
        out += _message(5, b"".join(map(_varint, node.after)))
    if node.kind is not NodeKind.COMPUTE:
        peer = "comm_dst" if node.kind is NodeKind.SEND else "comm_src"
        for name, wire, value in (
            ("comm_type", 9, int(node.kind)),
            ("comm_size", 9, node.size),
            (peer, 7, node.peer),
            ("comm_tag", 7, node.tag),
        ):
            out += _message(10, _text(1, name) + _varint(wire << 3) + _varint(value))
    return out


def _number(key: int, value: int) -> bytes:
    return _varint(key << 3) + _varint(value) if value else b""  # proto3 leaves zeros out


def _message(key: int, content: bytes) -> bytes:
    return _varint(key << 3 | 2) + _varint(len(content)) + content


def _text(key: int, text: str) -> bytes:
    return _message(key, text.encode())


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _read_varint(data: bytes, at: int, where: str) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at
    raise InputError("it is no Chakra trace: a number has no end", where=where)


def _parts(data: bytes, where: str) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size, at = _read_varint(data, at, where)
        if at + size > len(data):
            raise InputError("it is no Chakra trace, or is cut off", where=where)
        yield data[at : at + size]
        at += size


def _fields(data: bytes, where: str) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at, where)
        wire = key & 7
        if wire == 0:
            value, at = _read_varint(data, at, where)
            yield key >> 3, value
            continue
        size = {1: 8, 5: 4}.get(wire, -1)
        if wire == 2:
            size, at = _read_varint(data, at, where)
        if size < 0 or at + size > len(data):
            raise InputError("it is no Chakra trace, or is cut off", where=where)
        yield key >> 3, data[at : at + size]
        at += size


def _read_node(data: bytes, where: str) -> TraceNode:
    number, kind, after = 0, 0, list[int]()
    attributes: dict[str, int] = {}
    for key, value in _fields(data, where):
        if key == 1 and isinstance(value, int):
            number = value
        elif key == 3 and isinstance(value, int):
            kind = value
        elif key in (4, 5):
            after += [value] if isinstance(value, int) else _packed(value, where)
        elif key == 10 and isinstance(value, bytes):
            pairs = list(_fields(value, where))
            name = next((v.decode("utf-8", "replace") for k, v in pairs if k == 1 and isinstance(v, bytes)), "")
            numbers = [v for k, v in pairs if k in (7, 9, 11, 13) and isinstance(v, int)]  # int32 to uint64
            attributes[name] = numbers[-1] if numbers else 0
    if kind not in list(NodeKind):
        raise InputError(f"a node of kind {kind}", where=where, hint="a custom collective sends, receives and computes")
    if kind == NodeKind.COMPUTE:
        return TraceNode(number, NodeKind.COMPUTE, tuple(after))
    peer = "comm_dst" if kind == NodeKind.SEND else "comm_src"
    if missing := [name for name in (peer, "comm_size") if name not in attributes]:
        raise InputError(f"it has no {missing[0]}", where=where)
    tag = attributes.get("comm_tag", 0)
    return TraceNode(number, NodeKind(kind), tuple(after), attributes[peer], tag, attributes["comm_size"])


def _packed(data: bytes, where: str) -> Sequence[int]:
    numbers, at = list[int](), 0
    while at < len(data):
        value, at = _read_varint(data, at, where)
        numbers.append(value)
    return numbers
