"""``dualcoll plan`` of a TE-CCL input, which says its fabric, its demand and how time is cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dualcoll.cli.time_expanded import EpochOptions
from dualcoll.errors import InputError

if TYPE_CHECKING:
    from dualcoll.time_expanded.task import Task

__all__ = ["input_task", "is_teccl_input"]


def is_teccl_input(spec: str) -> bool:
    """Whether the argument names an input of TE-CCL, perhaps with keys behind its name."""
    from dualcoll.cli.documents import kind_of
    from dualcoll.topology.file import split_name

    return kind_of(split_name(spec)[0]) == "teccl-input"


def input_task(
    spec: str, options: EpochOptions, given: Mapping[str, object], *, relay: bool
) -> tuple[Task, tuple[str, ...]]:
    """What a TE-CCL input asks for, and what to know of it.

    Args:
        spec: the file, and perhaps ``:faults=kept`` behind its name. options: of which the input says some itself.
        given: by flag, what else it says itself.

    Raises:
        InputError: something is given that the input says.
    """
    from dualcoll.time_expanded.planner_files import read_teccl_input, teccl_task
    from dualcoll.topology.file import split_name
    from dualcoll.topology.importers.options import ImportOptions
    from dualcoll.topology.importers.teccl import is_published

    names = ("tenants", "epoch", "multiplier", "chunks_per_rank", "switch_copy", "latent_switches", "ignore_latency")
    said = {**given} | {f"--{name.replace('_', '-')}": getattr(options, name) for name in names}
    flag = next((flag for flag, value in said.items() if value not in (None, False)), None)
    if flag is not None:
        raise InputError("the TE-CCL input says it", where=flag, hint="name a COLLECTIVE to take its fabric alone")
    path, behind = split_name(spec)
    found = read_teccl_input(path, published=is_published(ImportOptions(behind=behind)))
    clock = options.clock(relay=relay)
    own = found.clock
    clock = replace(
        clock,
        epoch=own.epoch,
        multiplier=own.multiplier,
        ignored_latency=own.ignored_latency,
        latent_switches=own.latent_switches,
        switch_copy=own.switch_copy,
        copy=own.copy and clock.copy,
    )
    return teccl_task(found, clock), found.notes
