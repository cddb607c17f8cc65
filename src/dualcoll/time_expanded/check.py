"""Every rule of the time-expanded network, checked on a schedule that anybody may have written (docs/time-expanded.md).

It shares no code with the solvers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dualcoll.time_expanded.feeds import NOTHING, feeds, useful
from dualcoll.time_expanded.network import Network
from dualcoll.time_expanded.problem import EpochSchedule
from dualcoll.time_expanded.solution import Solution

__all__ = ["Examination", "Rule", "Violation", "examine", "examine_solution", "violations"]

Shorts = NDArray[np.int32]


class Rule(StrEnum):
    """The rules, by their names in docs/time-expanded.md."""

    EPOCH = "epoch"  # starts lie between the release and the last epoch
    HOLDING = "holding"  # a rank sends what it has
    SWITCH = "switch"  # a switch sends on what comes in that very epoch
    COPY = "copy"  # who does not copy sends on no more than came
    CAPACITY = "capacity"  # what fits on a link
    RELAY = "relay"  # ranks take what is for them
    BUFFER = "buffer"  # a rank holds so many chunks of others
    DEMAND = "demand"  # everybody gets what it wants


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: in words, and where. What does not apply is -1."""

    rule: Rule
    text: str
    epoch: int = -1
    chunk: int = -1
    vertex: int = -1

    def __str__(self) -> str:
        return f"{self.text} ({self.rule})"


@dataclass(frozen=True, slots=True)
class Examination:
    """What a schedule written by hand is worth.

    Attributes:
        violations: broken rules, unmet demands among them.
        met, demands: how many (rank, chunk) are delivered, and wanted.
        finish: epoch by which what is delivered is delivered. seconds: the same.
        useless: starts that help nobody.
    """

    violations: tuple[Violation, ...]
    met: int
    demands: int
    finish: int
    seconds: float
    useless: tuple[int, ...]


def examine(schedule: EpochSchedule, horizon: int | None = None) -> Examination:
    """Check a schedule against every rule.

    Args:
        schedule: the starts.
        horizon: the epoch by which everything must have arrived, if there is one.
    """
    _, delivers = feeds(schedule)
    wants = schedule.problem.wants()
    finish = int(schedule.arrival[list(delivers.values())].max(initial=0))
    useless = np.flatnonzero(~useful(schedule))
    found = tuple(violations(schedule, horizon))
    seconds = finish * schedule.problem.network.epoch
    return Examination(found, len(delivers), int(wants.sum()), finish, seconds, tuple(useless.tolist()))


def examine_solution(found: Solution) -> Examination:
    """Check what spreads, what gathers (on the transposed network, with time turned round), and both together."""
    parts = [part for part in (found.copying, found.reducing) if part is not None]
    seen = [examine(part) for part in parts]
    broken = [violation for one in seen for violation in one.violations]
    if found.copying is not None and found.reducing is not None:
        broken += _together(found, found.copying, found.reducing)
    useless = tuple(seen[0].useless) if len(seen) == 1 else tuple(i for one in seen for i in one.useless)
    return Examination(
        tuple(broken),
        sum(one.met for one in seen),
        sum(one.demands for one in seen),
        found.finish,
        found.makespan,
        useless,
    )


def _together(found: Solution, copying: EpochSchedule, reducing: EpochSchedule) -> list[Violation]:
    network = reducing.problem.network
    uses = _uses(network, copying.arc, copying.epoch)
    for row, epochs in _uses(network, reducing.arc, found.turn - reducing.arrival).items():
        uses.setdefault(row, []).extend(epochs)
    broken = _crowded(network, uses)
    gathered: dict[int, int] = {}
    for chunk, arc, epoch in zip(reducing.chunk.tolist(), reducing.arc.tolist(), reducing.epoch.tolist(), strict=True):
        if network.tail[arc] == reducing.problem.source[chunk]:
            gathered[chunk] = max(gathered.get(chunk, 0), found.turn - epoch)
    tail = copying.problem.network.tail[copying.arc]
    for s in np.flatnonzero(tail == copying.problem.source[copying.chunk]).tolist():
        ready = gathered.get(int(copying.chunk[s]), 0)
        if copying.epoch[s] < ready:
            broken.append(_at(copying, s, Rule.HOLDING, f"it is not reduced before epoch {ready}"))
    return broken


def violations(schedule: EpochSchedule, horizon: int | None = None) -> list[Violation]:
    """All broken rules; none for a right schedule. A start that breaks one is taken to happen all the same, so that what
    follows from it is not named again.
    """
    return [
        *_epochs(schedule, horizon),
        *_sources(schedule),
        *_crowded(schedule.problem.network, _uses(schedule.problem.network, schedule.arc, schedule.epoch)),
        *_relays(schedule),
        *_buffers(schedule),
        *_demands(schedule),
    ]


def _epochs(schedule: EpochSchedule, horizon: int | None) -> list[Violation]:
    found = []
    problem = schedule.problem
    for s in np.flatnonzero(schedule.epoch < 0).tolist():
        found.append(_at(schedule, s, Rule.EPOCH, f"it starts in epoch {schedule.epoch[s]}, before epoch 0"))
    tail = problem.network.tail[schedule.arc]
    early = (tail == problem.source[schedule.chunk]) & (schedule.epoch < problem.release[schedule.chunk])
    for s in np.flatnonzero(early & (schedule.epoch >= 0)).tolist():
        released = problem.release[schedule.chunk[s]]
        found.append(_at(schedule, s, Rule.EPOCH, f"it starts before epoch {released}, from which its source has it"))
    if horizon is not None:
        for s in np.flatnonzero(schedule.arrival > horizon).tolist():
            found.append(_at(schedule, s, Rule.EPOCH, f"it arrives in epoch {schedule.arrival[s]}, after {horizon}"))
    return found


def _sources(schedule: EpochSchedule) -> list[Violation]:
    network = schedule.problem.network
    fed, _ = feeds(schedule)
    came: dict[tuple[int, int], list[int]] = defaultdict(list)
    arrival, head = schedule.arrival.tolist(), network.head[schedule.arc].tolist()
    for s, c in enumerate(schedule.chunk.tolist()):
        came[c, head[s]].append(arrival[s])
    found = []
    for s in np.flatnonzero(fed == NOTHING).tolist():
        v, k = int(network.tail[schedule.arc[s]]), int(schedule.epoch[s])
        times = came[int(schedule.chunk[s]), v]
        there = k in times if not network.holds[v] else any(t <= k for t in times)
        name = network.name(v)
        if there:
            found.append(_at(schedule, s, Rule.COPY, f"{name} does not copy, and what came has left or must stay"))
        elif network.holds[v]:
            when = f"not before epoch {min(times)}" if times else "never"
            found.append(_at(schedule, s, Rule.HOLDING, f"{name} gets it {when}"))
        else:
            when = f"it comes in epoch {', '.join(map(str, sorted(set(times))))}" if times else "it never comes"
            found.append(_at(schedule, s, Rule.SWITCH, f"{name} holds nothing, and {when}"))
    return found


def _uses(network: Network, arc: Shorts, epoch: Shorts) -> dict[int, list[int]]:
    """The epochs of all starts on each capacity row."""
    epochs: dict[int, list[int]] = defaultdict(list)
    for a, k in zip(arc.tolist(), epoch.tolist(), strict=True):
        for row in network.rows_of(a).tolist():
            epochs[row].append(k)
    return epochs


def _crowded(network: Network, uses: dict[int, list[int]]) -> list[Violation]:
    """The first window of each length of each row that holds too many starts."""
    found = []
    for row, starts in sorted(uses.items()):
        starts.sort()
        for window, most in network.starts[row]:
            wrong = [i for i in range(len(starts) - most) if starts[i + most] < starts[i] + window]
            if not wrong:
                continue
            k = starts[wrong[0]]
            held = sum(k <= other < k + window for other in starts)
            when = f"epoch {k}" if window == 1 else f"epochs {k} to {k + window - 1}"
            text = f"{network.row_name(row)}, {when}: {held} starts, where {most} fit"
            found.append(Violation(Rule.CAPACITY, text, epoch=k))
    return found


def _relays(schedule: EpochSchedule) -> list[Violation]:
    problem, network = schedule.problem, schedule.problem.network
    if network.clock.relay:
        return []
    found = []
    wants = problem.wants()
    for s, (a, c) in enumerate(zip(schedule.arc.tolist(), schedule.chunk.tolist(), strict=True)):
        v = int(network.head[a])
        if network.holds[v] and (v >= network.ranks or (not wants[c, v] and v != problem.source[c])):
            found.append(_at(schedule, s, Rule.RELAY, f"it is not for {network.name(v)}, and ranks do not relay"))
    return found


def _buffers(schedule: EpochSchedule) -> list[Violation]:
    """The first epoch in which each rank holds too many chunks of others, each from its arrival until it has last left."""
    problem, network = schedule.problem, schedule.problem.network
    room = network.clock.buffer
    if room is None:
        return []
    wants = problem.wants()
    fed, _ = feeds(schedule)
    until: dict[int, int] = {}  # arrival -> last epoch in which it leaves
    for s in np.flatnonzero(fed >= 0).tolist():
        by = int(fed[s])
        until[by] = max(until.get(by, 0), int(schedule.epoch[s]))
    held: Counter[tuple[int, int]] = Counter()
    for by, last in until.items():
        v, c = int(network.head[schedule.arc[by]]), int(schedule.chunk[by])
        if network.holds[v] and not (v < network.ranks and wants[c, v]):
            held.update((v, k) for k in range(int(schedule.arrival[by]), last + 1))
    over: dict[int, int] = {}
    for (v, k), count in held.items():
        if count > room:
            over[v] = min(over.get(v, k), k)
    return [
        Violation(
            Rule.BUFFER,
            f"{network.name(v)}, epoch {k}: {held[v, k]} chunks of others, where {room} fit",
            epoch=k,
            vertex=v,
        )
        for v, k in sorted(over.items())
    ]


def _demands(schedule: EpochSchedule) -> list[Violation]:
    problem, network = schedule.problem, schedule.problem.network
    _, delivers = feeds(schedule)
    found = []
    for c in range(problem.chunks):
        for rank in problem.wanted(c):
            by = delivers.get((c, rank))
            if by is None:
                text = f"{network.name(rank)} never gets chunk {c}"
                found.append(Violation(Rule.DEMAND, text, chunk=c, vertex=rank))
            elif schedule.arrival[by] > problem.deadline[c]:
                text = (
                    f"{network.name(rank)} gets chunk {c} in epoch {schedule.arrival[by]}, due by {problem.deadline[c]}"
                )
                found.append(Violation(Rule.DEMAND, text, int(schedule.arrival[by]), c, rank))
    return found


def _at(schedule: EpochSchedule, start: int, rule: Rule, text: str) -> Violation:
    network = schedule.problem.network
    a, k, c = int(schedule.arc[start]), int(schedule.epoch[start]), int(schedule.chunk[start])
    link = network.topology.describe_link(int(network.link[a]))
    return Violation(rule, f"chunk {c} on {link} in epoch {k}: {text}", k, c, int(network.tail[a]))
