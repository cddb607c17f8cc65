"""AllReduce composed of ReduceScatter and AllGather: the paper's numbers, and the best overlap by a second method."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

from dualcoll._api import check, plan
from dualcoll.collectives.workload import Group, Workload
from dualcoll.errors import InputError
from dualcoll.packing import composed as module
from dualcoll.packing.composed import Composed, composed, composed_packing
from dualcoll.packing.overlap import Overlap, overlap_with_reverse
from dualcoll.plans.model import Phase, Tree
from dualcoll.progress import Gap, Meter, Outcome, Seconds
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.testing import degrade
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Forwarding, Topology
from tests.packing.exact import FABRIC_KINDS, random_case
from tests.packing.fabrics import GB, fabric
from tests.packing.problems import one_group

PATH = fabric("g0-g1:4, g1-g2:4, g2-g3:4, g3-g4:4")
TRIANGLE = fabric("g0-g1:1, g0-g2:2, g1-g2:2")


def _all(topology: Topology, forwarding: Forwarding = Forwarding.SWITCHES) -> Composed:
    return composed(topology, topology.ranks, forwarding)


def _assert_sound(topology: Topology, found: Overlap) -> None:
    """Pairs of trees with a common root, each with both phases, that fill the busiest row and no row more."""
    loads = np.zeros(len(topology.links))
    for column, rate in zip(found.columns, found.rates.tolist(), strict=True):
        assert rate > 0
        loads[column.links] += rate * column.loads
        tree = column.tree
        for phase in (Phase.REDUCE, Phase.BROADCAST):
            edges = tree.edges[tree.phase == phase]
            outward: nx.DiGraph[int] = nx.DiGraph((edges[:, ::-1] if phase is Phase.REDUCE else edges).tolist())
            assert nx.is_arborescence(outward)
            assert sorted(outward) == sorted(topology.ranks)
            assert outward.in_degree(tree.root) == 0
    fabric_rows = fabric_arrays(topology)
    used = fabric_rows.row_loads(loads) / fabric_rows.capacity
    assert used.max() == pytest.approx(1.0, rel=1e-9)
    assert used[list(found.worst)] == pytest.approx(np.ones(len(found.worst)), rel=1e-7)
    assert found.rates.sum() == pytest.approx(found.rate, rel=1e-9)
    assert found.rate == pytest.approx(found.allgather / found.crowding)


def _hand_made(topology: Topology, edges: str, rate: float) -> Tree:
    """A tree from ``"0 2, 2 1"``, each edge routed along the path of ranks between its ends."""
    pairs = [tuple(map(int, edge.split())) for edge in edges.split(",")]
    link_of = {(link.tail, link.head): e for e, link in enumerate(topology.links)}
    routes = []
    for a, b in pairs:
        step = 1 if a < b else -1
        routes.append([link_of[x, x + step] for x in range(a, b, step)])
    ptr = np.cumsum([0] + [len(route) for route in routes])
    links = np.array(list(itertools.chain(*routes)))
    phases = np.full(len(pairs), Phase.BROADCAST, np.int8)
    return Tree(rate, pairs[0][0], pairs[0][0], 1, np.array(pairs), phases, ptr, links)


def test_appendix_a_of_the_paper() -> None:
    """Five ranks in a line of capacity 4: AllGather 1 a root; 2.5 in sequence, 4 at best, as direct; the paper's set 10/3."""
    found = _all(PATH, Forwarding.ALL)
    assert found.allgather / 5 == pytest.approx(GB)
    assert found.reducescatter == pytest.approx(5 * GB)
    assert found.sequential == pytest.approx(2.5 * GB)
    assert found.best.rate == pytest.approx(4 * GB)
    assert found.direct == pytest.approx(4 * GB)
    assert 2.5 * GB * (1 - 1e-9) <= found.given.rate <= 4 * GB * (1 + 1e-9)
    sets = (
        "0 2, 2 1, 2 3, 3 4",
        "1 0, 1 2, 2 3, 3 4",
        "2 1, 1 0, 2 3, 3 4",
        "3 2, 2 1, 1 0, 3 4",
        "4 3, 3 2, 2 1, 1 0",
    )
    twisted = overlap_with_reverse(PATH, [_hand_made(PATH, edges, GB) for edges in sets])
    assert twisted is not None
    assert twisted.allgather == pytest.approx(5 * GB)
    assert twisted.rate == pytest.approx(10 / 3 * GB)
    assert twisted.crowding * 4 == pytest.approx(6)
    assert {PATH.describe_link(e) for e in twisted.worst} == {"g1 -> g2", "g2 -> g1"}
    _assert_sound(PATH, twisted)


def test_a_triangle_separates_direct_from_composed() -> None:
    """Cables of 1, 2 and 2: 5/2 direct, 9/4 is proved to be the best composition."""
    found = _all(TRIANGLE)
    assert found.direct == pytest.approx(2.5 * GB)
    assert found.best.rate == pytest.approx(2.25 * GB)
    assert found.best.bound == pytest.approx(2.25 * GB, rel=1e-6)


def test_a_mesh_whose_trees_do_better_together() -> None:
    """3 x 3 unit links: 1.125 one after the other, 1.5 at best, as direct."""
    found = _all(catalog("mesh:3x3,bandwidth=1GB/s"))
    assert found.sequential == pytest.approx(1.125 * GB)
    assert found.best.rate == pytest.approx(1.5 * GB)
    assert found.direct == pytest.approx(1.5 * GB)


@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(1, 4))
def test_the_numbers_are_in_order_and_the_best_is_proved(seed: int, kind: str) -> None:
    """In sequence, as found, at best, direct; the proof is as good as the value; all are real AllReduces."""
    topology = random_case(kind, seed)
    found = _all(topology)
    slack = 1 + 1e-7
    assert found.reversed is not kind.startswith("one-way")
    assert found.sequential <= found.given.rate * slack
    assert found.given.rate <= found.best.rate * slack
    assert found.best.rate <= found.best.bound * (1 + 1e-12) <= found.direct_bound * slack
    assert found.best.bound == pytest.approx(found.best.rate, rel=1e-6)
    assert found.best.allgather == pytest.approx(found.allgather, rel=1e-7)
    for one in (found.given, found.best):
        _assert_sound(topology, one)


def _out_trees(topology: Topology, root: int) -> Iterator[list[tuple[int, int]]]:
    """Every arborescence of the links between ranks out of a root."""
    arcs = [(link.tail, link.head) for link in topology.links]
    for chosen in itertools.combinations(arcs, len(topology.ranks) - 1):
        graph = nx.DiGraph(list(chosen))
        if len(graph) == len(topology.ranks) and nx.is_arborescence(graph) and graph.in_degree(root) == 0:
            yield list(chosen)


def _linprog(cost: np.ndarray, **rows: Any) -> float:
    solution: Any = linprog(cost, method="highs", **rows)
    assert solution.status == 0, solution.message
    return float(solution.fun)


def _best_by_enumeration(topology: Topology) -> tuple[float, float]:
    """The AllGather's optimum and the best overlap, GB/s, by LPs over all trees on ranks that are joined directly."""
    n, links = len(topology.ranks), len(topology.links)
    place = {(link.tail, link.head): e for e, link in enumerate(topology.links)}
    capacity = np.array([link.capacity for link in topology.links]) / GB
    loads, roots = [], []
    for root in topology.ranks:
        for tree in _out_trees(topology, root):
            load = np.zeros(links)
            load[[place[arc] for arc in tree]] = 1
            loads.append(load)
            roots.append(root)
    into, roots_in = [], []
    reverse = Topology(
        topology.nodes, tuple(type(link)(link.head, link.tail, link.capacity) for link in topology.links)
    )
    for root in topology.ranks:
        for tree in _out_trees(reverse, root):
            load = np.zeros(links)
            load[[place[b, a] for a, b in tree]] = 1
            into.append(load)
            roots_in.append(root)
    gather, scatter = np.array(loads).T, np.array(into).T
    share = [np.array([[root == r for r in of] for root in topology.ranks], float) for of in (roots, roots_in)]

    def alone(table: np.ndarray, of_root: np.ndarray) -> float:
        # per unit of AllGather rate: least worst load over capacity
        size = table.shape[1]
        matrix = np.column_stack([table, -capacity])
        equal = np.column_stack([of_root, np.zeros(n)])
        cost = np.eye(size + 1)[size]
        return _linprog(cost, A_ub=matrix, b_ub=np.zeros(links), A_eq=equal, b_eq=np.full(n, 1 / n))

    time_out, time_in = alone(gather, share[0]), alone(scatter, share[1])
    wide = gather.shape[1] + scatter.shape[1] + 1
    both = np.column_stack([gather, scatter, -capacity])
    own = np.zeros((2 * links, wide))
    own[:links, : gather.shape[1]], own[links:, gather.shape[1] : -1] = gather, scatter
    limit = np.concatenate([capacity * time_out, capacity * time_in]) * (1 + 1e-9)
    equal = np.zeros((2 * n, wide))
    equal[:n, : gather.shape[1]], equal[n:, gather.shape[1] : -1] = share
    least = _linprog(
        np.eye(wide)[-1],
        A_ub=np.vstack([both, own]),
        b_ub=np.concatenate([np.zeros(links), limit]),
        A_eq=equal,
        b_eq=np.full(2 * n, 1 / n),
    )
    return 1 / time_out, 1 / least


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_overlap_is_what_an_lp_over_all_trees_gives(seed: int, symmetric: bool) -> None:
    """Three or four ranks joined directly; the LP knows of no reverse, and on symmetric fabrics needs none."""
    random = np.random.default_rng(seed)
    n = 3 + seed % 2
    cables = []
    for a, b in itertools.combinations(range(n), 2):
        if n == 3 or b == a + 1 or random.random() < 0.5:
            there = int(random.integers(1, 6))
            cables.append(f"g{a}-g{b}:{there}/{there if symmetric else int(random.integers(1, 6))}")
    topology = fabric(", ".join(cables))
    allgather, best = _best_by_enumeration(topology)
    found = _all(topology)
    assert found.allgather == pytest.approx(allgather * GB, rel=1e-6)
    assert found.best.rate == pytest.approx(best * GB, rel=1e-6)


@pytest.mark.parametrize("kind", ["switched", "boxes", "shared", "shared boxes"])
@pytest.mark.parametrize("seed", range(3))
def test_a_reduce_scatter_of_its_own_gives_nothing_better_on_symmetric_fabrics(
    seed: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The average of trees and the others' reverse does as well, so one AllGather's trees are enough."""
    topology = random_case(kind, seed)
    mirrored = _all(topology)
    monkeypatch.setattr(module, "reversal", lambda _: None)
    apart = _all(topology)
    assert (mirrored.reversed, apart.reversed) == (True, False)
    assert apart.best.rate == pytest.approx(mirrored.best.rate, rel=1e-6)
    assert apart.reducescatter == pytest.approx(mirrored.reducescatter, rel=1e-6)


@pytest.mark.parametrize("routing", [RoutingKind.SPRAY, RoutingKind.SPRAY_CABLES, RoutingKind.ECMP])
def test_where_the_network_routes_the_reduce_scatter_has_its_own_trees(routing: RoutingKind) -> None:
    """Reversed sprayed trees may not fit; what is composed does."""
    for topology in (catalog("torus:3x3"), random_case("switched", 2), random_case("one-way", 2)):
        found = composed(topology, topology.ranks, routing=Routing(routing))
        assert not found.reversed
        assert found.best.bound == pytest.approx(found.best.rate, rel=1e-6)
        _assert_sound(topology, found.given)
        _assert_sound(topology, found.best)


def test_trees_without_a_reverse_have_no_overlap_with_it() -> None:
    """An asymmetric fabric, and sprayed packets."""
    one_way = plan(fabric("g0-s0:3/2, g1-s0:3, g2-s0:3"), "allgather")
    assert overlap_with_reverse(one_way.topology, one_way.trees) is None
    sprayed = plan(catalog("torus:3x3"), "allgather", routing="spray")
    assert overlap_with_reverse(sprayed.topology, sprayed.trees) is None
    single = plan(catalog("torus:3x3"), "allgather")
    assert overlap_with_reverse(single.topology, single.trees) is not None


def test_a_capacity_shared_by_part_of_a_reverse() -> None:
    """A bus over three of four links has no reverse that it is not a part of itself: the halves are packed apart."""
    topology = fabric("g0>g1:4, g1>g0:4, g1>g2:4, g2>g1:4", shared="0 1 2: 6; 0 1 3: 6")
    found = _all(topology)
    assert not found.reversed
    assert found.best.rate == pytest.approx(plan(topology).value, rel=1e-6)


@pytest.mark.parametrize(
    ("topology", "forward"),
    [(PATH, "all"), (TRIANGLE, "switches"), (random_case("one-way", 1), "switches"), (random_case("shared", 2), "all")],
)
def test_a_composed_plan_is_an_ordinary_plan_that_a_check_proves(topology: Topology, forward: str) -> None:
    """Its trees are pairs, its value the best composition, its bound that of every AllReduce."""
    made = plan(topology, method="composed", forward=forward)
    proof = check(made)
    assert made.method == "composed"
    best = composed(topology, topology.ranks, Forwarding(forward)).best
    assert made.value == pytest.approx(best.rate, rel=1e-6)
    assert float(proof.bound) == pytest.approx(plan(topology, forward=forward).bound, rel=1e-6)


def test_degraded_rails_within_a_gap() -> None:
    """128 GPUs to 1 %: within the gap of the best, and the trees as found are worse than that."""
    topology = degrade(catalog("dgx-h100:boxes=16"), 1)
    found = composed(topology, topology.ranks, meter=Meter(Gap(0.01) | Seconds(60)))
    assert found.best.rate >= 0.99 * found.best.bound
    assert found.allgather >= 0.99 * found.allgather_bound
    assert found.given.rate < 0.99 * found.best.rate
    _assert_sound(topology, found.best)


def test_a_time_limit_leaves_the_trees_as_they_were_found() -> None:
    """Nothing better is known by then but a bound on every AllReduce."""
    topology = random_case("switched", 2)
    meter = Meter(Seconds(1e-6))
    _, packing, found, outcome, calls = composed_packing(topology, one_group(topology.ranks), meter=meter)
    assert outcome is Outcome.TIME
    assert found.best.rate == found.given.rate == packing.value
    assert found.best.bound == found.direct_bound == packing.bound
    assert calls > 0
    _assert_sound(topology, found.best)


def test_an_interrupt_is_heeded() -> None:
    """As a time limit is."""
    topology = catalog("torus:4x4")
    meter = Meter(Gap(0.0))
    meter.interrupt()
    outcome = composed_packing(topology, one_group(topology.ranks), meter=meter)[3]
    assert outcome is Outcome.INTERRUPTED


def test_what_is_slower_than_the_bound_is_limited() -> None:
    """2.25 against 2.5; where the composition is as good as any AllReduce it is optimal."""
    assert composed_packing(TRIANGLE, one_group(TRIANGLE.ranks))[3] is Outcome.LIMITED
    assert composed_packing(PATH, one_group(PATH.ranks))[3] is Outcome.OPTIMAL


@pytest.mark.parametrize(
    "workload",
    [
        one_group((0, 1, 2), "allgather"),
        Workload((Group("a", "allreduce", (0, 1), 8), Group("b", "allreduce", (1, 2), 8))),
    ],
)
def test_only_an_allreduce_of_one_group_is_composed(workload: Workload) -> None:
    """Anything else is refused."""
    with pytest.raises(InputError) as caught:
        composed_packing(TRIANGLE, workload)
    assert str(caught.value) == (
        "method composed: only an AllReduce of one group is composed of ReduceScatter and AllGather"
    )
