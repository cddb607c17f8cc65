"""The normal form of anybody's AllReduce as a plan with a proved bound."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from dualcoll._api.planning import plan
from dualcoll.diagnosis.bottleneck import bottlenecks
from dualcoll.errors import InputError
from dualcoll.plans.model import Plan
from dualcoll.plans.normal_form import NormalForm, normal_form
from dualcoll.plans.rated_flows import RatedFlows
from dualcoll.progress import Gap, Outcome, Seconds, Stop

__all__ = ["normal_plan"]


def normal_plan(flows: RatedFlows, *, forward: str = "switches", stop: Stop | None = None) -> tuple[NormalForm, Plan]:
    """Trees instead of flows, as a plan; its bound is that of the best plan for the same ranks.

    Args:
        flows: an AllReduce as rated flows. forward: the policy that the flows' routes keep to.
        stop: for the search of the bound; within 1 % or 30 s by default.

    Raises:
        InputError: sprayed flows, whose shares a plan file does not keep.
    """
    form = normal_form(flows)
    if any(tree.route_share is not None for tree in form.trees):
        raise InputError("sprayed flows make no plan file", hint="see the steps without an output file")
    names = [flows.topology.nodes[rank].name for rank in flows.ranks]
    best = plan(
        flows.topology,
        "allreduce",
        size=flows.size,
        ranks=names,
        forward=forward,
        stop=stop or (Gap(0.01) | Seconds(30)),
    )
    value = math.nextafter(float(sum(Fraction(tree.rate) for tree in form.trees)), 0.0)
    made = replace(best, trees=form.trees, value=value, method="normal form", outcome=Outcome.LIMITED)
    return form, replace(made, bottleneck=bottlenecks(made))
