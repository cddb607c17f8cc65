"""A schedule on the time-expanded network as sends between ranks (docs/semantics.md): routes cross switches, rounds are epochs.

Reductions come from copies with time turned round: what spreads from one rank on the transposed network gathers there.

All that goes one way between two ranks is one channel, in the order of epochs. Where channels of few places would then stop
for ever, since what is forwarded takes a place until it is (docs/semantics.md §5), what a rank forwards leaves on another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dualcoll.errors import CheckFailed
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import NONE, Schedule
from dualcoll.schedules.ops import Op
from dualcoll.schedules.order import running_order
from dualcoll.schedules.validate import DEPTH
from dualcoll.time_expanded.feeds import Hop, hops, pruned
from dualcoll.time_expanded.send_order import send_order
from dualcoll.time_expanded.solution import Solution

__all__ = ["to_schedule"]


def to_schedule(found: Solution, *, name: str = "time-expanded") -> Schedule:
    """Sends of a solution, in the order of their epochs; starts that help nobody are left out.

    Args:
        found: what was found. name: for people.
    """
    made: list[tuple[Op, Hop]] = []
    if found.reducing is not None:
        made += [(Op.REDUCE, hop.turned(found.turn)) for hop in hops(pruned(found.reducing))]
    if found.copying is not None:
        made += [(Op.COPY, hop) for hop in hops(pruned(found.copying))]
    sends = [made[i] for i in send_order(made, found.task.network)]
    plain = _schedule(found, sends, [0] * len(sends), name)
    try:
        running_order(plain, DEPTH)
    except CheckFailed:
        return _schedule(found, sends, _in_turn(plain), name)
    return plain


def _in_turn(plain: Schedule) -> list[int]:
    """For each send a number, as low as may be, that is not that of any it depends on and that ends where it begins."""
    turn: list[int] = []
    src, dst = plain.src.tolist(), plain.dst.tolist()
    for send in range(plain.sends):
        taken = {turn[other] for other in plain.depends_of(send).tolist() if dst[other] == src[send]}
        turn.append(next(number for number in range(len(taken) + 1) if number not in taken))
    return turn


def _schedule(found: Solution, sends: Sequence[tuple[Op, Hop]], turn: Sequence[int], name: str) -> Schedule:
    """The sends, each on a channel of its ranks, route and turn."""
    task, network = found.task, found.task.network
    holders = sorted({end for _, hop in sends for end in (hop.tail, hop.head)} - set(range(network.ranks)))
    rank_of = {vertex: network.ranks + i for i, vertex in enumerate(holders)} | {r: r for r in range(network.ranks)}
    builder = ScheduleBuilder(
        replace(task.contract, ranks=network.ranks + len(holders)),
        task.sizes,
        topology=network.topology,
        nodes=[*network.nodes, *(int(network.node[v]) for v in holders)],
        forwarding=network.forwarding,
        name=name,
    )
    copies: dict[int, list[Hop]] = {}
    for op, hop in sends:
        if op is Op.COPY:
            copies.setdefault(hop.first, []).append(hop)
    groups = {first: i for i, first in enumerate(first for first, members in copies.items() if len(members) > 1)}
    channels: dict[tuple[int, int], dict[tuple[int, ...], int]] = {}
    step = 1 + max(turn, default=0)
    for (op, hop), own in zip(sends, turn, strict=True):
        src, dst = rank_of[hop.tail], rank_of[hop.head]
        channel = channels.setdefault((src, dst), {}).setdefault(hop.links, len(channels[src, dst]))
        group = groups.get(hop.first, NONE) if op is Op.COPY else NONE
        route = builder.route(hop.links)
        builder.send(
            src, dst, hop.chunk, op, channel=step * channel + own, round=hop.starts[0], route=route, multicast=group
        )
    return builder.build()
