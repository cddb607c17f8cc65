"""The verbs: wiring only."""

from dualcoll._api.comparing import compare, usual_choice
from dualcoll._api.planning import METHODS, check, plan
from dualcoll._api.scheduling import schedule

__all__ = ["METHODS", "check", "compare", "plan", "schedule", "usual_choice"]
