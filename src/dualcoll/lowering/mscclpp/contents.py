"""What the spots of an MSCCL++ plan hold, as pieces of data and sets of contributions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dualcoll.collectives.contract import ALL
from dualcoll.lowering.mscclpp.effects import Effect
from dualcoll.lowering.mscclpp.events import Move
from dualcoll.lowering.mscclpp.task import PACKETS, Spot, Task

__all__ = ["Contents", "members", "spot_text"]

_BUFFERS = {"i": "input", "o": "output", "s": "scratch", PACKETS: "scratch (packets)"}


@dataclass(slots=True)
class Contents:
    """The state while the plan runs.

    Attributes:
        holds: (piece of data, contributions as bits) of each spot that holds something.
        wrong: first sentence about each op that does what cannot be meant.
    """

    grains: int
    holds: dict[Spot, tuple[int, int]] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)

    @classmethod
    def before(cls, task: Task, grains: int) -> Contents:
        """What holds before the plan runs."""
        return cls(grains, {spot: (data, 1 << spot[0]) for spot, data in task.begins.items()})

    def apply(self, move: Move, effects: list[Effect]) -> None:
        """Let an op do what it does."""
        made = []
        for effect in effects:
            value = None
            for spot in effect.sources:
                value = self._added(move, value, spot)
            made.append(value)
        for effect, value in zip(effects, made, strict=True):
            for spot in effect.targets:
                if value is None:
                    self.holds.pop(spot, None)
                else:
                    self.holds[spot] = value

    def _added(self, move: Move, value: tuple[int, int] | None, spot: Spot) -> tuple[int, int] | None:
        more = self.holds.get(spot)
        if more is None:
            self._tell(move, f"it reads {spot_text(spot, self.grains)}, which holds nothing yet")
            return value
        if value is None:
            return more
        if value[0] != more[0]:
            self._tell(move, f"it adds {spot_text(spot, self.grains)}, which holds other data than what it is added to")
        elif value[1] & more[1]:
            twice = next(members(value[1] & more[1]))
            self._tell(
                move, f"it adds {spot_text(spot, self.grains)}, and counts the contribution of gpu {twice} twice"
            )
        return value[0], value[1] | more[1]

    def _tell(self, move: Move, sentence: str) -> None:
        self.wrong.setdefault(move.step.text, f"{move.step.text}: {sentence}")

    def after(self, task: Task) -> Iterator[str]:
        """What the collective promises and is not there, one sentence for each GPU."""
        root = self._root(task) if task.rooted else ALL
        everybody = (1 << task.ranks) - 1
        told: set[int] = set()
        for spot, wanted in task.ends.items():
            data = wanted + root * task.count if task.rooted else wanted
            source = task.source[data]
            needed = everybody if source == ALL else 1 << source
            held = self.holds.get(spot)
            if held == (data, needed) or spot[0] in told:
                continue
            told.add(spot[0])
            where = spot_text(spot, self.grains)
            if held is None:
                yield f"{where} holds nothing in the end"
            elif held[0] != data:
                yield f"{where} holds other data in the end than {task.collective} puts there"
            else:
                yield f"{where} lacks the contribution of gpu {next(members(needed & ~held[1]))} in the end"

    def _root(self, task: Task) -> int:
        """Whose data the first spot of the result holds."""
        held = self.holds.get(next(iter(task.ends)))
        return 0 if held is None else next(members(held[1]))


def members(bits: int) -> Iterator[int]:
    """The ranks of a set."""
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


def spot_text(spot: Spot, grains: int) -> str:
    """Text such as ``input chunk 3 of gpu 0``."""
    return f"{_BUFFERS[spot[1]]} chunk {spot[2] // grains} of gpu {spot[0]}"
