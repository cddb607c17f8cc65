"""The ops of MSCCL++ execution plans: what each reads, writes and waits for.

From MSCCL++'s executor (``execution_plan.cc`` for the names, ``execution_kernel.hpp`` for what they do).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["OPS", "Kind", "OpForm", "Role"]


class Kind(StrEnum):
    """What an op is for."""

    THREADS = "joins the threads of a block"
    BARRIER = "joins thread blocks"
    SIGNAL = "signals the peers of its channels"
    WAIT = "waits for a signal of each of its channels"
    FLUSH = "waits until the puts of its port channels have left"
    ACQUIRE = "takes from semaphores, waiting while they are 0"
    RELEASE = "adds to semaphores"
    PIPELINE = "repeats its inner ops piece by piece"
    DATA = "moves data"


class Role(StrEnum):
    """What an operand may be."""

    LOCAL = "a buffer of the GPU"
    REMOTE = "a buffer of a peer"
    PACKETS = "packets in the GPU's scratch buffer"
    REMOTE_PACKETS = "packets in a peer's scratch buffer"
    SWITCH = "a switch channel"


@dataclass(frozen=True, slots=True)
class OpForm:
    """The form of an op.

    Attributes:
        kind: what it is for. does: one line for people.
        src, dst: roles of its operands, the last of which may repeat if ``many``. Everything is added up, and the sum goes to
            every destination; with ``pairs`` each source goes to the destination that stands at its place.
        types: channel types that it may name; empty for none.
        signals, flushes: whether a put also signals, or also waits until it has left.
        relaxed: whether a signal does not order memory.
    """

    kind: Kind
    does: str
    src: tuple[Role, ...] = ()
    dst: tuple[Role, ...] = ()
    many_src: bool = False
    many_dst: bool = False
    pairs: bool = False
    types: tuple[str, ...] = ()
    signals: bool = False
    flushes: bool = False
    relaxed: bool = False


_L, _R, _P, _RP, _S = Role.LOCAL, Role.REMOTE, Role.PACKETS, Role.REMOTE_PACKETS, Role.SWITCH
_MEMORY, _BOTH, _PORT, _SWITCH = ("memory",), ("memory", "port"), ("port",), ("switch",)


def _data(does: str, src: tuple[Role, ...], dst: tuple[Role, ...], **more: object) -> OpForm:
    return OpForm(Kind.DATA, does, src, dst, **more)  # type: ignore[arg-type]


OPS = {
    "nop": OpForm(Kind.THREADS, "joins the threads of the block"),
    "barrier": OpForm(Kind.BARRIER, "joins thread blocks of the GPU"),
    "signal": OpForm(Kind.SIGNAL, "signals", types=_BOTH),
    "rlxsignal": OpForm(Kind.SIGNAL, "signals without ordering memory", types=_BOTH, relaxed=True),
    "wait": OpForm(Kind.WAIT, "waits for signals", types=_BOTH),
    "rlxwait": OpForm(Kind.WAIT, "waits for signals without ordering memory", types=_BOTH, relaxed=True),
    "flush": OpForm(Kind.FLUSH, "waits until puts have left", types=_PORT),
    "sem_acquire": OpForm(Kind.ACQUIRE, "takes from semaphores"),
    "sem_release": OpForm(Kind.RELEASE, "adds to semaphores"),
    "pipeline": OpForm(Kind.PIPELINE, "repeats ops piece by piece"),
    "copy": _data("copies within the GPU", (_L,), (_L,)),
    "get": _data("reads from a peer", (_R,), (_L,), many_src=True, many_dst=True, pairs=True, types=_MEMORY),
    "put": _data("writes to peers", (_L,), (_R,), many_src=True, many_dst=True, pairs=True, types=_BOTH),
    "pws": _data(
        "writes to peers and signals", (_L,), (_R,), many_src=True, many_dst=True, pairs=True, types=_PORT, signals=True
    ),
    "pwsf": _data(
        "writes to peers, signals and flushes",
        (_L,),
        (_R,),
        many_src=True,
        many_dst=True,
        pairs=True,
        types=_PORT,
        signals=True,
        flushes=True,
    ),
    "re": _data("adds within the GPU", (_L, _L), (_L,), many_src=True),
    "res": _data("adds and writes to peers", (_L, _L), (_L, _R), many_src=True, many_dst=True, types=_MEMORY),
    "rre": _data("adds what it reads from peers", (_L, _R), (_L,), many_src=True, types=_MEMORY),
    "rres": _data(
        "adds what it reads from peers and writes to peers",
        (_L, _R),
        (_L, _R),
        many_src=True,
        many_dst=True,
        types=_MEMORY,
    ),
    "ppkt": _data("writes packets to peers", (_L,), (_RP,), many_src=True, many_dst=True, pairs=True, types=_BOTH),
    "rppkt": _data("passes packets on", (_P,), (_RP,), many_dst=True, types=_BOTH),
    "cpkt": _data("makes packets within the GPU", (_L,), (_P,)),
    "upkt": _data("unpacks packets", (_P,), (_L,)),
    "repkt": _data("adds packets", (_L, _P), (_L,), many_src=True),
    "respkt": _data("adds packets and sends packets", (_L, _P), (_L, _RP), many_src=True, many_dst=True, types=_MEMORY),
    "recpkt": _data("adds packets and makes packets", (_L, _P), (_L, _P), many_src=True),
    "recspkt": _data(
        "adds packets, makes packets and sends packets",
        (_L, _P),
        (_L, _P, _RP),
        many_src=True,
        many_dst=True,
        types=_MEMORY,
    ),
    "glres": _data("adds in the switch and writes to all", (_S,), (_S,), types=_SWITCH),
    "gstore": _data("writes to all through the switch", (_L,), (_S,), types=_SWITCH),
    "gstorepkt": _data("writes packets to all through the switch", (_P,), (_S,), types=_SWITCH),
}
