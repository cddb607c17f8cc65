"""An order in which a schedule can run, or the cycle that prevents one (docs/semantics.md §5, §6)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import CheckFailed
from dualcoll.kernels.symbolic import linear_order
from dualcoll.schedules.ir import NONE, Schedule, previous_on_channel

__all__ = ["describe_send", "room_makers", "running_order"]

Shorts = NDArray[np.int32]

SHOWN = 6  # sends of a cycle named in its message


def running_order(schedule: Schedule, depth: int | None = None) -> Shorts:
    """All sends in an order that dependencies and channels allow, int32 (S,): that of their numbers if it is one.

    Args:
        schedule: the sends.
        depth: places of every channel; None for as many as it takes.

    Raises:
        CheckFailed: there is none; with a cycle as the witness.
    """
    none = np.full(schedule.depends.size, NONE, np.int32)
    first = np.full(schedule.sends, NONE, np.int32)
    earlier = previous_on_channel(schedule)
    opens = none if depth is None else room_makers(schedule, depth)
    row = np.repeat(np.arange(schedule.sends, dtype=np.int32), np.diff(schedule.depends_ptr))
    if np.all(schedule.depends < row) and np.all((opens == NONE) | (opens > row)):
        return np.arange(schedule.sends, dtype=np.int32)
    order = linear_order(schedule.depends_ptr, schedule.depends, earlier, opens)
    if order.size == schedule.sends:
        return order
    for kind, section, before, room in (
        ("dependency cycle", 6, first, none),
        ("deadlock of in-order channels", 5, earlier, none),
        (f"deadlock of in-order channels of depth {depth}", 5, earlier, opens),
    ):
        order = linear_order(schedule.depends_ptr, schedule.depends, before, room)
        if order.size < schedule.sends:
            raise CheckFailed((f"{kind}: {_cycle(schedule, order, before, room)} (§{section})",))
    raise AssertionError("one of the three is the order that failed")


def describe_send(schedule: Schedule, send: int) -> str:
    """Text such as ``send 12 (rank g0 -> g1, chunk 3)``."""
    src, dst = schedule.rank_name(int(schedule.src[send])), schedule.rank_name(int(schedule.dst[send]))
    ranks = f"{src} -> {dst}" if schedule.src[send] != schedule.dst[send] else f"{src}, local"
    chunk, into = schedule.chunk[send], schedule.into[send]
    return f"send {send} (rank {ranks}, chunk {chunk}{'' if chunk == into else f' into {into}'})"


def room_makers(schedule: Schedule, depth: int) -> Shorts:
    """For each dependency the send that waits for the row's send to make room on a channel of that depth, int32 (D,)."""
    before = previous_on_channel(schedule, depth)
    after = np.full(schedule.sends, NONE, np.int32)  # the send that takes the place of each
    takes = np.flatnonzero(before != NONE)
    after[before[takes]] = takes
    row = np.repeat(np.arange(schedule.sends), np.diff(schedule.depends_ptr))
    received = schedule.depends
    forwards = (
        (schedule.dst[received] == schedule.src[row])
        & (schedule.channel[received] == schedule.channel[row])
        & (schedule.src[row] != schedule.dst[row])
    )
    return np.where(forwards, after[received], np.int32(NONE))


def _cycle(schedule: Schedule, order: Shorts, earlier: Shorts, opens: Shorts) -> str:
    """A cycle among the sends that are not in the order, in words."""
    stuck = np.ones(schedule.sends, bool)
    stuck[order] = False
    row = np.repeat(np.arange(schedule.sends), np.diff(schedule.depends_ptr))
    send = int(np.flatnonzero(stuck)[0])
    walk: dict[int, str] = {}  # each send walked through, and why it waits for the next
    while send not in walk:
        dependencies = schedule.depends_of(send)
        waits = dependencies[stuck[dependencies]]
        if waits.size:
            walk[send] = "waits for"
            following = int(waits[0])
        elif earlier[send] != NONE and stuck[earlier[send]]:
            walk[send] = f"is behind, on channel {schedule.channel[send]},"
            following = int(earlier[send])
        else:
            makers = row[opens == send]
            walk[send] = f"needs room on channel {schedule.channel[send]}, made by"
            following = int(makers[stuck[makers]][0])
        send = following
    sends = list(walk)
    cycle = sends[sends.index(send) :]
    text = describe_send(schedule, cycle[0])
    for at, following in pairwise([*cycle, cycle[0]][: SHOWN + 1]):
        text += f" {walk[at]} {describe_send(schedule, following)}, which"
    if len(cycle) > SHOWN:
        return f"{text} waits through {len(cycle) - SHOWN} more sends for send {cycle[0]}"
    return text.removesuffix(", which")
