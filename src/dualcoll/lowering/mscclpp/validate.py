"""Whether an MSCCL++ execution plan does what its collective promises, found out without a GPU (docs/mscclpp.md)."""

from __future__ import annotations

from dataclasses import dataclass

from dualcoll.certificates.findings import Findings
from dualcoll.collectives.catalogue import title
from dualcoll.errors import CheckFailed, InputError
from dualcoll.lowering.mscclpp.contents import Contents, spot_text
from dualcoll.lowering.mscclpp.effects import Effect, Grid, effects, grid_of
from dualcoll.lowering.mscclpp.events import Counted, Events, Step, build_events
from dualcoll.lowering.mscclpp.plan import Plan
from dualcoll.lowering.mscclpp.races import Access, Race, find_races
from dualcoll.lowering.mscclpp.structure import check_structure
from dualcoll.lowering.mscclpp.task import PACKETS, Spot, Task, shared_spot, task_of

__all__ = ["Report", "Run", "inspect", "run_order", "validate"]

MAX_NODES = 2**19
SHOWN = 6  # ops of a deadlock named


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of a plan.

    Attributes:
        faults: what keeps it from working, one sentence each. warnings: what does harm under circumstances, or is not checked.
        facts: collective, ranks, protocol, channels and thread blocks, as text.
    """

    facts: str
    faults: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A plan worked out: an order in which its ops can go, and what each does.

    Attributes:
        order: all nodes of ``events``. effects: by number of the move.
    """

    grid: Grid
    events: Events
    order: list[int]
    effects: dict[int, list[Effect]]


def validate(plan: Plan) -> Report:
    """Check limits, references, pairing, deadlock, buffers, races and data.

    Raises:
        InputError: the plan is too large, or cut too fine, to be worked out.
        CheckFailed: one finding per fault, with GPU, thread block and op.
    """
    report = inspect(plan)
    if report.faults:
        raise CheckFailed(report.faults)
    return report


def inspect(plan: Plan) -> Report:
    """The same without raising what is found.

    Raises:
        InputError: the plan is too large, or cut too fine, to be worked out.
    """
    faults, warnings = Findings(), Findings()
    for note in (*plan.notes, *_circumstances(plan)):
        warnings.add(note)
    check_structure(plan, faults)
    if not faults:
        run = run_order(plan, 3 if plan.double_scratch else 2, faults, warnings)
        if run is not None:
            _check_races(plan, run, faults, warnings)
            if not faults:
                _check_contents(plan, run, faults, warnings)
    return Report(_facts(plan), *(found.error().findings if found else () for found in (faults, warnings)))


def run_order(plan: Plan, launches: int, faults: Findings, warnings: Findings) -> Run | None:
    """So many launches of the plan worked out; None with faults where it cannot run."""
    grid = grid_of(plan)
    nodes = launches * grid.steps * sum(3 + 2 * len(op.channels) for op in plan.operations())
    if nodes > MAX_NODES:
        raise InputError(f"about {nodes} events are too many to be worked out", hint=f"up to {MAX_NODES} are")
    events = build_events(plan, launches, grid.steps)
    for counter in events.counters.values():
        _check_counter(counter, launches, faults, warnings)
    done = {number: effects(plan, grid, move) for number, move in enumerate(events.moves)}
    if faults or not _packets(plan, events, done, faults):
        return None
    order = _order(events)
    if len(order) < len(events.step):
        faults.add(f"deadlock: {_cycle(events, order)}")
        return None
    return Run(grid, events, order, done)


def _check_counter(counter: Counted, launches: int, faults: Findings, warnings: Findings) -> None:
    adds, takes = (sum(map(len, side.values())) // launches for side in (counter.adds, counter.takes))
    if counter.text.startswith("semaphore"):
        if adds != takes:
            faults.add(
                f"{counter.text}: {adds} times released and {takes} times acquired; the next launch begins with another value"
            )
        if len(counter.takes) > 1:
            blocks = " and ".join(str(block) for _, block in sorted(counter.takes))
            warnings.add(
                f"{counter.text}: thread blocks {blocks} acquire it; whether that can end in a deadlock is not settled"
            )
        return
    if takes > adds:
        faults.add(f"{counter.text}: {takes} waits and {adds} signals to it; the last waits never end")
    elif adds > takes:
        faults.add(
            f"{counter.text}: {adds} signals to it and {takes} waits; the next launch takes the signals of this one"
        )
    if len(counter.takes) > 1:
        blocks = " and ".join(str(block) for _, block in sorted(counter.takes))
        faults.add(
            f"{counter.text}: thread blocks {blocks} wait on it, and each may take the signal that the other waits for"
        )


def _packets(plan: Plan, events: Events, done: dict[int, list[Effect]], faults: Findings) -> bool:
    """Order who waits for packets after who writes them; whether all packets are written."""
    writers: dict[tuple[int, Spot], int] = {}
    for number, move in enumerate(events.moves):
        for effect in done[number]:
            writers |= {(move.step.launch, spot): number for spot in effect.targets if spot[1] == PACKETS}
    for number, move in enumerate(events.moves):
        needed = {spot for effect in done[number] if effect.spins for spot in effect.sources if spot[1] == PACKETS}
        missing = sorted(spot for spot in needed if (move.step.launch, spot) not in writers)
        if missing:
            grains = grid_of(plan).grains
            faults.add(
                f"{move.step.text}: it waits for packets in {spot_text(missing[0], grains)}, which nobody writes"
            )
            continue
        for writer in sorted({writers[move.step.launch, spot] for spot in needed}):
            events.before[move.start].append(events.moves[writer].start)
            events.before[move.end].append(events.moves[writer].end)
    return not faults


def _order(events: Events) -> list[int]:
    """All nodes in an order in which they can come about; shorter where there is none."""
    followers: list[list[int]] = [[] for _ in events.step]
    waiting = [0] * len(events.step)
    for node, (before, stalls) in enumerate(zip(events.before, events.stalls, strict=True)):
        for earlier in (*before, *stalls):
            followers[earlier].append(node)
            waiting[node] += 1
    order = [node for node, count in enumerate(waiting) if not count]
    for node in order:
        for later in followers[node]:
            waiting[later] -= 1
            if not waiting[later]:
                order.append(later)
    return order


def _cycle(events: Events, order: list[int]) -> str:
    """Ops that wait for one another in a circle."""
    done = set(order)
    node = next(node for node in range(len(events.step)) if node not in done)
    seen: dict[int, int] = {}
    path: list[int] = []
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = next(earlier for earlier in (*events.before[node], *events.stalls[node]) if earlier not in done)
    circle = [events.step[node] for node in path[seen[node] :]]
    texts = list(dict.fromkeys(step.text for step in circle if isinstance(step, Step)))
    shown = texts if len(texts) <= SHOWN else [*texts[: SHOWN - 1], f"{len(texts) - SHOWN + 1} more"]
    return f"{', which waits for '.join(shown)}, which waits for the first"


def _check_races(plan: Plan, run: Run, faults: Findings, warnings: Findings) -> None:
    grains = run.grid.grains
    task = task_of(plan, grains)

    def owned(gpu: int) -> list[Spot]:
        rooms = (("i", plan.gpus[gpu].input_chunks), ("o", plan.gpus[gpu].output_chunks))
        return list(
            {shared_spot(plan, gpu, buffer, i, grains): None for buffer, room in rooms for i in range(room * grains)}
        )

    told: set[str] = set()
    for race, loosely in find_races(plan, run.events, run.order, run.effects, owned):
        severe, sentence = _race(race, task, grains)
        if loosely:
            severe, sentence = False, f"{sentence} but a signal that does not order memory"
        if sentence not in told and len(told) < 10_000:
            told.add(sentence)
            (faults if severe else warnings).add(sentence)


def _race(race: Race, task: Task, grains: int) -> tuple[bool, str]:
    """Whether it is within one launch, and the sentence."""
    earlier, later = race.earlier.step, race.later.step
    spot = spot_text(race.spot, grains)
    if isinstance(earlier, Step) and isinstance(later, Step):
        what = f"{_does(race.later)} {spot}, which {earlier.text} {_does(race.earlier)}"
        return earlier.launch == later.launch, f"{later.text} {what}, and nothing orders them"
    if isinstance(later, Step):
        return True, f"{later.text} {_does(race.later)} {spot}, and nothing says that gpu {race.spot[0]} has begun"
    assert isinstance(earlier, Step)
    severe = race.earlier.writes and race.spot in task.ends
    return (
        severe,
        f"{earlier.text} {_does(race.earlier)} {spot}, and nothing says that it has done so when gpu {race.spot[0]} ends",
    )


def _does(access: Access) -> str:
    return "writes" if access.writes else "reads"


def _check_contents(plan: Plan, run: Run, faults: Findings, warnings: Findings) -> None:
    task = task_of(plan, run.grid.grains)
    odd = next((op.name for op in plan.operations() if op.name == "gstorepkt"), None)
    if not task.collective or odd is not None:
        why = task.why or f"what {odd} does to packets is not known"
        warnings.add(f"the result is not checked: {why}")
        return
    contents = Contents.before(task, run.grid.grains)
    moved = {move.start: number for number, move in enumerate(run.events.moves) if move.step.launch == 0}
    for node in run.order:
        if node in moved:
            contents.apply(run.events.moves[moved[node]], run.effects[moved[node]])
    for sentence in (*contents.wrong.values(), *contents.after(task)):
        faults.add(sentence)


def _circumstances(plan: Plan) -> list[str]:
    """What present executors do not do as the plan says."""
    found = []
    ops = list(plan.operations())
    reductions = sorted({op.reduce_op for op in ops} - {"", "sum"})
    if reductions:
        found.append(f"reduce_op {' and '.join(reductions)}: MSCCL++'s executor does not read it and adds")
    if any(op.name == "pwsf" for op in ops):
        found.append("pwsf: some releases of MSCCL++ hand it a wrong source offset; pws and a signal back are safe")
    if any(op.name == "flush" and not op.dst for op in ops):
        found.append("flush without dst_buff: some releases of MSCCL++ then flush no channel")
    if any(op.name == "get" and [s.index for s in op.src] != [d.index for d in op.dst] for op in ops):
        found.append("get from another index than it writes: some releases of MSCCL++ mix up the two")
    if plan.protocol == "LL" and not plan.double_scratch:
        found.append(
            "packets without use_double_scratch_buffer: launches that follow each other share one scratch buffer"
        )
    if not plan.gpus[0].output_chunks or not plan.gpus[0].input_chunks:
        found.append("a buffer of 0 chunks: some releases of MSCCL++ divide by it")
    if plan.protocol != "LL" and any("pkt" in op.name for op in ops):
        found.append("packets in a plan whose protocol is not LL: the executor makes its scratch buffer too small")
    return found


def _facts(plan: Plan) -> str:
    counts = {kind: sum(len(gpu.peers(kind)) for gpu in plan.gpus) for kind in ("memory", "port")}
    counts["switch"] = sum(len(gpu.switches) for gpu in plan.gpus)
    channels = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "no"
    counted = [len(gpu.blocks) for gpu in plan.gpus]
    blocks = f"{min(counted)} to {max(counted)}" if min(counted) < max(counted) else str(counted[0])
    place = "in place" if plan.in_place else "out of place"
    return (
        f"{title(plan.collective)} over {plan.ranks} GPU{'s' * (plan.ranks > 1)}, {plan.protocol}, {place}, "
        f"{channels} channels, {blocks} thread block{'s' * (blocks != '1')} per GPU"
    )
