"""Where results go: files that cannot be outputs, and streams that are full, shut or broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Run

NO_FILE = "`-` is not a file; name a file, or use --json for the result on standard output"


def shell(script: str) -> Done:
    """Run a shell script in which ``dualcoll`` is this program in a process of its own."""
    done = subprocess.run(
        ["sh", "-c", f'dualcoll() {{ "{sys.executable}" -m dualcoll "$@"; }}\n{script}'],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (["plan", "star:4", "allreduce", "-o", "-"], "--output"),
        (["plan", "star:4", "allreduce", "--html", "-"], "--html"),
        (["topo", "show", "star:4", "--html", "-"], "--html"),
        (["convert", "star:4", "-"], "OUT"),
    ],
)
def test_dash_is_no_output(run: Run, arguments: list[str], flag: str) -> None:
    """No file called `-` appears in the folder; the way to standard output is named."""
    assert run(*arguments) == (2, "", f"error: {flag}: {NO_FILE}\n")


def test_a_plan_is_not_read_from_standard_input(run: Run) -> None:
    """`check -` says so, and does not wait for input."""
    assert run("check", "-") == (2, "", "error: FILE: a plan is not read from standard input; name a file\n")


def test_an_output_replaces_no_input(run: Run, tmp_path: Path) -> None:
    """Every verb that writes refuses its input as the target and leaves it alone."""
    file = tmp_path / "star.yaml"
    assert run("convert", "star:4", file).code == 0
    before = file.read_bytes()
    for arguments, flag in (
        (["plan", file, "allreduce", "-o", file], "--output"),
        (["plan", "star:4", "allreduce", "--from", file, "-o", file], "--output"),
        (["plan", file, "allreduce", "--html", file], "--html"),
        (["topo", "show", file, "--html", file], "--html"),
        (["convert", file, file], "OUT"),
    ):
        message = f"error: {flag}: {file} is also an input or another output; name another file\n"
        assert run(*arguments) == (2, "", message)
    assert file.read_bytes() == before


def test_two_outputs_are_two_files(run: Run, tmp_path: Path) -> None:
    """The page would replace the plan."""
    file = tmp_path / "out"
    assert run("plan", "star:4", "allreduce", "-o", file, "--html", file) == (
        2,
        "",
        f"error: --html: {file} is also an input or another output; name another file\n",
    )
    assert not file.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("verb", ["topo show star:4", "plan star:4 allreduce --json", "--help"])
def test_a_full_disk(verb: str) -> None:
    """A result that did not arrive is no success."""
    message = "error: the output cannot be written: No space left on device\n"
    assert shell(f"dualcoll {verb} >/dev/full") == (2, "", message)


def test_a_reader_that_has_left() -> None:
    """A closed pipe ends the program silently with the code that a shell gives for it."""
    script = "{ sleep 0.1; dualcoll topo show star:4; echo $? >&2; } | true"
    assert shell(script) == (0, "", "141\n")


def test_standard_output_that_is_closed() -> None:
    """There is nobody to tell, so nothing went wrong."""
    assert shell("dualcoll topo show star:4 >&-") == (0, "", "")


def test_standard_input_that_is_closed() -> None:
    """`-` without an input is an empty one."""
    assert shell("dualcoll topo show - <&-") == (2, "", "error: standard input: it is empty\n")
