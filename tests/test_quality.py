"""The code's form: lint, types and layers, run as the developers run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy"],
        ["lint-imports"],
    ],
    ids=lambda command: " ".join(command),
)
def test_tool_is_content(command: list[str]) -> None:
    """Lint, formatting, strict types and the import contracts hold for the whole tree."""
    program = Path(sys.executable).parent / command[0]
    done = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_readme_commands_are_what_ci_runs() -> None:
    """The two set-up commands exist, each on one line, because CI takes them from the README."""
    commands = [
        line
        for line in (ROOT / "README.md").read_text().splitlines()
        if line.startswith("    python3 -m venv .venv && ")
    ]
    assert len(commands) == 2
    assert "dualcoll plan" in commands[0]
    assert "pytest" in commands[1]
