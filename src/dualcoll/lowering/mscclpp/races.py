"""Accesses of one spot that nothing orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dualcoll.lowering.mscclpp.effects import Effect
from dualcoll.lowering.mscclpp.events import Events, Move, Step
from dualcoll.lowering.mscclpp.plan import Plan
from dualcoll.lowering.mscclpp.task import PACKETS, Spot

__all__ = ["Access", "Race", "find_races"]


@dataclass(frozen=True, slots=True)
class Access:
    """An op, or a GPU between two launches, that reads or writes a spot.

    Attributes:
        bit: number of its end among all ends. writes: whether it writes. spins: whether it waits for packets.
        span: the accesses of one thread of the block are in the order of the ops: the node that last joined the threads, what
            they do, and the range, in which thread i has the i-th part; None for what a single thread does.
    """

    step: Step | tuple[int, int]
    bit: int
    writes: bool
    spins: bool = False
    span: tuple[object, ...] | None = None


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses of a spot, one of them a write at least, that may come in any order; ``earlier`` ought to."""

    earlier: Access
    later: Access
    spot: Spot


@dataclass(slots=True)
class _Spots:
    """Per spot: the last write, and what has read it since."""

    wrote: dict[Spot, Access] = field(default_factory=dict)
    read: dict[Spot, list[Access]] = field(default_factory=dict)


def find_races(
    plan: Plan, events: Events, order: list[int], effects: dict[int, list[Effect]], owned: Callable[[int], list[Spot]]
) -> Iterator[tuple[Race, bool]]:
    """Races in an order in which the plan can run, and whether a signal that does not order memory would settle each.

    A launch of a kernel orders memory by itself, so that what was done before it needs no more than any signal.

    Args:
        order: all nodes. effects: by the number of the move. owned: the spots of input and output of a GPU, which it may read
            and write between two launches.
    """
    moved = {move.start: number for number, move in enumerate(events.moves)}
    ends = {move.end: number for number, move in enumerate(events.moves)}
    breaks = [node for launch in events.breaks for node in launch]
    ends |= {node: len(events.moves) + i for i, node in enumerate(breaks)}
    firm, loose = _Known(events, ends, True), _Known(events, ends, False)
    spots = _Spots()
    for node in order:
        known, weakly = firm.at(node), loose.at(node)
        if node in moved:
            number = moved[node]
            accesses = _accesses(events.moves[number], number, effects[number])
        else:
            step = events.step[node]
            if not isinstance(step, tuple):
                continue
            accesses = [(spot, Access(step, ends[node], True)) for spot in owned(step[1])]
        for spot, access in accesses:
            for earlier in _conflicts(plan, spots, spot, access):
                if known >> earlier.bit & 1 or _same_thread(earlier, access):
                    continue
                if min(_launch(earlier), _launch(access)) > 0:
                    continue  # as in the first launch
                loosely = bool(weakly >> earlier.bit & 1)
                if not loosely or (earlier.writes and isinstance(earlier.step, Step)):
                    yield Race(earlier, access, spot), loosely
            _note(spots, spot, access)


class _Known:
    """The ends that must have come before each node, as bits; forgotten once nothing more follows."""

    def __init__(self, events: Events, ends: dict[int, int], ordered_only: bool) -> None:
        self.events, self.ends, self.ordered_only = events, ends, ordered_only
        self.bits: dict[int, int] = {}
        self.followers = [0] * len(events.step)
        for before in events.before:
            for node in before:
                self.followers[node] += 1

    def at(self, node: int) -> int:
        """For the next node of the order."""
        known = 0
        for earlier in self.events.before[node]:
            if not (self.ordered_only and self._loose(earlier, node)):
                known |= self.bits[earlier]
            self.followers[earlier] -= 1
            if not self.followers[earlier]:
                del self.bits[earlier]
        if self.followers[node]:
            self.bits[node] = known | (1 << self.ends[node] if node in self.ends else 0)
        return known

    def _loose(self, earlier: int, node: int) -> bool:
        """Whether a signal that does not order memory is all that goes from one to the other."""
        if earlier not in self.events.relaxed and node not in self.events.relaxed:
            return False
        one, other = self.events.step[earlier], self.events.step[node]
        return isinstance(one, Step) and isinstance(other, Step) and one.gpu != other.gpu


def _accesses(move: Move, bit: int, effects: list[Effect]) -> list[tuple[Spot, Access]]:
    """All spots of a move; one that it both reads and writes counts as written."""
    joined: object = move.joined if move.pair is None else None
    kind = "packets" if "pkt" in move.step.operation.name else "data"
    found: dict[Spot, Access] = {}
    for writes in (False, True):
        columns: dict[int, list[Spot]] = {}
        for effect in effects:
            for i, spot in enumerate(effect.targets if writes else effect.sources):
                columns.setdefault(i, []).append(spot)
        for spots in columns.values():
            span = None if joined is None else (joined, kind, spots[0], len(spots))
            spins = effects[0].spins and not writes and spots[0][1] == PACKETS
            access = Access(move.step, bit, writes, spins, span)
            found |= dict.fromkeys(spots, access)
    return list(found.items())


def _conflicts(plan: Plan, spots: _Spots, spot: Spot, access: Access) -> Iterator[Access]:
    wrote = spots.wrote.get(spot)
    readers = spots.read.get(spot, []) if access.writes else []
    half = _half(plan, access)
    for earlier in readers if wrote is None else [wrote, *readers]:
        if spot[1] in ("s", PACKETS) and _half(plan, earlier) != half:
            continue  # the other half of the scratch buffer
        if access.spins and _launch(earlier) == _launch(access):
            continue  # it waits for these packets
        yield earlier


def _note(spots: _Spots, spot: Spot, access: Access) -> None:
    if access.writes:
        spots.wrote[spot] = access
        spots.read[spot] = []
    else:
        spots.read.setdefault(spot, []).append(access)


def _launch(access: Access) -> int:
    return access.step.launch if isinstance(access.step, Step) else access.step[0]


def _half(plan: Plan, access: Access) -> int:
    return _launch(access) % 2 if plan.double_scratch else 0


def _same_thread(earlier: Access, later: Access) -> bool:
    """Whether each thread does both in the order of the ops, and no thread has to do with another's part."""
    return earlier.span is not None and earlier.span == later.span
