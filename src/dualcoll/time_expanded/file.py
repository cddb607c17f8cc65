"""Files of schedules on the time-expanded network, by hand or by a solver (docs/epoch-file.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from dualcoll.errors import InputError
from dualcoll.files import atomic_write, read_bytes
from dualcoll.schedules.columns import packed, unpacked
from dualcoll.schedules.contract_form import ContractForm, contract_of, contract_to_dict
from dualcoll.time_expanded.network import FASTEST, SLOWEST, Clock, Network, make_network
from dualcoll.time_expanded.problem import EpochSchedule, Problem
from dualcoll.time_expanded.solution import Solution
from dualcoll.time_expanded.task import Task, task_of
from dualcoll.topology.forms import Flag, Form, Name, Ratio, Text, Whole, filled, one_of
from dualcoll.topology.model import Forwarding
from dualcoll.topology.native import topology_from_dict, topology_to_dict
from dualcoll.topology.source_text import SourceText, loc_text
from dualcoll.units import parse_bandwidth, parse_size, parse_time

__all__ = ["FORMAT", "read_epochs", "same_task", "solution_from_dict", "solution_to_dict", "write_epochs"]

FORMAT = "dualcoll.epochs/1"
MAX_BYTES = 2**30


class ClockForm(Form):
    """The fields of :class:`~dualcoll.time_expanded.network.Clock`, each by default as there."""

    epoch: Any = FASTEST
    multiplier: Ratio = 1.0
    ignored_latency: Ratio = 0.0
    latent_switches: Flag = False
    switch_copy: Flag = False
    rank_copy: Flag = Field(True, alias="copy")
    relay: Flag = True
    buffer: Whole | None = None
    reduction_speed: Any = None


class EpochForm(Form):
    """A whole file."""

    format: Text
    generator: Text = ""
    topology: Any
    ranks: tuple[Name, ...]
    forward: Annotated[Forwarding, one_of(Forwarding)] = Forwarding.SWITCHES
    clock: ClockForm = ClockForm(copy=True)
    chunk_size: Any
    contract: ContractForm
    sizes: Any = None
    starts: Any = None
    gathering: Any = None
    bound: Whole = 0
    reason: Text = ""
    method: Text = ""


def write_epochs(found: Solution, path: str | Path) -> None:
    """Write a file, whole or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    atomic_write(path, json.dumps(solution_to_dict(found), ensure_ascii=False, indent=1) + "\n")


def read_epochs(path: str | Path) -> Solution:
    """Read a file. Whether it keeps the rules is for :func:`~dualcoll.time_expanded.check.violations`.

    Raises:
        InputError: it is no such file, or names what does not exist; with the line or the key.
    """
    where = str(path)
    return solution_from_dict(SourceText.parse(read_bytes(path, MAX_BYTES), where).data, where)


def same_task(one: Task, other: Task) -> str:
    """What differs between two tasks, in a word; empty if nothing does."""
    for name, value in (
        ("topology", lambda task: topology_to_dict(task.network.topology)),
        ("ranks", lambda task: task.network.nodes),
        ("chunk size", lambda task: (task.network.chunk, task.sizes.tolist())),
        ("epoch", lambda task: (task.network.epoch, replace(task.network.clock, epoch=FASTEST, multiplier=1.0))),
        ("forwarding", lambda task: task.network.forwarding),
        ("collective", lambda task: contract_to_dict(task.contract)),
    ):
        if value(one) != value(other):
            return name
    return ""


def solution_to_dict(found: Solution) -> dict[str, Any]:
    """The solution as JSON-ready data."""
    task, network = found.task, found.task.network
    clock = {key: value for key, value in asdict(network.clock).items() if value != getattr(Clock(), key)}
    data: dict[str, Any] = {"format": FORMAT, "generator": f"dualcoll {version('dualcoll')}"}
    data |= {name: value for name in ("bound", "reason", "method") if (value := getattr(found, name))}
    data |= {"chunk_size": network.chunk, "clock": clock, "forward": str(network.forwarding)}
    data |= {"ranks": [network.topology.nodes[node].name for node in network.nodes]}
    data |= {"contract": contract_to_dict(task.contract), "sizes": packed(task.sizes)}
    if found.copying is not None:
        data["starts"] = _grid(found.copying, found.copying.epoch)
    if found.reducing is not None:
        data["gathering"] = _grid(found.reducing, found.turn - found.reducing.arrival)
    return data | {"topology": topology_to_dict(network.topology)}


def solution_from_dict(data: object, where: str) -> Solution:
    """Read what :func:`solution_to_dict` wrote; ``where`` names its origin in messages.

    Raises:
        InputError: the data has not the form of such a file, with its key.
    """
    if isinstance(data, dict) and "format" in data and data["format"] != FORMAT:
        raise InputError(f"format {str(data['format'])[:60]!r} is not {FORMAT}", where=f"{where}: format")
    form = filled(EpochForm, data, lambda loc: ": ".join(filter(None, (where, loc_text(loc)))))
    try:
        return _solution(form)
    except InputError as error:
        raise error.within(where) from None


def _solution(form: EpochForm) -> Solution:
    topology = topology_from_dict(form.topology)
    unknown = [name for name in form.ranks if name not in topology.index]
    if unknown:
        raise InputError(f"the topology has no node {unknown[0]!r}", where="ranks")
    contract = _named("contract", contract_of, form.contract)
    chunk = form.chunk_size if isinstance(form.chunk_size, int) else _named("chunk_size", parse_size, form.chunk_size)
    nodes = tuple(topology.index[name] for name in form.ranks)
    clock = _named("clock", _clock, form.clock)
    network = make_network(topology, chunk, nodes=nodes, forwarding=form.forward, clock=clock)
    sizes = np.full(contract.chunks, chunk) if form.sizes is None else unpacked(form.sizes, contract.chunks, "sizes")
    if np.any((sizes < 0) | (sizes > chunk)):
        raise InputError(f"a chunk is not of 0 to {chunk} bytes", where="sizes")
    task = task_of(contract, sizes, network)
    copying = _starts(task.copying, form.starts, "starts")
    reducing = _starts(task.reducing, form.gathering, "gathering")
    turn = 0
    if reducing is not None:
        turn = int(reducing.arrival.max(initial=0))
        starts = turn - reducing.arrival  # written as what happens: a start there is an arrival here
        reducing = EpochSchedule(reducing.problem, reducing.arc, starts.astype(np.int32), reducing.chunk)
    return Solution(task, copying, reducing, turn, form.bound, form.reason, None, form.method)


def _clock(form: ClockForm) -> Clock:
    known = isinstance(form.epoch, str) and form.epoch in (FASTEST, SLOWEST)
    seconds = form.epoch if known or isinstance(form.epoch, float | int) else parse_time(form.epoch)
    speed = form.reduction_speed
    return Clock(
        seconds,
        form.multiplier,
        form.ignored_latency,
        form.latent_switches,
        form.switch_copy,
        form.rank_copy,
        form.relay,
        form.buffer,
        speed if speed is None or isinstance(speed, float | int) else parse_bandwidth(speed),
    )


def _arc_names(network: Network) -> list[str]:
    """The link of each arc in words; where a link has several arcs, with the number of the way through it."""
    texts, before = network.topology.describe_links(), [0] * len(network.topology.links)
    names = []
    for link in network.link.tolist():
        names.append(texts[link] + (f" (way {before[link]})" if before[link] else ""))
        before[link] += 1
    return names


def _grid(schedule: EpochSchedule, epoch: Any) -> dict[str, dict[str, list[int]]]:
    names = _arc_names(schedule.problem.network)
    grid: dict[str, dict[str, list[int]]] = {}
    for arc, k, chunk in zip(schedule.arc.tolist(), epoch.tolist(), schedule.chunk.tolist(), strict=True):
        grid.setdefault(names[arc], {}).setdefault(str(k), []).append(chunk)
    return grid


def _starts(problem: Problem | None, grid: Any, key: str) -> EpochSchedule | None:
    if problem is None:
        if grid:
            what = "spread" if key == "starts" else "gather"
            raise InputError(f"the contract has no chunks that {what}", where=key)
        return None
    rows = list(_entries(grid or {}, {name: i for i, name in enumerate(_arc_names(problem.network))}, key))
    arc, epoch, chunk = np.array(rows, np.int64).reshape(-1, 3).T
    wrong = np.flatnonzero((chunk < 0) | (chunk >= problem.chunks))
    if wrong.size:
        raise InputError(
            f"there is no chunk {chunk[wrong[0]]}", where=key, hint=f"chunks are 0 to {problem.chunks - 1}"
        )
    return EpochSchedule(problem, arc.astype(np.int32), epoch.astype(np.int32), chunk.astype(np.int32))


def _entries(grid: Any, arcs: dict[str, int], key: str) -> Iterator[tuple[int, int, int]]:
    if not isinstance(grid, dict):
        raise InputError("it is not a mapping of links to epochs", where=key)
    for name, epochs in grid.items():
        if name not in arcs:
            raise InputError("there is no such link", where=f"{key}: {name[:60]}", hint=f"such as {next(iter(arcs))!r}")
        if not isinstance(epochs, dict):
            raise InputError("it is not a mapping of epochs to chunks", where=f"{key}: {name}")
        for text, chunks in epochs.items():
            where = f"{key}: {name}: {text[:20]}"
            if not text.removeprefix("-").isdecimal() or len(text) > 9:
                raise InputError("it is not the number of an epoch", where=where)
            listed = chunks if isinstance(chunks, list) else [chunks]
            if not all(type(chunk) is int and abs(chunk) < 2**31 for chunk in listed):
                raise InputError("it is not a chunk's number, or a list of some", where=where)
            yield from ((arcs[name], int(text), chunk) for chunk in listed)


def _named(key: str, make: Any, given: Any) -> Any:
    try:
        return make(given)
    except InputError as error:
        raise error.within(key) from None
