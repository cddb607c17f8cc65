"""Which ranks take part."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from dualcoll.errors import InputError
from dualcoll.topology.model import Topology

__all__ = ["participants_of"]


def participants_of(
    topology: Topology, ranks: str | Sequence[int | str] | None = None, where: str = "ranks"
) -> tuple[int, ...]:
    """Node indices of the ranks asked for, in the order asked for; all ranks by default.

    Args:
        topology: its ranks are numbered in node order, from 0.
        ranks: ``"0-7,12"``, names, a mix, or a list of numbers and names. Text that is a node's name means that node.
        where: place for messages.

    Raises:
        InputError: no such rank, a node that is no rank, or a rank named twice.
    """
    if ranks is None:
        return topology.ranks
    tokens = [token.strip() for token in ranks.split(",")] if isinstance(ranks, str) else list(ranks)
    everyone = topology.ranks
    chosen: dict[int, None] = {}
    for token in tokens:
        for node in _expand(topology, everyone, token, where):
            if node in chosen:
                raise InputError(f"rank {topology.nodes[node].name} is named twice", where=where)
            chosen[node] = None
    return tuple(chosen)


def _expand(topology: Topology, everyone: tuple[int, ...], token: int | str, where: str) -> Sequence[int]:
    if isinstance(token, str) and token in topology.index:
        node = topology.index[token]
        if token.isdecimal() and int(token) < len(everyone) and everyone[int(token)] != node:
            raise InputError(
                f"{token} is the name of one rank and the number of another, {topology.nodes[everyone[int(token)]].name}",
                where=where,
                hint="rename the nodes, or give ranks as a range such as 0-1",
            )
        if not topology.nodes[node].is_rank:
            raise InputError(
                f"{token} is a {topology.nodes[node].kind} and no rank",
                where=where,
                hint="give the node `rank: true`",
            )
        return [node]
    match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", str(token))
    if match is None:
        close = difflib.get_close_matches(str(token), topology.index, n=3)
        hint = f"did you mean {', '.join(close)}?" if close else f"ranks are 0 to {len(everyone) - 1}, or node names"
        raise InputError(f"{str(token)[:60]!r} is not a rank", where=where, hint=hint)
    first = int(match[1])
    last = first if match[2] is None else int(match[2])
    if first > last or last >= len(everyone):
        raise InputError(f"{token} is not within ranks 0 to {len(everyone) - 1}", where=where)
    return everyone[first : last + 1]
