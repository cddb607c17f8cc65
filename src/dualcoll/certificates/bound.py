"""What the prices prove: no schedule of the workload is faster than this (docs/model.md §5)."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from math import lcm

from dualcoll.certificates.columns import cheapest_columns, unreached
from dualcoll.certificates.demands import Demands
from dualcoll.certificates.findings import Findings, shown
from dualcoll.certificates.loads import link_text, scaled
from dualcoll.certificates.walks import Costs
from dualcoll.collectives.workload import Demand, Objective, Pattern
from dualcoll.plans.document import LinkKey, Price
from dualcoll.topology.model import Topology

__all__ = ["link_prices", "prove_bound", "row_prices"]

PRICE_BITS = 192  # kept of the largest price; all but absurd sets of floats fit without rounding


def row_prices(prices: tuple[Price, ...], topology: Topology, keys: list[LinkKey], findings: Findings) -> list[int]:
    """Prices of the links, then of the shared capacities (E + S,), as integers in a common unit.

    They are rounded down where they do not fit: any prices >= 0 prove some bound.
    """
    rows = {key: e for e, key in enumerate(keys)}
    found: dict[int, float] = {}
    for i, entry in enumerate(prices):
        if isinstance(entry.on, int):
            row = len(keys) + entry.on if entry.on < len(topology.shared) else None
            what = f"shared capacity {entry.on}"
        else:
            row = rows.get(entry.on)
            what = f"link {link_text(entry.on)}"
        if row is None:
            findings.add(f"prices[{i}]: the fabric has no {what}")
        elif row in found:
            findings.add(f"prices[{i}]: {what} has a price already")
        else:
            found[row] = entry.price
    exact, _ = scaled(found.values())
    surplus = max(0, max(exact, default=0).bit_length() - PRICE_BITS)
    whole = [0] * (len(keys) + len(topology.shared))
    for row, price in zip(found, exact, strict=True):
        whole[row] = price >> surplus
    return whole


def link_prices(prices: list[int], topology: Topology) -> list[int]:
    """What one unit over each link costs (E,): its own price and those of the shared capacities over it."""
    on_link = prices[: len(topology.links)]
    for row, price in zip(topology.shared, prices[len(topology.links) :], strict=True):
        for link in row.links:
            on_link[link] += price
    return on_link


def prove_bound(
    prices: list[int],
    costs: Costs,
    scale: int,
    demands: Demands,
    topology: Topology,
    findings: Findings,
    *,
    relay: bool,
) -> Fraction | None:
    """The rate in bytes/s that the workload cannot exceed by the prices (E + S,); None with a finding if they prove none.

    Args:
        costs: of the logical edges between all ranks of the workload, (n, n), over ``scale``.
    """
    workload = demands.workload
    place = {rank: i for i, rank in enumerate(workload.ranks)}
    of_group: defaultdict[int, list[Demand]] = defaultdict(list)
    for demand in demands.all:
        of_group[demand.group].append(demand)
    spent = []  # by each group on all of its message, at the least
    for number, mine in of_group.items():
        group = workload.groups[number]
        at = [place[rank] for rank in group.ranks]
        table = [[costs[u][v] for v in at] for u in at]
        columns = cheapest_columns(mine, group.ranks, table, relay=relay)
        apart = next((demand for demand, cost in zip(mine, columns, strict=True) if cost is None), None)
        if apart is not None:
            tail, head = (shown(topology.nodes[i].name) for i in unreached(apart, group.ranks, table))
            over = ", directly or over other ranks" if relay or apart.pattern is not Pattern.SEND else ""
            findings.add(f"no route that may be used leads from {tail} to {head}{over}")
        else:
            unit = lcm(*(demand.part.denominator for demand in mine))
            whole = sum(cost * int(demand.part * unit) for demand, cost in zip(mine, columns, strict=True) if cost)
            spent.append(Fraction(whole, unit))
    if len(spent) < len(workload.groups):
        return None
    if workload.objective is Objective.SLOWEST:
        price = sum(spent, Fraction(0)) / workload.size
    else:
        price = min(total / group.size for total, group in zip(spent, workload.groups, strict=True))
    if price == 0:
        findings.add("the prices prove no bound: some tree uses no priced link (docs/model.md §5)")
        return None
    return scale * _worth(prices, topology) / price


def _worth(prices: list[int], topology: Topology) -> Fraction:
    """What all capacity is worth."""
    capacities, scale = scaled([link.capacity for link in topology.links] + [row.capacity for row in topology.shared])
    return Fraction(sum(capacity * price for capacity, price in zip(capacities, prices, strict=True)), scale)
