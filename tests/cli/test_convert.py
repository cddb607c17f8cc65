"""Plans and schedules become what runtimes execute, and come back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dualcoll.execution.arithmetic import Element
from dualcoll.execution.in_process import execute
from dualcoll.lowering.msccl.read import read_msccl
from dualcoll.lowering.msccl.to_schedule import to_schedule
from tests.cli.conftest import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a plan for two boxes around a switch: its routes run through switches."""
    from dualcoll._api import plan
    from dualcoll.plans.file import write_plan
    from dualcoll.progress import Gap
    from dualcoll.topology.catalog import catalog

    path = tmp_path_factory.mktemp("plans")
    made = plan(catalog("rail:2x4"), "allreduce", size="16M", max_trees=4, stop=Gap(0.01))
    write_plan(made, path / "plan.json")
    return path


@pytest.fixture
def plan_file(folder: Path) -> Path:
    return folder / "plan.json"


@pytest.mark.parametrize("target", ["msccl", "rccl"])
def test_a_plan_becomes_xml(run: Run, plan_file: Path, tmp_path: Path, target: str) -> None:
    """The rate kept and the verdict are printed, routes stand beside it; it is valid and gives the right numbers."""
    path = tmp_path / "a.xml"
    done = run(
        "convert", plan_file, path, "--target", target, "--chunks", "32", "--min-bytes", "1M", "--max-bytes", "1G"
    )
    assert done.code == 0
    assert "a loss of" in done.out
    assert "valid allreduce, 8 ranks" in done.out
    assert f"saved {path}.routes.json" in done.err
    checked = run("check", path, "--target", target)
    assert checked.code == 0
    assert "1048576 B - 1073741824 B" in checked.out
    program = read_msccl(path)
    execute(to_schedule(program, 1024 * program.nchunksperloop), element=Element.INT64, elements=2)


def test_a_schedule_and_its_program_take_the_same_time(run: Run, plan_file: Path, tmp_path: Path) -> None:
    """With the routes beside it, a program is simulated as the schedule that it was."""
    sends, path = tmp_path / "schedule.json", tmp_path / "a.xml"
    assert run("convert", plan_file, sends, "--chunks", "32").code == 0
    assert run("convert", sends, path, "--to", "msccl-xml").code == 0
    before = json.loads(run("simulate", sends, "--json").out)
    size = before["size_bytes"] if "size_bytes" in before else 16 * 2**20
    after = json.loads(run("simulate", path, "--topology", "rail:2x4", "--size", size, "--json").out)
    assert after["time_s"] == pytest.approx(before["time_s"], rel=1e-6)


def test_a_plan_becomes_json_for_mscclpp(run: Run, plan_file: Path, tmp_path: Path) -> None:
    """It is valid, and timed on its fabric."""
    path = tmp_path / "a.json"
    done = run("convert", plan_file, path, "--to", "mscclpp-json", "--chunks", "16", "--channels", "2")
    assert done.code == 0
    assert "AllReduce over 8 GPUs" in done.out
    assert run("check", path).code == 0
    assert run("simulate", path, "--topology", "rail:2x4", "--size", "16M").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--to", "tarot"], 2, "is not known"),
        (["--to", "mscclpp-json", "--target", "rccl"], 2, "--target: it says nothing of an MSCCL++ plan"),
        (["--to", "msccl-xml", "--chunks", "few"], 2, "--chunks: 'few' is not a number of chunks"),
        (["--to", "msccl-xml", "--target", "tpu"], 2, "'tpu' is not known"),
        (["--to", "msccl-xml", "--proto", "Fast"], 2, "'Fast' is not known"),
        (["--to", "msccl-xml", "--min-bytes", "2M", "--max-bytes", "1M"], 2, "no range of sizes"),
        (["--to", "msccl-xml", "--max-bytes", "much"], 2, "--max-bytes"),
        (["--channels", "2"], 2, "--channels: it is of files that runtimes execute; add --to"),
        (["--to", "msccl-xml", "--target", "rccl", "--chunks", "2048"], 1, "use fewer chunks"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else "",
)
def test_refused(run: Run, plan_file: Path, tmp_path: Path, arguments: list[str], code: int, reason: str) -> None:
    """What cannot be is refused for its reason, and nothing is left behind."""
    done = run("convert", plan_file, tmp_path / "a.out", *arguments)
    assert done.code == code
    assert reason in done.err
    assert "Traceback" not in done.err
    assert not list(tmp_path.iterdir())


def test_what_is_no_plan_is_not_lowered(run: Run, tmp_path: Path) -> None:
    """A topology has no sends."""
    done = run("convert", "ring:4", tmp_path / "a.xml", "--to", "msccl-xml")
    assert done.code == 2
    assert "it is no plan or schedule" in done.err
    assert not list(tmp_path.iterdir())
