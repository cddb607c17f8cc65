"""What a simulation finds: when every send happened, and how the fabric was used."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.catalogue import busbw
from dualcoll.simulation.options import Options

__all__ = ["Services", "Trace"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Services:
    """Who was served by which row when, in the alpha-beta model (docs/simulation.md §3). N services, H places.

    Attributes:
        ptr: int64 (S+1,), services of each send, in the order in which it passes them.
        place: int32 (N,), the place of the send's route where it is. begin, end: float64 (N,), seconds.
        row, stage, latency: of each place of each route, (H,): its capacity row, the stage of the route that it is part of,
            from 0, and the seconds that follow.
        server: int32 (N,), for each the one that was first to come and was served for it too: itself, but for copies that
            switches make. Empty where that is so for all and links serve whom they can.
    """

    ptr: Ints
    place: Shorts
    begin: Floats
    end: Floats
    row: Ints
    stage: Ints
    latency: Floats
    server: Shorts = field(default_factory=lambda: np.zeros(0, np.int32))

    @property
    def own(self) -> NDArray[np.bool_]:
        """Which took time of their row, bool (N,)."""
        if self.server.size == 0:
            return np.ones(self.begin.size, bool)
        own: NDArray[np.bool_] = self.server == np.arange(self.begin.size)
        return own


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A simulated run. S sends, R ranks, K capacity rows that some route uses, B bins of time; read-only columns.

    Attributes:
        options: what was assumed.
        kinds: collective and number of ranks of each group. size: bytes of the (largest) message.
        place_from: int32 (S,), the send whose delivery gave it a place at its source or destination, -1 if it had not to wait.
        start: float64 (S,), seconds: the channel takes the send up.
        left: the last byte is out of the source, and the channel free for its next send; nan for local sends.
        arrived: the last byte is in. reduced: it has been merged, if it is to be. end: it counts as delivered.
        rank_finish: float64 (R,), the end of the last send from, to or within each rank; 0 for one that has none.
        rows: int64 (K,), capacity row: a link, or E plus the number of a shared capacity.
        carried: float64 (K,), bytes of chunks. busy: float64 (K,), seconds in use, as if at full speed.
        bin_width: seconds. utilisation: float64 (K, B), the part of each row in use in each bin.
        services: of every send, in the alpha-beta model; None in the fluid one.
        held_by: int32 (S,), in the fluid model the capacity row that held the send when it left, -1 for none; else None.
    """

    options: Options
    kinds: frozenset[tuple[str, int]]
    size: int
    place_from: Shorts
    start: Floats
    left: Floats
    arrived: Floats
    reduced: Floats
    end: Floats
    rank_finish: Floats
    rows: Ints
    carried: Floats
    busy: Floats
    bin_width: float
    utilisation: Floats
    services: Services | None = None
    held_by: Shorts | None = None

    def __post_init__(self) -> None:
        for owner in (self, self.services):
            for name in owner.__slots__ if owner is not None else ():
                column = getattr(owner, name)
                if isinstance(column, np.ndarray):
                    column.setflags(write=False)

    @property
    def finish(self) -> float:
        """Seconds until the last send is delivered; 0 without sends."""
        return float(self.end.max(initial=0.0))

    @property
    def algbw(self) -> float:
        """Bytes of the message over the time, bytes/s; inf for what takes no time."""
        return self.size / self.finish if self.finish > 0 else math.inf

    @property
    def busbw(self) -> float | None:
        """Bus bandwidth, bytes/s, as nccl-tests defines it; None where groups differ in it."""
        return busbw(*next(iter(self.kinds)), self.algbw) if len(self.kinds) == 1 else None
