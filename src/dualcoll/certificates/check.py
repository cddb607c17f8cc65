"""The proof of a plan: every claim recomputed in exact arithmetic from the fabric, the trees and the prices alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dualcoll.certificates.bound import link_prices, prove_bound, row_prices
from dualcoll.certificates.cut import prove_cut
from dualcoll.certificates.demands import Demands, read_workload
from dualcoll.certificates.findings import Findings, excess, rate_text, shown
from dualcoll.certificates.loads import StoredRoutes, Tally, check_loads
from dualcoll.certificates.next_hops import HashedRoutes, NetworkRoutes, SprayedRoutes
from dualcoll.certificates.policy import Policy
from dualcoll.certificates.rates import TreeShare, check_shares, prove_rate
from dualcoll.certificates.trees import Structure
from dualcoll.certificates.walks import cheapest_routes
from dualcoll.plans.document import Claims, PlanDocument, link_keys
from dualcoll.topology.model import Topology

__all__ = ["Proof", "check_plan"]

GAP_ROUNDING = Fraction(1, 2**50)  # a gap is derived from two claims in double precision


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proved, exactly. Never weaker than what the plan claims.

    Attributes:
        rate: of the plan by its objective, bytes/s.
        group_rates: of each group, bytes/s.
        bound: the rate that no schedule without in-network computing exceeds, by the prices, bytes/s.
        gap: ``1 - rate / bound``.
        in_network_bound: the rate that no schedule at all exceeds, by the cut, bytes/s; None if the plan claims none.
        utilisation: of the busiest link or shared capacity, at most 1.
        busiest: its name.
    """

    rate: Fraction
    group_rates: tuple[Fraction, ...]
    bound: Fraction
    gap: Fraction
    in_network_bound: Fraction | None
    utilisation: Fraction
    busiest: str


def check_plan(document: PlanDocument, topology: Topology | None = None) -> Proof:
    """Prove every claim of a plan; see docs/model.md for what each means and why it is proved.

    Args:
        document: the plan, by :func:`~dualcoll.plans.file.read_document` or
            :func:`~dualcoll.plans.conversion.plan_to_document`.
        topology: hold it against this fabric instead of its own. Nodes are matched by name, parallel links by order.

    Raises:
        CheckFailed: with one finding for each claim that is not supported.
        InputError: a tree, made only now, has a number that is not usable.
    """
    fabric = document.topology if topology is None else topology
    findings = Findings()
    workload = read_workload(document, fabric, findings)
    if workload is None:
        raise findings.error()
    keys = link_keys(fabric)
    demands = Demands(workload, fabric)
    hops_only = document.routing.kind == "spray-hops"
    policy = Policy(fabric, document.forwarding, everyone_forwards=hops_only)
    network = _network(document, fabric, policy, list(workload.ranks))
    routes = StoredRoutes(fabric, keys, policy, findings) if network is None else None

    tally = Tally(len(keys), len(demands.all))
    shares = _read_trees(document, demands, fabric, routes, tally, findings)
    loads, scale = (tally.on_link, 1) if network is None else network.loads(tally.on_edge, findings)
    utilisation, busiest = check_loads(loads, tally.scale * scale, fabric, keys, findings)
    rate, group_rates = prove_rate(document.claims.rate, demands, tally, findings)
    check_shares(shares, demands, tally, findings)

    prices = row_prices(document.prices, fabric, keys, findings)
    on_link = link_prices(prices, fabric)
    if network is None:
        costs, scale = cheapest_routes(on_link, fabric, policy, list(workload.ranks)), 1
    else:
        costs, scale = network.costs(on_link)
    bound = prove_bound(prices, costs, scale, demands, fabric, findings, relay=document.relay)
    _hold_bound(document.claims, bound, findings)
    in_network = prove_cut(document, demands, fabric, findings)
    if findings or bound is None:
        raise findings.error()
    return Proof(rate, group_rates, bound, 1 - rate / bound, in_network, utilisation, busiest)


def _network(document: PlanDocument, fabric: Topology, policy: Policy, ranks: list[int]) -> NetworkRoutes | None:
    """The routes that the network chooses; None where the plan chose them."""
    kind = document.routing.kind
    if kind == "single":
        return None
    if kind == "ecmp":
        return HashedRoutes(fabric, policy, ranks, seed=document.routing.seed)
    return SprayedRoutes(fabric, policy, ranks, over_cables=kind == "spray-cables")


def _read_trees(
    document: PlanDocument,
    demands: Demands,
    fabric: Topology,
    routes: StoredRoutes | None,
    tally: Tally,
    findings: Findings,
) -> list[TreeShare]:
    """Hold each tree against its demand and add up what it carries, in one pass, for there may be many."""
    structure = Structure(demands, fabric, findings, relay=document.relay)
    shares = []
    for i, tree in enumerate(document.trees):
        where = f"trees[{i}]"
        amount = tally.amount(tree.rate)
        number = demands.number(tree)
        if number is None:
            wanted = f"root {shown(tree.root)}" + ("" if tree.target is None else f" and target {shown(tree.target)}")
            findings.add(f"{where}: group {shown(tree.group)} has no demand with {wanted}")
        else:
            if len(demands.all) > 1:
                where = f"{where} ({demands.words(number)})"
            structure.check(tree, where, number)
            tally.of_demand[number] += amount
            shares.append(TreeShare(where, number, tree.rate, tree.size))
        if routes is not None:
            routes.add(tree, where, amount, tally.on_link)
        else:
            for tail, head, _ in tree.edges:
                tally.on_edge[tail, head] += amount
    return shares


def _hold_bound(claims: Claims, proved: Fraction | None, findings: Findings) -> None:
    """The bound and gap that are claimed must be supported."""
    claimed = Fraction(claims.bound)
    gap = 1 - Fraction(claims.rate) / claimed if claimed else Fraction(0)
    if Fraction(claims.gap) < gap - GAP_ROUNDING:
        findings.add(f"claimed gap {claims.gap:.6g} is below {float(gap):.6g}, what the claimed rate and bound leave")
    if proved is not None and claimed < proved:
        findings.add(
            f"claimed bound {rate_text(claimed)} is below {rate_text(proved)}, the best that the prices prove"
            f"{excess(proved, claimed)} (docs/model.md §5)"
        )
