"""``nvidia-smi topo -m`` text, and what people paste in its place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dualcoll.topology.devices import Rates
from dualcoll.topology.importers import ImportOptions, sniff
from dualcoll.topology.model import Kind
from tests.topology.imported import fixture, flag_notes, links, names, options, read, refusal

SWITCHED = fixture("topo_m_switch.txt").decode()
A100 = options("A100", "200Gb/s")


def matrix(rows: Sequence[str], numa: Sequence[str] = (), header: bool = True) -> str:
    """A pasted, space-aligned matrix of GPUs from rows of cells."""
    lines = ["        " + "    ".join(f"GPU{i}" for i in range(len(rows)))] if header else []
    if numa and header:
        lines[0] += "    CPU Affinity    NUMA Affinity"
    for i, row in enumerate(rows):
        lines.append(f"GPU{i}    " + "    ".join(row.split()) + (f"    0-7    {numa[i]}" if numa else ""))
    return "\n".join(lines) + "\n"


def test_a_switch() -> None:
    """NV# whose sum exceeds the links of a GPU is an NVSwitch; the other classes make the PCIe tree."""
    topology = read(SWITCHED, A100)
    assert [(node.name, node.kind.value, node.box) for node in topology.nodes] == [
        ("gpu0", "gpu", "host0"),
        ("gpu1", "gpu", "host0"),
        ("gpu2", "gpu", "host0"),
        ("mlx5_0", "nic", "host0"),
        ("mlx5_1", "nic", "host0"),
        ("nvswitch", "switch", "host0"),
        ("cpu0", "cpu", "host0"),
        ("cpu1", "cpu", "host0"),
        ("pci0", "pci", "host0"),
        ("pci1", "pci", "host0"),
    ]
    one_way = {pair: rate for pair, rate in links(topology).items() if pair[0] < pair[1]}
    assert one_way == {
        ("gpu0", "nvswitch"): 300.0,
        ("gpu1", "nvswitch"): 300.0,
        ("gpu2", "nvswitch"): 300.0,
        ("cpu0", "cpu1"): 16.0,
        ("cpu0", "pci0"): 31.5,
        ("pci0", "pci1"): 31.5,
        ("gpu0", "pci1"): 31.5,
        ("mlx5_0", "pci1"): 31.5,
        ("gpu1", "pci0"): 31.5,
        ("cpu1", "gpu2"): 31.5,
        ("cpu1", "mlx5_1"): 31.5,
    }
    assert topology.nodes[3].ports == (25e9,)
    assert topology.notes == (
        "the input does not say what its CPUs are: between unknown processors, 16 GB/s assumed (what NCCL counts for AMD "
        "EPYC); give --cpu RATE if it is another",
        "PCIe Gen4 is assumed for 7 PCIe links (that of A100); give --pcie if it is another",
    )
    assert links(read(SWITCHED, options("A100", "200Gb/s", rates=Rates.NCCL)))["gpu0", "nvswitch"] == 240.0


def test_missing_flags() -> None:
    """What the matrix cannot say is asked for by flag, all at once; PCIe is only assumed."""
    assert refusal(SWITCHED) == (
        "f:1: the matrix does not say the model of its GPUs (they have NVLinks) nor the speed of its 2 NICs; "
        "give --gpu MODEL (such as H100 or MI300X) and --nic SPEED (such as 400Gb/s)"
    )
    assert refusal(SWITCHED, options(gpu="A100")) == (
        "f:1: the matrix does not say the speed of its 2 NICs; give --nic SPEED (such as 400Gb/s)"
    )
    assert read(matrix(["X PHB", "PHB X"])).notes == (
        "PCIe Gen3 is assumed for 2 PCIe links (what NCCL assumes); give --pcie if it is another",
    )
    assert read(matrix(["X PHB", "PHB X"]), options(pcie="5")).notes == ()


def test_nics_by_name() -> None:
    """NICs may have different speeds; those that --nic does not name are left out aloud."""
    topology = read(SWITCHED, options("A100", "100Gb/s=mlx5_1"))
    assert names(topology, Kind.NIC) == ["mlx5_1"]
    assert topology.notes[0] == "--nic does not name mlx5_0: left out"
    both = read(SWITCHED, options("A100", "100Gb/s=mlx5_1;400Gb/s"))
    assert [node.ports for node in both.nodes if node.kind is Kind.NIC] == [(50e9,), (12.5e9,)]


def test_cpu_is_the_rate_between_sockets() -> None:
    """--cpu takes the place of the assumption, and its source says so."""
    topology = read(SWITCHED, options("A100", "200Gb/s", cpu="320Gb/s"))
    assert links(topology)["cpu0", "cpu1"] == links(topology)["cpu1", "cpu0"] == 40.0
    assert "between CPU sockets, 40 GB/s; from --cpu" in {link.source for link in topology.links}
    assert topology.notes == ("PCIe Gen4 is assumed for 7 PCIe links (that of A100); give --pcie if it is another",)


def test_legend_names_the_nics() -> None:
    """NIC0 gets the name of the NIC legend, and --nic accepts either."""
    text = "\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tPIX\t X \n\nNIC Legend:\n\n  NIC0: mlx5_bond_0\n"
    assert names(read(text, options(nic="25Gb/s")), Kind.NIC) == ["mlx5_bond_0"]
    assert names(read(text, options(nic="25Gb/s=mlx5_bond_0")), Kind.NIC) == ["mlx5_bond_0"]


def test_direct_links() -> None:
    """NV# that sum to no more than a GPU's links are direct."""
    topology = read(matrix(["X NV2 SYS", "NV2 X NV4", "SYS NV4 X"]), options("V100"))
    found = links(topology)
    assert (found["gpu0", "gpu1"], found["gpu1", "gpu2"]) == (50.0, 100.0)
    assert not names(topology, Kind.SWITCH)


def test_a_degraded_gpu_on_a_switch() -> None:
    """A GPU whose whole row shows fewer links has fewer; the others keep theirs, and it is reported."""
    topology = read(matrix(["X NV18 NV16", "NV18 X NV16", "NV16 NV16 X"], "000"), options("H100", pcie="5"))
    found = links(topology)
    assert [found[f"gpu{i}", "nvswitch"] for i in range(3)] == [450.0, 450.0, 400.0]
    assert topology.notes == ("GPU2: 16 NVLinks where the best GPU has 18; check for failed links",)


def test_a_gpu_without_nvlink() -> None:
    """One that fell off the switch is named."""
    topology = read(
        matrix(["X NV18 NODE NV18", "NV18 X NODE NV18", "NODE NODE X NODE", "NV18 NV18 NODE X"]), options("H100")
    )
    assert topology.notes[0] == "GPU2: no NVLink where the best GPU has 18; check for failed links"


def test_impossible_nvlinks() -> None:
    """More links than the model has, or sums that need a switch without being all-to-all, are refused."""
    assert refusal(matrix(["X NV18", "NV18 X"]), options("V100")) == (
        "f: GPU0 shows NV18 to GPU1 but one V100 has 6 NVLinks; check --gpu"
    )
    assert refusal(matrix(["X NV4 NV4", "NV4 X SYS", "NV4 SYS X"]), options("V100")) == (
        "f: the NV# of GPU0 sum to 8, more than the 6 NVLinks of one V100, which takes an NVSwitch, but GPU1 and GPU2 are "
        "not joined by NVLink; check --gpu, and that the matrix is complete"
    )


def test_pcie_classes() -> None:
    """PIX is one switch, PXB a switch above, PHB and NODE one CPU, SYS another one."""
    rows = [
        "X PIX PXB NODE SYS",
        "PIX X PXB NODE SYS",
        "PXB PXB X NODE SYS",
        "NODE NODE NODE X SYS",
        "SYS SYS SYS SYS X",
    ]
    found = links(read(matrix(rows), options(pcie="Gen4")))
    assert {pair for pair in found if pair[0] < pair[1]} == {
        ("gpu0", "pci1"),
        ("gpu1", "pci1"),
        ("pci0", "pci1"),
        ("gpu2", "pci0"),
        ("cpu0", "pci0"),
        ("cpu0", "gpu3"),
        ("cpu1", "gpu4"),
        ("cpu0", "cpu1"),
    }


def test_contradictory_classes() -> None:
    """A closer class than NUMA affinity allows, or one that is not transitive, is taken and reported."""
    rows = ["X NV18 PIX SYS", "NV18 X SYS SYS", "PIX SYS X NV18", "SYS SYS NV18 X"]
    topology = read(matrix(rows, "0011"), options("H100", pcie="5"))
    assert names(topology, Kind.CPU) == ["cpu0"]
    assert topology.notes == (
        "GPU0 and GPU2 are PIX although on NUMA nodes 0 and 1: contradictory, the closer class is taken",
        "GPU0 and GPU3 are SYS although other pairs put them on one NUMA node (and 2 more such pairs): contradictory, the "
        "closer class is taken",
    )


def test_affinity_where_nvlink_hides_the_class() -> None:
    """NUMA nodes come from the affinity columns; without them all GPUs are put on one, aloud."""
    rows = ["X NV12 NV12", "NV12 X NV12", "NV12 NV12 X"]
    assert names(read(matrix(rows, "011"), options("A100")), Kind.CPU) == ["cpu0", "cpu1"]
    topology = read(matrix(rows), options("A100"))
    assert names(topology, Kind.CPU) == ["cpu0"]
    assert topology.notes[0] == (
        "neither PCIe class nor affinity is shown for GPU0, GPU1, GPU2: put on the first NUMA node"
    )


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("\t", "    "),
        lambda text: "".join(f"# {line}\n" for line in text.splitlines()),
        lambda text: "$ nvidia-smi topo -m\n" + text + "```\nNUMA 0\n",
        lambda text: "\x1b[4m" + text.replace("\n", "\x1b[0m\n", 1),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text[text.index("GPU0\t X") :],
        lambda text: text.replace(" X ", "X"),
        lambda text: text.replace("SYS", "SOC"),
        lambda text: text + "\n" + text,
        lambda text: text[: text.index("mlx5_0\tPIX")],
    ],
    ids=[
        "spaces",
        "commented",
        "prompt",
        "coloured",
        "crlf",
        "headless",
        "narrow-x",
        "old-names",
        "twice",
        "no-nic-rows",
    ],
)
def test_pastes_of_one_matrix_read_the_same(edit: object) -> None:
    """Whatever a paste did to it, the fabric is the one of the untouched matrix."""
    topology = read(edit(SWITCHED), A100)  # type: ignore[operator]
    assert (topology.nodes, topology.links) == ((whole := read(SWITCHED, A100)).nodes, whole.links)


def test_utf16_from_a_redirect() -> None:
    """What PowerShell writes is read too."""
    assert read(SWITCHED.encode("utf-16"), A100).links == read(SWITCHED, A100).links


def test_missing_nic_rows_are_said() -> None:
    """The GPU rows suffice, but it is reported."""
    notes = read(SWITCHED[: SWITCHED.index("mlx5_0\tPIX")], A100).notes
    assert notes[-1] == "rows mlx5_0, mlx5_1 are missing; the rows of the GPUs have what is needed"


def test_one_missing_gpu_row_is_known_from_the_others() -> None:
    """A single missing row loses nothing; two lose the pair between them."""
    lines = matrix(["X PHB SYS", "PHB X SYS", "SYS SYS X"]).splitlines()
    assert len(read("\n".join(lines[:3])).ranks) == 3
    assert refusal("\n".join(lines[:2])) == (
        "f:1: rows of 2 of 3 GPUs are missing or cut off (GPU1, GPU2), so the classes of 1 of 3 GPU pairs are unknown; "
        "paste the whole output of nvidia-smi topo -m"
    )


def test_cut_off_nic_columns() -> None:
    """GPU rows without their NIC cells are refused unless the NIC rows have them."""
    lines = ["GPU0 GPU1 mlx5_0", "GPU0 X PHB", "GPU1 PHB X"]
    assert refusal("\n".join(lines), options(nic="25Gb/s")) == (
        "f:1: rows of 2 of 2 GPUs are missing or cut off (GPU0, GPU1), so the classes of 2 GPU-NIC pairs are unknown; "
        "paste the whole output of nvidia-smi topo -m"
    )
    assert len(read("\n".join([*lines, "mlx5_0 PHB SYS X"]), options(nic="25Gb/s")).nodes) == 4


PEERS = "  GPU0  GPU1\nGPU0  X  GNS\nGPU1  GNS  X\n"


def test_peer_access_matrix() -> None:
    """topo -p2p has no classes: refused alone, a note beside a real matrix."""
    assert refusal(PEERS) == (
        "f:1: a peer-access matrix (topo -p2p) has no link classes; paste the output of nvidia-smi topo -m"
    )
    assert read(matrix(["X PHB", "PHB X"]) + PEERS, options(pcie="5")).notes == (
        "the topo -p2p matrix says GNS: GPUs without peer access exchange data through host memory",
    )


def test_hidden_nvlink() -> None:
    """topo -mp hides NVLink: the model is needed, its wiring is assumed, and both are said."""
    hidden = "$ nvidia-smi topo -mp\n" + matrix(["X SYS", "SYS X"])
    assert refusal(hidden) == (
        "f:2: the matrix does not say whether its GPUs have NVLinks (topo -mp hides them); "
        "give the output of topo -m, or --gpu MODEL (such as H100 or MI300X)"
    )
    topology = read(hidden, options("A100", pcie="4"))
    assert links(topology)["gpu0", "nvswitch"] == 300.0
    assert topology.notes[:2] == (
        "topo -mp hides NVLink: prefer the output of topo -m",
        "the NVLinks are not in the input: all 2 A100 are assumed on one NVSwitch, with 12 links each",
    )
    legend = matrix(["X SYS", "SYS X"]) + "Legend:\n  PIX  = Connection traversing at most a single PCIe bridge\n"
    assert refusal(legend).startswith("f:1: the matrix does not say whether its GPUs have NVLinks")
    assert read(hidden, options("T4", pcie="3")).notes[0] == "topo -mp hides NVLink: prefer the output of topo -m"


def test_no_nvlink_shown() -> None:
    """A model that has NVLinks beside a matrix that shows none is taken as it is, aloud."""
    assert read(matrix(["X SYS", "SYS X"]), options("A100")).notes[0] == (
        "the matrix shows no NVLink although A100 has 12: taken as it is, PCIe only"
    )


def test_one_visible_gpu() -> None:
    """A job that sees one GPU imports, with a warning."""
    text = "\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-3\t0,8,252-255\n"
    topology = read(text, options(pcie="3"))
    assert (len(topology.ranks), names(topology, Kind.CPU)) == (1, ["cpu0"])
    assert topology.notes == (
        "one GPU is visible (a job or container may hide others): there is nothing to plan inside the box",
    )


BAD = [
    (
        matrix(["X NV1", "NV2 X"]),
        "f:2: row GPU0 says NV1 for GPU1 but row GPU1 says NV2 for GPU0; the matrix is the same read by rows or by columns: "
        "paste it again",
    ),
    (
        matrix(["PHB X", "PHB X"]),
        "f:2: row GPU0 has PHB in column GPU0, but X belongs in column GPU0 and only there; rows and columns do not match: "
        "paste the whole output, header included",
    ),
    (
        matrix(["X PHB SYS", "PHB X SYS"], header=False),
        "f:1: row GPU0 has 3 cells but there are 2 rows, and no header; paste the whole output, header included",
    ),
    (
        matrix(["X PHB SYS", "PHB X"]),
        "f:2: row GPU0 has 3 cells but there are 2 columns; paste the whole output, header included",
    ),
    ("GPU0 GPU1\nGPU0 X PHB\nGPU7 PHB X\n", "f:3: row GPU7 has no column of that name; paste the whole output"),
    ("GPU0 GPU0\nGPU0 X PHB\n", "f:1: the matrix names a device twice in its header"),
    ("mlx5_0 X PIX\nmlx5_1 PIX X\n", "f:1: the matrix has no GPU; paste the output of nvidia-smi topo -m"),
    (
        matrix(["X PHB", "PHB X"]) + matrix(["X SYS", "SYS X"]),
        "f:4: a second matrix that differs from that in line 1; keep the one of the machine that you mean",
    ),
    (
        " ".join(f"GPU{i}" for i in range(300)) + "\nGPU0 X PHB\n",
        "f:1: the matrix has 300 columns; at most 256 are read",
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=range(len(BAD)))
def test_bad_matrices(text: str, message: str) -> None:
    """Each says what is wrong and in which line."""
    assert refusal(text) == message


def test_prose_is_no_matrix() -> None:
    """Text about GPUs is not taken for one."""
    assert sniff(b"GPU0 and GPU1 are joined by NV4\nGPU0: X\n") is None
    assert refusal("hello") == (
        "f: the format is not recognised; dualcoll reads NCCL or RCCL topology XML, rocm-smi --showtopo, nvidia-smi topo -m, "
        "TACCL topologies, TE-CCL inputs and its own YAML and JSON"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (options(gpu="A100", nic="200"), "--nic: bandwidth '200' has no unit; write it with its unit, such as"),
        (options("A100", "1Gb/s", cpu="fast"), "--cpu: cannot read bandwidth 'fast'; write it with its unit, such as"),
        (
            options("A100", "1Gb/s=mlx5_1,mlx5_7,eth0"),
            "--nic: no NIC is called 'mlx5_7', 'eth0'; there are mlx5_0, mlx5_1",
        ),
        (
            options("A100=GPU0,gpu1", "1Gb/s"),
            "--gpu: the matrix says itself which devices are the GPUs, but 'gpu0, gpu1' are named; give --gpu 'A100'",
        ),
        (options(gpu="A100", nic="1Gb/s;2Gb/s"), "--nic: it gives two speeds for every NIC"),
        (options(gpu="A100", nic="1Gb/s=a,a"), "--nic: a device is named twice in '1Gb/s=a,a'"),
        (options(gpu="A100", nic="1Gb/s=a;2Gb/s=a"), "--nic: NIC a is named twice"),
        (options(gpu="A100=,", nic="1Gb/s"), "--gpu: an empty name in 'A100=,'; separate names by single commas"),
        (options(gpu="X1", nic="1Gb/s"), "--gpu: GPU model 'X1' is not known; the known ones are V100, A100"),
        (
            options(gpu="A100", nic="1Gb/s", pcie="fast"),
            '--pcie: cannot read PCIe generation \'fast\'; write "Gen4", or "Gen4 x8" if the links are not x16',
        ),
    ],
)
def test_bad_flags(flags: object, message: str) -> None:
    """An unusable flag is named with its value."""
    assert refusal(SWITCHED, flags).startswith(f"f: {message}")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("flags", "note"),
    [
        (options(nic="1Gb/s"), "--nic 1Gb/s changed nothing: the matrix has no NIC"),
        (options(cpu="40GB/s"), "--cpu 40GB/s changed nothing: all devices are on one CPU"),
        (
            options("T4", pcie="Gen3"),
            "--gpu T4 changed nothing: the matrix shows no NVLink, and --pcie says the PCIe generation",
        ),
    ],
)
def test_flags_that_change_nothing(flags: ImportOptions, note: str) -> None:
    """A flag that nothing used is noted, with the reason."""
    assert flag_notes(read(matrix(["X PHB", "PHB X"]), flags)) == [note]


def test_a_nic_of_two_names() -> None:
    """--nic may not give one NIC two speeds by its two names."""
    text = "\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tPIX\t X \n\nNIC Legend:\n\n  NIC0: mlx5_0\n"
    assert refusal(text, options(nic="1Gb/s=NIC0;2Gb/s=mlx5_0")) == "f: --nic: nic0 and mlx5_0 are the same NIC"
