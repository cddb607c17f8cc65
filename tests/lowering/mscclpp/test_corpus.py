"""Public MSCCL++ plans, where a collection of them stands beside the checkout: each gives the verdict that is known of it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from dualcoll.execution.in_process import execute
from dualcoll.lowering.mscclpp import inspect, is_mscclpp, plan_from_bytes, to_schedule
from dualcoll.schedules.validate import validate

COLLECTION = Path(__file__).resolve().parents[4] / "shared"
DOCS = Path(__file__).resolve().parents[3] / "docs" / "mscclpp.md"
RACES = (
    "mscclpp__test__executor-tests__execution-plans__reduce_tbg.json"  # in which thread blocks wait for the wrong peers
)


def rows() -> list[dict[str, str]]:
    table = COLLECTION / "cases" / "corpus_expectations.tsv"
    if not table.exists():
        return []
    with table.open(newline="") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["kind"].startswith("mscclpp_")]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["file"])
def test_verdict(row: dict[str, str]) -> None:
    """Every plan is read with its ranks and collective, and is without fault; but for the one that has races."""
    data = (COLLECTION / "corpus" / row["kind"] / row["file"]).read_bytes()
    assert is_mscclpp(data)
    assert row["verdict"] == "import"
    plan = plan_from_bytes(data, row["file"])
    assert str(plan.ranks) == row["ranks"]
    assert plan.collective in row["key_fact"]
    report = inspect(plan)
    assert bool(report.faults) == (row["file"] == RACES)
    assert all("nothing orders them" in fault for fault in report.faults)
    checked = not any("the result is not checked" in warning for warning in report.warnings)
    assert checked == (plan.collective in ("allreduce", "allgather"))
    if checked and not any(op.channel_type == "switch" for op in plan.operations()):
        schedule = to_schedule(plan, 2**20)
        validate(schedule)
        execute(schedule)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["file"])
def test_documented(row: dict[str, str]) -> None:
    """The table of the docs has the verdict on every plan."""
    plan = plan_from_bytes((COLLECTION / "corpus" / row["kind"] / row["file"]).read_bytes(), row["file"])
    report = inspect(plan)
    line = next(line for line in DOCS.read_text().splitlines() if line.startswith(f"| {row['file'].split('__')[-1]} |"))
    assert report.facts in line
    assert ("races" in line) == bool(report.faults)
