"""``dualcoll plan --method time-expanded``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualcoll.cli.output import say, show_json, show_lines, status_line
from dualcoll.errors import InputError

if TYPE_CHECKING:
    from dualcoll.collectives.workload import Workload
    from dualcoll.progress import Progress, Stop
    from dualcoll.time_expanded.network import Clock
    from dualcoll.time_expanded.solution import Solution
    from dualcoll.time_expanded.task import Task
    from dualcoll.topology.model import Topology

__all__ = [
    "Buffer",
    "Checkpoint",
    "ChunksPerRank",
    "Earliest",
    "EngineName",
    "Epoch",
    "EpochOptions",
    "Failed",
    "IgnoreLatency",
    "LatentSwitches",
    "Multiplier",
    "NoCopy",
    "ReductionSpeed",
    "Resume",
    "SwitchCopy",
    "Tenants",
    "plan_in_epochs",
    "task_in_epochs",
]

_PANEL = "Method time-expanded"


def _option(*flags: str, **rest: Any) -> Any:
    return typer.Option(*flags, rich_help_panel=_PANEL, **rest)


EngineName = Annotated[
    str | None, _option("--engine", help="cp-sat, highs or gurobi. [default: the first that is installed]")
]
Epoch = Annotated[
    str | None,
    _option(
        "--epoch", metavar="TIME", help="A chunk's time on the fastest or slowest link, or 2us. [default: fastest]"
    ),
]
Multiplier = Annotated[float | None, _option("--multiplier", metavar="X", help="Epochs this many times as long.")]
ChunksPerRank = Annotated[
    int | None, _option("--chunks-per-rank", metavar="N", min=1, help="Chunks of the largest shard. [default: 1]")
]
Tenants = Annotated[
    Path | None, _option("--tenants", metavar="FILE", help="Several jobs at once, a mix file with priorities.")
]
SwitchCopy = Annotated[bool, _option("--switch-copy", help="Switches copy.")]
LatentSwitches = Annotated[bool, _option("--latent-switches", help="Each hop over a switch takes its own epochs.")]
IgnoreLatency = Annotated[
    str | None, _option("--ignore-latency", metavar="PART", help="Latencies below this part of an epoch count as none.")
]
Buffer = Annotated[
    int | None, _option("--buffer", metavar="N", min=0, help="Most chunks of others that a rank holds. [default: any]")
]
NoCopy = Annotated[bool, _option("--no-copy", help="Ranks pass on what they get once, or keep it.")]
ReductionSpeed = Annotated[
    str | None, _option("--reduction-speed", metavar="RATE", help="Bytes/s that a rank reduces. [default: no time]")
]
Earliest = Annotated[bool, _option("--earliest", help="Of the quickest schedules one that delivers early.")]
Checkpoint = Annotated[
    Path | None, _option("--checkpoint", metavar="FILE", help="Keep the best so far there, and what is proved.")
]
Resume = Annotated[Path | None, _option("--resume", metavar="FILE", help="Go on from a checkpoint, and keep it up.")]
Failed = Annotated[
    list[str] | None,
    _option(
        "--fail", metavar="NAME", help="Without this GPU or link (a -> b, or a - b for both ways), and what is lost."
    ),
]


@dataclass(frozen=True, slots=True)
class EpochOptions:
    """The options above, as given."""

    engine: str | None
    epoch: str | None
    multiplier: float | None
    chunks_per_rank: int | None
    tenants: Path | None
    switch_copy: bool
    latent_switches: bool
    ignore_latency: str | None
    buffer: int | None
    no_copy: bool
    reduction_speed: str | None
    earliest: bool
    checkpoint: Path | None
    resume: Path | None
    fail: list[str] | None

    def refuse(self) -> None:
        """Refuse those that were given, for a method that has no use for them.

        Raises:
            InputError: one of them was given.
        """
        for field in fields(self):
            if getattr(self, field.name) not in (None, False):
                flag = f"--{field.name.replace('_', '-')}"
                raise InputError("it is of schedules in epochs", where=flag, hint="add --method time-expanded")

    def clock(self, *, relay: bool) -> Clock:
        """How time is cut.

        Raises:
            InputError: a value that is none.
        """
        from dualcoll.time_expanded.network import FASTEST, SLOWEST, Clock
        from dualcoll.units import parse_bandwidth, parse_fraction, parse_time

        epoch = FASTEST if self.epoch is None else self.epoch
        return Clock(
            epoch if epoch in (FASTEST, SLOWEST) else _given("--epoch", parse_time, epoch),
            1.0 if self.multiplier is None else self.multiplier,
            0.0 if self.ignore_latency is None else _given("--ignore-latency", parse_fraction, self.ignore_latency),
            self.latent_switches,
            self.switch_copy,
            not self.no_copy,
            relay,
            self.buffer,
            None
            if self.reduction_speed is None
            else _given("--reduction-speed", parse_bandwidth, self.reduction_speed),
        )


def task_in_epochs(fabric: Topology, work: Workload, options: EpochOptions, *, forward: str, relay: bool) -> Task:
    """What the arguments ask for."""
    from dualcoll._api.time_expanding import task_for

    clock, chunks = options.clock(relay=relay), options.chunks_per_rank or 1
    return task_for(fabric, work, forward=forward, chunks_per_rank=chunks, clock=clock)


def plan_in_epochs(
    task: Task,
    options: EpochOptions,
    *,
    notes: tuple[str, ...] = (),
    seed: int,
    stop: Stop,
    output: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Search, tell, and save. Of a task with a workload; ``notes`` are told too."""
    from dualcoll._api.time_expanding import after_failure, replay
    from dualcoll._api.time_expanding import tenants as against
    from dualcoll.reporting.epochs import solution_record, solution_text

    work = task.workload
    assert work is not None
    found = _searched(task, options, seed, stop)
    made, trace = replay(found)
    others = against(found, stop=stop, engine=options.engine) if len(work.groups) > 1 else None
    record, lines = solution_record(found, made, trace, others), solution_text(found, made, trace, others)
    if notes:
        record["notes"] = list(notes)
        lines += [("note" if i == 0 else "", note) for i, note in enumerate(notes)]
    if options.fail:
        lost = after_failure(found, options.fail, stop=stop, engine=options.engine, seed=seed)
        record["failed"] = {"names": options.fail, "finish_epochs": lost.finish, "bound_epochs": lost.bound}
        lines += _loss(options.fail, found, lost)
    if output is not None:
        from dualcoll.schedules.file import write_schedule

        write_schedule(made, output)
    if html is not None:
        from dualcoll.reporting.schedule_page import schedule_page

        schedule_page(made, html, trace)
    if as_json:
        show_json(record)
    else:
        show_lines(lines)
    for path in filter(None, (output, html, options.checkpoint or options.resume)):
        say(f"saved {path}")


def _searched(task: Task, options: EpochOptions, seed: int, stop: Stop) -> Solution:
    """The search, with what it keeps on disk."""
    from dualcoll._api.time_expanding import plan_epochs
    from dualcoll.cli.searching import interruptible
    from dualcoll.progress import Meter
    from dualcoll.reporting.epochs import task_text
    from dualcoll.time_expanded.joint import least_joint

    start = None if options.resume is None else _resumed(options.resume, task)
    keep = options.checkpoint or options.resume
    say(task_text(task, max(1, least_joint(task))))
    with status_line() as line:
        meter = Meter(stop, None if line is None else _on_line(line))
        with interruptible(meter):
            found = plan_epochs(
                task,
                engine=options.engine,
                seed=seed,
                earliest=options.earliest,
                priorities=_priorities(task),
                start=start,
                meter=meter,
                tell=(lambda _: None) if keep is None else _keeper(keep),
            )
    if keep is not None:
        from dualcoll.time_expanded.file import write_epochs

        write_epochs(found, keep)
    return found


def _priorities(task: Task) -> list[int]:
    return [] if task.workload is None else [group.priority for group in task.workload.groups]


def _keeper(path: Path) -> Callable[[Solution], None]:
    """Writes every better solution, but spends no more than a tenth of the time on it."""
    from dualcoll.time_expanded.file import write_epochs

    again = 0.0

    def keep(found: Solution) -> None:
        nonlocal again
        now = time.monotonic()
        if now < again:
            return
        write_epochs(found, path)
        again = time.monotonic() + 10 * (time.monotonic() - now)

    return keep


def _resumed(path: Path, task: Task) -> Solution:
    """The solution in a checkpoint, if it is of this task.

    Raises:
        InputError: it is of another one.
    """
    from dualcoll.time_expanded.file import read_epochs, same_task

    kept = read_epochs(path)
    differs = same_task(kept.task, task)
    if differs:
        raise InputError(f"the checkpoint is of another problem: {differs} differs", where=str(path))
    return kept


def _loss(names: list[str], found: Solution, lost: Solution) -> list[tuple[str, str]]:
    from dualcoll.units import format_fraction

    more = lost.finish / found.finish - 1 if found.finish else 0.0
    text = f"{lost.finish} epochs instead of {found.finish}, {format_fraction(abs(more))} {'more' if more >= 0 else 'less'}"
    return [("failed", f"without {', '.join(names)}: {text} (at least {lost.bound})")]


def _on_line(line: Callable[[str], None]) -> Callable[[Progress], None]:
    def tell(now: Progress) -> None:
        best, bound = (round(1 / value) if value > 0 else 0 for value in (now.value, now.bound))
        line(f"{best} epochs, at least {bound}, {now.seconds:.1f} s (Ctrl-C keeps the best so far)")

    return tell


def _given(flag: str, read: Callable[[Any], Any], text: str) -> Any:
    try:
        return read(text)
    except InputError as error:
        raise error.within(flag) from None
