"""Services looked up: those of one send stage by stage, and who a row served before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.schedules.ir import NONE
from dualcoll.simulation.trace import Services

__all__ = ["ServiceOrder"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class ServiceOrder:
    """An index over services. Services are named by their number; (n,) are arrays of such numbers.

    Args:
        services: of a run. in_order: whether rows served them in order.
    """

    def __init__(self, services: Services, in_order: bool) -> None:
        self.begin, self.end = services.begin, services.end
        self._services = services
        rows = services.row[services.place]
        if in_order:
            own = np.flatnonzero(services.own)
            turn = np.full(services.begin.size, services.begin.size)  # of each that served, the first for which it did
            np.minimum.at(turn, services.server, np.arange(turn.size))
            self._order = own[np.lexsort((turn[own], rows[own]))]
        else:
            own = np.flatnonzero(services.own & (services.end > services.begin))  # others keep nobody waiting
            self._order = own[np.lexsort((services.begin[own], rows[own]))]
        self._rows = rows[self._order]
        self._turn = np.full(services.begin.size if in_order else 0, NONE)  # place in that order
        if in_order:
            self._turn[self._order] = np.arange(self._order.size)
        self._memory: tuple[int, list[Ints], list[float]] = (NONE, [], [])

    def send(self, service: int) -> int:
        """Whose it is."""
        return int(np.searchsorted(self._services.ptr, service, "right")) - 1

    def stage(self, service: int) -> int:
        """The stage of its route."""
        return int(self._services.stage[self._services.place[service]])

    def row(self, service: int) -> int:
        """The capacity row that serves."""
        return int(self._services.row[self._services.place[service]])

    def latency(self, services: Ints) -> Floats:
        """Seconds that follow each, (n,)."""
        return self._services.latency[self._services.place[services]]

    def outs(self, services: Ints, tail: float) -> Floats:
        """When the last byte is through each service of a stage, (n,), if it came to the stage at ``tail``."""
        return np.maximum(self.end[services], tail)

    def passage(self, send: int) -> tuple[list[Ints], list[float]]:
        """The services of each stage of a send, and when its last byte has come to the stage's end."""
        if self._memory[0] != send:
            own = np.arange(self._services.ptr[send], self._services.ptr[send + 1])
            stage = self._services.stage[self._services.place[own]]
            stages = np.split(own, np.flatnonzero(np.diff(stage)) + 1)
            tails, tail = [], 0.0
            for services in stages:
                tail = float(np.max(self.outs(services, tail) + self.latency(services)))
                tails.append(tail)
            self._memory = send, stages, tails
        return self._memory[1:]

    def server(self, service: int) -> int:
        """The one that was served for it: itself, but for copies that switches make."""
        return int(self._services.server[service]) if self._services.server.size else service

    def before(self, service: int) -> int:
        """In order: the service whose turn at its row was before, or -1."""
        at = int(self._turn[self.server(service)]) - 1
        return int(self._order[at]) if at >= 0 and self._rows[at] == self.row(service) else NONE

    def predecessor(self, service: int) -> int:
        """The service that the row finished when it began this one, or -1 if it was idle."""
        if self._turn.size:
            other = self.before(service)
        else:
            first, last = np.searchsorted(self._rows, [self.row(service), self.row(service) + 1])
            order = self._order[first:last]
            at = int(np.searchsorted(self.begin[order], self.begin[service])) - 1
            other = int(order[at]) if at >= 0 else NONE
        return other if other != NONE and self.end[other] == self.begin[service] else NONE
