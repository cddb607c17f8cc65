"""Time-expanded planning on the command line: options, files, stops and what is kept through a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dualcoll.time_expanded.file import read_epochs
from tests.cli.conftest import Run

EPOCHS = ("--method", "time-expanded")


def finished(run: Run, *arguments: object) -> dict[str, Any]:
    """The record of a plan in epochs."""
    done = run("plan", *arguments, *EPOCHS, "--json")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert isinstance(record, dict)
    assert record["bound_epochs"] <= record["finish_epochs"]
    assert record["replay_s"] <= record["finish_s"] * (1 + 1e-9)
    return record


@pytest.mark.parametrize("engine", ["cp-sat", "highs"])
def test_engines_agree(run: Run, engine: str) -> None:
    """Both engines prove the same makespan."""
    record = finished(run, "dgx-1v", "allgather", "--size", "400K", "--chunks-per-rank", "2", "--engine", engine)
    assert record["outcome"] == "optimal"
    assert record["finish_epochs"] == record["bound_epochs"]


def test_options_change_the_clock(run: Run) -> None:
    """Epochs of the slowest link and multiples are longer; as many as are given are as long as given."""
    epoch = [
        finished(run, "dgx-1v", "allgather", "--size", "200K", *more)["epoch_s"]
        for more in ((), ("--epoch", "slowest"), ("--multiplier", "3"), ("--epoch", "2us"))
    ]
    assert epoch[1] == pytest.approx(2 * epoch[0])
    assert epoch[2] == pytest.approx(3 * epoch[0])
    assert epoch[3] == 2e-6


def test_without_copy_takes_longer(run: Run) -> None:
    """A chunk that nobody may copy leaves the root once for every rank."""
    with_, without = (
        finished(run, "ring:5", "broadcast", "--size", "240K", "--chunks-per-rank", "4", *more)["finish_epochs"]
        for more in ((), ("--no-copy",))
    )
    assert without > with_


def test_variables_are_told_before_the_search(run: Run) -> None:
    """What the model would have is said on the error stream, out of the way of the result."""
    done = run("plan", "dgx-1v", "allgather", "--size", "200K", *EPOCHS)
    assert "8 chunks of 25 KiB" in done.err
    assert "flow" in done.err
    assert "buffer" in done.err
    assert "read variables" in done.err
    assert "gap 0 %" in done.out


def test_auto_takes_epochs_for_small_messages_and_says_why(run: Run) -> None:
    """At 64 KiB the schedule in epochs is simulated to be faster; at 1 GiB there are trees."""
    small = run("plan", "dgx-1v", "allgather", "--size", "64K")
    large = run("plan", "dgx-1v", "allgather", "--size", "1G")
    assert small.code == large.code == 0
    assert "chosen     epochs" in small.out
    assert "latency decides at this size" in small.out
    assert "trees" in large.out


def test_tenants_with_priorities(run: Run, tmp_path: Path) -> None:
    """Two jobs of a file: each beside itself alone, and both in turn."""
    jobs = tmp_path / "jobs.yaml"
    jobs.write_text(
        "- {name: first, collective: broadcast, size: 100K, root: 0, priority: 1}\n"
        "- {name: second, collective: broadcast, size: 100K, root: 0}\n"
    )
    done = run("plan", "dgx-1v", "--tenants", jobs, "--chunks-per-rank", "4", *EPOCHS)
    assert done.code == 0, done.err
    assert "first" in done.out
    assert "alone" in done.out
    assert "in turn" in done.out


def test_a_failed_cable(run: Run) -> None:
    """The loss is told in epochs."""
    done = run("plan", "dgx-1v", "allgather", "--size", "200K", "--fail", "g0 - g1", *EPOCHS)
    assert done.code == 0, done.err
    assert "without g0 - g1" in done.out
    assert "epochs instead of" in done.out


def test_saved_schedules_are_checked(run: Run, tmp_path: Path) -> None:
    """The sends, the epochs and the page are written; both files pass their checks, data included."""
    sends, epochs, page = tmp_path / "s.json", tmp_path / "e.json", tmp_path / "p.html"
    saved = ("-o", sends, "--html", page, "--checkpoint", epochs)
    assert run("plan", "dgx-1v", "allgather", "--size", "200K", *saved, *EPOCHS).code == 0
    assert page.stat().st_size > 10_000
    assert "every promise is kept" in run("check", sends, "--data").out
    seen = run("check", epochs, "--seconds", "5")
    assert seen.code == 0
    assert "with copy" in seen.out


def test_an_epoch_file_with_faults(run: Run, tmp_path: Path) -> None:
    """A start before the chunk is there: refused with rule, node, epoch and chunk, exit code 1."""
    epochs = tmp_path / "e.json"
    assert run("plan", "dgx-1v", "allgather", "--size", "200K", "--checkpoint", epochs, *EPOCHS).code == 0
    data = json.loads(epochs.read_text())
    for link, starts in data["starts"].items():
        data["starts"][link] = {"0": sorted({chunk for chunks in starts.values() for chunk in chunks})}
    epochs.write_text(json.dumps(data))
    done = run("check", epochs, "--seconds", "5")
    assert done.code == 1
    assert "epoch 0" in done.out + done.err
    assert "chunk" in done.out + done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "cplex"), "cplex"),
        (("--epoch", "soon"), "--epoch"),
        (("--multiplier", "0"), "multiplier"),
        (("--chunks-per-rank", "0"), "--chunks-per-rank"),
        (("--reduction-speed", "fast"), "--reduction-speed"),
        (("--fail", "g99"), "g99"),
        (("--resume", "missing.json"), "missing.json"),
    ],
)
def test_bad_options(run: Run, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    """What cannot be used is refused by name, with exit code 2 and nothing written."""
    out = tmp_path / "s.json"
    done = run("plan", "dgx-1v", "allgather", "--size", "200K", *arguments, "-o", out, *EPOCHS)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert not out.exists()


def test_options_of_epochs_need_the_method(run: Run) -> None:
    """They are refused where they would do nothing."""
    done = run("plan", "dgx-1v", "allgather", "--size", "1G", "--buffer", "2", "--method", "column-generation")
    assert done.code == 2
    assert "--buffer" in done.err


def test_nothing_is_lost_by_a_kill(tmp_path: Path) -> None:
    """Killed in mid-search; the checkpoint is whole, what goes on from it is no worse, and it is of this problem only."""
    kept = tmp_path / "kept.json"
    fabric = ("plan", "dgx-1v", "allgather", "--size", "1400K", "--chunks-per-rank", "7", *EPOCHS)
    command = [sys.executable, "-m", "dualcoll", *fabric]
    process = subprocess.Popen(
        [*command, "--checkpoint", kept, "--seconds", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not kept.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = read_epochs(kept)
    done = subprocess.run(
        [*command, "--resume", kept, "--seconds", "4", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["finish_epochs"] <= before.finish
    assert record["bound_epochs"] >= before.bound
    assert read_epochs(kept).finish == record["finish_epochs"]
    other = subprocess.run(
        [*command, "--resume", kept, "--epoch", "slowest"], capture_output=True, text=True, check=False
    )
    assert other.returncode == 2
    assert "of another problem" in other.stderr
