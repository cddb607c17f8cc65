from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dualcoll.collectives.workload import Group, Objective, Workload
from dualcoll.errors import InputError
from dualcoll.plans.model import Plan
from dualcoll.sharing import share
from dualcoll.sharing.max_min import Loads, max_min
from dualcoll.sharing.realise import flow_loads
from dualcoll.topology.arrays import FabricArrays, fabric_arrays
from tests.sharing.instances import Instance, progressive_filling
from tests.sharing.plans import broadcast, fabric, made_plan, mesh, pair, random_plan

SEEDS = range(60)


def _two_cables() -> Plan:
    """§5.5: rates of 100 and 50 over one link of 150."""
    topology = fabric(2, [(0, 1, 150.0), (1, 0, 150.0)])
    trees = [pair(topology, rate, {(0, 1): [[0, 1]]}) for rate in (100.0, 50.0)]
    return made_plan(topology, trees)


def _figure_1() -> Plan:
    """Figure 1 with trees of its ratios and residues: 6 on every cable of a 2x3 mesh but 9 on (0, 3)."""
    cables = dict.fromkeys([(0, 1), (1, 2), (0, 3), (1, 4), (2, 5), (3, 4), (4, 5)], 6.0) | {(0, 3): 9.0}
    topology = mesh(6, cables)
    paths = [
        [[0, 1], [1, 2], [0, 3], [3, 4], [4, 5]],
        [[0, 1], [0, 1, 2], [0, 3], [2, 5], [1, 4]],
        [[0, 3], [3, 4], [4, 5], [4, 1], [5, 2]],
    ]
    trees = [
        pair(topology, rate, {(p[0], p[-1]): [p] for p in tree}) for rate, tree in zip((2, 2, 4), paths, strict=True)
    ]
    return made_plan(topology, trees)


def _figure_2() -> Plan:
    """Figure 2: tree 2 sprays its edge (0, 3) over both sides of a 2x2 mesh."""
    topology = mesh(4, {(0, 1): 3, (0, 2): 3, (1, 3): 10, (2, 3): 10})
    first = pair(topology, 2, {(0, 2): [[0, 2]], (2, 3): [[2, 3]], (3, 1): [[3, 1]]})
    second = pair(topology, 2, {(0, 3): [[0, 1, 3], [0, 2, 3]], (1, 3): [[1, 3]], (2, 3): [[2, 3]]})
    return made_plan(topology, [first, second])


def _tree_loads(plan: Plan, fabric_: FabricArrays) -> Loads:
    """The flows of each tree together."""
    flows, tree_of = flow_loads(plan, fabric_)
    return flows.merged(tree_of, len(plan.trees))


def test_two_copies_imitate_twice_the_rate() -> None:
    """§5.5: 2 + 1 copies get 50 each, so the trees 100 and 50, and nothing of the optimum is lost."""
    found = share(_two_cables())
    assert found.copies.tolist() == [2, 1]
    assert (found.scale, found.trees, found.copy_rate, found.guaranteed) == (1, 2, 50, 100)
    for delivery in (found.explicit, found.floor, found.coupled, found.by_flow):
        assert delivery.rates.tolist() == [100, 50]
        assert (delivery.total, delivery.value) == (150, 150)
    assert found.limit.tolist() == [0, 0]


def test_figure_1() -> None:
    """Ratios 2 on (0, 1), 3 elsewhere; trees 1 and 2 are clamped at 2, which leaves 4 where tree 3 is alone, and it gets 4."""
    plan = _figure_1()
    fabric_ = fabric_arrays(plan.topology)
    loads = _tree_loads(plan, fabric_)
    ratios = fabric_.capacity / loads.total(np.ones(3))
    assert ratios.tolist() == [2, 2, *[3] * 12]
    left = fabric_.capacity - loads.total(np.array([2.0, 2, 0]))
    assert left[::2].tolist() == left[1::2].tolist() == [0, 2, 5, 4, 4, 4, 4]
    found = max_min(loads, fabric_.capacity)
    assert found.rate.tolist() == [2, 2, 4]
    assert found.step[0] == found.step[1] < found.step[2]
    assert found.row[found.step[0]] in (0, 1)


def test_figure_2() -> None:
    """Load sums 0.5, 1.5, 2.5, 2.5 are shares of 6, 2, 4, 4; both trees use link (0, 2) and get 2."""
    plan = _figure_2()
    fabric_ = fabric_arrays(plan.topology)
    loads = _tree_loads(plan, fabric_)
    sums = loads.total(np.ones(2))
    assert sums[::2].tolist() == sums[1::2].tolist() == [0.5, 1.5, 2.5, 2.5]
    assert (fabric_.capacity / sums)[::2].tolist() == [6, 2, 4, 4]
    found = max_min(loads, fabric_.capacity)
    assert found.rate.tolist() == [2, 2]
    assert found.row[found.step].tolist() in ([2, 2], [3, 3])
    assert share(plan).coupled.rates.tolist() == [2, 2]


def test_flows_of_a_slow_tree_take_what_it_cannot_use() -> None:
    """Tree A is held to 1 by its own cable. Coupled, its other flow asks for no more than 1 of the 10 that A shares with B;
    as a flow of its own it takes a third, as each of B's two copies does."""
    topology = fabric(3, [(0, 1, 1.0), (0, 1, 100.0), (1, 2, 10.0)])
    plan = made_plan(topology, [broadcast(topology, 1, [0, 2]), broadcast(topology, 2, [1, 2])])
    found = share(plan)
    assert found.copies.tolist() == [1, 2]
    assert found.coupled.rates.tolist() == [1, 9]
    assert found.by_flow.rates == pytest.approx([1, 20 / 3])
    assert found.limit.tolist() == [0, 2]


def test_both_phases_load_a_shared_capacity() -> None:
    """A half-duplex bus of 6 carries both directions of a pair, so two equal pairs get 1.5 each."""
    topology = fabric(2, [(0, 1, 4.0), (1, 0, 4.0)], [((0, 1), 6.0)])
    plan = made_plan(topology, [pair(topology, 1, {(0, 1): [[0, 1]]}) for _ in range(2)])
    found = share(plan)
    assert found.coupled.rates.tolist() == found.by_flow.rates.tolist() == [1.5, 1.5]
    assert found.limit.tolist() == [2, 2]


def test_flows_are_the_logical_edges() -> None:
    """Each edge of each phase is one flow of its tree, its parts on links and shared capacities its own."""
    topology = fabric(2, [(0, 1, 4.0), (1, 0, 4.0)], [((1,), 1.0), ((0, 1), 6.0)])
    plan = made_plan(topology, [pair(topology, 1, {(0, 1): [[0, 1]]}), broadcast(topology, 1, [0])])
    loads, tree_of = flow_loads(plan, fabric_arrays(topology))
    assert tree_of.tolist() == [0, 0, 1]
    dense = np.zeros((loads.rows, loads.users))
    dense[loads.row_of(), loads.user] = loads.load
    assert dense.tolist() == [[1, 0, 1], [0, 1, 0], [0, 1, 0], [1, 1, 1]]


def test_a_tree_without_rate_runs_no_copies() -> None:
    """It carries nothing and is held by nothing, and takes nothing from the others."""
    plan = _two_cables()
    idle = replace(plan.trees[0], rate=0.0)
    found = share(replace(plan, trees=(idle, *plan.trees)))
    assert found.copies.tolist() == [0, 2, 1]
    assert found.limit.tolist() == [-1, 0, 0]
    assert found.trees == 2
    assert found.coupled.rates.tolist() == found.by_flow.rates.tolist() == [0, 100, 50]


def test_a_small_demand_keeps_its_rate_beside_a_large_one() -> None:
    """Two sends of 30 and 1 bytes on links of their own: the value stays, though pooled copies would starve the small one."""
    topology = fabric(2, [(0, 1, 30.0), (1, 0, 1.0)])
    workload = Workload((Group("all", "alltoallv", (0, 1), 30, parts=(0, 30, 1, 0)),))
    trees = [broadcast(topology, rate, [link], demand=link) for link, rate in enumerate((30.0, 1.0))]
    found = share(made_plan(topology, trees, workload))
    assert found.copies.tolist() == [30, 1]
    assert found.explicit.value == found.floor.value == found.coupled.value == found.by_flow.value == 30
    assert (found.coupled.total, found.guaranteed) == (31, 2)


def test_value_is_the_plans_objective() -> None:
    """Two groups that share a link of 9: rates 6 and 3 for messages of 60 and 30 count 6 for the slowest and 9 in total."""
    topology = fabric(3, [(0, 1, 9.0), (1, 2, 9.0), (0, 2, 1.0)])
    groups = (Group("a", "broadcast", (0, 1), 60, root=0), Group("b", "broadcast", (0, 1), 30, root=0))
    trees = [broadcast(topology, rate, [0], demand) for demand, rate in enumerate((6.0, 3.0))]
    for objective, value in ((Objective.SLOWEST, 6.0), (Objective.TOTAL, 9.0)):
        found = share(made_plan(topology, trees, Workload(groups, objective)))
        assert found.copies.tolist() == [2, 1]
        assert found.explicit.value == found.coupled.value == value
        assert found.coupled.total == 9


def test_accuracy_chooses_the_scale() -> None:
    """Two trees and 5 %: (2 - 1) / (2 * 0.05) = 10 copies a tree."""
    plan = _two_cables()
    assert share(plan, accuracy=0.05).scale == 10
    assert share(plan, copies=10).copies.tolist() == share(plan, accuracy=0.05).copies.tolist() == [14, 7]


@pytest.mark.parametrize("seed", SEEDS)
def test_guarantees_hold_on_random_plans(seed: int) -> None:
    """Lemma 5.5 and Theorem 5.6, tree-coupled and by flow: every copy gets X*, all get y k X*, that is within its factor of
    the optimum, and no link carries too much."""
    plan = random_plan(seed)
    fabric_ = fabric_arrays(plan.topology)
    scale = 1 + seed % 4
    found = share(plan, copies=scale)
    k = found.trees
    near = 1 - 1e-12
    assert scale * k <= found.copies.sum() <= scale * k + k - 1
    assert found.explicit.total <= found.guaranteed * (1 + (k - 1) / (scale * k)) / near
    assert found.floor.total >= found.guaranteed * near
    assert found.floor.rates.tolist() == (found.copies * found.copy_rate).tolist()
    for delivery in (found.coupled, found.by_flow):
        assert (delivery.rates >= found.floor.rates * near).all()
        assert delivery.total == pytest.approx(delivery.value)
        used = _tree_loads(plan, fabric_).total(delivery.rates)
        assert (used <= fabric_.capacity / near).all()
    busy = found.copies > 0
    coupled = _tree_loads(plan, fabric_).total(found.coupled.rates)
    assert coupled[found.limit[busy]] == pytest.approx(fabric_.capacity[found.limit[busy]])


@pytest.mark.parametrize("seed", range(12))
def test_both_models_are_progressive_filling_of_every_copy(seed: int) -> None:
    """Flow by flow, and tree by tree: growing the rates of copies that are written out one by one ends at the same rates."""
    plan = random_plan(seed)
    found = share(plan)
    capacity = [*(link.capacity for link in plan.topology.links), *(row.capacity for row in plan.topology.shared)]
    copies = [i for i, count in enumerate(found.copies.tolist()) for _ in range(count)]
    flows = [(i, on) for i in copies for on in _edges_on_rows(plan, i)]
    whole = [
        (i, tuple(sum(column, Fraction(0)) for column in zip(*_edges_on_rows(plan, i), strict=True))) for i in copies
    ]
    for users, delivered in ((flows, found.by_flow), (whole, found.coupled)):
        instance = Instance(tuple(on for _, on in users), tuple(map(Fraction, capacity)))
        slowest: dict[int, Fraction] = {}
        for (i, _), rate in zip(users, progressive_filling(instance), strict=True):
            slowest[i] = min(rate, slowest.get(i, rate))
        expected = [float(slowest.get(i, 0) * copies.count(i)) for i in range(len(plan.trees))]
        assert delivered.rates == pytest.approx(expected)


def _edges_on_rows(plan: Plan, tree: int) -> list[tuple[Fraction, ...]]:
    """What each edge of a tree puts on each link and shared capacity."""
    found = []
    members = plan.trees[tree]
    assert members.route_share is not None
    for first, last in pairwise(members.route_ptr.tolist()):
        on = [Fraction(0)] * len(plan.topology.links)
        for link, part in zip(members.route_links[first:last], members.route_share[first:last], strict=True):
            on[link] += Fraction(float(part)).limit_denominator(60)
        found.append((*on, *(sum((on[e] for e in row.links), Fraction(0)) for row in plan.topology.shared)))
    return found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"copies": 2, "accuracy": 0.1}, "both the copies and the accuracy are given; give one of them"),
        ({"copies": 0}, "0 copies a tree are too few; ask for 1 or more"),
        ({"accuracy": -1.0}, "accuracy -1.0 is not a finite number > 0; 0.1 keeps 1/1.1 of the rate"),
        ({"accuracy": 1e-320}, "that takes more than 2**53 copies; ask for fewer copies a tree, or for less accuracy"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, float], message: str) -> None:
    """One of copies and accuracy, and a number of copies that can be counted."""
    with pytest.raises(InputError) as caught:
        share(_two_cables(), **options)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_plan_that_carries_nothing_is_refused() -> None:
    """There is nothing to imitate."""
    plan = _two_cables()
    for trees in ((), tuple(replace(tree, rate=0.0) for tree in plan.trees)):
        with pytest.raises(InputError) as caught:
            share(replace(plan, trees=trees), accuracy=0.1)
        assert str(caught.value) == "no tree carries anything; at least one rate must be positive"


def test_a_plan_that_overloads_is_refused() -> None:
    """The guarantee rests on a feasible plan: the link or shared capacity is named with its load."""
    topology = fabric(2, [(0, 1, 4e9), (1, 0, 4e9)], [((0, 1), 6e9)])
    for rate, message in [
        (5e9, "link g0 -> g1: the trees load it with 5 GB/s of 4 GB/s, 25 % too much"),
        (3.5e9, "shared capacity 0: the trees load it with 7 GB/s of 6 GB/s, 16.7 % too much"),
    ]:
        plan = made_plan(topology, [pair(topology, rate, {(0, 1): [[0, 1]]})])
        with pytest.raises(InputError) as caught:
            share(plan)
        assert str(caught.value) == f"{message}; only a plan that the fabric can carry can be imitated; check it first"
