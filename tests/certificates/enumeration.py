"""Small random fabrics, and by enumeration all that the proof knows about them in closed form."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, permutations, product

from hypothesis import strategies as st

from dualcoll.collectives.workload import Demand, Group, Pattern
from dualcoll.topology.model import Forwarding, Kind, Link, Node, SharedCapacity, Topology

BOXED = (Kind.NIC, Kind.CPU, Kind.PCI)

Costs = list[list[int | None]]


@st.composite
def fabrics(draw: st.DrawFn) -> Topology:
    """Up to six nodes of any kind in two boxes or none, and random one-way links, some parallel, some shared."""
    nodes = []
    for i in range(draw(st.integers(2, 6))):
        kind = draw(st.sampled_from(list(Kind)))
        box = draw(st.sampled_from(["b0", "b1", None] if kind is Kind.SWITCH else ["b0", "b1"]))
        nodes.append(Node(f"{kind}{i}", kind, box=box))
    ends = [(a, b) for a, b in product(range(len(nodes)), repeat=2) if a != b]
    pairs = draw(st.lists(st.sampled_from(ends), min_size=4, max_size=18))
    links = tuple(Link(a, b, float(draw(st.integers(1, 5)))) for a, b in pairs)
    shared = draw(st.lists(st.sets(st.integers(0, len(links) - 1), min_size=1, max_size=3), max_size=2))
    return Topology(tuple(nodes), links, tuple(SharedCapacity(tuple(sorted(row)), 2.0) for row in shared))


def allowed(route: tuple[int, ...], nodes: tuple[Node, ...], forwarding: Forwarding) -> bool:
    """docs/model.md §2 by its words: some split into a part in the first node's box, free forwarders, and a part in the
    last node's box that begins with a NIC, CPU or PCIe node."""
    kinds, boxes = [nodes[i].kind for i in route], [nodes[i].box for i in route]
    last = len(route) - 1
    free = [k is Kind.SWITCH or (forwarding is Forwarding.ALL and k not in BOXED) for k in kinds]
    if any(kinds[i] not in BOXED and not free[i] for i in range(1, last)):
        return False
    for i in range(last + 1):  # nodes 0 .. i are the first part
        if i > 0 and (boxes[0] is None or boxes[i] != boxes[0]):
            break
        if i == last:
            return True
        for j in range(i + 1, last + 2):  # nodes j .. last are the last part; j = last + 1: it is empty
            middle = all(free[m] for m in range(i + 1, min(j, last)))
            entered = j > last and kinds[last] not in BOXED
            within = j <= last and kinds[j] in BOXED and all(boxes[m] == boxes[j] for m in range(j, last + 1))
            if middle and (entered or within):
                return True
    return False


def all_routes(topology: Topology, forwarding: Forwarding | None, u: int, v: int) -> list[tuple[int, ...]]:
    """Every allowed route as its nodes; None lets every node forward."""
    arcs = {(link.tail, link.head) for link in topology.links}
    others = [i for i in range(len(topology.nodes)) if i not in (u, v)]
    routes = ((u, *between, v) for length in range(len(others) + 1) for between in permutations(others, length))
    return [
        route
        for route in routes
        if all(hop in arcs for hop in pairwise(route))
        and (forwarding is None or allowed(route, topology.nodes, forwarding))
    ]


def cheapest_route(topology: Topology, forwarding: Forwarding, on_link: list[int], u: int, v: int) -> int | None:
    """Its cost under link prices; None where there is no route."""
    price: dict[tuple[int, int], int] = {}
    for link, cost in zip(topology.links, on_link, strict=True):
        ends = link.tail, link.head
        price[ends] = min(cost, price.get(ends, cost))
    routes = all_routes(topology, forwarding, u, v) if u != v else []
    return min((sum(price[hop] for hop in pairwise(route)) for route in routes), default=None)


def cheapest_column(demand: Demand, group: Group, costs: Costs, *, relay: bool) -> int | None:
    """Over every structure of docs/model.md §3 on the group's ranks, from costs (n, n) between them."""
    place = {rank: i for i, rank in enumerate(group.ranks)}
    n = len(group.ranks)
    backward = [list(column) for column in zip(*costs, strict=True)]
    if demand.pattern is Pattern.SEND:
        assert demand.root is not None
        assert demand.target is not None
        u, v = place[demand.root], place[demand.target]
        others = [i for i in range(n) if i not in (u, v)] if relay else []
        paths = ((u, *over, v) for length in range(len(others) + 1) for over in permutations(others, length))
        totals = [[costs[a][b] for a, b in pairwise(path)] for path in paths]
        return min((sum(w for w in total if w is not None) for total in totals if None not in total), default=None)
    if demand.pattern is Pattern.ALLREDUCE:
        pairs = [(_cheapest_tree(costs, root), _cheapest_tree(backward, root)) for root in range(n)]
        return min((a + b for a, b in pairs if a is not None and b is not None), default=None)
    assert demand.root is not None
    return _cheapest_tree(costs if demand.pattern is Pattern.REDUCE else backward, place[demand.root])


def _cheapest_tree(costs: Costs, root: int) -> int | None:
    """Every other vertex steps to some parent at ``costs[vertex][parent]`` and must come to the root."""
    totals = []
    for step in all_parents(len(costs), root):
        weights = [costs[v][p] for v, p in step.items()]
        if None not in weights:
            totals.append(sum(w for w in weights if w is not None))
    return min(totals, default=None)


def all_parents(n: int, root: int) -> list[dict[int, int]]:
    """Every choice of a parent for each vertex but the root that leads everybody to it."""
    others = [v for v in range(n) if v != root]
    found = []
    for parents in product(range(n), repeat=len(others)):
        step = dict(zip(others, parents, strict=True))
        ends = list(others)
        for _ in others:
            ends = [step.get(v, root) for v in ends]
        if all(v == root for v in ends):
            found.append(step)
    return found


def shares(
    topology: Topology, forwarding: Forwarding | None, u: int, v: int, *, over_cables: bool
) -> dict[int, Fraction]:
    """Part of a sprayed logical edge on each link, from the list of its shortest routes; empty where there is none."""
    routes = all_routes(topology, forwarding, u, v)
    least = min(map(len, routes), default=0)
    on_link: dict[int, Fraction] = {}

    def divide(rest: list[tuple[int, ...]], at: int, mass: Fraction) -> None:
        here = rest[0][at]
        following = sorted({route[at + 1] for route in rest})
        cables = {z: [e for e, k in enumerate(topology.links) if (k.tail, k.head) == (here, z)] for z in following}
        total = sum(map(len, cables.values()))
        for z in following:
            share = Fraction(len(cables[z]), total) if over_cables else Fraction(1, len(following))
            for e in cables[z]:
                on_link[e] = on_link.get(e, Fraction(0)) + mass * share / len(cables[z])
            if z != v:
                divide([route for route in rest if route[at + 1] == z], at + 1, mass * share)

    if routes:
        divide([route for route in routes if len(route) == least], 0, Fraction(1))
    return on_link
