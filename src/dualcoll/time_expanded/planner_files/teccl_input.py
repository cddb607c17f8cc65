"""TE-CCL's input files (microsoft/TE-CCL, ``teccl/input_data.py``): a fabric by name, a collective, and how to cut time.

TE-CCL takes any key and says nothing; here a key that nothing reads is named. Paths in a file are never repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict

from dualcoll.collectives.request import make_workload
from dualcoll.errors import InputError
from dualcoll.files import read_bytes
from dualcoll.time_expanded.network import FASTEST, SLOWEST, Clock
from dualcoll.time_expanded.task import Task, make_task
from dualcoll.topology.forms import Flag, Form, Ratio, Whole, filled
from dualcoll.topology.importers.teccl import FabricForm, named_fabric
from dualcoll.topology.importers.teccl_fabrics import FabricName
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


class InputForm(_Loose):
    """A whole file."""

    TopologyParams: FabricForm
    GurobiParams: _Loose = _Loose()
    InstanceParams: InstanceForm = InstanceForm()


_GUROBI = (
    *("feasibility_tol", "intfeas_tol", "optimality_tol", "output_flag", "log_file", "log_to_console", "mip_focus"),
    *("crossover", "method", "heuristics", "presolve", "solution_limit"),
)
_STOP = ("time_limit", "mip_gap")
_OUTPUT = ("debug", "debug_output_file", "schedule_output_file", "lower", "lower_xml")
_UNUSED = ("epsilon", "warmstart", "symmetry", "solution_method")


@dataclass(frozen=True, slots=True)
class TecclInput:
    """What a TE-CCL input file asks for.

    Attributes:
        fabric: as named. topology: the fabric that was meant, or the one that TE-CCL's code builds.
        collective: ``allgather`` or ``alltoall``. chunk: bytes. chunks: of each rank's shard, or of each pair of ranks.
        clock: how time is cut.
        horizon: most epochs, if there is a limit.
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


def teccl_task(given: TecclInput, clock: Clock | None = None) -> Task:
    """The task of an input, on its fabric.

    Args:
        given: the input. clock: how time is cut, if not as there.

    Raises:
        InputError: as :func:`~dualcoll.time_expanded.task.make_task` does.
    """
    ranks = len(given.topology.ranks)
    size = given.chunk * given.chunks * ranks  # of an allgather's result, or of what a rank sends to all
    work = make_workload(given.topology, given.collective, size=size)
    return make_task(given.topology, work, chunk=given.chunk, clock=clock or given.clock)


def _input(form: InputForm, published: bool) -> TecclInput:
    given, instance = form.TopologyParams, form.InstanceParams
    fabric, topology, notes = named_fabric(given, published=published)
    notes = [*_unread(form), *(topology.notes if published else ()), *notes]
    chunk = round(given.chunk_size * GB)
    if chunk < 1:
        raise InputError(f"a chunk of {given.chunk_size!r} GB is no byte", where="TopologyParams: chunk_size")
    if abs(chunk - given.chunk_size * GB) > 1e-6:
        notes.append(f"TopologyParams: chunk_size: {given.chunk_size * GB:g} bytes are taken as {chunk}")
    _one_of("collective", instance.collective, 2)
    _one_of("objective_type", instance.objective_type, 4)
    collective = ("allgather", "alltoall")[instance.collective - 1]
    if instance.objective_type in (3, 4):
        wish = "the sum of completion times" if instance.objective_type == 3 else "rounds"
        notes.append(f"InstanceParams: objective_type: {wish}; here the least makespan is sought")
    if instance.num_epochs is not None:
        notes.append(f"InstanceParams: num_epochs: {instance.num_epochs} at most; here the fewest are sought")
    objectives: tuple[Objective, ...] = ("makespan", "makespan", "reads", "rounds")
    return TecclInput(
        fabric=fabric,
        topology=topology,
        collective=collective,
        chunk=chunk,
        chunks=_chunks(instance),
        clock=_clock(instance, topology, chunk, notes),
        horizon=_horizon(instance),
        objective=objectives[instance.objective_type - 1],
        notes=tuple(notes),
    )


def _unread(form: InputForm) -> list[str]:
    """A note for keys that change nothing, by reason."""
    notes = []
    gurobi = dict.fromkeys(_GUROBI, "Gurobi's own") | dict.fromkeys(_STOP, "say it with --seconds and --gap")
    instance = dict.fromkeys(_OUTPUT, "what TE-CCL writes") | dict.fromkeys(_UNUSED, "how TE-CCL searches")
    parts: tuple[tuple[str, Form, dict[str, str]], ...] = (
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


def _chunks(instance: InstanceForm) -> int:
    """Chunks of a rank's shard, or of each pair of ranks in an alltoall."""
    if instance.num_chunks < 1:
        raise InputError(f"{instance.num_chunks} chunks", where="InstanceParams: num_chunks", hint="use 1 or more")
    return instance.num_chunks


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
    if instance.alpha_epoch_duration_ratio_max <= 0 or instance.epoch_multiplier <= 0:
        raise InputError("a ratio that is not above 0", where="InstanceParams")
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
