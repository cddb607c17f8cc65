"""MSCCL++ execution plan JSON: reader, validator without a GPU, and writer (docs/mscclpp.md)."""

from __future__ import annotations

from dualcoll.lowering.mscclpp.file import is_mscclpp, plan_from_bytes, plan_to_json, read_plan
from dualcoll.lowering.mscclpp.lower import from_schedule
from dualcoll.lowering.mscclpp.plan import Plan
from dualcoll.lowering.mscclpp.schedule import to_schedule
from dualcoll.lowering.mscclpp.validate import Report, inspect, validate

__all__ = [
    "Plan",
    "Report",
    "from_schedule",
    "inspect",
    "is_mscclpp",
    "plan_from_bytes",
    "plan_to_json",
    "read_plan",
    "to_schedule",
    "validate",
]
