"""A schedule on the time-expanded network as sends between ranks (docs/semantics.md): routes cross switches, rounds are epochs.

Reductions come from copies with time turned round: what spreads from one rank on the transposed network gathers there.
"""

from __future__ import annotations

from dataclasses import replace

from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import NONE, Schedule
from dualcoll.schedules.ops import Op
from dualcoll.time_expanded.feeds import Hop, hops, pruned
from dualcoll.time_expanded.send_order import send_order
from dualcoll.time_expanded.solution import Solution

__all__ = ["to_schedule"]


def to_schedule(found: Solution, *, name: str = "time-expanded") -> Schedule:
    """Sends of a solution, in the order of their epochs; starts that help nobody are left out.

    Args:
        found: what was found. name: for people.
    """
    task, network = found.task, found.task.network
    made: list[tuple[Op, Hop]] = []
    if found.reducing is not None:
        made += [(Op.REDUCE, hop.turned(found.turn)) for hop in hops(pruned(found.reducing))]
    if found.copying is not None:
        made += [(Op.COPY, hop) for hop in hops(pruned(found.copying))]
    sends = [made[i] for i in send_order(made, network)]
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
    for op, hop in sends:
        src, dst = rank_of[hop.tail], rank_of[hop.head]
        channel = channels.setdefault((src, dst), {}).setdefault(hop.links, len(channels[src, dst]))
        group = groups.get(hop.first, NONE) if op is Op.COPY else NONE
        route = builder.route(hop.links)
        builder.send(src, dst, hop.chunk, op, channel=channel, round=hop.starts[0], route=route, multicast=group)
    return builder.build()
