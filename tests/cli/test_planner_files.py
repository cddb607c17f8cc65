"""Files of other planners on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.time_expanded.planner_files.results import mesh_allgather, mesh_alltoall, saved
from tests.time_expanded.planner_files.test_sccl import algorithm
from tests.topology.test_taccl import DGX2, TABLED

MESH = {
    "TopologyParams": {"name": "Mesh", "side_length": 2, "chunk_size": 100.0},
    "GurobiParams": {"time_limit": 2},
    "InstanceParams": {"collective": 1, "num_chunks": 1, "num_epochs": 10, "objective_type": 1},
}
EPOCHS = ("--method", "time-expanded")


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    return saved(tmp_path, MESH, "input.json")


def test_plan_input(run: Run, mesh: Path, tmp_path: Path) -> None:
    """An input says fabric, demand and epochs; what it says in vain is told, and the plan is saved as sends."""
    out = tmp_path / "out.json"
    done = run("plan", mesh, *EPOCHS, "--json", "-o", out)
    record = json.loads(done.out)
    assert (done.code, record["finish_epochs"], record["bound_epochs"]) == (0, 2, 2)
    assert any("row-wrap links" in note for note in record["notes"])
    assert run("check", out).code == 0


def test_plan_published_fabric(run: Run, mesh: Path) -> None:
    """``faults=kept`` plans on the fabric that TE-CCL's code builds."""
    done = run("plan", f"{mesh}:faults=kept", *EPOCHS)
    assert done.code == 0
    assert "  row-wrap links: the last node" in done.out


def test_failed_link_of_input(run: Run, mesh: Path) -> None:
    """An input's plan is re-planned without a link as any other."""
    done = run("plan", mesh, *EPOCHS, "--fail", "0 - 1")
    assert done.code == 0
    assert "without 0 - 1: 3 epochs instead of 2" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "a TE-CCL input asks for a schedule in epochs; add --method time-expanded"),
        ((*EPOCHS, "--size", "1M"), "--size: the TE-CCL input says it"),
        ((*EPOCHS, "--epoch", "slowest"), "--epoch: the TE-CCL input says it"),
        ((*EPOCHS, "--chunks-per-rank", "2"), "--chunks-per-rank: the TE-CCL input says it"),
        ((*EPOCHS, "--gpu", "H100"), "--gpu: the TE-CCL input says it"),
    ],
)
def test_refused(run: Run, mesh: Path, arguments: tuple[str, ...], words: str) -> None:
    """What the input says is not said twice."""
    done = run("plan", mesh, *arguments)
    assert done.code == 2
    assert words in done.err


def test_fabric_of_input(run: Run, mesh: Path, tmp_path: Path) -> None:
    """With a collective, an input is a fabric as any other; it converts to a native file."""
    assert run("plan", mesh, "allgather", "--size", "4M").code == 0
    assert run("plan", mesh, "allgather", "--size", "4M", *EPOCHS, "--chunks-per-rank", "2").code == 0
    native = tmp_path / "native.yaml"
    assert run("convert", mesh, native).code == 0
    assert "8 x gpu - gpu: 100 GB/s" in run("topo", "show", native).out


def test_taccl_topology(run: Run, tmp_path: Path) -> None:
    """A topology of TACCL is shown, planned on and converted, once it is said how many boxes there are."""
    path = saved(tmp_path, DGX2, "topo.json")
    done = run("topo", "show", path)
    assert (done.code, "topo.json:boxes=2" in done.err) == (2, True)
    assert "32 ranks in 2 boxes" in run("topo", "show", f"{path}:boxes=2").out
    small = saved(tmp_path, TABLED, "small.json")
    assert run("plan", f"{small}:boxes=1", "allgather").code == 0
    assert run("convert", f"{path}:boxes=1", tmp_path / "native.yaml").code == 0
    assert run("check", path).code == 2


def test_check_result(run: Run, mesh: Path, tmp_path: Path) -> None:
    """A result is supported, alone or beside its input; a changed one is not, and says why."""
    data = mesh_allgather()
    result = saved(tmp_path, data, "result.json")
    done = run("check", result)
    assert done.code == 0
    assert "12 flows, 2 epochs of 1 s = 2 s, as it claims" in done.out
    assert "row-wrap links" in done.out
    assert run("check", result, "--topology", mesh).code == 0
    assert run("check", result, "--topology", result).code == 2
    data["7-Flows"].pop()
    failed = run("check", saved(tmp_path, data, "bad.json"))
    assert (failed.code, "0 never gets chunk 3" in failed.err) == (1, True)
    as_record = run("check", tmp_path / "bad.json", "--json")
    assert (as_record.code, json.loads(as_record.out)["supported"]) == (1, False)


def test_simulate_results(run: Run, tmp_path: Path) -> None:
    """A result of whole chunks is simulated; one that cuts chunks is refused with what can be done instead."""
    assert "2 s simulated" in run("simulate", saved(tmp_path, mesh_allgather())).out
    done = run("simulate", saved(tmp_path, mesh_alltoall()))
    assert (done.code, "cut chunks into parts" in done.err) == (2, True)


def test_sccl_algorithm(run: Run, tmp_path: Path) -> None:
    """An algorithm of SCCL is checked, its data moved."""
    done = run("check", saved(tmp_path, algorithm()), "--data")
    assert done.code == 0
    assert "6 sends, 2 rounds" in done.out
