"""The policy and the cheapest column, against enumeration of every route on small random fabrics (docs/model.md §2, §5)."""

from __future__ import annotations

from itertools import pairwise, permutations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.certificates.bound import cheapest_routes, prove_bound
from dualcoll.certificates.findings import Findings
from dualcoll.certificates.policy import Policy
from dualcoll.topology.model import Forwarding, Kind, Link, Node, SharedCapacity, Topology

BOXED = (Kind.NIC, Kind.CPU, Kind.PCI)


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


def _allowed(route: tuple[int, ...], nodes: tuple[Node, ...], forwarding: Forwarding) -> bool:
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


@settings(max_examples=150)
@given(fabrics(), st.sampled_from(list(Forwarding)))
def test_policy_is_what_the_words_say(topology: Topology, forwarding: Forwarding) -> None:
    """The automaton accepts exactly the node sequences that the definition describes, connected or not."""
    policy = Policy(topology, forwarding)
    nodes = range(len(topology.nodes))
    for length in range(2, 5):
        for route in permutations(nodes, length):
            assert (policy.objection(route) is None) == _allowed(route, topology.nodes, forwarding), route


@settings(max_examples=150)
@given(fabrics(), st.sampled_from(list(Forwarding)), st.data())
def test_bound_is_the_cheapest_column_by_enumeration(
    topology: Topology, forwarding: Forwarding, data: st.DataObject
) -> None:
    """Route costs and the bound equal those over all simple routes and all pairs of trees."""
    rows = len(topology.links) + len(topology.shared)
    prices = data.draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
    on_link = list(prices[: len(topology.links)])
    for row, price in zip(topology.shared, prices[len(topology.links) :], strict=True):
        for link in row.links:
            on_link[link] += price
    names = range(len(topology.nodes))
    participants = data.draw(st.lists(st.sampled_from(names), min_size=2, max_size=4, unique=True))
    policy = Policy(topology, forwarding)
    expected = [[_cheapest(topology, forwarding, on_link, u, v) for v in participants] for u in participants]
    assert cheapest_routes(on_link, topology, policy, participants) == expected

    findings = Findings()
    bound = prove_bound(prices, topology, policy, participants, findings)
    cost = _cheapest_pair(expected)
    capacities = [link.capacity for link in topology.links] + [row.capacity for row in topology.shared]
    if cost:
        worth = sum(capacity * price for capacity, price in zip(capacities, prices, strict=True))
        assert bound is not None
        assert bound * cost == int(worth)
        assert not findings
    else:
        assert bound is None
        assert findings


def _cheapest(topology: Topology, forwarding: Forwarding, on_link: list[int], u: int, v: int) -> int | None:
    if u == v:
        return None
    arcs: dict[tuple[int, int], int] = {}
    for link, price in zip(topology.links, on_link, strict=True):
        ends = link.tail, link.head
        arcs[ends] = min(price, arcs.get(ends, price))
    costs = []
    others = [i for i in range(len(topology.nodes)) if i not in (u, v)]
    for length in range(len(others) + 1):
        for between in permutations(others, length):
            route = (u, *between, v)
            hops = list(pairwise(route))
            if all(hop in arcs for hop in hops) and _allowed(route, topology.nodes, forwarding):
                costs.append(sum(arcs[hop] for hop in hops))
    return min(costs, default=None)


def _cheapest_pair(costs: list[list[int | None]]) -> int | None:
    """Least in-tree plus out-tree over all roots, by enumeration of parents; None where there is none."""
    n = len(costs)
    reversed_costs = [list(column) for column in zip(*costs, strict=True)]
    totals = []
    for root in range(n):
        inward, outward = _cheapest_tree(costs, root), _cheapest_tree(reversed_costs, root)
        if inward is not None and outward is not None:
            totals.append(inward + outward)
    return min(totals, default=None)


def _cheapest_tree(costs: list[list[int | None]], root: int) -> int | None:
    """Every other vertex steps to some parent at ``costs[vertex][parent]`` and must come to the root."""
    others = [v for v in range(len(costs)) if v != root]
    totals = []
    for parents in product(range(len(costs)), repeat=len(others)):
        step = dict(zip(others, parents, strict=True))
        weights = [costs[v][p] for v, p in step.items()]
        ends = list(others)
        for _ in others:
            ends = [step.get(v, root) for v in ends]
        finite = [w for w in weights if w is not None]
        if len(finite) == len(weights) and all(v == root for v in ends):
            totals.append(sum(finite))
    return min(totals, default=None)
