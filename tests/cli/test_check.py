"""`dualcoll check` as a user meets it; each forgery is refused for its own reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def plan_file(run: Run, tmp_path: Path) -> Path:
    file = tmp_path / "plan.json"
    assert run("plan", "dgx-1v", "allreduce", "--ranks", "0-3", "-o", file).code == 0
    return file


def _forge(file: Path, change: Any) -> None:
    plan = json.loads(file.read_text())
    change(plan)
    file.write_text(json.dumps(plan))


def test_a_sound_plan_is_accepted(run: Run, plan_file: Path) -> None:
    """An honest file passes, in words and as an object."""
    assert run("check", plan_file).code == 0
    assert json.loads(run("check", plan_file, "--json").out)["supported"] is True


def _raise_rate(plan: Any) -> None:
    plan["trees"][0]["rate"] *= 1.5


def _remove_edge(plan: Any) -> None:
    del plan["trees"][0]["edges"][0]
    del plan["trees"][0]["routes"][0]


def _reroute(plan: Any) -> None:
    tail, head, _ = plan["trees"][0]["edges"][0]
    plan["trees"][0]["routes"][0] = [tail, "g4", head] if tail == "g0" else [tail, "g5", head]


def _lower_bound(plan: Any) -> None:
    plan["claims"]["bound"] *= 0.9


def _lower_capacity(plan: Any) -> None:
    for link in plan["topology"]["links"]:
        link["bandwidth"] = "10GB/s"


def _raise_capacity(plan: Any) -> None:
    for link in plan["topology"]["links"]:
        link["bandwidth"] = "90GB/s"


def _spoil_shares(plan: Any) -> None:
    plan["trees"][0]["bytes"] += 1000


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_raise_rate, "carries"),
        (_remove_edge, "reduce"),
        (_reroute, "route"),
        (_lower_bound, "bound"),
        (_lower_capacity, "carries"),
        (_raise_capacity, "bound"),
        (_spoil_shares, "bytes"),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else "",
)
def test_forgeries_are_refused_with_the_reason(run: Run, plan_file: Path, change: Any, reason: str) -> None:
    """Every claim that a change breaks is named, and the exit code is 1."""
    _forge(plan_file, change)
    done = run("check", plan_file)
    assert done.code == 1
    assert reason in done.err
    assert "Traceback" not in done.err
    listed = run("check", plan_file, "--json")
    assert listed.code == 1
    assert json.loads(listed.out)["findings"]


def test_other_prices_that_support_the_bound_are_accepted(run: Run, plan_file: Path) -> None:
    """Prices have no unit: any multiple proves the same bound."""

    def scale(plan: Any) -> None:
        for entry in plan["prices"]:
            entry["price"] *= 3.7

    _forge(plan_file, scale)
    assert run("check", plan_file).code == 0


def test_a_plan_is_held_against_another_fabric(run: Run, plan_file: Path) -> None:
    """On slower links the same plan's loads do not fit."""
    assert run("check", plan_file, "--topology", "dgx-1v").code == 0
    slower = run("check", plan_file, "--topology", "dgx-1v:rates=nccl")
    assert slower.code == 1
    assert "carries" in slower.err


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "dualcoll.plan/2"}', "null", "\x00", "[" * 100_000])
def test_what_is_no_plan_is_exit_code_2(run: Run, tmp_path: Path, text: str) -> None:
    """Malformed files are input errors, not failed checks, and never a traceback."""
    file = tmp_path / "broken.json"
    file.write_text(text)
    done = run("check", file)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert "Traceback" not in done.err


def test_a_missing_file_is_exit_code_2(run: Run, tmp_path: Path) -> None:
    """The path is named."""
    done = run("check", tmp_path / "absent.json")
    assert done.code == 2
    assert "absent.json" in done.err
