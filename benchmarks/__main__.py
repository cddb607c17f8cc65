"""Print a table of all instances, or of those whose names contain one of the arguments.

    python -m benchmarks [NAME ...] [--json]        plans, schedules, whole commands and re-planning
    python -m benchmarks --growth [FILE.html]       time and memory from 64 to 16,384 GPUs, and their picture
    python -m benchmarks --bounds [FILE.html]       oracle calls and time beside the paper's bounds, and their picture

Everything runs in a process of its own, after one run of its small form that loads (or, the first time, compiles) the
kernels. Seconds are the search's, without building the problem; "CPU_s" is the processor time of the whole call of ``plan``,
all threads, and "peer" how many times as much ForestColl takes; "bound_s" is when the best bound stood; "check" is the exact
proof; memory is the process's peak without the proof.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.epochs import EPOCH_RUNS
from benchmarks.growth import BOXES, STUDIES, draw_bounds, draw_growth, measure_study
from benchmarks.instances import INSTANCES, Instance, skewed_demand
from benchmarks.runs import RUNS, Run

COMMANDS = {
    "plan of 4 boxes": ["plan", "dgx-h100:boxes=4,network=rail", "allreduce", "--json"],
    "help": ["--help"],
}
COLUMNS = {
    "name": 35,
    "ranks": 6,
    "links": 7,
    "seconds": 8,
    "CPU_s": 8,
    "peer": 6,
    "bound_s": 8,
    "check_s": 8,
    "MiB": 6,
    "value": 9,
    "bound": 9,
    "gap": 8,
    "trees": 6,
    "depth": 6,
    "outcome": 8,
    "reach": 14,
}
ALL_RUNS = [*RUNS, *EPOCH_RUNS]
CHECKED = 500_000  # logical edges; the proof of larger plans takes longer than anybody waits here


def measure(instance: Instance, *, small: bool) -> dict[str, Any]:
    """Plan one instance here and now."""
    from dualcoll import Gap, Seconds, check, plan
    from dualcoll.diagnosis.timing import timing

    fabric = instance.build(small)
    stop = Gap(instance.gap) | Seconds(instance.seconds)
    demand = skewed_demand(len(fabric.ranks)) if instance.collective == "alltoallv" else None
    before = time.process_time()
    made = plan(
        fabric,
        instance.collective,
        demand=demand,
        routing=instance.routing,
        stop=stop,
        max_trees=instance.max_trees,
        max_depth=instance.max_depth,
    )
    spent = time.process_time() - before
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    checked = float("nan")
    if sum(tree.edges.shape[0] for tree in made.trees) <= CHECKED:
        start = time.perf_counter()
        check(made)
        checked = time.perf_counter() - start
    best = min(step.bound for step in made.history)
    return {
        "name": instance.name,
        "ranks": len(made.participants),
        "links": len(fabric.links),
        "seconds": made.seconds,
        "CPU_s": spent,
        "peer": instance.peer / spent if instance.peer else float("nan"),
        "bound_s": next(step.seconds for step in made.history if step.bound <= best * (1 + 1e-9)),
        "check_s": checked,
        "MiB": memory,
        "value": made.value / 1e9,
        "bound": made.bound / 1e9,
        "gap": made.gap,
        "trees": len(made.trees),
        "depth": timing(made).depth,
        "outcome": str(made.outcome),
        "reach": instance.reach,
    }


def measure_run(run: Run, *, small: bool) -> dict[str, Any]:
    """Do one thing with a schedule here and now."""
    sends, seconds, spent, figure = run.do(small)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "name": run.name,
        "sends": sends,
        "seconds": seconds,
        "CPU_s": spent,
        "MiB": peak,
        "figure": figure,
        "reach": run.reach,
    }


def time_command(arguments: list[str]) -> list[float]:
    """Wall seconds of three whole runs of the command line, after one that warms up."""
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "dualcoll", *arguments], check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def time_replanning() -> dict[str, tuple[float, float]]:
    """Median solver seconds of five, from scratch and from the previous plan, after one cable of 128 GPUs failed."""
    from dualcoll import Gap, catalog, plan
    from dualcoll.testing import degrade

    found = {}
    for name, symmetric in (("degraded", True), ("asymmetric", False)):
        fabric = degrade(catalog("dgx-h100:boxes=16"), 0, symmetric=symmetric)
        before = plan(fabric, stop=Gap(1e-6))
        failed = {fabric.index["b5.g3"], fabric.index["leaf3"]}
        after = replace(fabric, links=tuple(link for link in fabric.links if {link.tail, link.head} != failed))
        runs = [[plan(after, stop=Gap(1e-6), start=start).seconds for _ in range(5)] for start in (None, before)]
        found[name] = (sorted(runs[0])[2], sorted(runs[1])[2])
    return found


def _in_own_process(name: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", "benchmarks", "--one", name], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def _one(name: str) -> dict[str, Any]:
    """Measure what the name says, here, after its small form."""
    if name.startswith("study-"):
        return measure_study(STUDIES[int(name.removeprefix("study-"))])
    run = next((run for run in ALL_RUNS if run.name == name), None)
    if run is not None:
        measure_run(run, small=True)
        return measure_run(run, small=False)
    instance = _instance(name)
    measure(instance, small=True)
    return measure(instance, small=False)


def _instance(name: str) -> Instance:
    if name.startswith("growth-"):
        from dualcoll.topology.catalog import catalog

        boxes = name.removeprefix("growth-")
        return Instance(name, lambda small: catalog(f"dgx-h100:boxes={2 if small else boxes}"), gap=0.01, seconds=600)
    return next(instance for instance in INSTANCES if instance.name == name)


def _row(record: dict[str, Any]) -> str:
    forms = {
        "value": ".6g",
        "bound": ".6g",
        "seconds": ".3f",
        "CPU_s": ".3f",
        "peer": ".0f",
        "bound_s": ".3f",
        "check_s": ".2f",
        "MiB": ".0f",
        "gap": ".1e",
    }
    cells = []
    for column, width in COLUMNS.items():
        value = record[column]
        cells.append((format(value, forms[column]) if isinstance(value, float) else str(value)).ljust(width))
    return " ".join(cells)


def _run_row(record: dict[str, Any]) -> str:
    times = f"{record['seconds']:.2f} s ({record['CPU_s']:.2f} CPU s)"
    cells = (f"{record['sends']:,} sends", times, f"{record['MiB']:.0f} MiB", record["figure"])
    return f"{record['name']}: {', '.join(cells)} (to reach: {record['reach']})"


def _show_studies(file: str, *, as_json: bool) -> None:
    records = []
    for number in range(len(STUDIES)):
        records.append(_in_own_process(f"study-{number}"))
        if not as_json:
            print(json.dumps(records[-1]), flush=True)
    if as_json:
        print(json.dumps(records, indent=2))
    if file:
        draw_bounds(records, Path(file))


def _show_growth(file: str, *, as_json: bool) -> None:
    records = _table([f"growth-{boxes}" for boxes in BOXES], silent=as_json)
    if as_json:
        print(json.dumps(records, indent=2))
    if file:
        draw_growth(records, Path(file))


def _table(names: list[str], *, silent: bool) -> list[dict[str, Any]]:
    if names and not silent:
        print(_row({column: column for column in COLUMNS}))
    records = []
    for name in names:
        records.append(_in_own_process(name))
        if not silent:
            print(_row(records[-1]), flush=True)
    return records


def _show_all(wanted: list[str], *, as_json: bool) -> None:
    def chosen(name: str) -> bool:
        return not wanted or any(part in name for part in wanted)

    records = _table([instance.name for instance in INSTANCES if chosen(instance.name)], silent=as_json)
    runs = []
    for run in ALL_RUNS:
        if chosen(run.name):
            runs.append(_in_own_process(run.name))
            if not as_json:
                print(_run_row(runs[-1]), flush=True)
    commands = {} if wanted else {name: time_command(arguments) for name, arguments in COMMANDS.items()}
    replanning = {} if wanted else time_replanning()
    if as_json:
        everything = {"instances": records, "schedules": runs, "commands": commands, "replanning": replanning}
        print(json.dumps(everything, indent=2))
        return
    for name, seconds in commands.items():
        print(f"command: {name}: {min(seconds):.2f} to {max(seconds):.2f} s, process start to result")
    for name, (scratch, again) in replanning.items():
        times = f"{scratch:.3f} s from scratch, {again:.3f} s from the previous plan"
        print(f"re-plan, {name}: {times}: {scratch / again:.1f} x")


def main() -> None:
    """Parse the arguments and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json", action="store_true")
    for flag, text in (("--growth", "time and memory against the number of GPUs"), ("--bounds", "the paper's bounds")):
        parser.add_argument(flag, metavar="FILE", nargs="?", const="", help=text)
    parser.add_argument("--one", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_one(options.one)))
    elif options.growth is not None:
        _show_growth(options.growth, as_json=options.json)
    elif options.bounds is not None:
        _show_studies(options.bounds, as_json=options.json)
    else:
        _show_all(options.names, as_json=options.json)


if __name__ == "__main__":
    main()
