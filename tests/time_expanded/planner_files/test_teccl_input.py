"""Inputs of TE-CCL: what is asked, what changes nothing, and what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualcoll._api.time_expanding import plan_epochs
from dualcoll.errors import InputError
from dualcoll.time_expanded.network import SLOWEST
from dualcoll.time_expanded.planner_files import TecclInput, read_teccl_input, teccl_task
from tests.time_expanded.planner_files.results import saved

Parts = dict[str, dict[str, Any]]


def parts(topology: dict[str, Any] | None = None, instance: dict[str, Any] | None = None) -> Parts:
    return {
        "TopologyParams": {"name": "DGX1", "chunk_size": 25e-6} | (topology or {}),
        "GurobiParams": {"time_limit": 2},
        "InstanceParams": {"collective": 1, "num_chunks": 1} | (instance or {}),
    }


def read(folder: Path, data: object, *, published: bool = False) -> TecclInput:
    return read_teccl_input(saved(folder, data), published=published)


def test_allgather(tmp_path: Path) -> None:
    """The task has the chunks that are asked for, all of the same size, and takes the known number of epochs."""
    given = read(tmp_path, parts(instance={"num_chunks": 2}))
    task = teccl_task(given)
    assert (given.collective, given.chunk, given.chunks) == ("allgather", 25_000, 2)
    assert task.contract.chunks == 16
    assert np.all(task.sizes == 25_000)
    found = plan_epochs(task)
    assert (found.finish, found.bound) == (5, 5)


def test_alltoall(tmp_path: Path) -> None:
    """Chunks are counted for each pair of ranks, as TE-CCL's scheduler multiplies them; the epochs are the known ones."""
    task = teccl_task(read(tmp_path, parts(instance={"collective": 2})))
    assert task.contract.chunks == 64
    assert np.all(task.sizes == 25_000)
    assert plan_epochs(task).finish == 6


def test_clock(tmp_path: Path) -> None:
    """Epochs, latencies and switches are cut as the keys say."""
    instance = {"epoch_type": 2, "epoch_multiplier": 2, "alpha_threshold": 0.2, "switch_copy": False}
    clock = read(tmp_path, parts(instance=instance | {"switch_to_gpu_link_on": True})).clock
    assert (clock.epoch, clock.multiplier, clock.ignored_latency) == (SLOWEST, 2, 0.2)
    assert (clock.switch_copy, clock.latent_switches) == (False, True)
    assert read(tmp_path, parts(instance={"epoch_type": 3, "epoch_duration": 2e-6})).clock.epoch == 2e-6


def test_long_latencies_lengthen_epochs(tmp_path: Path) -> None:
    """An epoch is no less than a 200th of the shortest latency."""
    given = read(tmp_path, parts({"name": "NDv2", "chassis": 2, "chunk_size": 1e-8}))
    assert given.clock.epoch == pytest.approx(0.7e-6 / 200)
    assert any("less than 1/200 of every latency" in note for note in given.notes)


def test_keys_without_effect(tmp_path: Path) -> None:
    """Whatever nothing reads is named with its reason, and no path is repeated."""
    data = parts(
        {"option": 1, "side_length": 6}, {"schedule_output_file": "/home/me/x.json", "epsilon": 0.1, "wish": 1}
    )
    given = read(tmp_path, data | {"Comment": "x"})
    text = "\n".join(given.notes)
    for words in (
        "Comment: without effect, read by nothing, in TE-CCL neither",
        "TopologyParams: option: without effect, read by nothing, in TE-CCL neither",
        "TopologyParams: side_length: DGX1 has none",
        "GurobiParams: time_limit: without effect, say it with --seconds and --gap",
        "InstanceParams: schedule_output_file: without effect, what TE-CCL writes",
        "InstanceParams: epsilon: without effect, how TE-CCL searches",
        "InstanceParams: wish: without effect",
        "objective_type: the sum of completion times; here the least makespan is sought",
    ):
        assert words in text
    assert "/home" not in text


@pytest.mark.parametrize(("published", "ranks"), [(False, 16), (True, 15)])
def test_faults_of_its_fabrics(tmp_path: Path, *, published: bool, ranks: int) -> None:
    """The fabric that was meant has 16 GPUs, and the other one's fault is named either way."""
    given = read(tmp_path, parts({"name": "NDv2", "chassis": 2}), published=published)
    assert len(given.topology.ranks) == ranks
    assert any("15 GPUs: node 0" in note for note in given.notes)


BAD: list[tuple[Parts, str]] = [
    (parts({"name": "DGX3"}), "TopologyParams: name: fabric 'DGX3' is not known"),
    (parts({"chassis": 0}), "chassis: 0 is below 1"),
    (parts({"name": "Mesh", "side_length": 1}), "side_length: 1 is below 2"),
    (parts({"name": "NDv2", "chassis": 10**9}), "at most"),
    (parts({"chunk_size": 0}), "chunk_size: a chunk of 0.0 GB is no byte"),
    (parts({"alpha": [1]}), "alpha"),
    (parts(instance={"collective": 3}), "InstanceParams: collective: 3 is not known"),
    (parts(instance={"num_chunks": 0}), "InstanceParams: num_chunks: 0 chunks"),
    (parts(instance={"epoch_type": 3}), "epochs of a given length, and no length"),
    (parts(instance={"epoch_type": 4}), "epoch_type: 4 is not known"),
    (parts(instance={"num_epochs": 0}), "num_epochs: 0 epochs"),
    (parts(instance={"objective_type": 5}), "objective_type: 5 is not known"),
    (parts(instance={"epoch_multiplier": 0}), "not above 0"),
    (parts(instance={"alpha_epoch_duration_ratio_max": 0}), "not above 0"),
    ({"TopologyParams": {}, "InstanceParams": {"num_chunks": "many"}}, "num_chunks"),
    ({"InstanceParams": {}}, "TopologyParams is missing"),
]


@pytest.mark.parametrize(("data", "words"), BAD, ids=lambda row: "")
def test_unusable(tmp_path: Path, data: Parts, words: str) -> None:
    """What cannot be is refused with its key."""
    with pytest.raises(InputError) as refused:
        teccl_task(read(tmp_path, data))
    assert words in str(refused.value)
