"""Flows without time: how much must cross what, as a bound on the makespan and as routes to run at a constant rate.

Over K epochs a capacity row is of use from when the nearest source can reach it until when the nearest receiver can still be
reached. So prices on rows prove a bound: what is sent pays at least the price of its cheapest way, and no more can be paid than
all rows hold. The prices come from the linear program of the least time (small networks) or from the packing of an
AllToAllv (large ones), which also gives the routes; whoever they come from, the bound holds.

Shape letters: G commodities, V vertices, A arcs, M capacity rows, J demands, P routes, H their arcs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.workload import Group, Workload
from dualcoll.errors import InputError
from dualcoll.kernels.shortest_paths import shortest_paths
from dualcoll.lp.linear import LinearProgram, LinearStatus, solve_linear
from dualcoll.packing.collective import packing_problem
from dualcoll.packing.column_generation import column_generation
from dualcoll.progress import Gap, Meter, Progress, Seconds
from dualcoll.time_expanded.flow_demands import Demands
from dualcoll.time_expanded.flow_model import Reach, relays, sending_epochs
from dualcoll.time_expanded.flow_paths import DUST, summing_to
from dualcoll.time_expanded.network import SLACK, Network

__all__ = ["StaticFlow", "cheapest_ways", "price_bound", "static_flow", "way_back"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SMALL = 60_000  # commodities times arcs, up to which the program itself is solved
LENGTH = 1e-6  # what an epoch of travel costs beside the makespan, so that no flow goes round in circles
PACKING_GAP = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class StaticFlow:
    """Routes for everything, and what bounds them.

    Attributes:
        demand: int64 (P,), sorted. volume: float64 (P,), chunks. ptr, arc: int64 (P+1,), (H,), in order of travel.
        bound: epochs; nobody is faster.
    """

    demand: Ints
    volume: Floats
    ptr: Ints
    arc: Ints
    bound: int


def static_flow(demands: Demands, reach: Reach, meter: Meter) -> StaticFlow:
    """Routes that share the network as well as can be, and the bound that they prove.

    Raises:
        InputError: no time to find any.
    """
    small = demands.source.size * demands.problem.network.arcs <= SMALL
    demand, volume, routes, prices = _solved(demands, reach, meter) if small else _packed(demands, meter)
    order = np.argsort(demand, kind="stable")
    demand = demand[order]
    routes = [routes[i] for i in order.tolist()]
    return StaticFlow(
        demand=demand,
        volume=summing_to(demand, volume[order], demands.count),
        ptr=np.concatenate([[0], np.cumsum([len(route) for route in routes])]).astype(np.int64),
        arc=np.array([a for route in routes for a in route], np.int64),
        bound=price_bound(demands, reach, prices),
    )


def price_bound(demands: Demands, reach: Reach, prices: Floats) -> int:
    """The least number of epochs that prices on capacity rows, float64 (M,), not negative, leave possible."""
    network = demands.problem.network
    price = np.array([prices[network.rows_of(a)].sum() for a in range(network.arcs)])
    cheapest, _ = cheapest_ways(network, price)
    paid = float((demands.count * cheapest[demands.source[demands.commodity], demands.target]).sum()) * (1 - SLACK)
    offset, rows = _offset(network, reach), np.flatnonzero(prices > 0)
    spare = np.array([sending_epochs(rate) - 1 for rate in network.rate[rows].tolist()])

    def room(horizon: int) -> float:
        epochs = horizon - offset[rows] + 1
        held = np.where(epochs > 0, network.rate[rows] * (epochs + spare), 0.0)
        return float((prices[rows] * held).sum())

    arrival = reach.earliest[demands.commodity, demands.target]
    low = int(arrival.max())  # not fewer epochs than this; more than `high - 1`
    if room(low) >= paid:
        return low
    high = low + 1
    while room(high) < paid:
        high = 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if room(middle) >= paid else (middle, high)
    return high


def _offset(network: Network, reach: Reach) -> Ints:
    """Epochs of every horizon in which nothing of use can start on a row, int64 (M,): K + 1 less those leave what there is."""
    lost = np.where(reach.usable, reach.earliest[:, network.tail], np.iinfo(np.int32).max).min(axis=0)
    late = np.where(reach.usable, reach.onward[:, network.head], np.iinfo(np.int32).max).min(axis=0)
    offset = np.full(network.rate.size, np.iinfo(np.int32).max, np.int64)
    arc = np.repeat(np.arange(network.arcs), np.diff(network.row_ptr))
    np.minimum.at(offset, network.row, (lost + late + network.delay)[arc])
    return offset


def cheapest_ways(network: Network, price: Floats) -> tuple[Floats, Ints]:
    """The least price of a way from each rank to each vertex, float64 (R, V), and the arc by which it comes, int64 (R, V)."""
    order = np.argsort(network.tail, kind="stable").astype(np.int64)
    ptr = np.concatenate([[0], np.cumsum(np.bincount(network.tail, minlength=network.vertices))]).astype(np.int64)
    distance = np.empty((network.ranks, network.vertices))
    arrival = np.empty(distance.shape, np.int64)
    head = network.head[order].astype(np.int64)
    shortest_paths(ptr, head, order, price, np.arange(network.ranks), distance, arrival)
    return distance, np.where(arrival < 0, -1, order[np.maximum(arrival, 0)])


_Routes = tuple[Ints, Floats, list[list[int]], Floats]


def _solved(demands: Demands, reach: Reach, meter: Meter) -> _Routes:
    """The least number of epochs K such that each row's load is at most what it holds, by commodity."""
    network = demands.problem.network
    G, V = demands.source.size, network.vertices
    commodity, arc = np.nonzero(reach.usable)
    number = np.arange(arc.size)
    need = np.zeros((G, V))
    np.add.at(need, (demands.commodity, demands.target), -demands.count.astype(np.float64))
    need[np.arange(G), demands.source] -= need.sum(axis=1)
    width = np.diff(network.row_ptr)[arc]
    which = np.repeat(number, width)
    within = np.arange(which.size) - np.repeat(np.cumsum(width) - width, width)
    row = network.row[network.row_ptr[arc[which]] + within]
    used = np.unique(row)
    spare = np.array([sending_epochs(rate) for rate in network.rate[used].tolist()])
    room = network.rate[used] * (spare - _offset(network, reach)[used])
    scale = demands.total * (1 + network.delay.max())
    program = LinearProgram(
        cost=np.concatenate([-LENGTH / scale * (1 + network.delay[arc]), [-1.0]]),
        lower=np.zeros(arc.size + 1),
        upper=np.full(arc.size + 1, np.inf),
        low=np.concatenate([need.ravel(), np.full(used.size, -np.inf)]),
        high=np.concatenate([need.ravel(), room]),
        row=np.concatenate(
            [
                commodity * V + network.tail[arc],
                commodity * V + network.head[arc],
                G * V + np.searchsorted(used, row),
                G * V + np.arange(used.size),
            ]
        ),
        column=np.concatenate([number, number, number[which], np.full(used.size, arc.size)]),
        value=np.concatenate([np.ones(arc.size), -np.ones(arc.size), np.ones(which.size), -network.rate[used]]),
    )
    solution = solve_linear(program, seconds=meter.remaining, stopped=lambda: meter.interrupted)
    if solution.status is not LinearStatus.OPTIMAL:
        raise InputError(
            f"not even routes were found in {meter.seconds:.1f} s"
            if meter.spent
            else "the demands cannot be met without relays",
            where=demands.problem.contract.collective,
            hint="allow more seconds" if meter.spent else "let ranks relay",
        )
    prices = np.zeros(network.rate.size)
    prices[used] = np.maximum(0.0, solution.duals[G * V :])
    demand: list[int] = []
    volume: list[float] = []
    routes: list[list[int]] = []
    for g in range(G):
        mine = commodity == g
        for j, amount, route in _routes(demands, g, arc[mine], solution.columns[:-1][mine]):
            demand.append(j)
            volume.append(amount)
            routes.append(route)
    return np.array(demand, np.int64), np.array(volume), routes, prices


def _routes(demands: Demands, commodity: int, arc: Ints, volume: Floats) -> list[tuple[int, float, list[int]]]:
    """A commodity's flow taken apart from its receivers, along the fattest way."""
    network = demands.problem.network
    source = int(demands.source[commodity])
    left = {a: v for a, v in zip(arc.tolist(), volume.tolist(), strict=True) if v > DUST}
    into: dict[int, list[int]] = defaultdict(list)
    for a in left:
        into[int(network.head[a])].append(a)
    found = []
    for j in demands.of(commodity).tolist():
        wanted = float(demands.count[j])
        while wanted > DUST * demands.count[j]:
            way = _fattest(into, left, network.tail, int(demands.target[j]), source)
            amount = min([wanted, *(left[a] for a in way)])
            if not way or amount <= DUST:
                break
            for a in way:
                left[a] -= amount
            wanted -= amount
            found.append((j, amount, way))
    return found


def _fattest(
    into: dict[int, list[int]], left: dict[int, float], tail: NDArray[np.int32], vertex: int, source: int
) -> list[int]:
    way: list[int] = []
    seen = set()
    while vertex != source:
        seen.add(vertex)
        came = [a for a in into[vertex] if int(tail[a]) not in seen and left[a] > DUST]
        if not came:
            return []
        way.append(max(came, key=left.__getitem__))
        vertex = int(tail[way[-1]])
    return way[::-1]


def _packed(demands: Demands, meter: Meter) -> _Routes:
    """Routes and prices of the packing of an AllToAllv."""
    network = demands.problem.network
    topology, R = network.topology, network.ranks
    cells = np.zeros((R, R), np.int64)
    np.add.at(cells, (demands.source[demands.commodity], demands.target), demands.count)
    size = int(max(cells.sum(axis=0).max(), cells.sum(axis=1).max()))
    work = Workload((Group("demands", "alltoallv", network.nodes, size, parts=tuple(cells.ravel().tolist())),))
    problem = packing_problem(topology, work, network.forwarding, relay=relays(network))
    clock = _within(meter)
    packing, _, _ = column_generation(problem, clock)
    prices = np.zeros(network.rate.size)
    prices[: problem.fold.size] = packing.prices[problem.fold]
    arcs = {(int(t), int(e)): a for a, (t, e) in enumerate(zip(network.tail, network.link, strict=True))}
    number = {node: r for r, node in enumerate(network.nodes)}
    of_pair: dict[tuple[int, int], list[tuple[float, list[int]]]] = defaultdict(list)
    carried = work.demands()
    for t in np.flatnonzero(packing.rates > 0).tolist():
        column = packing.columns[t]
        root, target = carried[column.demand].root, carried[column.demand].target
        assert root is not None
        assert target is not None
        route = _on_network(network, arcs, number[root], column.tree.route_links.tolist())
        if route and network.head[route[-1]] == number[target]:
            of_pair[number[root], number[target]].append((float(packing.rates[t]), route))
    quickest = cheapest_ways(network, network.delay.astype(np.float64))[1]
    demand: list[int] = []
    volume: list[float] = []
    routes: list[list[int]] = []
    for j, (g, d) in enumerate(zip(demands.commodity.tolist(), demands.target.tolist(), strict=True)):
        source = int(demands.source[g])
        for rate, route in of_pair[source, d] or [(1.0, way_back(network, quickest[source], d))]:
            demand.append(j)
            volume.append(rate)
            routes.append(route)
    return np.array(demand, np.int64), np.array(volume), routes, prices


def _within(meter: Meter) -> Meter:
    """A clock for the packing: a part of the gap and of the time, and it ends when the other is interrupted."""

    def look(_: Progress) -> None:
        if meter.interrupted:
            clock.interrupt()

    clock = Meter(Gap(max(PACKING_GAP, meter.stop.gap / 4)) | Seconds(max(1.0, meter.remaining / 3)), look)
    return clock


def _on_network(network: Network, arcs: dict[tuple[int, int], int], vertex: int, links: list[int]) -> list[int]:
    """The arcs of a route of links; none where the network has no such way."""
    route = []
    for link in links:
        arc = arcs.get((vertex, link))
        if arc is None:
            return []
        route.append(arc)
        vertex = int(network.head[arc])
    return route


def way_back(network: Network, arrival: Ints, vertex: int) -> list[int]:
    """The arcs of the way to a vertex, given by which arc each comes, int64 (V,)."""
    route: list[int] = []
    while arrival[vertex] >= 0:
        route.append(int(arrival[vertex]))
        vertex = int(network.tail[route[-1]])
    return route[::-1]
