"""What happens when an MSCCL++ plan runs, as a graph: who comes before whom, and who waits for whom.

Inside a thread block only ``nop`` and ``barrier`` join the threads. Between two of them every thread goes its own way: signals,
waits, semaphores and puts of port channels are done by one thread each (the i-th of an op's list by thread i), data is moved by
all. So a node is the start or the end of what all threads do together, or what one thread does. Between blocks and GPUs, order
comes from signals, semaphores, barriers and packets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dualcoll.lowering.mscclpp.ops import OPS, Kind, Role
from dualcoll.lowering.mscclpp.plan import Operation, Plan
from dualcoll.lowering.mscclpp.structure import channel_ends, op_place

__all__ = ["Counted", "Events", "Move", "Step", "build_events"]

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """Where an op stands: which launch of the plan (from 0), and which iteration of a pipeline."""

    launch: int
    gpu: int
    block: int
    op: int
    inner: int | None
    iteration: int
    operation: Operation

    @property
    def text(self) -> str:
        """The place in the file, with the iteration and the launch where they matter."""
        text = op_place(self.gpu, self.block, self.op, self.inner, self.operation.name)
        text += f" in step {self.iteration}" if self.iteration else ""
        return text + (" of the next launch" if self.launch else "")


@dataclass(slots=True)
class Counted:
    """A counter: what adds to it and what takes from it, by thread block in program order.

    Attributes:
        begins: its value at first. text: what it is, for messages.
    """

    text: str
    begins: int = 0
    adds: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    takes: dict[tuple[int, int], list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Move:
    """Data that an op moves, from its first access to its last.

    Attributes:
        step: the op. start, end: nodes. joined: the node that last joined the threads of the block before it.
        pair: which source goes to which destination, of a put through port channels; None for all operands together.
    """

    step: Step
    start: int
    end: int
    joined: int
    pair: int | None = None


@dataclass(slots=True)
class Events:
    """Nodes N and their order.

    Attributes:
        step: (N,), the op of each node; or (launch, gpu) for what happens at a GPU between two launches.
        before: (N,), nodes that come before each. stalls: (N,), nodes that hold up each, though not all of their threads.
        moves: all data that is moved. counters: signals of channels, and semaphores.
        breaks: for each launch, and after the last, one node for each GPU: what the GPU does before and after it.
        relaxed: signals and waits that do not order memory.
    """

    step: list[Step | tuple[int, int]] = field(default_factory=list)
    before: list[list[int]] = field(default_factory=list)
    stalls: list[list[int]] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    counters: dict[Key, Counted] = field(default_factory=dict)
    breaks: list[list[int]] = field(default_factory=list)
    relaxed: set[int] = field(default_factory=set)

    def add(self, step: Step | tuple[int, int], before: Sequence[int], stalls: Sequence[int] = ()) -> int:
        """One more node."""
        self.step.append(step)
        self.before.append(list(before))
        self.stalls.append(list(stalls))
        return len(self.step) - 1


def build_events(plan: Plan, launches: int, iterations: int) -> Events:
    """The graph of so many launches one after the other, pipelines going so many steps."""
    events = Events()
    ends = {kind: channel_ends(plan, kind) for kind in ("memory", "port")}
    last: list[list[int]] = [[] for _ in plan.gpus]
    meets: dict[Key, list[tuple[int, int]]] = {}  # arrival at and departure from a barrier, of each block
    for launch in range(launches + 1):
        events.breaks.append([events.add((launch, g), last[g]) for g in range(plan.ranks)])
        if launch == launches:
            break
        for g, gpu in enumerate(plan.gpus):
            last[g] = [events.breaks[launch][g]]
            for b in range(len(gpu.blocks)):
                block = _Block(plan, events, ends, meets, launch, g, b, iterations)
                block.run()
                last[g] += [block.joined, *block.open]
    for pairs in meets.values():
        for _, leave in pairs:
            events.before[leave] += [arrive for arrive, _ in pairs]
    for counter in events.counters.values():
        _match(events, counter)
    return events


def _match(events: Events, counter: Counted) -> None:
    """Let each taker come after what must have been added by then, whoever else takes."""
    total = sum(map(len, counter.adds.values()))
    for takes in counter.takes.values():
        for place, node in enumerate(takes, 1):
            wanted = place - counter.begins
            for adds in counter.adds.values():
                surely = min(
                    wanted - (total - len(adds)), len(adds)
                )  # the others together add no more than their number
                if surely > 0:
                    events.before[node].append(adds[surely - 1])


class _Block:
    """Walks through one thread block."""

    def __init__(
        self,
        plan: Plan,
        events: Events,
        ends: dict[str, dict[tuple[int, int], tuple[int, int] | None]],
        meets: dict[Key, list[tuple[int, int]]],
        launch: int,
        gpu: int,
        block: int,
        iterations: int,
    ) -> None:
        self.plan, self.events, self.ends, self.meets = plan, events, ends, meets
        self.launch, self.gpu, self.block, self.iterations = launch, gpu, block, iterations
        self.joined = events.breaks[launch][gpu]  # the last node that joined the threads
        self.lane: dict[int, int] = {}  # the last node of each thread since
        self.open: list[int] = []  # what threads did since
        self.start: list[int] = []  # the start of the last data op since
        self.spins: list[int] = []  # ends of data ops since that hold up all threads
        self.left: dict[int, list[tuple[int, int, int]]] = {}  # puts of a port channel: (joined, thread, delivered)
        self.met: dict[int, int] = {}  # times at each barrier

    def run(self) -> None:
        """All ops in order."""
        for step in self._steps():
            op = step.operation
            kind = OPS[op.name].kind
            if kind is Kind.THREADS:
                self._join(step)
            elif kind is Kind.BARRIER:
                arrive = self._join(step)
                time = self.met[op.barrier] = self.met.get(op.barrier, 0) + 1
                leave = self._join(step)
                self.meets.setdefault((self.launch, self.gpu, op.barrier, time), []).append((arrive, leave))
            elif kind is Kind.DATA and op.channel_type == "port":
                self._put(step)
            elif kind is Kind.DATA:
                self._data(step)
            else:
                self._single(step, kind)

    def _steps(self) -> Iterator[Step]:
        for o, op in enumerate(self.plan.gpus[self.gpu].blocks[self.block].ops):
            if OPS[op.name].kind is not Kind.PIPELINE:
                yield Step(self.launch, self.gpu, self.block, o, None, 0, op)
                continue
            for iteration in range(self.iterations):
                for i, inner in enumerate(op.ops):
                    yield Step(self.launch, self.gpu, self.block, o, i, iteration, inner)

    def _join(self, step: Step) -> int:
        self.joined = self.events.add(step, [self.joined, *self.open])
        self.lane, self.open, self.start, self.spins = {}, [], [], []
        return self.joined

    def _one(self, step: Step, thread: int, more: Sequence[int] = ()) -> int:
        """A node of one thread."""
        node = self.events.add(step, [self.lane.get(thread, self.joined), *more], self.spins)
        self.lane[thread] = node
        self.open.append(node)
        return node

    def _data(self, step: Step) -> None:
        start = self.events.add(step, [self.joined, *self.start])
        end = self.events.add(step, [start, *self.open])
        self.start = [start]
        self.open.append(end)
        if any(role is Role.PACKETS for role in OPS[step.operation.name].src):
            self.spins.append(end)
        self.events.moves.append(Move(step, start, end, self.joined))

    def _put(self, step: Step) -> None:
        form = OPS[step.operation.name]
        for thread, place in enumerate(step.operation.channels):
            channel = self.plan.gpus[self.gpu].blocks[self.block].port[place]
            start = self._one(step, thread, self.start)
            delivered = self.events.add(step, [start, *self._ahead(channel, thread)])
            self.events.moves.append(Move(step, start, delivered, self.joined, thread))
            self.left.setdefault(channel, []).append((self.joined, thread, delivered))
            if form.signals:
                self._count("port", channel, adds=delivered)
            if form.flushes:
                self._one(step, thread, [delivered])

    def _ahead(self, channel: int, thread: int) -> list[int]:
        """Puts that this thread knows to be ahead on a port channel, whose order is kept."""
        return [node for joined, other, node in self.left.get(channel, []) if joined != self.joined or other == thread]

    def _single(self, step: Step, kind: Kind) -> None:
        op = step.operation
        if kind in (Kind.ACQUIRE, Kind.RELEASE):
            for thread, semaphore in enumerate(op.semaphores):
                self._semaphore(semaphore, kind, self._one(step, thread))
            return
        for thread, place in enumerate(op.channels):
            channel = self.plan.gpus[self.gpu].blocks[self.block].channels(op.channel_type)[place]
            ahead = self._ahead(channel, thread) if op.channel_type == "port" else []
            if kind is Kind.FLUSH:
                self._one(step, thread, ahead)
                continue
            node = self._one(step, thread)
            if OPS[op.name].relaxed:
                self.events.relaxed.add(node)
            if kind is Kind.WAIT:
                self._count(op.channel_type, channel, takes=node)
            else:
                arrives = self.events.add(step, [node, *ahead]) if ahead else node
                self._count(op.channel_type, channel, adds=arrives)

    def _count(self, kind: str, channel: int, adds: int | None = None, takes: int | None = None) -> None:
        """A signal of the channel to its other end, or one of those that are waited for."""
        here = (self.gpu, channel)
        end = here if adds is None else self.ends[kind][here]
        key = (kind, *end) if end is not None else (kind, *here, "nobody")
        gpu, place = here if end is None else end
        text = f"{'the missing other end of ' if end is None else ''}{kind} channel {place} of gpu {gpu}"
        counter = self.events.counters.setdefault(key, Counted(text))
        if adds is not None:
            counter.adds.setdefault((self.gpu, self.block), []).append(adds)
        if takes is not None:
            counter.takes.setdefault((self.gpu, self.block), []).append(takes)

    def _semaphore(self, semaphore: int, kind: Kind, node: int) -> None:
        begins = self.plan.gpus[self.gpu].semaphores[semaphore]
        text = f"semaphore {semaphore} of gpu {self.gpu}"
        counter = self.events.counters.setdefault(("semaphore", self.gpu, semaphore), Counted(text, begins))
        side = counter.takes if kind is Kind.ACQUIRE else counter.adds
        side.setdefault((self.gpu, self.block), []).append(node)
