"""One root for each shard: Lemmas 3.1 to 3.4, each on schedules at random."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dualcoll.plans.flow_steps import drop_useless, equal_rates, merge_roots, one_delivery, promote
from dualcoll.plans.flows import payloads, useful
from dualcoll.plans.rated_flows import link_loads, rate_of
from tests.plans.random_flows import correct, no_worse, random_flows, roots

SEED = st.integers(0, 10**9)


@settings(max_examples=100)
@given(SEED)
def test_drop_useless_at_random(seed: int) -> None:
    """Lemma 3.2: what is left is what results depend on, and it is enough."""
    flows = random_flows(seed)
    step = drop_useless(flows)
    assert no_worse(step.flows, flows)
    for shard, before in zip(step.flows.shards, flows.shards, strict=True):
        assert {flow.id for flow in shard.flows} == useful(before) == useful(shard)
        assert shard.results == before.results


@settings(max_examples=100)
@given(SEED)
def test_equal_rates_at_random(seed: int) -> None:
    """Lemma 3.2: at the rate of the slowest flow all are as fast together as before."""
    flows = drop_useless(random_flows(seed)).flows
    step = equal_rates(flows)
    assert no_worse(step.flows, flows)
    assert rate_of(step.flows) == rate_of(flows)
    for shard, before in zip(step.flows.shards, flows.shards, strict=True):
        assert {flow.rate for flow in shard.flows} == {min(flow.rate for flow in before.flows)}


@settings(max_examples=100)
@given(SEED)
def test_one_delivery_at_random(seed: int) -> None:
    """Lemma 3.4: afterwards every flow with the full result is the one from which its end has it."""
    step = one_delivery(random_flows(seed))
    assert correct(step.flows)
    for shard in step.flows.shards:
        carried = payloads(shard.flows, step.flows.members)
        full = {flow.id for flow in shard.flows if carried[flow.id] == (1 << len(step.flows.ranks)) - 1}
        received = [result.depends[0] for result in shard.results if not result.is_root]
        assert sorted(full) == sorted(received)


@settings(max_examples=150)
@given(SEED)
def test_promotion_at_random(seed: int) -> None:
    """Lemma 3.1, 3.3: any flow may carry the full result if its source has it without the flow; all that follows does too,
    routes and rates are as they were, and everybody still ends with the sum.
    """
    flows = equal_rates(random_flows(seed)).flows
    everyone = (1 << len(flows.ranks)) - 1
    shard = flows.shards[0]
    result = dict(zip(flows.ranks, shard.results, strict=True))

    def following(name: str) -> set[str]:
        found = {name}
        while more := {flow.id for flow in shard.flows if found & set(flow.depends)} - found:
            found |= more
        return found

    def needs(rank: int) -> set[str]:
        found = set(result[rank].depends)
        while more := {name for flow in shard.flows if flow.id in found for name in flow.depends} - found:
            found |= more
        return found

    fit = [flow for flow in shard.flows if not following(flow.id) & needs(flow.tail)]
    assume(fit)
    for flow in fit:
        changed = replace(flows, shards=(promote(shard, flows.ranks, flow.id), *flows.shards[1:]))
        assert correct(changed)
        assert link_loads(changed) == link_loads(flows)
        assert rate_of(changed) == rate_of(flows)
        carried = payloads(changed.shards[0].flows, flows.members)
        assert {carried[name] for name in following(flow.id)} == {everyone}


@settings(max_examples=100)
@given(SEED, st.booleans())
def test_merging_at_random(seed: int, sprayed: bool) -> None:
    """Lemma 3.4: one root is left, by one merger less than there were roots, and the flows are among the given ones."""
    flows = one_delivery(random_flows(seed, sprayed=sprayed)).flows
    step = merge_roots(flows)
    assert correct(step.flows)
    assert no_worse(step.flows, flows)
    for shard, before in zip(step.flows.shards, flows.shards, strict=True):
        assert roots(shard) == 1
        mine = [words for words in step.words if words.startswith(f"shard {shard.name}: root ")]
        assert len(mine) == roots(before) - 1
        ways = {flow.id: (flow.tail, flow.head, flow.links, flow.rate) for flow in before.flows}
        assert all(ways[flow.id] == (flow.tail, flow.head, flow.links, flow.rate) for flow in shard.flows)
