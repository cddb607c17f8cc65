"""The proof of a plan: every claim recomputed in exact arithmetic from the fabric, the trees and the prices alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dualcoll.certificates.bound import prove_bound, row_prices
from dualcoll.certificates.findings import Findings, excess, rate_text, shown
from dualcoll.certificates.policy import Policy
from dualcoll.certificates.trees import check_loads, check_structure, link_loads, scaled
from dualcoll.plans.document import LinkKey, PlanDocument, link_keys
from dualcoll.topology.model import Topology

__all__ = ["Proof", "check_plan"]

GAP_ROUNDING = Fraction(1, 2**50)  # a gap is derived from two claims in double precision


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proved, exactly. Never weaker than what the plan claims.

    Attributes:
        rate: sum of the trees' rates, bytes/s.
        bound: the rate that no schedule without in-network computing exceeds, by the prices, bytes/s.
        gap: ``1 - rate / bound``.
        in_network_bound: the rate that no schedule at all exceeds, by the cut, bytes/s.
        utilisation: of the busiest link or shared capacity, at most 1.
        busiest: its name.
    """

    rate: Fraction
    bound: Fraction
    gap: Fraction
    in_network_bound: Fraction
    utilisation: Fraction
    busiest: str


def check_plan(document: PlanDocument, topology: Topology | None = None) -> Proof:
    """Prove every claim of a plan; see docs/model.md for what each means and why it is proved.

    Args:
        document: the plan, by :func:`~dualcoll.plans.file.read_document` or :func:`~dualcoll.plans.document.plan_to_document`.
        topology: hold it against this fabric instead of its own. Nodes are matched by name, parallel links by order.

    Raises:
        CheckFailed: with one finding for each claim that is not supported.
    """
    fabric = document.topology if topology is None else topology
    keys = link_keys(fabric)
    policy = Policy(fabric, document.forwarding)
    findings = Findings()
    participants = _participants(document, fabric, findings)
    check_structure(document.trees, frozenset(document.ranks), findings)
    loads, scale = link_loads(document.trees, fabric, keys, policy, findings)
    utilisation, busiest = check_loads(loads, scale, fabric, keys, findings)
    rate = _rate(document, findings)
    bound = _bound(document, fabric, keys, policy, participants, findings)
    in_network = _in_network(document, fabric, findings)
    if findings or bound is None:
        raise findings.error()
    return Proof(rate, bound, 1 - rate / bound, in_network, utilisation, busiest)


def _participants(document: PlanDocument, fabric: Topology, findings: Findings) -> list[int]:
    """Node indices of the ranks; empty if they are not two or more different nodes of the fabric."""
    known: dict[str, int] = {}
    for i, name in enumerate(document.ranks):
        if name in known:
            findings.add(f"ranks[{i}]: {shown(name)} is named twice")
        elif name not in fabric.index:
            findings.add(f"ranks[{i}]: the fabric has no node {shown(name)}")
        else:
            known[name] = fabric.index[name]
    if len(document.ranks) < 2:
        findings.add(f"ranks: an AllReduce takes two or more, not {len(document.ranks)}")
    return list(known.values()) if len(known) == len(document.ranks) >= 2 else []


def _rate(document: PlanDocument, findings: Findings) -> Fraction:
    """The sum of the rates, held against the claim and the shares of the data."""
    rates, scale = scaled(tree.rate for tree in document.trees)
    total = sum(rates)
    proved, claimed = Fraction(total, scale), Fraction(document.claims.rate)
    if claimed > proved:
        findings.add(
            f"claimed rate {rate_text(claimed)} is above {rate_text(proved)}, the sum of the trees' rates"
            f"{excess(claimed, proved)} (docs/model.md §4)"
        )
    if total == 0:
        findings.add("the trees carry nothing: their rates sum to 0 (docs/model.md §4)")
    carried = sum(tree.size for tree in document.trees)
    if carried != document.size:
        findings.add(
            f"the bytes of the trees sum to {carried}, not to the message's {document.size} (docs/model.md §4)"
        )
    for i, (tree, rate) in enumerate(zip(document.trees, rates, strict=True)):
        if abs(tree.size * total - document.size * rate) > total:
            share = float(Fraction(document.size * rate, total)) if total else 0.0
            findings.add(
                f"trees[{i}]: its {tree.size} bytes are not within one byte of {share:.1f}, "
                "its part in proportion to the rates (docs/model.md §4)"
            )
    return proved


def _bound(
    document: PlanDocument,
    fabric: Topology,
    keys: list[LinkKey],
    policy: Policy,
    participants: list[int],
    findings: Findings,
) -> Fraction | None:
    """The bound that the prices prove, held against the claimed bound and gap; None if there is none."""
    prices = row_prices(document.prices, fabric, keys, findings)
    claims = document.claims
    claimed = Fraction(claims.bound)
    gap = 1 - Fraction(claims.rate) / claimed if claimed else Fraction(0)
    if Fraction(claims.gap) < gap - GAP_ROUNDING:
        findings.add(f"claimed gap {claims.gap:.6g} is below {float(gap):.6g}, what the claimed rate and bound leave")
    proved = prove_bound(prices, fabric, policy, participants, findings) if participants else None
    if proved is not None and claimed < proved:
        findings.add(
            f"claimed bound {rate_text(claimed)} is below {rate_text(proved)}, the best that the prices prove"
            f"{excess(proved, claimed)} (docs/model.md §5)"
        )
    return proved


def _in_network(document: PlanDocument, fabric: Topology, findings: Findings) -> Fraction:
    """What leaves the cut, held against the claim."""
    side = set(document.in_network_cut)
    for name in sorted(side - fabric.index.keys()):
        findings.add(f"in_network_cut: the fabric has no node {shown(name)}")
    if not 0 < len(side.intersection(document.ranks)) < len(set(document.ranks)):
        findings.add("in_network_cut: it must have some of the ranks on its side but not all (docs/model.md §6)")
    inside = {fabric.index[name] for name in side & fabric.index.keys()}
    crossing = {e for e, link in enumerate(fabric.links) if link.tail in inside and link.head not in inside}
    capacity = Fraction(0)
    for row in fabric.shared:
        under = crossing.intersection(row.links)
        if Fraction(row.capacity) < sum(Fraction(fabric.links[e].capacity) for e in under):
            capacity += Fraction(row.capacity)
            crossing -= under
    capacity += sum(Fraction(fabric.links[e].capacity) for e in crossing)
    claimed = Fraction(document.claims.in_network_bound)
    if claimed < capacity:
        findings.add(
            f"claimed in-network bound {rate_text(claimed)} is below {rate_text(capacity)}, what leaves the cut"
            f"{excess(capacity, claimed)} (docs/model.md §6)"
        )
    return capacity
