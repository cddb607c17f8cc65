"""``dualcoll bound``."""

from __future__ import annotations

from dualcoll.cli.options import Cpu, Gpu, Json, Nic, Pcie, RatesName, TopologySpec
from dualcoll.cli.output import show_json, show_lines
from dualcoll.cli.searching import Forward, GapText, Method, SecondsText, Seed, demand_of, searched
from dualcoll.cli.workload import (
    Collective,
    DemandFile,
    Groups,
    Mix,
    NoRelay,
    ObjectiveName,
    Ranks,
    Root,
    RoutingName,
    Size,
    Weights,
)

__all__ = ["bound"]


def bound(
    topology: TopologySpec,
    collective: Collective = None,
    size: Size = None,
    gap: GapText = "1%",
    seconds: SecondsText = 30.0,
    ranks: Ranks = None,
    root: Root = None,
    weights: Weights = None,
    demand: DemandFile = None,
    groups: Groups = None,
    objective: ObjectiveName = "slowest",
    mix: Mix = None,
    routing: RoutingName = "single",
    no_relay: NoRelay = False,
    forward: Forward = "switches",
    method: Method = "auto",
    seed: Seed = 0,
    gpu: Gpu = None,
    nic: Nic = None,
    pcie: Pcie = None,
    cpu: Cpu = None,
    rates: RatesName = "nominal",
    as_json: Json = False,
) -> None:
    """Say how fast the collective can possibly run, and what limits it."""
    from dualcoll.reporting.tables import plan_record, plan_text

    matrix = demand_of(demand)
    carried = {"size": size, "ranks": ranks, "root": root, "weights": weights, "demand": matrix, "groups": groups}
    carried["objective"] = objective
    asked = {"forward": forward, "relay": not no_relay, "routing": routing, "method": method, "seed": seed}
    made = searched(topology, collective, mix, carried, (gap, seconds), (gpu, nic, pcie, cpu, rates), asked)
    if as_json:
        show_json(plan_record(made))
    else:
        show_lines(plan_text(made, bound_only=True))
