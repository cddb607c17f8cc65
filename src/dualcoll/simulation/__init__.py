"""How long a schedule takes, and why: two models of the network, one trace (docs/simulation.md)."""

from dualcoll.simulation.options import Coupling, Mode, Options, Protocol
from dualcoll.simulation.run import simulate
from dualcoll.simulation.trace import Services, Trace

__all__ = ["Coupling", "Mode", "Options", "Protocol", "Services", "Trace", "simulate"]
