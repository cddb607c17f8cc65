"""Results of TE-CCL: what is read of them, and that nothing wrong passes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dualcoll.errors import CheckFailed, InputError
from dualcoll.schedules.validate import validate
from dualcoll.time_expanded.planner_files import (
    TecclVerdict,
    check_teccl_schedule,
    read_teccl_input,
    read_teccl_schedule,
)
from dualcoll.time_expanded.to_schedule import to_schedule
from dualcoll.topology.importers.teccl_fabrics import FabricName
from tests.time_expanded.planner_files.results import (
    Change,
    Data,
    mesh_allgather,
    mesh_alltoall,
    saved,
    serial_allgather,
)


def verdict(folder: Path, data: object) -> TecclVerdict:
    return check_teccl_schedule(read_teccl_schedule(saved(folder, data)))


def findings(folder: Path, data: object) -> str:
    with pytest.raises(CheckFailed) as failed:
        verdict(folder, data)
    return "\n".join(failed.value.findings)


def refusal(folder: Path, data: object) -> str:
    with pytest.raises(InputError) as refused:
        read_teccl_schedule(saved(folder, data))
    return str(refused.value)


def change(key: str, value: object) -> Change:
    def do(data: Data) -> None:
        data[key] = value

    return do


def flow(number: int, text: str) -> Change:
    def do(data: Data) -> None:
        key = "7-Flows" if "7-Flows" in data else "6-Flows"
        data[key][number] = text

    return do


def test_allgather(tmp_path: Path) -> None:
    """The fabric is found, its wrap-around links are named, the epochs are those that are claimed."""
    seen = verdict(tmp_path, mesh_allgather())
    assert seen.text == "AllGather of 4 ranks on TE-CCL Mesh 2x2: 12 flows, 2 epochs of 1 s = 2 s, as it claims"
    assert (seen.finish, seen.seconds) == (2, 2.0)
    assert seen.notes[0] == "row-wrap links: the last node of each row is joined to the first of the next"


def test_allgather_as_sends(tmp_path: Path) -> None:
    """It becomes sends that keep the contract, with chunks of 100 GB."""
    found = read_teccl_schedule(saved(tmp_path, mesh_allgather()))
    made = to_schedule(found.solution)
    validate(made)
    assert (found.size, len(made.src), found.schedule.finish) == (100e9, 12, 2)


def test_alltoall(tmp_path: Path) -> None:
    """Parts of chunks are counted by the epochs in which they come; there are no whole sends to be made of them."""
    found = read_teccl_schedule(saved(tmp_path, mesh_alltoall()))
    seen = check_teccl_schedule(found)
    assert seen.text == "AlltoAll of 4 ranks on TE-CCL Mesh 2x2: 18 flows, 3 epochs of 1 s = 3 s, as it claims"
    with pytest.raises(InputError, match="its flows cut chunks into parts"):
        _ = found.schedule


ALLGATHER_FAULTS: list[tuple[Change, str]] = [
    (change("3-Epochs_Required", 3), "3-Epochs_Required is 3, and its flows take 2"),
    (change("4-Collective_Finish_Time", 4.0), "4-Collective_Finish_Time is not 2 epochs of 1 s"),
    (
        flow(10, "Chunk 0 from 0 traveled over 1->3 in epoch 0"),
        "chunk 0 on 1 -> 3 in epoch 0: 1 gets it not before epoch 1",
    ),
    (flow(10, "Chunk 0 from 0 traveled over 2->3 in epoch 3"), "3-Epochs_Required is 2, and its flows take 4"),
    (flow(10, "Chunk 0 from 2 traveled over 2->0 in epoch 1"), "3 never gets chunk 0"),
    (
        lambda data: data["6-Demand_Met"]["GPU 3"]["GPU 0"].update({"Chunk 0": 1.0}),
        "6-Demand_Met: GPU 3, GPU 0: it says 1 s, its flows 2 s",
    ),
    (lambda data: data["6-Demand_Met"]["GPU 3"].pop("GPU 0"), "6-Demand_Met: GPU 3, GPU 0: it does not say when"),
]


@pytest.mark.parametrize(("fault", "words"), ALLGATHER_FAULTS, ids=lambda row: "")
def test_wrong_allgathers(tmp_path: Path, fault: Change, words: str) -> None:
    """A claim or a flow that is changed is a finding that names it."""
    data = mesh_allgather()
    fault(data)
    assert re.search(words, findings(tmp_path, data))


def test_equal_lines_count_once(tmp_path: Path) -> None:
    """A copy that is listed twice is one start."""
    data = mesh_allgather()
    data["7-Flows"].append(data["7-Flows"][0])
    assert verdict(tmp_path, data).finish == 2


def test_full_link(tmp_path: Path) -> None:
    """Two chunks on a link in one epoch are more than fit."""
    data = mesh_allgather()
    data["7-Flows"].append("Chunk 0 from 2 traveled over 1->0 in epoch 1")
    assert re.search(r"1 -> 0.*epoch 1", findings(tmp_path, data))


ALLTOALL_FAULTS: list[tuple[Change, str]] = [
    (flow(10, "Chunk 3 from 0 traveled over 0->1 with volume 0.25 in epoch 1"), "0.5 of chunk .* leaves 1 in epoch 2"),
    (flow(11, "Chunk 3 from 0 traveled over 1->3 with volume 0.5 in epoch 1"), "0.5 of chunk .* leaves 1 in epoch 1"),
    (flow(13, "Chunk 3 from 0 traveled over 2->3 with volume 0.25 in epoch 2"), "3 gets 0.75 of chunk"),
    (
        flow(10, "Chunk 3 from 0 traveled over 0->1 with volume 0.5 in epoch 0"),
        "0 -> 1, epoch 0: 1.5 chunks, where 1 fit",
    ),
    (change("3-Epochs_Required", 2), "3-Epochs_Required is 2, and its flows take 3"),
]


@pytest.mark.parametrize(("fault", "words"), ALLTOALL_FAULTS, ids=lambda row: "")
def test_wrong_alltoalls(tmp_path: Path, fault: Change, words: str) -> None:
    """Parts that leave before they come, never come, or do not fit are findings."""
    data = mesh_alltoall()
    fault(data)
    assert re.search(words, findings(tmp_path, data))


BAD: list[tuple[Change, str]] = [
    (flow(0, "Chunk 0 from 0 travelled over 0->1 in epoch 0"), "is not understood"),
    (flow(0, "Chunk 0 from 0 traveled over 0->3 in epoch 0"), "fit none of TE-CCL's fabrics"),
    (change("7-Flows", []), "it has no flows"),
    (change("7-Flows", None), "7-Flows"),
    (change("1-Epoch_Duration", 0), "1-Epoch_Duration: 0.0 s is not above 0"),
    (change("1-Epoch_Duration", "x"), "1-Epoch_Duration"),
    (change("5-Algo_Bandwidth", 0), "makes no chunk"),
    (change("6-Demand_Met", {"GPU 9": {"GPU 0": {"Chunk 0": 1.0}}}), "no demand of its flows"),
    (flow(0, "Chunk 0 from 0 traveled over 0->1 with volume 1.0 in epoch 0"), "some flows have volumes"),
    (flow(0, "Chunk 999999 from 0 traveled over 0->1 in epoch 0"), "is too many"),
]


@pytest.mark.parametrize(("fault", "words"), BAD, ids=lambda row: "")
def test_unreadable(tmp_path: Path, fault: Change, words: str) -> None:
    """What is no result is refused with its key."""
    data = mesh_allgather()
    fault(data)
    assert words in refusal(tmp_path, data)


NDV2_INPUT: dict[str, dict[str, Any]] = {
    "TopologyParams": {"name": "NDv2", "chassis": 2, "chunk_size": 0.0625},
    "GurobiParams": {},
    "InstanceParams": {"collective": 1, "num_chunks": 1, "epoch_type": 2},
}


def test_fifteen_gpus(tmp_path: Path) -> None:
    """A result of two NDv2 boxes has 15 GPUs, and its bandwidth counts 16: both are named."""
    data = serial_allgather(FabricName("NDv2", 2), 0.0625e9, 0.005)
    seen = verdict(tmp_path, data)
    assert seen.text.startswith("AllGather of 15 ranks on TE-CCL NDv2 x2: 210 flows, 210 epochs of 5 ms")
    assert seen.notes[:2] == (
        "15 GPUs: node 0, a GPU, is taken for a switch: it sends and gets nothing, and holds nothing",
        "bandwidth: 5-Algo_Bandwidth counts 16 GPUs, and 15 take part",
    )


def test_given_input(tmp_path: Path) -> None:
    """With the input that it was made from, fabric and chunk are the input's, and another chunk is a finding."""
    data = serial_allgather(FabricName("NDv2", 2), 0.0625e9, 0.005)
    result = saved(tmp_path, data)
    given = read_teccl_input(saved(tmp_path, NDV2_INPUT, "input.json"), published=True)
    assert check_teccl_schedule(read_teccl_schedule(result, given)).finish == 210
    half = {**NDV2_INPUT, "TopologyParams": NDV2_INPUT["TopologyParams"] | {"chunk_size": 0.03125}}
    other = read_teccl_input(saved(tmp_path, half, "other.json"), published=True)
    with pytest.raises(CheckFailed, match="5-Algo_Bandwidth is"):
        check_teccl_schedule(read_teccl_schedule(result, other))


@pytest.mark.parametrize(
    ("fabric", "ranks"), [(FabricName("DGX2", 2), 32), (FabricName("AMD"), 16), (FabricName("DGX1"), 8)]
)
def test_other_fabrics(tmp_path: Path, fabric: FabricName, ranks: int) -> None:
    """Each is told from its links, its switches are no ranks."""
    data = serial_allgather(fabric, 0.025e9, {"DGX2": 0.002}.get(fabric.name, 0.001))
    seen = verdict(tmp_path, data)
    assert seen.text.startswith(f"AllGather of {ranks} ranks on TE-CCL {fabric.name}")
    assert seen.finish == ranks * (ranks - 1)
