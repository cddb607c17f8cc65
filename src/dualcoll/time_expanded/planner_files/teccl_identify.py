"""Which of TE-CCL's fabrics a result is for: the one whose links its flows use, and whose GPUs are their sources."""

from __future__ import annotations

from itertools import pairwise

from dualcoll.errors import InputError
from dualcoll.time_expanded.planner_files.teccl_flows import TecclFlow
from dualcoll.topology.importers.teccl_fabrics import FabricName, teccl_fabric
from dualcoll.topology.model import Kind, Topology

__all__ = ["identified"]

EXACT = 1e-6  # relative, of ratios that are to be whole numbers


def identified(flows: list[TecclFlow], total: float, epoch: float) -> tuple[FabricName, Topology]:
    """The fabric, as TE-CCL builds it.

    Args:
        flows: of the result. total: bytes of a chunk for every GPU that TE-CCL counts. epoch: seconds.

    Raises:
        InputError: no fabric fits, or several.
    """
    nodes = 1 + max(node for flow in flows for node in flow.nodes)
    sources = {flow.source for flow in flows}
    hops = {flow.nodes for flow in flows}
    found = []
    for fabric in _names(nodes):
        topology = teccl_fabric(fabric)
        if {int(topology.nodes[rank].name) for rank in topology.ranks} == sources and _has(topology, hops):
            found.append((fabric, topology))
    if len(found) > 1:  # epochs are as long as a chunk takes somewhere
        found = [one for one in found if _fits(total, epoch, *one)] or found
    if len(found) == 1:
        return found[0]
    names = ", ".join(topology.name for _, topology in found)
    raise InputError(
        f"its flows fit several fabrics: {names}" if found else "its flows fit none of TE-CCL's fabrics",
        hint="give the input file that it was made from",
    )


def _names(nodes: int) -> list[FabricName]:
    """Fabrics with so many nodes."""
    side = round(nodes**0.5)
    found = []
    if nodes == 8:
        found.append(FabricName("DGX1"))
    if nodes == 34:
        found.append(FabricName("DGX2", 2))
    if nodes == 16:
        found += [FabricName("NDv2", 2), FabricName("AMD")]
    if nodes > 8 and nodes % 8 == 1 and nodes != 17:
        found.append(FabricName("NDv2", nodes // 8))
    if nodes > 48 and nodes % 24 == 1:
        found.append(FabricName("AMD", nodes // 24))
    if side > 1 and side**2 == nodes:
        found.append(FabricName("Mesh", side_length=side))
    return found


def _has(topology: Topology, hops: set[tuple[int, ...]]) -> bool:
    links = {(link.tail, link.head) for link in topology.links}
    switches = {i for i, node in enumerate(topology.nodes) if node.kind is Kind.SWITCH}
    return all(all(pair in links for pair in pairwise(way)) and switches.issuperset(way[1:-1]) for way in hops)


def _fits(total: float, epoch: float, fabric: FabricName, topology: Topology) -> bool:
    """Whether an epoch is a whole number of times a chunk on the fastest or slowest link."""
    chunk = total / fabric.counted
    rates = [link.capacity for link in topology.links]
    times = [epoch * rate / chunk for rate in (max(rates), min(rates))] if chunk > 0 else []
    return any(round(ratio) >= 1 and abs(ratio - round(ratio)) < EXACT * ratio for ratio in times)
