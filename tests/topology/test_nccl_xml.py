"""NCCL and RCCL topology XML."""

from __future__ import annotations

import re

import pytest

from dualcoll.topology.devices import Rates
from dualcoll.topology.importers import ImportOptions
from dualcoll.topology.model import Kind
from tests.topology.imported import fixture, flag_notes, links, names, options, read, refusal

FULL = fixture("nccl_full.xml").decode()
SKELETON = fixture("nccl_skeleton.xml").decode()
TRAYS = fixture("nccl_trays.xml").decode()
RING = fixture("rccl_ring.xml").decode()
BUSIDS = fixture("nccl_busids.xml").decode()

ONE_GPU = (
    '<system version="1"><cpu numaid="0" arch="arm64"><pci busid="1:0.0" link_speed="8 GT/s" link_width="16">'
    '<gpu sm="80" rank="0"/></pci></cpu></system>'
)


def test_full_dump_nodes() -> None:
    """GPUs come in rank order, NVSwitch chips are one switch, a device is no extra node, and a useless entry is dropped."""
    topology = read(FULL)
    assert [(node.name, node.kind.value) for node in topology.nodes] == [
        ("gpu0", "gpu"),
        ("gpu1", "gpu"),
        ("gpu2", "gpu"),
        ("cpu0", "cpu"),
        ("cpu1", "cpu"),
        ("pci:0000:10:00.0", "pci"),
        ("mlx5_0+mlx5_1", "nic"),
        ("pci:0000:20:00.0", "pci"),
        ("eth0", "nic"),
        ("nvswitch", "switch"),
    ]
    assert {node.box for node in topology.nodes} == {"host0"}
    assert {node.name: node.ports for node in topology.nodes if node.ports} == {
        "mlx5_0+mlx5_1": (50e9, 25e9),
        "eth0": (1.25e9,),
    }


def test_full_dump_links() -> None:
    """Each link has the nominal rate of what the file says, both ways."""
    found = links(read(FULL))
    assert found == found | {(b, a): rate for (a, b), rate in found.items()}
    one_way = {pair: rate for pair, rate in found.items() if pair[0] < pair[1]}
    assert one_way == {
        ("gpu0", "pci:0000:10:00.0"): 63.0,
        ("gpu1", "pci:0000:10:00.0"): 63.0,
        ("gpu2", "pci:0000:20:00.0"): 63.0,
        ("mlx5_0+mlx5_1", "pci:0000:10:00.0"): 63.0,
        ("cpu0", "pci:0000:10:00.0"): 63.0,
        ("cpu1", "pci:0000:20:00.0"): 63.0,
        ("cpu1", "eth0"): 5000.0,
        ("cpu0", "cpu1"): 22.0,
        ("gpu0", "nvswitch"): 450.0,
        ("gpu1", "nvswitch"): 450.0,
        ("gpu2", "nvswitch"): 450.0,
    }


def test_full_dump_notes() -> None:
    """What looks wrong in it is said: an excerpt, a port without speed, ports that exceed their PCIe link."""
    assert read(FULL).notes == (
        "the file has 3 of 8 GPUs of a box with NVSwitch: it looks like an excerpt",
        "net speed unknown, 10 Gb/s taken as NCCL does: eth0; give --nic",
        "the ports of a NIC together exceed its PCIe link: mlx5_0+mlx5_1 (75 GB/s of ports on 63 GB/s of PCIe)",
    )


def test_nccl_rates() -> None:
    """With NCCL's figures, Intel host bridges charge GPU traffic 6/5 and leave the links as they are."""
    topology = read(FULL, options(rates=Rates.NCCL))
    found = links(topology)
    assert found["gpu0", "nvswitch"] == 370.8
    assert found["gpu0", "pci:0000:10:00.0"] == 48.0
    assert found["pci:0000:10:00.0", "cpu0"] == 48.0
    charged = {topology.describe_link(row.links[0]): row.capacity / 1e9 for row in topology.shared}
    assert charged == {
        "pci:0000:10:00.0 -> cpu0": 40.0,
        "cpu0 -> pci:0000:10:00.0": 40.0,
        "pci:0000:20:00.0 -> cpu1": 40.0,
        "cpu1 -> pci:0000:20:00.0": 40.0,
    }


SAYS_ALL = FULL.replace('speed="0"', 'speed="1000"')


@pytest.mark.parametrize(
    ("text", "flags", "note"),
    [
        (
            SAYS_ALL,
            options("V100"),
            "--gpu V100 changed nothing: the file says itself what its 3 GPUs are (sm90)",
        ),
        (
            ONE_GPU.replace('sm="80" ', ""),
            options("V100"),
            "--gpu V100 changed nothing: the file has no GPU links and says the speed of every PCIe link itself",
        ),
        (
            SAYS_ALL,
            options(nic="100Gb/s"),
            "--nic 100Gb/s changed nothing: the file says the speed of its 3 network ports itself",
        ),
        (ONE_GPU, options(nic="100Gb/s"), "--nic 100Gb/s changed nothing: the file has no NIC"),
        (
            SAYS_ALL,
            options(pcie="Gen3"),
            "--pcie Gen3 changed nothing: the file says the speed of every PCIe link itself",
        ),
        (
            SAYS_ALL,
            options(cpu="40GB/s"),
            "--cpu 40GB/s changed nothing: the file says itself what its CPUs are",
        ),
        (
            ONE_GPU,
            options(cpu="40GB/s"),
            "--cpu 40GB/s changed nothing: the file has no two CPUs in one host",
        ),
    ],
)
def test_flags_that_change_nothing(text: str, flags: ImportOptions, note: str) -> None:
    """What the file says wins; a flag that nothing used leaves one note, and the links as they are."""
    topology = read(text, flags)
    assert flag_notes(topology) == [note]
    assert topology.links == read(text).links


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        (
            ONE_GPU,
            options("A100=1:0.0,2:0.0,3:0.0"),
            "--gpu: no GPU has busid '2:0.0', '3:0.0'; there are 1:0.0",
        ),
        (
            FULL,
            options(nic="1Gb/s=eth0,eth1"),
            "--nic: no NIC is called 'eth1'; there are mlx5_0, mlx5_1, mlx5_0+mlx5_1, 0000:13:00.0, eth0",
        ),
    ],
)
def test_devices_that_are_not_there(text: str, flags: ImportOptions, message: str) -> None:
    """A flag that names a device which the file does not have is refused, with those that it has."""
    assert refusal(text, flags) == f"f: {message}"


def test_flags_used_for_a_part() -> None:
    """A flag that something uses leaves alone what the file says, aloud."""
    topology = read(FULL, options(nic="100Gb/s"))
    assert [node.ports for node in topology.nodes if node.ports] == [(50e9, 25e9), (12.5e9,)]
    assert flag_notes(topology) == ["--nic is used only for ports whose speed the file does not say"]
    topology = read(ONE_GPU.replace("8 GT/s", "Unknown"), options("V100"))
    assert links(topology)["gpu0", "cpu0"] == 15.75
    assert flag_notes(topology) == []
    topology = read(SAYS_ALL.replace("32.0 GT/s PCIe", "Unknown"), options("V100"))
    assert flag_notes(topology) == ["--gpu is not used for GPU links: the file says what its GPUs are"]


def test_cpu_is_the_rate_between_unknown_sockets() -> None:
    """--cpu takes the place of both the assumed rate and NCCL's, but not of a CPU's that the file names."""
    gpus, cpu = "A10G=0000:00:16.0,0000:00:18.0", "40GB/s"
    for rates in Rates:
        topology = read(BUSIDS, options(gpus, rates=rates, cpu=cpu))
        assert links(topology)["cpu0", "cpu1"] == links(topology)["cpu1", "cpu0"] == 40.0
        assert not any("CPUs" in note for note in topology.notes)
    assert links(read(BUSIDS, options(gpus, rates=Rates.NCCL)))["cpu0", "cpu1"] == 5000.0
    third = BUSIDS.replace("</system>", '<cpu numaid="2" arch="ppc64"/></system>')
    found = links(read(third, options(gpus, cpu=cpu)))
    assert (found["cpu0", "cpu1"], found["cpu0", "cpu2"]) == (40.0, 32.0)


def test_a_width_of_zero() -> None:
    """No lanes are sixteen, as in NCCL, aloud; --pcie may say them."""
    topology = read(ONE_GPU.replace('link_width="16"', 'link_width="0"'))
    assert links(topology)["gpu0", "cpu0"] == 15.75
    assert topology.notes == ("link_width '0' (1 link) says nothing: x16 is taken, as NCCL does",)
    unknown = ONE_GPU.replace('link_width="16"', 'link_width="0"').replace("8 GT/s", "Unknown")
    topology = read(unknown, options(pcie="Gen3 x8"))
    assert links(topology)["gpu0", "cpu0"] == 7.875
    assert topology.notes == ()


def test_nics_of_a_skeleton_by_name_and_by_class() -> None:
    """A speed for all takes in every NIC class beside the ones that are named."""
    text = skeleton(2).replace("</cpu>", '<pci busid="8:0.0" class="0x020700"/><pci busid="9:0.0"/></cpu>')
    both = read(text, options("A100", "100Gb/s;25Gb/s=9:0.0"))
    assert [node.ports for node in both.nodes if node.kind is Kind.NIC] == [(12.5e9,), (3.125e9,)]
    assert len(names(read(text, options("A100", "25Gb/s=9:0.0")), Kind.NIC)) == 1


def test_a_model_for_named_gpus_only() -> None:
    """--gpu with bus ids says nothing of other GPUs."""
    text = RING.replace(' gcn="910"', "")
    first = re.findall(r'<pci busid="([^"]*)"[^>]*>\s*<gpu', text)[0]
    assert refusal(text, options(f"MI250X={first}")).endswith("give --gpu MODEL (such as H100 or MI300X)")


def test_skeleton_needs_model_and_speed() -> None:
    """Both flags are named at once, with what was found."""
    assert refusal(SKELETON) == (
        "f: the file does not say the model of its 2 GPUs (class 0x0302) nor the speed of its 1 NIC (class 0x0207); "
        "give --gpu MODEL (such as H100 or MI300X) and --nic SPEED (such as 400Gb/s)"
    )
    assert refusal(SKELETON, options(gpu="A100")) == (
        "f: the file does not say the speed of its 1 NIC (class 0x0207); give --nic SPEED (such as 400Gb/s)"
    )
    assert refusal(SKELETON, options(nic="200Gb/s")) == (
        "f: the file does not say the model of its 2 GPUs (class 0x0302); give --gpu MODEL (such as H100 or MI300X)"
    )


def test_skeleton_with_flags() -> None:
    """NVLinks come from the model, speeds are read however they are spelled, and each assumption is said."""
    topology = read(SKELETON, options("A100", "200Gb/s"))
    found = links(topology)
    assert found["gpu0", "nvswitch"] == 300.0
    assert found["gpu0", "pci:ffff:ff:01.0"] == found["gpu1", "pci:ffff:ff:01.0"] == 31.5
    assert found["nic0", "pci:ffff:ff:01.0"] == 15.75
    assert topology.nodes[topology.index["nic0"]].ports == (25e9,)
    assert topology.notes == (
        "the NVLinks are not in the input: all 2 A100 are assumed on one NVSwitch, with 12 links each",
        "the ports of a NIC together exceed its PCIe link: nic0 (25 GB/s of ports on 15.75 GB/s of PCIe)",
        "link_speed '16.0 GT/s' (1 link) is PCIe Gen4 and is taken as such, but NCCL itself reads it as Gen3 and counts "
        "12 GB/s for x16",
        "PCIe Gen4 is assumed for 1 PCIe link (that of A100); give --pcie if it is another",
    )
    assert links(read(SKELETON, options("A100", "200Gb/s", "Gen5")))["nic0", "pci:ffff:ff:01.0"] == 31.5
    assert links(read(SKELETON, options("A100", "200Gb/s", "gen3 x8")))["nic0", "pci:ffff:ff:01.0"] == 7.875


def skeleton(count: int) -> str:
    pcis = "".join(f'<pci busid="{i}:0.0" class="0x030200" link_speed="8 GT/s" link_width="16"/>' for i in range(count))
    return f'<system version="1"><cpu numaid="0" arch="arm64">{pcis}</cpu></system>'


def test_eight_v100_are_a_cube_mesh() -> None:
    """The DGX-1 wiring, six links a GPU, is assumed aloud; sixteen are a DGX-2; another number is refused."""
    topology = read(skeleton(8), options("V100"))
    found = links(topology)
    assert [sum(r for (a, b), r in found.items() if a == f"gpu{i}" and b != "cpu0") for i in range(8)] == [150.0] * 8
    assert found["gpu0", "gpu4"] == 50.0
    assert ("gpu0", "gpu5") not in found
    assert topology.notes == (
        "the NVLinks are not in the input: a hybrid cube mesh (DGX-1) in GPU order is assumed for the 8 V100",
    )
    assert links(read(skeleton(16), options("V100")))["gpu15", "nvswitch"] == 150.0
    assert refusal(skeleton(4), options("V100")) == (
        "f: how the NVLinks of 4 V100 run is not known; import what NCCL or RCCL writes to NCCL_TOPO_DUMP_FILE on that "
        "machine, which lists them"
    )


def test_other_models_in_a_skeleton() -> None:
    """A full mesh for MI300X, bridges left out aloud, no links where there are none, refusal where boxes differ."""
    found = links(read(skeleton(8), options("MI300X")))
    assert found["gpu0", "gpu7"] == 64.0
    assert read(skeleton(2), options("A100 PCIe")).notes[0].startswith("A100 PCIes may be joined by NVLink bridges")
    assert read(skeleton(2), options("L40S")).notes == ()
    assert refusal(skeleton(8), options("MI250X")).startswith("f: how the XGMI links of 8 MI250X run is not known")


def test_bus_ids_alone_have_to_be_named() -> None:
    """Without classes the flags must say which entries are what; then PCIe and CPUs are assumed aloud."""
    assert refusal(BUSIDS, options("A10G", "100Gb/s")) == (
        "f: no PCI device has the class of a GPU, so which are the GPUs is not said (0000:00:16.0, 0000:00:17.0, "
        '0000:00:18.0); name them: --gpu "MODEL=busid,busid" and --nic "SPEED=busid,busid"'
    )
    gpus = "A10G=0000:00:16.0,0000:00:18.0"
    assert refusal(BUSIDS, options(gpus, "100Gb/s")) == (
        "f: --nic is given but no PCI device has the class of a NIC; "
        'name them: --gpu "MODEL=busid,busid" and --nic "SPEED=busid,busid"'
    )
    assert refusal(BUSIDS, options("A10G=0000:00:99.0")) == (
        "f: --gpu: no PCI device has busid '0000:00:99.0'; there are 0000:00:16.0, 0000:00:17.0, 0000:00:18.0"
    )
    assert refusal(BUSIDS, options(gpus, "100Gb/s=0000:00:16.0")) == (
        "f:3: busid 0000:00:16.0 is named as a GPU and as a NIC"
    )
    topology = read(BUSIDS, options(gpus, "100Gb/s=0000:00:17.0"))
    assert names(topology, Kind.GPU) == ["gpu0", "gpu1"]
    assert links(topology)["gpu0", "cpu0"] == 31.5
    assert topology.nodes[topology.index["nic0"]].ports == (12.5e9,)
    assert topology.notes == (
        "the input does not say what its CPUs are: between unknown processors, 16 GB/s assumed (what NCCL counts for AMD "
        "EPYC); give --cpu RATE if it is another",
        "PCIe Gen4 is assumed for 3 PCIe links (that of A10G); give --pcie if it is another",
    )


def test_trays_with_equal_bus_ids() -> None:
    """Hosts are told apart by their hash, share one NVSwitch that is in no box, and a GPU without NVLink is named."""
    topology = read(TRAYS, options(rates=Rates.NCCL))
    assert names(topology, Kind.GPU) == ["host0/gpu0", "host0/gpu1", "host1/gpu2"]
    assert [node.box for node in topology.nodes if node.kind in (Kind.GPU, Kind.SWITCH)] == [
        "host0",
        "host0",
        "host1",
        None,
    ]
    found = links(topology)
    assert found["host0/gpu0", "nvswitch"] == 721.8
    assert ("host1/gpu2", "nvswitch") not in found
    assert found["host1/cpu0", "host1/gpu2"] == 96 + 223.56
    assert ("host0/cpu0", "host1/cpu0") not in found
    assert topology.notes == (
        "rank 2 (host1/gpu2) has no NVLinks while the other 2 have 18 each: NCCL drops links whose query fails without a "
        "word, so check them",
    )


def test_visible_chips_are_a_switch_per_host() -> None:
    """NVSwitch chips that a host sees are its own."""
    text = TRAYS.replace("fffffff:ff:ff.0", "0000:07:00.0")
    topology = read(text)
    assert [(node.name, node.box) for node in topology.nodes if node.kind is Kind.SWITCH] == [
        ("host0/nvswitch", "host0")
    ]


def test_xgmi() -> None:
    """XGMI is directed as listed with RCCL's figures; what has no reverse, and unequal GPUs, are reported."""
    topology = read(RING, options(rates=Rates.NCCL))
    found = links(topology)
    assert found["gpu0", "gpu1"] == found["gpu1", "gpu0"] == 144.0
    assert found["gpu1", "gpu2"] == 36.0
    assert ("gpu2", "gpu1") not in found
    assert topology.notes == (
        "the file lists 1 link from gpu1 to gpu2 but none back: taken as one-way, as NCCL does",
        "rank 2 (gpu2) has 1 XGMI link, others 5",
    )


def test_two_ranks_on_one_device() -> None:
    """Partitions get half of the NVLinks each and share the C2C link; their common PCIe entry is a node."""
    gpu = '<gpu sm="107" mlopart="{0}" rank="{0}"><nvlink target="fffffff:ff:ff.0" count="36" tclass="0x068000"/>'
    gpu += '<c2c bw="50000" count="7"/></gpu>'
    text = ONE_GPU.replace('<gpu sm="80" rank="0"/>', gpu.format(0) + gpu.format(1))
    topology = read(text, options(rates=Rates.NCCL))
    found = links(topology)
    assert found["gpu0", "nvswitch"] == found["gpu1", "nvswitch"] == 721.8
    assert found["gpu0", "cpu0"] == 350.0
    assert found["gpu0", "gpu1"] == 2618.0
    assert found["gpu0", "pci:1:0.0"] == 12.0
    assert [(len(row.links), row.capacity) for row in topology.shared] == [(2, 350e9), (2, 350e9)]
    assert topology.notes == ("ranks 0, 1 share one device: each counts its part of the links",)


def test_nvlink_to_a_cpu_and_to_nowhere() -> None:
    """A bridge target (0x068001) is the GPU's own CPU; a target that is not there is reported."""
    links_of = '<gpu sm="70" rank="0"><nvlink target="9:0.0" count="3" tclass="0x068001"/>'
    links_of += '<nvlink target="8:0.0" count="1" tclass="0x030200"/></gpu>'
    topology = read(ONE_GPU.replace('<gpu sm="80" rank="0"/>', links_of))
    assert links(topology) == {("gpu0", "cpu0"): 90.75, ("cpu0", "gpu0"): 90.75}
    assert topology.notes == ("links to what is not in the file are left out: gpu0 to 8:0.0 (line 1)",)


def test_direct_links_between_pcie_switches() -> None:
    """A pcilink is a link, one way as listed; one that leads nowhere is reported, and a cycle of them is a graph."""
    device = '<pci busid="{0}:1.0" link_speed="8 GT/s" link_width="16"><gpu sm="80" rank="{0}"/></pci>'
    switch = '<pci busid="{0}:0.0" link_speed="8 GT/s" link_width="16"><pcilink target="{1}:0.0"/>' + device + "</pci>"
    pcis = switch.format(0, 1) + switch.format(1, 0) + switch.format(2, 7)
    topology = read(f'<system version="1"><cpu numaid="0" arch="arm64">{pcis}</cpu></system>')
    found = links(topology)
    assert found["pci:0:0.0", "pci:1:0.0"] == found["pci:1:0.0", "pci:0:0.0"] == 5000.0
    assert topology.notes == ("pcilink to '7:0.0' (line 1) leads to no other switch with devices",)


def test_an_idle_gpu_reads_gen1() -> None:
    """Gen1 on a GPU is kept and pointed out, and --pcie replaces it."""
    text = ONE_GPU.replace("8 GT/s", "2.5 GT/s PCIe")
    topology = read(text)
    assert links(topology)["gpu0", "cpu0"] == 4.0
    assert topology.notes == (
        "the PCIe link of gpu0 reads Gen1, as that of an idle GPU does: the value is kept; give --pcie to replace it",
    )
    assert links(read(text, options(pcie="Gen5")))["gpu0", "cpu0"] == 63.0


@pytest.mark.parametrize("speed", ["", "Unknown", "nonsense", "12 GT/s"])
def test_a_speed_that_says_nothing_is_assumed_aloud(speed: str) -> None:
    """Gen3, as NCCL assumes, unless the model or --pcie says more."""
    text = ONE_GPU.replace("8 GT/s", speed)
    topology = read(text)
    assert links(topology)["gpu0", "cpu0"] == 15.75
    assert (
        topology.notes[-1] == "PCIe Gen3 is assumed for 1 PCIe link (what NCCL assumes); give --pcie if it is another"
    )
    assert len(topology.notes) == (1 if speed in ("", "Unknown") else 2)
    assert links(read(text, options(gpu="A100")))["gpu0", "cpu0"] == 31.5


@pytest.mark.parametrize(
    ("text", "generation"),
    [
        ("2.5 GT/s", 3),
        ("5.0 GT/s PCIe", 6),
        ("16.0 GT/s", 24),
        ("32 GT/s", 48),
        ("64 GT/s", 96),
        ("64.0 GT/s PCIe", 96),
    ],
)
def test_speeds_are_numbers(text: str, generation: float) -> None:
    """However NCCL's own prefix match would take it, the value as written counts."""
    topology = read(ONE_GPU.replace("8 GT/s", text), options(rates=Rates.NCCL))
    assert links(topology)["gpu0", "cpu0"] == generation
    assert any("NCCL itself reads it as Gen3" in note for note in topology.notes) == (text in ("16.0 GT/s", "64 GT/s"))


def test_devices_that_nobody_uses_are_reported() -> None:
    """In a full dump, GPU and NIC classes without their element are left out aloud; --nic takes the NICs in."""
    extra = '<pci busid="2:0.0" class="0x030200"/><pci busid="3:0.0" class="0x020000" link_speed="8 GT/s"/></cpu>'
    text = ONE_GPU.replace("</cpu>", extra)
    assert read(text).notes == (
        "GPU class without <gpu>, so not visible to who wrote the file, left out: 2:0.0",
        "NIC class without <nic>, left out (--nic SPEED takes them in): 3:0.0",
    )
    assert names(read(text, options(nic="25Gb/s")), Kind.NIC) == ["nic0"]


def test_net_speeds() -> None:
    """An implausible speed is kept and reported, or replaced; a missing one needs --nic."""
    nic = '<pci busid="3:0.0" link_speed="8 GT/s"><nic><net name="cxi0" speed="{}"/></nic></pci></cpu>'
    text = ONE_GPU.replace("</cpu>", nic.format(200000000))
    topology = read(text)
    assert topology.nodes[topology.index["cxi0"]].ports == (25e12,)
    assert topology.notes[0] == (
        "net speed implausible, such as cxi0 25 TB/s, on 1 port: kept as written; --nic SPEED replaces it"
    )
    assert read(text, options(nic="200Gb/s")).nodes[2].ports == (25e9,)
    assert refusal(ONE_GPU.replace("</cpu>", nic.format(""))) == (
        "f:1: <net> 'cxi0' has no speed; give --nic SPEED (such as 400Gb/s)"
    )


def test_missing_architecture_needs_the_model() -> None:
    """sm for NVLink and gcn for XGMI say what a link carries; without them --gpu does."""
    assert refusal(RING.replace(' gcn="910"', "")) == (
        "f:4: <gpu> has no gcn, so what its xgmi links carry is not known; give --gpu MODEL (such as H100 or MI300X)"
    )
    assert links(read(RING.replace(' gcn="910"', ""), options("MI250X")))["gpu0", "gpu1"] == 200.0
    assert refusal(TRAYS.replace(' sm="103"', "")).startswith("f:4: <gpu> has no sm, so what its nvlink links carry")


BAD = [
    ('<system version="3"/>', 'f:1: version \'3\' is not known; NCCL writes version="1" and RCCL version="2"'),
    ("<x><system/></x>", "f:1: the root element is <x>, not <system>"),
    ('<system version="1"/>', "f:1: it has no <cpu>, so nothing is connected"),
    ('<system version="1">\n<cpu', "f:2: the XML is broken: unclosed token"),
    (ONE_GPU.replace('busid="1:0.0"', ""), "f:1: a <pci> has no busid"),
    (
        ONE_GPU.replace('rank="0"', 'rank="x"'),
        "f:1: rank 'x' of <gpu> is not a whole number from -1 to 10000000",
    ),
    (
        ONE_GPU.replace('link_width="16"', 'link_width="99999999999999999999999"'),
        "f:1: link_width '99999999999999999999999' of <pci> is not a whole number from 0 to 32",
    ),
    (
        ONE_GPU.replace("</pci>", "</pci>\n<pci busid='1:0.0'/>"),
        "f:2: busid '1:0.0' is already used in line 1; a bus id is unique within its host; devices of different machines "
        "need different host_hash values",
    ),
    (
        ONE_GPU.replace("</cpu>", "</cpu>\n<cpu numaid='0'/>"),
        "f:2: numaid '0' is already that of the <cpu> in line 1; CPUs of different machines need different host_hash values",
    ),
    (
        ONE_GPU.replace("</cpu>", "<pci busid='2'>\n<gpu rank='0'/></pci></cpu>"),
        "f:2: rank 0 is already that of the <gpu> in line 1",
    ),
    (
        ONE_GPU.replace('rank="0"/>', 'rank="0"><nvlink target="1:0.0" tclass="0x030200"/></gpu>'),
        "f:1: a GPU has an nvlink to itself",
    ),
    (ONE_GPU.replace('rank="0"/>', 'rank="0"><c2c count="1"/></gpu>'), "f:1: a <c2c> has no bw; give MB/s per link"),
    (
        ONE_GPU.replace("<system", "<!DOCTYPE s [<!ENTITY a 'b'>]>\n<system"),
        "f:1: the XML has a document type or entities; neither is needed: remove the <!DOCTYPE ...> part",
    ),
    (
        '<system version="1">' + "<pci>" * 70,
        "f:1: the XML is too big: elements are nested deeper than 64",
    ),
    (
        '<system version="1">' + "<a/>\n" * 100_000,
        "f:100000: the XML is too big: it has more than 100000 elements",
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=range(len(BAD)))
def test_bad_files(text: str, message: str) -> None:
    """Each says what is wrong and in which line."""
    assert refusal(text) == message


def test_an_entity_bomb_is_refused() -> None:
    """It is refused at its first declaration, not expanded."""
    entities = "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(20))
    bomb = f'<!DOCTYPE s [<!ENTITY a0 "x">{entities}]><system version="1">&a20;</system>'
    assert refusal(bomb).startswith("f:1: the XML has a document type or entities")


def test_ranks_may_start_anywhere_or_be_absent() -> None:
    """Names keep the rank of the file; without ranks they count in file order."""
    assert names(read(re.sub('rank="', 'rank="1', FULL)), Kind.GPU) == ["gpu10", "gpu11", "gpu12"]
    topology = read(re.sub('rank="[0-9]" ', "", FULL))
    assert names(topology, Kind.GPU) == ["gpu0", "gpu1", "gpu2"]


def test_equal_names_are_told_apart() -> None:
    """Two NICs of one name in one host become two nodes."""
    text = FULL.replace('"eth0"', '"mlx5_0"').replace(
        '<net name="mlx5_1" dev="1" speed="200000" port="2" guid="0x1" gdr="1"/>', ""
    )
    assert names(read(text), Kind.NIC) == ["mlx5_0", "mlx5_0#2"]
