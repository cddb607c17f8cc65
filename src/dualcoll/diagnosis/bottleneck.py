"""Which links limit a plan, in words: the links with positive prices, grouped by what they are and where they stand."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import numpy as np
from numpy.typing import NDArray

from dualcoll.plans.model import Bottleneck, Plan
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.model import Kind, Topology
from dualcoll.units import format_bandwidth

__all__ = ["bottlenecks", "role", "utilisation"]

Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-6  # part of the bound's price; solvers leave this much on links that do not matter
FEW = 2  # cables named one by one

_WORDS = {Kind.GPU: "GPU", Kind.NIC: "NIC", Kind.CPU: "CPU", Kind.PCI: "PCIe", Kind.HOST: "host", Kind.SWITCH: "switch"}


def utilisation(plan: Plan) -> Floats:
    """Load over capacity of every capacity row, float64 (E+S,)."""
    fabric = fabric_arrays(plan.topology)
    loads = np.zeros(fabric.links)
    for tree in plan.trees:
        loads += tree.rate * np.bincount(tree.route_links, minlength=fabric.links)
    return np.asarray(fabric.row_loads(loads) / fabric.capacity)


def bottlenecks(plan: Plan) -> tuple[Bottleneck, ...]:
    """The priced links in groups, the dearest group first; price shares sum to 1 but for what is negligible."""
    topology = plan.topology
    fabric = fabric_arrays(topology)
    used = utilisation(plan)
    spent = fabric.capacity * np.concatenate([plan.link_prices, plan.shared_prices])
    share = spent / spent.sum()
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for e in np.flatnonzero(share[: fabric.links] > NEGLIGIBLE / fabric.links):
        link = topology.links[e]
        groups[tuple(sorted((role(topology, link.tail), role(topology, link.head))))].append(int(e))  # type: ignore[index]
    found = [
        Bottleneck(tuple(links), part, _extent(used[links]), _in_words(topology, links, roles, _extent(used[links])))
        for roles, links in groups.items()
        if (part := float(share[links].sum())) > NEGLIGIBLE
    ]
    for s, row in enumerate(topology.shared):
        part = float(share[fabric.links + s])
        if part > NEGLIGIBLE:
            extent = _extent(used[fabric.links + s : fabric.links + s + 1])
            names = ", ".join(topology.describe_link(e) for e in row.links[:4]) + (", …" if len(row.links) > 4 else "")
            text = f"the capacity shared by {names} ({format_bandwidth(row.capacity)}), {_percent(extent)} used"
            found.append(Bottleneck(row.links, part, extent, text))
    return tuple(sorted(found, key=lambda group: -group.price_share))


def role(topology: Topology, node: int) -> str:
    """What a node is, in a word or two: "GPU", "box switch", "leaf" (a network switch goes by its name without its number)."""
    this = topology.nodes[node]
    if this.kind is not Kind.SWITCH:
        return _WORDS[this.kind]
    if this.box is not None:
        return "box switch"
    stem = re.sub(r"[\d._-]+", "", this.name.rsplit(".", 1)[-1])
    return stem or "switch"


def _in_words(topology: Topology, links: list[int], roles: tuple[str, str], used: tuple[float, float]) -> str:
    cables: Counter[tuple[int, int]] = Counter()
    for e in links:
        ends = topology.links[e].tail, topology.links[e].head
        cables[min(ends), max(ends)] += 1
    capacities = [topology.links[e].capacity for e in links]
    low, high = min(capacities), max(capacities)
    size = format_bandwidth(high) if low == high else f"{format_bandwidth(low)} to {format_bandwidth(high)}"
    if len(cables) <= FEW:
        names = " and ".join(f"{topology.nodes[a].name} - {topology.nodes[b].name}" for a, b in cables)
        return f"{names} ({size} each way), {_percent(used)} used"
    kind = f"{roles[0]} - {roles[1]} links"
    return f"the {_where(topology, cables, kind)} ({size} each way), {_percent(used)} used"


def _where(topology: Topology, cables: Counter[tuple[int, int]], kind: str) -> str:
    """How the cables spread over the boxes: the same number in every box that has such nodes, or a plain count."""
    per_box: Counter[str] = Counter()
    for a, b in cables:
        boxes = {box for box in (topology.nodes[a].box, topology.nodes[b].box) if box is not None}
        if len(boxes) != 1:
            return f"{len(cables)} {kind}"
        per_box[boxes.pop()] += 1
    counts = set(per_box.values())
    every = {node.box for node in topology.nodes if node.is_rank}
    if len(per_box) == 1:
        return f"{len(cables)} {kind} of box {next(iter(per_box))}"
    if len(counts) == 1 and set(per_box) == every and counts != {1}:
        return f"{counts.pop()} {kind} of each of the {len(per_box)} boxes"
    return f"{len(cables)} {kind} in {len(per_box)} boxes"


def _extent(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _percent(used: tuple[float, float]) -> str:
    low, high = (f"{100 * value:.3g}" for value in used)
    return f"{low} %" if low == high else f"{low} to {high} %"
