"""Measuring a collective as nccl-tests does: warm-up, iterations, time, algbw, busbw, wrong values, and its columns.

Data follows a rule of rank and place, in small whole numbers whose sums every type holds exactly. So every rank knows what must
come out without asking the others, and a result is right to the last bit or wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.catalogue import ROOTED, busbw
from dualcoll.execution.arithmetic import Element

__all__ = ["Figures", "Row", "contribution", "header", "reduced", "timed"]

PERIOD = 65_537  # prime: pieces are multiples of a power of two, and none that is misplaced looks as it should
HELD = 256  # whole numbers up to here are exact in every type
_STEP = 8_191  # from the numbers of one rank to those of the next
_NCCL_NAMES = {Element.FLOAT16: "half", Element.FLOAT32: "float", Element.FLOAT64: "double"}
_REDUCING = ("allreduce", "reduce", "reducescatter")

Values = NDArray[np.int16]


def contribution(rank: int, ranks: int, start: int, elements: int) -> Values:
    """What a rank begins with from element ``start`` of its input on, int16 (elements,)."""
    return _along(_pattern(ranks), start + rank * _STEP, elements)


def reduced(ranks: int, start: int, elements: int) -> Values:
    """The sum of all ranks' contributions from element ``start`` on, int16 (elements,)."""
    pattern = _pattern(ranks)
    total = sum(np.roll(pattern, -rank * _STEP) for rank in range(ranks))
    return _along(np.asarray(total, np.int16), start, elements)


def _pattern(ranks: int) -> Values:
    """Numbers of both signs whose sum over the ranks every type holds; over more than 256 ranks most are 0."""
    most = max(1, HELD // ranks)
    numbers = np.random.default_rng(0).integers(-most, most, PERIOD, endpoint=True).astype(np.int16)
    if ranks > HELD:
        numbers[np.arange(PERIOD) % _STEP >= _STEP * HELD // ranks] = 0
    return numbers


def _along(pattern: Values, start: int, elements: int) -> Values:
    return np.resize(np.roll(pattern, -(start % PERIOD)), elements)


def timed(
    call: Callable[[], object],
    barrier: Callable[[], object],
    *,
    iterations: int,
    warmup: int,
    finish: Callable[[], object],
) -> float:
    """Seconds of one call at this rank: the mean over iterations that follow one another without a barrier.

    Args:
        call: the collective. barrier: of all ranks. iterations: that count, at least 1. warmup: before them, that do not.
        finish: waits for what calls leave under way.
    """
    for _ in range(warmup):
        call()
    finish()
    barrier()
    begun = perf_counter()
    for _ in range(iterations):
        call()
    finish()
    return (perf_counter() - begun) / iterations


@dataclass(frozen=True, slots=True)
class Figures:
    """One measurement.

    Attributes:
        seconds: of one call, at the slowest rank.
        wrong: elements at all ranks that are not the answer; None where nobody looked.
    """

    seconds: float
    wrong: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of nccl-tests' table.

    Attributes:
        collective: canonical name. ranks: how many. root: rank number, or None.
        size: bytes of the message as nccl-tests counts them. element: type of the data.
        out_of_place, in_place: what was measured; None where it was not.
    """

    collective: str
    ranks: int
    root: int | None
    size: int
    element: Element
    out_of_place: Figures | None
    in_place: Figures | None

    @property
    def text(self) -> str:
        """The row in nccl-tests' columns: bytes, elements of a rank's part, type, reduction, root, and twice time in µs, algbw
        and busbw in GB/s, and wrong elements.
        """
        whole = self.collective in ("allreduce", "broadcast", "reduce")
        count = self.size // self.element.bytes // (1 if whole else self.ranks)
        kind = _NCCL_NAMES.get(self.element, str(self.element))
        what = "sum" if self.collective in _REDUCING else "none"
        root = -1 if self.root is None or self.collective not in ROOTED else self.root
        return f"{self.size:12d}  {count:12d}  {kind:>8}  {what:>6}  {root:6d}" + "".join(
            self._figures(figures) for figures in (self.out_of_place, self.in_place)
        )

    def _figures(self, figures: Figures | None) -> str:
        if figures is None:
            return f"  {'N/A':>8}  {'N/A':>6}  {'N/A':>6}  {'N/A':>6}"
        rate = self.size / figures.seconds / 1e9
        wrong = "N/A" if figures.wrong is None else str(figures.wrong)
        bus = busbw(self.collective, self.ranks, rate)
        return f"  {_micros(figures.seconds):>8}  {rate:6.2f}  {bus:6.2f}  {wrong:>6}"


def _micros(seconds: float) -> str:
    micros = seconds * 1e6
    return f"{micros:.0f}" if micros >= 1e4 else f"{micros:.1f}" if micros >= 100 else f"{micros:.2f}"


def header() -> list[str]:
    """The lines above the rows."""
    sides = "".join(
        f"  {name:>8}  {rate:>6}  {bus:>6}  {wrong:>6}"
        for name, rate, bus, wrong in 2 * [("time", "algbw", "busbw", "#wrong")]
    )
    units = "".join(f"  {time:>8}  {rate:>6}  {rate:>6}  {'':>6}" for time, rate in 2 * [("(us)", "(GB/s)")])
    return [
        f"#{'':11}  {'':12}  {'':8}  {'':6}  {'':6}  {'out-of-place':^32}  {'in-place':^32}".rstrip(),
        f"#{'size':>11}  {'count':>12}  {'type':>8}  {'redop':>6}  {'root':>6}{sides}",
        f"#{'(B)':>11}  {'(elements)':>12}  {'':8}  {'':6}  {'':6}{units}".rstrip(),
    ]
