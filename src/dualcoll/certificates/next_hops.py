"""Routes that the network chooses, sprayed or hashed, from docs/model.md §8 alone.

Both follow shortest allowed routes by hops. One breadth-first search from each rank finds the next hops toward it; costs and
loads are pushed along them in integers: O(n E).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from hashlib import sha256
from math import lcm

from dualcoll.certificates.findings import Findings, shown
from dualcoll.certificates.policy import Policy
from dualcoll.certificates.walks import Costs, Moves, allowed_steps, node_of, start_of
from dualcoll.topology.model import Topology

__all__ = ["HashedRoutes", "NetworkRoutes", "SprayedRoutes"]

Levels = list[
    dict[int, Moves]
]  # levels[d - 1]: the states d hops from a rank, each with its steps to states one hop closer
Amounts = dict[int, int]  # by state


class NetworkRoutes(ABC):
    """Next hops toward every rank; a routing model says how traffic divides over them."""

    def __init__(self, topology: Topology, policy: Policy, ranks: list[int]) -> None:
        self._topology = topology
        self._policy = policy
        self._ranks = ranks
        self._steps = allowed_steps(topology, policy, ranks)
        self._back: list[set[int]] = [set() for _ in self._steps]
        for state, moves in enumerate(self._steps):
            for _, following in moves:
                self._back[following].add(state)

    def costs(self, on_link: list[int]) -> tuple[Costs, int]:
        """Costs of the logical edges under prices of the links (E,), over a common scale."""
        starts = [start_of(source, self._policy) for source in self._ranks]
        columns = []
        for target in self._ranks:
            cost, scale = self._costs(target, self._levels(target), on_link, starts)
            columns.append(([None if node_of(s) == target else cost.get(s) for s in starts], scale))
        common = lcm(*(scale for _, scale in columns))
        whole = [[None if w is None else w * (common // scale) for w in column] for column, scale in columns]
        return [list(row) for row in zip(*whole, strict=True)], common

    def loads(self, flows: Mapping[tuple[str, str], int], findings: Findings) -> tuple[list[int], int]:
        """What the links carry (E,), over a scale, of amounts on logical edges by the names of their ends.

        A logical edge without a route is a finding.
        """
        index, taking_part = self._topology.index, set(self._ranks)
        toward: defaultdict[int, Amounts] = defaultdict(dict)
        for (tail, head), amount in flows.items():
            if tail != head and {index.get(tail), index.get(head)} <= taking_part:
                toward[index[head]][start_of(index[tail], self._policy)] = amount
        by_scale: dict[int, list[int]] = {}
        for target, amounts in toward.items():
            levels = self._levels(target)
            for source in sorted(amounts.keys() - set().union(*levels)):
                ends = (shown(self._topology.nodes[node].name) for node in (node_of(source), target))
                findings.add(f"no route leads from {' to '.join(ends)} as the network routes (docs/model.md §8)")
                del amounts[source]
            carried, scale = self._loads(target, levels, amounts)
            total = by_scale.setdefault(scale, [0] * len(self._topology.links))
            for link, amount in carried.items():
                total[link] += amount
        common = lcm(*by_scale)
        sums = [0] * len(self._topology.links)
        for scale, total in by_scale.items():
            sums = [known + amount * (common // scale) for known, amount in zip(sums, total, strict=True)]
        return sums, common

    def _levels(self, target: int) -> Levels:
        """The states from which routes lead to the target, by hops of the shortest."""
        fresh = set(range(3 * target, 3 * target + 3))
        seen = set(fresh)
        levels: Levels = []
        while fresh:
            level: dict[int, Moves] = {state: [] for after in fresh for state in self._back[after] if state not in seen}
            for state in level:
                level[state] = [(link, after) for link, after in self._steps[state] if after in fresh]
            seen.update(level)
            levels.append(level)
            fresh = {state for state in level if self._policy.forwards(node_of(state))}
        return levels

    @abstractmethod
    def _costs(self, target: int, levels: Levels, on_link: list[int], starts: list[int]) -> tuple[Amounts, int]:
        """Costs from the starting states where there is a route, over a scale."""

    @abstractmethod
    def _loads(self, target: int, levels: Levels, amounts: Amounts) -> tuple[Amounts, int]:
        """Loads by link, over a scale, of amounts by the states where they begin."""


class SprayedRoutes(NetworkRoutes):
    """At every node equal shares to the next hops, or over all cables to them."""

    def __init__(self, topology: Topology, policy: Policy, ranks: list[int], *, over_cables: bool) -> None:
        super().__init__(topology, policy, ranks)
        self._over_cables = over_cables

    def _divisors(self, moves: Moves) -> list[int]:
        """One over the share of each step."""
        if self._over_cables:
            return [len(moves)] * len(moves)
        cables = Counter(after for _, after in moves)
        return [len(cables) * cables[after] for _, after in moves]

    def _shared(self, levels: Levels) -> tuple[list[dict[int, list[tuple[int, int, int]]]], int]:
        """The steps as (link, state, divisor), and a scale that makes whole numbers of all that follows from them.

        The scale is the product over the levels of what each must be able to divide by.
        """
        shared = []
        scale = 1
        for level in levels:
            divided = {
                state: [(*move, by) for move, by in zip(moves, self._divisors(moves), strict=True)]
                for state, moves in level.items()
            }
            scale *= lcm(*(by for steps in divided.values() for _, _, by in steps))
            shared.append(divided)
        return shared, scale

    def _costs(self, target: int, levels: Levels, on_link: list[int], starts: list[int]) -> tuple[Amounts, int]:
        shared, scale = self._shared(levels)
        cost = dict.fromkeys(range(3 * target, 3 * target + 3), 0)
        for level in shared:
            for state, steps in level.items():
                cost[state] = sum((scale * on_link[link] + cost[after]) // by for link, after, by in steps)
        return cost, scale

    def _loads(self, target: int, levels: Levels, amounts: Amounts) -> tuple[Amounts, int]:
        shared, scale = self._shared(levels)
        mass = defaultdict(int, {state: amount * scale for state, amount in amounts.items()})
        carried: defaultdict[int, int] = defaultdict(int)
        for level in reversed(shared):
            for state in mass.keys() & level.keys():
                for link, after, by in level[state]:
                    carried[link] += mass[state] // by
                    mass[after] += mass[state] // by
        return carried, scale


class HashedRoutes(NetworkRoutes):
    """One path for each logical edge: a hash picks the step at every node."""

    def __init__(self, topology: Topology, policy: Policy, ranks: list[int], *, seed: int) -> None:
        super().__init__(topology, policy, ranks)
        self._seed = seed

    def _costs(self, target: int, levels: Levels, on_link: list[int], starts: list[int]) -> tuple[Amounts, int]:
        paths = self._paths(target, levels, starts)
        return {start: sum(on_link[link] for link in path) for start, path in paths.items()}, 1

    def _loads(self, target: int, levels: Levels, amounts: Amounts) -> tuple[Amounts, int]:
        carried: defaultdict[int, int] = defaultdict(int)
        for start, path in self._paths(target, levels, amounts).items():
            for link in path:
                carried[link] += amounts[start]
        return carried, 1

    def _paths(self, target: int, levels: Levels, starts: Iterable[int]) -> dict[int, list[int]]:
        """The links from each state from which the target can be reached."""
        nodes = self._topology.nodes
        choices = {
            state: sorted(moves, key=lambda move: (nodes[node_of(move[1])].name, move[0]))
            for level in levels
            for state, moves in level.items()
        }
        paths: dict[int, list[int]] = {}
        for start in starts:
            state = start
            while state in choices:
                moves = choices[state]
                text = f"{self._seed}/{nodes[node_of(start)].name}/{nodes[target].name}/{nodes[node_of(state)].name}"
                picked = int.from_bytes(sha256(text.encode()).digest()[:8], "big") % len(moves) if len(moves) > 1 else 0
                link, state = moves[picked]
                paths.setdefault(start, []).append(link)
        return paths
