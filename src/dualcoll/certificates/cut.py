"""What must leave the cut against what can (docs/model.md §6)."""

from __future__ import annotations

from fractions import Fraction

from dualcoll.certificates.demands import Demands
from dualcoll.certificates.findings import Findings, excess, rate_text, shown
from dualcoll.collectives.workload import Objective
from dualcoll.plans.document import PlanDocument
from dualcoll.topology.model import Topology

__all__ = ["prove_cut"]


def prove_cut(document: PlanDocument, demands: Demands, fabric: Topology, findings: Findings) -> Fraction | None:
    """The rate in bytes/s that the cut allows, held against the claim; None if none is claimed or none is proved."""
    if document.in_network_cut is None or document.claims.in_network_bound is None:
        return None
    if document.objective is Objective.TOTAL:
        findings.add("in_network_cut: no cut bounds the total of the groups' rates (docs/model.md §6)")
        return None
    side = set(document.in_network_cut)
    for name in sorted(side - fabric.index.keys()):
        findings.add(f"in_network_cut: the fabric has no node {shown(name)}")
    inside = frozenset(fabric.index[name] for name in side & fabric.index.keys())
    crossing = (demand.part for demand in demands.all if demand.crosses(inside, demands.group(demand).ranks))
    needed = sum(crossing, Fraction(0))
    if needed == 0:
        findings.add("in_network_cut: no data has to leave it (docs/model.md §6)")
        return None
    proved = demands.workload.size * _leaving(inside, fabric) / needed
    claimed = Fraction(document.claims.in_network_bound)
    if claimed < proved:
        findings.add(
            f"claimed in-network bound {rate_text(claimed)} is below {rate_text(proved)}, what leaves the cut allows"
            f"{excess(proved, claimed)} (docs/model.md §6)"
        )
    return proved


def _leaving(inside: frozenset[int], fabric: Topology) -> Fraction:
    """Capacity from the inside to the rest; links under a shared capacity count no more than it has."""
    crossing = {e for e, link in enumerate(fabric.links) if link.tail in inside and link.head not in inside}
    capacity = Fraction(0)
    for row in fabric.shared:
        under = crossing.intersection(row.links)
        if Fraction(row.capacity) < sum(Fraction(fabric.links[e].capacity) for e in under):
            capacity += Fraction(row.capacity)
            crossing -= under
    return capacity + sum(Fraction(fabric.links[e].capacity) for e in crossing)
