"""Making schedules: sends one by one or in bulk, in an order in which they could run; dependencies follow from the slots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualcoll.collectives.contract import Contract
from dualcoll.errors import InputError
from dualcoll.kernels.hazards import slot_dependencies
from dualcoll.schedules.ir import NONE, Routes, Schedule
from dualcoll.schedules.ops import Op
from dualcoll.topology.model import Forwarding, Topology

__all__ = ["ScheduleBuilder"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

_COLUMNS = ("src", "dst", "chunk", "into", "op", "channel", "round", "route", "multicast")


class ScheduleBuilder:
    """Collects sends in program order.

    A send follows, of the sends added before it, those that wrote what it reads, read what it overwrites, or wrote what it
    overwrites (docs/semantics.md §6). Reductions into one slot commute and do not follow each other.

    Args:
        contract: what the schedule is to fulfil.
        chunk_sizes: bytes, (C,), or one number for all chunks.
        topology, nodes: the fabric and the node index of each rank (R,), if routes are to be given.
        forwarding: the policy that routes keep to; None where every node forwards.
        name: what makes it, for people.
    """

    def __init__(
        self,
        contract: Contract,
        chunk_sizes: ArrayLike,
        *,
        topology: Topology | None = None,
        nodes: Sequence[int] = (),
        forwarding: Forwarding | None = Forwarding.SWITCHES,
        name: str = "",
    ) -> None:
        self._contract = contract
        sizes = np.asarray(chunk_sizes)
        self._sizes = sizes if sizes.ndim else np.full(contract.chunks, sizes)
        self._topology = topology
        self._nodes = tuple(nodes)
        self._forwarding = forwarding
        self._name = name
        self._blocks: list[dict[str, Any]] = []  # columns of sends already in bulk
        self._open: list[tuple[int, ...]] = []  # sends added one by one since the last block
        self._after: list[tuple[int, int]] = []  # (send, a send it follows)
        self._sends = 0
        self._rounds = 0
        self._route_of: dict[tuple[tuple[int, ...], tuple[float, ...]], int] = {}

    @property
    def sends(self) -> int:
        """Sends added so far; the next one gets this number."""
        return self._sends

    @property
    def rounds(self) -> int:
        """One more than the highest round so far: the next round."""
        return self._rounds

    def send(
        self,
        src: int,
        dst: int,
        chunk: int,
        op: Op = Op.COPY,
        *,
        into: int | None = None,
        channel: int = 0,
        round: int = NONE,
        route: int = NONE,
        multicast: int = NONE,
        after: Iterable[int] = (),
    ) -> int:
        """Add one send.

        Args:
            src, dst: rank numbers; equal for a local copy or reduction into another slot.
            chunk: the slot read at ``src``. into: the slot written at ``dst``, if it is another chunk's.
            op: what happens there. channel: >= 0. round: a label. route: from :meth:`route`.
            multicast: of copies that switches make of one send.
            after: earlier sends to follow besides those that follow from the slots.

        Returns:
            Its number.
        """
        number = self._sends
        self._open.append((src, dst, chunk, chunk if into is None else into, op, channel, round, route, multicast))
        self._after += [(number, earlier) for earlier in after]
        self._sends += 1
        self._rounds = max(self._rounds, round + 1)
        return number

    def extend(
        self,
        src: ArrayLike,
        dst: ArrayLike,
        chunk: ArrayLike,
        op: ArrayLike = Op.COPY,
        *,
        into: ArrayLike | None = None,
        channel: ArrayLike = 0,
        round: ArrayLike = NONE,
        route: ArrayLike = NONE,
        multicast: ArrayLike = NONE,
    ) -> range:
        """Add many sends, in the order of the arrays (s,); what is one number stands for all of them.

        Returns:
            Their numbers.

        Raises:
            InputError: the arrays do not go together.
        """
        self._close()
        given = (src, dst, chunk, chunk if into is None else into, op, channel, round, route, multicast)
        try:
            columns = np.broadcast_arrays(*map(np.atleast_1d, given))
        except ValueError:
            raise InputError("the columns of sends have different lengths", where="extend") from None
        if columns[0].ndim != 1:
            raise InputError(f"columns of shape {columns[0].shape}, not one column each", where="extend")
        numbers = range(self._sends, self._sends + columns[0].size)
        self._blocks.append({name: column.copy() for name, column in zip(_COLUMNS, columns, strict=True)})
        self._sends = numbers.stop
        self._rounds = max(self._rounds, int(np.max(round, initial=NONE)) + 1)
        return numbers

    def route(self, links: Sequence[int], shares: Sequence[float] = ()) -> int:
        """The number of a route in the schedule's table; equal routes have one number.

        Args:
            links: link indices, in travelling order where all shares are 1.
            shares: part of the bytes on each link; all of them by default.
        """
        key = tuple(map(int, links)), tuple(map(float, shares)) or (1.0,) * len(links)
        return self._route_of.setdefault(key, len(self._route_of))

    def scratch(self, chunk: int) -> int:
        """Another slot, at every rank, for the data of this chunk: holds nothing at first, and nothing is promised of it.

        Returns:
            Its chunk number.
        """
        self._contract = self._contract.with_scratch([chunk])
        self._sizes = np.append(self._sizes, self._sizes[chunk])
        return self._contract.chunks - 1

    def build(self) -> Schedule:
        """The schedule.

        Raises:
            InputError: a send names what does not exist, or is to follow one that is not earlier.
        """
        self._close()
        empty = np.zeros(0, np.int32)
        columns = {name: np.concatenate([empty, *(block[name] for block in self._blocks)]) for name in _COLUMNS}
        draft = Schedule(
            self._contract,
            self._sizes,
            **columns,
            depends_ptr=np.zeros(self._sends + 1, np.int64),
            depends=empty,
            routes=self._routes(),
            topology=self._topology,
            nodes=self._nodes,
            forwarding=self._forwarding,
            name=self._name,
        )
        ptr, depends = self._dependencies(draft)
        return replace(draft, depends_ptr=ptr, depends=depends)

    def _close(self) -> None:
        if self._open:
            columns = np.array(self._open).T
            self._blocks.append(dict(zip(_COLUMNS, columns, strict=True)))
            self._open = []

    def _dependencies(self, draft: Schedule) -> tuple[Ints, Shorts]:
        slots = np.concatenate(
            [
                draft.src.astype(np.int64) * draft.chunks + draft.chunk,
                draft.dst.astype(np.int64) * draft.chunks + draft.into,
            ]
        )
        used, slots = np.unique(slots, return_inverse=True)
        extra = np.array(self._after, dtype=np.int64).reshape(-1, 2)
        wrong = np.flatnonzero((extra[:, 1] < 0) | (extra[:, 1] >= extra[:, 0]))
        if wrong.size:
            send, other = extra[wrong[0]]
            raise InputError(f"it is to follow send {other}, which is not earlier", where=f"send {send}")
        ptr = np.concatenate([[0], np.cumsum(np.bincount(extra[:, 0], minlength=draft.sends))])
        return slot_dependencies(
            slots[: draft.sends],
            slots[draft.sends :],
            draft.op == Op.REDUCE,
            used.size,
            ptr.astype(np.int64),
            extra[np.argsort(extra[:, 0], kind="stable"), 1].astype(np.int32),
        )

    def _routes(self) -> Routes:
        found = list(self._route_of)
        ptr = np.concatenate([[0], np.cumsum([len(links) for links, _ in found], dtype=np.int64)])
        links = np.array([link for links, _ in found for link in links], dtype=np.int32)
        share = np.array([part for _, shares in found for part in shares])
        return Routes(ptr, links, None if np.all(share == 1) else share)
