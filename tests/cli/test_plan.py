"""`dualcoll plan` and `dualcoll bound` as a user meets them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dualcoll.cli.searching import interruptible
from dualcoll.progress import Meter, Seconds
from tests.cli.conftest import Run

KEYS = {
    "collective",
    "ranks",
    "algbw_GBps",
    "busbw_GBps",
    "bound_algbw_GBps",
    "in_network_bound_GBps",
    "gap",
    "outcome",
    "trees",
    "depth",
    "solve_seconds",
    "time_s",
    "bottleneck",
}


def test_json_has_the_promised_keys(run: Run) -> None:
    """Scripts read one object from stdout and nothing else."""
    done = run("plan", "dgx-h100:boxes=4,network=rail", "allreduce", "--json")
    record = json.loads(done.out)
    assert done.code == 0
    assert record.keys() >= KEYS
    assert record["collective"] == "allreduce"
    assert record["ranks"] == 32
    assert record["algbw_GBps"] == pytest.approx(258.064516, abs=1e-4)
    assert record["busbw_GBps"] == pytest.approx(record["algbw_GBps"] * 2 * 31 / 32)
    assert record["in_network_bound_GBps"] == pytest.approx(400)
    assert record["bottleneck"][0].keys() >= {"links", "price_share", "text"}
    assert sum(group["price_share"] for group in record["bottleneck"]) == pytest.approx(1, abs=1e-5)
    assert isinstance(record["trees"], int)


@pytest.mark.parametrize(
    "name", ["allreduce", "all-reduce", "AllReduce", "all_reduce", "ALL REDUCE", "all_reduce_perf"]
)
def test_any_spelling_is_printed_in_one(run: Run, name: str) -> None:
    """Collectives have many spellings in and one out."""
    assert json.loads(run("plan", "star:4", name, "--json").out)["collective"] == "allreduce"


def test_text_names_value_bound_limit_policy_and_sources(run: Run) -> None:
    """A person sees what is proved, what limits it, who forwards and where the numbers come from."""
    out = run("plan", "dgx-1v", "allreduce", "--ranks", "0,1").out
    assert "algbw      25 GB/s, busbw 25 GB/s" in out
    assert "g0 - g1 (25 GB/s each way), 100 % used" in out
    assert "forward    switches only" in out
    assert "25 GB/s nominal" in out


def test_forward_all_says_so(run: Run) -> None:
    """Help from GPUs that take no part changes the answer, and the output says that it was allowed."""
    out = run("plan", "dgx-1v", "allreduce", "--ranks", "g0,g1", "--forward", "all").out
    assert "algbw      150 GB/s" in out
    assert "forward    switches and every GPU and host, also those that take no part" in out


def test_small_message_is_warned_about(run: Run) -> None:
    """A rate means nothing for a kilobyte, and the user hears it."""
    out = run("plan", "dgx-h100:boxes=2", "allreduce", "--size", "1K").out
    assert "too small for the rate to matter" in out
    assert "warning" not in run("plan", "dgx-h100:boxes=2", "allreduce", "--size", "1G").out


def test_output_is_a_plan_that_check_proves(run: Run, tmp_path: Path) -> None:
    """What plan saves, check accepts."""
    file = tmp_path / "plan.json"
    saved = run("plan", "torus:3x3", "allreduce", "-o", file, "--gap", "0.01", "--seconds", "20", "--seed", "3")
    assert saved.code == 0
    assert saved.err == f"saved {file}\n"
    checked = run("check", file)
    assert checked.code == 0
    assert "every claim holds in exact arithmetic" in checked.out


def test_html_page_is_written(run: Run, tmp_path: Path) -> None:
    """--html leaves one page beside the printed result."""
    page = tmp_path / "plan.html"
    done = run("plan", "star:4", "allreduce", "--html", page)
    assert done.code == 0
    assert page.read_text().lstrip().lower().startswith("<!doctype html>")


def test_bound_prints_the_bound_and_no_plan(run: Run) -> None:
    """The bound's text is about the limit, not about trees; its object is the same as plan's."""
    out = run("bound", "ring:4", "allreduce").out
    assert "bound" in out
    assert "trees" not in out
    assert json.loads(run("bound", "ring:4", "allreduce", "--json").out).keys() >= KEYS


def test_garg_konemann_is_selectable(run: Run) -> None:
    """The paper's own algorithm runs on request and its result is within the asked gap."""
    record = json.loads(run("plan", "star:4", "allreduce", "--method", "garg-konemann", "--gap", "20%", "--json").out)
    assert record["method"] == "garg-konemann"
    assert record["gap"] <= 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.yaml", "allreduce"], "'nowhere.yaml' is neither a file nor a name of the catalogue"),
        (["star:4", "allgetter"], "collective 'allgetter' is not known; use one of allreduce"),
        (["star:4", "allreduce", "--gap", "2"], "cannot use '2' as a fraction"),
        (["star:4", "allreduce", "--gap", "nan"], "cannot use 'nan' as a fraction"),
        (["star:4", "allreduce", "--seconds", "0"], "time limit 0.0 s is not positive"),
        (["star:4", "allreduce", "--seconds", "nan"], "time limit nan s is not positive"),
        (["star:4", "allreduce", "--size", "0"], "size '0' is out of range"),
        (["star:4", "allreduce", "--size", "1Q"], "cannot read size '1Q'"),
        (["star:4", "allreduce", "--ranks", "0-9"], "ranks: 0-9 is not within ranks 0 to 3"),
        (["star:4", "allreduce", "--ranks", "0"], "ranks: AllReduce of 1 rank; two or more take part"),
        (["star:4", "allreduce", "--ranks", "0,0"], "ranks: rank g0 is named twice"),
        (["star:4", "allreduce", "--forward", "gpus"], "forward 'gpus' is not known"),
        (["star:4", "allreduce", "--method", "magic"], "method 'magic' is not known"),
        (["star:4", "allreduce", "-o", "/no/such/folder/plan.json"], "--output: folder /no/such/folder does not exist"),
        (["star:4", "allreduce", "--rates", "best"], "--rates: 'best' is not known; use one of nominal, nccl"),
    ],
)
def test_unusable_input_is_exit_code_2(run: Run, arguments: list[str], message: str) -> None:
    """Bad input ends with 2, nothing on stdout, and one line that names it."""
    done = run("plan", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert message in done.err
    assert "Traceback" not in done.err


def test_usage_errors_are_exit_code_2(run: Run) -> None:
    """A flag that does not exist is the same kind of error."""
    assert run("plan", "star:4", "allreduce", "--nope").code == 2
    assert run("plan").code == 2


def test_first_ctrl_c_ends_the_search_and_the_second_the_program() -> None:
    """Ctrl-C asks the solver to stop; pressing again does not wait for it."""
    meter = Meter(Seconds(10))
    with interruptible(meter):
        os.kill(os.getpid(), signal.SIGINT)
        assert meter.interrupted
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_gives_the_best_so_far(tmp_path: Path) -> None:
    """A real process, interrupted in the middle of a search that would take minutes, exits with 0 and a proved plan."""
    file = tmp_path / "plan.json"
    arguments = [
        "plan",
        "dgx-h100:boxes=32",
        "allreduce",
        "--method",
        "garg-konemann",
        "--gap",
        "0.2%",
        "--seconds",
        "300",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "dualcoll", *arguments, "--json", "-o", file],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(8)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    record = json.loads(out)
    assert record["outcome"] == "interrupted"
    assert 0 < record["algbw_GBps"] <= record["bound_algbw_GBps"]
    checked = subprocess.run(
        [sys.executable, "-m", "dualcoll", "check", file], check=False, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr


def test_time_limit_is_an_outcome(run: Run, tmp_path: Path) -> None:
    """Out of time is no error: the best plan so far comes with its proved gap and holds."""
    file = tmp_path / "plan.json"
    done = run("plan", "torus:6x6", "allreduce", "--gap", "0", "--seconds", "0.000001", "--json", "-o", file)
    assert done.code == 0
    assert json.loads(done.out)["outcome"] == "time"
    assert run("check", file).code == 0
