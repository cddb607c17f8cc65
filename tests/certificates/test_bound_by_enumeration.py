"""What prices prove, against all columns of every pattern on small random fabrics (docs/model.md §5)."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dualcoll.certificates.bound import link_prices, prove_bound
from dualcoll.certificates.demands import Demands
from dualcoll.certificates.findings import Findings
from dualcoll.certificates.policy import Policy
from dualcoll.certificates.walks import cheapest_routes
from dualcoll.collectives.catalogue import COLLECTIVES, ROOTED
from dualcoll.collectives.workload import Group, Objective, Pattern, Workload
from dualcoll.topology.model import Forwarding, Kind, Link, Node, Topology, duplex
from tests.certificates.enumeration import all_parents, cheapest_column, cheapest_route, fabrics


@st.composite
def workloads(draw: st.DrawFn, topology: Topology) -> Workload:
    """One or two groups of any collective, of two to four ranks, with uneven shards now and then."""
    groups = []
    for name in ("a", "b")[: draw(st.integers(1, 2))]:
        collective = draw(st.sampled_from(COLLECTIVES))
        nodes = st.sampled_from(range(len(topology.nodes)))
        ranks = tuple(draw(st.lists(nodes, min_size=2, max_size=4, unique=True)))
        root = draw(st.sampled_from(ranks)) if collective in ROOTED else None
        parts: tuple[int, ...] = ()
        if collective == "alltoallv":
            parts = (draw(st.integers(1, 3)), *(draw(st.integers(0, 3)) for _ in range(len(ranks) ** 2 - 1)))
        elif collective in ("allgather", "reducescatter", "scatter") and draw(st.booleans()):
            parts = tuple(draw(st.integers(1, 3)) for _ in ranks)
        groups.append(Group(name, collective, ranks, draw(st.integers(5, 50)), root, parts))
    return Workload(tuple(groups), draw(st.sampled_from(list(Objective))))


@settings(max_examples=300)
@given(fabrics(), st.sampled_from(list(Forwarding)), st.booleans(), st.data())
def test_bound_is_that_of_the_cheapest_columns(
    topology: Topology, forwarding: Forwarding, relay: bool, data: st.DataObject
) -> None:
    """The bound is the formula of §5 with the cheapest of all enumerated columns, or none with a finding."""
    workload = data.draw(workloads(topology))
    demands = Demands(workload, topology)
    if {demand.group for demand in demands.all} != set(range(len(workload.groups))):
        return
    rows = len(topology.links) + len(topology.shared)
    prices = data.draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
    on_link = link_prices(prices, topology)
    costs = cheapest_routes(on_link, topology, Policy(topology, forwarding), list(workload.ranks))
    findings = Findings()
    proved = prove_bound(prices, costs, 1, demands, topology, findings, relay=relay)

    spent = [Fraction(0)] * len(workload.groups)
    possible = True
    for demand in demands.all:
        group = workload.groups[demand.group]
        table = [[cheapest_route(topology, forwarding, on_link, u, v) for v in group.ranks] for u in group.ranks]
        cost = cheapest_column(demand, group, table, relay=relay)
        possible &= cost is not None
        spent[demand.group] += demand.part * (cost or 0)
    whole = zip(spent, workload.groups, strict=True)
    if workload.objective is Objective.SLOWEST:
        divisor = sum(spent, Fraction(0)) / workload.size
    else:
        divisor = min(total / group.size for total, group in whole)
    if not possible or divisor == 0:
        assert proved is None
        assert findings
        return
    capacities = [*(link.capacity for link in topology.links), *(row.capacity for row in topology.shared)]
    assert proved == sum(Fraction(c) * price for c, price in zip(capacities, prices, strict=True)) / divisor
    assert not findings


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("collective", [name for name in COLLECTIVES if name != "alltoallv"])
def test_no_prices_prove_less_than_the_best_packing(collective: str, objective: Objective) -> None:
    """The best packing of all columns, by a linear program, is below every bound, and its duals prove it."""
    rng = np.random.default_rng(7)
    nodes = (*(Node(f"g{i}", Kind.GPU, box="b") for i in range(3)), Node("sw", Kind.SWITCH))
    ends = [(0, 3), (1, 3), (2, 3), (0, 1)]
    links = [half for u, v in ends for half in duplex(Link(u, v, 1.0))]
    topology = Topology(nodes, tuple(Link(k.tail, k.head, float(rng.integers(1, 6))) for k in links))
    root = 1 if collective in ROOTED else None
    workload = Workload((Group("a", collective, (0, 1, 2), 12, root), Group("b", "broadcast", (0, 2), 6, 0)), objective)
    best, duals = _best_packing(topology, workload)
    demands = Demands(workload, topology)
    bounds = []
    for real in (duals, *(rng.random(len(links)) for _ in range(20))):
        prices = [round(price * 2**40) for price in real]
        costs = cheapest_routes(prices, topology, Policy(topology, Forwarding.SWITCHES), [0, 1, 2])
        proved = prove_bound(prices, costs, 1, demands, topology, Findings(), relay=True)
        assert proved is not None
        bounds.append(float(proved))
    assert bounds[0] == pytest.approx(best, rel=1e-9)
    assert min(bounds) >= best * (1 - 1e-9)


def _best_packing(topology: Topology, workload: Workload) -> tuple[float, np.ndarray]:
    """Rate and link prices of the program over every tree and every route of it."""
    routes = {(u, v): _routes(topology, u, v) for u, v in permutations((0, 1, 2), 2)}
    columns: list[tuple[int, np.ndarray]] = []
    demands = workload.demands()
    for j, demand in enumerate(demands):
        for edges in _edge_sets(demand.pattern, demand.root, demand.target, workload.groups[demand.group].ranks):
            loads = [np.zeros(len(topology.links))]
            for edge in edges:
                loads = [load + route for load in loads for route in routes[edge]]
            columns += [(j, load) for load in loads]
    T, G, E = len(columns), len(workload.groups), len(topology.links)
    # variables: rates of the trees, messages per second of the groups
    pace = np.zeros((len(demands), T + G))
    for t, (j, _) in enumerate(columns):
        pace[j, t] = -1
    for j, demand in enumerate(demands):
        pace[j, T + (demand.group if workload.objective is Objective.TOTAL else 0)] = float(demand.part)
    capacity = np.zeros((E, T + G))
    capacity[:, :T] = np.column_stack([load for _, load in columns])
    worth = np.zeros(T + G)
    worth[T:] = (
        [group.size for group in workload.groups] if workload.objective is Objective.TOTAL else [workload.size, 0]
    )
    limits = np.concatenate([[link.capacity for link in topology.links], np.zeros(len(demands))])
    done = linprog(-worth, A_ub=np.vstack([capacity, pace]), b_ub=limits)
    assert done.fun is not None
    return -done.fun, -done.ineqlin.marginals[:E]


def _routes(topology: Topology, u: int, v: int) -> list[np.ndarray]:
    """Direct links and those over the switch, as loads."""
    direct = [[e] for e, link in enumerate(topology.links) if (link.tail, link.head) == (u, v)]
    up = [e for e, link in enumerate(topology.links) if (link.tail, link.head) == (u, 3)]
    down = [e for e, link in enumerate(topology.links) if (link.tail, link.head) == (3, v)]
    return [np.bincount(route, minlength=len(topology.links)).astype(float) for route in [*direct, up + down]]


def _edge_sets(
    pattern: Pattern, root: int | None, target: int | None, ranks: tuple[int, ...]
) -> list[list[tuple[int, int]]]:
    """Every structure of a demand as its logical edges."""
    if pattern is Pattern.SEND:
        assert root is not None
        assert target is not None
        over = [rank for rank in ranks if rank not in (root, target)]
        return [[(root, target)], *([(root, r), (r, target)] for r in over)]
    roots = ranks if root is None else (root,)
    found = []
    for r in roots:
        steps = all_parents(len(ranks), ranks.index(r))
        inward = [[(ranks[v], ranks[p]) for v, p in step.items()] for step in steps]
        outward = [[(p, v) for v, p in edges] for edges in inward]
        if pattern is Pattern.ALLREDUCE:
            found += [a + b for a in inward for b in outward]
        else:
            found += inward if pattern is Pattern.REDUCE else outward
    return found
