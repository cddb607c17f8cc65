"""A trace as Chrome or Perfetto shows it: the Trace Event Format, JSON object form.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.simulation.explain import row_names
from dualcoll.simulation.trace import Trace

__all__ = ["to_chrome"]

MICRO = 1e6  # the format counts in microseconds


def to_chrome(trace: Trace, schedule: Schedule) -> dict[str, Any]:
    """Events to be written with ``json.dump``: a process per rank and a track per channel out of it.

    A send is a slice from its start until it has left its source, on its channel's track, and an instant at its destination
    when it is delivered; an arrow joins the two. Rows that are in use are counters of one more process, in percent.
    """
    events: list[dict[str, Any]] = []
    for rank in range(schedule.ranks):
        events.append(_meta("process_name", rank, 0, f"rank {schedule.rank_name(rank)}"))
        events.append(_meta("thread_name", rank, 0, "delivered"))
    events += _sends(trace, schedule)
    events += _counters(trace, schedule)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"schedule": schedule.name, "model": str(trace.options.mode), "finish_s": trace.finish},
    }


def _sends(trace: Trace, schedule: Schedule) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    tracks: dict[tuple[int, int, int], int] = {}
    size = schedule.send_size
    for send in range(schedule.sends):
        src, dst = int(schedule.src[send]), int(schedule.dst[send])
        channel = src, dst, int(schedule.channel[send]) if src != dst else -1
        if channel not in tracks:
            name = f"to {schedule.rank_name(dst)}, channel {channel[2]}" if src != dst else "local"
            tracks[channel] = 1 + len(tracks)
            events.append(_meta("thread_name", src, tracks[channel], name))
        begin, end = float(trace.start[send]), float(trace.end[send])
        left = end if src == dst else float(trace.left[send])
        op = Op(int(schedule.op[send])).name.lower()
        common = {"cat": op, "name": f"{op} chunk {schedule.chunk[send]}"}
        args = {"send": send, "bytes": int(size[send]), "round": int(schedule.round[send])}
        out = {"pid": src, "tid": tracks[channel], "ts": begin * MICRO}
        into = {"pid": dst, "tid": 0, "ts": end * MICRO}
        events.append({**common, **out, "ph": "X", "dur": (left - begin) * MICRO, "args": args})
        if src != dst:
            events.append({**common, **out, "ph": "s", "id": send})
            events.append({**common, **into, "ph": "f", "bp": "e", "id": send})
            events.append({**common, **into, "ph": "i", "s": "t", "args": args})
    return events


def _counters(trace: Trace, schedule: Schedule) -> list[dict[str, Any]]:
    if schedule.topology is None or trace.rows.size == 0:
        return []
    names = row_names(schedule.topology)
    events = [_meta("process_name", schedule.ranks, 0, "links, % in use")]
    for row, used in zip(trace.rows.tolist(), np.round(100 * trace.utilisation, 3).tolist(), strict=True):
        for b, part in enumerate([*used, 0.0]):
            if b == 0 or b == len(used) or part != used[b - 1]:
                time = min(b * trace.bin_width, trace.finish) * MICRO
                counter = {"ph": "C", "name": names[row], "pid": schedule.ranks, "tid": 0, "ts": time}
                events.append({**counter, "args": {"%": part}})
    return events


def _meta(name: str, pid: int, tid: int, text: str) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": {"name": text}}
