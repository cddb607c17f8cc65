"""Public files of other planners, where a collection of them stands beside the checkout: each gets its known verdict."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dualcoll._api.time_expanding import plan_epochs, replay
from dualcoll.collectives.request import make_workload
from dualcoll.errors import InputError
from dualcoll.execution.in_process import execute
from dualcoll.progress import Stop
from dualcoll.schedules.validate import validate
from dualcoll.time_expanded.planner_files import (
    check_teccl_schedule,
    read_sccl,
    read_teccl_input,
    read_teccl_schedule,
    teccl_task,
)
from dualcoll.time_expanded.task import Task, make_task
from dualcoll.topology.file import read_topology
from dualcoll.topology.model import Kind

COLLECTION = Path(__file__).resolve().parents[4] / "shared"
KINDS = ("teccl_schedules", "teccl_inputs", "sccl_json_generated", "taccl", "taccl_topology")
Row = dict[str, str]


def rows(*kinds: str) -> list[Row]:
    table = COLLECTION / "cases" / "corpus_expectations.tsv"
    if not table.exists():
        return []
    with table.open(newline="") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["kind"] in kinds]


def path_of(row: Row) -> Path:
    return COLLECTION / "corpus" / row["kind"] / row["file"]


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found
    return float(found[1])


@pytest.mark.parametrize("row", rows("teccl_schedules"), ids=lambda row: row["file"])
def test_results(row: Row) -> None:
    """Ranks, flows and epochs are those that are known; the claims hold; the faults are named."""
    fact = row["key_fact"]
    found = read_teccl_schedule(path_of(row))
    seen = check_teccl_schedule(found)
    ranks, flows, epochs = (
        int(row["ranks"]),
        number(r"(\d+) (?:fractional )?flows", fact),
        number(r"(\d+) epochs", fact),
    )
    assert (len(found.problem.network.topology.ranks), len(found.flows), seen.finish) == (ranks, flows, epochs)
    assert seen.seconds == pytest.approx(found.claims.seconds)
    names = {note.partition(":")[0] for note in seen.notes}
    assert ("15 GPUs" in names) is (ranks == 15)
    assert ("bandwidth" in names) is (ranks == 15)
    assert ("row-wrap links" in names) is ("mesh" in row["file"])
    made, _ = replay(found.solution)
    validate(made, depth=None)


def same_by_our_rules(path: Path) -> Task:
    """The demand of a result in its own epochs and chunks, on its own fabric, by the rules of docs/time-expanded.md."""
    found = read_teccl_schedule(path)
    network = found.problem.network
    clock = replace(network.clock, epoch=network.epoch, multiplier=1.0, latent_switches=False)
    chunk = round(found.size)
    work = make_workload(network.topology, "alltoall" if found.cut else "allgather", size=chunk * network.ranks)
    return make_task(network.topology, work, chunk=chunk, clock=clock)


@pytest.mark.parametrize(
    ("name", "theirs", "ours"),
    [("DGX2_output__2", 4, 4), ("AlltoAll__Slow", 59, 56), ("mesh_4", 8, 8)],
    ids=("DGX2", "alltoall", "mesh"),
)
def test_matched_or_beaten(name: str, theirs: int, ours: int) -> None:
    """On the same fabric, in the same epochs, no shipped result is better, and nothing is better than ours."""
    paths = [path_of(row) for row in rows("teccl_schedules") if name in row["file"]]
    if not paths:
        pytest.skip("no collection")
    found = plan_epochs(same_by_our_rules(paths[0]), stop=Stop(0.0, 20.0))
    assert read_teccl_schedule(paths[0]).claims.epochs == theirs
    assert (found.finish, found.bound) == (ours, ours)


@pytest.mark.parametrize("row", rows("teccl_inputs"), ids=lambda row: row["file"])
def test_inputs(row: Row) -> None:
    """The fabric and chunk that are known; what nothing reads is named and no path repeated; the fewest epochs are found."""
    fact = row["key_fact"]
    given = read_teccl_input(path_of(row))
    text = "\n".join(given.notes)
    assert given.chunk == pytest.approx(number(r"chunk ([\d.]+) GB", fact) * 1e9)
    assert len(given.topology.ranks) == int(row["ranks"] or 16)
    assert given.collective == "allgather"
    assert given.horizon == (int(number(r"(\d+) epochs", fact)) if re.search(r"\d+ epochs", fact) else None)
    assert ("TopologyParams: option: without effect" in text) is ("option" in row["note"])
    assert ("15 GPUs" in text) is ("15 GPUs" in row["note"])
    assert ("row-wrap links" in text) is ("row-wrap" in row["note"])
    assert "/home" not in text
    least = {"NDv2": 10, "Mesh": 18, "AMD": 14}[given.fabric.name]
    found = plan_epochs(teccl_task(given), stop=Stop(0.0, 20.0))
    assert (found.finish, found.bound) == (least, least)


@pytest.mark.parametrize("row", rows("sccl_json_generated"), ids=lambda row: row["file"])
def test_algorithms(row: Row) -> None:
    """Valid, with the chunks and sends that are known, and its data arrive."""
    fact = row["key_fact"]
    made = read_sccl(path_of(row))
    validate(made, depth=None)
    execute(made)
    assert made.contract.ranks == int(row["ranks"])
    assert made.contract.chunks == made.contract.ranks * number(r"(\d+) chunks? each", fact)
    assert made.rounds == number(r"(\d+) steps", fact)
    sends = re.search(r"(\d+) \+ (\d+) sends", fact)
    assert sends is None or len(made.src) == int(sends[1]) + int(sends[2])


@pytest.mark.parametrize("row", rows("taccl", "taccl_topology"), ids=lambda row: row["file"])
def test_topologies(row: Row) -> None:
    """Refused until boxes, and where costs are multiplied their scale, are said; then the known rates."""
    path, fact = path_of(row), row["key_fact"]
    scaled = "cost scale" in row["flags_needed"]
    refused = ("", "boxes=2") if scaled else ("",)
    for behind in refused:
        with pytest.raises(InputError, match="say it behind the file's name"):
            read_topology(f"{path}:{behind}" if behind else path)
    scale = ",scale=100" if "1KB" in row["file"] else ",scale=10" if scaled else ""
    fabric = read_topology(f"{path}:boxes=2{scale}")
    assert len(fabric.ranks) == 2 * int(row["ranks"])
    assert sum(node.kind is Kind.NIC for node in fabric.nodes) == 2 * number(r"(\d+) NIC", fact)
    rates = {link.capacity / 1e9 for link in fabric.links}
    inside = {"dgx2": {125.0, 97.65625}, "ndv2": {43.5, 21.7}}["dgx2" if "dgx2" in row["file"] else "ndv2"]
    for rate in rates - {min(rates)}:
        assert any(rate == pytest.approx(known, rel=4e-3) for known in inside)
    assert min(rates) == pytest.approx(9.52, rel=2e-3)
    assert {round(link.latency * 1e9) for link in fabric.links} <= {0, 150, 300, 1300}
