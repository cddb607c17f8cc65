"""Abstract boxes: GPUs, their links or box switch, and their network ports.

Numbers are nominal unless ``rates=nccl``; every link names where its number comes from (docs/catalogue.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

from dualcoll.topology.catalog.options import Entry, Option, bandwidth, choice, number, ratio
from dualcoll.topology.compose import Box, check_boxes, compose
from dualcoll.topology.devices import Rate, Rates, fabric_link
from dualcoll.topology.draft import BOX_LATENCY, Draft
from dualcoll.topology.model import Kind, Topology
from dualcoll.topology.networks import Network, NetworkKind
from dualcoll.units import parse_bandwidth

__all__ = ["BOXES", "NETWORK_OPTIONS", "single_box", "switched_box", "with_network"]

NETWORK_OPTIONS = (
    choice("network", "how boxes are cabled", "rail", tuple(NetworkKind)),
    number("spines", "switches above the leaves, of each plane (4)", most=4096),
    ratio("oversubscription", "capacity below a leaf over capacity above it (1)"),
    number("boxes_per_leaf", "boxes on one leaf, of network=leaf-spine (1)", most=4096),
    number("k", "switch ports, of network=fat-tree (the fewest that fit)", least=2, most=256),
    number("a", "routers of a group, of network=dragonfly (2p)", most=4096),
    number("p", "ports of a router, of network=dragonfly (the fewest that fit)", most=4096),
    number("h", "global links of a router, of network=dragonfly (p)", most=4096),
)


@dataclass(frozen=True, slots=True)
class _Model:
    """A GPU box.

    Attributes:
        arch: of its GPUs, which decides the rate of a link.
        links_from: who says how many links there are.
        nics: how many; NICs that are fewer than the GPUs are shared by equal runs of GPUs.
        nic: rate of each as text; nics_from: what it is, and who says so.
        width: links of every GPU to the one box switch; 0 if the GPUs are joined directly.
        lanes: links of each pair of GPUs that is joined directly, ``from-to:links``.
    """

    name: str
    summary: str
    gpus: int
    arch: str
    links_from: str
    nics: int
    nic: str
    nics_from: str
    width: int = 0
    lanes: str = ""


_CUBE_MESH = "0-1:1 0-2:1 0-3:2 0-4:2 1-2:2 1-3:1 1-5:2 2-3:2 2-6:1 3-7:1 4-5:1 4-6:1 4-7:2 5-6:2 5-7:1 6-7:2"
_MI250 = (
    "0-1:4 0-4:2 0-8:1 1-5:1 1-9:1 1-10:1 2-3:4 2-6:1 2-9:1 2-10:1 3-7:2 3-11:1 4-5:4 4-6:1 5-6:1 5-7:1 6-7:4 "
    "8-9:4 8-12:2 9-13:1 10-11:4 10-14:1 11-15:2 12-13:4 12-14:1 13-14:1 13-15:1 14-15:4"
)
_FULL_MESH = " ".join(f"{i}-{j}:1" for i, j in combinations(range(8), 2))
_MODELS = (
    _Model(
        name="dgx-1v",
        summary="8 V100 in a hybrid cube mesh of NVLinks, a 100 Gb/s NIC for two of them",
        gpus=8,
        arch="sm70",
        links_from="NVIDIA DGX-1 with Tesla V100 white paper",
        nics=4,
        nic="100Gb/s",
        nics_from="a 100 Gb/s NIC for two GPUs, nominal; NVIDIA DGX-1 with Tesla V100 white paper",
        lanes=_CUBE_MESH,
    ),
    _Model(
        name="dgx-2",
        summary="16 V100 around NVSwitch, a 100 Gb/s NIC for two of them",
        gpus=16,
        arch="sm70",
        links_from="NVIDIA DGX-2 datasheet",
        nics=8,
        nic="100Gb/s",
        nics_from="a 100 Gb/s NIC for two GPUs, nominal; NVIDIA DGX-2 datasheet",
        width=6,
    ),
    _Model(
        name="dgx-a100",
        summary="8 A100 around NVSwitch, a 200 Gb/s NIC each",
        gpus=8,
        arch="sm80",
        links_from="NVIDIA DGX A100 datasheet",
        nics=8,
        nic="200Gb/s",
        nics_from="a 200 Gb/s NIC for each GPU, nominal; NVIDIA DGX A100 datasheet",
        width=12,
    ),
    _Model(
        name="dgx-h100",
        summary="8 H100 around NVSwitch, a 400 Gb/s NIC each",
        gpus=8,
        arch="sm90",
        links_from="NVIDIA DGX H100 datasheet",
        nics=8,
        nic="400Gb/s",
        nics_from="a 400 Gb/s NIC for each GPU, nominal; NVIDIA DGX H100 datasheet",
        width=18,
    ),
    _Model(
        name="dgx-b200",
        summary="8 B200 around NVSwitch, a 400 Gb/s NIC each",
        gpus=8,
        arch="sm100",
        links_from="NVIDIA DGX B200 user guide",
        nics=8,
        nic="400Gb/s",
        nics_from="a 400 Gb/s NIC for each GPU, nominal; NVIDIA DGX B200 user guide",
        width=18,
    ),
    _Model(
        name="gb200-nvl72",
        summary="72 GB200 GPUs, 18 trays of 4, in one NVLink domain, a 400 Gb/s NIC each",
        gpus=72,
        arch="sm100",
        links_from="NVIDIA GB200 NVL72 datasheet",
        nics=72,
        nic="400Gb/s",
        nics_from="a 400 Gb/s NIC for each GPU, nominal; Azure ND GB200 v6 documentation (4 for each tray)",
        width=18,
    ),
    _Model(
        name="mi250",
        summary="8 MI250 of two GCDs (16 ranks) joined by XGMI, a 200 Gb/s NIC for each MI250",
        gpus=16,
        arch="gfx90a",
        links_from="AMD ROCm documentation of the MI250 (rate of a link)",
        nics=8,
        nic="200Gb/s",
        nics_from="a 200 Gb/s NIC for the two GCDs of an MI250, nominal; assumed, as in HPE Cray EX235a nodes",
        lanes=_MI250,
    ),
    _Model(
        name="mi300x",
        summary="8 MI300X, each joined to each by XGMI, a 400 Gb/s NIC each",
        gpus=8,
        arch="gfx942",
        links_from="AMD Instinct MI300X platform datasheet",
        nics=8,
        nic="400Gb/s",
        nics_from="a 400 Gb/s NIC for each GPU, nominal; AMD ROCm documentation of multi-node serving",
        lanes=_FULL_MESH,
    ),
    _Model(
        name="ndv2",
        summary="Azure NDv2: 8 V100 in a hybrid cube mesh of NVLinks, one 100 Gb/s NIC",
        gpus=8,
        arch="sm70",
        links_from="as in the DGX-1 with Tesla V100",
        nics=1,
        nic="100Gb/s",
        nics_from="one 100 Gb/s NIC for all eight GPUs, nominal; Azure NDv2 documentation",
        lanes=_CUBE_MESH,
    ),
    _Model(
        name="ndv4",
        summary="Azure ND A100 v4: 8 A100 around NVSwitch, a 200 Gb/s NIC each",
        gpus=8,
        arch="sm80",
        links_from="NVIDIA A100 datasheet",
        nics=8,
        nic="200Gb/s",
        nics_from="a 200 Gb/s NIC for each GPU, nominal; Azure ND A100 v4 documentation",
        width=12,
    ),
    _Model(
        name="ndv5",
        summary="Azure ND H100 v5: 8 H100 around NVSwitch, a 400 Gb/s NIC each",
        gpus=8,
        arch="sm90",
        links_from="NVIDIA H100 datasheet",
        nics=8,
        nic="400Gb/s",
        nics_from="a 400 Gb/s NIC for each GPU, nominal; Azure ND H100 v5 documentation",
        width=18,
    ),
    _Model(
        name="p4d",
        summary="AWS p4d.24xlarge: 8 A100 around NVSwitch, a 100 Gb/s EFA NIC for two of them",
        gpus=8,
        arch="sm80",
        links_from="NVIDIA A100 datasheet",
        nics=4,
        nic="100Gb/s",
        nics_from="a 100 Gb/s EFA NIC for two GPUs, nominal; Amazon EC2 P4d documentation",
        width=12,
    ),
    _Model(
        name="p5",
        summary="AWS p5.48xlarge: 8 H100 around NVSwitch, four 100 Gb/s EFA NICs each",
        gpus=8,
        arch="sm90",
        links_from="NVIDIA H100 datasheet",
        nics=32,
        nic="100Gb/s",
        nics_from="one of four 100 Gb/s EFA NICs of each GPU, nominal; Amazon EC2 P5 documentation",
        width=18,
    ),
)


def with_network(title: str, box: Box, options: dict[str, Any]) -> Topology:
    """``options["boxes"]`` copies of a box with the network that the options describe; one box has no network.

    Raises:
        InputError: too big, or network options that do not go together.
    """
    count = options["boxes"]
    keys = [option.name for option in NETWORK_OPTIONS if option.name != "network"] + ["latency"]
    network = Network(NetworkKind(options["network"]), **{key: options[key] for key in keys if key in options})
    if count == 1:
        return replace(box.topology, name=title)
    check_boxes([(count, box)])
    return compose([replace(box, name=f"b{i}") for i in range(count)], network, title)


def switched_box(ports: list[tuple[float, ...]], rate: Rate, switch: str = "switch") -> Topology:
    """A GPU for each tuple of network ports, all around one box switch."""
    draft = Draft()
    for i, rates in enumerate(ports):
        draft.node(f"g{i}", Kind.GPU, "b0", rates)
    hub = draft.node(switch, Kind.SWITCH, "b0")
    for i in range(len(ports)):
        draft.cable(i, hub, rate.capacity, BOX_LATENCY, rate.source)
    return draft.topology("")


def _meshed_box(ports: list[tuple[float, ...]], model: _Model, rates: Rates) -> Topology:
    draft = Draft()
    for i, own in enumerate(ports):
        draft.node(f"g{i}", Kind.GPU, "b0", own)
    for item in model.lanes.split():
        pair, _, lanes = item.partition(":")
        tail, _, head = pair.partition("-")
        rate = _links(model, int(lanes), rates)
        draft.cable(int(tail), int(head), rate.capacity, BOX_LATENCY, rate.source)
    return draft.topology("")


def _links(model: _Model, count: int, rates: Rates) -> Rate:
    rate = fabric_link(model.arch).rate(count, rates)
    return Rate(rate.capacity, f"{rate.source}; {model.links_from}")


def single_box(name: str, options: dict[str, Any]) -> Box:
    """One box of that model, its network ports free; ``options`` has ``rates`` and ``nic``."""
    model = next(model for model in _MODELS if model.name == name)
    rates, nic = Rates(options["rates"]), options["nic"]
    each, behind = max(1, model.nics // model.gpus), max(1, model.gpus // model.nics)
    ports = [(nic,) * each if i % behind == 0 else () for i in range(model.gpus)]
    if model.width:
        inside = switched_box(ports, _links(model, model.width, rates), "nvswitch")
    else:
        inside = _meshed_box(ports, model, rates)
    return Box(
        "b0",
        inside,
        port_source=model.nics_from if nic == parse_bandwidth(model.nic) else "the catalogue's nic option",
        shared_nics=tuple(tuple(range(i, i + behind)) for i in range(0, model.gpus, behind)) if behind > 1 else (),
    )


def _build(name: str, title: str, options: dict[str, Any]) -> Topology:
    return with_network(title, single_box(name, options), options)


def _options(model: _Model) -> tuple[Option, ...]:
    return (
        number("boxes", "how many", "1"),
        *NETWORK_OPTIONS,
        bandwidth("nic", "bandwidth of each NIC", model.nic),
        choice("rates", "of the GPU links: the vendor's, or what NCCL and RCCL count on", "nominal", tuple(Rates)),
    )


BOXES = tuple(Entry(model.name, model.summary, _options(model), partial(_build, model.name)) for model in _MODELS)
