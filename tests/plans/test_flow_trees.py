"""Trees instead of flows: Lemmas 3.5 and 3.6, each on schedules at random."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dualcoll.plans.flow_steps import equal_rates, merge_roots, one_delivery
from dualcoll.plans.flow_trees import phases, split_pairs, trees_of_sends
from dualcoll.plans.flows import Flow, Result, Shard
from dualcoll.plans.rated_flows import RatedFlows, link_loads, rate_of
from dualcoll.topology.arrays import reversal
from tests.packing.fabrics import GB, fabric
from tests.plans.random_flows import correct, no_worse, random_flows

SEED = st.integers(0, 10**9)


@settings(max_examples=100)
@given(SEED)
def test_trees_of_sends_at_random(seed: int) -> None:
    """Lemma 3.5: an in-tree and an out-tree, each rank as near to the root as the sends allow."""
    flows = merge_roots(one_delivery(random_flows(seed)).flows).flows
    step = trees_of_sends(flows)
    assert correct(step.flows)
    assert no_worse(step.flows, flows)
    for shard, before in zip(step.flows.shards, flows.shards, strict=True):
        root, *sides = phases(shard, flows.ranks)
        old_root, *old_sides = phases(before, flows.ranks)
        assert root == old_root
        for inward, side, old in zip((True, False), sides, old_sides, strict=True):
            assert len(side) == len(flows.ranks) - 1
            assert _distances(side, root, inward=inward) == _distances(old, root, inward=inward)


def _distances(flows: list[Flow], root: int, *, inward: bool) -> dict[int, int]:
    """Sends between each rank and the root, by repeated relaxation."""
    ends = [(flow.head, flow.tail) if inward else (flow.tail, flow.head) for flow in flows]
    far = {root: 0}
    for _ in flows:
        for near, beyond in ends:
            if near in far:
                far[beyond] = min(far.get(beyond, len(flows)), far[near] + 1)
    return far


@settings(max_examples=100)
@given(SEED)
def test_splitting_at_random(seed: int) -> None:
    """Lemma 3.6: simple trees at half the rate with half the data each; both directions of a cable get the average load."""
    flows = equal_rates(trees_of_sends(merge_roots(one_delivery(random_flows(seed)).flows).flows).flows).flows
    partner = reversal(flows.topology)
    assume(partner is not None)
    assert partner is not None
    step = split_pairs(flows, partner.tolist())
    assert correct(step.flows)
    assert rate_of(step.flows) == rate_of(flows)
    before, after = link_loads(flows), link_loads(step.flows)
    for e, back in enumerate(partner.tolist()):
        assert after[e] == (before[e] + before[back]) / 2
        assert after[e] <= max(before[e], before[back])
    for shard in step.flows.shards:
        _, up, down = phases(shard, flows.ranks)
        assert {tuple(partner[e] for e in reversed(flow.links)) for flow in up} == {flow.links for flow in down}


def test_names_that_are_taken() -> None:
    """Halves of shards and reversed flows get names of their own, whatever the given ones are called."""
    topology = fabric("g0-g1:10, g0-g1:10")  # links g0 -> g1 0 and 2, back 1 and 3
    flows = (Flow("f", 1, 0, GB, (1,)), Flow("f reversed", 0, 1, GB, (2,), None, ("f",)))
    results = Result(("f",), True), Result(("f reversed",), False)
    shards = tuple(Shard(name, 1.0, flows, results) for name in ("x", "x.1"))
    partner = reversal(topology)
    assert partner is not None
    step = split_pairs(RatedFlows(topology, (0, 1), 8, shards), partner.tolist())
    assert [shard.name for shard in step.flows.shards] == ["x.1'", "x.2", "x.1.1", "x.1.2"]
    ids = [[flow.id for flow in shard.flows] for shard in step.flows.shards]
    assert ids == [["f", "f reversed'"], ["f reversed reversed", "f reversed"]] * 2
    assert correct(step.flows)
