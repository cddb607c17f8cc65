"""How long a schedule takes, and why: two models of the network, one trace (docs/simulation.md)."""

from dualcoll.simulation.chrome import to_chrome
from dualcoll.simulation.critical_path import Activity, Step, Wait, critical_path
from dualcoll.simulation.explain import critical_path_text
from dualcoll.simulation.options import Coupling, Mode, Options, Protocol
from dualcoll.simulation.run import simulate
from dualcoll.simulation.trace import Services, Trace

__all__ = [
    "Activity",
    "Coupling",
    "Mode",
    "Options",
    "Protocol",
    "Services",
    "Step",
    "Trace",
    "Wait",
    "critical_path",
    "critical_path_text",
    "simulate",
    "to_chrome",
]
