"""TE-CCL's result files: flows epoch by epoch, and what is claimed of them.

Results name neither their fabric nor their chunk. The fabric is the one among TE-CCL's whose links the flows use, and the chunk
follows from the bandwidth, which is a chunk per GPU over the finish time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field

from dualcoll.collectives.contract import Contract, make_contract
from dualcoll.errors import InputError
from dualcoll.files import read_bytes
from dualcoll.time_expanded.check import violations
from dualcoll.time_expanded.network import Clock
from dualcoll.time_expanded.planner_files.teccl_flows import TecclFlow, read_flows
from dualcoll.time_expanded.planner_files.teccl_identify import identified
from dualcoll.time_expanded.planner_files.teccl_input import TecclInput
from dualcoll.time_expanded.planner_files.teccl_network import teccl_network, way_finder
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from dualcoll.time_expanded.solution import Solution
from dualcoll.time_expanded.task import task_of
from dualcoll.topology.forms import Form, Ratio, Text, Whole, filled
from dualcoll.topology.importers.teccl_fabrics import FabricName, teccl_fabric
from dualcoll.topology.model import Kind, Topology
from dualcoll.topology.source_text import SourceText

__all__ = ["Claims", "TecclSchedule", "read_teccl_schedule"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

GB = 1e9
MAX_BYTES = 2**28
IGNORED = 0.1  # TE-CCL's default for alpha_threshold
FEW = 2**12  # chunks
EXACT = 1e-6  # relative, of ratios that are to be whole numbers
FLOWS, PATHS = "7-Flows", "8-Chunk paths"
_OLDER = {"6-Flows": FLOWS, "7-chunk paths": PATHS}
_CHUNK = "Chunk "


class ScheduleForm(Form):
    """A whole file; keys besides these say nothing of the schedule."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    epoch: Ratio = Field(alias="1-Epoch_Duration")
    epochs: Whole = Field(alias="3-Epochs_Required")
    seconds: Ratio = Field(alias="4-Collective_Finish_Time")
    bandwidth: Ratio = Field(alias="5-Algo_Bandwidth")
    met: dict[str, dict[str, dict[str, Ratio]]] = Field({}, alias="6-Demand_Met")
    flows: tuple[Text, ...] = Field(alias="7-Flows")
    paths: dict[str, Any] = Field({}, alias="8-Chunk paths")


@dataclass(frozen=True, slots=True)
class Claims:
    """What a file claims: epochs, seconds in all, bytes/s, and the seconds in which (chunk, rank) is met."""

    epochs: int
    seconds: float
    bandwidth: float
    met: Mapping[tuple[int, int], float]


@dataclass(frozen=True, slots=True, eq=False)
class TecclSchedule:
    """A result of TE-CCL.

    Attributes:
        fabric: its name. problem: what is solved, on that fabric as TE-CCL builds it, counted as TE-CCL counts.
        size: bytes of a chunk, which need not be whole.
        flows: as listed. chunk_of: the chunk of each.
        arc, epoch, chunk: int64 (S,), the flows' starts on each link. volume: float64 (S,), parts of a chunk.
        cut: whether chunks are cut, and nobody copies.
        claims: what the file says. notes: what to know. odd: what of the file does not go together.
    """

    fabric: FabricName
    problem: Problem
    size: float
    flows: tuple[TecclFlow, ...]
    chunk_of: tuple[int, ...]
    arc: Ints
    epoch: Ints
    chunk: Ints
    volume: Floats
    cut: bool
    claims: Claims
    notes: tuple[str, ...]
    odd: tuple[str, ...]

    @property
    def schedule(self) -> EpochSchedule:
        """The starts as those of whole chunks.

        Raises:
            InputError: chunks are cut.
        """
        network = self.problem.network
        slow = any(network.rate[network.rows_of(a)].min() < 1 - EXACT for a in set(self.arc.tolist()))
        if self.cut and (slow or np.any(self.volume != 1)):
            raise InputError(
                "its flows cut chunks into parts, and sends are of whole chunks",
                where=FLOWS,
                hint="check it, or plan the same with dualcoll plan --method time-expanded",
            )
        return EpochSchedule(self.problem, *(c.astype(np.int32) for c in (self.arc, self.epoch, self.chunk)))

    @property
    def solution(self) -> Solution:
        """The same as what a search here finds.

        Raises:
            InputError: chunks are cut.
        """
        problem = self.problem
        task = task_of(problem.contract, np.full(problem.chunks, problem.network.chunk), problem.network)
        return Solution(task, replace(self.schedule, problem=task.copying or problem), None, method="TE-CCL")


def read_teccl_schedule(path: str | Path, given: TecclInput | None = None) -> TecclSchedule:
    """Read a result. Whether it keeps its claims is for :func:`~.teccl_check.check_teccl_schedule`.

    Args:
        path: the file.
        given: the input that it was made from; needed where its fabric, or a latency, cannot be told from it.

    Raises:
        InputError: it is no such file, or its fabric is none of TE-CCL's or could be several.
    """
    where = str(path)
    source = SourceText.parse(read_bytes(path, MAX_BYTES), where)
    data = source.data
    if isinstance(data, dict):
        data = {_OLDER.get(key, key): value for key, value in data.items()}
    form = filled(ScheduleForm, data, source.place)
    try:
        return _schedule(form, given)
    except InputError as error:
        raise error.within(where) from None


def _schedule(form: ScheduleForm, given: TecclInput | None) -> TecclSchedule:
    for key, value in (("1-Epoch_Duration", form.epoch), ("4-Collective_Finish_Time", form.seconds)):
        if value <= 0:
            raise InputError(f"{value!r} s is not above 0", where=key)
    flows, odd, lost = read_flows(form.flows, form.paths, FLOWS, PATHS)
    if given is None:
        try:
            fabric, topology = identified(flows, form.bandwidth * GB * form.seconds, form.epoch)
        except InputError as error:
            raise error.within(FLOWS) from None
    else:
        fabric, topology = given.fabric, teccl_fabric(given.fabric)
    notes = [*topology.notes, *lost]
    size = form.bandwidth * GB * form.seconds / fabric.counted
    if given is not None:
        size = float(given.chunk)
    elif fabric.name in ("DGX1", "AMD", "Mesh"):
        notes.append(
            f"latencies: a result does not say those of {fabric.name}, and none are taken; its input file does"
        )
    if size <= 0:
        raise InputError(f"{form.bandwidth!r} GB/s makes no chunk", where="5-Algo_Bandwidth")
    if fabric.counted != len(topology.ranks):
        notes.append(f"bandwidth: 5-Algo_Bandwidth counts {fabric.counted} GPUs, and {len(topology.ranks)} take part")
    if abs(size - round(size)) > EXACT:
        notes.append(f"chunk: {size:g} bytes, which are taken as {max(1, round(size))}")
    cut = flows[0].volume > 0
    clock = Clock(
        form.epoch,
        ignored_latency=IGNORED if given is None else given.clock.ignored_latency,
        switch_copy=not cut and _copied(flows),
        copy=not cut,
    )
    latent = (False, True) if given is None else (given.clock.latent_switches,)
    if cut or not any(node.kind is Kind.SWITCH for node in topology.nodes):
        latent = latent[:1]
    found = []
    for hop in latent:
        network = teccl_network(topology, size, replace(clock, latent_switches=hop))
        contract, chunks = _contract(flows, topology, cut)
        problem = Problem(network, contract)
        arc, epoch, chunk, volume = _starts(problem, flows, chunks, merged=not cut)
        met = _met(form.met, topology, contract.chunks // max(1, len(topology.ranks)))
        found.append(
            TecclSchedule(
                fabric=fabric,
                problem=problem,
                size=size,
                flows=tuple(flows),
                chunk_of=tuple(chunks),
                arc=arc,
                epoch=epoch,
                chunk=chunk,
                volume=volume,
                cut=cut,
                claims=Claims(form.epochs, form.seconds, form.bandwidth * GB, met),
                notes=tuple(notes),
                odd=tuple(odd),
            )
        )
    return next((one for one in found if len(found) > 1 and _keeps(one)), found[0])


def _keeps(one: TecclSchedule) -> bool:
    """Whether the flows are right and as quick as claimed, when counted this way."""
    return one.schedule.finish == one.claims.epochs and not violations(one.schedule)


def _copied(flows: Iterable[TecclFlow]) -> bool:
    """Whether a switch sends what came once to several nodes."""
    onward: dict[tuple[int, int, int, tuple[int, ...]], set[int]] = defaultdict(set)
    for flow in flows:
        for i in range(1, len(flow.nodes) - 1):
            onward[flow.chunk, flow.source, flow.epoch, flow.nodes[: i + 1]].add(flow.nodes[i + 1])
    return any(len(nodes) > 1 for nodes in onward.values())


def _contract(flows: list[TecclFlow], topology: Topology, cut: bool) -> tuple[Contract, list[int]]:
    """The contract, and the chunk of each flow. An alltoall's chunks are numbered by receiver, then by piece."""
    ranks = {int(topology.nodes[node].name): rank for rank, node in enumerate(topology.ranks)}
    strange = next((flow.source for flow in flows if flow.source not in ranks), None)
    if strange is not None:
        raise InputError(f"node {strange} of {topology.name} is no GPU, and a chunk begins there", where=FLOWS)
    count = len(ranks)
    pieces = 1 + max(flow.chunk // count if cut else flow.chunk for flow in flows)
    if pieces * count ** (1 + cut) > max(FEW, 4 * len(flows)):  # each goes over some link
        raise InputError(f"chunk {max(flow.chunk for flow in flows)} is too many for {len(flows)} flows", where=FLOWS)
    if not cut:
        return make_contract("allgather", count, pieces=pieces), [
            ranks[flow.source] * pieces + flow.chunk for flow in flows
        ]
    ends = [(ranks[flow.source] * count + flow.chunk % count) * pieces + flow.chunk // count for flow in flows]
    return make_contract("alltoall", count, pieces=pieces), ends


def _starts(
    problem: Problem, flows: list[TecclFlow], chunks: list[int], *, merged: bool
) -> tuple[Ints, Ints, Ints, Floats]:
    """The starts of the flows on each link of their ways; what several copies have in common is one start."""
    network = problem.network
    way = way_finder(network)
    rows: list[tuple[int, int, int, float]] = []
    for flow, number in zip(flows, chunks, strict=True):
        arcs = way(flow.nodes) if max(flow.nodes) < len(network.topology.nodes) else []
        if not arcs:
            text = " -> ".join(map(str, flow.nodes))
            raise InputError(f"{network.topology.name} has no way {text}", where=FLOWS)
        when = flow.epoch
        for a in arcs:
            rows.append((a, when, number, flow.volume or 1.0))
            when += int(network.delay[a])
    if merged:
        rows = sorted(set(rows))
    arc, epoch, chunk, volume = zip(*rows, strict=True)
    return np.array(arc), np.array(epoch), np.array(chunk), np.array(volume)


def _met(met: dict[str, dict[str, dict[str, float]]], topology: Topology, pieces: int) -> dict[tuple[int, int], float]:
    """Seconds in which (chunk, rank) of an allgather are met."""
    ranks = {f"GPU {topology.nodes[node].name}": rank for rank, node in enumerate(topology.ranks)}
    found = {}
    for end, sources in met.items():
        for source, chunks in sources.items():
            for name, seconds in chunks.items():
                number = name.removeprefix(_CHUNK)
                known = end in ranks and source in ranks and number.isdecimal() and int(number[:9]) < pieces
                if not known:
                    raise InputError(
                        f"{end[:20]}, {source[:20]}, {name[:20]} is no demand of its flows", where="6-Demand_Met"
                    )
                found[ranks[source] * pieces + int(number), ranks[end]] = seconds
    return found
