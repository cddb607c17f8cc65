"""Live detection with programs of our own in place of the vendors', and the text of rocm-smi."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from dualcoll.errors import InputError
from dualcoll.topology.importers import detect as module
from dualcoll.topology.importers.detect import detect
from dualcoll.topology.importers.options import ImportOptions
from dualcoll.topology.model import Kind
from tests.topology.imported import fixture, flag_notes, links, options, read, refusal

ISLANDS = fixture("rocm_smi_islands.txt").decode()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose PATH has nothing but what the test puts there."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def program(machine: Path, name: str, script: str) -> None:
    file = machine / "bin" / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def nvidia_smi(machine: Path, matrix: str, names: str) -> None:
    program(
        machine,
        "nvidia-smi",
        f'if [ "$*" = "topo -m" ]; then printf %s {shlex.quote(matrix)}\n'
        f'elif [ "$*" = "--query-gpu=name --format=csv,noheader" ]; then printf %s {shlex.quote(names)}\nelse exit 9; fi',
    )


def port(machine: Path, device: str, number: int, rate: str) -> None:
    folder = machine / "ib" / device / "ports" / str(number)
    folder.mkdir(parents=True)
    (folder / "rate").write_text(rate)


def test_nothing_to_ask(machine: Path) -> None:
    """A machine without either tool is told so."""
    with pytest.raises(InputError) as error:
        detect(ImportOptions())
    assert str(error.value) == (
        "neither nvidia-smi nor rocm-smi is on the PATH; run this on a GPU machine, or import a file from one "
        "(NCCL_TOPO_DUMP_FILE, nvidia-smi topo -m)"
    )


def test_nvidia_machine(machine: Path) -> None:
    """GPU model and NIC speeds come from the machine."""
    nvidia_smi(machine, fixture("topo_m_switch.txt").decode(), "NVIDIA A100-SXM4-80GB\n" * 3)
    port(machine, "mlx5_0", 1, "200 Gb/sec (4X HDR)\n")
    port(machine, "mlx5_1", 1, "10 Gb/sec (1X FDR10)\n")
    port(machine, "mlx5_1", 2, "100 Gb/sec (4X EDR)\n")
    port(machine, "mlx5_9", 1, "400 Gb/sec (4X NDR)\n")
    topology = detect(ImportOptions(), machine / "ib")
    assert topology.name == "this machine (nvidia-smi topo -m)"
    assert links(topology)["gpu0", "nvswitch"] == 300.0
    assert [node.ports for node in topology.nodes if node.kind is Kind.NIC] == [(25e9,), (12.5e9,)]


def test_flags_win_over_the_machine(machine: Path) -> None:
    """What the user says is not asked for."""
    nvidia_smi(machine, fixture("topo_m_switch.txt").decode(), "NVIDIA A100-SXM4-80GB\n")
    topology = detect(options("H100", "100Gb/s"), machine / "ib")
    assert links(topology)["gpu0", "nvswitch"] == 300.0
    assert [node.ports for node in topology.nodes if node.kind is Kind.NIC] == [(12.5e9,), (12.5e9,)]


def test_what_the_machine_does_not_say_is_asked_for(machine: Path) -> None:
    """No speed in the kernel's list, or a GPU that is in no table: the flag is named."""
    nvidia_smi(machine, fixture("topo_m_switch.txt").decode(), "NVIDIA X1\n")
    with pytest.raises(InputError) as error:
        detect(ImportOptions(), machine / "ib")
    assert str(error.value) == (
        "nvidia-smi topo -m:1: the matrix does not say the model of its GPUs (they have NVLinks) nor the speed of its 2 NICs; "
        "give --gpu MODEL (such as H100 or MI300X) and --nic SPEED (such as 400Gb/s)"
    )


def test_what_the_machine_says_may_change_nothing(machine: Path) -> None:
    """A model that nothing needs is noted if the user gave it, not if the machine said it."""
    nvidia_smi(machine, "GPU0 GPU1\nGPU0 X PHB\nGPU1 PHB X\n", "Tesla T4\n" * 2)
    assert flag_notes(detect(options(pcie="Gen3"), machine / "ib")) == []
    assert flag_notes(detect(options("T4", pcie="Gen3"), machine / "ib")) == [
        "--gpu T4 changed nothing: the matrix shows no NVLink, and --pcie says the PCIe generation"
    ]


def test_mixed_gpus(machine: Path) -> None:
    """GPUs of two models need --gpu."""
    nvidia_smi(machine, fixture("topo_m_switch.txt").decode(), "NVIDIA A100\nNVIDIA T4\n")
    with pytest.raises(InputError) as error:
        detect(ImportOptions())
    assert str(error.value) == (
        "nvidia-smi --query-gpu=name --format=csv,noheader: the GPUs are not of one model (NVIDIA A100, NVIDIA T4); "
        "give --gpu MODEL"
    )


def test_a_tool_that_fails(machine: Path) -> None:
    """Its first words and exit code are passed on."""
    program(machine, "nvidia-smi", "echo 'NVIDIA-SMI has failed' >&2; exit 9")
    with pytest.raises(InputError) as error:
        detect(ImportOptions())
    assert str(error.value) == (
        "nvidia-smi topo -m: failed with exit code 9: NVIDIA-SMI has failed; see whether it runs by hand"
    )


def test_a_tool_that_cannot_run(machine: Path) -> None:
    """A file that is no program is an error with the reason."""
    (machine / "bin" / "nvidia-smi").write_bytes(b"\x7fELF nonsense")
    (machine / "bin" / "nvidia-smi").chmod(0o755)
    with pytest.raises(InputError) as error:
        detect(ImportOptions())
    assert str(error.value) == "nvidia-smi topo -m: cannot be run: Exec format error"


def test_a_tool_that_hangs(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up."""
    program(machine, "nvidia-smi", "exec /bin/sleep 20")
    monkeypatch.setattr(module, "TIMEOUT", 0.2)
    with pytest.raises(InputError) as error:
        detect(ImportOptions())
    assert str(error.value) == "nvidia-smi topo -m: no answer within 0.2 s; see whether it runs by hand"


def test_amd_machine(machine: Path) -> None:
    """rocm-smi is asked where there is no nvidia-smi."""
    program(machine, "rocm-smi", f'[ "$*" = "--showtopo" ] && printf %s {shlex.quote(ISLANDS)}')
    topology = detect(options("MI100"))
    assert topology.name == "this machine (rocm-smi --showtopo)"
    assert len(topology.ranks) == 3


def test_rocm_smi() -> None:
    """XGMI pairs of weight 15 are links of the model, PCIe follows the NUMA nodes, and assumptions are said."""
    topology = read(ISLANDS, options("MI100"))
    assert {pair: rate for pair, rate in links(topology).items() if pair[0] < pair[1]} == {
        ("gpu0", "gpu1"): 46.0,
        ("cpu0", "gpu0"): 31.5,
        ("cpu0", "gpu1"): 31.5,
        ("cpu1", "gpu2"): 31.5,
        ("cpu0", "cpu1"): 16.0,
    }
    assert topology.notes == (
        "one XGMI link is assumed for each of the 1 pairs of weight 15 (MI100)",
        "the input does not say what its CPUs are: between unknown processors, 16 GB/s assumed (what NCCL counts for AMD "
        "EPYC); give --cpu RATE if it is another",
        "PCIe Gen4 is assumed for 3 PCIe links (that of MI100); give --pcie if it is another",
        "rocm-smi does not show NICs: none are in the topology",
    )


@pytest.mark.parametrize(
    ("text", "gpu", "message"),
    [
        (
            ISLANDS,
            None,
            "f: the tables do not say the model of the GPUs, which have XGMI links; give --gpu MODEL (such as",
        ),
        (
            ISLANDS,
            "MI250X",
            "f: rocm-smi does not show how many links a pair has, and on MI250X pairs differ; "
            "import what RCCL writes to NCCL_TOPO_DUMP_FILE on that machine, which lists them",
        ),
        (
            ISLANDS[: ISLANDS.index("= Link") - 30],
            "MI100",
            "f: it has no table 'Link Type'; paste the output of rocm-smi",
        ),
        (
            ISLANDS[ISLANDS.index("= Link") - 30 :],
            "MI100",
            "f: without the table of weights, direct and indirect XGMI pairs look alike",
        ),
        (
            ISLANDS.replace("15           0  ", "14           0  "),
            "MI100",
            "f:4: Weight of GPU0 to GPU1 is 15 but 14 the other",
        ),
        (
            ISLANDS.replace("0            XGMI", "1            XGMI"),
            "MI100",
            "f:10: Link Type of GPU0 to itself is 1, not 0",
        ),
        (
            ISLANDS.replace("GPU2   PCIE         PCIE         0\n", ""),
            "MI100",
            "f:12: the row of GPU2 in the table 'Link",
        ),
        (ISLANDS.replace("XGMI", "WIFI"), "MI100", "f: link type 'WIFI' of GPU0 and GPU1 is not known"),
        (
            ISLANDS.replace("GPU0         GPU1", "GPU1         GPU0"),
            "MI100",
            "f:9: the table 'Link Type' has no header GPU0,",
        ),
    ],
)
def test_rocm_smi_refusals(text: str, gpu: str | None, message: str) -> None:
    """Damaged tables name the cell, and what the tables cannot say is not guessed."""
    assert refusal(text, options(gpu)).startswith(message)


def test_rocm_smi_flags_that_it_cannot_use() -> None:
    """A NIC speed is noted, named GPUs are refused."""
    assert flag_notes(read(ISLANDS, options("MI100", nic="1Gb/s"))) == [
        "--nic 1Gb/s changed nothing: rocm-smi does not show NICs"
    ]
    assert refusal(ISLANDS, options("MI100=gpu0")) == (
        "f: --gpu: rocm-smi says itself which devices are the GPUs, but 'gpu0' are named; give --gpu 'MI100'"
    )


def test_rocm_smi_sockets() -> None:
    """--cpu is the rate between the NUMA nodes; with one there is nothing that it could be."""
    topology = read(ISLANDS, options("MI100", cpu="36GB/s"))
    assert links(topology)["cpu0", "cpu1"] == 36.0
    assert not any("CPUs" in note for note in topology.notes)
    pair = "===== Link Type between two GPUs =====\nGPU0 GPU1\nGPU0 0 PCIE\nGPU1 PCIE 0\n"
    assert flag_notes(read(pair, options(cpu="36GB/s"))) == ["--cpu 36GB/s changed nothing: all devices are on one CPU"]
    assert flag_notes(read(pair, options("MI100", pcie="Gen4"))) == [
        "--gpu MI100 changed nothing: no GPU has XGMI links, and --pcie says the PCIe generation"
    ]


def test_rocm_smi_without_xgmi() -> None:
    """PCIe-only boxes need no model; a single GPU is reported."""
    text = "===== Link Type between two GPUs =====\nGPU0 GPU1\nGPU0 0 PCIE\nGPU1 PCIE 0\n"
    assert links(read(text, options(pcie="Gen4"))) == dict.fromkeys(
        [("gpu0", "cpu0"), ("cpu0", "gpu0"), ("gpu1", "cpu0"), ("cpu0", "gpu1")], 31.5
    )
    single = "===== Link Type between two GPUs =====\nGPU0\nGPU0 0\n"
    assert read(single, options(pcie="Gen4")).notes[0] == "one GPU is visible: there is nothing to plan inside the box"
