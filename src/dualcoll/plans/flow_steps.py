"""One root for each shard: Lemmas 3.1 to 3.4 of the DualColl paper, one function each.

Each function keeps some of the flows, with their routes, at no higher rate. So no link's load rises, and no shard becomes
slower. For F flows with P dependencies, merging m roots takes O(m (F + P)), all else O(F + P) and sets of R bits.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dualcoll.plans.flows import Flow, Result, Shard, ancestors, in_order, payloads, useful
from dualcoll.plans.rated_flows import RatedFlows

__all__ = [
    "Step",
    "drop_useless",
    "each",
    "equal_rates",
    "made_of",
    "merge_roots",
    "named",
    "one_delivery",
    "promote",
]


@dataclass(frozen=True, slots=True)
class Step:
    """What a lemma made of the flows. words: what it did, shard by shard; empty if there was nothing to do."""

    lemma: str
    words: tuple[str, ...]
    flows: RatedFlows


def drop_useless(flows: RatedFlows) -> Step:
    """Lemma 3.2, first part: drop the flows that no rank's result depends on."""

    def step(shard: Shard) -> tuple[Shard, list[str]]:
        return _without_useless(shard), []

    return each("3.2", flows, step, "which no result depends on")


def one_delivery(flows: RatedFlows) -> Step:
    """Lemma 3.4, the partition: every rank takes the full result once, as early as it can, and whatever it sends of it comes
    from there. So each rank belongs to one root. What is delivered once more is dropped.
    """
    everyone = (1 << len(flows.ranks)) - 1

    def step(shard: Shard) -> tuple[Shard, list[str]]:
        carried = payloads(shard.flows, flows.members)
        position = {flow.id: i for i, flow in enumerate(in_order(shard.flows))}
        full = [flow for flow in shard.flows if carried[flow.id] == everyone]
        ways = {rank: [result] for rank, result in zip(flows.ranks, shard.results, strict=True)}
        for flow in full:
            ways[flow.tail].append(Result(flow.depends, flow.own))
            ways[flow.head].append(Result((flow.id,), False))
        taken = {
            rank: min(found, key=lambda way: max(position[name] for name in way.depends))
            for rank, found in ways.items()
        }
        rerouted = {flow.id: made_of(flow, taken[flow.tail]) for flow in full}
        return _without_useless(_changed(shard, rerouted, taken)), []

    return each("3.4", flows, step, "which deliver once more than needed")


def promote(shard: Shard, ranks: Sequence[int], flow: str) -> Shard:
    """Lemma 3.1: the flow, and all flows that depend on it, carry the full result instead. Routes and rates stay (Lemma 3.3).

    Every rank that they reach takes its result from the first that does.

    Args:
        shard: a legal one. It becomes no slower if its flows have one rate, or none of them is useless.
        ranks: node indices of all ranks, in rank order.
        flow: id of a flow whose source gets the result without it.
    """
    by_id = {other.id: other for other in shard.flows}
    result = dict(zip(ranks, shard.results, strict=True))
    source, followers = by_id[flow].tail, _followers(shard.flows, flow)
    assert not ancestors(shard.flows, result[source].depends) & set(followers), "the source needs the flow"
    reached = {source}
    promoted: dict[str, Flow] = {}
    for name in followers:
        promoted[name] = made_of(by_id[name], result[by_id[name].tail])
        if by_id[name].head not in reached:
            reached.add(by_id[name].head)
            result[by_id[name].head] = Result((name,), False)
    return _changed(shard, promoted, result)


def merge_roots(flows: RatedFlows) -> Step:
    """Lemma 3.4: one root less at a time, until one is left.

    A root's group are the ranks that it serves. The last flow between two groups leads to the root of the group where it ends,
    or it would be useless. It is promoted (Lemma 3.1), so that root receives the result instead of computing it, and its group
    joins the one where the flow began. What is useless then is dropped. Flows are taken from the last to the first: promoted
    ones are inside a group, and no group is ever divided, so none needs a second look.

    Args:
        flows: as :func:`one_delivery` leaves them.
    """

    names = flows.members

    def step(shard: Shard) -> tuple[Shard, list[str]]:
        root = _root_of_each(shard, flows.ranks)
        left = {flow.id for flow in shard.flows}
        words = []
        for flow in reversed(in_order(shard.flows)):
            near, far = root[flow.tail], root[flow.head]
            if near == far or flow.id not in left:
                continue
            shard = _without_useless(promote(shard, flows.ranks, flow.id))
            left = {other.id for other in shard.flows}
            root = {rank: near if of == far else of for rank, of in root.items()}
            chain = named(_chain(shard, flows.ranks, flow.id, far))
            words.append(
                f"root {names[far]} merged into root {names[near]}, which sends it the full result over {chain}"
            )
        return shard, words

    return each("3.4", flows, step, "which no result depends on any more")


def equal_rates(flows: RatedFlows) -> Step:
    """Lemma 3.2, second part: lower all flows of a shard to the slowest of them, which the others wait for."""

    def step(shard: Shard) -> tuple[Shard, list[str]]:
        slowest = min(shard.flows, key=lambda flow: flow.rate)
        faster = [flow.id for flow in shard.flows if flow.rate > slowest.rate]
        words = [f"{named(faster)} lowered to the rate of flow {slowest.id}"] if faster else []
        return replace(shard, flows=tuple(replace(flow, rate=slowest.rate) for flow in shard.flows)), words

    return each("3.2", flows, step)


def each(
    lemma: str, flows: RatedFlows, step: Callable[[Shard], tuple[Shard, list[str]]], why_dropped: str = ""
) -> Step:
    """The step that changes every shard by itself; ``step`` returns what it made of one, and what it did in words."""
    shards, words = [], []
    for shard in flows.shards:
        changed, said = step(shard)
        kept = {flow.id for flow in changed.flows}
        gone = [flow.id for flow in shard.flows if flow.id not in kept]
        said = said + ([f"{named(gone)} dropped, {why_dropped}"] if gone else [])
        shards.append(changed)
        words += [f"shard {shard.name}: {text}" for text in said]
    return Step(lemma, tuple(words), replace(flows, shards=tuple(shards)))


def made_of(flow: Flow, result: Result) -> Flow:
    """The flow, passing on that result."""
    return replace(flow, depends=result.depends, own=result.own)


def named(ids: Sequence[str]) -> str:
    """Flows, by their ids, in words."""
    more = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
    return f"flow{'s' if len(ids) > 1 else ''} {', '.join(ids[:5])}{more}"


def _without_useless(shard: Shard) -> Shard:
    kept = useful(shard)
    return replace(shard, flows=tuple(flow for flow in shard.flows if flow.id in kept))


def _changed(shard: Shard, flows: Mapping[str, Flow], results: Mapping[int, Result]) -> Shard:
    """The shard with those flows in place of the ones of the same id, and those results, in rank order."""
    changed = tuple(flows.get(flow.id, flow) for flow in shard.flows)
    return replace(shard, flows=changed, results=tuple(results.values()))


def _followers(flows: Iterable[Flow], first: str) -> list[str]:
    """Ids of the flow and of those that depend on it, directly or not; the fewer between, the earlier."""
    after: dict[str, list[str]] = defaultdict(list)
    for flow in flows:
        for name in flow.depends:
            after[name].append(flow.id)
    found = {first: None}
    ahead = deque([first])
    while ahead:
        for name in after[ahead.popleft()]:
            if name not in found:
                found[name] = None
                ahead.append(name)
    return list(found)


def _root_of_each(shard: Shard, ranks: Sequence[int]) -> dict[int, int]:
    """The root that every rank's result comes from."""
    came_from = {flow.id: flow.tail for flow in shard.flows}
    result = dict(zip(ranks, shard.results, strict=True))
    root: dict[int, int] = {}
    for rank in ranks:
        trail = [rank]
        while trail[-1] not in root and not result[trail[-1]].is_root:
            trail.append(came_from[result[trail[-1]].depends[0]])
        root |= dict.fromkeys(trail, root.get(trail[-1], trail[-1]))
    return root


def _chain(shard: Shard, ranks: Sequence[int], first: str, end: int) -> list[str]:
    """The flows from ``first`` on, by which the rank ``end`` receives its result."""
    source = {flow.id: flow.tail for flow in shard.flows}
    chain: list[str] = []
    while chain[-1:] != [first]:
        chain.append(shard.results[ranks.index(end)].depends[0])
        end = source[chain[-1]]
    return chain[::-1]
