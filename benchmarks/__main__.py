"""Print a table of all instances, or of those whose names contain one of the arguments.

    python -m benchmarks [NAME ...] [--json]

Each instance runs in a process of its own, after one run of its small form that loads (or, the first time, compiles) the
kernels. Seconds are the solver's; memory is the process's peak. The last rows time whole commands, process start to result.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

from benchmarks.instances import INSTANCES, Instance

COMMANDS = {
    "plan of 4 boxes": ["plan", "dgx-h100:boxes=4,network=rail", "allreduce", "--json"],
    "help": ["--help"],
}
COLUMNS = ("name", "ranks", "links", "seconds", "MiB", "value", "bound", "gap", "trees", "depth", "outcome", "reach")


def measure(instance: Instance, *, small: bool) -> dict[str, Any]:
    """Plan one instance here and now."""
    from dualcoll import Gap, Seconds, plan
    from dualcoll.diagnosis.timing import timing

    fabric = instance.build(small)
    made = plan(fabric, stop=Gap(instance.gap) | Seconds(instance.seconds))
    return {
        "name": instance.name,
        "ranks": len(made.participants),
        "links": len(fabric.links),
        "seconds": made.seconds,
        "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
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


def _in_own_process(name: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--one", name], check=True, capture_output=True, text=True
    )
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def _row(record: dict[str, Any]) -> str:
    cells = []
    for column in COLUMNS:
        value = record[column]
        text = f"{value:.6g}" if isinstance(value, float) and column in ("value", "bound") else str(value)
        if isinstance(value, float) and column in ("seconds", "MiB", "gap"):
            text = {"seconds": f"{value:.3f}", "MiB": f"{value:.0f}", "gap": f"{value:.1e}"}[column]
        cells.append(text)
    widths = (24, 6, 6, 8, 6, 9, 9, 8, 6, 6, 8, 16)
    return " ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))


def main() -> None:
    """Parse the arguments and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        instance = next(instance for instance in INSTANCES if instance.name == options.one)
        measure(instance, small=True)
        print(json.dumps(measure(instance, small=False)))
        return
    chosen = [i for i in INSTANCES if not options.names or any(name in i.name for name in options.names)]
    if not options.json:
        print(_row({column: column for column in COLUMNS}))
    records = []
    for instance in chosen:
        record = _in_own_process(instance.name)
        records.append(record)
        if not options.json:
            print(_row(record), flush=True)
    commands = {} if options.names else {name: time_command(arguments) for name, arguments in COMMANDS.items()}
    if options.json:
        print(json.dumps({"instances": records, "commands": commands}, indent=2))
    for name, seconds in commands.items():
        if not options.json:
            print(f"command: {name}: {min(seconds):.2f} to {max(seconds):.2f} s, process start to result")


if __name__ == "__main__":
    main()
