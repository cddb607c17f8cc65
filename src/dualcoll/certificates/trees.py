"""Do the trees span, are their routes allowed, and what do they load? (docs/model.md §2 and §3)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from dualcoll.certificates.findings import Findings, excess, rate_text, shown
from dualcoll.certificates.policy import Policy
from dualcoll.plans.document import Hop, LinkKey, TreeRecord
from dualcoll.plans.model import Phase
from dualcoll.topology.model import Topology

__all__ = ["Load", "check_loads", "check_structure", "link_loads", "link_text", "scaled"]

Route = tuple[Hop, ...]
Load = tuple[Fraction, str]  # of a link or shared capacity: carried over capacity, and its name


def scaled(numbers: Iterable[float]) -> tuple[list[int], int]:
    """Integers ``n`` and a scale ``s`` such that the i-th number is exactly ``n[i] / s``."""
    ratios = [number.as_integer_ratio() for number in numbers]
    scale = max((denominator for _, denominator in ratios), default=1)  # floats are dyadic: the largest serves all
    return [numerator * (scale // denominator) for numerator, denominator in ratios], scale


def link_text(link: LinkKey) -> str:
    """Text such as ``"g0 -> sw"``, or ``"g0 -> sw (cable 1)"`` for the second of parallel links."""
    tail, hop = link
    return f"{shown(tail)} -> {_hop_text(hop)}"


def check_structure(trees: tuple[TreeRecord, ...], participants: frozenset[str], findings: Findings) -> None:
    """Each tree must reduce from every participant to its root and broadcast from the root to every participant."""
    for i, tree in enumerate(trees):
        where = f"trees[{i}]"
        if tree.root not in participants:
            findings.add(f"{where}: its root {shown(tree.root)} does not take part")
            continue
        for j, (tail, head, _) in enumerate(tree.edges):
            for end in sorted({tail, head} - participants):
                findings.add(f"{where}.edges[{j}]: {shown(end)} does not take part")
        for phase in Phase:
            _check_phase(tree, phase, where, participants, findings)


def _check_phase(tree: TreeRecord, phase: Phase, where: str, participants: frozenset[str], findings: Findings) -> None:
    """One half of a tree: a path of its edges must lead between the root and everybody else, and no edge is left over."""
    kind, toward, consequence = {
        Phase.REDUCE: ("reduce", "leaves", "so its data never reaches the root"),
        Phase.BROADCAST: ("broadcast", "enters", "so the result never reaches it from the root"),
    }[phase]
    root = shown(tree.root)
    step: dict[str, str] = {}
    for tail, head, of in tree.edges:
        if of is phase:
            child, parent = (tail, head) if phase is Phase.REDUCE else (head, tail)
            if child == tree.root:
                findings.add(f"{where}: a {kind} edge {toward} the root {root}")
            elif child in step:
                findings.add(f"{where}: more than one {kind} edge {toward} {shown(child)}")
            else:
                step[child] = parent
    joined = {tree.root}
    for name in sorted(participants):
        trail: dict[str, None] = {}
        end = name
        while end not in joined and end not in trail and end in step:
            trail[end] = None
            end = step[end]
        joined.update(trail)
        if end in trail:
            findings.add(f"{where}: the {kind} edges at {shown(end)} run in a circle, {consequence} {root}")
        elif end not in joined and end in participants:
            joined.add(end)
            findings.add(f"{where}: no {kind} edge {toward} {shown(end)}, {consequence} {root}")


class _Routes:
    """Resolves node sequences to links, remembering the outcome of each."""

    def __init__(self, topology: Topology, keys: list[LinkKey], policy: Policy) -> None:
        self._index = topology.index
        self._links = {key: e for e, key in enumerate(keys)}
        self._policy = policy
        self._known: dict[Route, tuple[tuple[int, ...], str]] = {}

    def resolve(self, route: Route) -> tuple[tuple[int, ...], str]:
        """The route's links, and what is wrong with it (empty if nothing)."""
        if route not in self._known:
            self._known[route] = self._resolve(route)
        return self._known[route]

    def _resolve(self, route: Route) -> tuple[tuple[int, ...], str]:
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


def link_loads(
    trees: tuple[TreeRecord, ...], topology: Topology, keys: list[LinkKey], policy: Policy, findings: Findings
) -> tuple[list[int], int]:
    """What every link carries (E,): ``loads[e] / scale`` bytes/s exactly. Every route is held against the policy."""
    routes = _Routes(topology, keys, policy)
    rates, scale = scaled(tree.rate for tree in trees)
    loads = [0] * len(keys)
    for i, (tree, rate) in enumerate(zip(trees, rates, strict=True)):
        if len(tree.routes) != len(tree.edges):
            findings.add(f"trees[{i}]: it has {len(tree.edges)} edges but {len(tree.routes)} routes")
        for (tail, head, _), route in zip(tree.edges, tree.routes, strict=False):
            links, problem = routes.resolve(route)
            for link in links:
                loads[link] += rate
            if not problem and _name(route[0]) != tail:
                problem = f"starts at {_name(route[0])}"
            if not problem and _name(route[-1]) != head:
                problem = f"ends at {_name(route[-1])}"
            if problem:
                where = f"trees[{i}]: its route from {shown(tail)} to {shown(head)}"
                findings.add(f"{where} {problem} (docs/model.md §2)")
    return loads, scale


def check_loads(loads: list[int], scale: int, topology: Topology, keys: list[LinkKey], findings: Findings) -> Load:
    """No link and no shared capacity may carry more than it has. Returns the one that is used the most."""
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


def _name(hop: Hop) -> str:
    return hop if isinstance(hop, str) else hop[0]


def _hop_text(hop: Hop) -> str:
    return shown(hop) if isinstance(hop, str) else f"{shown(hop[0])} (cable {hop[1]})"
