"""The cut behind the in-network bound, in words: a proof that a person can read."""

from __future__ import annotations

from collections import Counter

from dualcoll.collectives.workload import Demand, Pattern
from dualcoll.plans.model import Plan
from dualcoll.topology.model import Topology
from dualcoll.units import format_bandwidth

__all__ = ["TIGHT", "cut_text", "is_tight"]

TIGHT = 1e-6  # relative
FEW = 4  # names that are listed

_UNITS = {
    Pattern.ALLREDUCE: ("result", "results"),
    Pattern.BROADCAST: ("shard", "shards"),
    Pattern.REDUCE: ("reduced shard", "reduced shards"),
    Pattern.SEND: ("part", "parts"),
}


def is_tight(plan: Plan) -> bool:
    """Whether the cut alone proves the plan's bound."""
    return plan.in_network is not None and plan.in_network.rate <= plan.bound * (1 + TIGHT)


def cut_text(plan: Plan) -> str | None:
    """Text such as ``"24 shards must enter box b3 over 8 links, 400 GB/s in all: tight"``; None where there is no cut."""
    if plan.in_network is None:
        return None
    inside = frozenset(plan.in_network.side)
    ranks = plan.workload.ranks
    within = [rank for rank in ranks if rank in inside]
    beyond = [rank for rank in ranks if rank not in inside]
    leaves = len(within) <= len(beyond)
    place = _place(plan.topology, within if leaves else beyond)
    crossing = [
        demand for demand in plan.workload.demands() if demand.crosses(inside, plan.workload.groups[demand.group].ranks)
    ]
    links = [link for link in plan.topology.links if link.tail in inside and link.head not in inside]
    over = f"{len(links)} link{'' if len(links) == 1 else 's'}"
    total = format_bandwidth(sum(link.capacity for link in links))
    verb = "leave" if leaves else "enter"
    says = "tight, it alone proves the bound" if is_tight(plan) else "not tight, the prices of links prove less"
    return f"{_what(plan, crossing)} must {verb} {place} over {over}, {total} in all: {says}"


def _what(plan: Plan, crossing: list[Demand]) -> str:
    kinds = Counter(demand.pattern for demand in crossing)
    if len(crossing) == 1 and crossing[0].pattern is not Pattern.SEND:
        return "the result" if crossing[0].pattern is not Pattern.BROADCAST else "the message"
    parts = [f"{count} {_UNITS[pattern][count > 1]}" for pattern, count in kinds.items()]
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + f" and {parts[-1]}"


def _place(topology: Topology, ranks: list[int]) -> str:
    """The ranks of one side, as boxes where they are whole ones."""
    nodes = topology.nodes
    if len(ranks) == 1:
        return f"rank {nodes[ranks[0]].name}"
    boxes = sorted({nodes[rank].box or "" for rank in ranks})
    whole = {rank for rank in topology.ranks if (nodes[rank].box or "") in boxes}
    if "" not in boxes and whole == set(ranks):
        return f"box {boxes[0]}" if len(boxes) == 1 else f"{len(boxes)} boxes ({_listed(boxes)})"
    return f"{len(ranks)} ranks ({_listed([nodes[rank].name for rank in ranks])})"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:FEW]) + (", …" if len(names) > FEW else "")
