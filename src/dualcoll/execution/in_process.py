"""Runs a schedule in this process on real data and compares the results with the exact answer.

Data of different chunks never meets, so one chunk's data is moved at a time: memory is that of one chunk at every rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualcoll.certificates.findings import Findings
from dualcoll.collectives.catalogue import title
from dualcoll.collectives.contract import ALL
from dualcoll.errors import InputError
from dualcoll.execution.arithmetic import Answer, Element, answer, finish, merge, sample, spacing
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op, Reduction
from dualcoll.schedules.order import describe_send, running_order
from dualcoll.units import format_size

__all__ = ["Execution", "execute"]

Values = NDArray[Any]
Slots = dict[tuple[int, int], Values]  # what (rank, chunk) holds

MAX_BYTES = 2**32  # of one chunk's data at all ranks


@dataclass(frozen=True, slots=True)
class Execution:
    """A run whose results are right, and how far floating-point rounding took them from the exact answer.

    Reductions into one slot that the schedule leaves unordered (docs/semantics.md §6) were done in order of their numbers;
    another order may end elsewhere within ``allowed_relative``.

    Attributes:
        reduction, element: the arithmetic. ranks: R. elements: number of elements of all chunks.
        relative: largest ``|result - exact| / |exact|`` at any promised slot. ulps: largest ``|result - exact|`` in units in
            the last place of the exact answer. Answers that are exactly 0 have neither. Both are 0 where nothing is reduced.
        allowed: largest part of what the error bound of floating-point arithmetic allows to any order that was used up,
            between 0 and 1.
        identical: whether all ranks that are promised a chunk have the same bits.
    """

    collective: str
    reduction: Reduction
    element: Element
    ranks: int
    elements: int
    relative: float
    ulps: float
    allowed: float
    identical: bool

    @property
    def text(self) -> str:
        """The same in a sentence."""
        what = f"{title(self.collective)} ({self.reduction}, {self.element}) over {self.ranks} ranks"
        same = "all ranks have the same bits" if self.identical else "ranks differ in the last bits"
        if self.ulps == 0:
            return f"{what}: exactly the answer"
        return f"{what}: at most {self.ulps:.3g} ulp ({self.relative:.2g} relative) from the exact answer; {same}"


def execute(
    schedule: Schedule,
    reduction: Reduction = Reduction.SUM,
    element: Element = Element.FLOAT32,
    *,
    elements: int | None = None,
    seed: int = 0,
) -> Execution:
    """Move random data as the schedule says and compare every promised slot with the answer.

    Args:
        schedule: the sends. That it is free of races is for :func:`~dualcoll.schedules.validate.validate` to say.
        reduction: how contributions merge, where the collective reduces.
        element: type of the data.
        elements: number of elements in every chunk, instead of as many as the chunk's bytes hold.
        seed: of the data.

    Raises:
        InputError: a chunk is not a whole number of elements, or too large to be moved here.
        CheckFailed: the schedule cannot run, or a result is not the answer: integers and what is not reduced must be met
            exactly, floats within the error bound of floating-point arithmetic for any order of merging.
    """
    counts = _counts(schedule, element, elements)
    order = running_order(schedule)
    data = schedule.contract.data[schedule.chunk[order]]
    grouped = order[np.argsort(data, kind="stable")]
    bounds = np.searchsorted(np.sort(data), np.arange(schedule.chunks + 1))
    sends, bounds = grouped.tolist(), bounds.tolist()
    run = _Run(schedule, reduction, element)
    origins = np.flatnonzero(schedule.contract.data == np.arange(schedule.chunks)).tolist()
    for origin in origins:
        rng = np.random.default_rng((seed, origin))
        run.data(origin, sends[bounds[origin] : bounds[origin + 1]], int(counts[origin]), rng)
    if run.findings:
        raise run.findings.error()
    return Execution(
        collective=schedule.contract.collective,
        reduction=reduction,
        element=element,
        ranks=schedule.ranks,
        elements=int(counts[origins].sum()),
        relative=run.relative,
        ulps=run.ulps,
        allowed=run.allowed,
        identical=run.identical,
    )


def _counts(schedule: Schedule, element: Element, elements: int | None) -> NDArray[np.int64]:
    if elements is not None:
        if elements < 0:
            raise InputError(f"{elements} elements in a chunk", where="elements", hint="use 0 or more")
        counts = np.full(schedule.chunks, elements)
    else:
        counts, rest = np.divmod(schedule.chunk_size, element.bytes)
        if rest.any():
            chunk = int(np.flatnonzero(rest)[0])
            problem = f"{schedule.chunk_size[chunk]} bytes are not a whole number of {element} elements"
            raise InputError(problem, where=f"chunk {chunk}", hint="give the number of elements in a chunk")
    needed = int(counts.max(initial=0)) * element.storage.itemsize * schedule.ranks
    if needed > MAX_BYTES:
        problem = f"a chunk at all ranks takes {format_size(needed)}"
        raise InputError(
            problem, hint=f"at most {format_size(MAX_BYTES)} are moved here: give fewer elements in a chunk"
        )
    return counts


class _Run:
    """Moves one chunk's data after the other and keeps the account."""

    def __init__(self, schedule: Schedule, reduction: Reduction, element: Element) -> None:
        self.schedule, self.reduction, self.element = schedule, reduction, element
        self.findings = Findings()
        self.relative = self.ulps = self.allowed = 0.0
        self.identical = True
        data = schedule.contract.data
        by_data = np.argsort(data, kind="stable")
        ends = np.searchsorted(data[by_data], np.arange(schedule.chunks + 1))
        self.chunks_of = [by_data[ends[i] : ends[i + 1]].tolist() for i in range(schedule.chunks)]

    def data(self, origin: int, sends: list[int], elements: int, rng: np.random.Generator) -> None:
        """Move the data that begins as chunk ``origin``, and compare."""
        contract = self.schedule.contract
        sources = contract.holders(origin)
        begun = sample(self.element, self.reduction, len(sources), elements, rng)
        slots: Slots = {(rank, origin): begun[i] for i, rank in enumerate(sources)}
        if not self._moved(slots, sends):
            return
        reduces = contract.source[origin] == ALL
        if reduces:
            wanted = answer(self.element, self.reduction, begun)
        else:
            wanted = Answer(begun[0].astype(np.float64) if self.element.is_float else begun[0], np.zeros(elements))
        for chunk in self.chunks_of[origin]:
            first = None
            for rank in contract.receivers(chunk):
                held = slots.get((rank, chunk))
                if held is None:
                    self.findings.add(
                        f"rank {self.schedule.rank_name(rank)}, chunk {chunk}: the result is not there (§7)"
                    )
                    continue
                result = finish(self.element, self.reduction, held, len(sources)) if reduces else held
                first = result if first is None else first
                self.identical &= result.tobytes() == first.tobytes()
                self._compare(rank, chunk, result, wanted)

    def _moved(self, slots: Slots, sends: list[int]) -> bool:
        """Whether all sends found what they need."""
        src, dst, chunk, into, op = (
            getattr(self.schedule, name)[sends].tolist() for name in ("src", "dst", "chunk", "into", "op")
        )
        for i, send in enumerate(sends):
            read, written = (src[i], chunk[i]), (dst[i], into[i])
            if read not in slots or (op[i] == Op.REDUCE and written not in slots):
                rank, slot = read if read not in slots else written
                text = f"rank {self.schedule.rank_name(rank)} holds nothing in chunk {slot}"
                self.findings.add(f"{describe_send(self.schedule, send)}: {text} (§4)")
                return False
            if op[i] == Op.REDUCE:
                slots[written] = merge(self.element, self.reduction, slots[written], slots[read])
            else:
                slots[written] = slots[read]
        return True

    def _compare(self, rank: int, chunk: int, result: Values, wanted: Answer) -> None:
        if not self.element.is_float:
            wrong = result != wanted.value
        else:
            off = np.abs(result.astype(np.float64) - wanted.value)
            wrong = ~(off <= wanted.slack)
            inexact = off > 0
            if inexact.any():
                off, value, slack = off[inexact], wanted.value[inexact], wanted.slack[inexact]
                with np.errstate(divide="ignore"):
                    self.allowed = max(self.allowed, float((off / slack).max()))
                off, value = off[value != 0], value[value != 0]
                self.relative = max(self.relative, float((off / np.abs(value)).max(initial=0)))
                self.ulps = max(self.ulps, float((off / spacing(self.element, value)).max(initial=0)))
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            where = f"rank {self.schedule.rank_name(rank)}, chunk {chunk}"
            self.findings.add(f"{where}: element {at} is {result[at]}, the answer is {wanted.value[at]} (§7)")
