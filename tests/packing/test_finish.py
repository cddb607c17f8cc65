"""From a packing to a plan."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll._api import check, plan
from dualcoll.packing.finish import plan_trees
from dualcoll.packing.pool import ColumnPool
from dualcoll.packing.problem import Column, RoutedTree
from dualcoll.plans.model import Plan
from dualcoll.plans.shares import split_bytes
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.catalog import catalog
from tests.packing.exact import FABRIC_KINDS, random_case
from tests.packing.fabrics import GB, fabric
from tests.packing.problems import allreduce_problem, cheapest, one_group, packing_of

RATES = st.lists(st.floats(1e3, 1e13), min_size=1, max_size=8)


def _loads(made: Plan) -> list[Fraction]:
    loads = [Fraction(0)] * len(made.topology.links)
    for tree in made.trees:
        for link in tree.route_links.tolist():
            loads[link] += Fraction(tree.rate)
    return loads


@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_a_plan_keeps_its_words(seed: int, kind: str) -> None:
    """Trees stand by falling rate, no exact load is over capacity, the value is not above the exact sum, bytes add up."""
    topology = random_case(kind, seed)
    made = plan(topology, size="1MB")
    rates = [tree.rate for tree in made.trees]
    loads = _loads(made)
    assert rates == sorted(rates, reverse=True)
    assert min(rates) > 0
    assert all(load <= Fraction(link.capacity) for load, link in zip(loads, topology.links, strict=True))
    assert all(sum(loads[e] for e in row.links) <= Fraction(row.capacity) for row in topology.shared)
    assert Fraction(made.value) <= sum(map(Fraction, rates)) <= Fraction(made.bound)
    assert sum(tree.size for tree in made.trees) == made.size == 1_000_000
    prices = np.concatenate([made.link_prices, made.shared_prices])
    worth = prices @ fabric_arrays(topology).capacity
    assert worth == pytest.approx(1.0, rel=1e-12)


def test_tree_nodes_are_node_indices() -> None:
    """Participants need be neither first nor in node order: edges, roots and participants name the fabric's own nodes."""
    topology = fabric("s0-g0:1, s0-g1:1, s0-g2:1, s0-g3:1")
    made = plan(topology, ranks=["g3", "g0", "g2"])
    assert [topology.nodes[i].name for i in made.participants] == ["g3", "g0", "g2"]
    for tree in made.trees:
        assert set(tree.edges.ravel().tolist()) == set(made.participants)
        assert tree.root in made.participants
    check(made)


def test_a_message_of_few_bytes_leaves_trees_without_any() -> None:
    """One byte over many trees: one of them carries it, and the plan is still proved."""
    made = plan(catalog("dgx-1v"), size=1)
    assert sorted(tree.size for tree in made.trees)[-2:] == [0, 1]
    check(made)


def test_detours_are_cut_out() -> None:
    """A walk that visits a node twice loses the loop, and its bytes no longer load it."""
    topology = fabric("g0-s0:1, s0-s1:1, g1-s0:1")
    g0_s0, s0_g0, s0_s1, s1_s0, g1_s0, s0_g1 = range(6)
    walks = [[g1_s0, s0_s1, s1_s0, s0_g0], [g0_s0, s0_s1, s1_s0, s0_g1]]
    tree = RoutedTree(
        root=0,
        edges=np.array([[1, 0], [0, 1]]),
        phase=np.array([0, 1], np.int8),
        route_ptr=np.array([0, 4, 8]),
        route_links=np.array(walks).ravel(),
    )
    problem = allreduce_problem(topology, topology.ranks)
    column = Column.of(0, 1.0, tree)
    packing = packing_of(problem, [column], [GB / 2], GB)
    (made,) = plan_trees(problem, packing, one_group(topology.ranks, size=100).demands())
    assert made.route(0).tolist() == [g1_s0, s0_g0]
    assert made.route(1).tolist() == [g0_s0, s0_g1]
    assert made.rate == pytest.approx(GB)  # one use of each link where the walks would have used s0 - s1 twice
    assert made.size == 100


def test_trees_that_carry_next_to_nothing_are_dropped() -> None:
    """A rate below a billionth of the total is no tree of the plan."""
    topology = fabric("g0-g1:1")
    problem = allreduce_problem(topology, topology.ranks)
    column = cheapest(problem, np.ones(2))
    packing = packing_of(problem, [column, column], [GB, GB * 1e-10], GB)
    assert len(plan_trees(problem, packing, one_group(topology.ranks, size=100).demands())) == 1


@given(RATES, st.integers(1, 10**12))
def test_shares_are_whole_bytes_within_one_of_proportional(rates: list[float], size: int) -> None:
    """They sum to the message, so that no tree ends more than a byte's time after the others."""
    shares = split_bytes(size, rates)
    total = sum(map(Fraction, rates))
    assert sum(shares) == size
    assert all(abs(share - size * Fraction(rate) / total) < 1 for share, rate in zip(shares, rates, strict=True))


@given(RATES, st.lists(st.floats(0.01, 1), min_size=8, max_size=8))
def test_proportional_shares_end_together_and_no_split_is_faster(rates: list[float], weights: list[float]) -> None:
    """Lemma 2.2: shares in proportion to rates all take 1/Σλ; any other split has a tree that takes longer."""
    exact = [Fraction(rate) for rate in rates]
    together = 1 / sum(exact)
    assert {rate / sum(exact) / rate for rate in exact} == {together}
    other = [Fraction(weight) for weight in weights[: len(rates)]]
    finish = max(part / sum(other) / rate for part, rate in zip(other, exact, strict=True))
    assert finish >= together


def test_a_pool_keeps_columns_of_equal_loads_once() -> None:
    """Two columns that load every row alike are one to the packing."""
    topology = fabric("g0-s0:1, g1-s0:2")
    problem = allreduce_problem(topology, topology.ranks)
    pool = ColumnPool(problem)
    quote = problem.price(1.0 / problem.capacity)
    (column,) = quote.offer.columns(np.zeros(1, np.int64))
    assert pool.add(column) == (0, True)
    assert pool.add(column) == (0, False)
    assert len(pool) == 1
    assert quote.bound == pytest.approx(2 * 2 / (2 * (1 + 1 / 2)) * GB)
    assert pool.congestion(np.array([GB])) == pytest.approx(1.0)


def test_a_symmetric_problem_has_one_row_for_both_directions() -> None:
    """Rows that simple trees load alike are folded; their weights count what they stand for."""
    topology = fabric("g0-s0:1, g1-s0:2, g2-s0:2", shared="0 1: 2; 2: 3")
    problem = allreduce_problem(topology, topology.ranks)
    assert problem.fabric.capacity.size == fabric_arrays(topology).capacity.size == 8
    assert problem.capacity.tolist() == [GB, 2 * GB, 2 * GB, 2 * GB, 3 * GB]
    assert problem.weight.tolist() == [2, 2, 2, 1, 1]
