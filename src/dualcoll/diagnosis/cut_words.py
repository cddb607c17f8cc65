"""A plan's cut in words: what must leave or enter which ranks, over which links, and whether that is the whole truth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dualcoll.collectives.workload import Demand
from dualcoll.diagnosis.bottleneck import role
from dualcoll.packing.sides import Side, Sides
from dualcoll.plans.model import Plan
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.model import Kind, Topology
from dualcoll.units import format_bandwidth, format_size

__all__ = ["cut_text"]

TIGHT = 1e-6  # relative
FEW = 3  # boxes or ranks named one by one


@dataclass(frozen=True, slots=True)
class _Ranks:
    """Ranks on one side of a cut: whole boxes of several ranks where it is possible, and the rest."""

    ranks: tuple[int, ...]
    boxes: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def things(self) -> int:
        return len(self.boxes) + len(self.others)

    def __str__(self) -> str:
        parts = [(("box", "boxes"), self.boxes), (("rank", "ranks"), self.others)]
        if self.things > FEW:
            return " and ".join(_counted(len(names), *words) for words, names in parts if names)
        return " and ".join(f"{words[len(names) > 1]} {_listed(names)}" for words, names in parts if names)


def cut_text(plan: Plan) -> str | None:
    """Text such as ``"24 shards must enter box b3 through 8 NICs of 50 GB/s: at most 516.129 GB/s, tight"``.

    The side is named or its complement, whichever takes fewer words. A cut that is not tight says what the prices prove;
    None where the plan has no cut.
    """
    cut = plan.in_network
    if cut is None:
        return None
    topology = plan.topology
    inside = frozenset(cut.side)
    within = tuple(rank for rank in plan.participants if rank in inside)
    beyond = tuple(rank for rank in plan.participants if rank not in inside)
    this, rest = (_described(topology, plan.participants, ranks) for ranks in (within, beyond))
    nodes_beyond = len(topology.nodes) - len(inside)
    leaves = (this.things, len(within), len(inside)) <= (rest.things, len(beyond), nodes_beyond)
    named, other = (this, rest) if leaves else (rest, this)
    crossing = [d for d in plan.workload.demands() if d.crosses(inside, plan.workload.groups[d.group].ranks)]
    verb = "leave" if leaves else "enter"
    what = _quantity(plan, crossing, len(named.ranks), len(other.ranks), leaves=leaves)
    side = np.zeros(len(topology.nodes), bool)
    side[list(cut.side)] = True
    limit = format_bandwidth(cut.rate)
    return f"{what} must {verb} {named} {_links(topology, side, leaves=leaves)}: at most {limit}, {_label(plan)}"


def _label(plan: Plan) -> str:
    assert plan.in_network is not None
    proved = format_bandwidth(plan.bound)
    if abs(plan.in_network.rate / plan.bound - 1) <= TIGHT:
        return "tight"
    if plan.in_network.rate > plan.bound:
        return f"not tight: prices prove {proved}"
    return f"less than the {proved} that prices prove"


def _described(topology: Topology, participants: Sequence[int], ranks: tuple[int, ...]) -> _Ranks:
    of_box: dict[str, list[int]] = defaultdict(list)
    for rank in participants:
        of_box[topology.nodes[rank].box or ""].append(rank)
    here = set(ranks)
    whole = [box for box, members in of_box.items() if box and len(members) > 1 and here.issuperset(members)]
    covered = {rank for box in whole for rank in of_box[box]}
    others = tuple(topology.nodes[rank].name for rank in ranks if rank not in covered)
    return _Ranks(ranks, tuple(whole), others)


def _quantity(plan: Plan, crossing: Sequence[Demand], here: int, there: int, *, leaves: bool) -> str:
    """What crosses; ``here`` ranks are in what the sentence names, ``there`` in the rest."""
    groups = {demand.group for demand in crossing}
    collective = plan.collective
    if len(plan.workload.groups) > 1 or collective == "alltoallv":
        size = format_size(sum(demand.size for demand in crossing))
        if len(plan.workload.groups) == 1:
            return size
        return f"{size} of {_counted(len(groups), 'group', 'groups')}"
    if collective in ("allreduce", "reduce"):
        if leaves:
            return "its data" if here == 1 else f"the sum of its {here} ranks"
        return "the data of the other rank" if there == 1 else f"the sum of the {there} other ranks"
    if collective == "alltoall":
        if leaves:
            what = "what it sends" if here == 1 else f"what its {here} ranks send"
            return f"{what} to {_counted(there, 'other', 'others')}"
        who = "1 other rank sends" if there == 1 else f"{there} other ranks send"
        return f"what {who} " + ("it" if here == 1 else f"its {here}")
    shards = _counted(len(crossing), "shard", "shards")
    if collective == "reducescatter":
        return f"partial sums of {shards}" if len(crossing) > 1 else f"the partial sum of {shards}"
    return "the message" if collective == "broadcast" else shards


def _links(topology: Topology, side: Side, *, leaves: bool) -> str:
    """The links out of the side, by what they are; ``leaves`` if the side is what the sentence names."""
    crossing = [link for link in topology.links if side[link.tail] and not side[link.head]]
    capacities = [link.capacity for link in crossing]
    low, high = min(capacities), max(capacities)
    size = format_bandwidth(low) if low == high else f"{format_bandwidth(low)} to {format_bandwidth(high)}"
    near = {link.tail if leaves else link.head for link in crossing}
    kinds = {f"{role(topology, link.tail)} -> {role(topology, link.head)} " for link in crossing}
    if len(near) == len(crossing) and all(topology.nodes[node].kind is Kind.NIC for node in near):
        text = f"through {_counted(len(crossing), 'NIC', 'NICs')} of {size}"
    elif len(crossing) == 1:
        ends = (topology.nodes[end].name for end in (crossing[0].tail, crossing[0].head))
        text = f"over the link {' -> '.join(ends)} of {size}"
    else:
        text = f"over {len(crossing)} {kinds.pop() if len(kinds) == 1 else ''}links of {size}"
    together = Sides(fabric_arrays(topology), len(topology.nodes), ()).leaving(side)
    plain = low == high and together >= len(crossing) * low * (1 - TIGHT)
    if len(crossing) == 1 and not plain:
        return f"{text}, held to {format_bandwidth(together)} by a shared capacity"
    return text if plain else f"{text}, {format_bandwidth(together)} together"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
