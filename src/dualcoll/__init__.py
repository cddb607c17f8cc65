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
    from dualcoll._api import check, plan
    from dualcoll.certificates import Proof
    from dualcoll.errors import CheckFailed, DualcollError, InputError
    from dualcoll.plans.file import read_plan, write_plan
    from dualcoll.plans.model import Bottleneck, Cut, Phase, Plan, Tree
    from dualcoll.progress import Gap, Meter, Outcome, Progress, Seconds, Stop
    from dualcoll.reporting.html import report
    from dualcoll.topology.catalog import catalog
    from dualcoll.topology.file import read_topology, write_topology
    from dualcoll.topology.model import Forwarding, Kind, Link, Node, SharedCapacity, Topology

_HOME = {
    "dualcoll._api": ("check", "plan"),
    "dualcoll.certificates": ("Proof",),
    "dualcoll.errors": ("CheckFailed", "DualcollError", "InputError"),
    "dualcoll.plans.file": ("read_plan", "write_plan"),
    "dualcoll.plans.model": ("Bottleneck", "Cut", "Phase", "Plan", "Tree"),
    "dualcoll.progress": ("Gap", "Meter", "Outcome", "Progress", "Seconds", "Stop"),
    "dualcoll.reporting.html": ("report",),
    "dualcoll.topology.catalog": ("catalog",),
    "dualcoll.topology.file": ("read_topology", "write_topology"),
    "dualcoll.topology.model": ("Forwarding", "Kind", "Link", "Node", "SharedCapacity", "Topology"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Bottleneck",
    "CheckFailed",
    "Cut",
    "DualcollError",
    "Forwarding",
    "Gap",
    "InputError",
    "Kind",
    "Link",
    "Meter",
    "Node",
    "Outcome",
    "Phase",
    "Plan",
    "Progress",
    "Proof",
    "Seconds",
    "SharedCapacity",
    "Stop",
    "Topology",
    "Tree",
    "catalog",
    "check",
    "plan",
    "read_plan",
    "read_topology",
    "report",
    "write_plan",
    "write_topology",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE:
        raise AttributeError(f"module 'dualcoll' has no attribute {name!r}")
    value = getattr(import_module(_MODULE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
