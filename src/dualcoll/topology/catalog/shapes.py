"""Regular fabrics: GPUs joined directly (ring, torus, …) or by switches (star, fat tree, dragonfly, rail)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from dualcoll.errors import InputError
from dualcoll.topology.catalog.boxes import NETWORK_OPTIONS, switched_box, with_network
from dualcoll.topology.catalog.options import Entry, bandwidth, flag, latency, number, ratio, shape
from dualcoll.topology.compose import Box
from dualcoll.topology.devices import Rate
from dualcoll.topology.draft import BOX_LATENCY, NETWORK_LATENCY, Draft, check_size
from dualcoll.topology.model import Kind, Link, Topology
from dualcoll.topology.networks import Network, NetworkKind, Port, wire

__all__ = ["SHAPES"]

CABLE = "50GB/s"
Pairs = Iterator[tuple[int, int]]


def _grid(sides: Sequence[int], wrap: bool) -> Pairs:
    """Neighbours in a grid of row-major nodes; with ``wrap`` sides of 3 and more close, one of 2 keeps its single cable."""
    stride = math.prod(sides)
    for side in sides:
        stride //= side
        for node in range(math.prod(sides)):
            place = node // stride % side
            if place + 1 < side:
                yield node, node + stride
            elif wrap and side > 2:
                yield node, node - place * stride


def _grid_cables(sides: Sequence[int], wrap: bool) -> int:
    nodes = math.prod(sides)
    return sum(nodes if wrap and side > 2 else nodes - nodes // side for side in sides)


def _joined(title: str, nodes: int, cables: int, pairs: Pairs, options: dict[str, Any]) -> Topology:
    """GPUs g0, g1, … in one box, with a cable for each pair."""
    if nodes < 2:
        raise InputError("it has a single GPU", hint="collectives need 2 or more")
    check_size(nodes, 2 * cables)
    draft = Draft()
    for i in range(nodes):
        draft.node(f"g{i}", Kind.GPU, "b0")
    for tail, head in pairs:
        if options.get("oneway"):
            draft.links.append(
                Link(tail, head, options["bandwidth"], options["latency"], source="the catalogue's bandwidth option")
            )
        else:
            draft.cable(tail, head, options["bandwidth"], options["latency"], "the catalogue's bandwidth option")
    return draft.topology(title)


def _build_grid(wrap: bool, title: str, options: dict[str, Any]) -> Topology:
    sides = options["shape"] if "shape" in options else (options["n"],)
    return _joined(title, math.prod(sides), _grid_cables(sides, wrap), _grid(sides, wrap), options)


def _build_ring(title: str, options: dict[str, Any]) -> Topology:
    n = options["n"]
    if options["oneway"]:
        return _joined(title, n, n, ((i, (i + 1) % n) for i in range(n)), options)
    return _build_grid(True, title, options)


def _build_full(title: str, options: dict[str, Any]) -> Topology:
    n = options["n"]
    return _joined(title, n, n * (n - 1) // 2, combinations(range(n), 2), options)


def _build_hypercube(title: str, options: dict[str, Any]) -> Topology:
    sides = (2,) * options["d"]
    return _joined(title, 2 ** options["d"], _grid_cables(sides, False), _grid(sides, False), options)


def _around(title: str, hosts: int, network: Network, options: dict[str, Any]) -> Topology:
    """Hosts of one GPU each around the network's switches."""
    if hosts < 2:
        raise InputError("it has a single GPU", hint="collectives need 2 or more")
    check_size(hosts, 2 * hosts)
    draft = Draft()
    for i in range(hosts):
        draft.node(f"g{i}", Kind.GPU, f"b{i}")
    source = "the catalogue's bandwidth option"
    wire(draft, [Port((i,), i, 0, options["bandwidth"], source) for i in range(hosts)], network)
    return draft.topology(title)


def _build_star(title: str, options: dict[str, Any]) -> Topology:
    return _around(title, options["n"], Network(NetworkKind.SINGLE_SWITCH, latency=options["latency"]), options)


def _build_fat_tree(title: str, options: dict[str, Any]) -> Topology:
    k = options["k"]
    network = Network(
        NetworkKind.FAT_TREE, k=k, oversubscription=options.get("oversubscription"), latency=options["latency"]
    )
    check_size(k**3 // 4 + 5 * k * k // 4, 6 * k**3 // 4)
    return _around(title, k**3 // 4, network, options)


def _build_dragonfly(title: str, options: dict[str, Any]) -> Topology:
    """Groups are full; there are as many as the global links can join, unless fewer are asked for."""
    p, latency = options["p"], options["latency"]
    network = Network(NetworkKind.DRAGONFLY, a=options.get("a"), p=p, h=options.get("h"), latency=latency)
    a, h = network.a or 2 * p, network.h or p
    groups = options.get("groups", a * h + 1)
    if groups > a * h + 1:
        raise InputError(f"{groups} groups are too many for a = {a}, h = {h}", hint=f"use up to a h + 1 = {a * h + 1}")
    return _around(title, groups * a * p, network, options)


def _build_rail(title: str, options: dict[str, Any]) -> Topology:
    boxes, gpus = options["shape"]
    check_size(boxes * gpus, 4 * boxes * gpus)
    rate = Rate(options["box_bandwidth"], "the catalogue's box_bandwidth option")
    box = Box(
        "b0", switched_box([(options["bandwidth"],)] * gpus, rate), port_source="the catalogue's bandwidth option"
    )
    return with_network(title, box, options | {"boxes": boxes, "network": "rail"})


_BOX = (bandwidth("bandwidth", "of each cable", CABLE), latency("of each link", f"{BOX_LATENCY * 1e6:g}us"))
_NETWORK = (
    bandwidth("bandwidth", "of each network cable", CABLE),
    latency("of each network link", f"{NETWORK_LATENCY * 1e6:g}us"),
)
_RAIL = tuple(option for option in NETWORK_OPTIONS if option.name in ("spines", "oversubscription"))
_GPUS = number("n", "how many GPUs", least=2)

SHAPES = (
    Entry("ring", "GPUs in a ring", (_GPUS, flag("oneway", "one direction only"), *_BOX), _build_ring, "n"),
    Entry("line", "GPUs in a line", (_GPUS, *_BOX), partial(_build_grid, False), "n"),
    Entry("full", "every GPU joined to every other", (_GPUS, *_BOX), _build_full, "n"),
    Entry("mesh", "a grid", (shape("shape", "4x4"), *_BOX), partial(_build_grid, False), "shape"),
    Entry("torus", "a grid that closes", (shape("shape", "8x8"), *_BOX), partial(_build_grid, True), "shape"),
    Entry("hypercube", "2**d GPUs", (number("d", "how many dimensions", most=19), *_BOX), _build_hypercube, "d"),
    Entry("star", "GPUs around one switch", (_GPUS, *_NETWORK), _build_star, "n"),
    Entry("single-switch", "the same as star", (_GPUS, *_NETWORK), _build_star, "n"),
    Entry(
        "fat-tree",
        "k**3 / 4 hosts of one GPU under three layers of k-port switches",
        (number("k", "switch ports, even", least=2, most=256), ratio("oversubscription", "at the edge (1)"), *_NETWORK),
        _build_fat_tree,
        "k",
    ),
    Entry(
        "dragonfly",
        "hosts of one GPU on groups of routers, every router joined to its group, every group to every other",
        (
            number("p", "GPUs of a router", most=4096),
            number("a", "routers of a group (2p)", most=4096),
            number("h", "global links of a router (p)", most=4096),
            number("groups", "how many (a h + 1)"),
            *_NETWORK,
        ),
        _build_dragonfly,
        "p",
    ),
    Entry(
        "rail",
        "boxes x GPUs around a switch in each box, port i of every box on leaf i",
        (
            shape("shape", "4x8", least_sides=2, most_sides=2),
            bandwidth("box_bandwidth", "GPU to box switch", "450GB/s"),
            *_RAIL,
            *_NETWORK,
        ),
        _build_rail,
        "shape",
    ),
)
