"""dualcoll: how fast can a collective run on this fabric, what limits it, and what should run instead.

    import dualcoll as dc
    fabric = dc.read_topology("cluster.yaml")          # or dc.catalog("dgx-h100", boxes=4)
    plan = dc.plan(fabric, "allreduce", size="1GiB", stop=dc.Gap(0.01) | dc.Seconds(30))
    plan.algbw, plan.bound, plan.gap, plan.bottleneck
    dc.check(plan)                                     # exact proof, or CheckFailed with the witness

Names are loaded when first used, so that ``import dualcoll`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dualcoll._api import check, compare, plan, schedule
    from dualcoll.certificates import Proof
    from dualcoll.collectives.demand_file import read_demand
    from dualcoll.collectives.demand_matrix import DemandMatrix
    from dualcoll.collectives.mix import read_mix
    from dualcoll.collectives.request import make_workload as workload
    from dualcoll.collectives.workload import Group, Objective, Workload
    from dualcoll.diagnosis.comparison import Comparison
    from dualcoll.errors import CheckFailed, DualcollError, InputError
    from dualcoll.execution.in_process import Execution, execute
    from dualcoll.plans.file import read_plan, write_plan
    from dualcoll.plans.flow_file import read_flows, write_flows
    from dualcoll.plans.model import Bottleneck, Cut, Phase, Plan, Tree
    from dualcoll.plans.normal_form import NormalForm, normal_form
    from dualcoll.plans.rated_flows import RatedFlows
    from dualcoll.progress import Gap, Meter, Outcome, Progress, Seconds, Stop
    from dualcoll.reporting.html import report
    from dualcoll.routing.model import Routing, RoutingKind
    from dualcoll.schedules.file import read_schedule, write_schedule
    from dualcoll.schedules.ir import Schedule
    from dualcoll.schedules.validate import validate
    from dualcoll.sharing import Sharing, share
    from dualcoll.simulation import Options, Trace, simulate
    from dualcoll.topology.catalog import catalog
    from dualcoll.topology.file import read_topology, write_topology
    from dualcoll.topology.model import Forwarding, Kind, Link, Node, SharedCapacity, Topology

_HOME = {
    "dualcoll._api": ("check", "compare", "plan", "schedule"),
    "dualcoll.certificates": ("Proof",),
    "dualcoll.collectives.demand_file": ("read_demand",),
    "dualcoll.collectives.demand_matrix": ("DemandMatrix",),
    "dualcoll.collectives.mix": ("read_mix",),
    "dualcoll.collectives.request": ("make_workload",),
    "dualcoll.collectives.workload": ("Group", "Objective", "Workload"),
    "dualcoll.diagnosis.comparison": ("Comparison",),
    "dualcoll.errors": ("CheckFailed", "DualcollError", "InputError"),
    "dualcoll.execution.in_process": ("Execution", "execute"),
    "dualcoll.plans.file": ("read_plan", "write_plan"),
    "dualcoll.plans.flow_file": ("read_flows", "write_flows"),
    "dualcoll.plans.model": ("Bottleneck", "Cut", "Phase", "Plan", "Tree"),
    "dualcoll.plans.normal_form": ("NormalForm", "normal_form"),
    "dualcoll.plans.rated_flows": ("RatedFlows",),
    "dualcoll.progress": ("Gap", "Meter", "Outcome", "Progress", "Seconds", "Stop"),
    "dualcoll.reporting.html": ("report",),
    "dualcoll.routing.model": ("Routing", "RoutingKind"),
    "dualcoll.schedules.file": ("read_schedule", "write_schedule"),
    "dualcoll.schedules.ir": ("Schedule",),
    "dualcoll.schedules.validate": ("validate",),
    "dualcoll.sharing": ("Sharing", "share"),
    "dualcoll.simulation": ("Options", "Trace", "simulate"),
    "dualcoll.topology.catalog": ("catalog",),
    "dualcoll.topology.file": ("read_topology", "write_topology"),
    "dualcoll.topology.model": ("Forwarding", "Kind", "Link", "Node", "SharedCapacity", "Topology"),
}
_SHORT = {"make_workload": "workload"}
_PLACE = {_SHORT.get(name, name): (module, name) for module, names in _HOME.items() for name in names}

__all__ = [
    "Bottleneck",
    "CheckFailed",
    "Comparison",
    "Cut",
    "DemandMatrix",
    "DualcollError",
    "Execution",
    "Forwarding",
    "Gap",
    "Group",
    "InputError",
    "Kind",
    "Link",
    "Meter",
    "Node",
    "NormalForm",
    "Objective",
    "Options",
    "Outcome",
    "Phase",
    "Plan",
    "Progress",
    "Proof",
    "RatedFlows",
    "Routing",
    "RoutingKind",
    "Schedule",
    "Seconds",
    "SharedCapacity",
    "Sharing",
    "Stop",
    "Topology",
    "Trace",
    "Tree",
    "Workload",
    "catalog",
    "check",
    "compare",
    "execute",
    "normal_form",
    "plan",
    "read_demand",
    "read_flows",
    "read_mix",
    "read_plan",
    "read_schedule",
    "read_topology",
    "report",
    "schedule",
    "share",
    "simulate",
    "validate",
    "workload",
    "write_flows",
    "write_plan",
    "write_schedule",
    "write_topology",
]


def __getattr__(name: str) -> object:
    if name not in _PLACE:
        raise AttributeError(f"module 'dualcoll' has no attribute {name!r}")
    module, attribute = _PLACE[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
