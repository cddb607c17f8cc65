"""Whether a result of TE-CCL keeps what it claims, and what is wrong with it all the same.

Whole chunks are checked by the rules of the time-expanded network (check.py), parts of chunks here: what flows into a node by
an epoch covers what has left it, a switch keeps nothing, and an epoch carries what fits.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from dualcoll.certificates.findings import Findings
from dualcoll.time_expanded.check import Rule, Violation, examine, violations
from dualcoll.time_expanded.network import Network
from dualcoll.time_expanded.planner_files.teccl_network import true_network, way_finder
from dualcoll.time_expanded.planner_files.teccl_schedule import TecclSchedule
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from dualcoll.units import format_bandwidth, format_time

__all__ = ["TecclVerdict", "check_teccl_schedule", "volume_violations"]

EXACT = 1e-6  # relative
PART = 1e-4  # of a chunk: TE-CCL rounds volumes to six digits, and drops less than a hundred-thousandth


@dataclass(frozen=True, slots=True)
class TecclVerdict:
    """What a result is worth.

    Attributes:
        text: what was found to be true. notes: faults and differences by name.
        finish: epochs. seconds: the same.
    """

    text: str
    notes: tuple[str, ...]
    finish: int
    seconds: float


def check_teccl_schedule(found: TecclSchedule) -> TecclVerdict:
    """Check flows and claims, counted as TE-CCL counts.

    Raises:
        CheckFailed: a finding for each rule that is broken, and each claim that the flows do not support.
    """
    findings = Findings()
    network, claims = found.problem.network, found.claims
    if found.cut:
        broken, finish = volume_violations(found)
    else:
        seen = examine(found.schedule)
        broken, finish = list(seen.violations), seen.finish
    for violation in broken:
        findings.add(str(violation))
    for text in found.odd:
        findings.add(text)
    if finish != claims.epochs:
        findings.add(f"3-Epochs_Required is {claims.epochs}, and its flows take {finish}")
    if abs(claims.seconds - claims.epochs * network.epoch) > EXACT * claims.seconds:
        findings.add(f"4-Collective_Finish_Time is not {claims.epochs} epochs of {format_time(network.epoch)}")
    bandwidth = found.size * found.fabric.counted / claims.seconds
    if abs(bandwidth - claims.bandwidth) > EXACT * bandwidth:
        findings.add(
            f"5-Algo_Bandwidth is {format_bandwidth(claims.bandwidth)}, and should be {format_bandwidth(bandwidth)}"
        )
    if not found.cut:
        _check_met(found, findings)
    if findings:
        raise findings.error()
    what = "AlltoAll" if found.cut else "AllGather"
    text = (
        f"{what} of {network.ranks} ranks on {network.topology.name}: {len(found.flows)} flows, {finish} epochs of "
        f"{format_time(network.epoch)} = {format_time(finish * network.epoch)}, as it claims"
    )
    return TecclVerdict(text, (*found.notes, *_early(found)), finish, finish * network.epoch)


def _check_met(found: TecclSchedule, findings: Findings) -> None:
    """The file's time for each demand against that of its flows."""
    network = found.problem.network
    delivered = found.schedule.delivered()
    if not found.claims.met:
        return
    for chunk in range(found.problem.chunks):
        source = network.name(int(found.problem.source[chunk]))
        for rank in found.problem.wanted(chunk):
            name = f"6-Demand_Met: GPU {network.name(rank)}, GPU {source}"
            claimed, epoch = found.claims.met.get((chunk, rank)), int(delivered[chunk, rank])
            if claimed is None:
                findings.add(f"{name}: it does not say when")
            elif epoch >= 0 and abs(claimed - epoch * network.epoch) > EXACT * claimed:
                findings.add(f"{name}: it says {format_time(claimed)}, its flows {format_time(epoch * network.epoch)}")


def _early(found: TecclSchedule) -> list[str]:
    """What comes too early when a hop takes as long as the slowest link on its way, and the time of the sends then."""
    true = None if found.cut else _truly_timed(found)
    broken = [] if true is None else violations(true)
    if not broken:
        return []
    from dualcoll.simulation import Options, simulate
    from dualcoll.time_expanded.to_schedule import to_schedule

    seconds = simulate(to_schedule(found.solution), Options(in_order=True)).finish
    return [
        f"early delivery: a switch's hop to a GPU takes no time there, not even on a link that is slower than the one "
        f"before; {len(broken)} starts come before their chunk does, such as {broken[0].text}",
        f"true time: {format_time(seconds)} when everything is sent as soon as it is there, in the same order",
    ]


def _truly_timed(found: TecclSchedule) -> EpochSchedule | None:
    """The same flows by the rules of docs/time-expanded.md; None where flows begin or end at switches."""
    theirs = found.problem.network
    network = true_network(theirs.topology, found.size, replace(theirs.clock, latent_switches=False))
    way = way_finder(network)
    rows = set()
    for flow, chunk in zip(found.flows, found.chunk_of, strict=True):
        if flow.nodes[0] not in network.nodes or flow.nodes[-1] not in network.nodes:
            return None
        epoch = flow.epoch
        for arc in way(flow.nodes):
            rows.add((arc, epoch, chunk))
            epoch += int(network.delay[arc])
    arc_, epoch_, chunk_ = np.array(sorted(rows), np.int32).T
    return EpochSchedule(Problem(network, found.problem.contract), arc_, epoch_, chunk_)


def volume_violations(found: TecclSchedule) -> tuple[list[Violation], int]:
    """Broken rules of parts of chunks, and the epoch by which everything wanted has come."""
    network, problem = found.problem.network, found.problem
    broken = _crowded(network, found)
    flows: dict[tuple[int, int], dict[int, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))
    for arc, epoch, chunk, volume in zip(
        *(column.tolist() for column in (found.arc, found.epoch, found.chunk, found.volume)), strict=True
    ):
        flows[chunk, int(network.tail[arc])][epoch][1] += volume
        flows[chunk, int(network.head[arc])][epoch + int(network.delay[arc])][0] += volume
    finish = 0
    for (chunk, vertex), times in sorted(flows.items()):
        broken += _unfed(network, chunk, vertex, times, source=vertex == problem.source[chunk])
    for chunk in range(problem.chunks):
        for rank in problem.wanted(chunk):
            times = flows.get((chunk, rank), {})
            kept = sum(came - left for came, left in times.values())
            if kept < 1 - PART:
                text = f"{network.name(rank)} gets {max(0.0, kept):g} of chunk {chunk}"
                broken.append(Violation(Rule.DEMAND, text, chunk=chunk, vertex=rank))
            finish = max(finish, *(epoch for epoch, (came, _) in times.items() if came > 0), 0)
    return broken, finish


def _crowded(network: Network, found: TecclSchedule) -> list[Violation]:
    """The first epoch of each link that carries too much."""
    loads: dict[tuple[int, int], float] = defaultdict(float)
    for arc, epoch, volume in zip(found.arc.tolist(), found.epoch.tolist(), found.volume.tolist(), strict=True):
        for row in network.rows_of(arc).tolist():
            loads[row, epoch] += volume
    broken: dict[int, Violation] = {}
    for (row, epoch), volume in sorted(loads.items()):
        most = float(network.rate[row])
        if volume > most + PART:
            text = f"{network.row_name(row)}, epoch {epoch}: {volume:g} chunks, where {most:g} fit"
            broken.setdefault(row, Violation(Rule.CAPACITY, text, epoch=epoch))
    return list(broken.values())


def _unfed(
    network: Network, chunk: int, vertex: int, times: dict[int, list[float]], *, source: bool
) -> list[Violation]:
    """The first epoch in which more of a chunk leaves a vertex than has come there; of a switch, in that very epoch."""
    there = 1.0 if source else 0.0
    for epoch, (came, left) in sorted(times.items()):
        there = came if not network.holds[vertex] else there + came
        if left > there + PART:
            text = f"{left:g} of chunk {chunk} leaves {network.name(vertex)} in epoch {epoch}, where {max(0.0, there):g} is"
            return [Violation(Rule.HOLDING if network.holds[vertex] else Rule.SWITCH, text, epoch, chunk, vertex)]
        there -= left
    return []
