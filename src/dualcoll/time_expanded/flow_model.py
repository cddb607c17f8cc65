"""The linear program of TE-CCL §4.1: flows without copies over a given number of epochs, by commodity.

Columns: F (commodity, arc, epoch), what starts; B (commodity, holder, epoch), what stays for the next epoch; R (demand, epoch),
what is read; G (row, epoch), all that starts on a slow link. Only those exist that lie on some way from the source to a
receiver in time. Rows: what comes to a vertex leaves it, stays or is read; and what fits.

What fits in a flow: the capacity of an epoch; on a link that is slower than a chunk per epoch, one chunk in the epochs that it
takes to send one (rule 4), or, if those are no whole number, as much as has been sent when it is delivered. Every schedule of
whole chunks obeys this too. So what no flow can do, no schedule can.

Shape letters: G commodities, V vertices, A arcs, M capacity rows, J demands, K epochs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.lp.linear import LinearProgram
from dualcoll.time_expanded.flow_demands import Demands
from dualcoll.time_expanded.flow_paths import DUST, CommodityFlow
from dualcoll.time_expanded.network import FAR, SLACK, Network

__all__ = ["FlowModel", "Reach", "reach_of", "sending_epochs"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """When a commodity can be where.

    Attributes:
        earliest: int64 (G, V), the first epoch. onward: int64 (G, V), epochs from there to the nearest receiver; ``FAR`` where
            there is no way.
        usable: bool (G, A), arcs on which it may start at all.
    """

    earliest: Ints
    onward: Ints
    usable: Flags

    def least(self) -> int:
        """The epoch by which the nearest receiver of each commodity can have something."""
        return int((self.earliest + self.onward).min(axis=1).max())

    def starts(self, network: Network, horizon: int) -> Ints:
        """How many epochs each commodity may start in on each arc within a horizon, int64 (G, A)."""
        last = horizon - self.onward[:, network.head] - network.delay
        return np.where(self.usable, np.maximum(0, last - self.earliest[:, network.tail] + 1), 0)


def reach_of(demands: Demands) -> Reach:
    """When the commodities can be where, and which arcs they may use.

    A rank that must not relay, or has no room for what is for others, takes only what is for itself.
    """
    network = demands.problem.network
    earliest = demands.release[:, None] + network.distances()[demands.source]
    to = replace(network, tail=network.head, head=network.tail).distances()  # (R, V) from each vertex to the rank
    onward = np.full(earliest.shape, FAR, np.int64)
    wanted = np.zeros(earliest.shape, bool)
    for g in range(demands.source.size):
        targets = demands.target[demands.of(g)]
        onward[g] = to[targets].min(axis=0)
        wanted[g, targets] = True
    usable = (earliest[:, network.tail] < FAR) & (onward[:, network.head] < FAR)
    usable &= network.head[None, :] != demands.source[:, None]
    if not relays(network):
        usable &= ~network.holds[network.tail] | (network.tail[None, :] == demands.source[:, None])
        usable &= ~network.holds[network.head] | wanted[:, network.head]
    return Reach(earliest, onward, usable)


def relays(network: Network) -> bool:
    """Whether ranks can pass on what is not for them."""
    return network.clock.relay and network.clock.buffer != 0


def sending_epochs(rate: float) -> int:
    """Epochs that a link takes to send one chunk, rounded up."""
    return max(1, math.ceil(1 / rate * (1 - SLACK)))


@dataclass(slots=True, eq=False)
class _Entries:
    row: list[Ints] = field(default_factory=list)
    column: list[Ints] = field(default_factory=list)
    value: list[Floats] = field(default_factory=list)

    def add(self, row: Ints, column: Ints, value: float) -> None:
        self.row.append(row)
        self.column.append(column)
        self.value.append(np.full(row.size, value))


@dataclass(slots=True, eq=False)
class _Block:
    """Columns of one commodity: first number, and for each what it is of and its epoch."""

    first: int
    of: Ints
    epoch: Ints


class FlowModel:
    """The linear program over one horizon.

    Args:
        demands: what is carried. reach: of its commodities.
        horizon: K; what arrives in epoch K is in time.
        detour: what a start costs against a delivered chunk, so that nothing takes a longer way for nothing.
        weighted: maximise the paper's Σ R / (k + 1), where k + 1 is the epoch of arrival, with everything delivered; else
            maximise what is delivered.
    """

    def __init__(
        self, demands: Demands, reach: Reach, horizon: int, *, detour: float = 0.0, weighted: bool = False
    ) -> None:
        self.detour = detour
        self._demands, self._network, self._reach = demands, demands.problem.network, reach
        self._horizon, self._weighted = horizon, weighted
        self._every = weighted or self._network.clock.buffer is not None  # whether reading is an event of its own
        self._entries = _Entries()
        self._columns = 0
        self._cost: list[Floats] = []
        self._upper: list[Floats] = []
        self._low: list[Floats] = []
        self._high: list[Floats] = []
        self._rows = 0
        self._flows: list[_Block] = []
        self._kept: list[_Block] = []
        self._read: list[_Block] = []
        for g in range(demands.source.size):
            self._commodity(g)
        self._capacities()
        if self._network.clock.buffer is not None:
            self._buffers(self._network.clock.buffer)

    def program(self) -> LinearProgram:
        """The program for the solver."""
        entries = self._entries
        return LinearProgram(
            cost=np.concatenate(self._cost),
            lower=np.zeros(self._columns),
            upper=np.concatenate(self._upper),
            low=np.concatenate(self._low),
            high=np.concatenate(self._high),
            row=np.concatenate(entries.row),
            column=np.concatenate(entries.column),
            value=np.concatenate(entries.value),
        )

    def delivered(self, columns: Floats) -> float:
        """Chunks that a solution delivers."""
        return float(sum(columns[block.first : block.first + block.of.size].sum() for block in self._read))

    def flows(self, columns: Floats) -> list[CommodityFlow]:
        """The solution, commodity by commodity."""
        found = []
        for blocks in zip(self._flows, self._kept, self._read, strict=True):
            parts: list[Ints | Floats] = []
            for block in blocks:
                volume = columns[block.first : block.first + block.of.size]
                used = np.flatnonzero(volume > DUST)
                parts += [block.of[used], block.epoch[used], volume[used]]
            found.append(CommodityFlow(*parts))  # type: ignore[arg-type]
        return found

    def _commodity(self, g: int) -> None:
        """Columns of one commodity, and the balance of each vertex in each epoch."""
        network, demands = self._network, self._demands
        earliest = self._reach.earliest[g]
        last = self._horizon - self._reach.onward[g]
        epochs = np.maximum(0, last - earliest + 1)
        base = self._rows + np.cumsum(epochs) - epochs
        low, high = np.zeros(int(epochs.sum())), np.zeros(int(epochs.sum()))
        mine = demands.of(g)
        source = int(demands.source[g])
        if epochs[source]:
            high[base[source] - self._rows] = demands.count[mine].sum()
        self._new_rows(low, high)

        arc, epoch = _spread(self._reach.starts(network, self._horizon)[g], earliest[network.tail])
        cost = np.full(arc.size, 0.0 if self._weighted else -self.detour)
        flow = self._new_columns(arc, epoch, cost=cost)
        self._flows.append(flow)
        number = flow.first + np.arange(arc.size)
        tail, head = network.tail[arc], network.head[arc]
        self._entries.add(base[tail] + epoch - earliest[tail], number, 1.0)
        self._entries.add(base[head] + epoch + network.delay[arc] - earliest[head], number, -1.0)

        stays = np.where(network.holds, np.maximum(0, epochs - 1), 0)
        vertex, epoch = _spread(stays, earliest)
        kept = self._new_columns(vertex, epoch)
        self._kept.append(kept)
        number = kept.first + np.arange(vertex.size)
        self._entries.add(base[vertex] + epoch - earliest[vertex], number, 1.0)
        self._entries.add(base[vertex] + epoch + 1 - earliest[vertex], number, -1.0)

        self._reads(mine, earliest, base)

    def _reads(self, mine: Ints, earliest: Ints, base: Ints) -> None:
        """Reading: whenever something comes, where that matters; else when it is due."""
        demands, horizon = self._demands, self._horizon
        due = np.minimum(demands.deadline[mine], horizon)
        first = earliest[demands.target[mine]]
        epochs = np.where(due < first, 0, due - first + 1 if self._every else 1)
        demand, epoch = _spread(epochs, first if self._every else due)
        demand = mine[demand]
        count = demands.count[demand].astype(np.float64)
        cost = 1 / np.maximum(epoch, 1) if self._weighted else np.ones(demand.size)
        read = self._new_columns(demand, epoch, cost=cost, upper=count)
        self._read.append(read)
        number = read.first + np.arange(demand.size)
        target = demands.target[demand]
        self._entries.add(base[target] + epoch - earliest[target], number, 1.0)
        if self._every:
            self._entries.add(self._rows + np.searchsorted(mine, demand), number, 1.0)
            counts = demands.count[mine].astype(np.float64)
            self._new_rows(counts if self._weighted else np.zeros(mine.size), counts)

    def _capacities(self) -> None:
        """What fits on each row: at once where a link sends a chunk or more per epoch, by windows where it does not."""
        network, horizon = self._network, self._horizon
        arc = np.concatenate([block.of for block in self._flows])
        epoch = np.concatenate([block.epoch for block in self._flows])
        number = np.concatenate([block.first + np.arange(block.of.size) for block in self._flows])
        width = np.diff(network.row_ptr)[arc]
        which = np.repeat(np.arange(arc.size), width)
        within = np.arange(which.size) - np.repeat(np.cumsum(width) - width, width)
        row = network.row[network.row_ptr[arc[which]] + within].astype(np.int64)
        used, place = np.unique(row * horizon + epoch[which], return_inverse=True)
        rate = network.rate[used // horizon]
        slow = rate < 1 - SLACK
        self._entries.add(self._rows + place.reshape(-1), number[which], 1.0)
        self._new_rows(np.where(slow, 0.0, -np.inf), np.where(slow, 0.0, rate))
        if slow.any():
            self._slow(used[slow] // horizon, used[slow] % horizon, self._rows - used.size + np.flatnonzero(slow))

    def _slow(self, row: Ints, epoch: Ints, total: Ints) -> None:
        """All that starts on a slow row in an epoch is G, bounded over the epochs that sending takes."""
        network = self._network
        sums = self._new_columns(row, epoch)
        number = sums.first + np.arange(row.size)
        self._entries.add(total, number, -1.0)
        for m in np.unique(row).tolist():
            mine = row == m
            rate = float(network.rate[m])
            window = sending_epochs(rate)
            at = np.full(int(epoch[mine].max()) + 1, -1, np.int64)
            at[epoch[mine]] = number[mine]
            if abs(window - 1 / rate) <= SLACK * window:
                ends = np.arange(at.size)
                self._new_rows(np.full(ends.size, -np.inf), np.ones(ends.size))
                for back in range(window):
                    there = ends[ends >= back]
                    there = there[at[there - back] >= 0]
                    self._entries.add(self._rows - ends.size + there, at[there - back], 1.0)
            else:
                self._backlog(at, rate, window)

    def _backlog(self, at: Ints, rate: float, window: int) -> None:
        """What is not sent at the end of an epoch, which must be gone by its delivery."""
        epochs = np.arange(at.size)
        waits = self._new_columns(epochs, epochs, upper=np.full(at.size, (window - 1) * rate))
        number = waits.first + epochs
        rows = self._rows + epochs
        self._new_rows(np.full(at.size, -np.inf), np.full(at.size, rate))
        self._entries.add(rows[at >= 0], at[at >= 0], 1.0)
        self._entries.add(rows, number, -1.0)
        self._entries.add(rows[1:], number[:-1], 1.0)

    def _buffers(self, room: int) -> None:
        """What a holder has of others in an epoch: what stays and what leaves, of all commodities that begin elsewhere."""
        network, horizon = self._network, self._horizon
        for v in np.flatnonzero(network.holds).tolist():
            found: list[tuple[Ints, Ints]] = []
            for g, (flow, kept) in enumerate(zip(self._flows, self._kept, strict=True)):
                if self._demands.source[g] == v:
                    continue
                leaves, stays = np.flatnonzero(network.tail[flow.of] == v), np.flatnonzero(kept.of == v)
                found += [(flow.epoch[leaves], flow.first + leaves), (kept.epoch[stays], kept.first + stays)]
            if any(epoch.size for epoch, _ in found):
                for epoch, number in found:
                    self._entries.add(self._rows + epoch, number, 1.0)
                self._new_rows(np.full(horizon, -np.inf), np.full(horizon, float(room)))

    def _new_columns(self, of: Ints, epoch: Ints, *, cost: Floats | None = None, upper: Floats | None = None) -> _Block:
        block = _Block(self._columns, of, epoch)
        self._columns += of.size
        self._cost.append(np.zeros(of.size) if cost is None else cost)
        self._upper.append(np.full(of.size, np.inf) if upper is None else upper)
        return block

    def _new_rows(self, low: Floats, high: Floats) -> None:
        self._rows += low.size
        self._low.append(low)
        self._high.append(high)


def _spread(epochs: Ints, first: Ints) -> tuple[Ints, Ints]:
    """Each index as often as it has epochs, and those epochs from the first one on."""
    of = np.repeat(np.arange(epochs.size), epochs)
    return of, np.arange(of.size) - np.repeat(np.cumsum(epochs) - epochs, epochs) + first[of]
