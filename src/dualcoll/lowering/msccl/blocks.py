"""Which thread block runs which steps.

A block has at most one connection into its GPU and one out of it, of one channel. The two are in one block where one carries on
what comes by the other, and what a rank does alone is done by the block whose step it waits for last. All else has blocks of
its own, so that nothing waits for what it does not need, as long as the GPU has so many; then connections in and out share.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from dualcoll.lowering.msccl.graph import StepOrder
from dualcoll.lowering.msccl.messages import Messages
from dualcoll.lowering.msccl.program import NO_PEER
from dualcoll.lowering.msccl.targets import Target

__all__ = ["Block", "Blocks", "blocks_of", "waited_for"]


@dataclass(slots=True)
class Block:
    """One thread block.

    Attributes:
        send, recv: peers. channel: of both. steps: in order.
    """

    send: int
    recv: int
    channel: int
    steps: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Blocks:
    """All blocks.

    Attributes:
        of_rank: the blocks of each rank. place: (block, place in its order) of each step. shared: ranks where connections share
            blocks for lack of blocks.
    """

    of_rank: list[list[Block]]
    place: dict[int, tuple[int, int]]
    shared: list[int]


def blocks_of(
    messages: Messages, steps: StepOrder, partners: dict[tuple[int, int, int], int], target: Target, spare: int
) -> Blocks:
    """The blocks, with their steps in the order of ``steps``.

    Args:
        partners: for (rank, channel, destination) the source whose messages are carried on. target: the executor.
        spare: blocks of each rank that are to be left for other things.
    """
    ranks = messages.schedule.ranks
    out, into = _connections(messages, partners)
    apart: dict[tuple[int, int], Block] = {}  # by rank and channel, of what waits for no step of another block
    holder: dict[int, Block] = {}
    place = steps.place()
    for n in steps.order:
        message, receives = divmod(n, 2)
        send = messages.members[message][0]
        rank, peer, channel = messages.src[send], messages.dst[send], messages.channel[send]
        if rank != peer:
            block = into[peer, channel, rank] if receives else out[rank, channel, peer]
        else:
            last = max(steps.waits[n], key=place.__getitem__, default=n)
            if last != n and len(holder[last].steps) < target.steps // 2:
                block = holder[last]
            else:
                block = apart.setdefault((rank, channel), Block(NO_PEER, NO_PEER, channel))
        block.steps.append(n)
        holder[n] = block
    blocks: list[list[Block]] = [[] for _ in range(ranks)]
    for (rank, _, _), block in out.items():
        blocks[rank].append(block)
    for (rank, _, _), block in into.items():
        if block.send == NO_PEER:
            blocks[rank].append(block)
    alone: list[list[Block]] = [[] for _ in range(ranks)]
    most = target.steps // 4  # leaves room for nops
    for (rank, channel), block in apart.items():
        for first in range(0, len(block.steps), most):
            alone[rank].append(Block(NO_PEER, NO_PEER, channel, block.steps[first : first + most]))
    shared = [rank for rank in range(ranks) if _share(blocks[rank], place, target.blocks - spare - len(alone[rank]))]
    of_rank = [[*joined, *single] for joined, single in zip(blocks, alone, strict=True)]
    places = {n: (b, i) for row in of_rank for b, block in enumerate(row) for i, n in enumerate(block.steps)}
    return Blocks(of_rank, places, shared)


def waited_for(blocks: Blocks, steps: StepOrder) -> dict[int, list[int]]:
    """For each step the steps of other blocks that it must wait for: those that nothing it waits for anyway comes after."""
    known: dict[int, dict[int, int]] = {}  # after each step, by block, the place of the last step known to have run
    found: dict[int, list[int]] = {}
    owner = {n: of_rank for of_rank in blocks.of_rank for block in of_rank for n in block.steps}
    place = steps.place()
    for n in steps.order:
        block, at = blocks.place[n]
        sees = dict(known[owner[n][block].steps[at - 1]]) if at else {}
        needed = []
        for other in sorted(steps.waits[n], key=place.__getitem__, reverse=True):
            its_block, its_place = blocks.place[other]
            if its_block == block or sees.get(its_block, -1) >= its_place:
                continue
            needed.append(other)
            for b, last in known[other].items():
                sees[b] = max(sees.get(b, -1), last)
        sees[block] = at
        known[n] = sees
        found[n] = needed[::-1]
    return found


def _connections(
    messages: Messages, partners: dict[tuple[int, int, int], int]
) -> tuple[dict[tuple[int, int, int], Block], dict[tuple[int, int, int], Block]]:
    """Empty blocks: by (rank, channel, destination) those that send, by (rank, channel, source) those that receive."""
    out: dict[tuple[int, int, int], Block] = {}
    into: dict[tuple[int, int, int], Block] = {}
    for source, peer, channel in sorted(messages.on, key=lambda connection: (connection[2], *connection)):
        recv = partners.get((source, channel, peer), NO_PEER)
        block = out[source, channel, peer] = Block(peer, recv, channel)
        if recv != NO_PEER:
            into[source, channel, recv] = block
    for source, peer, channel in sorted(messages.on, key=lambda connection: (connection[2], *connection)):
        into.setdefault((peer, channel, source), Block(NO_PEER, source, channel))
    return out, into


def _share(blocks: list[Block], place: dict[int, int], room: int) -> bool:
    """Let connections in and out of one channel share blocks until no more than so many are left; whether any do."""
    excess = len(blocks) - room
    if excess <= 0:
        return False
    outs: dict[int, list[Block]] = defaultdict(list)
    for block in blocks:
        if block.recv == NO_PEER:
            outs[block.channel].append(block)
    for block in [block for block in blocks if block.send == NO_PEER]:
        if excess <= 0 or not outs[block.channel]:
            continue
        other = outs[block.channel].pop()
        block.send = other.send
        block.steps = sorted(block.steps + other.steps, key=place.__getitem__)
        blocks.remove(other)
        excess -= 1
    return True
