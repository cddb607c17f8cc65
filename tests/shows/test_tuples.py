"""Lemma 6.1 in its constructive direction: rates of single trees are rates of tuples, one tree of each root, and back."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from dualcoll._api import plan
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology
from tests.packing.fabrics import fabric

Classes = list[list[tuple[int, Fraction]]]  # for each root its trees, by number, with rates


def _tuples(classes: Classes) -> list[tuple[tuple[int, ...], Fraction]]:
    """The greedy of the proof: one tree of each class, at the least rate that any of them has left, until nothing is left."""
    left = [list(reversed(trees)) for trees in classes]
    made = []
    while left[0]:
        chosen = [trees.pop() for trees in left]
        rate = min(rest for _, rest in chosen)
        made.append((tuple(tree for tree, _ in chosen), rate))
        for trees, (tree, rest) in zip(left, chosen, strict=True):
            if rest > rate:
                trees.append((tree, rest - rate))
    assert not any(left)
    return made


@pytest.mark.parametrize("collective", ["allgather", "reducescatter"])
@pytest.mark.parametrize(
    "topology",
    [catalog("dgx-1v"), catalog("torus:3x3"), fabric("g0-s0:10, g1-s0:10, g2-s0:10, g3-s0:5/10")],
    ids=["dgx-1v", "torus", "slow uplink"],
)
def test_rates_of_trees_are_rates_of_tuples(topology: Topology, collective: str) -> None:
    """Tuples sum to the common rate, use every tree up, load every link as the trees do, and are few."""
    made = plan(topology, collective)
    exact: dict[int, list[tuple[int, Fraction]]] = defaultdict(list)
    for number, tree in enumerate(made.trees):
        exact[tree.demand].append((number, Fraction(tree.rate)))
    total = {demand: sum(rate for _, rate in trees) for demand, trees in exact.items()}
    pace = min(total.values())
    assert len(total) == len(topology.ranks)
    classes = [[(tree, rate * pace / total[demand]) for tree, rate in trees] for demand, trees in exact.items()]

    tuples = _tuples(classes)

    assert sum(rate for _, rate in tuples) == pace
    assert float(pace) * len(topology.ranks) == pytest.approx(made.algbw, rel=1e-9)
    back: dict[int, Fraction] = defaultdict(Fraction)
    for chosen, rate in tuples:
        assert [made.trees[tree].demand for tree in chosen] == list(exact)
        for number in chosen:
            back[number] += rate
    assert back == {number: rate for trees in classes for number, rate in trees}
    assert len(tuples) <= len(made.trees) - len(classes) + 1
    links = len(topology.links)
    together = np.sum(
        [float(rate) * np.sum([made.trees[t].loads(links) for t in chosen], axis=0) for chosen, rate in tuples], axis=0
    )
    capacity = np.array([link.capacity for link in topology.links])
    assert (together <= capacity * (1 + 1e-9)).all()
