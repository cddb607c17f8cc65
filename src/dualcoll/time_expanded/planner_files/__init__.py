"""Files of other planners: TE-CCL's inputs and results, TACCL's topologies, SCCL's algorithms (docs/planner-files.md)."""

from __future__ import annotations

import json

from dualcoll.time_expanded.planner_files.sccl import read_sccl
from dualcoll.time_expanded.planner_files.taccl import TacclOptions, read_taccl
from dualcoll.time_expanded.planner_files.teccl_check import TecclVerdict, check_teccl_schedule
from dualcoll.time_expanded.planner_files.teccl_fabrics import FabricName, teccl_fabric
from dualcoll.time_expanded.planner_files.teccl_input import TecclInput, read_teccl_input, teccl_task
from dualcoll.time_expanded.planner_files.teccl_schedule import TecclSchedule, read_teccl_schedule

__all__ = [
    "FabricName",
    "TacclOptions",
    "TecclInput",
    "TecclSchedule",
    "TecclVerdict",
    "check_teccl_schedule",
    "kind_of",
    "read_sccl",
    "read_taccl",
    "read_teccl_input",
    "read_teccl_schedule",
    "teccl_fabric",
    "teccl_task",
]

_KEYS = {
    "teccl-input": ({"TopologyParams", "InstanceParams"}, {"TopologyParams", "GurobiParams"}),
    "teccl-schedule": ({"1-Epoch_Duration", "7-Flows"}, {"1-Epoch_Duration", "6-Flows"}),
    "taccl": ({"gpus_per_node", "alpha", "node_betas_list"}, {"gpus_per_node", "alpha", "betas"}),
    "sccl": ({"input_map", "output_map", "steps", "topology"},),
}


def kind_of(data: bytes) -> str | None:
    """``teccl-input``, ``teccl-schedule``, ``taccl`` or ``sccl``, by the keys that only such a file has; else None."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return next((kind for kind, sets in _KEYS.items() if any(keys <= found.keys() for keys in sets)), None)
