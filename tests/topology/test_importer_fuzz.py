"""Damaged input of every importer: a topology or an InputError, never another exception, never slow."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.topology.importers import ImportOptions, import_topology
from dualcoll.topology.model import Topology
from tests.topology.imported import fixture, options

SAMPLES = {
    name: fixture(name)
    for name in (
        "nccl_full.xml",
        "nccl_skeleton.xml",
        "nccl_trays.xml",
        "nccl_busids.xml",
        "rccl_ring.xml",
        "topo_m_switch.txt",
        "rocm_smi_islands.txt",
    )
}
FLAGS = (
    options(),
    options("A100", "200Gb/s", "Gen4"),
    options("MI100", "1Gb/s=mlx5_0"),
    options("V100=0000:00:16.0", "1Gb/s=0000:00:17.0"),
)
VALUES = (
    *("", "0", "-1", "1", "2", "99999999999999999999", "1e9", "NaN", "inf", "x" * 300, "☃", "\x00", "\n"),
    *("0x068000", "0x030200", "fffffff:ff:ff.0", "0000:11:00.0", "0000:01:00.0", "2.5 GT/s PCIe", "Unknown"),
    *("NV0", "NV2", "NV999", "SYS", "PIX", "X", "OK", "GPU1", "NIC0", "XGMI", "PCIE", "15"),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A sample after a few edits: bytes flipped, cut, lines dropped, doubled or swapped, values replaced."""
    data = SAMPLES[draw(st.sampled_from(sorted(SAMPLES)))]
    for _ in range(draw(st.integers(1, 4))):
        how = draw(st.sampled_from(["flip", "cut", "drop", "double", "swap", "value", "word"]))
        at = draw(st.integers(0, max(0, len(data) - 1)))
        lines = data.splitlines(keepends=True)
        row = draw(st.integers(0, max(0, len(lines) - 1)))
        if how == "flip":
            data = data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
        elif how == "cut":
            data = data[:at]
        elif how == "drop":
            data = b"".join(lines[:row] + lines[row + 1 :])
        elif how == "double":
            data = b"".join(lines[: row + 1] + lines[row:])
        elif how == "swap":
            other = draw(st.integers(0, max(0, len(lines) - 1)))
            if lines:
                lines[row], lines[other] = lines[other], lines[row]
            data = b"".join(lines)
        else:
            pattern = rb'(?<=")[^"]*(?=")' if how == "value" else rb"[^\s\"<>=]+"
            spots = list(re.finditer(pattern, data))
            if spots:
                spot = draw(st.sampled_from(spots))
                data = data[: spot.start()] + draw(st.sampled_from(VALUES)).encode() + data[spot.end() :]
    return data


def outcome(data: bytes, flags: ImportOptions) -> Topology | InputError:
    """What the importer makes of it, within the time that a user would wait."""
    start = time.perf_counter()
    try:
        result: Topology | InputError = import_topology(data, "f", flags)
    except InputError as error:
        result = error
    assert time.perf_counter() - start < 60
    assert isinstance(result, Topology) or str(result).startswith("f")
    return result


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(), st.sampled_from(FLAGS))
@example(b"", options())
@example(b"<system", options())
@example(b"\xff\xfe<\x00s\x00", options())
def test_damaged_samples(data: bytes, flags: ImportOptions) -> None:
    """Edits of good files are imported or refused, and what is imported has ranks and only positive numbers."""
    result = outcome(data, flags)
    if isinstance(result, Topology):
        assert result.ranks
        assert all(link.capacity > 0 for link in result.links)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(FLAGS))
def test_noise(data: bytes, flags: ImportOptions) -> None:
    """Bytes that are nothing are refused as such."""
    assert isinstance(outcome(data, flags), InputError)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40), st.sampled_from(["gpu", "nic", "pcie"]))
def test_flags_are_input_too(text: str, flag: str) -> None:
    """Whatever stands in a flag, the outcome is a topology or an error."""
    given_flags = {"gpu": "A100", "nic": "200Gb/s", "pcie": "4"} | {flag: text}
    outcome(SAMPLES["nccl_skeleton.xml"], options(given_flags["gpu"], given_flags["nic"], given_flags["pcie"]))


BIG = {
    "many GPUs in a matrix": "\n".join(
        [" ".join(f"GPU{i}" for i in range(256))]
        + [f"GPU{i} " + " ".join("X" if i == j else "NV1" for j in range(256)) for i in range(256)]
    ),
    "many rows": "GPU0 X\n" * 200_000,
    "a long line": "GPU0 " * 500_000,
    "many tables": "==== Link Type between two GPUs ====\n" * 50_000,
    "many CPUs": '<system version="1">'
    + "".join(f'<cpu numaid="{i}" arch="arm64"/>' for i in range(90_000))
    + "</system>",
    "many NICs of one name": '<system version="1"><cpu numaid="0"><pci busid="g"><gpu sm="90"/></pci>'
    + '<nic><net name="n" speed="1"/></nic>' * 45_000
    + "</cpu></system>",
    "many links": '<system version="1"><cpu numaid="0"><pci busid="g"><gpu sm="90">'
    + '<nvlink target="x" count="1" tclass="0x068000"/>' * 90_000
    + "</gpu></pci></cpu></system>",
    "many ranks on one device": '<system version="1"><cpu numaid="0"><pci busid="g">'
    + '<gpu sm="90"/>' * 90_000
    + "</pci></cpu></system>",
    "a huge attribute": '<system version="1"><cpu numaid="'
    + "9" * 10**6
    + '"><pci busid="g"><gpu/></pci></cpu></system>',
}


@pytest.mark.parametrize("name", BIG)
def test_big_input(name: str) -> None:
    """Size alone makes no importer slow."""
    outcome(BIG[name].encode(), options("A100", "200Gb/s"))
