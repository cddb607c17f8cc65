"""Files of other planners: TE-CCL's inputs and results, SCCL's algorithms (docs/planner-files.md)."""

from __future__ import annotations

from dualcoll.time_expanded.planner_files.sccl import read_sccl
from dualcoll.time_expanded.planner_files.teccl_check import TecclVerdict, check_teccl_schedule
from dualcoll.time_expanded.planner_files.teccl_input import TecclInput, read_teccl_input, teccl_task
from dualcoll.time_expanded.planner_files.teccl_schedule import TecclSchedule, read_teccl_schedule
from dualcoll.topology.importers.taccl import is_taccl
from dualcoll.topology.importers.teccl import has_keys, is_teccl

__all__ = [
    "TecclInput",
    "TecclSchedule",
    "TecclVerdict",
    "check_teccl_schedule",
    "kind_of",
    "read_sccl",
    "read_teccl_input",
    "read_teccl_schedule",
    "teccl_task",
]

_KEYS = {
    "teccl-schedule": ({"1-Epoch_Duration", "7-Flows"}, {"1-Epoch_Duration", "6-Flows"}),
    "sccl": ({"input_map", "output_map", "steps", "topology"},),
}


def kind_of(data: bytes) -> str | None:
    """``teccl-input``, ``teccl-schedule``, ``taccl`` or ``sccl``, by the keys that only such a file has; else None."""
    if is_taccl(data):
        return "taccl"
    if is_teccl(data):
        return "teccl-input"
    return next((kind for kind, sets in _KEYS.items() if has_keys(data, *sets)), None)
