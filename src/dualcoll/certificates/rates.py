"""How fast the trees carry what must be carried, and whether their bytes are in proportion (docs/model.md §4)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dualcoll.certificates.demands import Demands
from dualcoll.certificates.findings import Findings, excess, rate_text
from dualcoll.certificates.loads import Tally
from dualcoll.collectives.workload import Objective

__all__ = ["TreeShare", "check_shares", "prove_rate"]


@dataclass(frozen=True, slots=True)
class TreeShare:
    """What one tree carries of which demand."""

    where: str
    demand: int
    rate: float
    size: int


def prove_rate(
    claimed: float, demands: Demands, tally: Tally, findings: Findings
) -> tuple[Fraction, tuple[Fraction, ...]]:
    """The rate of the plan and those of its groups in bytes/s, held against the claim."""
    workload = demands.workload
    pace = [
        Fraction(amount, tally.scale) / demand.part for amount, demand in zip(tally.of_demand, demands.all, strict=True)
    ]
    slowest: dict[int, int] = {}  # demand of each group
    for j, demand in enumerate(demands.all):
        if demand.group not in slowest or pace[j] < pace[slowest[demand.group]]:
            slowest[demand.group] = j
    of_group = tuple(group.size * pace[slowest[g]] for g, group in enumerate(workload.groups))
    if workload.objective is Objective.SLOWEST:
        last = min(slowest.values(), key=pace.__getitem__)
        rate, reason = workload.size * pace[last], f"as fast as {demands.words(last)} is carried"
        for j, amount in enumerate(tally.of_demand):
            if amount == 0:
                findings.add(f"nothing carries {demands.words(j)}: its trees' rates sum to 0 (docs/model.md §4)")
    else:
        rate, reason = sum(of_group, Fraction(0)), "the sum of the groups' rates"
        if rate == 0:
            findings.add(
                "nothing is carried whole: every group has a demand whose trees' rates sum to 0 (docs/model.md §4)"
            )
    if Fraction(claimed) > rate:
        findings.add(
            f"claimed rate {rate_text(Fraction(claimed))} is above {rate_text(rate)}, {reason}"
            f"{excess(Fraction(claimed), rate)} (docs/model.md §4)"
        )
    return rate, of_group


def check_shares(shares: list[TreeShare], demands: Demands, tally: Tally, findings: Findings) -> None:
    """The bytes of each demand's trees must sum to what it has, each in proportion to the rate, if it gets any."""
    carried = [0] * len(demands.all)
    for share in shares:
        carried[share.demand] += share.size
    for j, (demand, size) in enumerate(zip(demands.all, carried, strict=True)):
        if tally.of_demand[j] and size != demand.size:
            findings.add(
                f"the bytes of {demands.words(j)} sum to {size} over its trees, not to {demand.size} (docs/model.md §4)"
            )
    for share in shares:
        total, rate = tally.of_demand[share.demand], tally.amount(share.rate)
        wanted = demands.all[share.demand].size * rate
        if total and abs(share.size * total - wanted) > total:
            findings.add(
                f"{share.where}: its {share.size} bytes are not within one byte of {float(Fraction(wanted, total)):.1f}, "
                "its part in proportion to the rates (docs/model.md §4)"
            )
