"""Simulate, compare, and schedules on the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from dualcoll.collectives.contract import make_contract
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.file import write_schedule
from dualcoll.topology.catalog import catalog
from tests.cli.conftest import Run


@pytest.fixture
def plan_file(run: Run, tmp_path: Path) -> Path:
    """A plan of four ranks."""
    path = tmp_path / "plan.json"
    assert run("plan", "ring:4", "allreduce", "--size", "1M", "-o", str(path)).code == 0
    return path


def test_a_plan_is_simulated_and_explained(run: Run, plan_file: Path, tmp_path: Path) -> None:
    """Time, bandwidth, the critical path, the timeline, events for Perfetto and a page."""
    trace, page = tmp_path / "trace.json", tmp_path / "page.html"
    done = run("simulate", str(plan_file), "--chunks", "8", "--timeline", "--trace", str(trace), "--html", str(page))
    assert done.code == 0
    assert "algbw" in done.out
    assert "why" in done.out
    assert "R0" in done.out
    assert json.loads(trace.read_text())["traceEvents"]
    assert page.read_text().lstrip().lower().startswith("<!doctype html>")
    record = json.loads(run("simulate", str(plan_file), "--chunks", "8", "--mode", "fluid", "--json").out)
    assert record["time_s"] > 0
    assert record["sends"] > 0


def test_a_plan_becomes_a_schedule_that_is_checked_and_simulated(run: Run, plan_file: Path, tmp_path: Path) -> None:
    """Its promises are kept on sets and on data; a size cannot be asked of it any more."""
    path = tmp_path / "schedule.json"
    assert run("convert", str(plan_file), str(path), "--chunks", "8").code == 0
    done = run("check", str(path), "--data")
    assert done.code == 0
    assert "every promise is kept" in done.out
    assert json.loads(run("check", str(path), "--json").out)["supported"] is True
    assert run("simulate", str(path)).code == 0
    refused = run("simulate", str(path), "--size", "1M")
    assert refused.code == 2
    assert "--size: its chunks have their sizes; give the plan instead" in refused.err


def test_links_may_serve_in_the_order_of_the_schedule(run: Run, tmp_path: Path) -> None:
    """A link waits for the send whose turn it is; otherwise another goes first, and all is over sooner."""
    topology = catalog("star:n=4")
    built = ScheduleBuilder(make_contract("allgather", 4), 2**20, topology=topology, nodes=topology.ranks)
    ends = {(link.tail, link.head): e for e, link in enumerate(topology.links)}
    nodes = topology.ranks
    hub = next(head for tail, head in ends if tail == nodes[0])
    for src, dst, chunk in ((0, 1, 0), (1, 2, 0), (1, 2, 1), (2, 3, 1)):
        route = built.route([ends[nodes[src], hub], ends[hub, nodes[dst]]])
        built.send(src, dst, chunk, channel=chunk, route=route)
    path = tmp_path / "schedule.json"
    write_schedule(built.build(), path)
    times = [json.loads(run("simulate", str(path), "--json", *more).out)["time_s"] for more in ([], ["--in-order"])]
    assert times[1] > 1.9 * times[0]


def test_methods_are_compared(run: Run, tmp_path: Path) -> None:
    """The text names winners, the JSON and the CSV have every result."""
    table = tmp_path / "table.csv"
    done = run("compare", "ring:4", "allreduce", "--sizes", "1K,1M", "--csv", str(table))
    assert done.code == 0
    assert "1 MiB" in done.out
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {row["size_bytes"] for row in rows} == {"1024", str(2**20)}
    record = json.loads(run("compare", "ring:4", "allreduce", "--sizes", "1K", "--json").out)
    assert record["results"][0]["of_bound"] <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "nowhere.json"), "the file does not exist"),
        (("compare", "ring:4", "allreduce", "--sizes", "8K:1K"), "descends"),
        (("compare", "ring:4", "alltoallv"), "an AllToAllv has one size"),
        (("compare", "ring:4", "allreduce", "--mode", "slow"), "'slow' is not known"),
    ],
)
def test_what_cannot_be_is_refused(run: Run, arguments: tuple[str, ...], message: str) -> None:
    """Exit code 2 and what is wrong."""
    done = run(*arguments)
    assert done.code == 2
    assert message in done.err


def test_data_is_moved_whatever_the_size(run: Run, tmp_path: Path) -> None:
    """Chunks of a message that divides by nothing are tried with a few elements each."""
    plan, path = tmp_path / "plan.json", tmp_path / "schedule.json"
    assert run("plan", "ring:3", "allreduce", "--size", "1000003", "-o", plan).code == 0
    assert run("convert", plan, path, "--chunks", "7").code == 0
    assert run("check", path, "--data").code == 0


def test_rated_flows_become_a_plan(run: Run, tmp_path: Path) -> None:
    """The example of docs/normal-form.md: the steps in words, and a plan that is proved; without the flag it is refused."""
    page = Path("docs/normal-form.md").read_text()
    flows, made = tmp_path / "flows.json", tmp_path / "plan.json"
    flows.write_text(page.rpartition("```json\n")[2].partition("```")[0])
    done = run("convert", flows, made, "--normal-form")
    assert done.code == 0
    assert "normal form: 1 tree" in done.out
    assert run("check", made).code == 0
    assert run("convert", flows, made).code == 2
    assert run("convert", made, made.with_suffix(".out"), "--normal-form").code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--chunks", "8"), "--chunks: it has its chunks; give the plan instead"),
        (("--coupling", "tree"), "--coupling: it is of the fluid model; add --mode fluid"),
        (
            ("--mode", "fluid", "--store-and-forward"),
            "--store-and-forward: it is of the alpha-beta model; leave out --mode fluid",
        ),
        (("--mode", "fluid", "--in-order"), "--in-order: it is of the alpha-beta model; leave out --mode fluid"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    run: Run, plan_file: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    """Instead of being ignored."""
    path = tmp_path / "schedule.json"
    assert run("convert", plan_file, path, "--chunks", "8").code == 0
    done = run("simulate", path, *arguments)
    assert done.code == 2
    assert message in done.err


def test_the_form_is_found_wherever_it_stands(run: Run, plan_file: Path) -> None:
    """The keys of a file have no order: the format may come last, behind a megabyte of others."""
    content = json.loads(plan_file.read_text())
    content["generator"] = "x" * 10_000
    form = content.pop("format")
    plan_file.write_text(json.dumps({**content, "format": form}))
    assert run("simulate", plan_file, "--chunks", "4").code == 0


def test_a_gather_is_as_large_in_a_simulation_as_in_its_plan(run: Run, tmp_path: Path) -> None:
    """What the root keeps is part of the message."""
    path = tmp_path / "plan.json"
    for collective in ("gather", "scatter", "alltoall"):
        assert run("plan", "star:4", collective, "--size", "4M", "-o", path).code == 0
        assert json.loads(run("simulate", path, "--json").out)["size_bytes"] == 4 * 2**20
