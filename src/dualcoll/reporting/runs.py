"""A simulated run, and a schedule that holds, as records for machines and as lines for people."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualcoll.collectives.catalogue import title
from dualcoll.schedules.ir import Schedule
from dualcoll.simulation import Mode, Trace, critical_path_text
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.units import format_bandwidth, format_size, format_time

__all__ = ["schedule_record", "schedule_text", "trace_record", "trace_text"]

GB = 1e9
SHOWN = 5  # links


def trace_record(trace: Trace, schedule: Schedule) -> dict[str, Any]:
    """What ``simulate --json`` prints: bandwidths in GB/s, times in seconds; links by how long they are in use."""
    assert schedule.topology is not None
    names = _row_names(schedule)
    order = np.argsort(-trace.busy, kind="stable")
    return {
        **schedule_record(schedule),
        "mode": str(trace.options.mode),
        "time_s": trace.finish,
        "algbw_GBps": trace.algbw / GB,
        "busbw_GBps": None if trace.busbw is None else trace.busbw / GB,
        "links": [
            {
                "link": names[int(trace.rows[k])],
                "bytes": float(trace.carried[k]),
                "in_use": float(trace.busy[k]) / trace.finish if trace.finish > 0 else 0.0,
            }
            for k in order
        ],
    }


def trace_text(trace: Trace, schedule: Schedule) -> list[tuple[str, str]]:
    """The run for people: time, bandwidth, the busiest links, and why it took so long."""
    busbw = "" if trace.busbw is None else f", busbw {format_bandwidth(trace.busbw)}"
    names = _row_names(schedule)
    lines = [
        *schedule_text(schedule),
        ("time", f"{format_time(trace.finish)} simulated ({trace.options.mode})"),
        ("algbw", f"{format_bandwidth(trace.algbw)}{busbw}"),
    ]
    busiest = [
        f"{names[int(trace.rows[k])]}: in use {100 * trace.busy[k] / trace.finish:.0f} % of the time, "
        f"{format_size(int(trace.carried[k]))}"
        for k in np.argsort(-trace.busy, kind="stable")[:SHOWN]
        if trace.finish > 0
    ]
    lines += [("busiest" if i == 0 else "", text) for i, text in enumerate(busiest)]
    if trace.options.mode is Mode.ALPHA_BETA or trace.held_by is not None:
        path = critical_path_text(trace, schedule).splitlines()
        lines += [("why" if i == 0 else "", text) for i, text in enumerate(path)]
    return lines


def schedule_record(schedule: Schedule) -> dict[str, Any]:
    """What a schedule is, in numbers."""
    return {
        "collective": schedule.contract.collective,
        "made_by": schedule.name,
        "ranks": schedule.ranks,
        "size_bytes": schedule.size,
        "chunks": schedule.chunks,
        "sends": schedule.sends,
        "rounds": schedule.rounds,
        "channels": int(np.unique(schedule.channel).size),
    }


def schedule_text(schedule: Schedule) -> list[tuple[str, str]]:
    """What a schedule is, in a line."""
    made = f", made by {schedule.name}" if schedule.name else ""
    rounds = f", {schedule.rounds} rounds" if schedule.rounds else ""
    return [
        (
            "schedule",
            f"{title(schedule.contract.collective)} of {schedule.ranks} ranks, {format_size(schedule.size)}, "
            f"{schedule.chunks} chunks, {schedule.sends} sends{rounds}{made}",
        )
    ]


def _row_names(schedule: Schedule) -> list[str]:
    assert schedule.topology is not None
    shared = fabric_arrays(schedule.topology).capacity.size - len(schedule.topology.links)
    return [*schedule.topology.describe_links(), *(f"shared capacity {i}" for i in range(shared))]
