"""What the links carry, exactly, and whether they can (docs/model.md §2 and §3)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from fractions import Fraction

from dualcoll.certificates.findings import Findings, excess, rate_text, shown
from dualcoll.certificates.policy import Policy
from dualcoll.plans.document import Hop, LinkKey, TreeRecord
from dualcoll.topology.model import Topology

__all__ = ["Load", "StoredRoutes", "Tally", "check_loads", "link_text", "scaled"]

Route = tuple[Hop, ...]
Load = tuple[Fraction, str]  # of a link or shared capacity: carried over capacity, and its name


def scaled(numbers: Iterable[float]) -> tuple[list[int], int]:
    """Integers ``n`` and a scale ``s`` such that the i-th number is exactly ``n[i] / s``."""
    ratios = [number.as_integer_ratio() for number in numbers]
    scale = max((denominator for _, denominator in ratios), default=1)  # floats are dyadic: the largest serves all
    return [numerator * (scale // denominator) for numerator, denominator in ratios], scale


class Tally:
    """Sums of rates as integers over one power of two, ``scale``, which grows when a rate needs it.

    Attributes:
        on_link: what each link carries, (E,). on_edge: what runs from rank to rank where the network chooses the links.
        of_demand: what the trees of each demand carry together, (J,).
    """

    def __init__(self, links: int, demands: int) -> None:
        self.scale = 1
        self.on_link = [0] * links
        self.on_edge: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.of_demand = [0] * demands

    def amount(self, rate: float) -> int:
        """The rate as an integer over ``scale``."""
        numerator, denominator = rate.as_integer_ratio()
        if denominator > self.scale:
            factor = denominator // self.scale
            self.scale = denominator
            self.on_link = [n * factor for n in self.on_link]
            self.of_demand = [n * factor for n in self.of_demand]
            for edge in self.on_edge:
                self.on_edge[edge] *= factor
        return numerator * (self.scale // denominator)


class StoredRoutes:
    """Resolves the routes of trees to links, remembering the outcome of each."""

    def __init__(self, topology: Topology, keys: list[LinkKey], policy: Policy, findings: Findings) -> None:
        self._index = topology.index
        self._links = {key: e for e, key in enumerate(keys)}
        self._policy = policy
        self._findings = findings
        self._known: dict[Route, tuple[tuple[int, ...], str]] = {}

    def add(self, tree: TreeRecord, where: str, amount: int, on_link: list[int]) -> None:
        """Add the tree's amount to every link of every one of its routes; each is held against the policy."""
        routes = tree.routes or ()
        if len(routes) != len(tree.edges):
            self._findings.add(f"{where}: it has {len(tree.edges)} edges but {len(routes)} routes")
        for (tail, head, _), route in zip(tree.edges, routes, strict=False):
            if route not in self._known:
                self._known[route] = self._resolve(route)
            links, problem = self._known[route]
            for link in links:
                on_link[link] += amount
            if not problem and _name(route[0]) != tail:
                problem = f"starts at {_name(route[0])}"
            if not problem and _name(route[-1]) != head:
                problem = f"ends at {_name(route[-1])}"
            if problem:
                edge = f"its route from {shown(tail)} to {shown(head)}"
                self._findings.add(f"{where}: {edge} {problem} (docs/model.md §2)")

    def _resolve(self, route: Route) -> tuple[tuple[int, ...], str]:
        """The route's links, and what is wrong with it (empty if nothing)."""
        names = [_name(hop) for hop in route]
        for name in names:
            if name not in self._index:
                return (), f"passes through {shown(name)}, which the fabric does not have"
        links = []
        for tail, hop in zip(names, route[1:], strict=False):
            link = self._links.get((tail, hop))
            if link is None:
                return (), f"needs a link {link_text((tail, hop))}, which the fabric does not have"
            links.append(link)
        if len(route) < 2:
            return (), "has no link"
        if len(set(names)) < len(names):
            return tuple(links), f"visits {Counter(names).most_common(1)[0][0]} twice"
        return tuple(links), self._policy.objection([self._index[name] for name in names]) or ""


def check_loads(loads: list[int], scale: int, topology: Topology, keys: list[LinkKey], findings: Findings) -> Load:
    """No link and no shared capacity may carry more than it has. Returns the one that is used the most.

    Args:
        loads: of the links, (E,), over ``scale``.
    """
    rows = [(load, link.capacity) for load, link in zip(loads, topology.links, strict=True)]
    rows += [(sum(loads[e] for e in row.links), row.capacity) for row in topology.shared]
    busiest: Load = Fraction(0), ""
    for i, (load, capacity) in enumerate(rows):
        if load == 0:
            continue
        carried, allowed = Fraction(load, scale), Fraction(capacity)
        name = f"link {link_text(keys[i])}" if i < len(keys) else f"shared capacity {i - len(keys)}"
        busiest = max(busiest, (carried / allowed, name), key=lambda used: used[0])
        if carried > allowed:
            amounts = f"{rate_text(carried)} of {rate_text(allowed)}{excess(carried, allowed)}"
            findings.add(f"{name} carries {amounts} (docs/model.md §3)")
    return busiest


def link_text(link: LinkKey) -> str:
    """Text such as ``"g0 -> sw"``, or ``"g0 -> sw (cable 1)"`` for the second of parallel links."""
    tail, hop = link
    return f"{shown(tail)} -> {_hop_text(hop)}"


def _name(hop: Hop) -> str:
    return hop if isinstance(hop, str) else hop[0]


def _hop_text(hop: Hop) -> str:
    return shown(hop) if isinstance(hop, str) else f"{shown(hop[0])} (cable {hop[1]})"
