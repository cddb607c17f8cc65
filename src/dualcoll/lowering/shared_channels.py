"""Fewer channels for a schedule than it has trees.

Every tree of a plan has a channel of its own, and executors have a few dozen. Trees that share one take turns where they run
between the same two ranks, and do not mind each other elsewhere. So each channel joins those with which it shares the fewest
such sends, the largest first (greedy colouring), and the sends of joined channels take turns in the order in which they would
start if nobody shared. A schedule that shares may need deeper channels, if every rank passes on what it hears before it takes
more (docs/semantics.md §5).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dualcoll.errors import InputError
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.order import running_order
from dualcoll.simulation import simulate

__all__ = ["share_channels"]

_COLUMNS = ("src", "dst", "chunk", "into", "op", "channel", "round", "route")


def share_channels(schedule: Schedule, channels: int) -> Schedule:
    """The same sends on at most so many channels; the schedule itself if it has no more.

    Raises:
        InputError: fewer than one channel.
        CheckFailed: the schedule cannot run.
    """
    if channels < 1:
        raise InputError(f"{channels} channels", where="channels", hint="use 1 or more")
    numbers = np.unique(schedule.channel)
    if numbers.size <= channels:
        return schedule
    joined = dict(zip(numbers.tolist(), _joined(schedule, numbers.tolist(), channels), strict=True))
    place = np.empty(schedule.sends, np.int64)
    place[running_order(schedule)] = np.arange(schedule.sends)
    start = np.zeros(schedule.sends) if schedule.topology is None else simulate(schedule).start
    order = np.lexsort([place, start])
    place[order] = np.arange(schedule.sends)
    count = np.diff(schedule.depends_ptr)[order]
    entry = np.arange(schedule.depends.size) + np.repeat(
        schedule.depends_ptr[:-1][order] - (np.cumsum(count) - count), count
    )
    columns = {name: getattr(schedule, name)[order] for name in _COLUMNS}
    columns["channel"] = np.array([joined[number] for number in columns["channel"].tolist()], np.int32)
    return replace(
        schedule,
        **columns,
        depends_ptr=np.concatenate([[0], np.cumsum(count)]),
        depends=place[schedule.depends[entry]].astype(np.int32),
    )


def _joined(schedule: Schedule, numbers: list[int], channels: int) -> list[int]:
    """The new number of each channel."""
    ends = schedule.src.astype(np.int64) * schedule.ranks + schedule.dst
    pairs, index = np.unique(ends, return_inverse=True)
    of = np.searchsorted(numbers, schedule.channel)
    sends = np.zeros((len(numbers), pairs.size), np.int64)
    np.add.at(sends, (of, index), 1)
    taken = np.zeros((channels, pairs.size), np.int64)
    new = [0] * len(numbers)
    for number in np.argsort(-sends.sum(axis=1), kind="stable").tolist():
        crowded = taken[:, sends[number] > 0].sum(axis=1)
        new[number] = int(np.lexsort([taken.sum(axis=1), crowded])[0])
        taken[new[number]] += sends[number]
    return new
