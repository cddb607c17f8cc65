"""TE-CCL's input files (microsoft/TE-CCL, ``teccl/input_data.py``): a fabric by name, a collective, and how to cut time.

TE-CCL takes any key and says nothing; here a key that nothing reads is named. Paths in a file are never repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, ConfigDict

from dualcoll.collectives.contract import make_contract
from dualcoll.errors import InputError
from dualcoll.files import read_bytes
from dualcoll.progress import Stop
from dualcoll.time_expanded.network import FASTEST, SLOWEST, Clock, make_network
from dualcoll.time_expanded.planner_files.teccl_fabrics import FabricName, teccl_fabric
from dualcoll.time_expanded.task import Task, task_of
from dualcoll.topology.forms import Flag, Form, Ratio, Text, Whole, filled
from dualcoll.topology.model import Topology
from dualcoll.topology.source_text import SourceText
from dualcoll.units import format_time

__all__ = ["Objective", "TecclInput", "read_teccl_input", "teccl_task"]

Objective = Literal["makespan", "reads", "rounds"]

GB = 1e9
MAX_BYTES = 2**20
LENGTHENS = 200  # TE-CCL's default for alpha_epoch_duration_ratio_max


def _or_minus_one(value: object) -> object:
    return None if value in (-1, "-1") and not isinstance(value, bool) else value


Open = BeforeValidator(_or_minus_one)  # TE-CCL writes -1 for "not given"


class _Loose(Form):
    """A mapping whose unknown keys are kept, to be named."""

    model_config = ConfigDict(extra="allow", frozen=True)


class TopologyForm(_Loose):
    """``TopologyParams``."""

    name: Text = "DGX1"
    chassis: Whole = 1
    chunk_size: Ratio = 1.0
    alpha: tuple[Ratio, Ratio] | None = None
    side_length: Whole | None = None


class GurobiForm(_Loose):
    """``GurobiParams``: what a search here has too; the rest is Gurobi's own."""

    time_limit: Ratio = 2.0
    mip_gap: Ratio = 1e-4


class InstanceForm(_Loose):
    """``InstanceParams``: what says something about the schedule."""

    collective: Whole = 1
    num_chunks: Whole = 1
    epoch_type: Whole = 1
    epoch_duration: Annotated[Ratio | None, Open] = None
    epoch_multiplier: Ratio = 1.0
    num_epochs: Annotated[Whole | None, Open] = None
    alpha_threshold: Ratio = 0.1
    alpha_epoch_duration_ratio_max: Ratio = float(LENGTHENS)
    switch_copy: Flag = True
    switch_to_gpu_link_on: Flag = False
    objective_type: Whole = 3
    solution_method: Whole = 1


class InputForm(_Loose):
    """A whole file."""

    TopologyParams: TopologyForm
    GurobiParams: GurobiForm = GurobiForm()
    InstanceParams: InstanceForm = InstanceForm()


_GUROBI = (
    *("feasibility_tol", "intfeas_tol", "optimality_tol", "output_flag", "log_file", "log_to_console", "mip_focus"),
    *("crossover", "method", "heuristics", "presolve", "solution_limit"),
)
_OUTPUT = ("debug", "debug_output_file", "schedule_output_file", "lower", "lower_xml")
_UNUSED = ("epsilon", "warmstart", "symmetry")


@dataclass(frozen=True, slots=True)
class TecclInput:
    """What a TE-CCL input file asks for.

    Attributes:
        fabric: as named. topology: the fabric that was meant, or the one that TE-CCL's code builds.
        collective: ``allgather`` or ``alltoall``. chunk: bytes. chunks: of each rank's shard, or of each pair of ranks.
        clock: how time is cut.
        horizon: most epochs, if there is a limit.
        stop: the solver's time limit and gap.
        objective: ``makespan``; ``reads``, the sum of completion times; or ``rounds``, TE-CCL's A*.
        notes: what to know.
    """

    fabric: FabricName
    topology: Topology
    collective: str
    chunk: int
    chunks: int
    clock: Clock
    horizon: int | None
    stop: Stop
    objective: Objective
    notes: tuple[str, ...]


def read_teccl_input(path: str | Path, *, published: bool = False) -> TecclInput:
    """Read an input file.

    Args:
        path: the file.
        published: on the fabric that TE-CCL's code builds, faults included; else on the one that was meant.

    Raises:
        InputError: it is no such file, or asks for what there is not; with its key.
    """
    where = str(path)
    source = SourceText.parse(read_bytes(path, MAX_BYTES), where)
    form = filled(InputForm, source.data, source.place)
    try:
        return _input(form, published)
    except InputError as error:
        raise error.within(where) from None


def teccl_task(given: TecclInput) -> Task:
    """The task of an input, on its fabric.

    Raises:
        InputError: as :func:`~dualcoll.time_expanded.network.make_network` does.
    """
    contract = make_contract(given.collective, len(given.topology.ranks), pieces=given.chunks)
    network = make_network(given.topology, given.chunk, clock=given.clock)
    return task_of(contract, np.full(contract.chunks, given.chunk), network)


def _input(form: InputForm, published: bool) -> TecclInput:
    given, instance = form.TopologyParams, form.InstanceParams
    alpha, side = given.alpha or (0.0, 0.0), 4 if given.side_length is None else given.side_length
    fabric = FabricName(given.name, given.chassis, alpha, side)
    notes = _unread(form)
    try:
        built, topology = teccl_fabric(fabric), teccl_fabric(fabric, published=published)
    except InputError as error:
        raise error.within("TopologyParams") from None
    if not published:
        notes += [f"TE-CCL's code builds another fabric: {fault}" for fault in built.notes]
    if given.alpha is not None and fabric.name in ("DGX2", "NDv2"):
        notes.append(f"TopologyParams: alpha: {fabric.name} has latencies of its own, in TE-CCL too")
    if given.side_length is not None and fabric.name != "Mesh":
        notes.append(f"TopologyParams: side_length: {fabric.name} has none")
    chunk = round(given.chunk_size * GB)
    if chunk < 1:
        raise InputError(f"a chunk of {given.chunk_size!r} GB is no byte", where="TopologyParams: chunk_size")
    if abs(chunk - given.chunk_size * GB) > 1e-6:
        notes.append(f"TopologyParams: chunk_size: {given.chunk_size * GB:g} bytes are taken as {chunk}")
    _one_of("collective", instance.collective, 2)
    _one_of("objective_type", instance.objective_type, 4)
    _one_of("solution_method", instance.solution_method, 2)
    collective = ("allgather", "alltoall")[instance.collective - 1]
    objectives: tuple[Objective, ...] = ("makespan", "makespan", "reads", "rounds")
    return TecclInput(
        fabric=fabric,
        topology=topology,
        collective=collective,
        chunk=chunk,
        chunks=_chunks(instance, collective, len(topology.ranks), notes),
        clock=_clock(instance, topology, chunk, notes),
        horizon=_horizon(instance),
        stop=_stop(form.GurobiParams),
        objective=objectives[instance.objective_type - 1],
        notes=tuple(notes),
    )


def _unread(form: InputForm) -> list[str]:
    """A note for keys that change nothing, by reason."""
    notes = []
    gurobi = dict.fromkeys(_GUROBI, "Gurobi's own")
    instance = dict.fromkeys(_OUTPUT, "what TE-CCL writes") | dict.fromkeys(_UNUSED, "how TE-CCL searches")
    parts: tuple[tuple[str, _Loose, dict[str, str]], ...] = (
        ("", form, {}),
        ("TopologyParams: ", form.TopologyParams, {}),
        ("GurobiParams: ", form.GurobiParams, gurobi),
        ("InstanceParams: ", form.InstanceParams, instance),
    )
    for place, part, known in parts:
        reasons: dict[str, list[str]] = {}
        for key in part.model_extra or {}:
            reasons.setdefault(known.get(key, "read by nothing, in TE-CCL neither"), []).append(key[:60])
        notes += [f"{place}{', '.join(keys)}: without effect, {reason}" for reason, keys in reasons.items()]
    return notes


def _one_of(key: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InputError(f"{value} is not known", where=f"InstanceParams: {key}", hint=f"use 1 to {most}")


def _chunks(instance: InstanceForm, collective: str, ranks: int, notes: list[str]) -> int:
    """Chunks of a shard; an alltoall's are counted per GPU there, for all others together."""
    where = "InstanceParams: num_chunks"
    if instance.num_chunks < 1:
        raise InputError(f"{instance.num_chunks} chunks", where=where, hint="use 1 or more")
    if collective == "allgather":
        return instance.num_chunks
    pieces, rest = divmod(instance.num_chunks, ranks)
    if not pieces:
        raise InputError(
            f"{instance.num_chunks} chunks of a GPU for {ranks} GPUs",
            where=where,
            hint=f"TE-CCL numbers an alltoall's chunks by receiver: use {ranks} or a multiple",
        )
    if rest:
        notes.append(f"{where}: {rest} of {instance.num_chunks} chunks go nowhere, as in TE-CCL")
    return pieces


def _clock(instance: InstanceForm, topology: Topology, chunk: int, notes: list[str]) -> Clock:
    _one_of("epoch_type", instance.epoch_type, 3)
    epoch: str | float = FASTEST if instance.epoch_type == 1 else SLOWEST
    rates = [link.capacity for link in topology.links]
    seconds = chunk / (max(rates) if instance.epoch_type == 1 else min(rates)) * instance.epoch_multiplier
    multiplier = instance.epoch_multiplier
    if instance.epoch_duration is not None:
        epoch = seconds = instance.epoch_duration
        multiplier = 1.0
    elif instance.epoch_type == 3:
        raise InputError(
            "epochs of a given length, and no length", where="InstanceParams", hint="give epoch_duration, in seconds"
        )
    shortest = min(link.latency for link in topology.links) / instance.alpha_epoch_duration_ratio_max
    if shortest > seconds > 0 and not topology.name.startswith("TE-CCL DGX2"):
        epoch, multiplier = shortest, 1.0
        notes.append(
            f"epochs of {format_time(seconds)} would be less than 1/{instance.alpha_epoch_duration_ratio_max:g} of "
            f"every latency: {format_time(shortest)}, as in TE-CCL"
        )
    return Clock(
        epoch,
        multiplier,
        ignored_latency=instance.alpha_threshold,
        latent_switches=instance.switch_to_gpu_link_on,
        switch_copy=instance.switch_copy,
    )


def _horizon(instance: InstanceForm) -> int | None:
    if instance.num_epochs is not None and instance.num_epochs < 1:
        raise InputError(
            f"{instance.num_epochs} epochs", where="InstanceParams: num_epochs", hint="use 1 or more, or -1"
        )
    return instance.num_epochs


def _stop(form: GurobiForm) -> Stop:
    try:
        return Stop(form.mip_gap, form.time_limit * 3600)
    except InputError as error:
        raise error.within("GurobiParams") from None
