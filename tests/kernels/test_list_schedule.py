"""The list scheduler on graphs small enough to say what must come out."""

from __future__ import annotations

import numpy as np
import pytest

from dualcoll.kernels.list_schedule import DONE, list_schedule
from dualcoll.kernels.list_search import Goods, Graph, Policy
from dualcoll.kernels.start_windows import Windows

Arc = tuple[int, int, int]  # tail, head, delay
FREE = 2**30
NONE = np.zeros(0, np.int64)


def graph_of(
    arcs: list[Arc], holds: list[bool], ranks: int, copies: bool = False, rows: list[int] | None = None
) -> Graph:
    """Arcs sorted by tail, each on a row of its own unless rows are given."""
    tail, head, delay = np.array(arcs, np.int64).reshape(-1, 3).T.copy()
    assert np.all(np.diff(tail) >= 0)
    way = np.full((len(holds), len(holds)), FREE)
    np.fill_diagonal(way, 0)
    for t, h, d in arcs:
        way[t, h] = min(way[t, h], d)
    for middle in range(len(holds)):
        way = np.minimum(way, way[:, middle, None] + way[None, middle])
    row = np.arange(len(arcs)) if rows is None else np.array(rows)
    held = np.array(holds)
    return Graph(
        ptr=np.searchsorted(tail, np.arange(len(holds) + 1)),
        out=np.arange(len(arcs)),
        tail=tail,
        head=head,
        delay=delay,
        row_ptr=np.arange(len(arcs) + 1),
        row=row,
        holds=held,
        copies=held | copies,
        often=np.bincount(row) > 1,
        way=np.minimum(way, FREE).T[:ranks].copy(),
    )


def windows_of(rows: int, epochs: int, length: int = 1) -> Windows:
    """Rows of one start in any so many epochs."""
    shape = (rows, epochs)
    ones = np.ones(rows, np.int64)
    return Windows(np.arange(rows + 1), length * ones, ones, np.zeros(shape, np.int32), np.zeros(shape, bool))


def goods_of(graph: Graph, chunks: list[tuple[int, list[int]]]) -> Goods:
    """Chunks by source and the ranks that want them, who may keep them as may the source."""
    wanted = np.zeros((len(chunks), graph.way.shape[0]), bool)
    keeps = np.zeros((len(chunks), graph.holds.size), bool)
    for c, (source, ranks) in enumerate(chunks):
        wanted[c, ranks] = True
        keeps[c, [source, *ranks]] = True
    sources = np.array([source for source, _ in chunks], np.int64)
    return Goods(sources, np.zeros(len(chunks), np.int64), wanted, keeps)


def policy(floor: int = 0, relay: bool = True, room: int = -1) -> Policy:
    return Policy(slack=0, breadth=4, floor=floor, relay=relay, room=room, seed=1)


def run(graph: Graph, windows: Windows, goods: Goods, rules: Policy) -> tuple[int, list[tuple[int, int, int]]]:
    """The result, and (epoch, arc, chunk) of all starts in order."""
    ones = np.ones(goods.source.size)
    result, _, arc, epoch, chunk = list_schedule(graph, windows, goods, rules, ones, NONE, NONE, NONE)
    return result, sorted(zip(epoch.tolist(), arc.tolist(), chunk.tolist(), strict=True))


LINE: list[Arc] = [(0, 1, 1), (1, 2, 2)]


def test_what_passes_has_it_too() -> None:
    """On a line the farthest is served first, and who is on the way with it."""
    graph = graph_of(LINE, [True] * 3, 3)
    assert run(graph, windows_of(2, 9), goods_of(graph, [(0, [1, 2])]), policy()) == (DONE, [(0, 0, 0), (1, 1, 0)])


def test_the_floor() -> None:
    """Nothing starts before it."""
    graph = graph_of(LINE, [True] * 3, 3)
    assert run(graph, windows_of(2, 9), goods_of(graph, [(0, [2])]), policy(floor=4)) == (DONE, [(4, 0, 0), (5, 1, 0)])


def test_windows_are_waited_for() -> None:
    """Three chunks over a row of one start in three epochs."""
    graph = graph_of([(0, 1, 3)], [True] * 2, 2)
    result, starts = run(graph, windows_of(1, 12, 3), goods_of(graph, [(0, [1])] * 3), policy())
    assert (result, [epoch for epoch, *_ in starts]) == (DONE, [0, 3, 6])


def test_too_few_epochs() -> None:
    """The chunk that does not come to its end in time is named."""
    graph = graph_of(LINE, [True] * 3, 3)
    assert run(graph, windows_of(2, 3), goods_of(graph, [(0, [1]), (0, [2])]), policy())[0] == 1


@pytest.mark.parametrize(("copies", "starts"), [(True, 3), (False, 4)])
def test_switches(copies: bool, starts: int) -> None:
    """A switch that copies sends one arrival on twice; one that does not needs two."""
    arcs: list[Arc] = [(0, 3, 0), (3, 1, 1), (3, 2, 1)]
    graph = graph_of(arcs, [True, True, True, False], 3, copies)
    result, found = run(graph, windows_of(3, 9), goods_of(graph, [(0, [1, 2])]), policy())
    assert (result, len(found)) == (DONE, starts)


def test_a_way_that_uses_a_row_twice() -> None:
    """Both links of a way over a switch share a row of one start in two epochs, and the switch holds nothing: no way then,
    but one where they are two epochs apart.
    """
    for delay, result in ((1, 0), (2, DONE)):
        graph = graph_of([(0, 2, delay), (2, 1, 1)], [True, True, False], 2, rows=[0, 0])
        assert run(graph, windows_of(1, 9, 2), goods_of(graph, [(0, [1])]), policy())[0] == result


def test_full_buffers_are_waited_for() -> None:
    """Two chunks through one place: the second starts when it need not wait there."""
    graph = graph_of(LINE, [True] * 3, 3)
    goods = goods_of(graph, [(0, [2])] * 2)
    windows = windows_of(2, 20, 4)
    windows.length[0] = 1
    result, starts = run(graph, windows, goods, policy(room=1))
    assert (result, [(epoch, arc) for epoch, arc, _ in starts]) == (DONE, [(0, 0), (1, 1), (4, 0), (5, 1)])
    windows = windows_of(2, 20, 4)
    windows.length[0] = 1
    result, starts = run(graph, windows, goods, policy())
    assert (result, [(epoch, arc) for epoch, arc, _ in starts]) == (DONE, [(0, 0), (1, 0), (1, 1), (5, 1)])
    assert run(graph, windows_of(2, 20, 4), goods, policy(room=0))[0] != DONE


def test_no_relay() -> None:
    """Who does not want a chunk does not pass it on."""
    graph = graph_of(LINE, [True] * 3, 3)
    assert run(graph, windows_of(2, 9), goods_of(graph, [(0, [2])]), policy(relay=False))[0] == 0
    assert run(graph, windows_of(2, 9), goods_of(graph, [(0, [1, 2])]), policy(relay=False))[0] == DONE


def test_given_starts() -> None:
    """They come first, take their place, and deliver."""
    graph = graph_of(LINE, [True] * 3, 3)
    goods = goods_of(graph, [(0, [1, 2]), (0, [1])])
    given = (np.array([0]), np.array([2]), np.array([0]))
    result, last, arc, epoch, chunk = list_schedule(graph, windows_of(2, 9), goods, policy(), np.ones(2), *given)
    rows = list(zip(epoch.tolist(), arc.tolist(), chunk.tolist(), strict=True))
    assert (result, last) == (DONE, 3)
    assert rows[0] == (2, 0, 0)
    assert sorted(rows[1:]) == [(0, 0, 1), (3, 1, 0)]


def test_the_seed_decides() -> None:
    """Of equal ways the seed takes one, always the same."""
    arcs: list[Arc] = [(0, 1, 1), (0, 2, 1), (1, 3, 1), (2, 3, 1)]
    graph = graph_of(arcs, [True] * 4, 4)
    goods = goods_of(graph, [(0, [3])])
    found = {seed: run(graph, windows_of(4, 9), goods, policy()._replace(seed=seed))[1] for seed in range(20)}
    assert found == {seed: run(graph, windows_of(4, 9), goods, policy()._replace(seed=seed))[1] for seed in range(20)}
    assert {starts[0][1] for starts in found.values()} == {0, 1}
