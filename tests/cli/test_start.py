"""Starting up: fast, quiet, and with the names it promises."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dualcoll
from dualcoll.simulation import Mode
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
    """__all__ is what can be imported, and dir() shows it; nothing else is there by accident."""
    for name in dualcoll.__all__:
        assert getattr(dualcoll, name) is not None
    assert set(dualcoll.__all__) <= set(dir(dualcoll))
    with pytest.raises(AttributeError, match="module 'dualcoll' has no attribute 'make_workload'"):
        dualcoll.make_workload  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    """What is imported for them is what loads on first use."""
    tree = ast.parse(Path(dualcoll.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen.keys() == set(dualcoll.__all__)
    for name, (module, attribute) in seen.items():
        assert getattr(dualcoll, name) is getattr(import_module(str(module)), attribute)


def test_public_names_are_enough(tmp_path: Path) -> None:
    """From a fabric to a mix, a plan, a schedule, its run on data and in time, and what others would do."""
    fabric = dualcoll.catalog("star:4")
    file = tmp_path / "mix.yaml"
    file.write_text(
        "- {name: sum, collective: allreduce, size: 4K, ranks: 0-1}\n"
        "- {name: out, collective: broadcast, size: 8K, ranks: 2-3}\n"
    )
    mixed = dualcoll.plan(fabric, dualcoll.read_mix(file, fabric))
    assert dualcoll.check(mixed).gap < 1e-9
    made = dualcoll.plan(
        fabric, dualcoll.workload(fabric, "all_gather", size="48K", ranks="0-2"), stop=dualcoll.Gap(0.01)
    )
    drawn = dualcoll.schedule(made, chunks=8)
    dualcoll.write_schedule(drawn, tmp_path / "schedule.json")
    again = dualcoll.read_schedule(tmp_path / "schedule.json")
    dualcoll.validate(again, depth=None)
    dualcoll.execute(again)
    trace = dualcoll.simulate(again, dualcoll.Options(mode=Mode.FLUID))
    assert 0 < trace.algbw <= made.bound
    shared = dualcoll.share(made)
    assert 0 < shared.coupled.value <= made.bound * (1 + 1e-9)
    found = dualcoll.compare(fabric, "broadcast", sizes=["64K"])
    assert found.winner(65536).seconds >= found.least_seconds(65536)


def test_help_and_version(run: Run) -> None:
    """The verbs are listed, and the version is printed."""
    out = run("--help").out
    for verb in ("plan", "bound", "check", "simulate", "compare", "convert", "topo"):
        assert verb in out
    assert run("--version").out.startswith("dualcoll ")
