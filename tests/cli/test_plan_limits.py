"""Limits on trees and depth, trade-offs and earlier plans, as a user meets them on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_max_trees_is_kept_and_its_loss_said(run: Run) -> None:
    """Three trees at most, a bound that is the fabric's, and an outcome that says what the gap means."""
    limited = json.loads(run("plan", "dgx-1v", "allreduce", "--max-trees", "3", "--gap", "0", "--json").out)
    free = json.loads(run("plan", "dgx-1v", "allreduce", "--gap", "0", "--json").out)
    assert limited["trees"] <= 3 < free["trees"]
    assert limited["outcome"] == "limited"
    assert limited["bound_algbw_GBps"] == pytest.approx(free["bound_algbw_GBps"], rel=1e-6)
    assert limited["gap"] == pytest.approx(1 - limited["algbw_GBps"] / limited["bound_algbw_GBps"])
    text = run("plan", "dgx-1v", "allreduce", "--max-trees", "3", "--gap", "0").out
    assert (
        "limited: the best found of the kind asked for (few, shallow, composed, given); the bound is that of any"
        in text
    )


def test_max_depth_is_kept_and_depth_printed(run: Run) -> None:
    """In the object and in words."""
    arguments = ("plan", "rail:4x4", "allreduce", "--max-depth", "2")
    assert json.loads(run(*arguments, "--json").out)["depth"] <= 2
    assert "at most 2 logical edges from root to leaf" in run(*arguments).out


def test_a_limited_plan_is_saved_and_checked(run: Run, tmp_path: Path) -> None:
    """Its outcome is one that a plan file knows."""
    file = tmp_path / "plan.json"
    done = run("plan", "mi250", "allreduce", "--max-trees", "2", "--max-depth", "9", "-o", file)
    assert done.code == 0
    assert run("check", file).code == 0


def test_pareto_prints_a_row_for_each_trade_off(run: Run) -> None:
    """Trees, rate, share of the bound and depth; the same rows in the object; none unless asked for."""
    record = json.loads(run("plan", "dgx-1v", "allreduce", "--pareto", "--json").out)
    rows = record["pareto"]
    assert len(rows) > 1
    for row in rows:
        assert row.keys() == {"trees", "algbw_GBps", "of_bound", "depth"}
        assert row["of_bound"] == pytest.approx(row["algbw_GBps"] / record["bound_algbw_GBps"], rel=1e-6)
        assert 0 < row["of_bound"] <= 1
    out = run("plan", "dgx-1v", "allreduce", "--pareto").out
    assert f"pareto        1 tree: {rows[0]['algbw_GBps']:.6g} GB/s" in out
    assert f"of the bound, depth {rows[0]['depth']}" in out
    assert "pareto" not in run("plan", "dgx-1v", "allreduce").out
    assert json.loads(run("plan", "dgx-1v", "allreduce", "--json").out)["pareto"] == []


def test_from_starts_from_a_saved_plan(run: Run, tmp_path: Path) -> None:
    """The same optimum, also with another size and on another fabric of the same ranks."""
    file, again = tmp_path / "plan.json", tmp_path / "again.json"
    assert run("plan", "p4d:boxes=2", "allreduce", "-o", file).code == 0
    done = run("plan", "p4d:boxes=2,nic=200Gb/s", "allreduce", "--from", file, "--size", "4M", "-o", again, "--json")
    scratch = json.loads(run("plan", "p4d:boxes=2,nic=200Gb/s", "allreduce", "--json").out)
    assert json.loads(done.out)["algbw_GBps"] == pytest.approx(scratch["algbw_GBps"], rel=1e-6)
    assert run("check", again).code == 0


def test_from_needs_a_plan_of_the_same_ranks(run: Run, tmp_path: Path) -> None:
    """Other ranks, no plan at all, no file: one line each."""
    file, other = tmp_path / "plan.json", tmp_path / "other.json"
    assert run("plan", "star:4", "allreduce", "-o", file).code == 0
    done = run("plan", "star:5", "allreduce", "--from", file)
    assert done.code == 2
    assert done.out == ""
    assert (
        "the previous plan is for other ranks: it lacks g4; start from a plan of the same ranks, or from none"
        in done.err
    )
    other.write_text("{}")
    missing = tmp_path / "missing.json"
    for path in (other, missing):
        done = run("plan", "star:4", "allreduce", "--from", path)
        assert done.code == 2
        assert path.name in done.err
        assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--max-depth", "1"], "no tree was found that is at most 1 logical edges deep; allow deeper trees"),
        (["--max-trees", "2", "--method", "garg-konemann"], "method garg-konemann: max_trees needs the method auto"),
        (["--max-depth", "2", "--method", "garg-konemann"], "method garg-konemann: max_depth needs the method auto"),
        (["--max-trees", "0"], "--max-trees"),
        (["--max-depth", "-1"], "--max-depth"),
        (["--max-trees", "few"], "--max-trees"),
    ],
)
def test_unusable_limits_are_exit_code_2(run: Run, arguments: list[str], message: str) -> None:
    """Nothing on stdout, one message that names the limit."""
    done = run("plan", "ring:6", "allreduce", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert message in done.err
    assert "Traceback" not in done.err
