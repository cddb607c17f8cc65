"""Epochs that every schedule takes, without a search.

* Latency: no chunk is delivered before the quickest way on an empty network.
* Cuts with deadlines: what is wanted on one side and begins on the other has to cross, and over K epochs a link across is of
  use only from when the first of it can be there until the last of it can still get on in time. Sides: single ranks, boxes,
  all but them, and the least cut of :mod:`dualcoll.packing.cuts`.
* Tree packing with deadlines: prices of a packing bound all trees (DualColl, §4), so also those of a schedule, which can use
  each link in such a part of the time only.

Shape letters: C chunks, V vertices, A arcs, M capacity rows, K epochs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.workload import Group, Workload
from dualcoll.packing.collective import packing_problem
from dualcoll.packing.column_generation import column_generation
from dualcoll.packing.cuts import least_cut
from dualcoll.progress import Gap, Meter, Seconds
from dualcoll.time_expanded.distances import Distances
from dualcoll.time_expanded.integer_model import Usable
from dualcoll.time_expanded.network import SLACK, Network
from dualcoll.time_expanded.problem import Problem
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.model import Topology

__all__ = ["least_horizon"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

MOST_RANKS = 64  # of a packing, which then costs seconds
MOST_GROUPS = 64  # of ranks that want the same of one source, for the least cut
PACKING = Gap(1e-6) | Seconds(5)
THRESHOLDS = 8  # subsets of what crosses a cut, by release and by deadline


def least_horizon(problem: Problem) -> tuple[int, str]:
    """Epochs that every schedule takes, and why."""
    wants = problem.wants()
    if not wants.any():
        return 0, "there is nothing to send"
    distances = Distances.of(problem)
    found = _latency(problem, distances, wants)
    fabric, workload = _fabric(problem.network), _workload(problem, wants)
    for side, name in _sides(problem.network, fabric, workload):
        found = _cut(problem, distances, wants, side, name, found)
    if workload is not None and _packs(problem, wants):
        found = _priced(problem, distances, fabric, workload, found)
    return found


def _latency(problem: Problem, distances: Distances, wants: Flags) -> tuple[int, str]:
    ready = np.where(wants, distances.ready[:, : problem.network.ranks], -1)
    chunk, rank = (int(i) for i in np.unravel_index(int(np.argmax(ready)), ready.shape))
    name = problem.network.name
    way = f"chunk {chunk} cannot get from {name(int(problem.source[chunk]))} to {name(rank)} any sooner"
    released = f", released in epoch {problem.release[chunk]}" if problem.release[chunk] else ""
    return int(ready[chunk, rank]), way + released


def _fabric(network: Network) -> Topology:
    """The topology with its links in the direction of the network's arcs."""
    topology = network.topology
    if network.node[network.tail[0]] == topology.links[network.link[0]].tail:
        return topology
    return replace(topology, links=tuple(replace(link, tail=link.head, head=link.tail) for link in topology.links))


def _workload(problem: Problem, wants: Flags) -> Workload | None:
    """What has to be carried, as groups: chunks for everybody, chunks for one rank, and the rest by who wants them."""
    network = problem.network
    nodes, chunk = network.nodes, network.chunk
    receivers = wants.sum(axis=1)
    everybody = receivers == network.ranks - 1
    groups = []
    if everybody.any():
        counts = np.bincount(problem.source[everybody], minlength=network.ranks)
        size = int(counts.sum()) * chunk
        groups.append(Group("everybody", "allgather", nodes, size, parts=tuple(counts.tolist())))
    single = (receivers == 1) & ~everybody
    if single.any():
        cells = np.zeros((network.ranks, network.ranks), np.int64)
        np.add.at(cells, (problem.source[single], wants[single].argmax(axis=1)), chunk)
        size = int(max(cells.sum(axis=0).max(), cells.sum(axis=1).max()))
        groups.append(Group("single", "alltoallv", nodes, size, parts=tuple(cells.ravel().tolist())))
    rest = np.flatnonzero((receivers > 1) & ~everybody)
    alike = Counter((int(problem.source[c]), tuple(np.flatnonzero(wants[c]).tolist())) for c in rest.tolist())
    if len(alike) > MOST_GROUPS:
        return None
    for (source, members), count in alike.items():
        ranks = tuple(nodes[r] for r in (source, *members))
        groups.append(Group(f"group {len(groups)}", "broadcast", ranks, count * chunk, root=nodes[source]))
    return Workload(tuple(groups))


def _sides(network: Network, fabric: Topology, workload: Workload | None) -> Iterator[tuple[Flags, str]]:
    """Sets of nodes that something enters, bool (nodes,), and what entering them is called."""
    nodes = np.arange(len(fabric.nodes))
    boxes = defaultdict(list)
    for node in network.nodes:
        yield nodes == node, f"enter {fabric.nodes[node].name}"
        yield nodes != node, f"leave {fabric.nodes[node].name}"
        boxes[fabric.nodes[node].box].append(node)
    for box, members in boxes.items():
        if 1 < len(members) < network.ranks:
            inside = np.array([node.box == box for node in fabric.nodes])
            yield inside, f"enter box {box}"
            yield ~inside, f"leave box {box}"
    if workload is not None and network.ranks <= MOST_RANKS:
        cut = least_cut(fabric, fabric_arrays(fabric), workload)
        if cut is not None:
            outside = ~np.isin(nodes, cut.side)
            yield outside, f"cross from {len(cut.side)} nodes to the other {int(outside.sum())}"


def _cut(
    problem: Problem, distances: Distances, wants: Flags, side: Flags, name: str, found: tuple[int, str]
) -> tuple[int, str]:
    """The bound of what enters one side, if it is better."""
    network = problem.network
    inside = side[network.node]
    members = np.flatnonzero(inside[: network.ranks])
    arcs = np.flatnonzero(~inside[network.tail] & inside[network.head])
    outside = np.flatnonzero((problem.source >= 0) & ~inside[problem.source])
    chunk, which = np.nonzero(wants[np.ix_(outside, members)])
    chunk, rank = outside[chunk], members[which]
    if not chunk.size or not arcs.size:
        return found
    later = (
        network.delay[arcs] + distances.to_rank[:, network.head[arcs]]
    )  # (R, arcs), from a start until the rank has it
    if network.copies[inside].any():  # it may cross once for all: for the one that it takes longest to
        order = np.lexsort((-later.min(axis=1)[rank], chunk))
        first = order[np.diff(chunk[order], prepend=-1) > 0]
        chunk, rank = chunk[first], rank[first]
    ready, after = distances.ready[chunk][:, network.tail[arcs]], later[rank]
    deadline = problem.deadline[chunk].astype(np.int64)
    groups = _one_row_each(network, arcs)

    def short(horizon: int) -> str:
        last = np.minimum(deadline, horizon)[:, None] - after
        for some in _subsets(ready.min(axis=1), deadline):
            room = _room(network, groups, ready[some], last[some])
            if room < some.size:
                return f"{some.size} chunks have to {name}, and {room} can within {horizon} epochs"
        return ""

    return _raised(found, short)


def _raised(found: tuple[int, str], short: Callable[[int], str]) -> tuple[int, str]:
    """The first number of epochs from the one found on that is not too short, and why those before it are."""
    low, reason = found[0] - 1, ""
    step = 1
    while why := short(low + step):
        low, reason, step = low + step, why, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        why = short(middle)
        if why:
            low, reason = middle, why
        else:
            high = middle
    return (high, reason) if reason else found


def _subsets(ready: Ints, deadline: Ints) -> Iterator[Ints]:
    """What is ready late and due soon: positions, for several meanings of late and soon."""
    late, soon = np.unique(ready), np.unique(deadline)
    for begin in late[:: max(1, late.size // THRESHOLDS)]:
        for end in soon[:: -max(1, soon.size // THRESHOLDS)]:
            some = np.flatnonzero((ready >= begin) & (deadline <= end))
            if some.size:
                yield some


def _one_row_each(network: Network, arcs: Ints) -> list[tuple[int, list[tuple[int, Ints]]]]:
    """The arcs by their last capacity row, which may be shared, and within it by their own: positions in ``arcs``."""
    shared: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for i, a in enumerate(arcs.tolist()):
        rows = network.rows_of(a).tolist()
        shared[rows[-1]][rows[0]].append(i)
    return [(row, [(own, np.array(where)) for own, where in owns.items()]) for row, owns in shared.items()]


def _room(network: Network, groups: list[tuple[int, list[tuple[int, Ints]]]], first: Ints, last: Ints) -> int:
    """Starts that fit on the arcs, each of a chunk (chunks, arcs) between its first and its last epoch."""
    usable = last >= first
    begin = np.where(usable, first, np.iinfo(np.int64).max).min(axis=0)
    end = np.where(usable, last, -1).max(axis=0)
    room = 0
    for row, owns in groups:
        fits = 0
        for own, where in owns:
            fits += _fit(network, own, int(begin[where].min()), int(end[where].max()))
        if len(owns) > 1 or owns[0][0] != row:
            every = np.concatenate([where for _, where in owns])
            fits = min(fits, _fit(network, row, int(begin[every].min()), int(end[every].max())))
        room += fits
    return room


def _fit(network: Network, row: int, begin: int, end: int) -> int:
    """Starts that fit on a capacity row between two epochs, both included."""
    if end < begin:
        return 0
    length = end - begin + 1
    return int(_fits(network.starts[row], 1 << length.bit_length())[length])


@lru_cache(maxsize=256)
def _fits(pairs: tuple[tuple[int, int], ...], size: int) -> Ints:
    """Starts that fit into 0, 1, .. size - 1 epochs: windows are put side by side, the last may be longer than what is left."""
    windows, starts = np.array(pairs, np.int64).T
    most = np.zeros(size, np.int64)
    for length in range(1, size):
        most[length] = (most[np.maximum(0, length - windows)] + starts).min()
    return most


def _packs(problem: Problem, wants: Flags) -> bool:
    """Whether the schedule of each chunk is a tree as packings have them: on all ranks, and no other vertex copies."""
    network, receivers = problem.network, wants.sum(axis=1)
    trees = receivers == network.ranks - 1
    few = trees.any() and bool(np.all(trees | (receivers <= 1)))
    return few and network.ranks <= MOST_RANKS and not network.copies[network.ranks :].any()


def _priced(
    problem: Problem, distances: Distances, fabric: Topology, workload: Workload, found: tuple[int, str]
) -> tuple[int, str]:
    """The bound of the prices of a packing, if it is better: what is sent costs as much, and no more fits on the links."""
    network = problem.network
    packing = packing_problem(fabric, workload, network.forwarding, relay=network.clock.relay)
    packing.try_out()
    best, _, _ = column_generation(packing, Meter(PACKING))
    prices = np.zeros(network.rate.size)
    prices[: packing.fold.size] = best.prices[packing.fold]
    cost = workload.size * packing.worth(best.prices) / best.bound / network.chunk * (1 - SLACK)
    row = network.row
    arc = np.repeat(np.arange(network.arcs), np.diff(network.row_ptr))

    def short(horizon: int) -> str:
        usable = Usable.of(problem, distances, horizon)
        some = usable.count > 0
        begin = np.where(some, usable.first, np.iinfo(np.int64).max).min(axis=0)
        end = np.where(some, usable.first + usable.count - 1, -1).max(axis=0)
        first, last = np.full(prices.size, np.iinfo(np.int64).max), np.full(prices.size, -1)
        np.minimum.at(first, row, begin[arc])
        np.maximum.at(last, row, end[arc])
        room = sum(
            float(prices[r]) * _fit(network, r, int(first[r]), int(last[r])) for r in np.flatnonzero(prices).tolist()
        )
        return "" if room >= cost else f"no packing of trees sends everything within {horizon} epochs"

    return _raised(found, short)
