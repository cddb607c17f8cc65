"""Abstract boxes: GPUs, their links or box switch, and a network port each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dualcoll.topology.catalog.options import Entry, Option, bandwidth, choice, number, ratio
from dualcoll.topology.compose import Box, Network, NetworkKind, compose
from dualcoll.topology.devices import Rate, Rates, fabric_link
from dualcoll.topology.draft import BOX_LATENCY, Draft, check_size
from dualcoll.topology.model import Kind, Topology
from dualcoll.units import parse_bandwidth

__all__ = ["BOXES", "NETWORK_OPTIONS", "single_box", "switched_box", "with_network"]

NETWORK_OPTIONS = (
    choice("network", "how boxes are cabled", "rail", tuple(NetworkKind)),
    number("spines", "switches above the leaves (4)", most=4096),
    ratio("oversubscription", "capacity below a leaf over capacity above it (1)"),
    number("boxes_per_leaf", "boxes on one leaf, of network=leaf-spine (1)", most=4096),
    number("k", "switch ports, of network=fat-tree (the fewest that fit)", least=2, most=256),
)


@dataclass(frozen=True, slots=True)
class _Model:
    """A GPU box.

    Attributes:
        arch: of its GPUs, which decides the rate of a link.
        width: links of every GPU to the one box switch; 0 if the GPUs are joined directly.
        lanes: links of each pair of GPUs that is joined directly, ``from-to:links``.
        port: network bandwidth of each GPU as text; nics: where it comes from.
    """

    name: str
    summary: str
    gpus: int
    arch: str
    port: str
    nics: str
    width: int = 0
    lanes: str = ""


_DGX_1V = "0-1:1 0-2:1 0-3:2 0-4:2 1-2:2 1-3:1 1-5:2 2-3:2 2-6:1 3-7:1 4-5:1 4-6:1 4-7:2 5-6:2 5-7:1 6-7:2"
_MI250 = (
    "0-1:4 0-4:2 0-8:1 1-5:1 1-9:1 1-10:1 2-3:4 2-6:1 2-9:1 2-10:1 3-7:2 3-11:1 4-5:4 4-6:1 5-6:1 5-7:1 6-7:4 "
    "8-9:4 8-12:2 9-13:1 10-11:4 10-14:1 11-15:2 12-13:4 12-14:1 13-14:1 13-15:1 14-15:4"
)
_MODELS = (
    _Model(
        name="dgx-1v",
        summary="8 V100 in a hybrid cube mesh of NVLinks",
        gpus=8,
        arch="sm70",
        port="6.25GB/s",
        nics="half of a 100 Gb/s NIC for each GPU, nominal",
        lanes=_DGX_1V,
    ),
    _Model(
        name="dgx-a100",
        summary="8 A100 around NVSwitch",
        gpus=8,
        arch="sm80",
        port="25GB/s",
        nics="a 200 Gb/s NIC for each GPU, nominal",
        width=12,
    ),
    _Model(
        name="dgx-h100",
        summary="8 H100 around NVSwitch",
        gpus=8,
        arch="sm90",
        port="50GB/s",
        nics="a 400 Gb/s NIC for each GPU, nominal",
        width=18,
    ),
    _Model(
        name="mi250",
        summary="8 MI250 of two GCDs (16 ranks) joined by XGMI",
        gpus=16,
        arch="gfx90a",
        port="12.5GB/s",
        nics="half of a 200 Gb/s NIC for each GCD, nominal",
        lanes=_MI250,
    ),
)


def with_network(title: str, box: Box, options: dict[str, Any]) -> Topology:
    """``options["boxes"]`` copies of a box with the network that the options describe; one box has no network.

    Raises:
        InputError: too big, or network options that do not go together.
    """
    count = options["boxes"]
    keys = ("spines", "oversubscription", "boxes_per_leaf", "k", "latency")
    network = Network(NetworkKind(options["network"]), **{key: options[key] for key in keys if key in options})
    if count == 1:
        return replace(box.topology, name=title)
    check_size(count * len(box.topology.nodes), count * len(box.topology.links))
    return compose([replace(box, name=f"b{i}") for i in range(count)], network, title)


def switched_box(gpus: int, rate: Rate, port: float, switch: str = "switch") -> Topology:
    """GPUs around one box switch, each with one network port."""
    draft = Draft()
    for i in range(gpus):
        draft.node(f"g{i}", Kind.GPU, "b0", (port,))
    hub = draft.node(switch, Kind.SWITCH, "b0")
    for i in range(gpus):
        draft.cable(i, hub, rate.capacity, BOX_LATENCY, rate.source)
    return draft.topology("")


def _meshed_box(model: _Model, rates: Rates, port: float) -> Topology:
    draft = Draft()
    for i in range(model.gpus):
        draft.node(f"g{i}", Kind.GPU, "b0", (port,))
    for item in model.lanes.split():
        pair, _, lanes = item.partition(":")
        tail, _, head = pair.partition("-")
        rate = fabric_link(model.arch).rate(int(lanes), rates)
        draft.cable(int(tail), int(head), rate.capacity, BOX_LATENCY, rate.source)
    return draft.topology("")


def single_box(name: str, options: dict[str, Any]) -> Box:
    """One box of that model, its network ports free; ``options`` has ``rates`` and ``nic``."""
    model = next(model for model in _MODELS if model.name == name)
    rates, port = Rates(options["rates"]), options["nic"]
    if model.width:
        box = switched_box(model.gpus, fabric_link(model.arch).rate(model.width, rates), port, "nvswitch")
    else:
        box = _meshed_box(model, rates, port)
    return Box(
        "b0", box, port_source=model.nics if port == parse_bandwidth(model.port) else "the catalogue's nic option"
    )


def _build(name: str, title: str, options: dict[str, Any]) -> Topology:
    return with_network(title, single_box(name, options), options)


def _options(model: _Model) -> tuple[Option, ...]:
    return (
        number("boxes", "how many", "1"),
        *NETWORK_OPTIONS,
        bandwidth("nic", "network bandwidth of each GPU", model.port),
        choice("rates", "of the GPU links: the vendor's, or what NCCL and RCCL count on", "nominal", tuple(Rates)),
    )


BOXES = tuple(Entry(model.name, model.summary, _options(model), partial(_build, model.name)) for model in _MODELS)
