from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from dualcoll.kernels.next_hops import NextHops, divisors, next_hops, sprayed_costs, sprayed_loads, sprayed_routes
from tests.kernels.graphs import Digraph, random_digraph

SEEDS = range(100)


def _search(graph: Digraph, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, NextHops]:
    """Arcs of the CSR by tail and then head, and the next hops in it."""
    order = np.lexsort((graph.head, graph.tail))
    tail, head = graph.tail[order], graph.head[order]
    into = np.argsort(head, kind="stable")
    into_ptr = np.searchsorted(head[into], np.arange(graph.vertices + 1))
    return tail, head, next_hops(graph.ptr, head, into_ptr, tail[into], ends)


def _arcs(hops: NextHops, v: int) -> dict[int, list[int]]:
    """The arcs out of each vertex toward destination ``v``, in row order."""
    rows = range(hops.row_ptr[v], hops.row_ptr[v + 1])
    return {int(hops.vertex[row]): hops.arc[hops.arc_ptr[row] : hops.arc_ptr[row + 1]].tolist() for row in rows}


@pytest.mark.parametrize("seed", SEEDS)
def test_next_hops_are_the_arcs_that_come_one_hop_nearer(seed: int) -> None:
    """By networkx's hop counts, for every vertex that reaches the destination, nearest first."""
    graph = random_digraph(seed)
    ends = np.random.default_rng(seed).permutation(graph.vertices)[:3]
    tail, head, hops = _search(graph, ends)
    for v, end in enumerate(ends.tolist()):
        far = dict(nx.single_target_shortest_path_length(graph.networkx(), end))
        found = _arcs(hops, v)
        assert set(found) == set(far) - {end}
        assert [far[x] for x in found] == sorted(far[x] for x in found)
        for x, arcs in found.items():
            assert arcs == [a for a in np.flatnonzero(tail == x).tolist() if far.get(int(head[a]), -1) == far[x] - 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_costs_loads_and_routes_follow_from_equal_shares(seed: int) -> None:
    """Against the recurrence D_v(c) = mean (y + D_v(z)) and mass pushed from every source, in fractions.

    What is pushed costs what the recurrence says: Σ p_e y_e = D_v(u), exactly.
    """
    graph = random_digraph(seed)
    rng = np.random.default_rng(seed)
    starts, ends = rng.integers(graph.vertices, size=3), rng.integers(graph.vertices, size=3)
    _, head, hops = _search(graph, ends)
    price = rng.integers(0, 5, head.size)
    divisor = divisors(hops, head)
    cost = sprayed_costs(hops, divisor, head, price.astype(float), starts, ends)
    counts = np.where(np.isfinite(cost), rng.integers(0, 3, (3, 3)), 0).astype(float)
    expected = np.zeros(head.size)
    for u, v in np.argwhere(np.isfinite(cost)).tolist():
        ahead, share = _by_fractions(_arcs(hops, v), head, price, int(starts[u]), int(ends[v]))
        assert ahead == sum(part * int(price[a]) for a, part in share.items())
        assert cost[u, v] == pytest.approx(float(ahead), rel=1e-12)
        _, links, parts = sprayed_routes(
            hops, divisor, head, np.arange(head.size), head.size, starts, np.array([[u, v]])
        )
        assert dict(zip(links.tolist(), parts.tolist(), strict=True)) == pytest.approx(
            {a: float(part) for a, part in share.items()}
        )
        for a, part in share.items():
            expected[a] += counts[u, v] * float(part)
    np.testing.assert_allclose(sprayed_loads(hops, divisor, head, starts, counts), expected, rtol=1e-12)


def _by_fractions(
    arcs: dict[int, list[int]], head: np.ndarray, price: np.ndarray, start: int, end: int
) -> tuple[Fraction, dict[int, Fraction]]:
    """The mean cost from start to end and the share of each arc; halves of a head's share on its two arcs, and so on."""
    split: dict[int, list[tuple[int, int, Fraction]]] = {}
    for x, options in arcs.items():
        heads = [int(head[a]) for a in options]
        split[x] = [(a, y, Fraction(1, len(set(heads)) * heads.count(y))) for a, y in zip(options, heads, strict=True)]
    ahead = {end: Fraction()}
    for x, steps in split.items():
        ahead[x] = sum((part * (int(price[a]) + ahead[y]) for a, y, part in steps), Fraction())
    mass: dict[int, Fraction] = defaultdict(Fraction, {start: Fraction(1)})
    share = {}
    for x in reversed(split):
        for a, y, part in split[x] if mass[x] else []:
            share[a] = mass[x] * part
            mass[y] += mass[x] * part
    return ahead[start], share
