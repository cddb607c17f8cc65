"""From a schedule to an MSCCL++ execution plan of puts, signals and waits (protocol Simple).

A send is a put and a signal in a thread block of its source, and a wait in one of its destination; what is to be reduced is put
into scratch space and added there. Ranks of one box use memory channels, others port channels.

All thread blocks do their part in one order in which the schedule can run, so that they cannot wait for one another in a
circle. Each dependency of the schedule is kept: by the order of a thread block, by what is known through other sends, or else
by a semaphore between thread blocks of a GPU or a signal between GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.lowering.mscclpp.emit import emitted
from dualcoll.lowering.mscclpp.places import places_of
from dualcoll.lowering.mscclpp.plan import MAX_CHANNELS, MAX_OPS, Plan
from dualcoll.lowering.mscclpp.work import Act, Part
from dualcoll.schedules.ir import NONE, Schedule, previous_on_channel
from dualcoll.schedules.ops import Op
from dualcoll.schedules.order import running_order

__all__ = ["MAX_BLOCKS", "from_schedule"]

MAX_BLOCKS = 108  # of a GPU: all must run at once, and an A100 has so many multiprocessors
CUTS = (60, 48, 36, 24, 12)  # ops of a thread block, links not counted, that are tried one after the other
COST = {Part.PUT: 4, Part.TAKE: 4, Part.LOCAL: 2}  # about so many ops
HINT = "use fewer chunks, trees or channels"


def from_schedule(schedule: Schedule, *, name: str = "") -> Plan:
    """The schedule as a plan that MSCCL++'s executor runs, for messages of any size that its chunks divide.

    Input and output overlap (``inplace``), but in AllToAll and where the contract has an output of its own. Boxes are those of
    the schedule's topology; without one all ranks are in one box.

    Args:
        schedule: the sends; that they are right is for :func:`~dualcoll.schedules.validate.validate` to say.
        name: of the plan; the schedule's by default.

    Raises:
        InputError: a collective, a layout or a number of sends that MSCCL++ plans cannot have.
        CheckFailed: the schedule cannot run.
    """
    places = places_of(schedule)
    acts = _acts(schedule)
    most = schedule.ranks * MAX_BLOCKS * MAX_OPS // 3
    if len(acts) > most:
        problem = f"{schedule.sends} sends are more than {MAX_BLOCKS} thread blocks of a GPU can do"
        raise InputError(problem, where="schedule", hint=HINT)
    lanes = _lanes(schedule, acts)
    for rank, chunk in places.kept():
        acts.append(Act(Part.LOCAL, -1 - chunk, rank))
        lanes.append((-2, 0))
    title = name or schedule.name or schedule.contract.collective
    for cut in CUTS:
        blocks = _cut(acts, lanes, cut)
        worst = max(range(schedule.ranks), key=blocks.__getitem__)
        if blocks[worst] > MAX_BLOCKS:
            problem = f"rank {schedule.rank_name(worst)} needs {blocks[worst]} thread blocks, and {MAX_BLOCKS} can run at once"
            raise InputError(problem, where="schedule", hint=HINT)
        _link(schedule, acts)
        plan = emitted(schedule, places_of(schedule), acts, blocks, title)
        if _fits(plan):
            return plan
    raise InputError(
        f"a thread block takes more than {MAX_OPS} ops or {MAX_CHANNELS} channels", where="schedule", hint=HINT
    )


def _acts(schedule: Schedule) -> list[Act]:
    """Both ends of each send, in an order in which the schedule can run."""
    acts = []
    for send in running_order(schedule).tolist():
        src, dst = int(schedule.src[send]), int(schedule.dst[send])
        if src == dst:
            acts.append(Act(Part.LOCAL, send, src))
        else:
            acts += [Act(Part.PUT, send, src), Act(Part.TAKE, send, dst)]
    return acts


def _lanes(schedule: Schedule, acts: list[Act]) -> list[tuple[int, int]]:
    """For each act a key of the thread block at its rank: a block sends to one peer and takes from one, the same if it can.

    A ring's rank takes from the one before and sends to the next in one block.
    """
    peers: dict[
        tuple[int, int], dict[Part, dict[int, None]]
    ] = {}  # (rank, channel) -> peers in order of their first use
    for act in acts:
        if act.part is not Part.LOCAL:
            sides = peers.setdefault((act.rank, int(schedule.channel[act.send])), {Part.PUT: {}, Part.TAKE: {}})
            sides[act.part][_peer(schedule, act)] = None
    lane: dict[tuple[int, int, Part, int], int] = {}
    for (rank, channel), sides in peers.items():
        both = [peer for peer in sides[Part.PUT] if peer in sides[Part.TAKE]]
        for part, own in sides.items():
            ordered = both + [peer for peer in own if peer not in both]
            lane |= {(rank, channel, part, peer): i for i, peer in enumerate(ordered)}
    return [
        (-1, 0)
        if act.part is Part.LOCAL
        else (channel := int(schedule.channel[act.send]), lane[act.rank, channel, act.part, _peer(schedule, act)])
        for act in acts
    ]


def _peer(schedule: Schedule, act: Act) -> int:
    return int((schedule.dst if act.part is Part.PUT else schedule.src)[act.send])


def _cut(acts: list[Act], lanes: list[tuple[int, int]], most: int) -> list[int]:
    """Number the thread blocks of each rank, a new one where its ops would be too many; how many each rank has."""
    blocks = [0] * (1 + max(act.rank for act in acts))
    current: dict[tuple[int, tuple[int, int]], list[int]] = {}  # block and ops so far
    takes: dict[int, Act] = {}
    for act, lane in zip(acts, lanes, strict=True):
        key, cost = (act.rank, lane), COST[act.part]
        if key not in current or current[key][1] + cost > most:
            current[key] = [blocks[act.rank], 0]
            blocks[act.rank] += 1
        current[key][1] += cost
        act.block = (act.rank, current[key][0])
        if act.part is Part.PUT:
            takes[act.send] = act
        elif act.part is Part.TAKE:
            put = takes[act.send]
            act.other, put.other = put.block, act.block
    return blocks


def _link(schedule: Schedule, acts: list[Act]) -> None:
    """Let acts wait for those of other thread blocks that they must follow and would not follow anyway."""
    previous = previous_on_channel(schedule)
    of: dict[tuple[Part, int], int] = {}  # the act of a send
    last: dict[tuple[int, int], int] = {}  # the last act of a block
    merged: dict[tuple[int, int], int] = {}  # the last reduction into a slot
    known: list[int] = []  # acts that have been done by then, as bits
    for number, act in enumerate(acts):
        act.after, act.before = [], []
        so_far = _done(known, last.get(act.block))
        if act.part is Part.TAKE:
            so_far |= _done(known, of[Part.PUT, act.send])
        for wanted in sorted(_wanted(schedule, act, previous, of, merged), reverse=True):
            if not so_far >> wanted & 1:
                act.after.append(acts[wanted].block)
                acts[wanted].before.append(act.block)
                so_far |= _done(known, wanted)
        known.append(so_far)
        of[act.part, act.send] = last[act.block] = number
        if act.send >= 0 and act.part is not Part.PUT and schedule.op[act.send] == Op.REDUCE:
            merged[act.rank, int(schedule.into[act.send])] = number


def _done(known: list[int], act: int | None) -> int:
    return 0 if act is None else known[act] | 1 << act


def _wanted(
    schedule: Schedule,
    act: Act,
    previous: NDArray[np.int32],
    of: dict[tuple[Part, int], int],
    merged: dict[tuple[int, int], int],
) -> Iterator[int]:
    """Acts that must be over before this one."""
    if act.send < 0:
        return
    if act.part is not Part.TAKE:
        for send in schedule.depends_of(act.send).tolist():
            yield of[Part.LOCAL if (Part.LOCAL, send) in of else Part.TAKE, send]
    before = int(previous[act.send])
    if before != NONE and act.part is not Part.LOCAL:
        yield of[act.part, before]
    slot = (act.rank, int(schedule.into[act.send]))
    if act.part is not Part.PUT and schedule.op[act.send] == Op.REDUCE and slot in merged:
        yield merged[slot]  # one at a time


def _fits(plan: Plan) -> bool:
    return all(
        len(block.ops) <= MAX_OPS and max(len(block.memory), len(block.port)) <= MAX_CHANNELS
        for gpu in plan.gpus
        for block in gpu.blocks
    )
