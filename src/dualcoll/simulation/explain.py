"""The critical path in words, for people."""

from __future__ import annotations

from collections import Counter

from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.order import describe_send
from dualcoll.simulation.critical_path import Activity, Step, Wait, critical_path
from dualcoll.simulation.trace import Trace
from dualcoll.topology.model import Topology
from dualcoll.units import format_time

__all__ = ["critical_path_text", "row_names"]

TOP = 3  # rows named in the summary

_WAITS = {
    Wait.BEGINNING: "from the beginning",
    Wait.ITSELF: "",
    Wait.DEPENDENCY: "after send {} was delivered",
    Wait.CHANNEL: "after send {} had left on its channel",
    Wait.ROOM: "after send {} made room on its channel",
    Wait.PLACE: "after send {} left a place at its rank",
    Wait.LINK: "behind send {}",
    Wait.TURN: "in turn after send {}",
    Wait.COPY: "with send {}, which it is a copy of",
    Wait.REDUCER: "behind the reduction of send {}",
    Wait.ORDER: "after send {}, which is before it on its channel",
}


def row_names(topology: Topology) -> list[str]:
    """Text for each capacity row: the links, then the shared capacities."""
    return topology.describe_links() + [f"shared capacity {i}" for i in range(len(topology.shared))]


def critical_path_text(trace: Trace, schedule: Schedule, *, lines: int = 20) -> str:
    """Why the run took this long: what its time went into, and the critical path step by step.

    Args:
        trace: the run. schedule: what was run.
        lines: steps to show at most, of the beginning and of the end; sends that a link serves in a row are one.
    """
    path = critical_path(trace, schedule)
    if not path:
        return "no time: there are no sends"
    assert schedule.topology is not None
    names = row_names(schedule.topology)
    runs = _runs(path)
    head = len(runs) if len(runs) <= lines else (lines + 1) // 2
    tail = len(runs) if len(runs) <= lines else len(runs) - lines // 2
    text = _summary(trace.finish, path, names)
    text += [_line(schedule, run, names) for run in runs[:head]]
    if tail > head:
        text.append(f"  … {sum(map(len, runs[head:tail]))} more steps …")
    return "\n".join([*text, *(_line(schedule, run, names) for run in runs[tail:])])


def _summary(finish: float, path: tuple[Step, ...], names: list[str]) -> list[str]:
    parts: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    for step in path:
        parts[str(step.activity)] += step.seconds  # type: ignore[assignment]
        if step.row >= 0:
            rows[names[step.row]] += step.seconds  # type: ignore[assignment]
    share = 100 / finish if finish > 0 else 0.0
    spent = ", ".join(f"{share * seconds:.3g} % {part}" for part, seconds in parts.most_common() if seconds > 0)
    text = [f"{_time(finish)}{': ' if spent else ''}{spent}"]
    if rows:
        text.append("links: " + ", ".join(f"{name} {share * part:.3g} %" for name, part in rows.most_common(TOP)))
    return text


def _runs(path: tuple[Step, ...]) -> list[list[Step]]:
    """The steps, those in one list that are services of one row one after the other."""
    runs: list[list[Step]] = []
    for step in path:
        if runs and step.wait is Wait.LINK and step.row == runs[-1][-1].row:
            runs[-1].append(step)
        else:
            runs.append([step])
    return runs


def _line(schedule: Schedule, run: list[Step], names: list[str]) -> str:
    step = run[0]
    where = {
        Activity.LINK: f"over {names[step.row]}",
        Activity.REDUCTION: f"reduction at {schedule.rank_name(int(schedule.dst[step.send]))}",
        Activity.NONE: "no time",
    }.get(step.activity, str(step.activity))
    what = f"{describe_send(schedule, step.send)}, {where}"
    if len(run) > 1:
        what = f"{len(run)} sends {where}, from send {step.send} to send {run[-1].send}"
    wait = _WAITS[step.wait].format(step.behind)
    begin, end = _time(step.begin), _time(run[-1].end)
    return f"  {f'{begin} to {end}' if run[-1].end > step.begin else f'at {begin}'}: {what}{', ' if wait else ''}{wait}"


def _time(seconds: float) -> str:
    return format_time(float(f"{seconds:.6g}"))  # 999.9999 ns is 1 us
