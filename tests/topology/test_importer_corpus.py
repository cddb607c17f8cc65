"""Public files of the field, where a collection of them stands beside the checkout: each gives what is known about it."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dualcoll.errors import InputError
from dualcoll.topology.devices import Rates
from dualcoll.topology.importers import ImportOptions, import_topology
from dualcoll.topology.model import Kind, Topology
from tests.topology.imported import links, options

COLLECTION = Path(__file__).resolve().parents[3] / "shared"
KINDS = ("nccl_topo_xml", "rccl_topo_xml", "nvidia_smi_topo")


def rows() -> list[dict[str, str]]:
    table = COLLECTION / "cases" / "corpus_expectations.tsv"
    if not table.exists():
        return []
    with table.open(newline="") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["kind"] in KINDS]


ROWS = rows()
V100, A100, H100 = options("V100", "100Gb/s"), options("A100", "200Gb/s"), options("H100", "400Gb/s")
FLAGS = {
    "aws-ofi-nccl__g5.48xl-topo.xml": options(
        "A10G=" + ",".join(f"0000:00:{i:02x}.0" for i in range(0x16, 0x1E)), "100Gb/s=0000:00:15.0"
    ),
    "aws-ofi-nccl__p4de-24xl-topo.xml": options("A100", "100Gb/s"),
    "azhpc-images__ndv2-topo.xml": V100,
    "azhpc-images__ndv5-topo.xml": H100,
    "oci-hpc__topo-flattened-b4.xml": A100,
    "superbenchmark__ndv4-topo.xml": A100,
    "2gpu_nv1_1nic_old_legend.txt": V100,
    "club3090_1229_2x5090_and_p2p.txt": options("RTX 5090"),
    "dgx1_v100_topo_mp.txt": V100,
    "juwels_booster_topo_mp_4xA100.txt": A100,
    "msccl_tools_dgx1_v100.txt": V100,
    "nccl-tests_78_dgx2_16gpu_10nic_trunc.txt": V100,
    "nccl_1453_8xH100_9nic_trunc.txt": H100,
    "nccl_docs_topo_p2p.txt": H100,
    "power9_ac922_4gpu_no_numa.txt": V100,
    "princeton_pli_8xH100_6nic.txt": H100,
    "princeton_traverse_1gpu_cgroup.txt": V100,
    "stas_2gpu_nv2.txt": options("RTX 3090"),
    "stas_8xA100_nv12.txt": options("A100"),
    "stas_8xH100_nv18.txt": options("H100"),
    "stelline_asus_4xRTX6000ada.txt": options("RTX 6000 Ada", "100Gb/s"),
    "tutorial_mixed_nv18_pix_sys.txt": options("H100"),
}


def flags_of(row: dict[str, str]) -> ImportOptions:
    return FLAGS.get(row["file"], ImportOptions())


def read(row: dict[str, str], flags: ImportOptions) -> Topology:
    return import_topology((COLLECTION / "corpus" / row["kind"] / row["file"]).read_bytes(), row["file"], flags)


def by_file(name: str, rates: Rates = Rates.NOMINAL) -> Topology:
    row = next(row for row in ROWS if row["file"] == name)
    return read(row, replace(flags_of(row), rates=rates))


@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_verdict(row: dict[str, str]) -> None:
    """It is imported, refused, or asks for exactly the flags that it needs; then it has its ranks."""
    if row["verdict"] == "refuse":
        with pytest.raises(InputError):
            read(row, flags_of(row))
        return
    needed = {"--gpu": "gpu model" in row["flags_needed"], "--nic": "nic speed" in row["flags_needed"]}
    if any(needed.values()):
        with pytest.raises(InputError) as error:
            read(row, ImportOptions())
        assert {flag: flag in str(error.value) for flag in needed} == needed
    else:
        read(row, ImportOptions())
    for rates in Rates:
        topology = read(row, replace(flags_of(row), rates=rates))
        assert len(topology.ranks) == int(row["ranks"] or 8)
        assert all(node.box for node in topology.nodes if node.kind is not Kind.SWITCH)


def to(topology: Topology, other: str) -> list[float]:
    """GB/s of each GPU, in rank order, to the nodes whose name starts so."""
    found = links(topology)
    return [
        round(
            sum(
                rate
                for (tail, head), rate in found.items()
                if tail == topology.nodes[i].name and head.startswith(other)
            ),
            3,
        )
        for i in topology.ranks
    ]


def between_gpus(topology: Topology) -> list[float]:
    """GB/s of each GPU, in rank order, to all other GPUs."""
    return to(topology, "gpu")


def ports(topology: Topology) -> list[float]:
    """GB/s of all network ports."""
    return [rate / 1e9 for node in topology.nodes for rate in node.ports]


def pcie(topology: Topology, kind: Kind) -> set[float]:
    """GB/s of the PCIe links above nodes of a kind."""
    above = (Kind.PCI, Kind.CPU)
    return {
        link.capacity / 1e9
        for link in topology.links
        if topology.nodes[link.tail].kind is kind and topology.nodes[link.head].kind in above and "PCIe" in link.source
    }


def noted(topology: Topology, text: str) -> bool:
    return any(text in note for note in topology.notes)


def counts(topology: Topology) -> tuple[int, int, int, int]:
    """Numbers of GPUs, NICs, PCIe switches and CPUs."""
    kinds = [node.kind for node in topology.nodes]
    return kinds.count(Kind.GPU), kinds.count(Kind.NIC), kinds.count(Kind.PCI), kinds.count(Kind.CPU)


Check = Callable[[Topology, Topology], bool]  # of the nominal topology and the one with NCCL's rates
FACTS: dict[str, list[Check]] = {
    "aws-ofi-nccl__g5.48xl-topo.xml": [lambda t, n: counts(t) == (8, 1, 0, 2)],
    "aws-ofi-nccl__p4de-24xl-topo.xml": [
        lambda t, n: counts(t) == (8, 4, 4, 2),
        lambda t, n: pcie(n, Kind.GPU) == pcie(n, Kind.PCI) == {12.0},
        lambda t, n: to(t, "nvswitch") == [300.0] * 8,
    ],
    "azhpc-images__ndv2-topo.xml": [
        lambda t, n: counts(t) == (8, 1, 0, 2),
        lambda t, n: pcie(n, Kind.GPU) == {24.0} and pcie(t, Kind.GPU) == {31.5},
        lambda t, n: between_gpus(t) == [150.0] * 8,
    ],
    "azhpc-images__ndv5-topo.xml": [lambda t, n: counts(t) == (8, 8, 8, 2), lambda t, n: pcie(n, Kind.GPU) == {48.0}],
    "gb10_dgx_spark_snippet.xml": [
        lambda t, n: to(n, "cpu") == [348.0] and to(t, "cpu") == [349.0],
        lambda t, n: ports(t) == [25.0, 25.0] and pcie(n, Kind.NIC) == {12.0},
        lambda t, n: noted(t, "reads Gen1"),
    ],
    "gb300_2tray_mnnvl_rank5_missing_nvlink_RECONSTRUCTED.xml": [
        lambda t, n: to(t, "nvswitch") == [900.0] * 5 + [0.0] + [900.0] * 2,
        lambda t, n: to(n, "nvswitch") == [721.8] * 5 + [0.0] + [721.8] * 2,
        lambda t, n: to(n, "host0/cpu")[:4] == to(n, "host1/cpu")[4:] == [319.56] * 4,
        lambda t, n: noted(t, "rank 5 (host1/gpu5) has no NVLinks"),
    ],
    "nccl_archive_h200_8gpu_baremetal_numa0_only.xml": [
        lambda t, n: to(t, "nvswitch") == [450.0] * 3 and to(n, "nvswitch") == [370.8] * 3,
        lambda t, n: ports(t) == [50.0] * 3 and pcie(n, Kind.GPU) == {48.0},
        lambda t, n: noted(t, "3 of 8 GPUs"),
    ],
    "oci-hpc__H100-topology-kubernetes.xml": [
        lambda t, n: to(t, "nvswitch") == [450.0] * 8 and to(n, "nvswitch") == [370.8] * 8,
        lambda t, n: ports(t) == [25.0] * 16 and counts(t)[1] == 8 and pcie(n, Kind.NIC) == {48.0},
        lambda t, n: noted(n, "50 GB/s of ports on 48 GB/s of PCIe"),
    ],
    "oci-hpc__topo-flattened-b4.xml": [
        lambda t, n: counts(t) == (8, 8, 4, 4) and pcie(n, Kind.GPU) == {24.0},
        lambda t, n: [node.name for node in t.nodes if node.kind is Kind.CPU] == ["cpu3", "cpu1", "cpu7", "cpu5"],
    ],
    "superbenchmark__ndv4-topo.xml": [lambda t, n: counts(t) == (8, 8, 4, 4) and pcie(n, Kind.GPU) == {24.0}],
    "vr200_mlopart_snippet.xml": [
        lambda t, n: to(n, "nvswitch") == [721.8] * 2 and to(t, "nvswitch") == [900.0] * 2,
        lambda t, n: pcie(n, Kind.PCI) == {12.0} and to(n, "cpu") == [394.632] * 2,
    ],
    "2gpu_nv1_1nic_old_legend.txt": [
        lambda t, n: between_gpus(t) == [25.0] * 2,
        lambda t, n: counts(t) == (2, 1, 0, 1),
    ],
    "club3090_1229_2x5090_and_p2p.txt": [lambda t, n: counts(t) == (2, 0, 0, 1), lambda t, n: noted(t, "GNS")],
    "dgx1_v100_topo_mp.txt": [
        lambda t, n: counts(t) == (8, 4, 4, 2) and noted(t, "-mp hides NVLink"),
        lambda t, n: between_gpus(t) == [150.0] * 8,
    ],
    "juwels_booster_topo_mp_4xA100.txt": [lambda t, n: counts(t) == (4, 4, 4, 4) and noted(t, "-mp hides NVLink")],
    "msccl_tools_dgx1_v100.txt": [
        lambda t, n: between_gpus(t) == [150.0] * 8 and counts(t) == (8, 4, 4, 2),
        lambda t, n: (
            sorted(rate for (a, b), rate in links(t).items() if a < b and b.startswith("gpu")) == [25] * 8 + [50] * 8
        ),
    ],
    "nccl_1453_8xH100_9nic_trunc.txt": [
        lambda t, n: to(t, "nvswitch") == [450.0] * 8 and to(n, "nvswitch") == [370.8] * 8,
        lambda t, n: counts(t) == (8, 9, 8, 3) and noted(t, "rows NIC5, NIC6, NIC7, NIC8 are missing"),
    ],
    "power9_ac922_4gpu_no_numa.txt": [
        lambda t, n: between_gpus(t) == [75.0] * 4,
        lambda t, n: counts(t) == (4, 4, 2, 2),
    ],
    "princeton_pli_8xH100_6nic.txt": [
        lambda t, n: to(t, "nvswitch") == [450.0] * 8,
        lambda t, n: counts(t) == (8, 6, 4, 1),
    ],
    "princeton_traverse_1gpu_cgroup.txt": [
        lambda t, n: counts(t) == (1, 4, 2, 3) and noted(t, "one GPU is visible"),
    ],
    "rtx6kpro_4gpu_node.txt": [lambda t, n: counts(t) == (4, 0, 0, 1) and noted(t, "PCIe Gen3 is assumed")],
    "rtx6kpro_8gpu_phb_sys.txt": [lambda t, n: counts(t) == (8, 0, 0, 2)],
    "rtx6kpro_8gpu_pix_pxb_node.txt": [lambda t, n: counts(t) == (8, 0, 6, 1)],
    "stas_2gpu_nv2.txt": [lambda t, n: between_gpus(t) == [28.125] * 2],
    "stas_8xA100_nv12.txt": [lambda t, n: to(t, "nvswitch") == [300.0] * 8 and to(n, "nvswitch") == [240.0] * 8],
    "stas_8xH100_nv18.txt": [lambda t, n: to(t, "nvswitch") == [450.0] * 8 and to(n, "nvswitch") == [370.8] * 8],
    "stelline_asus_4xRTX6000ada.txt": [lambda t, n: counts(t) == (4, 4, 2, 2) and between_gpus(t) == [0.0] * 4],
    "tutorial_mixed_nv18_pix_sys.txt": [
        lambda t, n: between_gpus(t) == [450.0] * 4,
        lambda t, n: noted(t, "GPU0 and GPU2 are PIX although on NUMA nodes 0 and 1"),
    ],
    "rccl__topo_16p1h_vm.xml": [lambda t, n: between_gpus(n) == [252.0] * 16 and ports(t) == [25.0] * 8],
    "rccl__topo_4p1h.xml": [lambda t, n: between_gpus(n) == [48.0] * 4 and ports(t) == [12.5]],
    "rccl__topo_4p2h_2nic.xml": [lambda t, n: between_gpus(n) == [48.0] * 8 and ports(t) == [12.5] * 2],
    "rccl__topo_4p3l_ia.xml": [lambda t, n: between_gpus(n) == [72.0] * 8 and ports(t) == [12.5]],
    "rccl__topo_4p_940.xml": [
        lambda t, n: between_gpus(n) == [144.0] * 4 and ports(t) == [25000.0] * 4,
        lambda t, n: noted(t, "net speed implausible"),
    ],
    "rccl__topo_8p1h_5.xml": [lambda t, n: between_gpus(n) == [252.0, 216.0] * 4 and ports(t) == [25.0] * 8],
    "rccl__topo_8p6l_6nic.xml": [lambda t, n: between_gpus(n) == [144.0] * 8 and ports(t) == [25.0] * 6],
    "rccl__topo_8p_90a.xml": [lambda t, n: between_gpus(n) == [108.0] * 8 and ports(t) == [0.125]],
    "rccl__topo_8p_940.xml": [lambda t, n: between_gpus(n) == [336.0] * 8 and ports(t) == [50.0] * 8],
    "rccl__topo_8p_pcie_2nic.xml": [lambda t, n: between_gpus(n) == [0.0] * 8 and ports(t) == [12.5] * 2],
    "rccl__topo_8p_rome_4nics.xml": [lambda t, n: between_gpus(n) == [72.0] * 8 and ports(t) == [25.0] * 4],
    "rccl__topo_8p_rome_vm1.xml": [
        lambda t, n: between_gpus(n) == [72.0] * 8 and ports(t) == [12.5] and ("eth0", "cpu0") in links(t)
    ],
    "rccl__topo_8p_ts1_n4_2.xml": [
        lambda t, n: between_gpus(n) == [48.0] * 8 and sorted(ports(t)) == [12.5, 25.0, 25.0] and counts(t)[1] == 2
    ],
}


@pytest.mark.parametrize("name", [row["file"] for row in ROWS if row["verdict"] != "refuse"])
def test_facts(name: str) -> None:
    """Link rates, ports, structure and warnings are those that are known of the file."""
    nominal, counted = by_file(name), by_file(name, Rates.NCCL)
    for i, check in enumerate(FACTS[name]):
        assert check(nominal, counted), f"fact {i}"


@pytest.mark.skipif(not ROWS, reason="the collection is not there")
def test_truncated_matrix_names_what_is_missing() -> None:
    """The refusal lists the GPUs without rows and counts the unknown pairs."""
    with pytest.raises(InputError) as error:
        by_file("nccl-tests_78_dgx2_16gpu_10nic_trunc.txt")
    assert "rows of 12 of 16 GPUs are missing or cut off (GPU4, GPU5, " in str(error.value)
    assert "66 of 120 GPU pairs are unknown" in str(error.value)


@pytest.mark.skipif(not ROWS, reason="the collection is not there")
def test_islands_and_rings() -> None:
    """XGMI groups of an RCCL file are the ones that it lists."""
    found = links(by_file("rccl__topo_8p_ts1_n4_2.xml"))
    pairs = {(int(a[3:]), int(b[3:])) for a, b in found if a.startswith("gpu") and b.startswith("gpu")}
    assert all((a in {0, 2, 3, 6}) == (b in {0, 2, 3, 6}) for a, b in pairs)
    assert len(pairs) == 16
