"""What thread blocks have to do, as ops, channels and buffers of an MSCCL++ plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dualcoll.lowering.mscclpp.places import Places
from dualcoll.lowering.mscclpp.plan import (
    MAX_OP_CHANNELS,
    MAX_SEMAPHORES,
    Gpu,
    Operand,
    Operation,
    Plan,
    RemoteBuffer,
    ThreadBlock,
)
from dualcoll.lowering.mscclpp.work import Act, BlockKey, Part
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.units import format_fraction

__all__ = ["emitted"]

Wire = tuple[BlockKey, BlockKey, bool]  # two thread blocks (the lower first, if data goes), and whether it carries data


def emitted(schedule: Schedule, places: Places, acts: list[Act], blocks: list[int], name: str) -> Plan:
    """The plan, whether or not it keeps to the limits.

    Args:
        places: without scratch space given out yet. acts: in an order in which all can be done. blocks: thread blocks per rank.
    """
    parts = _Parts(schedule, places, [[_Block() for _ in range(count)] for count in blocks])
    parts.open(acts)
    for act in acts:
        parts.do(act)
    parts.close()
    gpus = []
    for rank in range(schedule.ranks):
        gpus.append(
            Gpu(
                input_chunks=places.inputs,
                output_chunks=places.outputs,
                scratch_chunks=places.scratch[rank],
                blocks=tuple(block.built(i) for i, block in enumerate(parts.blocks[rank])),
                memory=tuple(parts.peers[rank]["memory"]),
                port=tuple(parts.peers[rank]["port"]),
                remote_buffers=tuple(
                    RemoteBuffer(*key, tuple(sorted(access))) for key, access in parts.remote[rank].items()
                ),
                semaphores=(0,) * parts.semaphores.get(rank, 0),
                id=rank,
            )
        )
    rounded = (
        f"chunks are rounded to equal ones, by which one becomes {format_fraction(places.excess)} larger than it was"
    )
    notes = (rounded,) if places.excess else ()
    return Plan(name, schedule.contract.collective, "Simple", places.in_place, tuple(gpus), notes=notes)


@dataclass(slots=True)
class _Block:
    """A thread block's ops so far.

    Attributes:
        channels, buffers: by channel type: places among those of the GPU. moved, waited: whether data was moved, or something
            waited for, since the threads were joined.
    """

    ops: list[Operation] = field(default_factory=list)
    channels: dict[str, list[int]] = field(default_factory=lambda: {"memory": [], "port": []})
    buffers: dict[str, list[int]] = field(default_factory=lambda: {"memory": [], "port": []})
    moved: bool = False
    waited: bool = False

    def built(self, number: int) -> ThreadBlock:
        return ThreadBlock(
            ops=tuple(self.ops),
            memory=tuple(self.channels["memory"]),
            port=tuple(self.channels["port"]),
            memory_buffers=tuple(self.buffers["memory"]),
            port_buffers=tuple(self.buffers["port"]),
            id=number,
        )

    def join(self) -> None:
        """Join the threads if there is something to join them for."""
        if self.moved or self.waited:
            self.ops.append(Operation("nop"))
        self.moved = self.waited = False

    def channel(self, kind: str, place: int) -> int:
        """The block's number for a channel of its GPU."""
        if place not in self.channels[kind]:
            self.channels[kind].append(place)
        return self.channels[kind].index(place)

    def sync(self, op: str, ends: Iterable[tuple[str, int]]) -> None:
        """Signal or wait on channels of the GPU."""
        ends = list(ends)
        for kind in ("memory", "port"):
            numbers = [self.channel(kind, place) for of, place in ends if of == kind]
            for i in range(0, len(numbers), MAX_OP_CHANNELS):
                self.ops.append(Operation(op, channel_type=kind, channels=tuple(numbers[i : i + MAX_OP_CHANNELS])))
        self.waited |= op == "wait" and bool(ends)

    def semaphore(self, op: str, numbers: list[int]) -> None:
        for i in range(0, len(numbers), MAX_SEMAPHORES):
            self.ops.append(Operation(op, semaphores=tuple(numbers[i : i + MAX_SEMAPHORES])))
        self.waited |= op == "sem_acquire" and bool(numbers)

    def move(self, op: Operation) -> None:
        self.join()
        self.ops.append(op)
        self.moved = op.channel_type != "port"


class _Parts:
    """Gives out channels, buffers, semaphores and scratch space, and appends ops."""

    def __init__(self, schedule: Schedule, places: Places, blocks: list[list[_Block]]) -> None:
        self.schedule, self.places, self.blocks = schedule, places, blocks
        self.peers: list[dict[str, list[int]]] = [{"memory": [], "port": []} for _ in blocks]
        self.remote: list[dict[tuple[int, str], set[str]]] = [{} for _ in blocks]
        self.semaphores: dict[int, int] = {}
        self.wires: dict[Wire, tuple[str, dict[BlockKey, int]]] = {}
        self.locks: dict[tuple[BlockKey, BlockKey], int] = {}
        self.room: dict[int, int] = {}  # scratch space of a send that reduces
        self.sends: dict[BlockKey, dict[Wire, None]] = {}
        self.takes: dict[BlockKey, dict[Wire, None]] = {}

    def open(self, acts: list[Act]) -> None:
        """Tell those who send to a block that it has begun."""
        for act in acts:
            if act.part is Part.PUT:
                wire = _data_wire(act)
                self.sends.setdefault(act.block, {})[wire] = None
                self.takes.setdefault(act.other, {})[wire] = None
        for key in [(rank, i) for rank, blocks in enumerate(self.blocks) for i in range(len(blocks))]:
            block = self.blocks[key[0]][key[1]]
            block.sync("signal", [self._end(wire, key) for wire in self.takes.get(key, ())])
            block.sync("wait", [self._end(wire, key) for wire in self.sends.get(key, ())])

    def close(self) -> None:
        """Tell those who put through port channels that all has arrived."""
        for key in [(rank, i) for rank, blocks in enumerate(self.blocks) for i in range(len(blocks))]:
            block = self.blocks[key[0]][key[1]]
            came = [end for end in (self._end(wire, key) for wire in self.takes.get(key, ())) if end[0] == "port"]
            gone = [end for end in (self._end(wire, key) for wire in self.sends.get(key, ())) if end[0] == "port"]
            if came:
                block.join()
            block.sync("signal", came)
            block.sync("wait", gone)

    def do(self, act: Act) -> None:
        """Append an act's ops."""
        block = self.blocks[act.block[0]][act.block[1]]
        here = [other for other in act.after if other[0] == act.rank]
        block.semaphore("sem_acquire", [self._lock(other, act.block) for other in here])
        waits = [self._end((other, act.block, False), act.block) for other in act.after if other[0] != act.rank]
        signals = [self._end((act.block, other, False), act.block) for other in act.before if other[0] != act.rank]
        wire = _data_wire(act)
        if act.part is Part.TAKE:
            waits.append(self._end(wire, act.block))
        block.sync("wait", waits)
        if act.part is Part.PUT:
            signals = [*self._put(block, act, *self._end(wire, act.block)), *signals]
        else:
            self._add(block, act)
        releases = [self._lock(act.block, other) for other in act.before if other[0] == act.rank]
        if signals or releases:
            block.join()
        block.sync("signal", signals)
        block.semaphore("sem_release", releases)

    def _put(self, block: _Block, act: Act, kind: str, place: int) -> list[tuple[str, int]]:
        """Put the data of a send, and say which channel is to be signalled."""
        send, (peer, _) = act.send, act.other
        chunk, into = int(self.schedule.chunk[send]), int(self.schedule.into[send])
        size = int(self.places.units[chunk])
        if not size:
            return [(kind, place)]
        buffer, index = self.places.of(act.rank, chunk)
        there, at = self.places.of(peer, into)
        if self.schedule.op[send] == Op.REDUCE:
            self.room[send] = self.places.spare(peer, into)
            there, at = "s", self.room[send]
        source, target = (
            Operand(index, size, buffer),
            Operand(at, size, remote=self._buffer(block, act.rank, peer, there, kind)),
        )
        if kind == "memory":
            block.move(Operation("put", (source,), (target,), kind))
            return [(kind, place)]
        block.move(Operation("pws", (source,), (target,), kind, (block.channel(kind, place),)))
        return []

    def _add(self, block: _Block, act: Act) -> None:
        """Add what has come into scratch space, or move data within a rank."""
        if act.send < 0:
            chunk = into = -1 - act.send
            size = int(self.places.units[chunk])
            source = Operand(int(self.places.begin[chunk]), size, "i")
            block.move(Operation("copy", (source,), (Operand(int(self.places.end[chunk]), size, "o"),)))
            return
        chunk, into = int(self.schedule.chunk[act.send]), int(self.schedule.into[act.send])
        size, reduces = int(self.places.units[chunk]), self.schedule.op[act.send] == Op.REDUCE
        if not size or (act.part is Part.TAKE and not reduces):
            return
        buffer, index = self.places.of(act.rank, into)
        target = Operand(index, size, buffer)
        if act.part is Part.TAKE:
            source = Operand(self.room[act.send], size, "s")
        else:
            buffer, index = self.places.of(act.rank, chunk)
            source = Operand(index, size, buffer)
        if reduces:
            block.move(Operation("re", (target, source), (target,), reduce_op="sum"))
        else:
            block.move(Operation("copy", (source,), (target,)))

    def _end(self, wire: Wire, key: BlockKey) -> tuple[str, int]:
        """Type and place of the channel that is one end of a wire, laid when it is first asked for."""
        if wire not in self.wires:
            ends = [wire[0], wire[1]]
            kind = "memory" if self._together(ends[0][0], ends[1][0]) else "port"
            places = {}
            for end, other in (ends, ends[::-1]):
                places[end] = len(self.peers[end[0]][kind])
                self.peers[end[0]][kind].append(other[0])
            self.wires[wire] = (kind, places)
        kind, places = self.wires[wire]
        return kind, places[key]

    def _together(self, one: int, other: int) -> bool:
        """Whether two ranks are in one box."""
        topology, nodes = self.schedule.topology, self.schedule.nodes
        return topology is None or topology.nodes[nodes[one]].box == topology.nodes[nodes[other]].box

    def _buffer(self, block: _Block, rank: int, peer: int, buffer: str, kind: str) -> int:
        """The block's number for a buffer of a peer."""
        known = self.remote[rank]
        known.setdefault((peer, buffer), set()).add(kind)
        place = list(known).index((peer, buffer))
        if place not in block.buffers[kind]:
            block.buffers[kind].append(place)
        return block.buffers[kind].index(place)

    def _lock(self, first: BlockKey, then: BlockKey) -> int:
        """The semaphore with which one thread block lets another of its GPU go on."""
        if (first, then) not in self.locks:
            self.locks[first, then] = self.semaphores.get(first[0], 0)
            self.semaphores[first[0]] = self.locks[first, then] + 1
        return self.locks[first, then]


def _data_wire(act: Act) -> Wire:
    """The wire that carries the data of a send, both ways between two thread blocks."""
    return min(act.block, act.other), max(act.block, act.other), True
