"""The schedule: sends of chunks between ranks, as read-only columns (docs/semantics.md).

Shape letters: R ranks, C chunks, S sends, D dependencies, T routes, H links of routes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.contract import ALL, Contract, read_only_column
from dualcoll.errors import InputError
from dualcoll.schedules.ops import Op
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["NONE", "Routes", "Schedule", "previous_on_channel"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Floats = NDArray[np.float64]

NONE = -1  # no route, or no round
MAX_SENDS = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """A table of routes as CSR: the links that a send uses, and how its bytes divide over them.

    Attributes:
        ptr: int64 (T+1,).
        links: int32 (H,), link indices of the topology; in travelling order where all shares are 1.
        share: float64 (H,), the part of the send's bytes on each link, in (0, 1]; None means all of them.

    Raises:
        InputError: ``ptr`` is not a CSR over the links, or a share is out of range.
    """

    ptr: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    links: Shorts = field(default_factory=lambda: np.zeros(0, np.int32))
    share: Floats | None = None

    def __post_init__(self) -> None:
        _freeze(self, "ptr", np.int64)
        _freeze(self, "links", np.int32)
        _check_csr(self.ptr, self.links.size, "routes")
        if self.share is None:
            return
        _freeze(self, "share", np.float64)
        if self.share.shape != self.links.shape or not np.all((self.share > 0) & (self.share <= 1)):
            raise InputError("each link of a route needs a share in (0, 1]", where="routes")

    def __len__(self) -> int:
        return int(self.ptr.size - 1)

    def of(self, route: int) -> Shorts:
        """Link indices of one route, int32 (h,)."""
        return self.links[self.ptr[route] : self.ptr[route + 1]]

    def shares(self, route: int) -> Floats:
        """Shares of one route's links, float64 (h,)."""
        hops = slice(int(self.ptr[route]), int(self.ptr[route + 1]))
        return np.ones(hops.stop - hops.start) if self.share is None else self.share[hops]


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Sends of chunks. Made by :class:`~dualcoll.schedules.builder.ScheduleBuilder` or read from a file.

    Construction checks that every number names something that exists; whether the schedule does what its contract promises
    is for :func:`~dualcoll.schedules.validate.validate`.

    Attributes:
        contract: what must be true before and after; its ranks are numbered 0 .. R-1.
        chunk_size: int64 (C,), bytes; may be 0.
        src, dst: int32 (S,), rank numbers. They are equal for a local copy or reduction between two slots of a rank, which
            is on no channel and has no route.
        chunk: int32 (S,), the slot that is read at ``src``.
        into: int32 (S,), the slot that is written at ``dst``: the same chunk, unless slots for the same data are several.
        op: int8 (S,), :class:`~dualcoll.schedules.ops.Op`.
        channel: int32 (S,), >= 0. Sends of one (src, dst, channel) start and are delivered in order of index (§5).
        round: int32 (S,), >= 0, or ``NONE``; a label, which orders nothing.
        depends_ptr, depends: CSR of the sends that must have been delivered before a send starts, int64 (S+1,), int32 (D,).
        route: int32 (S,), number in ``routes``, or ``NONE``.
        multicast: int32 (S,), >= 0, or ``NONE``: copies of one slot with one number leave together, and switches make many of
            what comes once (§9); ``NONE`` for all by default.
        routes: table of routes; empty without a topology.
        topology: the fabric, or None. nodes: node index of each rank (R,); empty without a topology.
        forwarding: the policy that routes keep to; None where there is none to keep to (every node forwards).
        name: what made it, for people, such as ``"ring"``.

    Raises:
        InputError: columns of different length, or a number that names nothing.
    """

    contract: Contract
    chunk_size: Ints
    src: Shorts
    dst: Shorts
    chunk: Shorts
    into: Shorts
    op: NDArray[np.int8]
    channel: Shorts
    round: Shorts
    depends_ptr: Ints
    depends: Shorts
    route: Shorts
    routes: Routes = field(default_factory=Routes)
    topology: Topology | None = None
    nodes: tuple[int, ...] = ()
    forwarding: Forwarding | None = Forwarding.SWITCHES
    name: str = ""
    multicast: Shorts = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.multicast is None:
            object.__setattr__(self, "multicast", np.full(len(self.src), NONE, np.int32))
        for name in ("chunk_size", "depends_ptr"):
            _freeze(self, name, np.int64)
        for name in ("src", "dst", "chunk", "into", "channel", "round", "depends", "route", "multicast"):
            _freeze(self, name, np.int32)
        _freeze(self, "op", np.int8)
        _check_chunks(self)
        _check_sends(self)
        _check_topology(self)

    @property
    def ranks(self) -> int:
        """R, the number of ranks."""
        return self.contract.ranks

    @property
    def chunks(self) -> int:
        """C, the number of chunks."""
        return self.contract.chunks

    @property
    def sends(self) -> int:
        """S, the number of sends, local copies and reductions included."""
        return int(self.src.size)

    @property
    def send_size(self) -> Ints:
        """Bytes of each send, int64 (S,)."""
        return self.chunk_size[self.chunk]

    @property
    def size(self) -> int:
        """Bytes of the message as nccl-tests counts them (see :class:`~dualcoll.collectives.workload.Group`); of the largest
        group.
        """
        return max((_message(self, group) for group in range(len(self.contract.groups))), default=0)

    @property
    def rounds(self) -> int:
        """One more than the highest round; 0 where sends have none."""
        return int(self.round.max(initial=NONE)) + 1

    def depends_of(self, send: int) -> Shorts:
        """Sends that must have been delivered before this one starts, int32 (d,)."""
        return self.depends[self.depends_ptr[send] : self.depends_ptr[send + 1]]

    def rank_name(self, rank: int) -> str:
        """The rank's node in the topology, or its number."""
        return str(rank) if self.topology is None else self.topology.nodes[self.nodes[rank]].name


def previous_on_channel(schedule: Schedule, places: int = 1) -> Shorts:
    """The send so many places before each on its (src, dst, channel), int32 (S,); ``NONE`` where there is none, as for local
    ones.
    """
    previous = np.full(schedule.sends, NONE, np.int32)
    moved = np.flatnonzero(schedule.src != schedule.dst)
    keys = [column[moved] for column in (schedule.channel, schedule.dst, schedule.src)]
    order = np.lexsort(keys)  # stable: by index within a channel
    ahead, behind = order[:-places], order[places:]
    same = np.ones(behind.size, bool)
    for key in keys:
        same &= key[ahead] == key[behind]
    previous[moved[behind[same]]] = moved[ahead[same]]
    return previous


def _message(schedule: Schedule, group: int) -> int:
    """Bytes of one group's message."""
    contract = schedule.contract
    target = np.full(contract.chunks, ALL)
    promised = contract.target >= 0
    target[contract.data[promised]] = contract.target[promised]  # where the data of a chunk ends, if that is one rank
    own = (contract.group == group) & (contract.data == np.arange(contract.chunks))
    size, ends = schedule.chunk_size[own], (contract.source[own], target[own])
    if any(np.any(end < 0) for end in ends):
        return int(size.sum())
    return max((int(np.bincount(end, size, 1).max()) for end in ends), default=0)


def _freeze(owner: Routes | Schedule, name: str, dtype: type[np.generic]) -> None:
    object.__setattr__(owner, name, read_only_column(getattr(owner, name), dtype, name))


def _check_csr(ptr: Ints, entries: int, where: str) -> None:
    if ptr.size == 0 or ptr[0] != 0 or ptr[-1] != entries or np.any(ptr[1:] < ptr[:-1]):
        raise InputError(f"the row ends do not run from 0 to {entries}", where=where)


def _check_chunks(schedule: Schedule) -> None:
    if schedule.chunk_size.size != schedule.chunks:
        raise InputError(f"{schedule.chunk_size.size} sizes for {schedule.chunks} chunks", where="chunk_size")
    if np.any(schedule.chunk_size < 0):
        raise InputError(f"size {schedule.chunk_size.min()} is below 0", where="chunk_size")


def _check_sends(schedule: Schedule) -> None:
    if schedule.sends > MAX_SENDS:
        raise InputError(f"{schedule.sends} sends are too many", hint=f"at most {MAX_SENDS} can be handled")
    bounds = {
        "src": (0, schedule.ranks),
        "dst": (0, schedule.ranks),
        "chunk": (0, schedule.chunks),
        "into": (0, schedule.chunks),
        "op": (0, len(Op)),
        "channel": (0, 2**31),
        "round": (NONE, 2**31),
        "route": (NONE, len(schedule.routes)),
        "multicast": (NONE, 2**31),
    }
    for name, (low, high) in bounds.items():
        column = getattr(schedule, name)
        if column.size != schedule.sends:
            raise InputError(f"{column.size} numbers for {schedule.sends} sends", where=name)
        if column.size and (column.min() < low or column.max() >= high):
            wrong = int(np.flatnonzero((column < low) | (column >= high))[0])
            raise InputError(f"{name} {column[wrong]} is not in {low} .. {high - 1}", where=f"send {wrong}")
    if schedule.depends_ptr.size != schedule.sends + 1:
        raise InputError(f"{schedule.depends_ptr.size} row ends for {schedule.sends} sends", where="depends")
    _check_csr(schedule.depends_ptr, schedule.depends.size, "depends")
    if schedule.depends.size and not 0 <= schedule.depends.min() <= schedule.depends.max() < schedule.sends:
        raise InputError(f"a dependency is no send of 0 to {schedule.sends - 1}", where="depends")
    still = np.flatnonzero((schedule.src == schedule.dst) & (schedule.chunk == schedule.into))
    if still.size:
        raise InputError("it goes from a slot to the same slot", where=f"send {still[0]}")


def _check_topology(schedule: Schedule) -> None:
    topology = schedule.topology
    if topology is None:
        if schedule.nodes or len(schedule.routes):
            raise InputError("nodes and routes need a topology")
        return
    if len(schedule.nodes) != schedule.ranks or len(set(schedule.nodes)) != schedule.ranks:
        raise InputError(f"nodes must be {schedule.ranks} different ones, one per rank", where="nodes")
    if not all(0 <= node < len(topology.nodes) for node in schedule.nodes):
        raise InputError("it names a node that the topology does not have", where="nodes")
    links = schedule.routes.links
    if links.size and not 0 <= links.min() <= links.max() < len(topology.links):
        raise InputError("it names a link that the topology does not have", where="routes")
