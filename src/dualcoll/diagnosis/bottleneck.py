"""Which links limit a plan, in words: the links with positive prices, grouped by what they are and where they stand."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dualcoll.diagnosis.batches import batches
from dualcoll.plans.model import Bottleneck, Plan
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.model import Kind, Topology
from dualcoll.units import format_bandwidth

__all__ = ["bottlenecks", "role", "utilisation"]

Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-6  # part of the bound's price; solvers leave this much on links that do not matter,
LOOSE = 0.01  # or as much as the gap that they were stopped at, up to this
FEW = 2  # cables named one by one
BOTH_WAYS, ONE_WAY = " - ", " -> "

_WORDS = {Kind.GPU: "GPU", Kind.NIC: "NIC", Kind.CPU: "CPU", Kind.PCI: "PCIe", Kind.HOST: "host", Kind.SWITCH: "switch"}


def utilisation(plan: Plan) -> Floats:
    """Load over capacity of every capacity row, float64 (E+S,)."""
    fabric = fabric_arrays(plan.topology)
    loads = np.zeros(fabric.links)
    for some in batches(plan.trees):
        links = np.concatenate([tree.route_links for tree in some])
        amount = np.repeat([tree.rate for tree in some], [tree.route_links.size for tree in some])
        shares = [tree.route_share for tree in some if tree.route_share is not None]  # of all trees, or of none
        if shares:
            amount = amount * np.concatenate(shares)
        loads += np.bincount(links, amount, fabric.links)
    return np.asarray(fabric.row_loads(loads) / fabric.capacity)


def bottlenecks(plan: Plan) -> tuple[Bottleneck, ...]:
    """The priced links in groups, the dearest group first; price shares sum to 1 but for what is negligible."""
    topology = plan.topology
    fabric = fabric_arrays(topology)
    used = utilisation(plan)
    spent = fabric.capacity * np.concatenate([plan.link_prices, plan.shared_prices])
    share = spent / spent.sum()
    negligible = min(max(NEGLIGIBLE, plan.gap), LOOSE)
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for e in np.flatnonzero(share[: fabric.links] > negligible / fabric.links):
        link = topology.links[e]
        groups[tuple(sorted((role(topology, link.tail), role(topology, link.head))))].append(int(e))  # type: ignore[index]
    found = [
        Bottleneck(tuple(links), part, _extent(used[links]), _in_words(topology, links, _extent(used[links])))
        for links in groups.values()
        if (part := float(share[links].sum())) > negligible
    ]
    found += _shared_groups(topology, share[fabric.links :], used[fabric.links :])
    return tuple(sorted(found, key=lambda group: -group.price_share))


def _shared_groups(topology: Topology, share: Floats, used: Floats) -> list[Bottleneck]:
    """The priced shared capacities, those of one size over one kind of links together."""
    groups: dict[tuple[float, str], list[int]] = defaultdict(list)
    for s in np.flatnonzero(share > NEGLIGIBLE):
        row = topology.shared[s]
        ends = (topology.links[row.links[0]].tail, topology.links[row.links[0]].head)
        groups[row.capacity, " - ".join(sorted(role(topology, end) for end in ends))].append(int(s))
    found = []
    for (capacity, kind), rows in groups.items():
        links = tuple(e for s in rows for e in topology.shared[s].links)
        extent = _extent(used[rows])
        cables = _cables(topology, links)
        what = f"{len(rows)} capacities shared by {kind} links ({format_bandwidth(capacity)} each)"
        if len(rows) == 1:
            names = ", ".join(cables[:4]) + (f" and {len(cables) - 4} more" if len(cables) > 4 else "")
            what = f"capacity shared by {names} ({format_bandwidth(capacity)})"
        found.append(Bottleneck(links, float(share[rows].sum()), extent, f"the {what}, {_percent(extent)} used"))
    return found


def role(topology: Topology, node: int) -> str:
    """What a node is, in a word or two: "GPU", "box switch", "leaf" (a network switch goes by its name without its number)."""
    this = topology.nodes[node]
    if this.kind is not Kind.SWITCH:
        return _WORDS[this.kind]
    if this.box is not None:
        return "box switch"
    return re.sub(r"\d+", "", this.name.rsplit(".", 1)[-1]).strip("._- ") or "switch"


def _in_words(topology: Topology, links: list[int], used: tuple[float, float]) -> str:
    capacities = [topology.links[e].capacity for e in links]
    low, high = min(capacities), max(capacities)
    size = format_bandwidth(high) if low == high else f"{format_bandwidth(low)} to {format_bandwidth(high)}"
    cables = _cables(topology, links)
    if not any(ONE_WAY in cable for cable in cables):
        size += " each way"
    names = " and ".join(cables) if len(cables) <= FEW else f"the {_counted(topology, links)}"
    return f"{names} ({size}), {_percent(used)} used"


def _cables(topology: Topology, links: Iterable[int]) -> list[str]:
    """The pairs of nodes that the links join: ``a - b`` if both ways, ``a -> b`` if one way."""
    ways = dict.fromkeys((topology.links[e].tail, topology.links[e].head) for e in links)
    joined = ((a, b) for a, b in ways if (b, a) not in ways or a < b)
    name = [node.name for node in topology.nodes]
    return [f"{name[a]}{BOTH_WAYS if (b, a) in ways else ONE_WAY}{name[b]}" for a, b in joined]


def _counted(topology: Topology, links: list[int]) -> str:
    """What kind of links they are, how many, and how they spread over the boxes."""
    ways = {(topology.links[e].tail, topology.links[e].head) for e in links}
    pairs = {(min(way), max(way)) for way in ways}
    roles = {(role(topology, a), role(topology, b)) for a, b in ways}
    arrow = ONE_WAY if len(ways) == len(pairs) and len(roles) == 1 else BOTH_WAYS
    kind = arrow.join(sorted(roles)[0]) + " links"
    per_box: Counter[str] = Counter()
    for a, b in pairs:
        boxes = {box for box in (topology.nodes[a].box, topology.nodes[b].box) if box is not None}
        if len(boxes) != 1:
            return f"{len(pairs)} {kind}"
        per_box[boxes.pop()] += 1
    counts = set(per_box.values())
    if len(per_box) == 1:
        return f"{len(pairs)} {kind} of box {next(iter(per_box))}"
    if len(counts) == 1 and set(per_box) == {node.box for node in topology.nodes if node.is_rank}:
        each = kind.removesuffix("s") if counts == {1} else f"{counts.pop()} {kind}"
        return f"{each} of each of the {len(per_box)} boxes"
    return f"{len(pairs)} {kind} in {len(per_box)} boxes"


def _extent(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _percent(used: tuple[float, float]) -> str:
    low, high = (f"{round(100 * value, 1):g}" for value in used)
    return f"{low} %" if low == high else f"{low} to {high} %"
