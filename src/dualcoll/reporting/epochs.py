"""Time-expanded schedules as records for machines and as lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dualcoll.reporting.runs import schedule_record, schedule_text
from dualcoll.schedules.ir import Schedule
from dualcoll.simulation import Trace
from dualcoll.time_expanded.check import Examination
from dualcoll.time_expanded.solution import Solution
from dualcoll.time_expanded.task import Task
from dualcoll.units import format_bandwidth, format_fraction, format_size, format_time

if TYPE_CHECKING:
    from dualcoll._api.time_expanding import Tenants

__all__ = ["examination_record", "examination_text", "solution_record", "solution_text", "task_text"]

GB = 1e9
SHOWN = 12  # violations


def task_text(task: Task, horizon: int) -> str:
    """What is about to be searched: chunks, epoch and the variables of the paper's model over so many epochs."""
    network = task.network
    counts = [part.count(horizon) for part in (task.copying, task.reducing) if part is not None]
    flows, buffers, reads = (sum(column) for column in zip(*counts, strict=True))
    return (
        f"{task.contract.chunks} chunks of {format_size(network.chunk)}, epochs of {format_time(network.epoch)}; "
        f"{horizon} epochs would have {flows:,} flow, {buffers:,} buffer and {reads:,} read variables"
    )


def solution_record(found: Solution, made: Schedule, trace: Trace, others: Tenants | None = None) -> dict[str, Any]:
    """What ``plan --method time-expanded --json`` prints: times in seconds, bandwidths in GB/s."""
    network = found.task.network
    record = {
        **schedule_record(made),
        "method": f"time-expanded, {found.method}",
        "chunk_bytes": network.chunk,
        "epoch_s": network.epoch,
        "finish_epochs": found.finish,
        "finish_s": found.makespan,
        "bound_epochs": found.bound,
        "bound_reason": found.reason,
        "gap": found.gap,
        "outcome": None if found.outcome is None else str(found.outcome),
        "seconds": found.seconds,
        "replay_s": trace.finish,
        "algbw_GBps": trace.algbw / GB,
        "busbw_GBps": None if trace.busbw is None else trace.busbw / GB,
        "ignored_latency_s": network.ignored,
    }
    if others is not None:
        record["groups"] = [
            {"name": name, "finish_epochs": together, "alone_epochs": alone}
            for name, together, alone in zip(_names(found), others.together, others.alone, strict=True)
        ]
        record["in_turn_epochs"] = others.in_turn
    return record


def solution_text(
    found: Solution, made: Schedule, trace: Trace, others: Tenants | None = None
) -> list[tuple[str, str]]:
    """The same for people."""
    network = found.task.network
    busbw = "" if trace.busbw is None else f", busbw {format_bandwidth(trace.busbw)}"
    late = network.ignored
    replayed = f"{format_time(trace.finish)} when everything is sent as soon as it is ready"
    lines = [
        *schedule_text(made),
        ("finish", f"{_epochs(found.finish)} of {format_time(network.epoch)}: {format_time(found.makespan)}"),
        ("replay", replayed + (f"; latencies of up to {format_time(late)} count as no epoch" if late else "")),
        ("algbw", f"{format_bandwidth(trace.algbw)}{busbw}, of the replay"),
        ("bound", f"{_epochs(found.bound)} ({found.reason}): gap {format_fraction(found.gap)}"),
        ("method", f"time-expanded, {found.method}"),
    ]
    if found.outcome is not None:
        lines.append(("outcome", f"{found.outcome}: {found.outcome.advice} ({found.seconds:.2g} s)"))
    if others is not None:
        texts = [
            f"{name}: {_epochs(together)}, alone {alone}"
            for name, together, alone in zip(_names(found), others.together, others.alone, strict=True)
        ]
        lines += [("groups" if i == 0 else "", text) for i, text in enumerate(texts)]
        lines.append(("in turn", f"{_epochs(others.in_turn)}, one group after the other"))
    return lines


def examination_text(found: Examination, best: Sequence[tuple[str, Solution | None]]) -> list[tuple[str, str]]:
    """A schedule by hand for people: what it breaks, what it reaches, and what is best."""
    lines = [("demands", f"{found.met} of {found.demands} met")]
    for i, text in enumerate(str(violation) for violation in found.violations[:SHOWN]):
        lines.append(("broken" if i == 0 else "", text))
    if len(found.violations) > SHOWN:
        lines.append(("", f"and {len(found.violations) - SHOWN} more"))
    lines.append(("finish", f"{_epochs(found.finish)}: {format_time(found.seconds)}"))
    lines.append(("useless", f"{len(found.useless)} starts add nothing"))
    for name, solution in best:
        if solution is not None:
            proved = "" if solution.gap == 0 else f", at least {solution.bound}"
            lines.append((name, f"{_epochs(solution.finish)}: {format_time(solution.makespan)}{proved}"))
    return lines


def examination_record(found: Examination, best: Sequence[tuple[str, Solution | None]]) -> dict[str, Any]:
    """The same for machines."""
    return {
        "supported": not found.violations,
        "violations": [
            {"rule": str(v.rule), "text": v.text, "epoch": v.epoch, "chunk": v.chunk} for v in found.violations
        ],
        "demands": found.demands,
        "met": found.met,
        "finish_epochs": found.finish,
        "finish_s": found.seconds,
        "useless": list(found.useless),
        "best": {
            name: None if one is None else {"finish_epochs": one.finish, "bound_epochs": one.bound}
            for name, one in best
        },
    }


def _epochs(count: int) -> str:
    return f"{count} epoch" + "s" * (count != 1)


def _names(found: Solution) -> list[str]:
    assert found.task.workload is not None
    return [group.name for group in found.task.workload.groups]
