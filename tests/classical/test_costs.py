"""Formulas beside counts: they agree to the byte."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dualcoll.classical.costs import alpha_beta_time, closed_form
from dualcoll.classical.counts import counts
from dualcoll.classical.place import Place
from dualcoll.classical.registry import draw
from dualcoll.errors import InputError
from dualcoll.schedules.routed import routed
from dualcoll.simulation import simulate
from dualcoll.topology.catalog import catalog
from tests.classical.samples import CASES, HIERARCHIES, boxes_of, divisible, on, roots

FORMULAS = [case for case in CASES if case[1] != "alltoallv"]
FLAT = [[ranks] for ranks in range(1, 18)] + [[32], [1, 1], [1] * 5, [1] * 8]
EQUAL = [[size] * boxes for boxes in (2, 3, 4, 5, 8) for size in (2, 3, 4)]
UNEQUAL = [[2, 3], [3, 1, 2], [4, 2, 2]]
PIPELINES = ("chain", "tree", "double-tree")


def agree(name: str, collective: str, place: Place) -> int:
    """Compare formula and count; how many of its two network numbers the formula gives."""
    found = counts(draw(name, collective, place), place.boxes).busiest
    formula = closed_form(name, collective, place)
    known = {key: value for key in ("across", "box") if (value := getattr(formula, key)) is not None}
    assert replace(found, across=None, box=None) == replace(formula, across=None, box=None)
    assert known == {key: getattr(found, key) for key in known}
    return len(known)


@pytest.mark.parametrize(("name", "collective"), FORMULAS)
def test_formulas_agree_with_counts(name: str, collective: str) -> None:
    """Rounds, bytes of ranks and boxes, and memory traffic of every algorithm, alone and in boxes, are what is counted."""
    for sizes in (*FLAT, *EQUAL, *UNEQUAL):
        if name in HIERARCHIES and (len(sizes) == 1 or max(sizes) == 1 or (sizes in UNEQUAL and name != "leader")):
            continue
        for root in roots(collective, sum(sizes)):
            known = agree(name, collective, divisible(Place(boxes_of(sizes), 1, root)))
            if sizes in FLAT or name in (*HIERARCHIES, "ring", "ring-both-ways", "chain", "direct", "pairwise"):
                assert known == 2


@pytest.mark.parametrize(
    "spec", ["dgx-1v", "dgx-1v:boxes=2", "mi300x:boxes=3", "torus:3x5", "full:3", "full:5", "ring:5"]
)
@pytest.mark.parametrize("name", ["ring", "ring-both-ways", "chain", "double-tree", "torus"])
def test_formulas_agree_where_cables_decide(name: str, spec: str) -> None:
    """The same where boxes have rings of their own."""
    place = divisible(on(spec))
    if name == "torus" and not (place.is_hierarchy or place.rows):
        return
    for collective in (served for case, served in FORMULAS if case == name):
        agree(name, collective, replace(place, root=place.ranks - 1))


def test_the_formulas_of_the_hierarchies() -> None:
    """For Q = 4 boxes of G = 8 they are those of the text, and no number of one is a number of the other but the box's."""
    N, Q, G = Fraction(4 * 8 * 60), 4, 8
    place = Place(boxes_of([G] * Q), int(N))
    balanced, leader = (closed_form(name, "allreduce", place) for name in ("balanced", "leader"))
    assert balanced.across == 2 * (Q - 1) * N / (Q * G)
    assert balanced.sent == 2 * (Q - 1) * N / (Q * G) + 2 * (G - 1) * N / G
    assert leader.across == 2 * (Q - 1) * N / Q
    assert leader.sent == 2 * (Q - 1) * N / Q + (G - 1) * N
    assert balanced.box == leader.box == 2 * (Q - 1) * N / Q
    assert (balanced.rounds, leader.rounds) == (2 * (G - 1) + 2 * (Q - 1), 2 + 2 * (Q - 1))
    for name in ("sent", "received", "across", "read", "written", "reduced"):
        assert getattr(balanced, name) < getattr(leader, name)


@pytest.mark.parametrize(("name", "collective"), FORMULAS)
def test_times_in_step(name: str, collective: str) -> None:
    """alpha per round and beta per byte of the busiest rank; of pipelines, filling and draining make it a little more."""
    for sizes in ([1], [2], [6], [8], [13], [2, 2, 2], [4, 4]):
        place = divisible(Place(boxes_of(sizes), 1), pieces=16)
        if name in HIERARCHIES and not place.is_hierarchy:
            continue
        found = counts(draw(name, collective, place))
        wanted = found.rounds * 3.0 + found.serial / place.size
        formula = alpha_beta_time(name, collective, place, 3.0, 1 / place.size)
        if name in PIPELINES:
            assert wanted <= formula * (1 + 1e-12)
            assert formula <= 1.2 * wanted
        else:
            assert formula == pytest.approx(wanted, rel=1e-12)


def test_textbook_times() -> None:
    """A ring takes 2 (P - 1) (alpha + N / P beta), halving and doubling 2 log2 P alpha + 2 (P - 1) / P N beta."""
    place = Place(boxes_of([16]), 1600)
    assert alpha_beta_time("ring", "allreduce", place, 2.0, 0.5) == pytest.approx(30 * (2.0 + 100 * 0.5))
    assert alpha_beta_time("halving-doubling", "allreduce", place, 2.0, 0.5) == pytest.approx(8 * 2.0 + 3000 * 0.5)
    assert alpha_beta_time("bruck", "alltoall", place, 2.0, 0.5) == pytest.approx(4 * (2.0 + 800 * 0.5))
    assert alpha_beta_time("pairwise", "alltoall", place, 2.0, 0.5) == pytest.approx(15 * (2.0 + 100 * 0.5))


def test_the_best_number_of_pieces() -> None:
    """Where the place gives none, no other number of pieces has a shorter time; none at all costs where alpha is zero."""
    place = Place(boxes_of([16]), 10_000)
    best = alpha_beta_time("double-tree", "allreduce", place, 1.0, 0.01)
    every = [alpha_beta_time("double-tree", "allreduce", replace(place, pieces=k), 1.0, 0.01) for k in range(1, 200)]
    assert best == min(every)
    assert alpha_beta_time("double-tree", "allreduce", place, 0.0, 0.01) == 2 * 100.0


@pytest.mark.parametrize(("name", "off"), [("ring", 1e-3), ("halving-doubling", 0.1)])
def test_the_formula_beside_the_simulation(name: str, off: float) -> None:
    """Around one switch, where every rank has one port, a ring takes the formula's time; others do not keep step quite."""
    topology = catalog("star:n=8,bandwidth=50GB/s,latency=1us")
    for size in (2**12, 2**20, 2**27):
        place = Place(boxes_of([1] * 8), size)
        finish = simulate(routed(draw(name, "allreduce", place), topology)).finish
        assert finish == pytest.approx(alpha_beta_time(name, "allreduce", place, 2e-6, 1 / 50e9), rel=off)


def test_ring_and_tree_cross() -> None:
    """The tree wins small messages and the ring large ones; the formula says where, within a factor of four of simulation."""
    topology = catalog("star:n=32,bandwidth=50GB/s,latency=1us")

    def faster(size: int, *, simulated: bool) -> bool:
        """Whether the tree is."""
        place = Place(boxes_of([1] * 32), size)
        times = [
            simulate(routed(draw(name, "allreduce", place), topology)).finish
            if simulated
            else alpha_beta_time(name, "allreduce", place, 2e-6, 1 / 50e9)
            for name in ("double-tree", "ring")
        ]
        return times[0] < times[1]

    sizes = [2**power for power in range(10, 31)]
    formula = [faster(size, simulated=False) for size in sizes].index(False)
    found = [faster(size, simulated=True) for size in sizes].index(False)
    assert formula > 0
    assert abs(formula - found) <= 2


def test_what_has_no_formula() -> None:
    """AllToAllv depends on its matrix; unknown names and places that do not suit are errors as those of the schedules."""
    place = Place(boxes_of([4]), 100)
    for name, collective, message in (
        ("direct", "alltoallv", "AllToAllv has no formula for algorithm 'direct'"),
        (
            "chain",
            "alltoall",
            "AllToAll has no formula for algorithm 'chain'; use one of bruck, direct, pairwise, rail",
        ),
        ("leader", "allreduce", "algorithm leader: it needs several boxes of several ranks"),
    ):
        with pytest.raises(InputError) as caught:
            closed_form(name, collective, place)
        assert str(caught.value) == message
        with pytest.raises(InputError):
            alpha_beta_time(name, collective, place, 1.0, 1.0)
    with pytest.raises(InputError) as caught:
        closed_form("balanced", "allreduce", Place(boxes_of([2, 3]), 100))
    assert str(caught.value) == "algorithm balanced: boxes of 2, 3 ranks; it needs boxes of one size"
