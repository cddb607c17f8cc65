"""Which start brings what another one sends on, what nobody needs, and the hops from holder to holder.

The pass that deletes useless starts is TE-CCL's post-processing (§3.2): O(S log S). Shape letters: S starts, H hops.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.time_expanded.problem import EpochSchedule, kept_arrival

__all__ = ["NOTHING", "SOURCE", "Hop", "feeds", "hops", "pruned", "useful"]

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

SOURCE = -1  # the chunk begins there
NOTHING = -2  # the chunk is not there


def feeds(schedule: EpochSchedule) -> tuple[Ints, dict[tuple[int, int], int]]:
    """What brings each start's chunk to where it starts, and what brings each chunk to the ranks that want it.

    Where chunks are copied, the first arrival serves everybody. Where they are not, the n-th to leave is the n-th to come, and
    a rank keeps the first that it can do without.

    Returns:
        int64 (S,), a start, ``SOURCE`` or ``NOTHING``; and the start that delivers (chunk, rank), for those delivered.
    """
    problem, network = schedule.problem, schedule.problem.network
    comes: dict[tuple[int, int], list[int]] = defaultdict(list)  # (chunk, vertex) -> starts by arrival
    leaves: dict[tuple[int, int], list[int]] = defaultdict(list)  # -> starts by epoch
    tail, head = network.tail[schedule.arc].tolist(), network.head[schedule.arc].tolist()
    chunk, arrival, epoch = schedule.chunk.tolist(), schedule.arrival.tolist(), schedule.epoch.tolist()
    for start in np.argsort(schedule.arrival, kind="stable").tolist():
        comes[chunk[start], head[start]].append(start)
    for start in range(len(chunk)):
        leaves[chunk[start], tail[start]].append(start)
    fed = np.full(len(chunk), NOTHING, np.int64)
    for (c, v), starts in leaves.items():
        came = comes.get((c, v), [])
        if v == problem.source[c]:
            fed[starts] = SOURCE
        elif not network.holds[v]:
            _feed_at_once(starts, came, epoch, arrival, fed, copies=bool(network.copies[v]))
        elif network.copies[v]:
            fed[[s for s in starts if came and arrival[came[0]] <= epoch[s]]] = came[0] if came else NOTHING
        else:
            kept = _kept(starts, came, epoch, arrival) if v < network.ranks and v in problem.wanted(c) else len(came)
            for s, by in zip(starts, came[:kept] + came[kept + 1 :], strict=False):
                fed[s] = by if arrival[by] <= epoch[s] else NOTHING
    delivers = {}
    for c in range(problem.chunks):
        for rank in problem.wanted(c):
            came = comes.get((c, rank), [])
            kept = 0 if network.copies[rank] else _kept(leaves.get((c, rank), []), came, epoch, arrival)
            if kept < len(came):
                delivers[c, rank] = came[kept]
    return fed, delivers


def _feed_at_once(
    starts: list[int], came: list[int], epoch: list[int], arrival: list[int], fed: Ints, *, copies: bool
) -> None:
    there: dict[int, list[int]] = defaultdict(list)
    for by in reversed(came):
        there[arrival[by]].append(by)
    for s in starts:
        waiting = there[epoch[s]]
        if waiting:
            fed[s] = waiting[-1] if copies else waiting.pop()


def _kept(starts: list[int], came: list[int], epoch: list[int], arrival: list[int]) -> int:
    return kept_arrival([arrival[by] for by in came], [epoch[s] for s in starts])


def useful(schedule: EpochSchedule) -> Flags:
    """Whether each start helps to deliver something, bool (S,)."""
    fed, delivers = feeds(schedule)
    needed = np.zeros(fed.size, bool)
    todo = list(delivers.values())
    while todo:
        start = todo.pop()
        while start >= 0 and not needed[start]:
            needed[start] = True
            start = int(fed[start])
    return needed


def pruned(schedule: EpochSchedule) -> EpochSchedule:
    """The schedule without the starts that help nobody."""
    needed = useful(schedule)
    return replace(schedule, arc=schedule.arc[needed], epoch=schedule.epoch[needed], chunk=schedule.chunk[needed])


@dataclass(frozen=True, slots=True)
class Hop:
    """A chunk's way from one holder to the next.

    Attributes:
        tail, head: vertices that hold. chunk: what. links: of the topology, in order; starts: the epoch in which it starts on
            each.
        first: the start that leaves ``tail``; hops with the same one are copies made by switches.
        arrival: when it is there.
    """

    tail: int
    head: int
    chunk: int
    links: tuple[int, ...]
    starts: tuple[int, ...]
    first: int
    arrival: int

    def turned(self, turn: int) -> Hop:
        """The hop with time run backwards from epoch ``turn``: it starts on each link when it has crossed it."""
        crossed = (*self.starts[1:], self.arrival)
        starts = tuple(turn - epoch for epoch in reversed(crossed))
        return Hop(self.head, self.tail, self.chunk, self.links[::-1], starts, self.first, turn - self.starts[0])


def hops(schedule: EpochSchedule) -> Iterator[Hop]:
    """The hops of a schedule, in order of their arrival at their ends' last start."""
    network = schedule.problem.network
    fed, _ = feeds(schedule)
    for last in range(schedule.arc.size):
        if not network.holds[network.head[schedule.arc[last]]]:
            continue
        way = [last]
        while not network.holds[network.tail[schedule.arc[way[-1]]]]:
            before = int(fed[way[-1]])
            if before < 0:
                break
            way.append(before)
        first = way[-1]
        yield Hop(
            int(network.tail[schedule.arc[first]]),
            int(network.head[schedule.arc[last]]),
            int(schedule.chunk[last]),
            tuple(int(network.link[schedule.arc[s]]) for s in reversed(way)),
            tuple(int(schedule.epoch[s]) for s in reversed(way)),
            first,
            int(schedule.arrival[last]),
        )
