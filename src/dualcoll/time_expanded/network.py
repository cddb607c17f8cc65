"""The network that time expands: who holds chunks, what an epoch is, how long a hop takes, how much fits on a link.

Liu et al., "Rethinking Machine Learning Collective Communication as a Multi-Commodity Flow Problem" (TE-CCL), SIGCOMM 2024,
§3.1 and Appendix C; docs/time-expanded.md has the rules by number. Shape letters: R ranks, V vertices, A arcs, M capacity rows,
K epochs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.kernels.shortest_paths import shortest_paths
from dualcoll.routing.policy_graph import PolicyGraph, policy_graph
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.model import Forwarding, Kind, Topology

__all__ = ["FAR", "FASTEST", "SLOWEST", "Clock", "Network", "make_network"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

FASTEST, SLOWEST = "fastest", "slowest"
FAR = 2**40  # epochs, where there is no way
SLACK = 1e-9  # relative: a ratio of floats this close to a whole number is that number
MAX_WINDOW = 4096  # epochs


@dataclass(frozen=True, slots=True)
class Clock:
    """How time is cut, and what switches and ranks may do.

    Attributes:
        epoch: ``fastest`` or ``slowest`` (the time of one chunk on that link), or seconds.
        multiplier: epochs are this many times as long.
        ignored_latency: a link latency below this part of an epoch counts as none (TE-CCL's ``alpha_threshold``, there 0.1).
        latent_switches: whether the hop into a switch takes its own epochs; else a chunk crosses switches as it comes.
        switch_copy: whether switches copy.
        copy: whether ranks copy; without, what a rank receives it keeps or passes on, once.
        relay: whether ranks pass on chunks that are not for them.
        buffer: the most chunks that a rank holds besides those it begins with and those for it; None for any number.
        reduction_speed: bytes/s that a rank reduces, which adds to the delay of what it reduces; None for no time at all.

    Raises:
        InputError: a value that is out of range.
    """

    epoch: str | float = FASTEST
    multiplier: float = 1.0
    ignored_latency: float = 0.0
    latent_switches: bool = False
    switch_copy: bool = False
    copy: bool = True
    relay: bool = True
    buffer: int | None = None
    reduction_speed: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.epoch, str) and self.epoch not in (FASTEST, SLOWEST):
            raise InputError(f"{self.epoch!r} is not known", where="epoch", hint="use fastest, slowest or seconds")
        for name in ("epoch", "multiplier", "reduction_speed"):
            value = getattr(self, name)
            if isinstance(value, int | float) and not (math.isfinite(value) and value > 0):
                raise InputError(f"{value!r} is not a finite number > 0", where=name)
        if not 0 <= self.ignored_latency < 1:
            raise InputError(f"{self.ignored_latency!r} is not in [0, 1)", where="ignored_latency")
        if self.buffer is not None and self.buffer < 0:
            raise InputError(f"{self.buffer} is below 0", where="buffer")


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Vertices and arcs, the same in every epoch. Vertex r < R is rank r.

    A chunk that starts on arc ``a`` in epoch ``k`` can leave the arc's head from epoch ``k + delay[a]`` on; from a vertex that
    does not hold, in that very epoch or never. A delay of 0 only leads to such a vertex, and no circle of arcs has delay 0.

    Attributes:
        topology, nodes: the fabric, and the node index of each rank (R,). forwarding: its policy. clock: how time is cut.
        chunk: bytes. epoch: seconds.
        node: int32 (V,), node index of each vertex. holds, copies: bool (V,).
        tail, head, link, delay: int32 (A,); ``link`` in the topology, ``delay`` in epochs.
        row_ptr, row: CSR of the capacity rows on each arc, int32 (A+1,), (nnz,); rows are numbered as in FabricArrays.
        rate: float64 (M,), chunks per epoch.
        starts: for each row the pairs (window, starts): any ``window`` epochs one after the other hold at most so many whole
            chunks' starts. They say that every chunk has left a link when it is delivered (rule 3).
        ignored: the longest latency that counted as none, seconds.
    """

    topology: Topology
    nodes: tuple[int, ...]
    forwarding: Forwarding
    clock: Clock
    chunk: int
    epoch: float
    node: Shorts
    holds: Flags
    copies: Flags
    tail: Shorts
    head: Shorts
    link: Shorts
    delay: Shorts
    row_ptr: Shorts
    row: Shorts
    rate: Floats
    starts: tuple[tuple[tuple[int, int], ...], ...]
    ignored: float

    @property
    def ranks(self) -> int:
        """R, the number of ranks."""
        return len(self.nodes)

    @property
    def vertices(self) -> int:
        """V, the number of vertices."""
        return int(self.node.size)

    @property
    def arcs(self) -> int:
        """A, the number of arcs."""
        return int(self.tail.size)

    def rows_of(self, arc: int) -> Shorts:
        """Capacity rows on one arc."""
        return self.row[self.row_ptr[arc] : self.row_ptr[arc + 1]]

    def window(self, row: int) -> tuple[int, float]:
        """Epochs, and the volume in chunks that any so many epochs one after the other hold (rule 4)."""
        window = max(1, _ceil(1 / self.rate[row]))
        return window, window * float(self.rate[row])

    def name(self, vertex: int) -> str:
        """The vertex's node."""
        return str(self.topology.nodes[self.node[vertex]].name)

    def distances(self) -> Ints:
        """Epochs of the quickest way from each rank to each vertex, int64 (R, V); :data:`FAR` where there is none."""
        order, ptr = _by_tail(self.tail, self.vertices)
        distance = np.empty((self.ranks, self.vertices))
        arrival = np.empty(distance.shape, np.int64)
        head = self.head[order].astype(np.int64)
        shortest_paths(ptr, head, order, self.delay.astype(np.float64), np.arange(self.ranks), distance, arrival)
        return np.where(np.isinf(distance), FAR, distance).astype(np.int64)

    def transposed(self) -> Network:
        """The same with all arcs turned round: time run backwards on this network is time run forwards on that one.

        What spreads there is reduced here. So its switches do not copy (switches do not reduce), and where reducing takes time,
        each rank reduces one chunk after the other: a capacity row of its own, numbered from M, behind which the chunk is late.
        """
        turned = replace(self, tail=self.head, head=self.tail, copies=self.copies & self.holds)
        speed = self.clock.reduction_speed
        if speed is None:
            return turned
        rate = speed * self.epoch / self.chunk
        reduces = self.holds[self.head]
        rows = [
            [*self.rows_of(a).tolist(), *([self.rate.size + int(self.head[a])] * int(reduces[a]))]
            for a in range(self.arcs)
        ]
        return replace(
            turned,
            delay=self.delay + reduces.astype(np.int32) * _ceil(1 / rate),
            row_ptr=np.concatenate([[0], np.cumsum([len(found) for found in rows])]).astype(np.int32),
            row=np.concatenate(rows).astype(np.int32),
            rate=np.concatenate([self.rate, np.full(self.vertices, rate)]),
            starts=self.starts + (_starts(rate),) * self.vertices,
        )

    def row_name(self, row: int) -> str:
        """What a capacity row is, in words."""
        links, shared = len(self.topology.links), len(self.topology.shared)
        if row < links:
            return self.topology.describe_link(row)
        return (
            f"shared capacity {row - links}"
            if row < links + shared
            else f"reductions at {self.name(row - links - shared)}"
        )


def make_network(
    topology: Topology,
    chunk: int,
    *,
    nodes: tuple[int, ...] | None = None,
    forwarding: Forwarding = Forwarding.SWITCHES,
    clock: Clock | None = None,
) -> Network:
    """The network of a fabric for chunks of one size.

    Args:
        topology: the fabric.
        chunk: bytes of a chunk, at least 1.
        nodes: node index of each rank; by default its ranks in node order.
        forwarding: who forwards besides switches. A GPU or host that is no rank holds chunks where it forwards.
        clock: how time is cut.

    Raises:
        InputError: a chunk of no bytes, or ranks without a link.
    """
    clock = clock or Clock()
    nodes = topology.ranks if nodes is None else tuple(nodes)
    if chunk < 1:
        raise InputError(f"a chunk of {chunk} bytes", hint="use 1 byte or more")
    graph = policy_graph(topology, nodes, forwarding)
    node, tail, head, link = _vertices(topology, nodes, graph)
    if not link.size:
        raise InputError("no link leads from a rank to a rank", where=topology.name)
    capacity, rows = _capacities(topology)
    times = chunk / np.array([capacity[rows[e]].min() for e in link.tolist()])
    epoch = (
        clock.epoch
        if not isinstance(clock.epoch, str)
        else float(times.min() if clock.epoch == FASTEST else times.max())
    )
    epoch *= clock.multiplier
    holds = np.array([topology.nodes[n].kind in (Kind.GPU, Kind.HOST) for n in node.tolist()])
    holds[: len(nodes)] = True
    if not clock.latent_switches:
        node, tail, head, link, holds = _layered(node, tail, head, link, holds, len(nodes))
    latency = np.array([topology.links[e].latency for e in link.tolist()])
    counts = latency / epoch > clock.ignored_latency
    sending = np.array([_ceil(float(chunk / capacity[rows[e]].min() / epoch)) for e in link.tolist()], np.int64)
    delay = np.where(counts, np.array([_ceil(float(part)) for part in latency / epoch]), 0) + sending
    if not clock.latent_switches:
        delay -= np.minimum(sending, _least_out(tail, sending, node.size)[head]) * ~holds[head]
    rate = capacity * epoch / chunk
    row_ptr = np.concatenate([[0], np.cumsum([len(rows[e]) for e in link.tolist()])])
    windows = {float(r): _starts(float(r)) for r in np.unique(rate[np.concatenate([rows[e] for e in link.tolist()])])}
    return Network(
        topology=topology,
        nodes=nodes,
        forwarding=forwarding,
        clock=clock,
        chunk=chunk,
        epoch=epoch,
        node=node.astype(np.int32),
        holds=holds,
        copies=np.where(holds, clock.copy, clock.switch_copy),
        tail=tail.astype(np.int32),
        head=head.astype(np.int32),
        link=link.astype(np.int32),
        delay=delay.astype(np.int32),
        row_ptr=row_ptr.astype(np.int32),
        row=np.concatenate([rows[e] for e in link.tolist()]).astype(np.int32),
        rate=rate,
        starts=tuple(windows.get(float(r), ()) for r in rate),
        ignored=float(np.where(counts, 0.0, latency).max(initial=0.0)),
    )


def _vertices(topology: Topology, nodes: tuple[int, ...], graph: PolicyGraph) -> tuple[Ints, Ints, Ints, Ints]:
    """The states of the policy graph, a rank's start and end made one, ranks first; node of each, and the arcs."""
    states = graph.ptr.size - 1
    node = np.full(states, -1, np.int64)
    node[graph.tail] = [topology.links[e].tail for e in graph.link.tolist()]
    node[graph.head] = [topology.links[e].head for e in graph.link.tolist()]
    node[graph.starts] = node[graph.ends] = nodes
    vertex = np.full(states, -1, np.int64)
    vertex[graph.starts] = vertex[graph.ends] = np.arange(len(nodes))
    ranks = set(nodes)
    passing = [s for s in range(states) if vertex[s] < 0 and int(node[s]) not in ranks]  # a rank holds what it gets
    vertex[passing] = len(nodes) + np.arange(len(passing))
    tail, head = vertex[graph.tail], vertex[graph.head]
    kept = (tail >= 0) & (head >= 0) & (tail != head)
    return np.concatenate([np.array(nodes, np.int64), node[passing]]), tail[kept], head[kept], graph.link[kept]


def _layered(
    node: Ints, tail: Ints, head: Ints, link: Ints, holds: Flags, ranks: int
) -> tuple[Ints, Ints, Ints, Ints, Flags]:
    """One vertex per switch and number of links since the last holder, so that chunks that cross at once go in no circle.

    A chunk may take as many links from holder to holder as the longest of the shortest ways, no more.
    """
    out: list[list[int]] = [[] for _ in node]
    for a, t in enumerate(tail.tolist()):
        out[t].append(a)
    onward = _hops(head, tail, holds)
    depth = _depth(tail, head, holds)
    states = [(int(v), 0) for v in np.flatnonzero(holds)]
    kept: list[tuple[tuple[int, int], tuple[int, int], int]] = []
    seen = set(states)
    for state in states:  # grows on the way
        for a in out[state[0]]:
            h = int(head[a])
            to = (h, 0) if holds[h] else (h, state[1] + 1)
            if to[1] + onward[h] * (not holds[h]) > depth:
                continue
            kept.append((state, to, int(link[a])))
            if to not in seen:
                seen.add(to)
                states.append(to)
    number = {
        state: i for i, state in enumerate(sorted(states, key=lambda state: (state[0] >= ranks, state[1], state[0])))
    }
    table = np.array(sorted((number[s], number[t], e) for s, t, e in kept), np.int64).reshape(-1, 3)
    of = np.array([v for v, _ in number], np.int64)
    return node[of], table[:, 0], table[:, 1], table[:, 2], holds[of]


def _depth(tail: Ints, head: Ints, holds: Flags) -> int:
    """The most links that a holder is from another, over vertices that do not hold."""
    holders = np.flatnonzero(holds)
    order = np.argsort(head, kind="stable")
    heads, first = np.unique(head[order], return_index=True)
    at = np.zeros((holds.size, holders.size), bool)  # whether what starts at a holder has just come to a vertex
    at[holders, np.arange(holders.size)] = True
    met = at.copy()
    depth, links = 1, 0
    while at.any():
        links += 1
        reached = np.zeros_like(at)
        reached[heads] = np.logical_or.reduceat(at[tail[order]], first, axis=0)
        at = reached & ~met
        met |= at
        if at[holders].any():
            depth = links
        at[holders] = False
    return depth


def _hops(tail: Ints, head: Ints, holds: Flags) -> Ints:
    """Fewest arcs from any holder to each vertex that does not hold, through others that do not."""
    hops = np.where(holds, 0, FAR)
    for _ in range(holds.size):
        better = hops.copy()
        open_ = hops[tail] < FAR
        np.minimum.at(better, head[open_], hops[tail[open_]] + 1)
        better[holds] = 0
        if np.array_equal(better, hops):
            break
        hops = better
    return hops


def _least_out(tail: Ints, sending: Ints, vertices: int) -> Ints:
    least = np.full(vertices, FAR)
    np.minimum.at(least, tail, sending)
    return least


def _capacities(topology: Topology) -> tuple[Floats, list[list[int]]]:
    """Capacity of each row (M,), and the rows of each link: its own, and the shared capacities over it."""
    fabric = fabric_arrays(topology)
    rows = [[e] for e in range(fabric.links)]
    for i, shared in enumerate(topology.shared):
        for e in shared.links:
            rows[e].append(fabric.links + i)
    return fabric.capacity, rows


def _starts(rate: float) -> tuple[tuple[int, int], ...]:
    """Windows and starts that together say: served in order, every chunk is sent before its delivery.

    A chunk takes 1 / rate epochs and has that, rounded up, to be sent. So of any ``l`` epochs that start with an idle link,
    the last start may be followed by that time, and ``(l - 1 + ceil(1 / rate)) * rate`` chunks fit. Windows that follow from
    shorter ones are left out.
    """
    own = _ceil(1 / rate)
    found: list[tuple[int, int]] = []
    implied = [0]
    for window in range(1, MAX_WINDOW + 1):
        fit = math.floor((window - 1 + own) * rate * (1 + SLACK))
        follows = min((starts + implied[max(0, window - length)] for length, starts in found), default=fit + 1)
        if fit < follows:
            found.append((window, fit))
        implied.append(min(fit, follows))
        if rate.is_integer() or (window >= own and (1 / rate).is_integer()):
            break
    longest = {starts: length for length, starts in found}  # which say the same of shorter ones
    return tuple((length, starts) for starts, length in longest.items())


def _by_tail(tail: Shorts, vertices: int) -> tuple[Ints, Ints]:
    ptr = np.zeros(vertices + 1, np.int64)
    np.cumsum(np.bincount(tail, minlength=vertices), out=ptr[1:])
    return np.argsort(tail, kind="stable"), ptr


def _ceil(value: float) -> int:
    return math.ceil(value * (1 - SLACK))
