"""Trees instead of flows: Lemmas 3.5 and 3.6 of the DualColl paper, one function each. Both take linear time."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from dualcoll.plans.flow_steps import Step, each, made_of
from dualcoll.plans.flows import Flow, Result, Shard, ancestors
from dualcoll.plans.rated_flows import RatedFlows

__all__ = ["phases", "split_pairs", "trees_of_sends"]


def trees_of_sends(flows: RatedFlows) -> Step:
    """Lemma 3.5: of the flows that reduce, keep a shortest-path in-tree to the root; of those that carry the full result, a
    shortest-path out-tree from it.

    Args:
        flows: each shard with one root, as :func:`merge_roots` leaves them.
    """

    def step(shard: Shard) -> tuple[Shard, list[str]]:
        root, reducing, full = phases(shard, flows.ranks)
        up = _shortest([(flow.head, flow.tail, flow) for flow in reducing], root)
        down = _shortest([(flow.tail, flow.head, flow) for flow in full], root)
        return _tree(shard, flows.ranks, root, up, down), []

    return each("3.5", flows, step, "off the shortest paths to the root and from it")


def split_pairs(flows: RatedFlows, partner: Sequence[int]) -> Step:
    """Lemma 3.6: a shard with in-tree R and out-tree D becomes two halves. One is reduced along R and sent back along R
    reversed, the other reduced along D reversed and sent along D. A shard whose D is R reversed stays as it is.

    A link's load becomes the average of its own and its reverse's.

    Args:
        flows: each shard a pair of trees at one rate, as :func:`equal_rates` leaves them; single paths only.
        partner: for each link its reverse, of equal capacity (E,).
    """
    taken = {shard.name for shard in flows.shards}
    shards: list[Shard] = []
    words = []
    for shard in flows.shards:
        ids = {flow.id for flow in shard.flows}
        root, *sides = phases(shard, flows.ranks)
        up, down = ([replace(flow, rate=flow.rate / 2) for flow in side] for side in sides)
        up_back, down_back = ([_reversed(flow, partner, ids) for flow in side] for side in (up, down))
        if {flow.links for flow in up_back} == {flow.links for flow in down}:
            shards.append(shard)
            continue
        words.append(
            f"shard {shard.name}: one half goes over the reduce tree both ways, the other over the broadcast tree"
        )
        for i, (inward, outward) in enumerate(((up, up_back), (down_back, down)), 1):
            half = replace(shard, name=_fresh(f"{shard.name}.{i}", taken), weight=shard.weight / 2)
            taken.add(half.name)
            shards.append(_tree(half, flows.ranks, root, inward, outward))
    return Step("3.6", tuple(words), replace(flows, shards=tuple(shards)))


def phases(shard: Shard, ranks: Sequence[int]) -> tuple[int, list[Flow], list[Flow]]:
    """The root of a shard that has one, the flows that it gets the result from, and all others."""
    root, result = next((rank, result) for rank, result in zip(ranks, shard.results, strict=True) if result.is_root)
    reducing = ancestors(shard.flows, result.depends)
    sides: tuple[list[Flow], list[Flow]] = ([], [])
    for flow in shard.flows:
        sides[flow.id not in reducing].append(flow)
    return root, *sides


def _shortest(flows: Iterable[tuple[int, int, Flow]], root: int) -> list[Flow]:
    """Of flows with their nearer and farther end, those of a shortest-path tree from the root."""
    next_to: dict[int, list[tuple[int, Flow]]] = defaultdict(list)
    for near, far, flow in flows:
        next_to[near].append((far, flow))
    chosen: dict[int, Flow] = {}
    ahead = deque([root])
    while ahead:
        for far, flow in next_to[ahead.popleft()]:
            if far != root and far not in chosen:
                chosen[far] = flow
                ahead.append(far)
    return list(chosen.values())


def _tree(shard: Shard, ranks: Sequence[int], root: int, up: Iterable[Flow], down: Iterable[Flow]) -> Shard:
    """The shard carried by the flows of an in-tree to the root and an out-tree from it, with the payloads that these need."""
    arriving: dict[int, tuple[str, ...]] = defaultdict(tuple)
    for flow in up:
        arriving[flow.head] += (flow.id,)
    result = {root: Result(arriving[root], True)} | {flow.head: Result((flow.id,), False) for flow in down}
    reducing = [made_of(flow, Result(arriving[flow.tail], True)) for flow in up]
    flows = (*reducing, *(made_of(flow, result[flow.tail]) for flow in down))
    return replace(shard, flows=flows, results=tuple(result[rank] for rank in ranks))


def _reversed(flow: Flow, partner: Sequence[int], taken: Collection[str]) -> Flow:
    links = tuple(int(partner[e]) for e in reversed(flow.links))
    return replace(flow, id=_fresh(f"{flow.id} reversed", taken), tail=flow.head, head=flow.tail, links=links)


def _fresh(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "'"
    return name
