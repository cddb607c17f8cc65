"""The table of devices: names that users type, and the figures of each generation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.topology.devices import (
    GPU_MODELS,
    CpuKind,
    Rates,
    Wiring,
    cpu_rate,
    fabric_link,
    gpu_model,
    pcie_rate,
    unknown_cpu_rate,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a100", "A100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe"),
        ("Tesla V100-SXM2-32GB", "V100"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("rtx4090", "RTX 4090"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000"),
        ("NVIDIA GB200", "GB200"),
        ("AMD Instinct MI300X", "MI300X"),
    ],
)
def test_models_are_found_by_what_users_and_tools_call_them(text: str, name: str) -> None:
    """Marketing names, tool output and bare model numbers lead to one row, the more exact one where two fit."""
    assert gpu_model(text).name == name


def test_an_unknown_model_lists_the_known_ones() -> None:
    """The error quotes the text and names what can be given."""
    known = ", ".join(model.name for model in GPU_MODELS)
    with pytest.raises(InputError) as error:
        gpu_model("H1000")
    assert str(error.value) == f"GPU model 'H1000' is not known; the known ones are {known}"


@given(st.sampled_from(GPU_MODELS))
def test_every_model_is_found_by_its_own_name(model: object) -> None:
    """No row hides another."""
    assert gpu_model(model.name) is model  # type: ignore[attr-defined]


def test_switched_boxes_have_the_rates_that_nccl_prints() -> None:
    """Links times rate per link: nominal as in data sheets, counted as in NCCL's logs."""
    totals = {
        name: (model.links * model.link.nominal, model.links * model.link.counted)
        for name in ("A100", "H100", "H800", "B200", "MI300X")
        for model in [gpu_model(name)]
    }
    assert {name: (n, round(c, 3)) for name, (n, c) in totals.items()} == {
        "A100": (300.0, 240.0),
        "H100": (450.0, 370.8),
        "H800": (200.0, 164.8),
        "B200": (900.0, 721.8),
        "MI300X": (448.0, 336.0),
    }
    assert gpu_model("V100").wiring is Wiring.CUBE_MESH


@pytest.mark.parametrize(
    ("arch", "counted"),
    [
        ("sm60", 18.0),
        ("sm70", 20.0),
        ("sm80", 20.0),
        ("sm86", 12.0),
        ("sm89", 20.0),
        ("sm90", 20.6),
        ("sm121", 40.1),
        ("sm50", 20.0),
        ("906", 24.0),
        ("908", 24.0),
        ("910", 36.0),
        ("gfx90a", 36.0),
        ("940", 48.0),
        ("gfx942", 48.0),
    ],
)
def test_a_link_counts_what_the_library_counts_for_its_architecture(arch: str, counted: float) -> None:
    """NVLink by compute capability, XGMI by gcn name, old RCCL numbers included."""
    assert fabric_link(arch).counted == counted


def test_sources_say_both_figures() -> None:
    """A link's source gives the figure in use and the other one beside it."""
    link = gpu_model("H100").link
    assert link.rate(18, Rates.NOMINAL).source == "18 NVLinks x 25 GB/s nominal (NCCL counts 370.8 GB/s)"
    assert link.rate(18, Rates.NCCL).source == "18 NVLinks x 20.6 GB/s as NCCL counts (nominal 450 GB/s)"
    assert gpu_model("MI300X").link.rate(1, Rates.NOMINAL).source == "1 XGMI x 64 GB/s nominal (RCCL counts 48 GB/s)"


@pytest.mark.parametrize(
    ("generation", "nominal", "counted"),
    [(1, 4, 3), (2, 8, 6), (3, 15.75, 12), (4, 31.5, 24), (5, 63, 48), (6, 121, 96)],
)
def test_pcie_by_generation(generation: int, nominal: float, counted: float) -> None:
    """x16 rates of every generation; fewer lanes carry their part."""
    assert pcie_rate(generation, 16, Rates.NOMINAL).capacity == nominal * 1e9
    assert pcie_rate(generation, 16, Rates.NCCL).capacity == counted * 1e9
    assert pcie_rate(generation, 4, Rates.NCCL).capacity == counted * 1e9 / 4


@pytest.mark.parametrize(
    ("cpu", "figure"),
    [
        (CpuKind("x86_64", "GenuineIntel", 6, 79), 6),
        (CpuKind("x86_64", "GenuineIntel", 6, 85), 10),
        (CpuKind("x86_64", "GenuineIntel", 6, 143), 22),
        (CpuKind("x86_64", "GenuineIntel", 6, 207), 40),
        (CpuKind("x86_64", "AuthenticAMD", 25, 1), 16),
        (CpuKind("x86_64", "CentaurHauls", 7, 0x5B), 9),
        (CpuKind("x86_64", "  Shanghai  ", 7, 1), 6),
        (CpuKind("arm64"), 6),
        (CpuKind("ppc64"), 32),
    ],
)
def test_cpus_have_the_rate_of_nccls_table(cpu: CpuKind, figure: float) -> None:
    """There is no other source; of two kinds the slower counts, and an unnamed one does not."""
    for other in (cpu, CpuKind()):
        rate = cpu_rate(cpu, other)
        assert rate is not None
        assert rate.capacity == figure * 1e9


def test_unknown_cpus_are_assumed_or_counted_as_nccl_does() -> None:
    """NCCL's 5000 GB/s stands only where its rates are asked for."""
    assert cpu_rate(CpuKind(), CpuKind()) is None
    assert unknown_cpu_rate(Rates.NOMINAL).capacity == 16e9
    assert unknown_cpu_rate(Rates.NCCL).capacity == 5000e9
