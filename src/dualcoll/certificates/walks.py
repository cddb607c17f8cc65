"""The allowed routes as walks through an automaton, and the cheapest of them (docs/model.md §2).

One shortest-path search per rank, in integers: O(n E log V).
"""

from __future__ import annotations

import heapq

from dualcoll.certificates.policy import Policy, Position
from dualcoll.topology.model import Topology

__all__ = ["Costs", "Moves", "allowed_steps", "cheapest_routes", "node_of", "start_of"]

Costs = list[list[int | None]]  # (n, n) from each rank to each other, None where there is no route and on the diagonal
Moves = list[tuple[int, int]]  # (link, state reached)


def node_of(state: int) -> int:
    """The node of a state ``3 * node + position``."""
    return state // 3


def start_of(rank: int, policy: Policy) -> int:
    """The state in which a route from the rank begins."""
    return 3 * rank + policy.start(rank)


def allowed_steps(topology: Topology, policy: Policy, ranks: list[int]) -> list[Moves]:
    """The allowed steps out of each state (3 V,), to nodes that forward and to the ranks."""
    ends = set(ranks)
    out: list[list[tuple[int, int]]] = [[] for _ in topology.nodes]
    for e, link in enumerate(topology.links):
        if link.head in ends or policy.forwards(link.head):
            out[link.tail].append((e, link.head))
    steps: list[Moves] = []
    for node, links in enumerate(out):
        for position in Position:
            after = {head: policy.step(position, node, head) for _, head in links}
            steps.append([(e, 3 * head + into) for e, head in links if (into := after[head]) is not None])
    return steps


def cheapest_routes(on_link: list[int], topology: Topology, policy: Policy, ranks: list[int]) -> Costs:
    """Costs of the cheapest allowed routes under prices of the links (E,).

    The search runs over (node, position on the way). A cheapest walk that visits a node twice can leave out what lies
    between: the earlier position allows all that the later one does. So these are costs of routes as docs/model.md §2
    defines them.
    """
    priced = []
    for moves in allowed_steps(topology, policy, ranks):
        cheapest: dict[int, int] = {}  # of parallel links
        for link, state in moves:
            cheapest[state] = min(on_link[link], cheapest.get(state, on_link[link]))
        priced.append(list(cheapest.items()))
    table: Costs = []
    for source in ranks:
        cost = _search(start_of(source, policy), priced, policy)
        row: list[int | None] = []
        for target in ranks:
            ends = [cost[state] for state in range(3 * target, 3 * target + 3) if state in cost]
            row.append(min(ends) if ends and target != source else None)
        table.append(row)
    return table


def _search(start: int, priced: list[list[tuple[int, int]]], policy: Policy) -> dict[int, int]:
    """Dijkstra's algorithm over (state reached, price); a node that forwards nothing is only ever an end."""
    cost = {start: 0}
    heap = [(0, start)]
    while heap:
        reached, state = heapq.heappop(heap)
        if reached > cost[state]:
            continue
        for following, price in priced[state]:
            total = reached + price
            if following not in cost or total < cost[following]:
                cost[following] = total
                if policy.forwards(node_of(following)):
                    heapq.heappush(heap, (total, following))
    return cost
