"""A workload and its demand in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.catalogue import title
from dualcoll.collectives.demand_matrix import DemandMatrix, TokenCounts
from dualcoll.collectives.workload import Group, Workload
from dualcoll.topology.model import Topology
from dualcoll.units import format_fraction, format_size

__all__ = ["describe", "describe_demand"]


def describe(workload: Workload, topology: Topology) -> str:
    """Text such as ``"AllGather of 32 ranks"``, ``"8 groups of 4 ranks, AllReduce each"`` or
    ``"mix of 3 collectives on 32 ranks"``.
    """
    groups = workload.groups
    if len(groups) == 1:
        return _one(groups[0], topology)
    if workload.collective == "mix":
        entries = {group.name.partition("[")[0] for group in groups}
        return f"mix of {len(entries)} collectives on {len(workload.ranks)} ranks"
    sizes = sorted(len(group.ranks) for group in groups)
    count = f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
    return f"{len(groups)} groups of {count} ranks, {title(workload.collective)} each"


def _one(group: Group, topology: Topology) -> str:
    text = f"{title(group.collective)} of {len(group.ranks)} ranks"
    if group.root is not None:
        towards = "to" if group.collective in ("reduce", "gather") else "from"
        text += f" {towards} {topology.nodes[group.root].name}"
    return f"{text}, shards of unequal size" if len(set(group.parts)) > 1 and group.collective != "alltoallv" else text


def describe_demand(demand: DemandMatrix) -> tuple[str, ...]:
    """Sentences about a demand matrix: how much moves, the hot ranks, and what became of the tokens of expert routing."""
    stays = sum(demand.cells.diagonal().tolist())
    lines = [
        f"{format_size(sum(demand.sent.tolist()))} between ranks, {format_size(stays)} stay where they are",
        f"most is received by {_hottest(demand, demand.received)}, most is sent by {_hottest(demand, demand.sent)}",
    ]
    return (*lines, *(() if demand.tokens is None else _token_lines(demand.tokens)))


def _hottest(demand: DemandMatrix, nbytes: NDArray[np.int64]) -> str:
    hot = int(nbytes.argmax())
    name = demand.names[hot] if demand.names else f"rank {hot}"
    times = int(nbytes[hot]) * len(nbytes) / sum(nbytes.tolist())
    return f"{name} ({format_size(int(nbytes[hot]))}, {times:.3g} times the mean)"


def _token_lines(tokens: TokenCounts) -> list[str]:
    each = tokens.token_bytes
    dropped = format_fraction(tokens.dropped / tokens.routed)
    lines = [
        f"{tokens.routed} tokens of {format_size(each)} routed, {tokens.sent} sent ({format_size(tokens.sent * each)}), "
        f"{tokens.padded} with padding ({format_size(tokens.padded * each)})",
        f"hottest is expert {tokens.hot_expert}: {tokens.hot_tokens} tokens, "
        f"{tokens.hot_tokens * tokens.experts / tokens.routed:.3g} times the mean",
    ]
    if tokens.capacity is not None:
        lines.append(
            f"each expert takes at most {tokens.capacity}: {tokens.dropped} dropped ({dropped}, "
            f"{format_size(tokens.dropped * each)}), {tokens.rerouted} re-routed"
        )
    return lines
