"""What is measured of time-expanded schedules: time to a proved makespan, and whole schedules of large instances."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.runs import Done, Run
from dualcoll._api.time_expanding import plan_epochs, replay, task_for
from dualcoll.progress import Gap, Seconds
from dualcoll.time_expanded.check import examine_solution
from dualcoll.time_expanded.network import FASTEST, SLOWEST, Clock
from dualcoll.topology.model import Topology
from tests.time_expanded.fabrics import US, dgx1, dgx2, h100, mesh, ndv2

__all__ = ["EPOCH_RUNS"]

CHUNK = 25_000  # bytes, of a DGX-1 as the paper has it
COARSE = 0.1  # latencies below this part of an epoch count as none
BIG = 125_000_000  # bytes, so that they do


@dataclass(frozen=True, slots=True)
class _Epochs:
    """One instance: what is planned where, and the epochs that must come out (None where it is a gap)."""

    name: str
    fabric: Callable[[], Topology]
    collective: str
    chunk: int
    chunks: int
    clock: Clock
    epochs: int | None
    reach: str
    seconds: float = 600.0
    gap: float = 0.0

    def run(self, small: bool) -> Done:
        """Plan, check, replay."""
        fabric = dgx1() if small else self.fabric()
        size = self.chunk * (1 if small else self.chunks) * len(fabric.ranks)
        task = task_for(
            fabric, self.collective, size=size, chunks_per_rank=1 if small else self.chunks, clock=self.clock
        )
        wall, spent = time.perf_counter(), time.process_time()
        found = plan_epochs(task, stop=Gap(self.gap) | Seconds(self.seconds))
        seconds, spent = time.perf_counter() - wall, time.process_time() - spent
        broken = len(examine_solution(found).violations)
        made, trace = replay(found)
        proved = "proved" if found.finish == found.bound else f"at least {found.bound}, gap {100 * found.gap:.1f} %"
        asked = "" if self.epochs is None or small else f", {self.epochs} asked"
        late = "" if task.network.ignored or trace.finish <= found.makespan * (1 + 1e-9) else ", replay is LATER"
        figure = f"{found.finish} epochs ({proved}{asked}), {found.method}, {broken} rules broken{late}"
        return made.sends, seconds, spent, figure


def _instances() -> list[_Epochs]:
    found = []
    for alpha, epochs in ((0.0, {1: 3, 2: 5, 3: 8, 4: 10, 8: 19}), (0.7, {1: 7, 2: 9, 3: 10, 4: 12, 8: 21})):
        for chunks, least in epochs.items():
            reach = "30 s" if chunks == 8 else "2 s"
            name = f"epochs: allgather DGX-1, alpha {alpha} us, {chunks} chunks"
            found.append(
                _Epochs(name, lambda a=alpha: dgx1(a * US), "allgather", CHUNK, chunks, Clock(), least, reach)  # type: ignore[misc]
            )
    found.append(_Epochs("epochs: alltoall DGX-1, 8 chunks", dgx1, "alltoall", CHUNK, 8, Clock(), 43, "3 s"))
    for speed, least, reach in ((SLOWEST, 10, "10 s"), (FASTEST, 35, "60 s")):
        clock = Clock(speed, ignored_latency=COARSE)
        name = f"epochs: allgather 2 NDv2, {speed}"
        found.append(_Epochs(name, lambda: ndv2(2), "allgather", BIG, 1, clock, least, reach))
    copying = Clock(SLOWEST, ignored_latency=COARSE, switch_copy=True)
    found.append(
        _Epochs("epochs: allgather 4 NDv2, slowest", lambda: ndv2(4), "allgather", BIG, 1, copying, 26, "120 s")
    )
    coarse = Clock(SLOWEST, ignored_latency=COARSE)
    found.append(_Epochs("epochs: allgather 2 DGX-2, slowest", dgx2, "allgather", BIG, 1, coarse, 4, "-"))
    found.append(_Epochs("epochs: alltoall 2 DGX-2, slowest", dgx2, "alltoall", BIG, 1, coarse, None, "60 s"))
    found.append(_Epochs("epochs: allgather mesh 6x6", lambda: mesh(6), "allgather", 10**6, 1, Clock(), 18, "-"))
    for boxes in (8, 16):
        name = f"epochs: allgather {8 * boxes} H100"
        found.append(_Epochs(name, lambda b=boxes: h100(b), "allgather", 10**6, 1, Clock(), None, "30 % in 600 s"))  # type: ignore[misc]
    for boxes in (16, 32):
        name = f"epochs: alltoall {8 * boxes} H100"
        found.append(
            _Epochs(name, lambda b=boxes: h100(b), "alltoall", 10**6, 1, Clock(), None, "5 % in 600 s", gap=0.01)  # type: ignore[misc]
        )
    return found


EPOCH_RUNS = [Run(instance.name, instance.run, instance.reach) for instance in _instances()]
