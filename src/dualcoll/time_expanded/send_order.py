"""The order of sends that keeps the order of epochs on every link and of every rank's reductions, and that data can follow.

Such an order need not exist: hops over switches with unequal delays may pass each other on two links. Then as much of it is
kept as can be. O(S log S + S h) for S hops of h links.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from dualcoll.schedules.ops import Op
from dualcoll.time_expanded.feeds import Hop
from dualcoll.time_expanded.network import Network

__all__ = ["send_order"]

Key = tuple[int, int, int]


def send_order(sends: Sequence[tuple[Op, Hop]], network: Network) -> list[int]:
    """Positions of the sends in an order to number them."""
    keys: list[Key] = [(hop.starts[0], hop.arrival, i) for i, (_, hop) in enumerate(sends)]
    data, turns = _data(sends, keys), _turns(sends, keys, network)
    needs = [0] * len(sends)  # data that is not there yet
    waits = [0] * len(sends)  # that, and turns
    for graph, counts in ((data, (needs, waits)), (turns, (waits,))):
        for followers in graph.values():
            for i in followers:
                for count in counts:
                    count[i] += 1
    ready = [keys[i] for i in range(len(sends)) if waits[i] == 0]
    possible = [keys[i] for i in range(len(sends)) if needs[i] == 0]  # if turns are not kept
    for heap in (ready, possible):
        heapq.heapify(heap)
    order: list[int] = []
    done = [False] * len(sends)
    while len(order) < len(sends):
        heap = ready or possible
        i = heapq.heappop(heap)[2]
        if done[i]:
            continue
        done[i] = True
        order.append(i)
        for j in data.get(i, ()):
            needs[j] -= 1
            if needs[j] == 0:
                heapq.heappush(possible, keys[j])
        for j in (*data.get(i, ()), *turns.get(i, ())):
            waits[j] -= 1
            if waits[j] == 0:
                heapq.heappush(ready, keys[j])
    return order


def _data(sends: Sequence[tuple[Op, Hop]], keys: list[Key]) -> dict[int, list[int]]:
    """What each send brings on: of a reduction all that leaves its target later, of a copy as well."""
    comes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i, (_, hop) in enumerate(sends):
        comes[hop.chunk, hop.head].append(i)
    graph: dict[int, list[int]] = defaultdict(list)
    for j, (op, hop) in enumerate(sends):
        for i in comes.get((hop.chunk, hop.tail), ()):
            if sends[i][0] is Op.REDUCE or (op is Op.COPY and sends[i][1].arrival <= keys[j][0]):
                graph[i].append(j)
    return graph


def _turns(sends: Sequence[tuple[Op, Hop]], keys: list[Key], network: Network) -> dict[int, list[int]]:
    """The one behind each send on every capacity, and among the reductions of its target."""
    shared: dict[int, list[int]] = defaultdict(list)
    links = len(network.topology.links)
    for row, capacity in enumerate(network.topology.shared):
        for link in capacity.links:
            shared[link].append(links + row)
    lines: dict[tuple[str, int], list[tuple[int, Key]]] = defaultdict(list)
    for i, (op, hop) in enumerate(sends):
        for link, start in zip(hop.links, hop.starts, strict=True):
            for row in (link, *shared.get(link, ())):
                lines["row", row].append((start, keys[i]))
        if op is Op.REDUCE:
            lines["rank", hop.head].append((hop.arrival, keys[i]))
    graph: dict[int, list[int]] = defaultdict(list)
    for line in lines.values():
        line.sort()
        for (_, before), (_, behind) in pairwise(line):
            if before[2] != behind[2]:
                graph[before[2]].append(behind[2])
    return graph
