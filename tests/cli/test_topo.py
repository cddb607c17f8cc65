"""`dualcoll topo` and `dualcoll convert`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dualcoll.topology.file import read_topology
from tests.cli.conftest import Run

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "h100-nccl-topo.xml"


def test_show_prints_capacities_with_their_source(run: Run) -> None:
    """What was understood of a dump is on screen, nominal and as NCCL counts it."""
    out = run("topo", "show", EXAMPLE).out
    assert "8 ranks in 1 boxes" in out
    assert "450 GB/s" in out
    assert "NCCL counts 370.8 GB/s" in out


def test_rates_nccl_changes_the_capacities(run: Run) -> None:
    """--rates nccl gives what NCCL counts with."""
    kinds = json.loads(run("topo", "show", EXAMPLE, "--rates", "nccl", "--json").out)["link_kinds"]
    assert any(kind["capacity_GBps"] == pytest.approx(370.8) for kind in kinds)
    assert any(kind["capacity_GBps"] == pytest.approx(48.0) for kind in kinds)


def test_flags_of_no_use_are_said(run: Run) -> None:
    """A flag that the file overrules is noted, not passed over in silence."""
    out = run("topo", "show", EXAMPLE, "--gpu", "A100").out
    assert "--gpu A100 changed nothing: the file says itself what its 8 GPUs are (sm90)" in out


def test_cpu_is_a_rate_between_sockets(run: Run, tmp_path: Path) -> None:
    """--cpu reaches the import of every verb that reads a topology."""
    (tmp_path / "m.txt").write_text("GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n")
    for target in ("a.yaml", "b.yaml"):
        flags = ("--cpu", "40GB/s") if target == "a.yaml" else ()
        assert run("convert", tmp_path / "m.txt", tmp_path / target, "--pcie", "Gen4", *flags).code == 0
    assert "40 GB/s; from --cpu" in (tmp_path / "a.yaml").read_text()
    assert "give --cpu RATE" in (tmp_path / "b.yaml").read_text()
    for verb in (["plan"], ["bound"]):
        out = run(*verb, tmp_path / "m.txt", "allreduce", "--cpu", "1GB/s", "--pcie", "Gen4", "--json").out
        assert json.loads(out)["bound_algbw_GBps"] == pytest.approx(1.0)
    shown = run("topo", "show", tmp_path / "m.txt", "--cpu", "40GB/s", "--pcie", "4", "--json").out
    assert 40.0 in [kind["capacity_GBps"] for kind in json.loads(shown)["link_kinds"]]


def test_rates_reach_catalogue_boxes(run: Run) -> None:
    """The flag and the option of the name mean the same."""
    flag = json.loads(run("topo", "show", "dgx-h100", "--rates", "nccl", "--json").out)
    option = json.loads(run("topo", "show", "dgx-h100:rates=nccl", "--json").out)
    assert flag["link_kinds"] == option["link_kinds"]


def test_list_names_the_catalogue(run: Run) -> None:
    """Every catalogue name can be found out."""
    out = run("topo", "list").out
    for name in (
        "dgx-1v",
        "dgx-a100",
        "dgx-h100",
        "mi250",
        "ring",
        "torus",
        "hypercube",
        "fat-tree",
        "rail",
        "single-switch",
    ):
        assert name in out
    assert {entry["name"] for entry in json.loads(run("topo", "list", "--json").out)["catalogue"]} >= {
        "star",
        "mesh",
        "line",
    }


def test_convert_writes_a_native_file_that_reads_back_equal(run: Run, tmp_path: Path) -> None:
    """An import can be saved, edited and used again without losing a number."""
    for name in ("fabric.yaml", "fabric.json"):
        assert run("convert", EXAMPLE, tmp_path / name).code == 0
        assert read_topology(tmp_path / name) == read_topology(EXAMPLE)


def test_convert_writes_nothing_on_bad_input(run: Run, tmp_path: Path) -> None:
    """A failed conversion leaves no half of a file."""
    broken = tmp_path / "broken.xml"
    broken.write_text(EXAMPLE.read_text()[:700])
    done = run("convert", broken, tmp_path / "out.yaml")
    assert done.code == 2
    assert "broken.xml" in done.err
    assert list(tmp_path.iterdir()) == [broken]


def test_detect_without_tools_says_what_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No GPU tool on this machine is an input error that names what was looked for."""
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("topo", "detect")
    assert done.code == 2
    assert "nvidia-smi" in done.err
    assert "rocm-smi" in done.err


def test_show_html(run: Run, tmp_path: Path) -> None:
    """A topology can be drawn without a plan."""
    page = tmp_path / "fabric.html"
    assert run("topo", "show", "dgx-1v", "--html", page).code == 0
    assert page.stat().st_size > 1000
