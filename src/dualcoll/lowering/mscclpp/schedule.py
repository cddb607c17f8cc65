"""From an MSCCL++ execution plan to a schedule, so that it can be simulated, executed in process, and compared.

A schedule says what moves, and what depends on what as data. Signals that carry no news of data are not in it, and of the order
of ops in a thread block only that what it sends to one peer goes in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualcoll.certificates.findings import Findings
from dualcoll.collectives.contract import NOWHERE, Contract
from dualcoll.errors import CheckFailed, InputError
from dualcoll.lowering.mscclpp.contents import Contents, members
from dualcoll.lowering.mscclpp.effects import Effect
from dualcoll.lowering.mscclpp.plan import Plan
from dualcoll.lowering.mscclpp.structure import check_structure
from dualcoll.lowering.mscclpp.task import Spot, Task, task_of
from dualcoll.lowering.mscclpp.validate import Run, run_order
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op

__all__ = ["to_schedule"]

ORIGIN, RESULT = -2, -1  # slots of a piece of data: where it begins, where it ends; others are numbered from 0


@dataclass(frozen=True, slots=True)
class _Send:
    """One grain on its way.

    Attributes:
        place: number of the op in running order, and of the send within it. read, written: slots.
        block: GPU and thread block that do it.
    """

    place: tuple[int, int]
    src: int
    dst: int
    read: int
    written: int
    op: Op
    block: tuple[int, int]


def to_schedule(plan: Plan, size: int) -> Schedule:
    """The plan's sends for a message of so many bytes (as nccl-tests counts them).

    Sends of one thread block to one peer have a channel to themselves. That the plan is free of races is for
    :func:`~dualcoll.lowering.mscclpp.validate.validate` to say.

    Raises:
        InputError: the collective is not known, a switch adds or multiplies, or the executor would refuse that size.
        CheckFailed: the plan cannot run.
    """
    where = f"plan {plan.name!r}"
    faults = Findings()
    check_structure(plan, faults)
    run = None if faults else run_order(plan, 1, faults, Findings())
    if run is None:
        raise faults.error()
    task = task_of(plan, run.grid.grains)
    if not task.collective:
        raise InputError(task.why, where=where, hint="only how it runs can be checked")
    switched = next((op.name for op in plan.operations() if op.channel_type == "switch"), None)
    if switched is not None:
        problem = f"{switched}: what a switch adds up or multiplies is no send between GPUs"
        raise InputError(problem, where=where, hint="it can be checked, but not simulated")
    sizes = _sizes(plan, task, size, run.grid.grains)
    first, sends = _sends(task, run, where)
    return _built(plan, task, first, sends, sizes)


def _sizes(plan: Plan, task: Task, size: int, grains: int) -> NDArray[np.int64]:
    """Bytes of each grain of a chunk."""
    chunks = task.count // grains * (plan.ranks if task.collective == "allgather" else 1)
    if size < 1 or size % (chunks * plan.alignment):
        problem = f"{size} bytes are not a multiple of {chunks} chunks of {plan.alignment} bytes"
        raise InputError(problem, where=f"plan {plan.name!r}", hint=f"use a multiple of {chunks * plan.alignment}")
    if not plan.min_size <= size <= plan.max_size:
        problem = f"{size} bytes are not in the plan's {plan.min_size} .. {plan.max_size}"
        raise InputError(problem, where=f"plan {plan.name!r}", hint="use a size in that range")
    blocks = size // chunks // plan.alignment
    return np.diff(blocks * np.arange(grains + 1) // grains) * plan.alignment


@dataclass(slots=True)
class _Slots:
    """Which slot of a piece of data a spot is."""

    task: Task
    first: int
    spare: dict[tuple[int, int], dict[Spot, int]] = field(default_factory=dict)

    def of(self, spot: Spot, data: int) -> int:
        if self.task.begins.get(spot) == data:
            return ORIGIN
        if spot in self.task.ends and self.task.ends[spot] + self.first == data:
            return RESULT
        spare = self.spare.setdefault((spot[0], data), {})
        return spare.setdefault(spot, len(spare))


def _sends(task: Task, run: Run, where: str) -> tuple[int, dict[int, list[_Send]]]:
    """The first piece of data (that of the root, where there is one), and the sends of each."""
    contents = Contents.before(task, run.grid.grains)
    moved = {move.start: number for number, move in enumerate(run.events.moves)}
    noted: list[tuple[tuple[int, int], Spot, Spot, Op, tuple[int, int], int]] = []
    for place, number in enumerate(moved[node] for node in run.order if node in moved):
        move, effects = run.events.moves[number], run.effects[number]
        for effect in effects:
            data = next((contents.holds[spot][0] for spot in effect.sources if spot in contents.holds), None)
            if data is not None:
                parts = enumerate(_parts(effect))
                noted += [((place, i), *part, (move.step.gpu, move.step.block), data) for i, part in parts]
        contents.apply(move, effects)
    if contents.wrong:
        raise CheckFailed(tuple(contents.wrong.values()))
    held = contents.holds.get(next(iter(task.ends)))
    first = next(members(held[1])) * task.count if task.rooted and held is not None else 0
    slots, sends = _Slots(task, first), dict[int, list[_Send]]()
    for at, read, written, op, block, data in noted:
        if task.rooted and not first <= data < first + task.count:
            raise InputError(
                f"data of gpu {data // task.count} moves, and gpu {first // task.count} is the root", where=where
            )
        one, other = slots.of(read, data), slots.of(written, data)
        sends.setdefault(data, []).append(_Send(at, read[0], written[0], one, other, op, block))
    return first, sends


def _parts(effect: Effect) -> Iterator[tuple[Spot, Spot, Op]]:
    """An effect as copies and reductions from spot to spot: the sum is made in the first target."""
    to = effect.targets[0]
    rest = list(effect.sources)
    if to in rest:
        rest.remove(to)
    else:
        yield rest.pop(0), to, Op.COPY
    for spot in rest:
        yield spot, to, Op.REDUCE
    for spot in effect.targets[1:]:
        yield to, spot, Op.COPY


def _built(plan: Plan, task: Task, first: int, sends: dict[int, list[_Send]], sizes: NDArray[np.int64]) -> Schedule:
    """The schedule, neighbouring pieces that always move together as one chunk."""
    pieces = range(first, first + task.count) if task.rooted else range(len(task.source))
    leaders: list[int] = []  # the first piece of each chunk
    size: list[int] = []
    for data in pieces:
        before = data - 1
        apart = not leaders or any(ends[data] != ends[before] for ends in (task.source, task.target))
        if apart or data % task.count == 0 or sends.get(data) != sends.get(before):
            leaders.append(data)
            size.append(0)
        size[-1] += int(sizes[data % sizes.size])
    apart = _apart(task, first)
    contract, numbers = _contract(plan, task, leaders, sends, apart, first)
    chunk_size = np.concatenate(
        [size, [size[numbers.index((leader, ORIGIN))] for leader, _ in numbers[len(leaders) :]]]
    )
    builder = ScheduleBuilder(contract, chunk_size.astype(np.int64), name=plan.name)
    number = {key: i for i, key in enumerate(numbers)}
    if not apart:
        number |= {(leader, RESULT): number[leader, ORIGIN] for leader in leaders}
    channels: dict[tuple[int, int], dict[tuple[int, int], int]] = {}
    for leader, send in sorted(
        ((d, s) for d in leaders for s in sends.get(d, ())), key=lambda one: (one[1].place, one[0])
    ):
        chunk, into = number[leader, send.read], number[leader, send.written]
        if send.src == send.dst and chunk == into:
            continue
        mine = channels.setdefault((send.src, send.dst), {})
        channel = 0 if send.src == send.dst else mine.setdefault(send.block, len(mine))
        builder.send(send.src, send.dst, chunk, send.op, into=into, channel=channel)
    return builder.build()


def _apart(task: Task, first: int) -> bool:
    """Whether a GPU that begins with data and ends with it has it in two places."""
    begins = {(spot[0], data): spot for spot, data in task.begins.items()}
    return any(begins.get((spot[0], data + first), spot) != spot for spot, data in task.ends.items())


def _contract(
    plan: Plan, task: Task, leaders: list[int], sends: dict[int, list[_Send]], apart: bool, first: int
) -> tuple[Contract, list[tuple[int, int]]]:
    """The contract, and the piece and slot that each of its chunks is."""
    numbers = [(leader, ORIGIN) for leader in leaders]
    if apart:
        numbers += [(leader, RESULT) for leader in leaders]
    for leader in leaders:
        used = sorted({slot for send in sends.get(leader, ()) for slot in (send.read, send.written) if slot >= 0})
        numbers += [(leader, slot) for slot in used]
    ends = {ORIGIN: NOWHERE if apart else None, RESULT: None}
    place = {leader: i for i, leader in enumerate(leaders)}
    contract = Contract(
        task.collective,
        plan.ranks,
        source=np.array([task.source[leader] if slot == ORIGIN else NOWHERE for leader, slot in numbers], np.int32),
        target=np.array(
            [task.target[leader] if ends.get(slot, NOWHERE) is None else NOWHERE for leader, slot in numbers], np.int32
        ),
        data=np.array([place[leader] for leader, _ in numbers], np.int32),
        root=first // task.count if task.rooted else None,
    )
    return contract, numbers
