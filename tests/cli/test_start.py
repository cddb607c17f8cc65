"""Starting up: fast, quiet, and with the names it promises."""

from __future__ import annotations

import subprocess
import sys

import dualcoll
from tests.cli.conftest import Run

HEAVY = ("numpy", "numba", "highspy", "networkx", "pydantic", "plotly", "yaml")


def _modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_import_loads_nothing_heavy() -> None:
    """`import dualcoll` costs nothing until a name is used."""
    assert not _modules_after("import dualcoll").intersection(HEAVY)


def test_help_loads_nothing_heavy() -> None:
    """`dualcoll --help` answers at once."""
    assert not _modules_after("import dualcoll.cli.app").intersection(HEAVY)


def test_every_public_name_exists() -> None:
    """__all__ is what can be imported, and dir() shows it."""
    for name in dualcoll.__all__:
        assert getattr(dualcoll, name) is not None
    assert set(dualcoll.__all__) <= set(dir(dualcoll))


def test_help_and_version(run: Run) -> None:
    """The verbs are listed, and the version is printed."""
    out = run("--help").out
    for verb in ("plan", "bound", "check", "convert", "topo"):
        assert verb in out
    assert run("--version").out.startswith("dualcoll ")
