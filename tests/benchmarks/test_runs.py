"""What is measured of schedules, each in its small form, and the studies of growth."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import measure_run
from benchmarks.growth import STUDIES, Study, draw_bounds, measure_study
from benchmarks.instances import INSTANCES
from benchmarks.runs import RUNS, Run


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_each_run_works_when_small(run: Run) -> None:
    """A benchmark must measure something that works."""
    record = measure_run(run, small=True)
    assert record["sends"] > 0
    assert record["seconds"] > 0
    assert record["figure"]


@pytest.mark.parametrize("kind", ["allreduce", "spray", "allgather"])
def test_the_paper_bounds_the_calls(kind: str) -> None:
    """Garg–Könemann stays within the oracle calls that the paper allows."""
    record = measure_study(Study("links", "ring:4", kind, 0.5))
    assert 0 < record["garg-konemann"]["calls"] <= record["calls_bound"]
    assert record["auto"]["seconds"] > 0


def test_the_picture_of_the_bounds(tmp_path: Path) -> None:
    """A method that took too long leaves a hole in its line, not a missing picture."""
    took = {"calls": 10, "seconds": 0.1}
    same = {"kind": "allreduce", "links": 4, "ranks": 4, "epsilon": 0.5, "calls_bound": 99, "work_bound": 99.0}
    records = [
        {**same, "kind": kind, "axis": axis, "auto": {"calls": None, "seconds": None}, "garg-konemann": took}
        for axis in ("links", "ranks", "epsilon")
        for kind in ("allreduce", "spray", "allgather")
    ]
    draw_bounds(records, tmp_path / "bounds.html")
    assert "oracle calls" in (tmp_path / "bounds.html").read_text()


def test_names_are_unique() -> None:
    """Plans and schedules share a namespace, and every study is another one."""
    names = [instance.name for instance in INSTANCES] + [run.name for run in RUNS]
    assert len(names) == len(set(names))
    assert len(STUDIES) == len(set(STUDIES))
