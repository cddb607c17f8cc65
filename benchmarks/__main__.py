"""Print a table of all instances, or of those whose names contain one of the arguments.

    python -m benchmarks [NAME ...] [--json]        the instances, whole commands and re-planning
    python -m benchmarks --growth [FILE.html]       time and memory from 64 to 16,384 GPUs, and their picture

Each instance runs in a process of its own, after one run of its small form that loads (or, the first time, compiles) the
kernels. Seconds are the search's, without building the problem; "bound_s" is when the best bound stood;
"check" is the exact proof; memory is the process's peak without the proof.
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

from benchmarks.instances import GROWTH, INSTANCES, Instance

COMMANDS = {
    "plan of 4 boxes": ["plan", "dgx-h100:boxes=4,network=rail", "allreduce", "--json"],
    "help": ["--help"],
}
COLUMNS = {
    "name": 28,
    "ranks": 6,
    "links": 7,
    "seconds": 8,
    "bound_s": 8,
    "check_s": 8,
    "MiB": 6,
    "value": 9,
    "bound": 9,
    "gap": 8,
    "trees": 6,
    "depth": 6,
    "outcome": 8,
    "reach": 16,
}
CHECKED = 2000  # ranks; the proof of larger plans takes longer than anybody waits here


def measure(instance: Instance, *, small: bool) -> dict[str, Any]:
    """Plan one instance here and now."""
    from dualcoll import Gap, Seconds, check, plan
    from dualcoll.diagnosis.timing import timing

    fabric = instance.build(small)
    stop = Gap(instance.gap) | Seconds(instance.seconds)
    made = plan(fabric, stop=stop, max_trees=instance.max_trees, max_depth=instance.max_depth)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.perf_counter()
    if len(made.participants) <= CHECKED:
        check(made)
    checked = time.perf_counter() - start
    best = min(step.bound for step in made.history)
    return {
        "name": instance.name,
        "ranks": len(made.participants),
        "links": len(fabric.links),
        "seconds": made.seconds,
        "bound_s": next(step.seconds for step in made.history if step.bound <= best * (1 + 1e-9)),
        "check_s": checked if len(made.participants) <= CHECKED else float("nan"),
        "MiB": memory,
        "value": made.value / 1e9,
        "bound": made.bound / 1e9,
        "gap": made.gap,
        "trees": len(made.trees),
        "depth": timing(made).depth,
        "outcome": str(made.outcome),
        "reach": instance.reach,
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


def draw_growth(records: list[dict[str, Any]], file: Path) -> None:
    """Seconds and memory against GPUs."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=2, subplot_titles=("solver seconds", "peak memory, MiB"))
    ranks = [record["ranks"] for record in records]
    for column, key in ((1, "seconds"), (2, "MiB")):
        line = go.Scatter(x=ranks, y=[record[key] for record in records], mode="lines+markers", showlegend=False)
        figure.add_trace(line, row=1, col=column)
    texts = [f"{count:,}" for count in ranks]
    figure.update_xaxes(type="log", title_text="GPUs (H100 boxes on rails)", tickvals=ranks, ticktext=texts)
    figure.update_yaxes(type="log", dtick=1, row=1, col=1)
    figure.update_yaxes(rangemode="tozero", row=1, col=2)
    figure.update_layout(template="plotly_white", width=1000, height=400, title="AllReduce to a gap of 1 %")
    file.write_text(figure.to_html(include_plotlyjs=True, config={"displayModeBar": False}))


def _in_own_process(name: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--one", name], check=True, capture_output=True, text=True
    )
    record: dict[str, Any] = json.loads(done.stdout)
    return record


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


def main() -> None:
    """Parse the arguments and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--growth", metavar="FILE", nargs="?", const="", help="time and memory against the number of GPUs"
    )
    parser.add_argument("--one", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        instance = _instance(options.one)
        measure(instance, small=True)
        print(json.dumps(measure(instance, small=False)))
        return
    names = [i.name for i in INSTANCES if not options.names or any(name in i.name for name in options.names)]
    if options.growth is not None:
        names = [f"growth-{boxes}" for boxes in GROWTH]
    if not options.json:
        print(_row({column: column for column in COLUMNS}))
    records = []
    for name in names:
        records.append(_in_own_process(name))
        if not options.json:
            print(_row(records[-1]), flush=True)
    if options.growth:
        draw_growth(records, Path(options.growth))
    whole = not options.names and options.growth is None
    commands = {name: time_command(arguments) for name, arguments in COMMANDS.items()} if whole else {}
    replanning = time_replanning() if whole else {}
    if options.json:
        print(json.dumps({"instances": records, "commands": commands, "replanning": replanning}, indent=2))
        return
    for name, seconds in commands.items():
        print(f"command: {name}: {min(seconds):.2f} to {max(seconds):.2f} s, process start to result")
    for name, (scratch, again) in replanning.items():
        print(
            f"re-plan, {name}: {scratch:.3f} s from scratch, {again:.3f} s from the previous plan: {scratch / again:.1f} x"
        )


if __name__ == "__main__":
    main()
