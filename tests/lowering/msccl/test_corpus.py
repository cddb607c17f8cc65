"""Public MSCCL XML files, where a collection of them stands beside the checkout: each gets the verdict that is known of it."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from dualcoll.errors import CheckFailed
from dualcoll.execution.in_process import execute
from dualcoll.lowering.msccl.program import Program
from dualcoll.lowering.msccl.read import parse_msccl
from dualcoll.lowering.msccl.to_schedule import to_schedule
from dualcoll.lowering.msccl.validate import validate
from dualcoll.schedules import validate as schedules

COLLECTION = Path(__file__).resolve().parents[4] / "shared"
KINDS = ("msccl_xml", "msccl_xml_generated", "msccl_xml_negative")
RINGS = "msccl-scheduler__tools__msccl-algorithms__ndv4__ag-32m-1g.xml"


def rows() -> list[dict[str, str]]:
    table = COLLECTION / "cases" / "corpus_expectations.tsv"
    if not table.exists():
        return []
    with table.open(newline="") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["kind"] in KINDS]


GOOD = [row for row in rows() if row["verdict"] == "import"]
BAD = [row for row in rows() if row["verdict"] == "refuse"]


def read(row: dict[str, str]) -> Program:
    return parse_msccl((COLLECTION / "corpus" / row["kind"] / row["file"]).read_bytes(), row["file"])


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row["file"])
def test_good_files(row: dict[str, str]) -> None:
    """Valid, with its contract, ranks, channels and the other facts that are known; and so is what it becomes as a schedule."""
    program, fact = read(row), row["key_fact"]
    verdict = validate(program)
    assert verdict.text.startswith(f"{fact.split(',')[0]}, {row['ranks']} ranks, ")
    for known in re.findall(r"\d+ channels?\b(?! id)|in place|out of place", fact):
        assert known in verdict.text
    for known in re.findall(r"use only (\d+) channel ids", fact):
        assert f"({known} used)" in verdict.text
    for known in re.findall(r"cnt (?:up to )?(\d+)", fact + row["note"]):
        assert verdict.count == int(known)
    lacks = "it lacks outofplace, minBytes, maxBytes, without which RCCL and msccl-executor-nccl refuse to load it"
    assert (lacks in verdict.notes) is ("acks outofplace/minBytes/maxBytes" in row["note"])
    schedule = to_schedule(program, 64 * program.nchunksperloop)
    schedules.validate(schedule)
    execute(schedule)


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row["file"])
def test_depth_of_connections(row: dict[str, str]) -> None:
    """One file of rings needs room for two messages; all others would run with one."""
    if row["file"] == RINGS:
        with pytest.raises(CheckFailed, match="deadlock where connections hold 1 message: "):
            validate(read(row), depth=1)
    else:
        validate(read(row), depth=1)


@pytest.mark.parametrize("row", BAD, ids=lambda row: row["file"])
def test_bad_files(row: dict[str, str]) -> None:
    """Its structure is fine, and its results are wrong everywhere; a rank and chunk are named."""
    with pytest.raises(CheckFailed) as caught:
        validate(read(row))
    assert caught.value.findings[:2] == (
        "512 of 512 output chunks are not what AllReduce promises",
        "gpu 0, output chunk 0: it lacks chunk 0 of gpu 4's input, and 3 more; last written by "
        "gpu 0, tb 0, step 5 (re, line 9)",
    )
