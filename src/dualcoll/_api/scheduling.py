"""Schedules from plans, with as many chunks as serve the message best."""

from __future__ import annotations

from collections.abc import Iterator

from dualcoll.errors import InputError
from dualcoll.plans.model import Plan
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.pipeline import pipelined
from dualcoll.simulation import Options, Trace, simulate
from dualcoll.units import parse_size

__all__ = ["best_schedule", "schedule"]

STEP = 4  # from one number of chunks to the next that is tried
WINDOWS = (None, 512)  # pieces under way
MOST_SENDS = 4_500_000  # of a schedule that is tried: some ten seconds of simulation
WORTH = 0.99  # a number of chunks is worth it that takes at most this part of the best time so far
IN_VAIN = 2  # numbers of chunks in a row that are not worth it end the search


def schedule(
    plan: Plan, *, size: int | str | None = None, chunks: int | str = "auto", options: Options | None = None
) -> Schedule:
    """Cut a plan into sends.

    Args:
        plan: its trees, rates and routes.
        size: bytes of the message, or text; the plan's by default.
        chunks: about how many pieces the data is cut into, or ``"auto"`` for the number, and the number under way at once,
            that take the least simulated time.
        options: of the simulation that ``"auto"`` asks.

    Raises:
        InputError: a size or number of chunks that cannot be.
    """
    message = None if size is None else parse_size(size)
    if chunks == "auto":
        return best_schedule(plan, message, options)[0]
    if isinstance(chunks, str):
        if not chunks.isdigit():
            raise InputError(f"{chunks!r} is not a number of chunks", hint='use a whole number or "auto"')
        chunks = int(chunks)
    return pipelined(plan, chunks=chunks, size=message)


def best_schedule(
    plan: Plan, size: int | None, options: Options | None = None, most_sends: int = MOST_SENDS
) -> tuple[Schedule, Trace]:
    """The fastest of some numbers of chunks and windows, with its simulation."""
    best: tuple[Schedule, Trace] | None = None
    before, in_vain = 0, 0
    for chunks in _numbers(plan, most_sends):
        known, fastest = (float("inf") if best is None else best[1].finish), float("inf")
        for window in WINDOWS:
            if window is not None and window >= chunks:
                continue
            made = pipelined(plan, chunks=chunks, window=window, size=size)
            trace = simulate(made, options)
            fastest = min(fastest, trace.finish)
            if best is None or trace.finish < best[1].finish:
                best = made, trace
        in_vain = in_vain + 1 if fastest > WORTH * known else 0
        if in_vain == IN_VAIN or made.sends == before:
            break
        before = made.sends
    assert best is not None
    return best


def _numbers(plan: Plan, most_sends: int) -> Iterator[int]:
    """From one piece a tree upwards."""
    edges = sum(tree.edges.shape[0] for tree in plan.trees) / len(plan.trees)
    chunks, most = len(plan.trees), int(most_sends / edges)
    yield chunks
    while chunks < most:
        chunks = min(chunks * STEP, most)
        yield chunks
