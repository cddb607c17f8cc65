"""What a simulation assumes beyond the fabric: one record of switches, and what NCCL's protocols cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from dualcoll.errors import InputError

__all__ = ["PROTOCOLS", "Coupling", "Mode", "Options", "Protocol", "ProtocolCost"]


class Mode(StrEnum):
    """The model of the network (docs/simulation.md)."""

    ALPHA_BETA = "alpha-beta"  # every link serves one send after the other
    FLUID = "fluid"  # sends under way share links by max-min


class Coupling(StrEnum):
    """What has one rate in the fluid model."""

    FLOW = "flow"  # each send by itself
    TREE = "tree"  # all sends under way on one channel number


class Protocol(StrEnum):
    """How NCCL moves a chunk."""

    LL = "ll"
    LL128 = "ll128"
    SIMPLE = "simple"


@dataclass(frozen=True, slots=True)
class ProtocolCost:
    """What a protocol costs.

    Attributes:
        payload: part of the bytes on a link that is data.
        nvlink, pci, network: the least seconds from one rank to the next, by what lies between them.
    """

    payload: float
    nvlink: float
    pci: float
    network: float


# Payload: NCCL, src/include/device.h. An LL line (ncclLLFifoLine) is 4 bytes of data and 4 of flag, twice; an LL128 line is
# NCCL_LL128_DATAELEMS = 15 of NCCL_LL128_LINEELEMS = 16 words of 8 bytes; Simple sends data alone and signals apart.
# Seconds: hwLat of a ring in NCCL 2.12 to 2.27, src/graph/tuning.cc.
PROTOCOLS = {
    Protocol.LL: ProtocolCost(0.5, 0.6e-6, 1.0e-6, 2.7e-6),
    Protocol.LL128: ProtocolCost(120 / 128, 1.9e-6, 2.5e-6, 4.0e-6),
    Protocol.SIMPLE: ProtocolCost(1.0, 3.4e-6, 5.7e-6, 14.0e-6),
}


@dataclass(frozen=True, slots=True)
class Options:
    """Assumptions of a simulation. All but the first two hold for both models.

    Attributes:
        mode: the model. (What is one of several may be given as text; it is the enumeration's member afterwards.)
        cut_through: alpha-beta only: whether bytes go on before the send's last one has come.
        coupling: fluid only: what has one rate.
        depth: places of every channel (docs/semantics.md §5); None for as many as it takes.
        overhead: seconds that a channel spends on each send before its first byte moves.
        concurrency: the most sends that a rank has under way at once, out and again as many in; None for any number.
        reduction_speed: bytes/s that a rank reduces, one send after the other; None for no time at all.
        protocol: NCCL's protocol, whose payload and least latencies then count; None for neither.
        in_order: alpha-beta without concurrency only: whether links serve and ranks reduce in the order of the sends' numbers.

    Raises:
        InputError: a value that is out of range or not known.
    """

    mode: Mode | str = Mode.ALPHA_BETA
    cut_through: bool = True
    coupling: Coupling | str = Coupling.FLOW
    depth: int | None = None
    overhead: float = 0.0
    concurrency: int | None = None
    reduction_speed: float | None = None
    protocol: Protocol | str | None = None
    in_order: bool = False

    def __post_init__(self) -> None:
        for name, kind in (("mode", Mode), ("coupling", Coupling), ("protocol", Protocol)):
            given = getattr(self, name)
            if given is None and name == "protocol":
                continue
            known = [str(item) for item in kind]
            if str(given) not in known:
                raise InputError(f"{given!r} is not known", where=name, hint=f"use one of {', '.join(known)}")
            object.__setattr__(self, name, kind(str(given)))
        for name in ("depth", "concurrency"):
            given = getattr(self, name)
            if given is not None and given < 1:
                raise InputError(f"{given} sends at once are too few", where=name, hint="use 1 or more")
        if not (math.isfinite(self.overhead) and self.overhead >= 0):
            raise InputError(f"{self.overhead!r} s is not a finite number >= 0", where="overhead")
        if self.in_order and self.mode is Mode.FLUID:
            raise InputError("links share in the fluid model", where="in_order", hint="use alpha-beta")
        if self.in_order and self.concurrency is not None:
            problem = "with concurrency, places go to who asks first, whatever the order"
            raise InputError(problem, where="in_order", hint="leave out one of the two")
        speed = self.reduction_speed
        if speed is not None and not (math.isfinite(speed) and speed > 0):
            raise InputError(f"{speed!r} bytes/s is not a finite number > 0", where="reduction_speed")
