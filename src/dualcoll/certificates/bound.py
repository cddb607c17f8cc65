"""What the prices prove: no AllReduce among the participants is faster than this (docs/model.md §5).

One shortest-path search per participant, in integers, and two contractions: O(n E log V + n²).
"""

from __future__ import annotations

import heapq
from fractions import Fraction

from dualcoll.certificates.arborescence import arborescence_costs
from dualcoll.certificates.findings import Findings
from dualcoll.certificates.policy import Policy, Position
from dualcoll.certificates.trees import link_text, scaled
from dualcoll.plans.document import LinkKey, Price
from dualcoll.topology.model import Topology

__all__ = ["cheapest_routes", "prove_bound", "row_prices"]

PRICE_BITS = 192  # kept of the largest price; all but absurd sets of floats fit without rounding

Moves = list[tuple[int, int]]  # (price, state reached)


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


def prove_bound(
    prices: list[int], topology: Topology, policy: Policy, participants: list[int], findings: Findings
) -> Fraction | None:
    """What the prices (E + S,) are worth over what the cheapest column costs, in bytes/s; None with a finding if nothing."""
    links = len(topology.links)
    capacities, scale = scaled([link.capacity for link in topology.links] + [row.capacity for row in topology.shared])
    worth = sum(capacity * price for capacity, price in zip(capacities, prices, strict=True))
    on_link = prices[:links]
    for row, price in zip(topology.shared, prices[links:], strict=True):
        for link in row.links:
            on_link[link] += price
    costs = cheapest_routes(on_link, topology, policy, participants)
    apart = _unreachable(costs)
    if apart is not None:
        tail, head = (topology.nodes[participants[i]].name for i in apart)
        findings.add(f"no route that may be used leads from {tail} to {head}, directly or over other ranks")
        return None
    outward = arborescence_costs(list(zip(*costs, strict=True)))
    inward = arborescence_costs(costs)
    cheapest = min(out + into for out, into in zip(outward, inward, strict=True))
    if cheapest == 0:
        findings.add("the prices prove no bound: some tree uses no priced link (docs/model.md §5)")
        return None
    return Fraction(worth, cheapest * scale)


def cheapest_routes(
    on_link: list[int], topology: Topology, policy: Policy, participants: list[int]
) -> list[list[int | None]]:
    """Cost (n, n) of the cheapest allowed route from each participant to each other, None where there is none.

    The search runs over (node, position on the way). A cheapest walk that visits a node twice can leave out what lies
    between: the earlier position allows all that the later one does. So these are costs of routes as docs/model.md §2
    defines them.
    """
    steps = _moves(on_link, topology, policy, participants)
    table: list[list[int | None]] = []
    for source in participants:
        start = 3 * source + policy.start(source)
        cost = _search(start, steps, policy)
        row: list[int | None] = []
        for target in participants:
            ends = [cost[state] for state in range(3 * target, 3 * target + 3) if state in cost]
            row.append(min(ends) if ends and target != source else None)
        table.append(row)
    return table


def _moves(on_link: list[int], topology: Topology, policy: Policy, participants: list[int]) -> list[Moves]:
    """The allowed steps out of each state ``3 * node + position``, over the cheapest of parallel links."""
    useful = set(participants)
    cheapest: list[dict[int, int]] = [{} for _ in topology.nodes]
    for link, price in zip(topology.links, on_link, strict=True):
        if link.head in useful or policy.forwards(link.head):
            known = cheapest[link.tail].get(link.head)
            cheapest[link.tail][link.head] = price if known is None else min(known, price)
    steps: list[Moves] = []
    for node, heads in enumerate(cheapest):
        for position in Position:
            moves = []
            for head, price in heads.items():
                after = policy.step(position, node, head)
                if after is not None:
                    moves.append((price, 3 * head + after))
            steps.append(moves)
    return steps


def _search(start: int, steps: list[Moves], policy: Policy) -> dict[int, int]:
    """Dijkstra's algorithm from one state; a node that forwards nothing is only ever an end."""
    cost = {start: 0}
    heap = [(0, start)]
    while heap:
        reached, state = heapq.heappop(heap)
        if reached > cost[state]:
            continue
        for price, following in steps[state]:
            total = reached + price
            if following not in cost or total < cost[following]:
                cost[following] = total
                if policy.forwards(following // 3):
                    heapq.heappush(heap, (total, following))
    return cost


def _unreachable(costs: list[list[int | None]]) -> tuple[int, int] | None:
    """Two participants such that no chain of routes leads from the first to the second."""
    for reverse in (False, True):
        table = list(zip(*costs, strict=True)) if reverse else costs
        reached, fresh = {0}, [0]
        while fresh:
            node = fresh.pop()
            found = {i for i, cost in enumerate(table[node]) if cost is not None} - reached
            reached |= found
            fresh += found
        missing = min(set(range(len(costs))) - reached, default=None)
        if missing is not None:
            return (missing, 0) if reverse else (0, missing)
    return None
