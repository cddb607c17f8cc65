"""Flows held against the rules, and a second model: chunk by chunk on the plain time-expanded network, by scipy."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_matrix

from dualcoll.collectives.contract import Contract
from dualcoll.time_expanded.flow_paths import EpochFlow
from dualcoll.time_expanded.network import Network
from dualcoll.time_expanded.problem import Problem
from dualcoll.topology.model import Kind, Link, Node, Topology


def random_problem(seed: int) -> Problem:
    """Three or four GPUs on a ring with some more links, of rates 1, 2/3, 1/2 and 1/4 of the fastest, some with latency."""
    from dualcoll.time_expanded.network import make_network

    random = np.random.default_rng(seed)
    n = int(random.integers(3, 5))
    ends = {(i, (i + 1) % n) for i in range(n)} | {tuple(random.permutation(n)[:2].tolist()) for _ in range(2)}
    links = [
        Link(a, b, float(random.choice([1.0, 1.5, 2.0, 4.0, 6.0])), float(random.choice([0.0, 0.1]))) for a, b in ends
    ]
    topology = Topology(tuple(Node(f"g{i}", Kind.GPU) for i in range(n)), tuple(links), (), "random")
    pairs = np.array([random.permutation(n)[:2] for _ in range(int(random.integers(1, 5)))], np.int32)
    release = random.integers(0, 2, len(pairs)).astype(np.int32)
    return Problem(make_network(topology, 1), Contract("mix", n, pairs[:, 0], pairs[:, 1]), release)


def limits(network: Network, row: int, horizon: int, *, whole: bool) -> list[tuple[int, float]]:
    """Windows and what fits in them: of whole chunks rule 3, of volumes what has been sent when it is delivered."""
    if whole:
        return list(network.starts[row])
    rate = float(network.rate[row])
    own = math.ceil(1 / rate - 1e-9)
    if abs(own * rate - 1) < 1e-9 or own == 1:
        return [(own, own * rate)]
    return [(length, (length - 1 + own) * rate) for length in range(1, horizon + 1)]


def deliverable(problem: Problem, horizon: int, *, whole: bool = False) -> float:
    """The most that can be delivered in time, by a model of one commodity per chunk and receiver."""
    network, contract = problem.network, problem.contract
    jobs = [(c, int(contract.target[c])) for c in range(problem.chunks) if problem.wanted(c)]
    A, V, K, J = network.arcs, network.vertices, horizon, len(jobs)

    def flow(j: int, a: int, k: int) -> int:
        return (j * A + a) * (K + 1) + k

    def kept(j: int, v: int, k: int) -> int:
        return J * A * (K + 1) + (j * V + v) * (K + 1) + k

    size = J * (A + V) * (K + 1)
    upper = np.ones(size)
    entries: list[tuple[int, int, float]] = []
    low: list[float] = []
    high: list[float] = []
    for j, (c, target) in enumerate(jobs):
        for a in range(A):
            late = [k for k in range(K + 1) if k + network.delay[a] > K]
            upper[[flow(j, a, k) for k in late]] = 0
            if network.head[a] == problem.source[c] or network.tail[a] == target:
                upper[[flow(j, a, k) for k in range(K + 1)]] = 0
        for v in range(V):
            for k in range(K + 1):
                here = len(low)
                begins = float(v == problem.source[c] and k == problem.release[c])
                low.append(-begins)
                high.append(-begins)
                entries.append((here, kept(j, v, k), -1.0))
                if k:
                    entries.append((here, kept(j, v, k - 1), 1.0))
                if not network.holds[v]:
                    upper[kept(j, v, k)] = 0
                for a in range(A):
                    if network.tail[a] == v:
                        entries.append((here, flow(j, a, k), -1.0))
                    if network.head[a] == v and k >= network.delay[a]:
                        entries.append((here, flow(j, a, k - int(network.delay[a])), 1.0))
    for row in range(network.rate.size):
        arcs = [a for a in range(A) if row in network.rows_of(a)]
        for length, room in limits(network, row, horizon, whole=whole):
            for first in range(K + 1):
                for j in range(J):
                    for a in arcs:
                        for k in range(first, min(K + 1, first + length)):
                            entries.append((len(low), flow(j, a, k), 1.0))
                low.append(-np.inf)
                high.append(room)
    table = np.array(entries)
    matrix = coo_matrix((table[:, 2], (table[:, 0].astype(int), table[:, 1].astype(int))), (len(low), size)).tocsr()
    gain = np.zeros(size)
    gain[[kept(j, target, K) for j, (_, target) in enumerate(jobs)]] = -1
    found = milp(
        gain,
        constraints=LinearConstraint(matrix, low, high),
        bounds=Bounds(np.zeros(size), upper),
        integrality=np.full(size, int(whole)),
    )
    return 0.0 if found.x is None else float(-found.fun)


def least_epochs(problem: Problem, *, whole: bool = False) -> int:
    """The first horizon in which everything is delivered, by the second model."""
    wanted = sum(len(problem.wanted(c)) for c in range(problem.chunks))
    horizon = 1
    while deliverable(problem, horizon, whole=whole) < wanted - 1e-6:
        horizon += 1
    return horizon


def assert_right(flow: EpochFlow) -> None:
    """Every path leads from source to target in time, all volumes sum to what is asked for, and everything fits."""
    demands, network = flow.demands, flow.demands.problem.network
    assert np.all(flow.volume > 0)
    assert flow.carried().tolist() == demands.count.tolist()
    for p in range(flow.paths):
        j = int(flow.demand[p])
        g = int(demands.commodity[j])
        place, since = int(demands.source[g]), int(demands.release[g])
        for h in range(flow.ptr[p], flow.ptr[p + 1]):
            a, k = int(flow.arc[h]), int(flow.epoch[h])
            assert network.tail[a] == place
            assert k >= since if network.holds[place] else k == since
            place, since = int(network.head[a]), k + int(network.delay[a])
        assert place == demands.target[j]
        assert since + flow.times[p] - 1 == flow.arrival[p] <= demands.deadline[j]
    loads = flow.loads()
    for row in range(network.rate.size):
        for length, room in limits(network, row, flow.finish, whole=False):
            held = np.convolve(loads[row], np.ones(length))
            assert held.max(initial=0) <= room + 1e-5
