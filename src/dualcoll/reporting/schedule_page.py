"""A schedule as one HTML page: who sends what when, and over which links."""

from __future__ import annotations

from pathlib import Path

from dualcoll.collectives.catalogue import title
from dualcoll.files import atomic_write
from dualcoll.reporting.page import figure, numbers, page, safe, section, table
from dualcoll.reporting.route_map import route_map, route_map_text
from dualcoll.reporting.run_figure import run_figure
from dualcoll.reporting.timeline import timeline
from dualcoll.reporting.timeline_figure import timeline_figure
from dualcoll.schedules.ir import Schedule
from dualcoll.simulation import Trace
from dualcoll.units import format_bandwidth, format_size, format_time

__all__ = ["schedule_page"]

ROUTES = 24  # lines of each kind


def schedule_page(schedule: Schedule, path: str | Path, trace: Trace | None = None) -> None:
    """Write the page of a schedule: its timeline and, on a fabric, its route map; of a run also the time of every send.

    Of many ranks and rounds the first are shown.

    Args:
        schedule: the sends. path: of the page. trace: a run of it.

    Raises:
        InputError: the file cannot be written.
        CheckFailed: the schedule cannot run.
    """
    made = f" ({schedule.name})" if schedule.name else ""
    name = f"{title(schedule.contract.collective)} of {schedule.ranks} ranks{made}"
    line = timeline(schedule)
    facts = [
        ("message", format_size(schedule.size)),
        ("chunks", str(schedule.chunks)),
        ("sends", str(schedule.sends)),
        (f"{line.word}s", str(line.all_columns)),
    ]
    if trace is not None:
        facts = [("simulated time", format_time(trace.finish)), ("algbw", format_bandwidth(trace.algbw)), *facts]
    parts = [f"<h1>{safe(name)}</h1>", numbers(facts), section("Who sends what", figure(timeline_figure(line)))]
    if trace is not None:
        parts.append(section("When", figure(run_figure(schedule, trace))))
    if schedule.topology is not None:
        parts.append(section("Over which links", table(route_map_text(route_map(schedule), ROUTES))))
    atomic_write(path, page(name, parts))
