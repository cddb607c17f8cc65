"""Schedules and fabrics for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dualcoll.collectives.contract import make_contract
from dualcoll.errors import CheckFailed
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.schedules.validate import validate
from dualcoll.topology.model import Kind, Link, Node, Topology, duplex

COLUMNS = ("src", "dst", "chunk", "into", "op", "channel", "round", "route", "multicast")


def ring(ranks: int, size: int = 8) -> Schedule:
    """AllReduce around a ring, with rounds."""
    builder = ScheduleBuilder(make_contract("allreduce", ranks, pieces=ranks), size, name="ring")
    rank = np.arange(ranks)
    for k in range(ranks - 1):
        builder.extend(rank, (rank + 1) % ranks, (rank - k) % ranks, Op.REDUCE, round=k)
    for k in range(ranks - 1):
        builder.extend(rank, (rank + 1) % ranks, (rank + 1 - k) % ranks, round=ranks - 1 + k)
    return builder.build()


def all_to_all(ranks: int, size: int = 8) -> Schedule:
    """Everybody sends to everybody at once."""
    builder = ScheduleBuilder(make_contract("alltoall", ranks), size)
    src, dst = np.divmod(np.arange(ranks**2), ranks)
    away = src != dst
    builder.extend(src[away], dst[away], np.flatnonzero(away))
    return builder.build()


def swap(rounds: bool = True) -> Schedule:
    """Two ranks exchange their whole vectors and add, each by way of a scratch slot."""
    builder = ScheduleBuilder(make_contract("allreduce", 2), 8, name="swap")
    spare = builder.scratch(0)
    for rank in (0, 1):
        builder.send(rank, 1 - rank, 0, into=spare, round=0 if rounds else -1)
    for rank in (0, 1):
        builder.send(rank, rank, spare, Op.REDUCE, into=0, round=1 if rounds else -1)
    return builder.build()


def star(leaves: int = 4) -> Topology:
    """GPUs g0.. in one box around a switch."""
    nodes = [Node(f"g{i}", Kind.GPU, box="b") for i in range(leaves)]
    links = [link for i in range(leaves) for link in duplex(Link(i, leaves, 1e9))]
    return Topology((*nodes, Node("sw", Kind.SWITCH, box="b")), tuple(links))


def loop(ranks: int = 4) -> Topology:
    """GPUs g0.. cabled as a ring, without a switch."""
    links = [link for i in range(ranks) for link in duplex(Link(i, (i + 1) % ranks, 1e9))]
    return Topology(tuple(Node(f"g{i}", Kind.GPU, box="b") for i in range(ranks)), tuple(links))


@st.composite
def programs(draw: st.DrawFn, most: int = 7) -> Schedule:
    """A builder's schedule of random sends between two or three ranks, some with a scratch slot."""
    ranks = draw(st.integers(2, 3))
    contract = make_contract(draw(st.sampled_from(["allreduce", "reduce", "broadcast", "allgather"])), ranks)
    builder = ScheduleBuilder(contract, 8)
    chunks = list(range(contract.chunks))
    if draw(st.booleans()):
        chunks.append(builder.scratch(0))
    for _ in range(draw(st.integers(0, most))):
        src, dst = draw(st.integers(0, ranks - 1)), draw(st.integers(0, ranks - 1))
        chunk = draw(st.sampled_from(chunks))
        same_data = {0, chunks[-1]} if len(chunks) > contract.chunks and chunk in (0, chunks[-1]) else {chunk}
        into = draw(st.sampled_from(sorted(same_data)))
        if (src, chunk) != (dst, into):
            builder.send(src, dst, chunk, draw(st.sampled_from(list(Op))), into=into, channel=draw(st.integers(0, 1)))
    return builder.build()


def edited(schedule: Schedule, order: Sequence[int], **columns: Any) -> Schedule:
    """The sends named, in that order, each with its dependencies as far as they are still there; columns then replaced."""
    new = np.full(schedule.sends, -1)
    new[np.asarray(order, int)] = np.arange(len(order))
    rows = [[int(new[d]) for d in schedule.depends_of(send) if new[d] >= 0] for send in order]
    kept: dict[str, Any] = {name: getattr(schedule, name)[np.asarray(order, int)] for name in COLUMNS}
    return replace(schedule, **(kept | columns), **csr(rows))


def csr(rows: list[list[int]]) -> dict[str, Any]:
    """Dependencies row by row as the schedule's columns."""
    flat = [entry for row in rows for entry in row]
    return {"depends_ptr": np.cumsum([0, *map(len, rows)]), "depends": np.array(flat, np.int32)}


def findings(schedule: Schedule, depth: int | None = 2, one_per_round: bool = False) -> tuple[str, ...]:
    """What validation finds; nothing for a valid schedule."""
    try:
        validate(schedule, depth=depth, one_per_round=one_per_round)
    except CheckFailed as failure:
        return failure.findings
    return ()


def sections(texts: Sequence[str]) -> set[int]:
    """The sections of docs/semantics.md that findings cite."""
    return {int(text.rsplit("(§", 1)[1].removesuffix(")")) for text in texts if text.endswith(")")}
