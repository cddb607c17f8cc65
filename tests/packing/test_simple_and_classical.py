"""Simple trees where they are optimal and where they are a trap, and what classical algorithms reach."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pytest

from dualcoll._api import plan
from dualcoll.errors import InputError
from dualcoll.packing.collective import Columns
from dualcoll.packing.column_generation import column_generation
from dualcoll.packing.pool import Packing
from dualcoll.progress import Gap, Meter
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.model import Forwarding, Topology
from tests.packing.exact import Route, column_optimum, random_case, routes
from tests.packing.fabrics import GB, fabric
from tests.packing.problems import allreduce_problem, loads

Arc = tuple[int, int]


def _solve(topology: Topology, columns: Columns, forwarding: Forwarding = Forwarding.SWITCHES) -> Packing:
    problem = allreduce_problem(topology, topology.ranks, forwarding, columns)
    return column_generation(problem, Meter(Gap(0.0)))[0]


@pytest.mark.parametrize("kind", ["switched", "boxes", "shared", "shared boxes"])
@pytest.mark.parametrize("seed", range(50))
def test_simple_trees_are_as_good_as_pairs_on_symmetric_fabrics(seed: int, kind: str) -> None:
    """Theorem 2.1 and Lemma 3.6 on 200 fabrics: both optima lie within each other's bound."""
    topology = random_case(kind, seed)
    simple, pair = _solve(topology, Columns.SIMPLE), _solve(topology, Columns.PAIR)
    assert simple.value == pytest.approx(pair.value, rel=1e-6)
    assert simple.bound == pytest.approx(pair.bound, rel=1e-6)


def _ring(n: int, step: int) -> Iterable[tuple[Arc, float]]:
    """All n rotations share the bytes: each goes once round to be reduced and once to be broadcast, less one hop each."""
    return (((i, (i + step) % n), 2 * (n - 1) / n) for i in range(n))


def _star(n: int, centre: int) -> Iterable[tuple[Arc, float]]:
    others = [i for i in range(n) if i != centre]
    return ((arc, 1.0) for i in others for arc in ((i, centre), (centre, i)))


def _chain(n: int) -> Iterable[tuple[Arc, float]]:
    return ((arc, 1.0) for i in range(n - 1) for arc in ((i, i + 1), (i + 1, i)))


def _classical_rates(topology: Topology, forwarding: Forwarding = Forwarding.SWITCHES) -> dict[str, float]:
    """Bytes/s of each algorithm whose logical edges all have a route, every edge on one route of fewest hops."""
    ways = routes(topology, topology.ranks, forwarding)
    shortest: dict[Arc, Route] = {arc: min(options, key=len) for arc, options in ways.items()}
    n = len(topology.ranks)
    algorithms = {"ring": _ring(n, 1), "ring back": _ring(n, -1), "chain": _chain(n)}
    algorithms |= {f"star {i}": _star(n, i) for i in range(n)}
    fabric_columns = fabric_arrays(topology)
    rates = {}
    for name, edges in algorithms.items():
        loads: dict[int, float] = defaultdict(float)
        arcs = list(edges)
        if not all(arc in shortest for arc, _ in arcs):
            continue
        for arc, amount in arcs:
            for link in shortest[arc]:
                loads[link] += amount
        per_link = np.array([loads[e] for e in range(len(topology.links))])
        rates[name] = 1.0 / float((fabric_columns.row_loads(per_link) / fabric_columns.capacity).max())
    return rates


@pytest.mark.parametrize("kind", ["one-way", "one-way boxes", "one-way shared"])
@pytest.mark.parametrize("seed", range(70))
def test_no_classical_algorithm_is_above_the_bound(seed: int, kind: str) -> None:
    """Rings both ways, the chain and every star, routed by hops, on 210 asymmetric fabrics."""
    topology = random_case(kind, seed)
    # where GPUs are joined directly, most of these algorithms have routes only if GPUs forward
    forwarding = Forwarding.SWITCHES if kind == "one-way boxes" else Forwarding.ALL
    bound = _solve(topology, Columns.AUTO, forwarding).bound
    rates = _classical_rates(topology, forwarding)
    assert len(rates) == 3 + len(topology.ranks)
    assert max(rates.values()) <= bound * (1 + 1e-12)


def test_the_classical_reference_reaches_known_rates() -> None:
    """On a star of unit links: the ring n/(2(n-1)), the chain 1/2, a star 1/(n-1); on a line no star has its routes."""
    star = _classical_rates(fabric("g0-s0:1, g1-s0:1, g2-s0:1, g3-s0:1"))
    assert star["ring"] == star["ring back"] == pytest.approx(2 / 3 * GB)
    assert star["chain"] == pytest.approx(GB / 2)
    assert star["star 2"] == pytest.approx(GB / 3)
    assert set(_classical_rates(fabric("g0-g1:1, g1-g2:1, g2-g3:1"))) == {"chain"}


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_one_way_rings_give_what_the_plain_ring_gives(n: int) -> None:
    """n/(2(n-1)) by pairs; simple trees could do only 1/(n-1) and are refused."""
    ring = fabric(", ".join(f"g{i}>g{(i + 1) % n}:1" for i in range(n)), name="one-way ring")
    made = plan(ring)
    assert made.value == pytest.approx(n / (2 * (n - 1)) * GB, rel=1e-6)
    assert made.bound == pytest.approx(made.value, rel=1e-6)
    with pytest.raises(InputError) as caught:
        allreduce_problem(ring, ring.ranks, columns=Columns.SIMPLE)
    assert (
        str(caught.value)
        == "one-way ring: simple trees need equal capacity in both directions of every cable; use pairs"
    )


@pytest.mark.parametrize(("back", "simple", "pairs"), [("", 1 / 3, 2 / 3), ("/0.5", 5 / 6, 1.0)])
def test_simple_trees_are_a_trap_on_an_asymmetric_ring(back: str, simple: float, pairs: float) -> None:
    """A 4-ring one way, or at half speed the other way, all ranks forwarding: what each kind of column can do."""
    joint = "-" if back else ">"
    ring = fabric(", ".join(f"g{i}{joint}g{(i + 1) % 4}:1{back}" for i in range(4)))
    made = plan(ring, forward="all")
    assert made.value == pytest.approx(pairs * GB, rel=1e-6)
    assert column_optimum(ring, ring.ranks, made.forwarding) == pytest.approx(pairs * GB, rel=1e-6)
    assert column_optimum(ring, ring.ranks, made.forwarding, simple=True) == pytest.approx(simple * GB, rel=1e-6)


def test_columns_follow_the_fabric() -> None:
    """AUTO packs simple trees on a symmetric fabric (an edge and its reverse in both phases), pairs elsewhere."""
    for cables, mirrored in (("g0-s0:2, g1-s0:2, g2-s0:1", True), ("g0-s0:2/1, g1-s0:2, g2-s0:1", False)):
        for column in _solve(fabric(cables), Columns.AUTO).columns:
            dense = loads(column, 6)
            assert (dense[::2] == dense[1::2]).all() or not mirrored
        problem = allreduce_problem(fabric(cables), fabric(cables).ranks)
        assert (problem.capacity.size == 3) is mirrored
