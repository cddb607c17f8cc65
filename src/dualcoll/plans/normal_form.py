"""The normal form of an AllReduce: trees instead of any flows (section 3 of the DualColl paper; docs/normal-form.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dualcoll.plans.flow_steps import Step, drop_useless, equal_rates, merge_roots, one_delivery
from dualcoll.plans.flow_trees import phases, split_pairs, trees_of_sends
from dualcoll.plans.flows import Flow
from dualcoll.plans.model import Phase, Tree
from dualcoll.plans.rated_flows import RatedFlows, link_loads, rate_of
from dualcoll.plans.shares import split_bytes
from dualcoll.topology.arrays import reversal
from dualcoll.units import format_bandwidth

__all__ = ["NormalForm", "normal_form", "normal_form_text"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NormalForm:
    """Trees that do what the flows did, no slower and within the same capacities.

    Attributes:
        given: the flows.
        steps: what each lemma made of them, in the order in which they were applied; the last has the flows of the trees.
        trees: one for each shard of the last step, of demand 0; the message is divided in proportion to their rates.
        stopped: why the trees' two phases may differ; empty where each tree reduces and broadcasts over the same routes.
    """

    given: RatedFlows
    steps: tuple[Step, ...]
    trees: tuple[Tree, ...]
    stopped: str

    @property
    def flows(self) -> RatedFlows:
        """The trees as flows."""
        return self.steps[-1].flows

    @property
    def loads_before(self) -> Floats:
        """What the given flows put on each link, bytes/s, float64 (E,)."""
        return np.array([float(load) for load in link_loads(self.given)])

    @property
    def loads_after(self) -> Floats:
        """What the trees put on each link, bytes/s, float64 (E,)."""
        return np.array([float(load) for load in link_loads(self.flows)])

    @property
    def rate_before(self) -> float:
        """Bytes/s of the message that the given flows reach."""
        return float(rate_of(self.given))

    @property
    def rate_after(self) -> float:
        """Bytes/s of the message that the trees reach."""
        return float(sum(Fraction(tree.rate) for tree in self.trees))


def normal_form(flows: RatedFlows) -> NormalForm:
    """Bring an AllReduce into normal form: each shard with one root, an in-tree to it and an out-tree from it; on symmetric
    fabrics without spraying the two are one tree, used both ways.

    Rates are evened out (Lemma 3.2) when flows that turn out not to be needed are gone, so that none of these slows a tree.
    """
    steps: list[Step] = []
    now = flows
    for lemma in (drop_useless, one_delivery, merge_roots, trees_of_sends, equal_rates):
        steps.append(lemma(now))
        now = steps[-1].flows
    partner, stopped = reversal(flows.topology), ""
    if any(flow.share is not None for shard in now.shards for flow in shard.flows):
        stopped = "sprayed traffic does not go back the way it came"
    elif partner is None:
        stopped = "the fabric is not the same in both directions"
    else:
        steps.append(split_pairs(now, partner.tolist()))
    return NormalForm(flows, tuple(steps), _trees(steps[-1].flows), stopped)


def normal_form_text(result: NormalForm) -> list[str]:
    """What was done and what came of it, in lines for people."""
    given, trees = result.given, result.trees
    count = sum(len(shard.flows) for shard in given.shards)
    lines = [
        f"given: {count} flows of {_counted(len(given.shards), 'shard')} over {len(given.ranks)} ranks, "
        f"{format_bandwidth(result.rate_before)}"
    ]
    lines += [f"Lemma {step.lemma}: {words}" for step in result.steps for words in step.words]
    kind = "tree pair" if result.stopped else "tree"
    lines.append(f"normal form: {_counted(len(trees), kind)}, {format_bandwidth(result.rate_after)}")
    lines.append(f"busiest link before: {_busiest(result.loads_before, given)}")
    lines.append(f"busiest link after: {_busiest(result.loads_after, given)}")
    if result.stopped:
        lines.append(f"reduce and broadcast trees stay apart (Lemma 3.6 does not apply): {result.stopped}")
    return lines


def _trees(flows: RatedFlows) -> tuple[Tree, ...]:
    sizes = split_bytes(flows.size, [shard.flows[0].rate for shard in flows.shards])
    trees = []
    for shard, size in zip(flows.shards, sizes, strict=True):
        root, up, down = phases(shard, flows.ranks)
        both = [*up, *down]
        trees.append(
            Tree(
                rate=shard.flows[0].rate,
                demand=0,
                root=root,
                size=size,
                edges=np.array([(flow.tail, flow.head) for flow in both], np.int64),
                phase=np.array([Phase.REDUCE] * len(up) + [Phase.BROADCAST] * len(down), np.int8),
                route_ptr=np.array(list(accumulate((len(flow.links) for flow in both), initial=0)), np.int64),
                route_links=np.array([e for flow in both for e in flow.links], np.int64),
                route_share=_shares(both),
            )
        )
    return tuple(trees)


def _shares(flows: Sequence[Flow]) -> Floats | None:
    if all(flow.share is None for flow in flows):
        return None
    return np.array([part for flow in flows for part in flow.share or (1.0,) * len(flow.links)], np.float64)


def _busiest(loads: Floats, flows: RatedFlows) -> str:
    use = loads / [link.capacity for link in flows.topology.links]
    return f"{flows.topology.describe_link(int(use.argmax()))}, {100 * use.max():.4g} % of its capacity"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
