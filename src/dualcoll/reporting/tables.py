"""A plan, a proof or a topology as a record for machines and as lines for people."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dualcoll.certificates import Proof
from dualcoll.collectives.description import describe
from dualcoll.diagnosis.bisection import bisection
from dualcoll.diagnosis.cut_words import cut_text
from dualcoll.diagnosis.timing import Timing, timing
from dualcoll.plans.model import Plan, Tradeoff
from dualcoll.reporting.words import (
    FORWARDING,
    RELAY,
    counts_text,
    each_rate,
    group_texts,
    rate_text,
    routing_text,
    sends,
    size_text,
    structure,
    subject,
    trees_per_demand,
)
from dualcoll.routing.model import RoutingKind
from dualcoll.topology.arrays import reversal
from dualcoll.topology.model import Kind, Topology
from dualcoll.units import format_bandwidth, format_fraction, format_size, format_time

__all__ = ["plan_record", "plan_text", "proof_record", "proof_text", "topology_record", "topology_text"]

GB = 1e9
SHOWN = 8  # lines of a list before it is cut short
MANY_GROUPS = 256
MANY_RANKS = 256  # for a search of the bisection


def plan_record(plan: Plan) -> dict[str, Any]:
    """What ``--json`` prints: bandwidths in GB/s (1e9 bytes/s), times in seconds; ``ranks`` and ``trees`` are counts."""
    times = timing(plan)
    names = plan.topology.describe_links()
    per_demand = trees_per_demand(plan)
    return {
        "collective": plan.collective,
        "workload": describe(plan.workload, plan.topology),
        "topology": plan.topology.name,
        "ranks": len(plan.participants),
        "size_bytes": plan.size,
        "objective": str(plan.workload.objective),
        "forward": str(plan.forwarding),
        "relay": plan.relay,
        "routing": str(plan.routing.kind),
        "routing_seed": plan.routing.seed if plan.routing.kind is RoutingKind.ECMP else None,
        "algbw_GBps": plan.algbw / GB,
        "busbw_GBps": None if plan.busbw is None else plan.busbw / GB,
        **_each_record(plan),
        "bound_algbw_GBps": plan.bound / GB,
        "in_network_bound_GBps": None if plan.in_network is None else plan.in_network.rate / GB,
        "cut": cut_text(plan),
        "bisection_GBps": _bisection_bracket(plan),
        "gap": plan.gap,
        "outcome": str(plan.outcome),
        "groups": _group_records(plan),
        "trees": len(plan.trees),
        "demands": per_demand.size,
        "trees_per_demand": [int(per_demand.min()), int(per_demand.max())],
        "depth": times.depth,
        "pareto": [
            {"trees": one.trees, "algbw_GBps": one.rate / GB, "of_bound": one.rate / plan.bound, "depth": one.depth}
            for one in plan.frontier
        ],
        "alternatives": [{"algbw_GBps": one.rate / GB, "text": one.text} for one in plan.alternatives],
        "method": plan.method,
        "iterations": plan.iterations,
        "solve_seconds": plan.seconds,
        "time_s": times.total,
        "latency_bound_s": times.latency_bound,
        "bottleneck": [
            {
                "links": [names[e] for e in group.links],
                "price_share": group.price_share,
                "utilisation": list(group.utilisation),
                "text": group.text,
            }
            for group in plan.bottleneck
        ],
        "warnings": _warnings(plan, times),
        "notes": list(plan.topology.notes),
        "capacities_from": [source for source, _ in _sources(plan.topology)],
    }


def _each_record(plan: Plan) -> dict[str, float | None]:
    each = each_rate(plan)
    return {
        key: each[1] / GB if each is not None and each[0] == what else None
        for key, what in (("root_rate_GBps", "root"), ("pair_rate_GBps", "ordered pair"))
    }


def _group_records(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "name": group.name,
            "collective": group.collective,
            "ranks": len(group.ranks),
            "size_bytes": group.size,
            "rate_GBps": rate / GB,
            "time_s": group.size / rate if rate > 0 else None,
        }
        for group, rate in zip(plan.workload.groups, plan.group_rates(), strict=True)
    ]


def plan_text(plan: Plan, *, bound_only: bool = False) -> list[tuple[str, str]]:
    """The plan for people, as (label, text) lines; a label that is empty continues the one above."""
    times = timing(plan)
    name = plan.topology.name or "the fabric"
    kinds = sends(plan)
    what, of_whom = subject(plan)
    lines = [(what, f"{of_whom} on {name}, {size_text(plan)}")]
    if not bound_only:
        lines += [
            ("algbw", rate_text(plan)),
            (
                "time",
                f"{format_time(times.total)} predicted, of which {format_time(times.fill)} fills the {structure(plan)}",
            ),
        ]
    lines += _bound_lines(plan, times, "a" if bound_only else "this")
    lines.append(
        (
            "outcome",
            f"{plan.outcome}: {plan.outcome.advice} (gap {format_fraction(plan.gap)}, {plan.seconds:.2f} s, "
            f"{plan.iterations} oracle calls)",
        )
    )
    if not bound_only:
        lines += _labelled("groups", group_texts(plan) if len(plan.workload.groups) > 1 else [], MANY_GROUPS)
        edges = "1 logical edge" if times.depth == 1 else f"{times.depth} logical edges"
        ends = "root to leaf" if False in kinds else "end to end"
        lines.append(("trees" if False in kinds else "paths", f"{counts_text(plan)}, at most {edges} from {ends}"))
    lines += _labelled("pareto", [_tradeoff_text(one, plan.bound) for one in plan.frontier], len(plan.frontier))
    lines += _labelled("beside", [f"{format_bandwidth(one.rate)}: {one.text}" for one in plan.alternatives])
    lines += _labelled("limit", [f"{100 * group.price_share:.3g} %: {group.text}" for group in plan.bottleneck])
    lines.append(("forward", FORWARDING[plan.forwarding]))
    if True in kinds:
        lines.append(("relay", RELAY[plan.relay]))
    lines.append(("routing", routing_text(plan.routing)))
    lines += _labelled("rates", [f"{source} ({count} links)" for source, count in _sources(plan.topology)])
    lines += _labelled("assumed", list(plan.topology.notes))
    return lines + _labelled("warning", _warnings(plan, times))


def _bound_lines(plan: Plan, times: Timing, who: str) -> list[tuple[str, str]]:
    proved = f"{who} plan reaches it" if plan.gap < 1e-9 else f"{who} plan is within {format_fraction(plan.gap)} of it"
    lines = [
        ("bound", f"{format_bandwidth(plan.bound)} algbw is the most without computing in the network, and {proved}")
    ]
    if plan.in_network is not None:
        most = format_bandwidth(plan.in_network.rate)
        lines.append(("", f"{most} is the most if every node forwards, multicasts and reduces (NVLS, SHARP)"))
    lines.append(
        ("", f"{format_time(times.latency_bound)} is the least time of any schedule, from link latencies alone")
    )
    cut = cut_text(plan)
    if cut is not None:
        lines.append(("cut", cut))
    bracket = _bisection_bracket(plan)
    if bracket is not None:
        low, high = (format_bandwidth(end * GB) for end in bracket)
        found = high if low == high else f"between {low} and {high}"
        lines.append(("bisection", f"{found} from one half of the ranks to the other, where it is least"))
    return lines


def _bisection_bracket(plan: Plan) -> list[float] | None:
    """GB/s, at least and at most: what an AllToAll says of the fabric by the way."""
    if plan.collective != "alltoall" or len(plan.workload.groups) > 1 or len(plan.participants) > MANY_RANKS:
        return None
    found = bisection(plan.topology, plan.participants, plan.algbw / len(plan.participants), plan.link_prices)
    return [found.lower / GB, found.upper / GB]


def proof_record(proof: Proof) -> dict[str, Any]:
    """What ``check --json`` prints of a plan that holds."""
    return {
        "supported": True,
        "rate_GBps": float(proof.rate) / GB,
        "bound_GBps": float(proof.bound) / GB,
        "gap": float(proof.gap),
        "in_network_bound_GBps": None if proof.in_network_bound is None else float(proof.in_network_bound) / GB,
        "group_rates_GBps": [float(rate) / GB for rate in proof.group_rates],
        "findings": [],
    }


def proof_text(proof: Proof) -> list[tuple[str, str]]:
    """A plan that holds, for people."""
    lines = [
        ("supported", "every claim holds in exact arithmetic"),
        ("rate", format_bandwidth(float(proof.rate))),
        ("bound", f"{format_bandwidth(float(proof.bound))}, gap {format_fraction(float(proof.gap))}"),
    ]
    if proof.in_network_bound is not None:
        most = format_bandwidth(float(proof.in_network_bound))
        lines.append(("", f"{most} if every node forwards, multicasts and reduces"))
    if len(proof.group_rates) > 1:
        low, high = (format_bandwidth(float(end(proof.group_rates))) for end in (min, max))
        lines.append(("groups", f"{len(proof.group_rates)}, at {low if low == high else f'{low} to {high}'} each"))
    return lines


def topology_record(topology: Topology) -> dict[str, Any]:
    """What ``topo show --json`` prints."""
    kinds = Counter(str(node.kind) for node in topology.nodes)
    return {
        "name": topology.name,
        "ranks": len(topology.ranks),
        "nodes": dict(sorted(kinds.items())),
        "links": len(topology.links),
        "boxes": len({topology.nodes[i].box for i in topology.ranks}),
        "shared_capacities": len(topology.shared),
        "symmetric": reversal(topology) is not None,
        "link_kinds": [
            {
                "between": list(ends),
                "links": count,
                "capacity_GBps": capacity / GB,
                "latency_s": latency,
                "source": source,
            }
            for (ends, capacity, latency, source), count in _link_kinds(topology)
        ],
        "notes": list(topology.notes),
    }


def topology_text(topology: Topology) -> list[tuple[str, str]]:
    """The topology for people."""
    record = topology_record(topology)
    kinds = ", ".join(f"{count} {kind}" for kind, count in record["nodes"].items())
    symmetric = "equal capacity in both directions" if record["symmetric"] else "not equal in both directions"
    lines = [
        ("topology", topology.name or "(no name)"),
        ("nodes", f"{kinds}; {record['ranks']} ranks in {record['boxes']} boxes"),
        ("links", f"{record['links']} directed, {symmetric}"),
    ]
    kinds_of_links = [
        f"{count} x {ends[0]} - {ends[1]}: {format_bandwidth(capacity)}, {format_time(latency)} ({source})"
        for (ends, capacity, latency, source), count in _link_kinds(topology)
    ]
    lines += _labelled("", kinds_of_links)
    names = topology.describe_links()
    shared = [
        f"{format_bandwidth(row.capacity)} over {', '.join(names[e] for e in row.links[:4])}"
        + (f" and {len(row.links) - 4} more" if len(row.links) > 4 else "")
        for row in topology.shared
    ]
    lines += _labelled("shared", shared)
    ports = Counter(port for node in topology.nodes for port in node.ports)
    lines += _labelled("ports", [f"{count} x {format_bandwidth(port)}, not cabled" for port, count in ports.items()])
    return lines + _labelled("assumed", list(topology.notes))


def _link_kinds(topology: Topology) -> list[tuple[tuple[tuple[str, str], float, float, str], int]]:
    counts: Counter[tuple[tuple[str, str], float, float, str]] = Counter()
    for link in topology.links:
        a, b = sorted(_kind_word(topology, end) for end in (link.tail, link.head))
        counts[(a, b), link.capacity, link.latency, link.source] += 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _kind_word(topology: Topology, node: int) -> str:
    this = topology.nodes[node]
    return f"box {this.kind}" if this.kind is Kind.SWITCH and this.box is not None else str(this.kind)


def _sources(topology: Topology) -> list[tuple[str, int]]:
    return Counter(link.source for link in topology.links).most_common()


def _tradeoff_text(one: Tradeoff, bound: float) -> str:
    trees = f"{one.trees} tree{'' if one.trees == 1 else 's'}"
    return f"{trees:>9}: {format_bandwidth(one.rate)}, {100 * one.rate / bound:.1f} % of the bound, depth {one.depth}"


def _labelled(label: str, texts: list[str], most: int = SHOWN) -> list[tuple[str, str]]:
    """Lines under one label, cut short when there are too many."""
    kept = texts if len(texts) <= most else [*texts[: most - 1], f"and {len(texts) - most + 1} more (--json has all)"]
    return [(label if i == 0 else "", text) for i, text in enumerate(kept)]


def _warnings(plan: Plan, times: Timing) -> list[str]:
    if not times.small:
        return []
    return [
        f"a message of {format_size(plan.size)} is too small for the rate to matter: latency takes "
        f"{format_time(times.fill)} of {format_time(times.total)}, and flatter trees would be faster"
    ]
