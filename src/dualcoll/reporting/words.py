"""What a plan carries and how, in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.catalogue import title
from dualcoll.collectives.description import describe
from dualcoll.collectives.workload import Demand, Objective, Pattern
from dualcoll.plans.model import Phase, Plan
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.topology.model import Forwarding
from dualcoll.units import format_bandwidth, format_size, format_time

__all__ = [
    "FORWARDING",
    "RELAY",
    "counts_text",
    "demand_text",
    "each_rate",
    "group_texts",
    "rate_text",
    "routing_text",
    "sends",
    "size_text",
    "structure",
    "subject",
    "trees_per_demand",
]

FORWARDING = {
    Forwarding.SWITCHES: "switches only: GPUs and hosts, taking part or not, forward nothing for others (--forward all)",
    Forwarding.ALL: "switches and every GPU and host, also those that take no part",
}
RELAY = {
    True: "ranks of a group pass on what one of them sends another; each hop is a send (--no-relay)",
    False: "no rank passes on what another sends",
}
_SENDS = ("gather", "scatter", "alltoall", "alltoallv")
_ROUTING = {
    RoutingKind.SINGLE: "the plan chooses a path for each logical edge of each tree",
    RoutingKind.SPRAY: "the network sprays packets over all next hops on shortest allowed paths, equally over neighbours",
    RoutingKind.SPRAY_CABLES: "the network sprays packets over all next hops on shortest allowed paths, equally over cables",
    RoutingKind.SPRAY_HOPS: "the network sprays packets over all next hops on shortest paths, whatever forwards or not",
    RoutingKind.ECMP: "the network hashes each logical edge to one shortest allowed path",
}


def routing_text(routing: Routing) -> str:
    """Who chooses paths; with the seed of the hash where there is one."""
    text = _ROUTING[routing.kind]
    return f"{text} (seed {routing.seed})" if routing.kind is RoutingKind.ECMP else text


def sends(plan: Plan) -> set[bool]:
    """Whether groups have all their data go from one rank to one other: both answers where they differ in it."""
    return {group.collective in _SENDS for group in plan.workload.groups}


def structure(plan: Plan, count: int = 2) -> str:
    """What carries data: "trees", "paths", or "trees and paths"; "tree" or "path" if it is one."""
    found = sends(plan)
    if len(found) > 1:
        return "trees and paths"
    return ("path" if found.pop() else "tree") + "s" * (count != 1)


def subject(plan: Plan) -> tuple[str, str]:
    """What is planned, and of whom: ``("AllGather", "of 32 ranks")`` or ``("AllReduce", "8 groups of 4 ranks")``."""
    text = describe(plan.workload, plan.topology)
    if len(plan.workload.groups) > 1 and plan.collective != "mix":
        what = title(plan.collective)
        return what, text.removesuffix(f", {what} each")
    what, _, of_whom = text.partition(" ")
    return what, of_whom


def demand_text(plan: Plan, demand: Demand) -> str:
    """Text such as ``"AllReduce"``, ``"g0 → all"``, ``"all → g0"`` or ``"expert: g0 → g5"``."""
    name = [None if node is None else plan.topology.nodes[node].name for node in (demand.root, demand.target)]
    text = {
        Pattern.ALLREDUCE: title("allreduce"),
        Pattern.BROADCAST: f"{name[0]} → all",
        Pattern.REDUCE: f"all → {name[0]}",
        Pattern.SEND: f"{name[0]} → {name[1]}",
    }[demand.pattern]
    groups = plan.workload.groups
    return text if len(groups) == 1 else f"{groups[demand.group].name}: {text}"


def size_text(plan: Plan) -> str:
    """The message of every rank, or of every group."""
    if plan.collective == "alltoallv":
        return f"at most {format_size(plan.size)} a rank"
    sizes = [group.size for group in plan.workload.groups]
    if min(sizes) < max(sizes):
        return f"{format_size(min(sizes))} to {format_size(max(sizes))} each"
    return format_size(plan.size) + " each" * (len(sizes) > 1)


def each_rate(plan: Plan) -> tuple[str, float] | None:
    """The rate that the collective's own words count: "root" or "ordered pair", and bytes/s of each; None if they do not."""
    group = plan.workload.groups[0]
    if len(plan.workload.groups) > 1 or group.parts:
        return None
    share = plan.algbw / len(group.ranks)
    if plan.collective in ("allgather", "reducescatter"):
        return "root", share
    return ("ordered pair", share) if plan.collective == "alltoall" else None


def rate_text(plan: Plan) -> str:
    """algbw, and what there is beside it: busbw, the rate of each root or pair, or what it means with several groups."""
    parts = [format_bandwidth(plan.algbw)]
    each = each_rate(plan)
    if plan.busbw is not None:
        parts.append(f"busbw {format_bandwidth(plan.busbw)}")
    if each is not None:
        parts.append(f"{format_bandwidth(each[1])} for each {each[0]}")
    if plan.workload.objective is Objective.TOTAL:
        parts.append("the sum of the groups' rates")
    elif len(plan.workload.groups) > 1:
        parts.append(f"{format_size(plan.size)} over the time until all groups are done")
    return ", ".join(parts)


def group_texts(plan: Plan) -> list[str]:
    """One line for each group, with its rate, even none."""
    return [
        f"{group.name}: {title(group.collective)} of {len(group.ranks)} ranks, {format_size(group.size)} at "
        f"{format_bandwidth(rate)}" + (f", {format_time(group.size / rate)}" if rate > 0 else ", never done")
        for group, rate in zip(plan.workload.groups, plan.group_rates(), strict=True)
    ]


def trees_per_demand(plan: Plan) -> NDArray[np.int64]:
    """How many trees or paths carry each demand, int64 (J,)."""
    demands = len(plan.workload.demands())
    return np.bincount([tree.demand for tree in plan.trees], minlength=demands).astype(np.int64)


def counts_text(plan: Plan) -> str:
    """Text such as ``"31"``, ``"60 for 16 demands, 2 to 5 each"`` or ``"109 and 992 paths for 1032 demands, 1 to 2 each"``."""
    paths = sum(int(tree.phase[0]) == Phase.SEND for tree in plan.trees)
    count = f"{len(plan.trees)}"
    if 0 < paths < len(plan.trees):
        count = f"{len(plan.trees) - paths} and {paths} path{'s' * (paths != 1)}"
    per_demand = trees_per_demand(plan)
    if per_demand.size == 1:
        return count
    low, high = int(per_demand.min()), int(per_demand.max())
    each = f"{low}" if low == high else f"{low} to {high}"
    return f"{count} for {per_demand.size} demands, {each} each"
